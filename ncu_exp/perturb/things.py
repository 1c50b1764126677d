"""Places, organisations, events and works: invented names of the same build."""

from __future__ import annotations

import re
from collections.abc import Callable

from ncu_exp.perturb.draws import Draws, known_countries, known_states
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.terms import class_member, common_word, draw_shift, is_function_word
from ncu_exp.perturb.words import (
    FUNCTION_WORDS,
    HEADS,
    QUALIFIERS,
    TEAM_NOUNS,
    TITLE_ADJECTIVES,
    TITLE_NOUNS,
    TITLES,
)

_TEAM_QUESTION = re.compile(
    r"\b(?:teams?|club|franchise|plays?|played|won|wins|beat|defeat\w*|champions?)\b", re.IGNORECASE
)
_BAND_QUESTION = re.compile(
    r"\b(?:bands?|sings?|sang|songs?|album|singles?|hits?|recorded)\b", re.IGNORECASE
)
_RANKS = frozenset({"prime", "vice", "deputy", "first", "federal"})  # before an office
_ROMAN = re.compile(r"[IVX]+")


def asks_for_band(question: str) -> bool:
    """Whether the question is about who made some music."""
    return _BAND_QUESTION.search(question) is not None


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
    renamed = class_member(core, draws) or keep_heads(core, draws, draws.last_name)
    if renamed:
        return renamed
    several_words = " " in core
    if asks_for_band(question):
        noun = draws.choice(TEAM_NOUNS)
        return f"{draws.choice(TITLE_ADJECTIVES)} {noun}" if several_words else noun
    if _TEAM_QUESTION.search(question):
        noun = draws.choice(TEAM_NOUNS)
        return f"{draws.city(words=1)} {noun}" if several_words else noun
    return draws.company() if several_words else draws.last_name()


def invent_office(core: str, draws: Draws) -> tuple[str, str]:
    """The same office of another country or department, and which; else empty.

    "President of India", "Minister of the Interior".
    """
    office, of, whose = re.split(r"( of (?:the )?|$)", core, maxsplit=1)
    if not of or not all(fold_text(word) in TITLES | _RANKS for word in office.split()):
        return "", ""
    other = class_member(whose, draws) or draws.country()
    return f"{office} of {other}", other


def invent_event(core: str, draws: Draws) -> str:
    """A war for a war, a cup for a cup; else a name like a title, or a place's name."""
    renamed = keep_heads(core, draws, draws.last_name)
    if renamed:
        return renamed
    return invent_work(core, draws) if " " in core else draws.city(words=1)


def invent_work(core: str, draws: Draws) -> str:
    """A title of about as many words, in the answer's quotation marks and with its year."""
    quoted = re.fullmatch(r'"(?P<title>.+)"(?P<year>\s*\(\d{4}\))?', core)
    if quoted:
        return f'"{invent_work(quoted["title"], draws)}"{quoted["year"] or ""}'
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

    None where no head noun ends the answer, begins it or stands before "of", and where the answer
    is nothing else.
    """
    tokens = core.split()
    words = [_bare(token) for token in tokens]
    heads = [word in HEADS for word in words]
    before_of = any(head and after == "of" for head, after in zip(heads, words[1:], strict=False))
    ends = [head for token, head in zip(tokens, heads, strict=True) if not _is_numeral(token)][-1:]
    if not (heads[0] or any(ends) or before_of):
        return None
    shift = draw_shift(draws.rng, core)
    pieces: list[str] = []
    renamed = in_run = False
    for place, (token, is_head) in enumerate(zip(tokens, heads, strict=True)):
        if is_head or is_function_word(token) or _has_digit(token):
            in_run = False
            pieces.append(shift(token) if _has_digit(token) else token)
        elif not in_run and not (_is_numeral(token) and pieces):
            renamed = in_run = True
            name = draw_name() if token[0].isupper() else common_word(token, draws)
            # "of the United States" needs a noun that an article can stand before.
            needs_head = pieces[-2:] == ["of", "the"] and not any(heads[place:])
            pieces.append(f"{name} Union" if needs_head else name)
        # the rest of a run, and a numeral after a name, go with what was replaced
    return " ".join(pieces) if renamed else None


def without_heads(name: str) -> str:
    """The proper part of a name that has head nouns ("Baikal" of "Lake Baikal"), else empty."""
    tokens = name.split()
    proper = [t for t in tokens if _bare(t) not in HEADS and not is_function_word(t)]
    return " ".join(proper) if len(proper) < len(tokens) else ""


def _bare(token: str) -> str:
    return fold_text(token).strip(".,()'\"")


def _is_numeral(token: str) -> bool:
    return _has_digit(token) or _ROMAN.fullmatch(token) is not None


def _has_digit(token: str) -> bool:
    return any(c.isdigit() for c in token)


def acronym(name: str) -> str:
    """The initials of the capitalised words, where there are two or more; else empty."""
    initials = [word[0] for word in re.split(r"[\s-]+", name) if word[:1].isupper()]
    return "".join(initials) if len(initials) > 1 else ""


def is_bare_name(word: str) -> bool:
    """Whether a capitalised word names a thing alone: no head noun, qualifier or function word."""
    folded = _bare(word)
    is_neutral = folded in HEADS or folded in QUALIFIERS or folded in FUNCTION_WORDS
    return word[:1].isupper() and len(folded) > 3 and not is_neutral
