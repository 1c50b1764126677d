"""Answers that are clauses: the same clause with other names, the contrary, or another object."""

from __future__ import annotations

import re
from functools import cache, partial

from ncu_exp.perturb.draws import Draws, known_countries, known_states
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.numerals import like_case
from ncu_exp.perturb.terms import class_member, content_words, is_function_word, split_possessive
from ncu_exp.perturb.things import invent_place, keep_heads
from ncu_exp.perturb.words import CLAUSE_NOUNS, OPPOSITES, significant_words

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_NAMES = re.compile(r"(?<![\w'’-])[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*")


def holds_name(core: str) -> bool:
    """Whether a name of several words stands in a phrase: "Ada Lovelace's way to work"."""
    return any(" " in name for name in _NAMES.findall(core))


def reword(core: str, draws: Draws, *, question: str) -> str:
    """Other names for the names in it, and opposites for words that have one.

    Where it has neither, its last noun is replaced. What the question names stays.
    """
    asked = significant_words(question)
    made = _WORD.sub(partial(_opposite, draws=draws), _rename(core, draws, asked))
    if made != core:
        return made
    free = [w for w in content_words(core) if fold_text(w) not in asked] or content_words(core)
    last = free[-1]
    start = core.rindex(last)
    other = like_case(last, class_member(last, draws) or _noun(last, draws))
    return core[:start] + other + core[start + len(last) :]


def _rename(core: str, draws: Draws, asked: set[str]) -> str:
    def rename(match: re.Match[str]) -> str:
        name, ending = split_possessive(match.group())
        opens = match.start() == 0 and " " not in name  # a capital that the sentence gives
        if opens or is_function_word(name) or significant_words(name) & asked:
            return name + ending
        if fold_text(name) in known_countries() | known_states():
            return invent_place(name, draws) + ending
        renamed = class_member(name, draws) or keep_heads(name, draws, draws.last_name)
        return (renamed or draws.last_name()) + ending

    return _NAMES.sub(rename, core)


def _opposite(match: re.Match[str], *, draws: Draws) -> str:
    word = match.group()
    opens = match.start() == 0 and not re.match(r" [A-Z]", match.string[match.end() :])
    is_name = word[0].isupper() and not opens
    others = () if is_name else _opposites().get(fold_text(word), ())
    return like_case(word, draws.choice(others)) if others else word


def _noun(word: str, draws: Draws) -> str:
    """Another noun, plural where the word looks like one."""
    is_plural = word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return draws.choice(CLAUSE_NOUNS) + "s" * is_plural


@cache
def _opposites() -> dict[str, tuple[str, ...]]:
    """Each word with those that say the contrary."""
    pairs = [*OPPOSITES, *((b, a) for a, b in OPPOSITES)]
    found: dict[str, tuple[str, ...]] = {}
    for word, other in pairs:
        found[word] = (*found.get(word, ()), other)
    return found
