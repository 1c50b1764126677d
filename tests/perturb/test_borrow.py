"""The policy `corpus`: another item's answer of the same kind, in the item's own format."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from ncu_exp.config import PerturbConfig, Policy
from ncu_exp.perturb.borrow import kin_of
from ncu_exp.perturb.inventors import answers_to_hide
from ncu_exp.perturb.mentions import find_lookalikes
from ncu_exp.perturb.policies import make_perturb
from ncu_exp.records import AnswerType, Item, Perturbation, render_passages

MakeItem = Callable[..., Item]
T = AnswerType


@pytest.fixture(scope="session")
def borrowing(config: PerturbConfig) -> PerturbConfig:
    return replace(config, policy=Policy.corpus)


def pair(
    make_item: MakeItem, kind: AnswerType, one: str, text: str, other: str, *aliases: str
) -> list[Item]:
    """An item with a text, and one whose answer it may borrow."""
    return [
        make_item(text, one, *aliases, answer_type=kind, item_id="one"),
        make_item(f"There was {other} once.", other, answer_type=kind, item_id="other"),
    ]


def perturbed(items: Sequence[Item], config: PerturbConfig) -> Perturbation:
    return make_perturb(items, config)(items[:1])[0]


@pytest.mark.parametrize(
    ("kind", "one", "text", "other", "expected"),
    [
        (
            T.person, "Ada Lovelace", "Ada Lovelace wrote it. Lovelace's notes are long.",
            "Grace Hopper", "Grace Hopper wrote it. Hopper's notes are long.",
        ),
        (T.place, "France", "He lived in France.", "Peru", "He lived in Peru."),
        (T.year, "1843", "It came out in 1843.", "1931", "It came out in 1931."),
        (
            T.date, "14 December 1972", "It was on 14 December 1972.",
            "March 10, 2017", "It was on 10 March 2017.",
        ),
        (T.number, "seven", "It had seven doors.", "12", "It had twelve doors."),
        (T.number, "7", "It had seven doors, 7 of wood.", "12", "It had twelve doors, 12 of wood."),
        (T.quantity, "8,850 km", "It is 8,850 km long.", "6,400 km", "It is 6,400 km long."),
        (T.money, "$7.2 million", "It cost $7.2 million.", "$3.5 million", "It cost $3.5 million."),
        (
            T.organization, "Chicago Bears", "The Chicago Bears won. The Bears were glad.",
            "Dallas Cowboys", "The Dallas Cowboys won. The Cowboys were glad.",
        ),
        (T.other, "erosion", "Erosion made it.", "gravity", "Gravity made it."),
    ],
)  # fmt: skip
def test_what_is_borrowed_goes_to_every_form_of_the_answer(
    kind: AnswerType,
    one: str,
    text: str,
    other: str,
    expected: str,
    make_item: MakeItem,
    borrowing: PerturbConfig,
) -> None:
    made = perturbed(pair(make_item, kind, one, text, other), borrowing)
    assert made.ok, made.reason
    assert made.policy == "corpus"
    assert made.perturbed == expected


def test_aliases_follow_the_borrowed_date(make_item: MakeItem, borrowing: PerturbConfig) -> None:
    text = "The last one was in December 1972; before 1972 there were others."
    items = pair(
        make_item, T.date, "14 December 1972", text, "March 10, 2017", "December 1972", "1972"
    )
    made = perturbed(items, borrowing)
    assert made.perturbed == "The last one was in March 2017; before 2017 there were others."
    assert made.fabricated == "March 2017"


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (T.place, "France", "Paris"),
        (T.quantity, "8,850 km", "12 minutes"),
        (T.number, "2.5", "3"),
        (T.number, "seven", "250"),  # would have to be written out
        (T.date, "14 December 1972", "1931"),
        (T.person, "Ada Lovelace", "Grace Hopper and Alan Turing"),
        (T.person, "Ada Lovelace", "Alan Turing"),  # "her notes"
        (T.other, "erosion", "two rivers"),
        (T.organization, "Chicago Bears", "Chicago Bulls"),  # Chicago is part of the truth
        (T.person, "Ada Lovelace", "Ada Lovelace"),
    ],
)
def test_what_does_not_fit_is_not_borrowed(
    kind: AnswerType, one: str, other: str, make_item: MakeItem, borrowing: PerturbConfig
) -> None:
    items = pair(make_item, kind, one, f"It was {one}, and what she did.", other)
    made = perturbed(items, borrowing)
    assert not made.ok
    assert made.reason.startswith("no_answer_to_borrow: ")


def test_nothing_that_the_item_mentions_is_borrowed(
    make_item: MakeItem, borrowing: PerturbConfig
) -> None:
    others = ["Grace Hopper", "Mary Somerville", "Emmy Noether"]
    items = [
        make_item("Ada Lovelace, friend of Somerville.", "Ada Lovelace", item_id="one",
                  question="Who knew Emmy Noether?", answer_type=T.person),
        *(make_item(f"It was {n}.", n, item_id=n, answer_type=T.person) for n in others),
    ]  # fmt: skip
    for seed in range(10):
        made = perturbed(items, replace(borrowing, seed=seed))
        assert made.fabricated == "Grace Hopper"


@pytest.mark.parametrize(
    ("kind", "core", "kin"),
    [
        (T.yes_no, "yes", None),
        (T.work_of_art, "Ocean's 11", None),  # its number would not fit another
        (T.date, "the 1990s", None),
        (T.quantity, "10:30", None),
        (T.other, "when the war had begun", None),  # too much of a sentence for another's place
    ],
)
def test_who_has_no_kin(kind: AnswerType, core: str, kin: object) -> None:
    assert kin_of(kind, core) is kin


def test_the_set_counts_and_not_its_order(make_item: MakeItem, borrowing: PerturbConfig) -> None:
    names = ["Ada Lovelace", "Grace Hopper", "Mary Somerville", "Emmy Noether", "Lise Meitner"]
    items = [
        make_item(f"It was {name}.", name, item_id=name, answer_type=T.person) for name in names
    ]
    perturb = make_perturb(items, borrowing)
    made = {p.item_id: p for p in perturb(items)}
    assert len({p.fabricated for p in made.values()}) > 1
    random.Random(1).shuffle(items)
    again = make_perturb(items, borrowing)
    assert {p.item_id: p for p in again(items)} == made


@pytest.mark.parametrize("corpus", ["Natural Questions", "TriviaQA, excerpts", "HotpotQA", "SQuAD"])
def test_on_real_items_what_is_borrowed_is_an_answer_and_leaves_none(
    corpus: str, real_items: dict[str, list[Item]], borrowing: PerturbConfig
) -> None:
    items = real_items[corpus][:120]
    perturb = make_perturb(items, borrowing)
    made = perturb(items)
    taken = [(item, p) for item, p in zip(items, made, strict=True) if p.ok]
    assert len(taken) > 0.4 * len(items)
    for item, p in taken:
        assert p.perturbed is not None
        assert p.fabricated is not None
        assert find_lookalikes(p.perturbed, answers_to_hide(item)) == []
        assert not find_lookalikes(
            f"{item.question} {render_passages(item.passages)}", [p.fabricated]
        )
