"""Hub datasets and web files: the real loading code, on local folders and a local server."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import datasets
import pytest

from ncu_exp.config import Corpus, DatasetConfig, GoldContext
from ncu_exp.data.corpora import load_items
from ncu_exp.errors import DataError, NetworkError

from .raw import HOTPOT_HUB, NQ_GOLD, SQUAD_HUB, TRIVIA_HUB

CLOSED = "http://127.0.0.1:9"  # the discard port: nothing listens


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for `datasets`, and a hub that does not answer."""
    cache = tmp_path / "hf_cache"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    monkeypatch.setattr(datasets.config, "DOWNLOADED_DATASETS_PATH", cache / "downloads")
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", CLOSED)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    return cache


class HubLikeHandler(SimpleHTTPRequestHandler):
    """Files; and for what is no file, the header by which the hub says that it is no dataset."""

    def end_headers(self) -> None:
        self.send_header("X-Error-Code", "RepoNotFound")
        super().end_headers()

    def log_message(self, *args: Any) -> None:
        """Not into the test's output."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[Path, ThreadingHTTPServer]]:
    """A folder, and a running server of its files."""
    folder = tmp_path / "www"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(HubLikeHandler, directory=folder))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield folder, server
    server.shutdown()
    server.server_close()
    thread.join()


def write_jsonl(path: Path, *records: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)
    path.write_text(lines, encoding="utf-8")
    return path


def write_parquet(path: Path, *records: dict[str, Any]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(records)), path)
    return path


def config_of(name: Corpus, **values: Any) -> DatasetConfig:
    return DatasetConfig(name=name, **values)


@pytest.mark.parametrize(
    ("name", "record"),
    [(Corpus.hotpotqa, HOTPOT_HUB), (Corpus.squad, SQUAD_HUB), (Corpus.triviaqa, TRIVIA_HUB)],
)
@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_hub_schema_gives_the_same_items_as_a_file(
    tmp_path: Path, name: Corpus, record: dict[str, Any], suffix: str
) -> None:
    write = write_parquet if suffix == ".parquet" else write_jsonl
    file = write(tmp_path / f"hub/validation{suffix}", record)
    write(tmp_path / f"hub/train{suffix}", record | {"question": "not this split"})
    from_hub = load_items(config_of(name, hub_id=str(file.parent)))
    from_file = load_items(config_of(name, path=str(file)))
    assert list(from_hub.items) == list(from_file.items)
    assert from_hub.sha256 == from_file.sha256
    assert from_hub.source == f"hub:{file.parent}:validation"


def test_hub_split_is_taken(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "hub/validation.jsonl", SQUAD_HUB)
    write_jsonl(tmp_path / "hub/train.jsonl", SQUAD_HUB | {"id": "train-1"})
    loaded = load_items(config_of(Corpus.squad, hub_id=str(tmp_path / "hub"), split="train"))
    assert [item.item_id for item in loaded.items] == ["train-1"]


def test_triviaqa_lists_that_are_empty_at_first(tmp_path: Path) -> None:
    """Columns of empty lists are inferred as null, and the next file then fails to load."""
    folder = tmp_path / "hub"
    empty = {key: [] for key in ("description", "filename", "rank", "title", "url")}
    results = {"search_results": {**empty, "search_context": []}}
    full = {key: ["x"] for key in ("description", "filename", "title", "url", "search_context")}
    write_jsonl(folder / "validation-0.jsonl", TRIVIA_HUB | results)
    write_jsonl(
        folder / "validation-1.jsonl",
        TRIVIA_HUB | {"question_id": "t2", "search_results": {**full, "rank": [3]}},
    )
    with pytest.raises(datasets.exceptions.DatasetGenerationError):
        datasets.load_dataset(str(folder), split="validation")
    loaded = load_items(config_of(Corpus.triviaqa, hub_id=str(folder)))
    assert [len(item.passages) for item in loaded.items] == [1, 2]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"split": "dev"}, r"dataset\.split=dev.*Should be one of \['validation'\]"),
        ({"hub_config": "rc"}, "dataset.hub_config=rc.*'rc' not found"),
    ],
)
def test_hub_without_that_split_or_configuration(
    tmp_path: Path, values: dict[str, str], says: str
) -> None:
    write_jsonl(tmp_path / "hub/validation.jsonl", SQUAD_HUB)
    with pytest.raises(DataError, match=says):
        load_items(config_of(Corpus.squad, hub_id=str(tmp_path / "hub"), **values))


def test_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be loaded"):
        load_items(config_of(Corpus.squad, hub_id=str(tmp_path)))


def test_no_network_says_so_within_seconds() -> None:
    started = time.monotonic()
    with pytest.raises(NetworkError, match=r"does not answer.* rajpurkar/squad.*dataset\.path="):
        load_items(config_of(Corpus.squad, hub_id="rajpurkar/squad"))
    assert time.monotonic() - started < 10


def test_offline_by_choice_without_a_cached_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(NetworkError, match=r"rajpurkar/squad.*dataset\.path="):
        load_items(config_of(Corpus.squad, hub_id="rajpurkar/squad"))


def test_offline_by_choice_takes_the_cached_copy(
    tmp_path: Path, hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dataset of a former run, as `datasets` leaves it in its cache."""
    folder = write_jsonl(tmp_path / "squad/validation.jsonl", SQUAD_HUB).parent
    datasets.load_dataset(str(folder), split="validation")
    (hub_cache / "squad").rename(hub_cache / "rajpurkar___squad")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    loaded = load_items(config_of(Corpus.squad, hub_id="rajpurkar/squad"))
    assert [item.item_id for item in loaded.items] == ["s1"]


def test_unknown_dataset(
    web: tuple[Path, ThreadingHTTPServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub that answers, but knows no such dataset."""
    address = f"http://127.0.0.1:{web[1].server_port}"
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", address)
    with pytest.raises(DataError, match=r"'nobody/nothing' doesn't exist.*dataset\.path="):
        load_items(config_of(Corpus.squad, hub_id="nobody/nothing"))


def test_web_file_is_fetched_once_and_then_read_from_the_cache(
    web: tuple[Path, ThreadingHTTPServer],
) -> None:
    folder, server = web
    plain = write_jsonl(folder / "plain.jsonl", NQ_GOLD | {"question": "a\u0085b"}, NQ_GOLD)
    (folder / "qa.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    url = f"http://127.0.0.1:{server.server_port}/qa.jsonl.gz?raw=true"
    config = config_of(Corpus.nq, hub_file=url, hub_id="not/asked")
    first = load_items(config)
    assert [item.question for item in first.items] == ["a\u0085b", "where is it"]
    assert first.source == url
    (folder / "qa.jsonl.gz").unlink()
    assert load_items(config) == first


def test_web_file_with_a_broken_line_names_it(web: tuple[Path, ThreadingHTTPServer]) -> None:
    folder, server = web
    whole = write_jsonl(folder / "qa.jsonl", NQ_GOLD).read_text()
    (folder / "qa.jsonl").write_text(whole + '{"cut')
    url = f"http://127.0.0.1:{server.server_port}/qa.jsonl"
    with pytest.raises(DataError, match=r"qa\.jsonl, row 2, .*is not JSON"):
        load_items(config_of(Corpus.nq, hub_file=url))


@pytest.mark.parametrize("address", [CLOSED, "http://no-such-host.invalid"])
def test_web_file_without_a_network(address: str) -> None:
    url = f"{address}/qa.jsonl.gz"
    started = time.monotonic()
    with pytest.raises(NetworkError, match=rf"hub_file={url}: .*onnect.*dataset\.path="):
        load_items(config_of(Corpus.nq, hub_file=url))
    assert time.monotonic() - started < 15


def test_web_file_that_is_not_there(web: tuple[Path, ThreadingHTTPServer]) -> None:
    url = f"http://127.0.0.1:{web[1].server_port}/qa.jsonl"
    with pytest.raises(NetworkError, match="404"):
        load_items(config_of(Corpus.nq, hub_file=url))


def test_nq_template_asks_the_hub_and_not_the_file(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "hub/validation.jsonl", {"question": "where is it", "answer": ["Iran"]})
    loaded = load_items(
        config_of(
            Corpus.nq,
            hub_file=f"{CLOSED}/qa.jsonl.gz",
            hub_id=str(tmp_path / "hub"),
            context=GoldContext.template,
        )
    )
    assert [item.answer for item in loaded.items] == ["Iran"]
