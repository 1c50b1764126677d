from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_exp.perturb.numerals import (
    NumberShift,
    draw_number_shift,
    like_case,
    number_word,
    ordinal_suffix,
    other_spelling,
    shift_numbers,
    word_value,
)

UP = NumberShift(step=3, ratio=1.5)
DOWN = NumberShift(step=-3, ratio=0.75)


@pytest.mark.parametrize(
    ("text", "up", "down"),
    [
        ("8", "11", "5"),
        ("eight", "eleven", "five"),
        ("Eight episodes", "Eleven episodes", "Five episodes"),
        ("2", "5", "5"),  # two less three is no count
        ("330 metres", "500 metres", "250 metres"),
        ("1,234", "1,851", "926"),
        ("384,400 kilometres", "576,600 kilometres", "288,300 kilometres"),
        ("$7.2 million", "$10.8 million", "$5.4 million"),
        (".49", ".74", ".37"),
        ("0.5", "0.8", "0.2"),
        ("19.3%", "29.0%", "14.5%"),
        ("80%", "53%", "60%"),  # no percentage above one hundred
        ("21st", "32nd", "16th"),
        ("the third", "the sixth", "the sixth"),
        ("979 metres", "1,468 metres", "734 metres"),
        ("50 to 90 million", "75 to 135 million", "38 to 68 million"),
        ("twenty-two", "thirty-three", "sixteen"),
        ("UTC−09:00", "UTC−12:00", "UTC−06:00"),
        ("at 12:30", "at 3:30", "at 9:30"),  # no hour is zero
        ("22:15", "14:36", "19:54"),
        ("no number", "no number", "no number"),
    ],
)
def test_the_format_stays_and_the_number_changes(text: str, up: str, down: str) -> None:
    assert shift_numbers(text, UP) == up
    assert shift_numbers(text, DOWN) == down


@given(st.integers(0, 10**9), st.integers(0, 2**32))
def test_a_number_never_stays_and_never_vanishes(number: int, seed: int) -> None:
    shift = draw_number_shift(random.Random(seed))
    assert shift.value(number) != number
    assert shift.value(number) > 0


@given(st.integers(20, 10**6), st.integers(20, 10**6), st.integers(0, 2**32))
def test_a_range_keeps_its_order(low: int, high: int, seed: int) -> None:
    low, high = sorted((low, 2 * high))
    shift = draw_number_shift(random.Random(seed))
    # A unit of rounding, and a step where rounding gave the number itself.
    assert shift.value(low) <= shift.value(high) + 10 ** (len(str(high)) - 2)


@given(st.integers(0, 99))
def test_words_and_values_agree(value: int) -> None:
    assert word_value(number_word(value)) == value


@given(st.integers(2, 99), st.integers(0, 2**32))
def test_both_spellings_go_to_the_same_number(value: int, seed: int) -> None:
    shift = draw_number_shift(random.Random(seed))
    if shift.value(value) <= 99:
        assert word_value(shift_numbers(number_word(value), shift)) == shift.value(value)


@pytest.mark.parametrize(
    ("answer", "other"),
    [
        ("8", "eight"),
        ("eight", "8"),
        ("21", "twenty-one"),
        ("1", None),
        ("one", None),
        ("2017", None),
    ],
)
def test_other_spelling(answer: str, other: str | None) -> None:
    assert other_spelling(answer) == other


def test_ordinal_suffixes() -> None:
    values = [1, 2, 3, 4, 11, 12, 13, 21, 22, 101, 111]
    assert re.sub(r"\d", "", " ".join(f"{v}{ordinal_suffix(v)}" for v in values)) == (
        "st nd rd th th th th st nd st th"
    )


@pytest.mark.parametrize(
    ("template", "value", "expected"),
    [("KISS", "one", "ONE"), ("Kiss", "one", "One"), ("kiss", "One", "One"), ("7", "x", "x")],
)
def test_like_case(template: str, value: str, expected: str) -> None:
    assert like_case(template, value) == expected
