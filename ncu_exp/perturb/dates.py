"""Years and dates, and other ones in the same format.

A `DateShift` is one change for a whole item, so that "14 December 1972", "December 1972" and
"1972" stay the same day, month and year under any of their spellings.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from ncu_exp.perturb.numerals import ORDINAL_WORD, ORDINALS, like_case, ordinal_suffix
from ncu_exp.perturb.words import word_list

_MONTHS = word_list("""
    January February March April May June July August September October November December
    """)
_WEEKDAYS = word_list("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
WEEKDAY = rf"(?:{'|'.join(_WEEKDAYS)})"
MONTH = rf"(?:{'|'.join(_MONTHS)}|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
YEAR = r"(?:1[0-9]\d\d|20\d\d)"
LATEST_YEAR = 2024  # a past year is not moved into the future

_TOKEN = re.compile(
    rf"(?P<season>\b{YEAR}[-–—/]\d\d\b(?![-–\d]))"
    rf"|(?P<iso>\b{YEAR}-\d\d-\d\d\b)"
    r"|(?P<decade>\b(?:1\d\d|20\d|\d)0['’]?s\b)"
    rf"|(?P<year>(?<!\d){YEAR}(?!\d|[,.]\d))"
    r"|(?P<century>\b\d{1,2}(?:st|nd|rd|th)(?=[\s-]+centur))"
    rf"|(?P<ordinal>\b{ORDINAL_WORD}\b)"
    r"|(?P<era>\b\d{1,4}(?=\s*(?:BCE?|B\.C\.|AD|A\.D\.|CE)(?!\w))|(?<=\bAD )\d{1,4}\b)"
    rf"|(?P<month>\b{MONTH}\b)"
    rf"|(?P<weekday>\b{WEEKDAY}\b)"
    r"|(?P<day>(?<![\d:.,])\d{1,2}(?:st|nd|rd|th)?\b(?![:,.]\d))"
)


@dataclass(frozen=True, slots=True)
class DateShift:
    """By how much each part of a date moves; months, weekdays and days turn round."""

    years: int
    decades: int
    months: int
    weekdays: int
    days: int


def draw_date_shift(rng: random.Random, answer: str) -> DateShift:
    """A plausible change that keeps the answer's days within a month and its years in the past."""
    latest = max(map(int, re.findall(rf"\b{YEAR}", answer)), default=0)
    sign = -1 if latest + 25 > LATEST_YEAR else rng.choice((-1, 1))
    days = [int(day) for day in re.findall(r"\b\d{1,2}(?=\b|st|nd|rd|th)", answer)]
    fitting = [move for move in range(-27, 28) if move and all(1 <= d + move <= 28 for d in days)]
    return DateShift(
        years=sign * rng.randint(3, 25),
        decades=sign * rng.randint(1, 3),
        months=rng.randint(1, 11),
        weekdays=rng.randint(1, 6),
        days=rng.choice(fitting or [3]),
    )


def date_parts(text: str) -> dict[str, int] | None:
    """The year, month and day that a date tells, by name; None for what is not just one date.

    Months count from 1. Seasons, decades, centuries, eras and weekdays are not such dates.
    """
    has_month = re.search(rf"\b{MONTH}\b", text) is not None
    found: dict[str, int] = {}
    for match in _TOKEN.finditer(text):
        kind, token = str(match.lastgroup), match.group()
        if kind == "day" and not has_month:
            continue
        if kind not in ("year", "month", "day") or kind in found:
            return None
        found[kind] = _month(token) if kind == "month" else int(re.sub(r"\D", "", token))
    return found if "year" in found else None


def _month(token: str) -> int:
    return 1 + next(i for i, month in enumerate(_MONTHS) if month.startswith(token[:3]))


def move_to(old: str, new: str) -> DateShift:
    """The change that makes one date of another, as far as the other tells; for `date_parts`."""
    start, end = date_parts(old) or {}, date_parts(new) or {}
    by = {part: end.get(part, start[part]) - start[part] for part in start}
    return DateShift(
        years=by.get("year", 0),
        decades=0,
        months=by.get("month", 0) % 12,
        weekdays=0,
        days=by.get("day", 0),
    )


def shift_date(text: str, shift: DateShift) -> str:
    """The text with every part of a date in it changed, its format kept.

    Bare numbers of one or two digits are days, and change only beside a month.
    """
    has_month = re.search(rf"\b{MONTH}\b", text) is not None
    return _TOKEN.sub(lambda match: _shift_token(match, shift, has_month=has_month), text)


def _shift_token(match: re.Match[str], shift: DateShift, *, has_month: bool) -> str:
    kind = match.lastgroup
    assert kind is not None
    if kind == "day" and not has_month:
        return match.group()
    return _CHANGES[kind](match.group(), shift)


def _shift_day(token: str, shift: DateShift) -> str:
    digits = re.sub(r"\D", "", token)
    day = (int(digits) - 1 + shift.days) % 28 + 1
    suffix = ordinal_suffix(day) if token != digits else ""
    return str(day).zfill(len(digits) if digits.startswith("0") else 1) + suffix


def _shift_season(token: str, shift: DateShift) -> str:
    year, dash, second = token[:4], token[4], token[5:]
    return f"{int(year) + shift.years}{dash}{(int(second) + shift.years) % 100:02d}"


def _shift_iso(token: str, shift: DateShift) -> str:
    year, month, day = map(int, token.split("-"))
    month = (month - 1 + shift.months) % 12 + 1
    return f"{year + shift.years}-{month:02d}-{(day - 1 + shift.days) % 28 + 1:02d}"


def _shift_decade(token: str, shift: DateShift) -> str:
    digits = re.sub(r"\D", "", token)
    moved = int(digits) + 10 * shift.decades
    return (str(moved) if len(digits) == 4 else f"{moved % 100:02d}") + token[len(digits) :]


def _shift_year(token: str, shift: DateShift) -> str:
    return str(int(token) + shift.years)


def _shift_century(token: str, shift: DateShift) -> str:
    century = int(re.sub(r"\D", "", token)) - abs(shift.decades)
    century = century if century > 0 else century + 2 * abs(shift.decades)
    return f"{century}{ordinal_suffix(century)}"


def _shift_ordinal(token: str, shift: DateShift) -> str:
    place = ORDINALS.index(token.lower())
    if place < 4:  # the second Sunday
        return like_case(token, ORDINALS[(place + shift.weekdays % 3 + 1) % 4])
    return like_case(token, ORDINALS[place - abs(shift.decades)])  # the nineteenth century


def _shift_era(token: str, shift: DateShift) -> str:
    return str(max(1, int(token) + abs(shift.years)))


def _shift_month(token: str, shift: DateShift) -> str:
    month = _MONTHS[(_month(token) - 1 + shift.months) % 12]
    return month if token in _MONTHS else month[:3]


def _shift_weekday(token: str, shift: DateShift) -> str:
    return _WEEKDAYS[(_WEEKDAYS.index(token) + shift.weekdays) % 7]


_CHANGES: dict[str, Callable[[str, DateShift], str]] = {
    "season": _shift_season,
    "iso": _shift_iso,
    "decade": _shift_decade,
    "year": _shift_year,
    "century": _shift_century,
    "ordinal": _shift_ordinal,
    "era": _shift_era,
    "month": _shift_month,
    "weekday": _shift_weekday,
    "day": _shift_day,
}
