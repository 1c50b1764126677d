"""Where a word or a number ends: whether a stretch of folded text stands alone.

Letters, digits and marks join. Beyond that: an apostrophe joins unless it opens a possessive; a
hyphen joins lower-case words ("non-ferrous", "face-to-face") and short numbers ("F-16", "6-3"),
but not names ("Paris-based", "Austria-Hungary"); decimal points, thousands commas and colons join
digits. Scripts without spaces end a word wherever the answer ends.
"""

from __future__ import annotations

import re

from ncu_exp.perturb.dates import MONTH
from ncu_exp.perturb.folding import Folded, is_mark, script
from ncu_exp.perturb.forms import is_currency
from ncu_exp.perturb.numerals import NUMBER_WORD, SCALE

_HYPHENS = "-‐‑"
_PARTICLES = re.compile(  # Korean: what follows a noun without a space
    r"(?:은|는|이|가|을|를|의|에|에서|에게|로|으로|와|과|도|만|부터|까지|이다|입니다|인|라는)(?![가-힣])"
)
_DAY_BEFORE_MONTH = re.compile(rf"(?:st|nd|rd|th)?\s+(?:of\s+)?{MONTH}\b")
_DAY_AFTER_MONTH = re.compile(rf"\b{MONTH}\.?\s+$")
_SCALE_AFTER = re.compile(rf"\s+{SCALE}\b", re.IGNORECASE)
_NUMBER_AFTER = re.compile(rf"(?:-|\s+){NUMBER_WORD}\b|\s+{SCALE}\b", re.IGNORECASE)
_NUMBER_BEFORE = re.compile(rf"\b{NUMBER_WORD}[-\s]+$|\b{SCALE}\s+(?:and\s+)?$", re.IGNORECASE)
_BARE_NUMBER = re.compile(r"[\d.,]+")
_BARE_WORD = re.compile(NUMBER_WORD, re.IGNORECASE)
_YEAR_LIKE = re.compile(r"\d{4}")


def stands_alone(folded: Folded, start: int, end: int) -> bool:
    """Whether `folded.text[start:end]` is a word, a phrase or a number of its own."""
    if _joins_left(folded, start, end) or _joins_right(folded, start, end):
        return False
    core = folded.text[start:end]
    first, last = folded.original_span(start, end)
    before, after = folded.original[max(0, first - 24) : first], folded.original[last : last + 24]
    if _BARE_WORD.fullmatch(core):
        return not (_NUMBER_BEFORE.search(before) or _NUMBER_AFTER.match(after))
    if not _BARE_NUMBER.fullmatch(core):
        return True
    if _SCALE_AFTER.match(after):
        return False
    is_day = _DAY_BEFORE_MONTH.match(after) or _DAY_AFTER_MONTH.search(before)
    return not (len(core) <= 2 and is_day)


def _joins_left(folded: Folded, start: int, end: int) -> bool:
    text = folded.text
    if start == 0:
        return False
    before, first = text[start - 1], text[start]
    beyond = text[start - 2] if start > 1 else ""
    if not script(first):  # the answer begins with a sign: "$100", ".49"
        return before.isdigit()
    if script(before):
        return _same_word(before, first, end - start)
    if first.isdigit():
        return _digit_joins_left(folded, start, end)
    if before == "'":
        return bool(script(beyond)) if beyond else False
    if before == "-":
        return _is_hyphen(folded, start - 1) and _is_lower(folded, start) and bool(script(beyond))
    if before == ".":  # initials ("J.K.") and addresses ("www.apple.com")
        return beyond.isalpha() and (end - start <= 2 or _is_lower(folded, start))
    return False


def _joins_right(folded: Folded, start: int, end: int) -> bool:
    text = folded.text
    if end == len(text):
        return False
    last, after = text[end - 1], text[end]
    beyond = text[end + 1] if end + 1 < len(text) else ""
    if is_mark(after):
        return True
    if not script(last):  # the answer ends with a sign: "U.S.", "5%"
        return last == "." and bool(script(after))
    if script(after):
        if script(last) == script(after) == "hangul":
            return _PARTICLES.match(text, end) is None
        return _same_word(last, after, end - start)
    if last.isdigit():
        return _digit_joins_right(folded, start, end)
    if after == "'":
        return bool(re.match(r"'(?!s\b)\w", text[end : end + 3]))
    if after == "-":
        return (
            _is_hyphen(folded, end) and _is_lower(folded, start) and _hyphen_binds(text, start, end)
        )
    if after == ".":
        return beyond.isalpha() and _is_lower(folded, end + 1)
    return False


def _same_word(left: str, right: str, length: int) -> bool:
    """Whether two neighbouring word characters belong to one word; `length` is the answer's."""
    if script(left) != script(right):
        return False
    if script(left) in ("spaced", "katakana", "hangul"):
        return True
    return length == 1  # one ideograph among others is rarely a word


def _hyphen_binds(text: str, start: int, end: int) -> bool:
    """A lower-case compound; a number word in "six-year" is a word of its own."""
    if not script(text[end + 1 : end + 2] or " "):
        return False
    return _BARE_WORD.fullmatch(text[start:end]) is None


def _digit_joins_left(folded: Folded, start: int, end: int) -> bool:
    text = folded.text
    before, beyond = text[start - 1], text[start - 2] if start > 1 else ""
    if before in ".,:/'":
        return beyond.isdigit()
    if before == "-" and not _is_long_dash(folded, start - 1):
        return not (_YEAR_LIKE.fullmatch(text[start:end]) and script(beyond or "x"))
    return is_currency(before)


def _digit_joins_right(folded: Folded, start: int, end: int) -> bool:
    text = folded.text
    after, beyond = text[end], text[end + 1 : end + 2]
    if not beyond.isdigit():
        return False
    if after in ".,:'":
        return True
    if after not in "-/" or _is_long_dash(folded, end):
        return False
    is_year = _YEAR_LIKE.fullmatch(text[start:end])
    return not (is_year and re.match(r"\d{4}(?!\d)", text[end + 1 :]))  # 2006-07 is one season


def _is_hyphen(folded: Folded, index: int) -> bool:
    return folded.original_char(index) in _HYPHENS


def _is_long_dash(folded: Folded, index: int) -> bool:
    return folded.original_char(index) in "—―"


def _is_lower(folded: Folded, index: int) -> bool:
    return folded.original_char(index).islower()
