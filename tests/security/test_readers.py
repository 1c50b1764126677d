"""Whatever a data file holds, it ends in items or in a DataError that can be printed and kept."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ncu_exp.config import ColumnsConfig, Corpus, DatasetConfig, OnError
from ncu_exp.data.corpora import load_items
from ncu_exp.errors import DataError
from ncu_exp.records import Item

from .hostile import any_texts, texts, values

KEYS = ("question", "answer", "context", "id", "title", "aliases", "distractors", "kind")
ALL = ColumnsConfig(**{key: key for key in KEYS})
PLAIN = ColumnsConfig(id="id")
SOUND = dict.fromkeys(KEYS, "sound") | {"title": None}
CORPORA = (Corpus.nq, Corpus.triviaqa, Corpus.hotpotqa, Corpus.squad, Corpus.sample)

records = st.dictionaries(st.sampled_from(KEYS) | any_texts, values, max_size=9)
whole = st.fixed_dictionaries(dict.fromkeys(KEYS[:4], texts | values))
fuzzed = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def outcome(path: Path, **changes: Any) -> list[Item]:
    """The items of a file that nobody vouches for; none where it is refused."""
    given = {"name": Corpus.local, "columns": ALL, "on_error": OnError.skip} | changes
    try:
        loaded = load_items(DatasetConfig(path=str(path), **given))
    except DataError as error:
        check_message(str(error))
        return []
    assert len(loaded.items) + len(loaded.skipped) == loaded.total
    pd.DataFrame(loaded.skipped).to_csv(io.BytesIO(), index=False)
    items = list(loaded.items)
    for item in items:
        assert item.question
        assert item.answer
        json.dumps(item.question, ensure_ascii=False).encode("utf-8")
    return items


def check_message(message: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", message)
    assert len(message) < 5_000


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.jsonl.gz"])
@fuzzed
@given(content=st.binary(min_size=1, max_size=200) | texts.map(lambda t: f"\ufeff{t}".encode()))
@example(content=b"\xff\xfeq\x00u\x00")
@example(content=b"\xef\xbb\xbf\x00")
def test_bytes_of_any_kind(tmp_path: Path, name: str, content: bytes) -> None:
    outcome(written(tmp_path / name, content or b" "))


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
@fuzzed
@given(rows=st.lists(records | whole, min_size=1, max_size=4))
@example(rows=[{"\ud800\x1b[31m": 1}])
@example(rows=[{"question": 10**400, "answer": 1e999, "context": "c", "id": float("nan")}])
@example(rows=[{str(number) * 9: 0 for number in range(9_999)}])
def test_json_of_any_shape(tmp_path: Path, suffix: str, rows: list[dict[str, Any]]) -> None:
    path = tmp_path / f"a{suffix}"
    lines = [json.dumps(row) for row in [*rows, SOUND]]
    path.write_text("\n".join(lines) if suffix == ".jsonl" else f"[{','.join(lines)}]")
    assert "sound" in {item.question for item in outcome(path)}


@pytest.mark.parametrize("corpus", CORPORA)
@fuzzed
@given(data=st.data())
def test_the_corpora_s_own_schemas(tmp_path: Path, corpus: Corpus, data: st.DataObject) -> None:
    """A whole record of the corpus with something else in some of its places."""
    from tests.data import raw

    whole_record = {
        Corpus.nq: raw.NQ_GOLD,
        Corpus.triviaqa: raw.TRIVIA_HUB,
        Corpus.hotpotqa: raw.HOTPOT_HUB,
        Corpus.squad: raw.SQUAD_HUB,
        Corpus.sample: raw.SAMPLE,
    }[corpus]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(mangled(whole_record, data.draw)))
    outcome(path, name=corpus)


def mangled(record: Any, draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
    if draw(st.integers(0, 5)) == 0:
        return draw(values)
    if isinstance(record, dict):
        return {key: mangled(value, draw) for key, value in record.items()}
    if isinstance(record, list):
        return [mangled(value, draw) for value in record]
    return record


@fuzzed
@given(cells=st.lists(st.lists(texts, min_size=4, max_size=9), min_size=1, max_size=4))
def test_csv_of_any_cells(tmp_path: Path, cells: list[list[str]]) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows([KEYS, *cells])
    outcome(written(tmp_path / "a.csv", stream.getvalue().encode()))


def test_keys_that_come_twice_and_nesting_without_end(tmp_path: Path) -> None:
    deep = "[" * 50_000 + "]" * 50_000
    lines = [
        '{"question": "a", "question": "b", "answer": "x", "context": "x", "id": "1"}',
        f'{{"question": "q", "answer": {deep}, "context": "c", "id": "2"}}',
        f'{{"question": "q", "answer": {"9" * 5_000}, "context": "c", "id": "3"}}',
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    assert [item.question for item in outcome(path, columns=PLAIN)] == ["b"]


COLUMN_KINDS = {
    "texts": pa.array(["x", None]),
    "bytes": pa.array([b"\xff\x00", None]),
    "not UTF-8": pa.array([b"\xff\xfe", b"a"], pa.binary()).view(pa.string()),
    "moments beyond the calendar": pa.array([2**62, 0], pa.timestamp("us")),
    "nanoseconds": pa.array([1, 2], pa.timestamp("ns")),
    "a zone that is none": pa.array([1, 2], pa.timestamp("us", tz="Nowhere/None")),
    "days": pa.array([2**31 - 1, 0], pa.date32()),
    "decimals": pa.array([1, 2], pa.decimal128(20, 2)),
    "a record with a name twice": pa.StructArray.from_arrays(
        [pa.array(["a", "b"]), pa.array(["c", "d"])], names=["text", "text"]
    ),
    "maps": pa.array([[("a", 1), ("a", 2)], []], pa.map_(pa.string(), pa.int64())),
    "dictionaries": pa.array(["a", "b"]).dictionary_encode(),
    "lists of lists": pa.array([[["a"]], None]),
    "nulls": pa.nulls(2),
    "spans of time": pa.array([2**62, 1], pa.duration("s")),
}


@pytest.mark.parametrize("kind", COLUMN_KINDS)
@pytest.mark.parametrize("place", ["answer", "context", "another"])
def test_parquet_columns_of_every_kind(tmp_path: Path, kind: str, place: str) -> None:
    columns = {"question": ["q", "r"], "answer": ["a", "b"], "context": ["c", "d"]}
    pq.write_table(
        pa.table({**columns, "id": ["1", "2"], place: COLUMN_KINDS[kind]}), tmp_path / "a.parquet"
    )
    items = outcome(tmp_path / "a.parquet", columns=PLAIN)
    assert place != "another" or {item.item_id for item in items} <= {"1", "2"}


def test_parquet_with_a_column_twice(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["answer", "answer"])
    pq.write_table(twice, tmp_path / "a.parquet")
    assert outcome(tmp_path / "a.parquet", columns=PLAIN) == []


@settings(fuzzed, max_examples=150)
@given(place=st.integers(0, 10_000), byte=st.integers(0, 255), cut=st.booleans())
def test_parquet_with_a_byte_changed_or_cut_off(
    tmp_path: Path, place: int, byte: int, cut: bool
) -> None:
    stream = io.BytesIO()
    table = pa.table({key: [f"{key} {n}" for n in range(3)] for key in KEYS[:4]})
    pq.write_table(table, stream)
    content = bytearray(stream.getvalue())
    place %= len(content)
    if cut:
        del content[place + 1 :]
    content[place] = byte
    outcome(written(tmp_path / "a.parquet", bytes(content)), columns=PLAIN)
