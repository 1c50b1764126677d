"""What in a perturbed context still gives the truth away."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncu_exp.perturb.entities import natural_core
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import answer_form
from ncu_exp.perturb.inventors import Fabrication
from ncu_exp.perturb.mentions import find_inside_words, find_lookalikes
from ncu_exp.perturb.patterns import NUMERIC_TYPES
from ncu_exp.perturb.terms import is_name
from ncu_exp.perturb.words import folded_words, significant_words
from ncu_exp.records import AnswerType, Item

_WORD = re.compile(r"[^\W_]+")
_SHORTEST = 4  # letters; a shorter answer stands inside words that have nothing to do with it


def telling_residue(
    perturbed: str, item: Item, fabrication: Fabrication, kind: AnswerType
) -> tuple[str, ...]:
    """What is left of the answer, as it stands in the text, each once.

    Whole answers and aliases, single words of the answer (a surname), its short forms, the answer
    inside longer words ("Croatian"), and for places words of the same stem ("Portuguese").
    """
    found = dict.fromkeys(_left(perturbed, item, fabrication, kind))
    return tuple(found)


def _left(text: str, item: Item, fabrication: Fabrication, kind: AnswerType) -> Iterator[str]:
    for mention in find_lookalikes(text, item.answers):
        yield text[mention.start : mention.end]
    core = natural_core(item)
    words = significant_words(core) - set(folded_words(fabrication.core))
    if kind in NUMERIC_TYPES:  # a unit that is left tells nothing
        words = {word for word in words if any(c.isdigit() for c in word)}
    short = {fold_text(part.text) for part in fabrication.parts}
    left = _words_among(text, words | (short - set(folded_words(fabrication.core))))
    # A word of a name tells nothing without its capital ("electric", "light").
    yield from (word for word in left if not is_name(core) or not word.islower())
    yield from find_inside_words(text, [a for a in item.answers if _is_one_word(a)])
    if kind is AnswerType.place:
        yield from _same_stem(text, fold_text(core))


def _words_among(text: str, words: set[str]) -> Iterator[str]:
    return (word for word in _WORD.findall(text) if fold_text(word) in words)


def _is_one_word(answer: str) -> bool:
    core = answer_form(answer).core
    return len(core) >= _SHORTEST and core.replace("'", "").isalnum()


def _same_stem(text: str, place: str) -> Iterator[str]:
    """Capitalised words that begin as the place does, but for its last letters."""
    stem = place[: max(_SHORTEST, len(place) - 2)]
    if " " in place or len(place) < _SHORTEST + 1:
        return iter(())
    return (
        word
        for word in _WORD.findall(text)
        if word[0].isupper() and fold_text(word).startswith(stem) and len(word) > len(stem)
    )
