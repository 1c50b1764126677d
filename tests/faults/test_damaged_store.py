"""A store whose file was damaged is set aside, and what is whole in it goes on."""

from __future__ import annotations

import logging
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ncu_exp import contents
from ncu_exp.contents import PERTURBATIONS, SCORES, ContentStore, content_key
from ncu_exp.store import main
from tests.faults.jobs import config_of, run
from tests.faults.process import arguments_for

ENTRIES = 400
DAMAGES_ANYWHERE = 24
PAGE = 4096
KEYS = [content_key("k", number) for number in range(ENTRIES)]
VALUES = {key: {"number": number, "text": f"{key}" * 5} for number, key in enumerate(KEYS)}


def flip_pages(path: Path) -> None:
    """Every byte of two pages in the middle."""
    raw = bytearray(path.read_bytes())
    middle = len(raw) // PAGE // 2 * PAGE
    raw[middle : middle + 2 * PAGE] = bytes(255 - b for b in raw[middle : middle + 2 * PAGE])
    path.write_bytes(raw)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100])


def write_nonsense(path: Path) -> None:
    path.write_bytes(b"This is no database at all. " * 500)


def cut_to_nothing(path: Path) -> None:
    path.write_bytes(b"")


# What was done, and the share of the entries that it must leave.
DAMAGES: list[tuple[Callable[[Path], None], float]] = [
    (flip_pages, 0.85),
    (cut, 0.3),
    (write_nonsense, 0.0),
    (cut_to_nothing, 0.0),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store."""
    with closing(ContentStore(tmp_path / SCORES)) as store:
        store.write(VALUES, origin="weights")
    assert not Path(f"{tmp_path / SCORES}-wal").exists()
    return tmp_path / SCORES


def told_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if "is damaged" in r.getMessage()]


@pytest.mark.parametrize(("damage", "left"), DAMAGES, ids=lambda d: getattr(d, "__name__", ""))
def test_what_is_whole_is_kept_and_the_rest_is_written_again(
    path: Path,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[Path], None],
    left: float,
) -> None:
    damage(path)
    with closing(ContentStore(path)) as store:
        found = store.read(KEYS)
        assert found.items() <= VALUES.items()
        assert left * ENTRIES <= len(found) < ENTRIES
        store.write({key: VALUES[key] for key in KEYS if key not in found}, origin="weights")
        assert store.read(KEYS) == VALUES
    assert len(told_of(caplog)) == (damage is not cut_to_nothing)
    assert bool(list(path.parent.glob("*.damaged-*"))) == (damage is not cut_to_nothing)
    assert main(["--dir", str(path.parent), "verify"]) == 0


@pytest.mark.parametrize("damage", [flip_pages, cut, write_nonsense])
def test_verify_tells_of_it_and_changes_nothing_and_prune_mends_it(
    path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    damage(path)
    before = path.read_bytes()
    arguments = ["--dir", str(path.parent)]
    assert main([*arguments, "verify"]) == 1
    told = capsys.readouterr().out
    assert f"{path}: its structure is damaged" in told
    assert "prune" in told
    assert path.read_bytes() == before
    assert main([*arguments, "prune"]) == 0
    assert main([*arguments, "verify"]) == 0


def test_any_bytes_anywhere_never_give_a_wrong_value(path: Path) -> None:
    """Of one to fifty bytes, each third time in the schema: an entry is what it was, or missing."""
    whole = path.read_bytes()
    logging.getLogger("ncu_exp").setLevel(logging.ERROR)
    for seed in range(DAMAGES_ANYWHERE):
        draw = random.Random(seed)
        raw = bytearray(whole)
        start = draw.randrange((len(raw) if seed % 3 else 2 * PAGE) - 50)
        for place in range(start, start + draw.randint(1, 50)):
            raw[place] ^= draw.randint(1, 255)
        path.write_bytes(raw)
        with closing(ContentStore(path)) as store:
            assert store.read(KEYS).items() <= VALUES.items()
            store.write(VALUES, origin="weights")
            assert store.read(KEYS).items() <= VALUES.items()
            store.summary()
            store.prune()
            store.write(VALUES, origin="weights")
            assert store.read(KEYS) == VALUES
    logging.getLogger("ncu_exp").setLevel(logging.NOTSET)


def test_two_that_have_it_open_go_on_in_one_new_file(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(ContentStore(path)) as one, closing(ContentStore(path)) as other:
        flip_pages(path)
        for store in (one, other):
            found = store.read(KEYS)
            store.write({k: VALUES[k] for k in KEYS if k not in found}, origin="weights")
        assert one.read(KEYS) == other.read(KEYS) == VALUES
    assert len(told_of(caplog)) == 1
    assert main(["--dir", str(path.parent), "verify"]) == 0


def test_a_store_that_another_process_holds_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "PATIENCE_S", 0.1)
    with closing(ContentStore(path)) as store, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(contents.StoreError, match="another process has held it"):
            store.write({KEYS[0]: 1}, origin="weights")
        other.rollback()
        store.write({KEYS[0]: 1}, origin="weights")
        assert store.read(KEYS[:1]) == {KEYS[0]: 1}


def test_a_job_over_damaged_stores_finds_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By reference, so that a score does not depend on which others were lost."""
    arguments = [*arguments_for(tmp_path, items=150), "score.numerics=reference"]
    config = config_of(tmp_path, arguments)
    run(config, tmp_path / "whole")
    for name in (SCORES, PERTURBATIONS):
        flip_pages(tmp_path / "cache" / name)
    run(config, tmp_path / "damaged")
    assert len(told_of(caplog)) == 2
    for name in ("items", "perturbations"):
        table = f"results/tables/{name}.parquet"
        whole, damaged = (tmp_path / folder / table for folder in ("whole", "damaged"))
        assert damaged.read_bytes() == whole.read_bytes()
    assert main(["--dir", str(tmp_path / "cache"), "verify"]) == 0
