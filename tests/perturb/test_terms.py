from __future__ import annotations

import random

import pytest

from ncu_exp.perturb.draws import Draws
from ncu_exp.perturb.terms import (
    class_member,
    class_of,
    common_word,
    has_number,
    invent_term,
    is_clause,
    is_name,
    is_plural,
    other_number,
)
from ncu_exp.perturb.words import CLASSES, COMMON_WORDS, folded_words, is_significant


@pytest.fixture
def draws() -> Draws:
    return Draws(random.Random(5))


@pytest.mark.parametrize(
    ("core", "expected"),
    [
        ("Old Trafford", True),
        ("actress Dakota Johnson", True),
        ("Parlement de Bretagne", True),
        ('"Read It and Weep" (2006)', True),
        ("Acid rain", False),
        ("erosion", False),
        ("early 1800s", False),
        ("shortest player ever to play in the National Basketball Association", False),
        ("", False),
    ],
)
def test_is_name(core: str, expected: bool) -> None:
    assert is_name(core) is expected


def test_a_clause_has_a_verb_or_too_many_words() -> None:
    assert is_clause("it cannot be written as a sum")
    assert is_clause("installed electrical arc light based illumination systems")
    assert not is_clause("divergent tectonic plate boundary")


def test_numbers_in_terms() -> None:
    assert has_number("Category 4")
    assert has_number("the sixth season")
    assert not has_number("someone often weighs")


@pytest.mark.parametrize(
    ("core", "is_plural"),
    [("Orange", False), ("oranges", True), ("GOLD", False), ("giraffes", True)],
)
def test_members_of_closed_classes(core: str, is_plural: bool, draws: Draws) -> None:
    member = class_member(core, draws)
    assert member is not None
    assert class_of(member) == class_of(core)
    assert member.isupper() == core.isupper()
    assert member[0].isupper() == core[0].isupper()
    assert member.endswith("s") == is_plural


def test_every_class_has_members_to_choose_from_once_each() -> None:
    assert all(len(set(members)) == len(members) > 1 for members in CLASSES)
    folded = [word.casefold() for members in CLASSES for word in members]
    assert len(set(folded)) >= len(folded) - 3  # an orange, lead and Australia have two
    assert all(len(set(words)) == len(words) > 3 for _, words in COMMON_WORDS)
    assert all(is_significant(word) for _, words in COMMON_WORDS for word in words)


def test_words_keep_their_ending_and_case(draws: Draws) -> None:
    assert common_word("erosion", draws).endswith("sion")
    assert common_word("milling", draws).endswith("ing")
    made = invent_term("Divergent tectonic plate boundaries", draws)
    assert made[0].isupper()
    assert made[1:].islower()
    assert made.endswith("ies")
    assert len(set(folded_words(made))) == 4


def test_function_words_and_other_scripts_stay(draws: Draws) -> None:
    assert invent_term("origins of replication", draws).split()[1] == "of"
    assert invent_term("東京", draws) == "東京"
    acronym, noun = invent_term("WWF report", draws).split()
    assert acronym.isupper()
    assert len(acronym) == 3
    assert noun.islower()


@pytest.mark.parametrize(
    ("one", "many"),
    [("laser", "lasers"), ("fruit fly", "fruit flies"), ("glass", "glasses"), ("box", "boxes")],
)
def test_singular_and_plural(one: str, many: str) -> None:
    assert other_number(one) == many
    assert other_number(many) == one


def test_what_looks_like_a_plural_and_is_none() -> None:
    assert [n for n in ("bus", "basis", "physics", "glass") if is_plural(n)] == []
