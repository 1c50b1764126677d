"""The user's own columns, in every form that a file may have them."""

from __future__ import annotations

from typing import Any

import pytest

from ncu_exp.config import ColumnsConfig
from ncu_exp.data.local import local_schema
from ncu_exp.data.rows import Row, RowProblem
from ncu_exp.data.schemas import corpus_item, template_item
from ncu_exp.records import Item, Passage


def item_of(fields: dict[str, Any], **columns: str) -> Item:
    return corpus_item(local_schema(ColumnsConfig(**columns)), Row("my.csv", 8, fields))


def row_with(**fields: Any) -> dict[str, Any]:
    return {"question": "Which?", "answer": "A", "context": "A is it."} | fields


def test_defaults() -> None:
    assert item_of(row_with()) == Item(
        item_id="row:7",
        corpus="local",
        question="Which?",
        answer="A",
        passages=(Passage("", "A is it."),),
    )


def test_every_column_under_another_name() -> None:
    fields = {
        "key": 17,
        "q": "Which?",
        "a": "A",
        "alt": "B|C | A||",
        "docs": "A is it.",
        "name": "T",
        "bad": "not it",
        "level": "easy",
    }
    item = item_of(
        fields,
        id="key",
        question="q",
        answer="a",
        aliases="alt",
        context="docs",
        title="name",
        distractors="bad",
        kind="level",
    )
    assert item == Item(
        item_id="17",
        corpus="local",
        question="Which?",
        answer="A",
        aliases=("B", "C"),
        passages=(Passage("T", "A is it."), Passage("", "not it", is_gold=False)),
        kind="easy",
    )


@pytest.mark.parametrize(
    ("context", "passages"),
    [
        (["x", "y"], [Passage("", "x"), Passage("", "y")]),
        ([{"title": "T", "text": "x"}, "y"], [Passage("T", "x"), Passage("", "y")]),
        ({"title": "T", "text": "x"}, [Passage("T", "x")]),
        (
            [{"text": "x", "is_gold": False}, {"text": "y", "is_gold": True}],
            [Passage("", "x", is_gold=False), Passage("", "y")],
        ),
        (["x", " ", None], [Passage("", "x")]),
        ("  x\n", [Passage("", "  x\n")]),
    ],
)
def test_forms_of_a_context(context: Any, passages: list[Passage]) -> None:
    assert item_of(row_with(context=context)).passages == tuple(passages)


def test_distractors_are_never_gold() -> None:
    fields = row_with(no=["x", {"title": "T", "text": "y", "is_gold": True}])
    assert item_of(fields, distractors="no").distractor_passages == (
        Passage("", "x", is_gold=False),
        Passage("T", "y", is_gold=False),
    )


@pytest.mark.parametrize(
    ("titles", "expected"), [("T", ["T", "T"]), (["S", "T"], ["S", "T"]), (None, ["", ""])]
)
def test_titles(titles: Any, expected: list[str]) -> None:
    item = item_of(row_with(context=["x", "y"], name=titles), title="name")
    assert [passage.title for passage in item.passages] == expected


@pytest.mark.parametrize(
    ("answer", "aliases", "expected"),
    [
        (["A", "B", "A"], None, ("A", "B")),
        (["A", "B"], ["C", "B", ""], ("A", "B", "C")),
        ("A", "B", ("A", "B")),
        ("A|B", None, ("A|B",)),
        (1991, [1992.0, 2.5], ("1991", "1992", "2.5")),
        (["", "B"], [], ("B",)),
    ],
)
def test_answer_and_aliases(answer: Any, aliases: Any, expected: tuple[str, ...]) -> None:
    assert item_of(row_with(answer=answer, alt=aliases), aliases="alt").answers == expected


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        (row_with(question=" "), "question", "is empty"),
        (row_with(answer=None), "answer", "holds no answer"),
        (row_with(answer=float("nan")), "answer", "holds no answer"),
        (row_with(answer=True), "answer", "is of type bool"),
        (row_with(context=""), "context", "holds no gold context"),
        (row_with(context=[]), "context", "holds no gold context"),
        (row_with(context=None), "context", "holds no gold context"),
        (row_with(context=5), "context", "is of type int"),
        (row_with(context=[["x"]]), "context", "is of type list"),
        (row_with(context=[{"title": "T"}]), "context.text", "is missing; the record has: title"),
        (row_with(name=["S", "T"]), "name", "holds 2 titles for 1 passages"),
        (row_with(key=None), "key", "is empty"),
    ],
)
def test_problems(fields: dict[str, Any], field: str, reason: str) -> None:
    columns = {"title": "name", "id": "key"}
    with pytest.raises(RowProblem) as caught:
        item_of({"key": "k"} | fields, **columns)
    assert caught.value.field == field
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize("key", ["question", "answer", "context", "id"])
def test_missing_column_names_the_others_and_the_option(key: str) -> None:
    with pytest.raises(RowProblem) as caught:
        item_of(row_with(), **{key: "typo"})
    assert caught.value.field == "typo"
    assert caught.value.reason == (
        "is missing; the row has: question, answer, context. "
        f"Name the right column with dataset.columns.{key}="
    )


def test_template_needs_no_context_column() -> None:
    row = Row("my.csv", 1, {"question": "Which?", "answer": "A"})
    item = template_item(local_schema(ColumnsConfig()), row)
    assert item.passages == (Passage("", 'The answer to the question "Which?" is A.'),)
