from __future__ import annotations

import datetime as dt
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_exp.perturb.dates import LATEST_YEAR, DateShift, draw_date_shift, shift_date

SHIFT = DateShift(years=-10, decades=-2, months=3, weekdays=1, days=5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1972", "1962"),
        ("14 December 1972 UTC", "19 March 1962 UTC"),
        ("December 1972", "March 1962"),
        ("March 10, 2017", "June 15, 2007"),
        ("March\u00a010,\u00a02017", "June\u00a015,\u00a02007"),
        ("1st of May", "6th of August"),
        ("Sept 2014", "Dec 2004"),
        ("9 to 25 February 2018", "14 to 2 May 2008"),  # turned round: the draw avoids it
        ("1780–1830", "1770–1820"),
        ("(2006–07)", "(1996–97)"),
        ("2000/01", "1990/91"),
        ("1972-12-14", "1962-03-19"),
        ("the 1840s", "the 1820s"),
        ("30's", "10's"),
        ("the early 20th century", "the early 18th century"),
        ("nineteenth century", "seventeenth century"),
        ("the second Sunday of March", "the fourth Monday of June"),
        ("79 AD", "89 AD"),
        ("FY2010", "FY2000"),
        ("1,970 and 12", "1,970 and 12"),  # a bare count is no date
    ],
)
def test_the_format_stays_and_the_date_changes(text: str, expected: str) -> None:
    assert shift_date(text, SHIFT) == expected


@given(st.dates(dt.date(1000, 1, 1), dt.date(2099, 12, 31)), st.integers(0, 2**32))
def test_every_part_of_a_date_changes(date: dt.date, seed: int) -> None:
    text = f"{date.day} {date:%B} {date.year}"
    changed = shift_date(text, draw_date_shift(random.Random(seed), text))
    pairs = zip(text.split(), changed.split(), strict=True)
    assert all(old != new for old, new in pairs)


@given(st.integers(1000, LATEST_YEAR), st.integers(0, 2**32))
def test_a_past_year_stays_in_the_past(year: int, seed: int) -> None:
    changed = int(shift_date(str(year), draw_date_shift(random.Random(seed), str(year))))
    assert changed != year
    assert changed <= LATEST_YEAR


@given(st.integers(1, 27), st.integers(1, 27), st.integers(0, 2**32))
def test_a_range_of_days_keeps_its_order(first: int, second: int, seed: int) -> None:
    low, high = sorted((first, second + 1))
    text = f"{low} to {high} May 2010"
    changed = shift_date(text, draw_date_shift(random.Random(seed), text))
    days = [int(day) for day in re.findall(r"\b\d{1,2}\b", changed)]
    assert days == sorted(days) or high - low == 27
