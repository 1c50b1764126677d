"""Answers that are built of numbers and date words: their type by their looks."""

from __future__ import annotations

import re

from ncu_exp.perturb.dates import MONTH, WEEKDAY, YEAR
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.numerals import DIGITS, NUMBER_WORD, ORDINAL_WORD, SCALE
from ncu_exp.perturb.words import word_list
from ncu_exp.records import AnswerType

NUMERIC_TYPES = frozenset(
    {AnswerType.number, AnswerType.quantity, AnswerType.money, AnswerType.year, AnswerType.date}
)

_COUNT_QUESTION = re.compile(
    r"\bhow (?:many|much|long|far|tall|old|big|high|large|deep|wide|fast|often|heavy)\b"
    r"|\bnumber of\b|\bpopulation\b|\bpercent",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(?:when|(?:what|which) (?:year|month|date|day|time|century|decade)|birthday)\b",
    re.IGNORECASE,
)
_DATE_WORDS = frozenset(
    word_list("""
    late early mid circa c about around from to until till and or between onwards the of in on by
    since after before season summer winter spring autumn fall beginning middle end start present
    first second third fourth fifth last half week century centuries year years month day ad a.d.
    bc bce ce bp utc s st nd rd th
    """)
)
_NUMBER = rf"(?:{DIGITS}(?:st|nd|rd|th)?|{NUMBER_WORD}|{ORDINAL_WORD}|{SCALE})"
_NUMBERS = rf"{_NUMBER}(?:(?:\s|-|–|—|/|,?\sand\s|\sto\s|\sor\s)+{_NUMBER})*"
_CURRENCY_WORD = (
    r"(?:dollars?|euros?|pounds?|pence|cents?|yen|rupees?|francs?|pesos?|roubles?|rubles?)"
)
_MONEY = re.compile(
    rf"[A-Z]{{0,3}}[$€£¥₹₩₽]\s?{_NUMBERS}.*|{_NUMBERS}\s?(?:[\w.]+\s)?{_CURRENCY_WORD}",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"\d{1,2}:\d\d\b")
_YEAR_ONLY = re.compile(rf"{YEAR}(?:\s?(?:AD|A\.D\.|CE))?")
_ERA = re.compile(r"\b(?:century|centuries|BCE?|AD|BP)\b|\d0s\b")


def pattern_type(core: str, question: str) -> AnswerType | None:
    """The type of an answer that is built of numbers and date words, else None."""
    counts = _COUNT_QUESTION.search(question) is not None and _WHEN.search(question) is None
    if _MONEY.fullmatch(core):
        return AnswerType.money
    if _YEAR_ONLY.fullmatch(core) and not counts:
        return AnswerType.year
    if _CLOCK.search(core):
        return AnswerType.quantity
    if _is_date(core, question) and not counts:
        return AnswerType.date
    if re.fullmatch(_NUMBERS, core, re.IGNORECASE):
        return AnswerType.number
    return AnswerType.quantity if _is_quantity(core) else None


def _is_date(core: str, question: str) -> bool:
    """Date words and numbers alone; a month by itself is one only where the question asks when."""
    if not all(_is_date_word(word) for word in re.findall(r"[^\W\d_][\w.]*", core)):
        return False
    if re.search(rf"\b{MONTH}\b", core):
        return re.search(r"\d", core) is not None or _WHEN.search(question) is not None
    return bool(re.search(rf"\b{YEAR}", core) or _ERA.search(core))


def _is_date_word(word: str) -> bool:
    return re.fullmatch(rf"{MONTH}\.?|{WEEKDAY}|{ORDINAL_WORD}", word) is not None or (
        fold_text(word) in _DATE_WORDS
    )


def _is_quantity(core: str) -> bool:
    """A number and, after it, a unit: up to five words without a name among them.

    Or a number inside a term that is no name ("week 4 of development").
    """
    match = re.match(rf"{_NUMBERS}\b\s?[-%°]?", core, re.IGNORECASE)
    if match is None:
        return core[:1].islower() and re.search(r"(?<![\w-])\d", core) is not None
    unit = core[match.end() :].split()
    return len(unit) <= 5 and not any(word[0].isupper() and len(word) > 3 for word in unit)
