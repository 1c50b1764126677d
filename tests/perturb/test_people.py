from __future__ import annotations

import random

import pytest

from ncu_exp.perturb.draws import Draws
from ncu_exp.perturb.people import (
    Name,
    guess_gender,
    invent_name,
    other_lengths,
    parse_name,
    rename_alias,
    split_people,
)

TRUE = Name("President", ("James", "Madison"), "")
NEW = Name("President", ("Tony", "Collins"), "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Charles Darwin", Name("", ("Charles", "Darwin"), "")),
        ("President James Madison", TRUE),
        ("actress Dakota Johnson", Name("actress", ("Dakota", "Johnson"), "")),
        ("April Kepner M.D.", Name("", ("April", "Kepner"), "M.D.")),
        ('James "Jamie" Dornan', Name("", ("James", "Dornan"), "")),
        ("Tomás de Torquemada", Name("", ("Tomás", "Torquemada"), "")),
        ("Hanno the Great", Name("", ("Hanno",), "")),
        ("William IV", Name("", ("William",), "IV")),
        ("J. R. R. Tolkien", Name("", ("J.", "R.", "R.", "Tolkien"), "")),
        ("the president", None),
        ("", None),
    ],
)
def test_parse_name(text: str, expected: Name | None) -> None:
    assert parse_name(text) == expected


def test_split_people() -> None:
    assert split_people("Max Martin, Savan Kotecha and Ilya Salmanzadeh") == (
        ["Max Martin", "Savan Kotecha", "Ilya Salmanzadeh"],
        [", ", " and "],
    )
    assert split_people("Charles, Prince of Wales") == (["Charles"], [])


@pytest.mark.parametrize("text", ["Plato", "Mary Shelley", "John Ernest Crawford", "L. K. Advani"])
def test_the_new_name_has_as_many_parts_and_keeps_initials(text: str) -> None:
    name = parse_name(text)
    assert name is not None
    new = invent_name(name, Draws(random.Random(1)), gender="")
    assert len(new.parts) == len(name.parts)
    assert [len(p) == 2 and p[1] == "." for p in new.parts] == [
        len(p) == 2 and p[1] == "." for p in name.parts
    ]
    assert not set(new.parts) & set(name.parts)


def test_titles_and_suffixes_stay() -> None:
    name = parse_name("Sir John Smith Jr.")
    assert name is not None
    new = invent_name(name, Draws(random.Random(1)), gender="male")
    assert (new.before, new.after) == ("Sir", "Jr.")


@pytest.mark.parametrize(
    ("alias", "expected"),
    [
        ("Madison", "Collins"),
        ("James", "Tony"),
        ("President Madison", "President Collins"),
        ("Madison, James", "Collins, Tony"),
        ("James R. Madison", "Tony Collins"),
        ("Jemmy", "Tony Collins"),
        ("the fourth president", None),
    ],
)
def test_rename_alias(alias: str, expected: str | None) -> None:
    assert rename_alias(alias, TRUE, NEW, given="Ann") == expected


def test_an_alias_with_more_parts_gets_a_given_name() -> None:
    true, new = Name("", ("Campbell-Bannerman",), ""), Name("", ("Adkins",), "")
    alias = "Sir Henry Campbell-Bannerman"
    assert rename_alias(alias, true, new, given="Walter") == "Sir Walter Adkins"


def test_other_lengths_of_a_name() -> None:
    text = 'Nelson Aldrich Rockefeller, Nelson "Rocky" Rockefeller, Nelson met Rockefeller'
    true, new = Name("", ("Nelson", "Rockefeller"), ""), Name("", ("Jason", "Beasley"), "")
    found = dict(other_lengths(text, true, new))
    assert found["Nelson Aldrich Rockefeller"] == "Jason Beasley"
    assert found['Nelson "Rocky" Rockefeller'] == "Jason Beasley"
    assert "Nelson met Rockefeller" not in found


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("Queen Anne", "", "female"),
        ("Sir Robin", "", "male"),
        ("actress Kim Lee", "", "female"),
        ("Mary Shelley", "his", "female"),
        ("Pakhangba Xyz", "She ruled and her son", "female"),
        ("Pakhangba Xyz", "he ruled", "male"),
        ("Pakhangba Xyz", "they ruled", ""),
    ],
)
def test_guess_gender(text: str, context: str, expected: str) -> None:
    name = parse_name(text)
    assert name is not None
    assert guess_gender(name, context) == expected
