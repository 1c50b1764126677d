from __future__ import annotations

from collections.abc import Callable

from ncu_exp.perturb.inventors import Fabrication
from ncu_exp.perturb.residue import telling_residue
from ncu_exp.perturb.shortforms import ShortForm
from ncu_exp.records import AnswerType, Item

MakeItem = Callable[..., Item]


def residue(text: str, item: Item, kind: AnswerType, *parts: ShortForm) -> tuple[str, ...]:
    return telling_residue(text, item, Fabrication("Quux", parts=parts), kind)


def test_whole_answers_and_aliases_in_any_case(make_item: MakeItem) -> None:
    item = make_item("x", "Kiss", "Hottest Band")
    assert residue("a kiss, the hottest band", item, AnswerType.other) == ("kiss", "hottest band")


def test_single_words_of_a_name_in_capitals(make_item: MakeItem) -> None:
    item = make_item("x", "English Electric Canberra")
    text = "an English firm, the Canberra, electric light"
    assert residue(text, item, AnswerType.organization) == ("English", "Canberra")


def test_units_that_are_left_tell_nothing(make_item: MakeItem) -> None:
    item = make_item("x", "8 December 1985")
    assert residue("in December 1985, a decade", item, AnswerType.date) == ("1985",)
    assert residue("3,868 steps", make_item("x", "2,579 steps"), AnswerType.quantity) == ()


def test_inside_longer_words_and_numbers(make_item: MakeItem) -> None:
    item = make_item("x", "Croatia", "1995")
    text = "Croatian law, Croats in Peru, the 1995–96 season"
    assert residue(text, item, AnswerType.place) == ("Croatian", "1995–96", "Croats")


def test_words_of_the_same_stem_as_a_place(make_item: MakeItem) -> None:
    item = make_item("x", "Portugal")
    assert residue("Portuguese ports", item, AnswerType.place) == ("Portuguese",)
    assert residue("Portuguese ports", item, AnswerType.other) == ()


def test_short_forms(make_item: MakeItem) -> None:
    item = make_item("x", "Ringo Starr")
    part = ShortForm("Starkey", "Reed")
    assert residue("the Starkey family", item, AnswerType.person, part) == ("Starkey",)


def test_nothing_left(make_item: MakeItem) -> None:
    item = make_item("x", "Neil Armstrong")
    assert residue("Quux walked on the moon", item, AnswerType.person) == ()
