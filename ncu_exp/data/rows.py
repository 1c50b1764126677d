"""A raw row of a corpus, and how typed values are taken out of it (pure).

Readers make `Row`s, schemas read them. Whatever is wrong with a row is a `RowProblem`; what
becomes of it (an error, or a counted and listed row) is decided in one place, `corpora`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ncu_exp.errors import visible

LONGEST_REASON = 1_000  # characters
Fields: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a source.

    `place` names the file or the hub dataset, `number` counts from 1 (in JSONL it is the line).
    Where `malformed` is not empty it says why the record could not be read, and `fields` is empty.
    """

    place: str
    number: int
    fields: Fields
    malformed: str = ""


class RowProblem(Exception):
    """What is wrong with a row: the field ("" for the whole row), and the reason in words.

    Names of columns and ids are quoted in it: what data hold is told in one line of bounded length.
    """

    def __init__(self, field: str, reason: str) -> None:
        self.field, self.reason = in_one_line(field), in_one_line(reason)
        super().__init__(f"field '{self.field}': {self.reason}" if field else self.reason)


def in_one_line(text: str) -> str:
    """What data call something, fit for a message: of bounded length, control characters shown."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}…"


def take(fields: Fields, name: str, *, within: str = "") -> Any:
    """The value of a field of the row, or of a record in its field `within`; RowProblem without."""
    if name not in fields:
        holder = "record" if within else "row"
        raise RowProblem(
            f"{within}.{name}" if within else name,
            f"is missing; the {holder} has: {', '.join(fields) or 'nothing'}",
        )
    return fields[name]


def is_missing(value: object) -> bool:
    """Whether a value stands for "nothing": null, or the NaN that data frames put in its place."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def as_text(value: object, field: str) -> str:
    """A text without surrounding white space, otherwise unchanged; "" where it is missing.

    Numbers become text (a year in a JSON or Parquet file); 1991.0 becomes "1991", because data
    frames turn a column of integers with a gap into floats.
    """
    if is_missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return as_passage_text(value, field).strip()


def as_passage_text(value: object, field: str) -> str:
    """A text as it is, white space included; "" where it is missing."""
    if is_missing(value):
        return ""
    if not isinstance(value, str):
        raise RowProblem(field, f"is of type {type(value).__name__}, a text is needed")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RowProblem(field, f"holds half of a surrogate pair at {error.start}") from None
    return value


def required_text(fields: Fields, name: str) -> str:
    """A stripped text that must be there and not empty."""
    text = as_text(take(fields, name), name)
    if not text:
        raise RowProblem(name, "is empty")
    return text


def as_texts(value: object, field: str) -> tuple[str, ...]:
    """Stripped texts without empty ones and repetitions, from one text or a list of texts."""
    values = value if isinstance(value, (list, tuple)) else [value]
    texts = (as_text(v, field) for v in values)
    return tuple(dict.fromkeys(t for t in texts if t))


def split_answers(candidates: Iterable[str], field: str) -> tuple[str, tuple[str, ...]]:
    """The first gold answer, and the others as its aliases; RowProblem where there is none."""
    answers = tuple(dict.fromkeys(c for c in candidates if c))
    if not answers:
        raise RowProblem(field, "holds no answer")
    return answers[0], answers[1:]


def as_records(value: object, field: str) -> list[Fields]:
    """A list of records, from a list of records or from Arrow's form of it, a record of lists."""
    if is_missing(value):
        return []
    if isinstance(value, Mapping):
        columns = {name: column for name, column in value.items() if not is_missing(column)}
        if any(not isinstance(column, list) for column in columns.values()):
            raise RowProblem(field, "is a record of single values, a list is needed")
        if len({len(column) for column in columns.values()}) > 1:
            raise RowProblem(field, "has columns of different lengths")
        return [
            dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)
        ]
    if not isinstance(value, list) or any(not isinstance(entry, Mapping) for entry in value):
        raise RowProblem(field, "is not a list of records")
    return list(value)
