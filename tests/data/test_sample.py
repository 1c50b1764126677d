"""The bundled items, held to the rules that they were written by."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from ncu_exp.config import Corpus, DatasetConfig
from ncu_exp.data.corpora import load_items
from ncu_exp.records import AnswerType, Item

KINDS = ("single_hop", "trivia", "two_hop")


@pytest.fixture(scope="module")
def items() -> tuple[Item, ...]:
    loaded = load_items(DatasetConfig(name=Corpus.sample))
    assert loaded.skipped == ()
    assert loaded.total == len(loaded.items)
    return loaded.items


def holds(text: str, answer: str) -> bool:
    """Whether the answer stands in the text as a whole word, in the same case."""
    return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text) is not None


def with_answer_in_text(items: tuple[Item, ...]) -> list[Item]:
    return [item for item in items if item.answer_type is not AnswerType.yes_no]


def test_at_least_96_items_a_third_of_each_kind(items: tuple[Item, ...]) -> None:
    counts = Counter(item.kind for item in items)
    assert set(counts) == set(KINDS)
    assert len(set(counts.values())) == 1
    assert len(items) >= 96


def test_every_answer_type_occurs(items: tuple[Item, ...]) -> None:
    assert {item.answer_type for item in items} == set(AnswerType)


def test_ids_and_questions_are_unique(items: tuple[Item, ...]) -> None:
    for values in ([i.item_id for i in items], [i.question.lower() for i in items]):
        assert [value for value, count in Counter(values).items() if count > 1] == []


def test_no_two_items_ask_for_the_same_fact(items: tuple[Item, ...]) -> None:
    """Stricter and simpler than facts: no two items share an answer, yes and no apart."""
    by_answer: dict[str, list[str]] = {}
    for item in with_answer_in_text(items):
        by_answer.setdefault(item.answer.lower(), []).append(item.item_id)
    assert {answer: ids for answer, ids in by_answer.items() if len(ids) > 1} == {}


def test_questions_end_as_questions(items: tuple[Item, ...]) -> None:
    assert [i.item_id for i in items if not i.question.endswith("?")] == []


def test_passages_have_titles_and_50_to_150_words(items: tuple[Item, ...]) -> None:
    odd = [
        (item.item_id, passage.title, len(passage.text.split()))
        for item in items
        for passage in item.passages
        if not passage.title or not 50 <= len(passage.text.split()) <= 150
    ]
    assert odd == []


def test_answers_are_short(items: tuple[Item, ...]) -> None:
    assert [i.item_id for i in items if not 1 <= len(i.answer.split()) <= 5] == []
    assert [i.item_id for i in items if len(i.aliases) > 4] == []
    yes_no = {i.answer for i in items if i.answer_type is AnswerType.yes_no}
    assert yes_no == {"yes", "no"}


def test_answer_stands_verbatim_in_a_gold_passage(items: tuple[Item, ...]) -> None:
    lacking = [
        item.item_id
        for item in with_answer_in_text(items)
        if not any(holds(passage.text, item.answer) for passage in item.gold_passages)
    ]
    assert lacking == []


def test_question_does_not_give_the_answer_away(items: tuple[Item, ...]) -> None:
    telling = [
        (item.item_id, answer)
        for item in with_answer_in_text(items)
        for answer in item.answers
        if holds(item.question.lower(), answer.lower())
    ]
    assert telling == []


def test_distractors_are_free_of_the_answer(items: tuple[Item, ...]) -> None:
    telling = [
        (item.item_id, passage.title, answer)
        for item in with_answer_in_text(items)
        for passage in item.distractor_passages
        for answer in item.answers
        if holds(f"{passage.title}\n{passage.text}".lower(), answer.lower())
    ]
    assert telling == []


def test_two_hop_items_have_two_gold_passages_and_distractors(items: tuple[Item, ...]) -> None:
    two_hop = [item for item in items if item.kind == "two_hop"]
    assert {len(item.gold_passages) for item in two_hop} == {2}
    assert all(item.distractor_passages for item in two_hop)
