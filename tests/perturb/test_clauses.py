"""Answers that are clauses: what changes in them, and what stays."""

from __future__ import annotations

import random
import re

import pytest

from ncu_exp.perturb.clauses import reword
from ncu_exp.perturb.draws import Draws, known_countries
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.words import CLAUSE_NOUNS, OPPOSITES


@pytest.fixture
def draws() -> Draws:
    return Draws(random.Random(0))


@pytest.mark.parametrize(
    ("core", "expected"),
    [
        ("it must be much older than was supposed", "it must be much younger than was supposed"),
        ("Increasing trade led to war", "Decreasing trade led to peace"),
        ("made by Digital Equipment Corporation", r"made by [A-Z]\w+ Corporation"),
        ("as the German fleet came nearer", r"as the (?!German)[A-Z]\w+ fleet came nearer"),
        (
            "to keep an eye on the shareholders",
            rf"to keep an eye on the ({'|'.join(CLAUSE_NOUNS)})s",
        ),
        ("to answer the embargo", rf"to answer the ({'|'.join(CLAUSE_NOUNS)})"),
        ("the elder Mary Byron’s way to work", r"the elder [A-Z]\w+’s way to work"),
        ("New Bern and its early days", r"[A-Z]\w+ and its late days"),
        # What the question names stays.
        ("Hooke sold it to Ada Lovelace", r"Hooke bought it to Ada Lovelace"),
    ],
)
def test_names_directions_and_objects_change(core: str, expected: str, draws: Draws) -> None:
    made = reword(core, draws, question="What of Ada Lovelace and Hooke?")
    assert re.fullmatch(expected, made), made


def test_a_country_gives_way_to_a_country(draws: Draws) -> None:
    made = reword("when Germany began its march", draws, question="When?")
    found = re.fullmatch(r"when (.+) ended its march", made)
    assert found is not None
    assert fold_text(found[1]) in known_countries() - {"germany"}


def test_opposites_are_words_once_each() -> None:
    assert all(a and b and a != b for a, b in OPPOSITES)
    assert len(set(OPPOSITES)) == len(OPPOSITES)
