from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ncu_exp.config import DistractorConfig, NoiseConfig, Position
from ncu_exp.perturb.surround import (
    _filler,
    distractor_context,
    filler_sentences,
    irrelevant_context,
    noise_context,
)
from ncu_exp.records import Item

MakeItem = Callable[..., Item]
LONGEST = 25  # words in the longest sentence of the filler
GOLD = "The tower was opened in 1889. " * 20


def test_the_filler_names_nothing() -> None:
    sentences = _filler()
    assert len(sentences) == len(set(sentences)) >= 120
    assert 2300 <= sum(len(sentence.split()) for sentence in sentences) <= 2700
    for sentence in sentences:
        assert len(sentence.split()) <= LONGEST
        assert re.fullmatch(r"[A-Z][^A-Z\d]*\.", sentence), sentence


@pytest.mark.parametrize("amount", [0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("position", list(Position))
def test_noise_surrounds_the_gold_context(
    amount: float, position: Position, make_item: MakeItem
) -> None:
    item = make_item(GOLD, "1889", title="Tower")
    context = noise_context(item, NoiseConfig(amount=amount, position=position), seed=0)
    assert context is not None
    gold = f"Tower\n{GOLD}"
    before, after = context.split(gold)
    words = len(before.split()) + len(after.split())
    assert abs(words - amount * len(gold.split())) <= LONGEST
    assert (before == "") == (position is Position.start)
    assert (after == "") == (position is Position.end)
    if position is Position.centre:
        assert abs(len(before.split()) - len(after.split())) <= 2 * LONGEST
    assert all(part == "" or part.strip()[-1] == "." for part in (before, after))


def test_irrelevant_text_is_as_long_as_the_gold_context_and_free_of_it(make_item: MakeItem) -> None:
    item = make_item(GOLD, "1889")
    context = irrelevant_context(item, seed=0)
    assert context is not None
    assert abs(len(context.split()) - len(GOLD.split())) <= LONGEST / 2
    assert "1889" not in context


def test_no_sentence_twice_before_all_have_been_used(make_item: MakeItem) -> None:
    item = make_item("word " * 5200, "1889")
    context = irrelevant_context(item, seed=0)
    assert context is not None
    sentences = re.findall(r"[A-Z][^.]*\.", context)
    supply = len(filler_sentences(item, seed=0, purpose="irrelevant"))
    assert len(sentences) > 2 * supply
    assert len(set(sentences[:supply])) == supply
    assert len(set(sentences[supply : 2 * supply])) == supply


def test_filler_about_the_answer_or_the_question_is_left_out(make_item: MakeItem) -> None:
    item = make_item("x", "Tomato", "compost", question="What do bees and willow have in common?")
    left = " ".join(filler_sentences(item, seed=0, purpose="noise")).lower()
    assert len(left) > 5000
    assert not re.search(r"\b(?:tomato|compost|bees|willow)\b", left)


def test_filler_is_drawn_for_each_item_and_seed(make_item: MakeItem) -> None:
    first, second = make_item("x", "y", item_id="a"), make_item("x", "y", item_id="b")
    draws = [
        tuple(filler_sentences(item, seed=seed, purpose=purpose))
        for item, seed, purpose in [
            (first, 0, "n"),
            (second, 0, "n"),
            (first, 1, "n"),
            (first, 0, "i"),
        ]
    ]
    assert len(set(draws)) == 4
    assert draws[0] == tuple(filler_sentences(first, seed=0, purpose="n"))


def test_no_filler_is_left_for_an_item_that_is_about_everything(make_item: MakeItem) -> None:
    words = {word for sentence in _filler() for word in re.findall(r"\w+", sentence)}
    item = make_item("x", "y", question=" ".join(sorted(words)))
    assert irrelevant_context(item, seed=0) is None
    noise = NoiseConfig(amount=1.0, position=Position.centre)
    assert noise_context(item, noise, seed=0) is None


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (Position.start, "T\ngold\n\none\n\ntwo\n\nthree"),
        (Position.centre, "one\n\nT\ngold\n\ntwo\n\nthree"),
        (Position.end, "one\n\ntwo\n\nthree\n\nT\ngold"),
    ],
)
def test_gold_among_distractors(position: Position, expected: str, make_item: MakeItem) -> None:
    item = make_item("gold", "gold", title="T", others=("one", "two", "three"))
    assert distractor_context(item, DistractorConfig(gold_position=position)) == expected


def test_no_distractors_no_context(make_item: MakeItem) -> None:
    config = DistractorConfig(gold_position=Position.start)
    assert distractor_context(make_item("gold", "gold"), config) is None
