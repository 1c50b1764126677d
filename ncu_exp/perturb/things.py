"""Places, organisations, events, works and other things: invented names of the same build."""

from __future__ import annotations

import re
from collections.abc import Callable

from ncu_exp.perturb.draws import Draws, known_countries, known_states
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.numerals import NumberShift, draw_number_shift, like_case, shift_numbers
from ncu_exp.perturb.words import (
    CLASSES,
    COMMON_WORDS,
    FUNCTION_WORDS,
    HEADS,
    QUALIFIERS,
    TEAM_NOUNS,
    TITLE_ADJECTIVES,
    TITLE_NOUNS,
)

_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_TEAM = re.compile(
    r"\b(?:teams?|club|franchise|play|plays|played|won|wins|beat|defeat\w*|champions?)\b",
    re.IGNORECASE,
)
_BAND = re.compile(r"\b(?:bands?|sings?|sang|songs?|album|singles?|recorded)\b", re.IGNORECASE)
_ROMAN = re.compile(r"[IVX]+")


def class_member(core: str, draws: Draws) -> str | None:
    """Another member of the closed class that the answer is out of, in its case and number."""
    folded = fold_text(core)
    for members in CLASSES:
        for ending in ("", "s"):
            if folded.removesuffix(ending) in map(fold_text, members):
                member = draws.choice(members) + (ending if folded.endswith(ending) else "")
                return member if core[0].isupper() or member[0].isupper() else member.lower()
    return None


def invent_place(core: str, draws: Draws) -> str:
    """A country for a country, a state for a state, a river for a river, else a town."""
    parts = re.split(r",\s+", core)
    if len(parts) > 1:
        return ", ".join(invent_place(part, draws) for part in parts if part)
    folded = fold_text(core)
    if folded in known_countries():
        return draws.country()
    if folded in known_states():
        return draws.state()
    return (
        class_member(core, draws)
        or keep_heads(core, draws, draws.last_name)
        or draws.city(words=len(core.split()))
    )


def invent_organization(core: str, draws: Draws, *, question: str) -> str:
    """A university for a university, a team for a team, a band for a band, else a firm."""
    if re.fullmatch(r"[A-Z]{2,5}", core):
        return "".join(draws.letter() for _ in core)
    several_words = " " in core
    if _BAND.search(question):
        noun = draws.choice(TEAM_NOUNS)
        return f"{draws.choice(TITLE_ADJECTIVES)} {noun}" if several_words else noun
    renamed = class_member(core, draws) or keep_heads(core, draws, draws.last_name)
    if renamed:
        return renamed
    if _TEAM.search(question):
        noun = draws.choice(TEAM_NOUNS)
        return f"{draws.city(words=1)} {noun}" if several_words else noun
    return draws.company() if several_words else draws.last_name()


def invent_event(core: str, draws: Draws) -> str:
    """A war for a war, a cup for a cup, else a festival."""
    return keep_heads(core, draws, draws.last_name) or f"{draws.last_name()} Festival"


def invent_work(core: str, draws: Draws) -> str:
    """A title of about as many words."""
    adjective, noun, other = (
        draws.choice(TITLE_ADJECTIVES),
        draws.choice(TITLE_NOUNS),
        draws.choice(TITLE_NOUNS),
    )
    length = len(core.split())
    if length == 1:
        return noun
    return f"{adjective} {noun}" if length < 4 else f"{adjective} {noun} of the {other}"


def keep_heads(core: str, draws: Draws, draw_name: Callable[[], str]) -> str | None:
    """Replace each run of proper words between head nouns by a name: "Battle of X", "X River".

    None where the answer holds no head noun, or nothing else.
    """
    shift = draw_number_shift(draws.rng)
    pieces: list[str] = []
    kept = renamed = 0
    in_run = False
    for token in core.split():
        word = fold_text(token).strip(".,()'\"")
        if word in HEADS:
            kept, in_run = kept + 1, False
            pieces.append(token)
        elif word in FUNCTION_WORDS:
            in_run = False
            pieces.append(token)
        elif any(c.isdigit() for c in token):
            in_run = False
            pieces.append(shift_numbers(token, shift))
        elif not in_run and not (_ROMAN.fullmatch(token) and pieces):
            renamed, in_run = renamed + 1, True
            pieces.append(draw_name() if token[0].isupper() else common_word(token, draws))
        # the rest of a run, and a numeral after a name, go with what was replaced
    return " ".join(pieces) if kept and renamed else None


def invent_other(core: str, draws: Draws) -> str:
    """Each word that carries meaning replaced by one of the same ending and case."""
    member = class_member(core, draws)
    if member:
        return member
    shift = draw_number_shift(draws.rng)
    return _TOKEN.sub(lambda match: _other_token(match.group(), draws, shift), core)


def _other_token(token: str, draws: Draws, shift: NumberShift) -> str:
    folded = fold_text(token)
    if any(c.isdigit() for c in token):
        return shift_numbers(token, shift)
    if folded in FUNCTION_WORDS or not folded.isascii():  # a script that the lists lack
        return token
    return like_case(token, common_word(token, draws))


def common_word(token: str, draws: Draws) -> str:
    """A common word with the same ending, so that it can stand in the same sentence."""
    folded = fold_text(token)
    for ending, words in COMMON_WORDS:
        if folded.endswith(ending) and len(folded) > len(ending) + 1:
            return draws.choice(words)
    return draws.choice(COMMON_WORDS[-1][1])


def acronym(name: str) -> str:
    """The initials of the capitalised words, where there are two or more; else empty."""
    initials = [word[0] for word in re.split(r"[\s-]+", name) if word[:1].isupper()]
    return "".join(initials) if len(initials) > 1 else ""


def is_bare_name(word: str) -> bool:
    """Whether a capitalised word names a thing alone: no head noun, qualifier or function word."""
    folded = fold_text(word)
    return (
        word[:1].isupper() and len(word) > 3 and folded not in HEADS | QUALIFIERS | FUNCTION_WORDS
    )
