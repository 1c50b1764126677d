"""The user's own file -> Item (pure): columns are named by `dataset.columns`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ncu_exp.config import ColumnsConfig
from ncu_exp.data.rows import (
    Fields,
    Row,
    RowProblem,
    as_passage_text,
    as_text,
    as_texts,
    is_missing,
    split_answers,
    take,
)
from ncu_exp.data.schemas import Schema, passage_of, with_gold
from ncu_exp.records import Item, Passage

ALIAS_SEPARATOR = "|"
OPTIONAL = ("aliases", "title", "distractors", "kind")


def local_schema(columns: ColumnsConfig) -> Schema:
    """The schema of a file with these columns.

    The columns of question, answer, context and id (where one is named) must be in every row. The
    others may be absent from rows, but not from all of them: that is a misspelt name.
    """
    mapped = ((f"dataset.columns.{key}", getattr(columns, key)) for key in OPTIONAL)
    return Schema(
        item=partial(_item, columns=columns),
        passages=partial(_passages, columns=columns),
        some_row_has=tuple((key, column) for key, column in mapped if column is not None),
    )


def _item(row: Row, *, columns: ColumnsConfig) -> Item:
    fields = row.fields
    question = as_text(_column(fields, columns.question, key="question"), columns.question)
    if not question:
        raise RowProblem(columns.question, "is empty")
    given = as_texts(_column(fields, columns.answer, key="answer"), columns.answer)
    answer, others = split_answers(given, columns.answer)
    _, aliases = split_answers((answer, *others, *_aliases(fields, columns)), columns.answer)
    return Item(
        item_id=_item_id(row, columns),
        corpus="local",
        question=question,
        answer=answer,
        aliases=aliases,
        kind=as_text(_optional(fields, columns.kind), columns.kind or "kind"),
    )


def _column(fields: Fields, name: str, *, key: str) -> object:
    try:
        return take(fields, name)
    except RowProblem as problem:
        hint = f"{problem.reason}. Name the right column with dataset.columns.{key}="
        raise RowProblem(name, hint) from None


def _optional(fields: Fields, name: str | None) -> object:
    return None if name is None else fields.get(name)


def _item_id(row: Row, columns: ColumnsConfig) -> str:
    """The id column, or the 0-based row where none is named."""
    if columns.id is None:
        return f"row:{row.number - 1}"
    item_id = as_text(_column(row.fields, columns.id, key="id"), columns.id)
    if not item_id:
        raise RowProblem(columns.id, "is empty")
    return item_id


def _aliases(fields: Fields, columns: ColumnsConfig) -> tuple[str, ...]:
    """A list, or one text with the aliases separated by "|"."""
    value = _optional(fields, columns.aliases)
    if isinstance(value, str):
        value = value.split(ALIAS_SEPARATOR)
    return as_texts(value, columns.aliases or "aliases")


def _passages(row: Row, *, columns: ColumnsConfig) -> tuple[Passage, ...]:
    context = _column(row.fields, columns.context, key="context")
    gold = _titled(
        _texts_of(context, columns.context), _optional(row.fields, columns.title), columns.title
    )
    field = columns.distractors or "distractors"
    others = _texts_of(_optional(row.fields, columns.distractors), field)
    distractors = [replace(passage, is_gold=False) for passage in others]
    return with_gold([*gold, *distractors], columns.context)


def _texts_of(value: object, field: str) -> list[Passage]:
    """Passages from a text, a list of texts, a record {title, text} or a list of them."""
    if is_missing(value):
        return []
    entries = value if isinstance(value, list) else [value]
    return [
        passage_of(entry, field)
        if isinstance(entry, Mapping)
        else Passage(title="", text=as_passage_text(entry, field))
        for entry in entries
    ]


def _titled(passages: list[Passage], titles: object, field: str | None) -> list[Passage]:
    """The passages with the title column's one title, or with its list of as many titles."""
    if field is None or is_missing(titles):
        return passages
    given = titles if isinstance(titles, list) else [titles] * len(passages)
    if len(given) != len(passages):
        raise RowProblem(field, f"holds {len(given)} titles for {len(passages)} passages")
    return [replace(p, title=as_text(t, field)) for p, t in zip(passages, given, strict=True)]
