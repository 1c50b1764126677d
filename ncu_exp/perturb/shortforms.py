"""Short forms of an answer in a text: the surname, the acronym, the town without its state.

A short form may be short for something else, so it is held to more than an answer: it must have
the very same capitals, must not stand in the question, and where it is an everyday name ("London",
"Brown", a given name) it must never be part of another name in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ncu_exp.perturb.draws import is_given_name, known_countries, known_states
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.mentions import find_lookalikes, find_mentions
from ncu_exp.perturb.words import CLASSES, FUNCTION_WORDS, TITLES, is_significant

_NAME_BEFORE = re.compile(r"([^\W\d_][\w.'’]*)[ -]$")
_NAME_AFTER = re.compile(r"(?:,? |-)([^\W\d_]\w+)")

Parts = Sequence[tuple[str, str]]
Spans = Sequence[tuple[int, int]]


def find_parts(
    text: str, parts: Parts, taken: Spans, *, question: str
) -> Iterator[tuple[int, int, str]]:
    """Where short forms stand alone outside the spans in `taken`: start, end, replacement."""
    used = set[int]()
    for start, end in taken:
        used.update(range(start, end))
    for part, replacement in parts:
        if not _is_telling(part) or find_lookalikes(question, [part]):
            continue
        places = [
            (m.start, m.end)
            for m in find_mentions(text, [part])
            if _same_capitals(text[m.start : m.end], part) and m.start not in used
        ]
        if _is_everyday(part) and any(_in_other_name(text, *place) for place in places):
            continue
        for start, end in places:
            used.update(range(start, end))
            yield start, end, replacement


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


def _in_other_name(text: str, start: int, end: int) -> bool:
    """Whether a capitalised word stands beside it: "Charles Lyell", "Washington, D.C."."""
    before = _NAME_BEFORE.search(text[max(0, start - 30) : start])
    if before and before.group(1)[0].isupper():
        word = fold_text(before.group(1)).strip(".")
        if word not in TITLES | FUNCTION_WORDS:
            return True
    after = _NAME_AFTER.match(text[end : end + 30])
    return after is not None and after.group(1)[0].isupper()
