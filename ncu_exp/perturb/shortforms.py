"""Short forms of an answer in a text: the surname, the acronym, the town without its state.

A short form may be short for something else, so it is held to more than an answer: it must have
the very same capitals, must not stand in the question, and where it is an everyday name ("London",
"Brown", a given name) it must never be part of another name in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ncu_exp.perturb.draws import is_given_name, known_countries, known_states
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.mentions import find_lookalikes, find_mentions
from ncu_exp.perturb.words import CLASSES, FUNCTION_WORDS, TITLES, is_significant

_NAME_BEFORE = re.compile(r"([^\W\d_][\w.'’]*)[ -]$")
_NAME_AFTER = re.compile(r"(?:,? |-)([^\W\d_])")

_NO_PERSON_BEFORE = re.compile(r"\b(?:in|at|near|from|the|an?)\s$")

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ShortForm:
    """A part of the answer that may stand alone, and what replaces it.

    `is_ambiguous`: it may well name something else (a given name, a firm's first word).
    """

    text: str
    replacement: str
    is_ambiguous: bool = False


def find_parts(
    text: str, parts: Sequence[ShortForm], mentions: Spans, *, question: str
) -> Iterator[tuple[int, int, str]]:
    """Where short forms stand outside the mentions: start, end, replacement; they may overlap."""
    for part in parts:
        if not _is_telling(part.text) or find_lookalikes(question, [part.text]):
            continue
        places = [
            (m.start, m.end)
            for m in find_mentions(text, [part.text])
            if _same_capitals(text[m.start : m.end], part.text)
            and not any(start <= m.start and m.end <= end for start, end in mentions)
        ]
        is_ambiguous = part.is_ambiguous or _is_everyday(part.text)
        if is_ambiguous and any(_names_another(text, *place) for place in places):
            continue
        for start, end in places:
            yield start, end, part.replacement


def _is_telling(part: str) -> bool:
    return len(part) > 2 and part[0].isupper() and is_significant(fold_text(part))


def _same_capitals(found: str, part: str) -> bool:
    return found[0].isupper() and (found.isupper() or not part.isupper())


def _is_everyday(part: str) -> bool:
    """Whether the short form is likely to name other things as well."""
    folded = fold_text(part)
    return (
        is_given_name(part)
        or folded in known_countries() | known_states()
        or any(folded in map(fold_text, members) for members in CLASSES)
    )


def _names_another(text: str, start: int, end: int) -> bool:
    """Whether it seems to name another thing: "Charles Lyell", "Washington, D.C.", "in Boston"."""
    if _NO_PERSON_BEFORE.search(text[max(0, start - 6) : start]):
        return True
    before = _NAME_BEFORE.search(text[max(0, start - 30) : start])
    if before and before.group(1)[0].isupper():
        word = fold_text(before.group(1)).strip(".")
        if word not in TITLES | FUNCTION_WORDS:
            return True
    after = _NAME_AFTER.match(text[end : end + 30])
    return after is not None and after.group(1).isupper()
