from __future__ import annotations

import random
import re

import pytest

from ncu_exp.perturb.draws import Draws, known_countries, known_states
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.terms import class_of
from ncu_exp.perturb.things import (
    acronym,
    invent_event,
    invent_office,
    invent_organization,
    invent_place,
    invent_work,
    keep_heads,
    without_heads,
)
from ncu_exp.perturb.words import TEAM_NOUNS


@pytest.fixture
def draws() -> Draws:
    return Draws(random.Random(5))


@pytest.mark.parametrize(
    ("core", "pattern"),
    [
        ("Kanawha River", r"\w+ River"),
        ("Lake Baikal", r"Lake \w+"),
        ("Battle of Bosworth Field", r"Battle of \w+"),
        ("World War II", r"\w+ War"),
        ("University of Paris", r"University of \w+"),
        ("US Supreme Court", r"\w+ Supreme Court"),
        ("Supreme Court of the United States", r"Supreme Court of the \w+ Union"),
        ("Council of the European Union", r"Council of the (?!European)\w+ Union"),
        ("1998 Nagano Games", r"(?!1998)\d{4} \w+ Games"),
        ("Mondelez International, Inc.", r"\w+ International, Inc\."),
    ],
)
def test_head_nouns_are_kept(core: str, pattern: str, draws: Draws) -> None:
    made = keep_heads(core, draws, draws.last_name)
    assert made is not None
    assert re.fullmatch(pattern, made)
    assert made != core


@pytest.mark.parametrize("core", ["Old Trafford", "River", "Stedelijk Museum Amsterdam", "London"])
def test_no_head_noun_to_keep(core: str, draws: Draws) -> None:
    assert keep_heads(core, draws, draws.last_name) is None


def test_places_of_each_kind(draws: Draws) -> None:
    assert fold_text(invent_place("Germany", draws)) in known_countries()
    assert fold_text(invent_place("Ohio", draws)) in known_states()
    town, state = invent_place("Massillon, Ohio", draws).split(", ")
    assert fold_text(state) in known_states()
    assert fold_text(town) not in known_countries() | known_states()
    assert " " not in invent_place("Prague", draws)


def test_organizations_of_each_kind(draws: Draws) -> None:
    assert re.fullmatch("[A-Z]{3}", invent_organization("NBA", draws, question=""))
    assert invent_organization("Newcastle University", draws, question="").endswith(" University")
    team = invent_organization("Chicago Bears", draws, question="Who won Super Bowl XX?")
    assert team.split()[-1] in TEAM_NOUNS
    band = invent_organization("Pink Floyd", draws, question="Which band recorded the album?")
    assert band.split()[-1] in TEAM_NOUNS
    assert " " not in invent_organization("Intel", draws, question="Which company?")
    assert invent_organization("British", draws, question="") != "British"


def test_works_and_events_have_about_as_many_words(draws: Draws) -> None:
    assert len(invent_work("Guernica", draws).split()) == 1
    assert len(invent_work("Silent Spring", draws).split()) == 2
    assert len(invent_work("Raft of the Medusa", draws).split()) == 5
    assert re.fullmatch(r'"\w+ \w+" \(2006\)', invent_work('"Now and Then" (2006)', draws))
    assert len(invent_event("Woodstock", draws).split()) == 1
    assert invent_event("Crimean War", draws).endswith(" War")


def test_names_without_their_heads() -> None:
    assert without_heads("Lake Baikal") == "Baikal"
    assert without_heads("Battle of Bosworth") == "Bosworth"
    assert without_heads("London") == ""


def test_acronym() -> None:
    assert acronym("National Basketball Association") == "NBA"
    assert acronym("Smith-Jones") == "SJ"
    assert acronym("Intel") == ""


@pytest.mark.parametrize(
    ("core", "office"),
    [
        ("President of India", "President"),
        ("Prime Minister of the Republic of Ireland", "Prime Minister"),
        ("Vice President of the United States", "Vice President"),
        ("Governor General of Canada", "Governor General"),
        ("Battle of Hastings", ""),
        ("King", ""),
    ],
)
def test_an_office_of_another_country(core: str, office: str, draws: Draws) -> None:
    made, country = invent_office(core, draws)
    assert made == (f"{office} of {country}" if office else "")
    assert not office or fold_text(country) in known_countries()


def test_an_office_of_another_department(draws: Draws) -> None:
    made, whose = invent_office("Federal Minister of the Interior", draws)
    assert made == f"Federal Minister of {whose}"
    assert class_of(whose) == class_of("Interior")
    assert whose != "Interior"
