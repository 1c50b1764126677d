"""Numbers in digits and words, and other numbers in the same format.

A `NumberShift` is one change for a whole item: every spelling of a number ("8", "eight",
"8 episodes") goes to the same new number, and a range keeps its order.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ncu_exp.perturb.words import word_list

_ONES = word_list("""
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
    """)
_TENS = word_list("twenty thirty forty fifty sixty seventy eighty ninety")
ORDINALS = word_list("""
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
    fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
    """)

# Regular expressions, for text of any case with re.IGNORECASE.
NUMBER_WORD = (
    rf"(?:(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_ONES[1:10])})\b)?"
    rf"|{'|'.join(sorted(_ONES, key=len, reverse=True))})"
)
ORDINAL_WORD = rf"(?:{'|'.join(sorted(ORDINALS, key=len, reverse=True))})"
SCALE = r"(?:hundred|thousand|million|billion|trillion|lakh|crore|dozen)s?"
DIGITS = r"(?:\d{1,3}(?:,\d{2,3})+(?:\.\d+)?|\d*\.\d+|\d+)"

_TOKEN = re.compile(
    rf"(?P<clock>(?<!\d)\d{{1,2}}:\d{{2}}(?!\d))"
    rf"|(?P<digits>{DIGITS})(?P<suffix>(?:st|nd|rd|th)\b)?(?P<percent>\s?(?:%|per ?cent\b))?"
    rf"|\b(?P<word>{NUMBER_WORD})\b"
    rf"|\b(?P<ordinal>{ORDINAL_WORD})\b",
    re.IGNORECASE,
)
_STEPS = (-6, -5, -4, -3, -2, 2, 3, 4, 5, 6, 7, 8)
_RATIOS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 1.25, 1.3, 1.35, 1.4, 1.5, 1.6, 1.7)
_SMALL = 20  # below it a number changes by the step, from it on by the ratio


@dataclass(frozen=True, slots=True)
class NumberShift:
    """Small numbers change by `step`, larger ones by `ratio`."""

    step: int
    ratio: float

    def value(self, number: int, *, limit: int | None = None) -> int:
        """Another positive number, as round as the given one; at most `limit` where it was."""
        if number < _SMALL:
            moved = number + self.step
            return moved if moved > 1 else number + abs(self.step)
        zeros = len(str(number)) - len(str(number).rstrip("0"))
        unit = int(10 ** max(0, min(zeros, len(str(number)) - 2)))
        moved = round(number * self.ratio / unit) * unit
        if limit is not None and number <= limit < moved:
            moved = round(number / self.ratio / unit) * unit
        return moved if moved != number else number + unit


class UnfitNumberError(ValueError):
    """A number that cannot be written in the place of another: 150 in words, 130 percent."""


@dataclass(frozen=True, slots=True)
class NumberSwap:
    """Given numbers change to given others, the rest stays."""

    values: Mapping[int, int]
    step: int = 0

    @classmethod
    def between(cls, old: str, new: str) -> NumberSwap:
        """The swap that turns the numbers of one text into those of another, in order."""
        return cls(dict(zip(number_values(old), number_values(new), strict=False)))

    def value(self, number: int, *, limit: int | None = None) -> int:
        """Raises UnfitNumberError for a new number above the limit."""
        new = self.values.get(number, number)
        if limit is not None and number <= limit < new:
            raise UnfitNumberError(f"{new} is more than {limit}")
        return new


Shift = NumberShift | NumberSwap


def number_values(text: str) -> list[int]:
    """The numbers of a text in order; those with a fraction without their point."""
    return [_token_value(match) for match in _TOKEN.finditer(text) if not match["clock"]]


def _token_value(match: re.Match[str]) -> int:
    if match["word"]:
        return word_value(match["word"])
    if match["ordinal"]:
        return ORDINALS.index(match["ordinal"].lower()) + 1
    return int(re.sub(r"\D", "", match["digits"]))


def number_format(text: str) -> str | None:
    """What is left of a text without its numbers but for their decimals; None where it has none.

    Texts of one format can take each other's numbers. Times of day have no format.
    """
    matches = list(_TOKEN.finditer(text))
    if not matches or any(match["clock"] for match in matches):
        return None
    return _TOKEN.sub(_token_format, text).casefold()


def _token_format(match: re.Match[str]) -> str:
    digits = match["digits"] or ""
    is_ordinal = bool(match["suffix"] or match["ordinal"])
    decimals = len(digits.partition(".")[2])
    return f"#{decimals or ''}{'th' if is_ordinal else ''}{'%' if match['percent'] else ''}"


def draw_number_shift(rng: random.Random) -> NumberShift:
    """A plausible change, up or down."""
    return NumberShift(step=rng.choice(_STEPS), ratio=rng.choice(_RATIOS))


def shift_numbers(text: str, shift: Shift) -> str:
    """The text with every number in it changed; commas, decimals, case and suffixes stay."""
    return _TOKEN.sub(lambda match: _shift_token(match, shift), text)


def _shift_token(match: re.Match[str], shift: Shift) -> str:
    if match["clock"]:
        return _shift_clock(match["clock"], shift)
    if match["word"]:
        value = shift.value(word_value(match["word"]), limit=99)
        return like_case(match["word"], number_word(value))
    if match["ordinal"]:
        place = shift.value(ORDINALS.index(match["ordinal"].lower()) + 1, limit=len(ORDINALS))
        return like_case(match["ordinal"], ORDINALS[min(place, len(ORDINALS)) - 1])
    limit = 100 if match["percent"] else None
    digits = _shift_digits(match["digits"], shift, limit=limit)
    suffix = ordinal_suffix(int(re.sub(r"\D", "", digits))) if match["suffix"] else ""
    return digits + suffix + (match["percent"] or "")


def _shift_digits(token: str, shift: Shift, *, limit: int | None) -> str:
    whole, dot, fraction = token.replace(",", "").partition(".")
    scaled_limit = None if limit is None else limit * 10 ** len(fraction)
    value = shift.value(int(whole + fraction), limit=scaled_limit)
    digits = str(value).zfill(len(whole + fraction) if token[0] in "0." else len(fraction) + 1)
    whole, fraction = digits[: len(digits) - len(fraction)], digits[len(digits) - len(fraction) :]
    if "," in token or (len(whole) > 3 and value > 999 > int(token.split(".")[0] or 0)):
        whole = f"{int(whole):,}"
    return f"{whole}{dot}{fraction}"


def _shift_clock(token: str, shift: Shift) -> str:
    hours, minutes = token.split(":")
    first, count = (13, 11) if int(hours) > 12 else (1, 12)  # no hour is zero
    hour = str((int(hours) - first + shift.step) % count + first).zfill(2 if hours[0] == "0" else 1)
    if minutes in ("00", "30"):
        return f"{hour}:{minutes}"
    return f"{hour}:{(int(minutes) + 7 * shift.step) % 60:02d}"


def word_value(word: str) -> int:
    """The number that a word below one hundred names."""
    tens, _, ones = word.lower().replace(" ", "-").partition("-")
    if tens in _TENS:
        return 10 * (_TENS.index(tens) + 2) + (_ONES.index(ones) if ones else 0)
    return _ONES.index(tens)


def number_word(value: int) -> str:
    """A number below one hundred in words."""
    if value < 20:
        return _ONES[value]
    tens, ones = divmod(value, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")


def ordinal_suffix(value: int) -> str:
    """The English suffix: 1st, 2nd, 3rd, 4th, 11th."""
    if value % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")


def other_spelling(answer: str) -> str | None:
    """The same whole number in words for digits, and in digits for words, below one hundred.

    Not for one: "one of the" is no count.
    """
    if re.fullmatch(r"[1-9]\d?", answer):
        return number_word(int(answer)) if answer != "1" else None
    if re.fullmatch(NUMBER_WORD, answer, re.IGNORECASE) and answer.lower() not in ("one", "zero"):
        return str(word_value(answer))
    return None


def like_case(template: str, value: str) -> str:
    """The value in the template's case where that is all capitals or an initial capital."""
    letters = [c for c in template if c.isalpha()]
    if len(letters) > 1 and all(c.isupper() for c in letters):
        return value.upper()
    if letters and letters[0].isupper():
        return value[:1].upper() + value[1:]
    return value
