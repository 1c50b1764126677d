"""Rows from files: JSONL, JSON, CSV and Parquet; the text formats also gzipped."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from ncu_exp.data.rows import Row
from ncu_exp.errors import DataError

PARQUET_BATCH = 128  # rows; a TriviaQA row holds whole Wikipedia pages
# csv refuses longer cells by default (131,072); a context may be a whole page. Largest C long.
LONGEST_CELL = 2**31 - 1
# What Arrow raises for a moment beyond the calendar, a text that is not UTF-8, a time zone that is
# none, a name that a record has twice.
_NO_VALUE = (ValueError, OverflowError, KeyError)


def read_file(path: Path, *, name: str = "") -> Iterator[Row]:
    """The rows of a file, in its order.

    The format follows the suffix of `name`, which is the file's own name unless the file is a
    cached copy under another one. A record that cannot be read is a `Row` with `malformed` set.
    Raises DataError for a file that is missing, empty or broken as a whole, and for a suffix that
    belongs to no format.
    """
    place = name or str(path)
    read = _reader(place)
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise DataError(f"The data file {place} {what}; dataset.path names one file.")
    if path.stat().st_size == 0:
        raise DataError(f"The data file {place} is empty.")
    try:
        yield from read(path, place)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"The data file {place} is not a whole gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"The data file {place} cannot be read: {error}") from error


def _reader(place: str) -> Callable[[Path, str], Iterator[Row]]:
    for suffix, read in READERS.items():
        if place.lower().endswith((suffix, f"{suffix}.gz")):
            return read
    raise DataError(
        f"The data file {place} has none of the suffixes {', '.join(READERS)} "
        "(each but .parquet also with .gz)."
    )


def _open(path: Path, place: str) -> BinaryIO:
    if place.lower().endswith(".gz"):
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")


def _read_jsonl(path: Path, place: str) -> Iterator[Row]:
    """Lines end at "\\n" alone: U+0085 and U+2028 are characters of real texts."""
    with _open(path, place) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield _json_row(line, place, number)


def _json_row(line: bytes, place: str, number: int) -> Row:
    try:
        return _record_row(json.loads(line), place, number)
    except (ValueError, RecursionError) as error:
        return Row(place, number, {}, malformed=f"is not JSON: {error}")


def _record_row(record: object, place: str, number: int) -> Row:
    if isinstance(record, Mapping):
        return Row(place, number, record)
    kind = type(record).__name__
    return Row(place, number, {}, malformed=f"is a {kind}, an object with named fields is needed")


def _read_json(path: Path, place: str) -> Iterator[Row]:
    with _open(path, place) as stream:
        content = stream.read()
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"The data file {place} is not JSON: {error}. "
            "A file with one object per line needs the suffix .jsonl."
        ) from error
    for number, record in enumerate(_records(document, place), start=1):
        yield _record_row(record, place, number)


def _records(document: object, place: str) -> list[Any]:
    """The list of records: the document itself, its `data` or `Data` (the official releases of
    SQuAD and TriviaQA), or the one list that it holds."""
    if isinstance(document, list):
        return document
    lists: dict[str, list[Any]] = {}
    if isinstance(document, Mapping):
        lists = {key: value for key, value in document.items() if isinstance(value, list)}
        for key in ("data", "Data"):
            if key in lists:
                return lists[key]
    if len(lists) == 1:
        return next(iter(lists.values()))
    raise DataError(
        f"The data file {place} holds {len(lists)} lists at its top level; "
        "a JSON array of objects is needed, or an object with one such array."
    )


def _read_csv(path: Path, place: str) -> Iterator[Row]:
    yield from _read_delimited(path, place, delimiter=",")


def _read_tsv(path: Path, place: str) -> Iterator[Row]:
    yield from _read_delimited(path, place, delimiter="\t")


def _read_delimited(path: Path, place: str, *, delimiter: str) -> Iterator[Row]:
    """Row 1 is the first below the header. Cells stay texts ("NA" is an answer, not a gap), but
    for those that hold a JSON list."""
    csv.field_size_limit(LONGEST_CELL)
    with (
        _open(path, place) as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as lines,
    ):
        # strict: a quote that is never closed would swallow the rest of the file in silence
        reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
        try:
            header = list(reader.fieldnames or ())
            if len(set(header)) < len(header):
                raise DataError(f"The data file {place} repeats a column name: {header}.")
            for number, cells in enumerate(reader, start=1):
                yield _cells_row(cells, place, number)
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(
                f"The data file {place} is malformed after line {reader.line_num}: {error}"
            ) from error


def _cells_row(cells: dict[str | Any, str | Any], place: str, number: int) -> Row:
    if None in cells:
        return Row(place, number, {}, malformed="has more cells than the header has columns")
    return Row(place, number, {column: _cell(cell) for column, cell in cells.items()})


def _cell(cell: str | None) -> object:
    """A JSON list of texts or records where the cell holds one, else the text as it is."""
    if cell is None or not (cell.lstrip().startswith("[") and cell.rstrip().endswith("]")):
        return cell
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        return cell
    return value if all(isinstance(entry, (str, Mapping)) for entry in value) else cell


def _read_parquet(path: Path, place: str) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=PARQUET_BATCH):
                yield from _batch_rows(batch, place, first=number + 1)
                number += len(batch)
    except (pa.ArrowException, OverflowError, UnicodeDecodeError) as error:
        raise DataError(f"The data file {place} is not Parquet: {error}") from error


def _batch_rows(batch: Any, place: str, *, first: int) -> Iterator[Row]:
    """The rows of a batch; one at a time where one of them cannot be had as Python's values."""
    try:
        records = batch.to_pylist()
    except _NO_VALUE as error:
        if len(batch) == 1:
            reason = f"holds what cannot be read: {error}"
            yield Row(place, first, {}, malformed=reason)
            return
        for place_in_batch in range(len(batch)):
            one = batch.slice(place_in_batch, 1)
            yield from _batch_rows(one, place, first=first + place_in_batch)
        return
    for number, record in enumerate(records, start=first):
        yield Row(place, number, record)


READERS = {
    ".jsonl": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
}
