"""The store gives back what was put in, to the right model only, whatever happens to processes."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ncu_exp.config import Numerics, PrecisionName
from ncu_exp.contents import ContentStore, content_key
from ncu_exp.records import Score
from ncu_exp.scoring import local, memory
from ncu_exp.scoring.memory import StoredMemory
from ncu_exp.scoring.precision import PRECISIONS
from ncu_exp.scoring.ways import TREE
from tests.scoring.test_paths import ask, engine_of, run
from tests.tiny import save_tiny_model, tiny_model


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ContentStore]:
    opened = ContentStore(tmp_path / "scores.sqlite")
    yield opened
    opened.close()


def key(number: int) -> str:
    return content_key("k", number)


def test_values_come_back_to_the_last_bit(store: ContentStore) -> None:
    values = {key(i): {"answers": [[[-0.1 / (i + 1), -1e-300], True]]} for i in range(1200)}
    store.write(values, origin="w")
    assert store.read([*values, key(-1)]) == values
    assert store.summary().by_origin == {"w": 1200}


def test_a_damaged_value_counts_as_missing(store: ContentStore) -> None:
    store.write({key(1): 1, key(2): 2}, origin="w")
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("UPDATE contents SET value = x'00' WHERE key = ?", (bytes.fromhex(key(1)),))
    assert store.read([key(1), key(2)]) == {key(2): 2}
    assert store.damaged() == [key(1)]
    assert store.prune() == 1
    assert store.damaged() == []


def test_prune_by_origin_and_by_age(store: ContentStore) -> None:
    store.write({key(1): 1}, origin="old")
    store.write({key(2): 2}, origin="new")
    assert store.prune(older_than_s=3600) == 0
    assert store.prune(origin="old") == 1
    assert store.summary().by_origin == {"new": 1}
    time.sleep(0.01)
    assert store.prune(older_than_s=0.001) == 1


def _fill(path: Path, first: int) -> None:
    with closing(ContentStore(path)) as store:
        for number in range(first, first + 200):
            store.write({key(number): number}, origin="w")


def test_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_fill, args=(path, 200 * i)) for i in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    with closing(ContentStore(path)) as store:
        assert store.read(map(key, range(600))) == {key(i): i for i in range(600)}


def test_a_killed_writer_loses_at_most_what_was_in_flight(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    code = f"""
from pathlib import Path
from ncu_exp.contents import ContentStore, content_key
store = ContentStore(Path({str(path)!r}))
for number in range(10**9):
    store.write({{content_key("k", number): number}}, origin="w")
    print(number, flush=True)
"""
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    with writer.stdout as lines:
        told = [int(lines.readline()) for _ in range(300)]
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    with closing(ContentStore(path)) as store:
        assert store.read(map(key, told)) == {key(i): i for i in told}
        assert store.damaged() == []


def test_the_hash_of_a_file_follows_its_content(store: ContentStore, tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    first = store.file_sha256(file)
    assert store.file_sha256(file) == first
    file.write_bytes(b"another")
    assert store.file_sha256(file) != first


# --- an engine with a memory ---------------------------------------------------------------------

REQUESTS = [ask(f"question {i}", "yes", "no", item_id=str(i)) for i in range(5)]


class Refuse:
    """Weights that must not be asked for."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("weights were used though every score is known")


def remembering(store: ContentStore, folder: Path, **changes: Any) -> Any:
    engine = engine_of(tiny_model())
    opened = dataclasses.replace(engine.opened, place=str(folder), **changes)
    engine.opened = opened
    engine._memory = StoredMemory(store, opened)
    return engine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_tiny_model(tmp_path / "model")


@pytest.mark.parametrize("numerics", list(Numerics))
def test_what_is_known_needs_no_weights(
    store: ContentStore, folder: Path, numerics: Numerics
) -> None:
    first = run(remembering(store, folder), REQUESTS, numerics=numerics)
    again = remembering(store, folder)
    again._load = Refuse()
    assert run(again, REQUESTS, numerics=numerics) == first
    assert (again.asked, again.recalled) == (5, 5)


def test_a_model_is_tried_once_on_a_machine(
    store: ContentStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert remembering(store, folder).way is TREE
    with monkeypatch.context() as patch:
        patch.setattr(local, "choose_way", Refuse())
        assert remembering(store, folder).way is TREE
        others: tuple[dict[str, Any], ...] = (
            {"precision": PRECISIONS[PrecisionName.bf16]},
            {"folder": save_tiny_model(folder.parent / "other", architecture="qwen2")},
        )
        for other in others:
            with pytest.raises(AssertionError, match="weights were used"):
                _ = remembering(store, other.pop("folder", folder), **other).way
        patch.setattr(memory, "versions", lambda: {"torch": "another"})
        with pytest.raises(AssertionError, match="weights were used"):
            _ = remembering(store, folder).way


def test_an_interrupted_job_goes_on_where_it_stopped(store: ContentStore, folder: Path) -> None:
    scoring = remembering(store, folder).score(
        REQUESTS, numerics=Numerics.reference, batch_tokens=1
    )
    for _ in range(2):
        next(scoring)
    scoring.close()
    again = remembering(store, folder)
    run(again, REQUESTS, numerics=Numerics.reference)
    assert again.recalled == 2


def test_no_score_is_served_to_what_it_was_not_made_for(store: ContentStore, folder: Path) -> None:
    def hits(numerics: Numerics = Numerics.fast, requests: Any = REQUESTS, **changes: Any) -> int:
        engine = remembering(store, changes.pop("folder", folder), **changes)
        run(engine, requests, numerics=numerics)
        return int(engine.recalled)

    assert hits() == 0
    assert hits() == 5
    assert hits(numerics=Numerics.reference) == 0
    assert hits(precision=PRECISIONS[PrecisionName.bf16]) == 0
    assert hits(requests=[ask(f"question {i}", "yes", "na") for i in range(5)]) == 0
    assert hits(requests=[ask(f"question {i}", "yes", "no", n=4) for i in range(5)]) == 0
    assert hits(requests=[ask(f"question {i}?", "yes", "no") for i in range(5)]) == 0
    config = folder / "config.json"
    config.write_text(config.read_text() + "\n")
    assert hits() == 0  # other files, other weights
    assert hits() == 5


def test_errors_are_not_remembered(store: ContentStore, folder: Path) -> None:
    import torch

    engine = remembering(store, folder)
    with torch.no_grad():
        engine.model.get_input_embeddings().weight.fill_(float("nan"))
    broken: list[Score] = run(engine, REQUESTS, numerics=Numerics.fast)
    assert not any(score.ok for score in broken)
    mended = remembering(store, folder)
    assert all(score.ok for score in run(mended, REQUESTS, numerics=Numerics.fast))
    assert mended.recalled == 0


def test_latencies_of_this_machine_are_remembered(store: ContentStore, folder: Path) -> None:
    first = list(remembering(store, folder).latency(REQUESTS))
    again = remembering(store, folder)
    again._load = Refuse()
    assert list(again.latency(REQUESTS)) == first
