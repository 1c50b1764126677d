"""Each public corpus's schema in both its forms, on small rows written for these tests."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from ncu_exp.data import schemas
from ncu_exp.data.rows import Row, RowProblem
from ncu_exp.data.schemas import Schema, corpus_item, template_item
from ncu_exp.records import AnswerType, ContextSource, Item, Passage

from .raw import (
    HOTPOT_HUB,
    HOTPOT_OFFICIAL,
    NQ_GOLD,
    SAMPLE,
    SQUAD_HUB,
    TRIVIA_HUB,
    TRIVIA_OFFICIAL,
)


def item_of(schema: Schema, fields: dict[str, Any], *, number: int = 1) -> Item:
    return corpus_item(schema, Row("file", number, fields))


def problem_of(schema: Schema, fields: dict[str, Any]) -> RowProblem:
    with pytest.raises(RowProblem) as caught:
        item_of(schema, fields)
    return caught.value


def changed(fields: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    """A copy with the value at the path replaced, or removed where `to` is `...`."""
    copy: Any = deepcopy(fields)
    place = copy
    for step in path[:-1]:
        place = place[step]
    if to is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return copy  # type: ignore[no-any-return]


@pytest.mark.parametrize("fields", [HOTPOT_HUB, HOTPOT_OFFICIAL], ids=["hub", "official"])
def test_hotpotqa(fields: dict[str, Any]) -> None:
    assert item_of(schemas.HOTPOTQA, fields) == Item(
        item_id="h1",
        corpus="hotpotqa",
        question="Which river runs through the birthplace of X?",
        answer="Aare",
        passages=(
            Passage("Other", "One. Two.", is_gold=False),
            Passage("X", "X was born in Bern."),
            Passage("Bern", "On the Aare."),
        ),
        kind="bridge/hard",
    )


def test_hotpotqa_yes_no_and_missing_kind() -> None:
    assert item_of(schemas.HOTPOTQA, changed(HOTPOT_HUB, "answer", to="no")).answer_type is (
        AnswerType.yes_no
    )
    assert item_of(schemas.HOTPOTQA, changed(HOTPOT_HUB, "level", to=...)).kind == "bridge"


def test_hotpotqa_list_of_records_as_parquet_writers_make_it() -> None:
    records = [
        {"title": t, "sentences": s} for t, s in zip(*HOTPOT_HUB["context"].values(), strict=True)
    ]
    fields = changed(HOTPOT_HUB, "context", to=records)
    assert item_of(schemas.HOTPOTQA, fields) == item_of(schemas.HOTPOTQA, HOTPOT_HUB)


@pytest.mark.parametrize(
    ("path", "to", "field", "reason"),
    [
        (["answer"], " ", "answer", "is empty"),
        (["answer"], ..., "answer", "is missing; the row has: _id, question"),
        (["supporting_facts"], [], "supporting_facts", "names no paragraph"),
        (["supporting_facts", 0, 0], "Y", "context", "lacks the supporting paragraphs Y"),
        (["context", 1, 1], ["", " "], "context", "lacks the supporting paragraphs X"),
        (["context", 1, 1], "X was", "context.sentences", "is not a list"),
        (["context"], "text", "context", "is not a list of records"),
        (["context", 1, 1], ["ok", 3], "context.sentences", "is of type int"),
        (["_id"], None, "_id", "is empty"),
    ],
)
def test_hotpotqa_problems(path: list[Any], to: Any, field: str, reason: str) -> None:
    problem = problem_of(schemas.HOTPOTQA, changed(HOTPOT_OFFICIAL, *path, to=to))
    assert problem.field == field
    assert problem.reason.startswith(reason)


def test_squad_hub() -> None:
    assert item_of(schemas.SQUAD, SQUAD_HUB) == Item(
        item_id="s1",
        corpus="squad",
        question="When did it open?",
        answer="the 1880s",
        aliases=("1880s",),
        passages=(Passage("Café de Flore", " The café opened in the 1880s.\n"),),
    )


def test_squad_official_article_becomes_numbered_questions() -> None:
    answers = [
        {"text": text, "answer_start": start}
        for text, start in zip(*SQUAD_HUB["answers"].values(), strict=True)
    ]
    asked = {"id": "s1", "question": SQUAD_HUB["question"], "answers": answers}
    impossible = {"id": "s2", "question": "?", "answers": [], "is_impossible": True}
    paragraph = {"context": SQUAD_HUB["context"], "qas": [asked, impossible]}
    article = {"title": SQUAD_HUB["title"], "paragraphs": [paragraph]}
    rows = list(schemas.SQUAD.rows(iter([Row("f", 1, article), Row("f", 2, article)])))
    assert [row.number for row in rows] == [1, 2, 3, 4]
    assert corpus_item(schemas.SQUAD, rows[2]) == item_of(schemas.SQUAD, SQUAD_HUB)
    with pytest.raises(RowProblem, match=r"field 'answers': is empty: .*SQuAD 2\.0"):
        corpus_item(schemas.SQUAD, rows[3])


def test_squad_malformed_article_is_a_malformed_row() -> None:
    rows = [Row("f", 1, {"paragraphs": "x"}), Row("f", 2, {"paragraphs": [{"qas": [SQUAD_HUB]}]})]
    first, second = schemas.SQUAD.rows(iter(rows))
    assert first.malformed == "field 'paragraphs': is not a list of records"
    assert (second.number, second.fields["id"]) == (2, "s1")


def test_squad_flat_rows_keep_their_line_numbers() -> None:
    rows = [Row("f", 1, SQUAD_HUB), Row("f", 3, SQUAD_HUB)]
    assert list(schemas.SQUAD.rows(iter(rows))) == rows


@pytest.mark.parametrize(
    ("path", "to", "field"),
    [
        (["context"], "", "context"),
        (["context"], ..., "context"),
        (["context"], ["a"], "context"),
        (["answers"], ..., "answers"),
        (["answers", "text"], [" ", "", None, " "], "answers.text"),
        (["answers", "text"], ["a"], "answers"),
        (["question"], None, "question"),
        (["id"], ..., "id"),
    ],
)
def test_squad_problems(path: list[Any], to: Any, field: str) -> None:
    assert problem_of(schemas.SQUAD, changed(SQUAD_HUB, *path, to=to)).field == field


def test_triviaqa_hub_takes_every_document_that_has_a_text() -> None:
    assert item_of(schemas.TRIVIAQA, TRIVIA_HUB) == Item(
        item_id="t1",
        corpus="triviaqa",
        question="Which country?",
        answer="Portugal",
        aliases=("PRT",),
        passages=(Passage("A", "text a"), Passage("W", "text w")),
        kind="WikipediaEntity",
    )


def test_triviaqa_official_has_no_texts_but_a_template() -> None:
    problem = problem_of(schemas.TRIVIAQA, TRIVIA_OFFICIAL)
    assert problem.field == "EntityPages"
    assert "hub's schema" in problem.reason
    item = template_item(schemas.TRIVIAQA, Row("file", 1, TRIVIA_OFFICIAL))
    assert (item.item_id, item.answer, item.aliases) == ("t1", "Portugal", ("PRT",))
    assert item.kind == "WikipediaEntity"


@pytest.mark.parametrize(
    ("path", "to", "field"),
    [
        (["answer"], "Portugal", "answer"),
        (["answer", "value"], "", "answer.value"),
        (["answer", "aliases"], [["x"]], "answer.aliases"),
        (["question_id"], ..., "question_id"),
        (["entity_pages", "wiki_context"], ["a"], "entity_pages"),
        (["search_results", "search_context"], [{"a": 1}], "search_results.search_context"),
    ],
)
def test_triviaqa_problems(path: list[Any], to: Any, field: str) -> None:
    assert problem_of(schemas.TRIVIAQA, changed(TRIVIA_HUB, *path, to=to)).field == field


@pytest.mark.parametrize("contexts", [["", " "], [None, None]])
def test_triviaqa_empty_documents_are_no_context(contexts: list[str | None]) -> None:
    fields = changed(TRIVIA_HUB, "entity_pages", "wiki_context", to=contexts)
    fields = changed(fields, "search_results", to=None)
    problem = problem_of(schemas.TRIVIAQA, fields)
    assert (problem.field, problem.reason) == (
        "entity_pages.wiki_context",
        "holds no gold context",
    )


def test_nq_gold() -> None:
    assert item_of(schemas.NQ, NQ_GOLD, number=42) == Item(
        item_id="row:41",
        corpus="nq",
        question="where is it",
        answer="Iran",
        aliases=("Persia",),
        passages=(Passage("D", "no answer here", is_gold=False), Passage("G", "it is in Iran")),
    )


def test_nq_open_needs_the_template() -> None:
    fields = {"question": "where is it", "answer": ["Iran"]}
    problem = problem_of(schemas.NQ, fields)
    assert problem.field == "ctxs"
    assert "dataset.context=template" in problem.reason
    assert template_item(schemas.NQ, Row("file", 1, fields)).answer == "Iran"


@pytest.mark.parametrize(
    ("path", "to", "field", "reason"),
    [
        (["ctxs", 1, "isgold"], False, "ctxs", "holds no gold context"),
        (["ctxs", 1, "isgold"], ..., "ctxs", "holds no gold context"),
        (["ctxs", 1, "text"], "", "ctxs", "holds no gold context"),
        (["ctxs", 1, "text"], ..., "ctxs.text", "is missing; the record has: title"),
        (["answers"], ..., "answer", "is missing"),
        (["answers"], [], "answers", "holds no answer"),
        (["answers"], {"a": 1}, "answers", "is of type dict"),
    ],
)
def test_nq_problems(path: list[Any], to: Any, field: str, reason: str) -> None:
    problem = problem_of(schemas.NQ, changed(NQ_GOLD, *path, to=to))
    assert problem.field == field
    assert problem.reason.startswith(reason)


@pytest.mark.parametrize("answer", [")", "---", "Russia\u00a0(", "&#8756;", "Hydro\u00adgen"])
def test_answers_are_not_tidied(answer: str) -> None:
    assert item_of(schemas.NQ, changed(NQ_GOLD, "answers", to=[answer])).answer == answer


def test_lone_surrogate_is_no_text() -> None:
    problem = problem_of(schemas.NQ, changed(NQ_GOLD, "ctxs", 1, "text", to="ab\ud83d"))
    assert (problem.field, problem.reason) == ("ctxs.text", "holds half of a surrogate pair at 2")


@pytest.mark.parametrize(
    ("path", "to", "field"),
    [
        (["answer_type"], "animal", "answer_type"),
        (["passages", 0, "is_gold"], "yes", "passages.is_gold"),
        (["passages", 0, "is_gold"], False, "passages"),
        (["passages", 0, "text"], ..., "passages.text"),
        (["kind"], "", "kind"),
        (["aliases"], ..., "aliases"),
    ],
)
def test_sample_problems(path: list[Any], to: Any, field: str) -> None:
    assert item_of(schemas.SAMPLE, SAMPLE).answer_type is AnswerType.year
    assert problem_of(schemas.SAMPLE, changed(SAMPLE, *path, to=to)).field == field


def test_sample_alias_that_repeats_the_answer_is_dropped() -> None:
    item = item_of(schemas.SAMPLE, changed(SAMPLE, "aliases", to=["1815", "MDCCCXV"]))
    assert item.answers == ("1815", "MDCCCXV")


@pytest.mark.parametrize(("answer", "end"), [("Iran", "is Iran."), ("Kuechly.", "is Kuechly.")])
def test_template_states_the_answer_once(answer: str, end: str) -> None:
    item = template_item(schemas.NQ, Row("f", 1, {"question": "who is it", "answer": [answer]}))
    assert item.context_source is ContextSource.template
    (passage,) = item.passages
    assert passage == Passage("", f'The answer to the question "who is it" {end}')
