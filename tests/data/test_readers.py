"""Files -> rows: each format, and what each kind of broken file says."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from ncu_exp.data.readers import read_file
from ncu_exp.data.rows import Row
from ncu_exp.errors import DataError

RECORDS = [
    {"question": "Which river?", "answer": "Rhône", "context": ["a\u0085b", "c\u2028d"]},
    {"question": "Which year?", "answer": "1991", "context": ["e"]},
]


def rows_of(path: Path) -> list[Row]:
    return list(read_file(path))


def write_lines(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"\n".join(lines))
    return path


def test_jsonl_lines_end_at_newline_alone(tmp_path: Path) -> None:
    lines = [json.dumps(record, ensure_ascii=False).encode() for record in RECORDS]
    rows = rows_of(write_lines(tmp_path / "a.jsonl", *lines))
    assert [row.fields for row in rows] == RECORDS
    assert [row.number for row in rows] == [1, 2]
    assert rows[0].place == str(tmp_path / "a.jsonl")


def test_jsonl_numbers_are_line_numbers(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", b"\xef\xbb\xbf" + b'{"a": 1}', b"", b'{"a": 2}\r', b"")
    assert [(row.number, row.fields) for row in rows_of(path)] == [(1, {"a": 1}), (3, {"a": 2})]


@pytest.mark.parametrize("line", [b'{"a": 1', b"\xff{}", b"[1, 2]", b'"text"', b"[" * 100_000])
def test_jsonl_malformed_line_is_a_row_of_its_own(tmp_path: Path, line: bytes) -> None:
    first, bad, last = rows_of(write_lines(tmp_path / "a.jsonl", b'{"a": 1}', line, b'{"a": 3}'))
    assert (first.malformed, last.malformed) == ("", "")
    assert bad.number == 2
    assert bad.malformed.startswith("is ")
    assert bad.fields == {}


def test_gzip_follows_the_real_name_of_a_cached_copy(tmp_path: Path) -> None:
    copy = tmp_path / "0a1b2c"
    copy.write_bytes(gzip.compress(json.dumps(RECORDS[0]).encode()))
    (row,) = read_file(copy, name="qa.jsonl.gz")
    assert row.fields == RECORDS[0]
    assert row.place == "qa.jsonl.gz"


@pytest.mark.parametrize(
    "document",
    [
        RECORDS,
        {"version": "1.1", "data": RECORDS},
        {"Data": RECORDS, "Errors": [], "Version": 1.0},
        {"rows": RECORDS, "n": 2},
    ],
    ids=["array", "squad", "triviaqa", "one list"],
)
@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_json_finds_its_records(tmp_path: Path, document: object, suffix: str) -> None:
    content = json.dumps(document).encode()
    path = tmp_path / f"a{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    assert [row.fields for row in rows_of(path)] == RECORDS


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"a": [1], "b": [2]}', "holds 2 lists"),
        ('{"a": 1}', "holds 0 lists"),
        ("7", "holds 0 lists"),
        ('{"a": 1}\n{"a": 2}', r"not JSON: Extra data: line 2 .* suffix \.jsonl"),
    ],
)
def test_json_without_records(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(DataError, match=says):
        rows_of(path)


def test_json_array_names_the_entry_that_is_no_object(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"a": 1}, "b"]')
    _, bad = rows_of(path)
    assert (bad.number, bad.malformed) == (2, "is a str, an object with named fields is needed")


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t"), (".csv.gz", ",")])
def test_delimited_cells_stay_texts(tmp_path: Path, suffix: str, delimiter: str) -> None:
    plain = tmp_path / "plain"
    with plain.open("w", newline="", encoding="utf-8-sig") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(["question", "answer", "context"])
        writer.writerow(['a "quoted", one\nin two lines', "NA", "x\u0085y" * 100_000])
        writer.writerow(["q", "007", ""])
    path = tmp_path / f"a{suffix}"
    content = plain.read_bytes()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    one, two = rows_of(path)
    assert one.fields["question"] == 'a "quoted", one\nin two lines'
    assert one.fields["answer"] == "NA"
    assert len(one.fields["context"]) == 300_000
    assert two.fields == {"question": "q", "answer": "007", "context": ""}
    assert (one.number, two.number) == (1, 2)


def test_csv_cell_with_a_json_list_becomes_a_list(tmp_path: Path) -> None:
    cells = ['["a", "b"]', '[{"text": "c"}]', "[sic] d [1]", "[1, 2]", "[" * 100_000 + "]"]
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["v"], *([cell] for cell in cells)])
    values = [row.fields["v"] for row in rows_of(path)]
    assert values == [["a", "b"], [{"text": "c"}], *cells[2:]]


def test_csv_row_of_another_width(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("q,a\n1,2,3\n4\n5,6\n")
    wide, short, whole = rows_of(path)
    assert wide.malformed == "has more cells than the header has columns"
    assert short.fields == {"q": "4", "a": None}
    assert whole.fields == {"q": "5", "a": "6"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'q,a\n1,2\n"3,4\n5,6\n', "malformed after line 2: unexpected end"),
        (b"q,a\n1,2\n\xff,3\n", "malformed after line .*'utf-8'"),
        (b"q,q\n1,2\n", r"repeats a column name: \['q', 'q'\]"),
    ],
)
def test_csv_broken_as_a_whole(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says):
        rows_of(path)


def test_parquet_gives_plain_values(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    many = RECORDS * 150  # more than one batch
    pq.write_table(pa.Table.from_pylist(many), tmp_path / "a.parquet")
    rows = rows_of(tmp_path / "a.parquet")
    assert [row.fields for row in rows] == many
    assert [row.number for row in rows] == list(range(1, 301))


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.parquet", "a.jsonl.gz"])
def test_empty_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(DataError, match=rf"{name} is empty"):
        rows_of(tmp_path / name)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz", "a.json.gz"])
@pytest.mark.parametrize("damage", ["cut", "plain", "flipped"])
def test_broken_gzip(tmp_path: Path, name: str, damage: str) -> None:
    whole = gzip.compress(b'{"a": 1}\n' * 5_000)
    content = {
        "cut": whole[: len(whole) // 2],
        "plain": b'{"a": 1}\n',
        "flipped": whole[:40] + bytes(b ^ 0xFF for b in whole[40:]),
    }[damage]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name} is not a whole gzip file"):
        rows_of(tmp_path / name)


def test_broken_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(DataError, match=r"a\.parquet is not Parquet"):
        rows_of(tmp_path / "a.parquet")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no\.jsonl does not exist"):
        rows_of(tmp_path / "no.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(DataError, match=r"folder\.jsonl is a folder"):
        rows_of(tmp_path / "folder.jsonl")


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.parquet.gz.zip", "jsonl"])
def test_suffix_of_no_format_names_the_formats(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(DataError, match=r"\.jsonl, \.json, \.csv, \.tsv, \.parquet"):
        rows_of(tmp_path / name)
