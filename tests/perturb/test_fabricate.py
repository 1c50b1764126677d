from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncu_exp.perturb.fabricate import fabricate, is_clause
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.inventors import searched_answers
from ncu_exp.perturb.mentions import find_mentions
from ncu_exp.perturb.words import significant_words
from ncu_exp.records import AnswerType, Item, Passage

MakeItem = Callable[..., Item]

ANSWERS = {
    AnswerType.person: "Charles Darwin",
    AnswerType.place: "Kanab, Utah",
    AnswerType.organization: "Houghton Mifflin",
    AnswerType.date: "14 December 1972",
    AnswerType.year: "1966",
    AnswerType.number: "eight",
    AnswerType.quantity: "8,850 km",
    AnswerType.money: "$7.2 million",
    AnswerType.work_of_art: "The Night Watch",
    AnswerType.event: "Battle of Hastings",
    AnswerType.other: "erosion",
}
FORMATS = {
    AnswerType.person: r"[A-Z]\w+ [A-Z]\w+",
    AnswerType.place: r"[\w ]+, [A-Z][\w ]+",
    AnswerType.organization: r"[A-Z][\w' -]+",
    AnswerType.date: r"\d{1,2} [A-Z][a-z]+ \d{4}",
    AnswerType.year: r"\d{4}",
    AnswerType.number: r"[a-z-]+",
    AnswerType.quantity: r"\d{1,2},\d{3} km",
    AnswerType.money: r"\$\d+\.\d million",
    AnswerType.work_of_art: r"[A-Z]\w+ [A-Z]\w+",
    AnswerType.event: r"Battle of [A-Z]\w+",
    AnswerType.other: r"[a-z]+sion",
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_each_type_keeps_its_format(kind: AnswerType, make_item: MakeItem) -> None:
    item = make_item(f"It was {ANSWERS[kind]}.", ANSWERS[kind])
    for seed in range(20):
        made = fabricate(item, kind, seed=seed)
        assert made is not None
        assert re.fullmatch(FORMATS[kind], made.core)


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(list(ANSWERS)), seed=st.integers(0, 10**6), item_id=st.text(max_size=9))
def test_nothing_collides_and_the_draw_repeats(kind: AnswerType, seed: int, item_id: str) -> None:
    answer = ANSWERS[kind]
    text = f"It was {answer}, said James Smith of Port Michael in 1980; 5 or 9,900 km."
    item = Item(item_id, "local", "What about Johnson?", answer, (), (Passage("", text),))
    made = fabricate(item, kind, seed=seed)
    assert made is not None
    assert made == fabricate(item, kind, seed=seed)
    assert fold_text(made.core) != fold_text(answer)
    assert not find_mentions(f"{text} {item.question}", [made.core])
    if kind in (AnswerType.person, AnswerType.organization, AnswerType.other):
        taken = significant_words(f"{text} {item.question}")
        assert taken.isdisjoint(significant_words(made.core))


def test_items_and_seeds_draw_apart(make_item: MakeItem) -> None:
    def cores(**changes: object) -> set[str]:
        items = [
            make_item("x Charles Darwin x", "Charles Darwin", item_id=f"i{n}") for n in range(9)
        ]
        made = [fabricate(item, AnswerType.person, seed=0) for item in items]
        return {m.core for m in made if m}

    assert len(cores()) > 6
    item = make_item("x Charles Darwin x", "Charles Darwin")
    seeds = {m.core for s in range(9) if (m := fabricate(item, AnswerType.person, seed=s))}
    assert len(seeds) > 6


def test_every_spelling_of_a_number_or_date_goes_the_same_way(make_item: MakeItem) -> None:
    item = make_item("x", "14 December 1972 UTC", "December 1972", "1972")
    made = fabricate(item, AnswerType.date, seed=0)
    assert made is not None
    assert made.core.endswith(f"{made.spelling('December 1972')} UTC")
    assert made.spelling("December 1972").endswith(made.spelling("1972"))

    item = make_item("x", "8", "eight", "8 episodes")
    made = fabricate(item, AnswerType.number, seed=0)
    assert made is not None
    assert made.spelling("8 episodes") == f"{made.core} episodes"
    assert made.spelling("eight").isalpha()


def test_an_alias_of_another_kind_gets_a_value_of_its_own_kind(make_item: MakeItem) -> None:
    item = make_item("In 2006 by Conrad Lewis", "2006", "Conrad Lewis")
    made = fabricate(item, AnswerType.year, seed=0)
    assert made is not None
    assert re.fullmatch(r"\d{4}", made.core)
    assert re.fullmatch(r"[A-Z]\w+ [A-Z]\w+", made.spelling("Conrad Lewis"))


def test_an_impossible_draw_is_none(make_item: MakeItem) -> None:
    everything = " ".join(str(number) for number in range(200))
    assert fabricate(make_item(everything, "7"), AnswerType.number, seed=0) is None
    assert fabricate(make_item("東京", "東京"), AnswerType.other, seed=0) is None
    assert fabricate(make_item("x", ")"), AnswerType.place, seed=0) is None


def test_the_other_spelling_is_searched_too(make_item: MakeItem) -> None:
    assert searched_answers(make_item("x", "8", "eight")) == ("8", "eight")
    assert searched_answers(make_item("x", "3")) == ("3", "three")
    assert searched_answers(make_item("x", "one")) == ("one",)
    assert searched_answers(make_item("x", "a laser beam")) == ("a laser beam", "laser beams")
    assert searched_answers(make_item("x", "spiders")) == ("spiders", "spider")
    assert searched_answers(make_item("The Herons won.", "The Herons")) == ("The Herons",)


def test_clauses_are_told_from_names_and_terms(make_item: MakeItem) -> None:
    other = AnswerType.other
    assert is_clause(make_item("x", "to coordinate the response"), other)
    assert is_clause(make_item("x", "Ada Lovelace's way to work"), other)
    assert not is_clause(make_item("x", "Love and the Death of a Very Long Name Indeed Sir"), other)
    assert not is_clause(make_item("x", "connect two minicomputers of the same make there"), other)
    assert not is_clause(make_item("x", "to coordinate"), AnswerType.work_of_art)
