"""Persons: a name taken apart, another name of the same build, and the parts of both."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ncu_exp.perturb.draws import Draws, gender_of, is_given_name
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.words import NAME_SUFFIXES, TITLES, word_list

_JOINERS = re.compile(r"(,? and |, | & | featuring | feat\. )")
_INITIALS = re.compile(r"(?:[A-Z]\.?-?)+\.?")
_NICKNAME = re.compile(r"\s*[\"“(][^\"”)]*[\"”)]?(?=\s|$)")
_ROYAL = frozenset(word_list("king queen prince princess pope saint st emperor empress sir dame"))
_FEMALE_TITLES = frozenset(word_list("dame lady queen princess empress mother sister mrs ms miss"))
_MALE_TITLES = frozenset(word_list("sir lord king prince emperor pope father brother mr"))
_FEMALE_WORDS = re.compile(
    r"\b(?:she|her|hers|herself|actress|woman|wife|daughter)\b", re.IGNORECASE
)
_MALE_WORDS = re.compile(r"\b(?:he|his|him|himself|actor|man|husband|son)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Name:
    """One person's name: "President", ("James", "Madison"), ""; particles are left out."""

    before: str
    parts: tuple[str, ...]
    after: str

    @property
    def full(self) -> str:
        return " ".join(filter(None, (self.before, *self.parts, self.after)))


def parse_name(text: str) -> Name | None:
    """Take one name apart; None where there is no capitalised part."""
    tokens = _NICKNAME.sub("", text).split()
    before: list[str] = []
    while tokens and (_folded(tokens[0]) in TITLES or tokens[0][0].islower()) and tokens[1:]:
        before.append(tokens.pop(0))
    after: list[str] = []
    while tokens[1:] and _folded(tokens[-1]) in NAME_SUFFIXES:
        after.insert(0, tokens.pop())
    if "the" in tokens[1:]:  # "Hanno the Great"
        tokens = tokens[: tokens.index("the")]
    parts = tuple(token.rstrip(",") for token in tokens if not token[0].islower())
    if not parts or not parts[-1]:
        return None
    return Name(" ".join(before), parts, " ".join(after))


def _folded(token: str) -> str:
    return fold_text(token).strip(".,").replace(".", "")


def split_people(text: str) -> tuple[list[str], list[str]]:
    """The names in "A, B and C" and what joins them; "Charles, Prince of Wales" is one."""
    if re.search(r" and | & | feat", text) is None:
        return [text.split(",")[0]], []
    pieces = _JOINERS.split(text)
    return pieces[::2], pieces[1::2]


def invent_name(name: Name, draws: Draws, *, gender: str) -> Name:
    """Another name with as many parts; initials stay initials, titles stay."""
    title = fold_text(name.before).split(" ")[-1] if name.before else ""
    if len(name.parts) == 1:
        is_given = title in _ROYAL or is_given_name(name.parts[0])
        only = draws.first_name(gender) if is_given else draws.last_name()
        return Name(name.before, (only,), name.after)
    parts = [_invent_given(part, draws, gender) for part in name.parts[:-1]]
    return Name(name.before, (*parts[:3], draws.last_name()), name.after)


def _invent_given(part: str, draws: Draws, gender: str) -> str:
    if _INITIALS.fullmatch(part):
        return re.sub("[A-Z]", lambda _: draws.letter(), part)
    return draws.first_name(gender)


def guess_gender(name: Name, context: str) -> str:
    """`female`, `male` or empty, from the title, the given name, or the pronouns around it."""
    for title in map(_folded, name.before.split()):
        if title in _FEMALE_TITLES or title in _MALE_TITLES:
            return "female" if title in _FEMALE_TITLES else "male"
    known = gender_of(name.parts[0]) if len(name.parts) > 1 else ""
    if known:
        return known
    women, men = len(_FEMALE_WORDS.findall(context)), len(_MALE_WORDS.findall(context))
    return "" if women == men else ("female" if women > men else "male")


def rename_alias(alias: str, true: Name, invented: Name) -> str | None:
    """How an alias of the person reads under the new name; None where it is no form of the name.

    "Madison" -> surname, "President Madison" -> title and surname, "Madison, James" -> inverted.
    """
    name = parse_name(alias)
    if name is None:
        return None
    folded = [fold_text(part) for part in name.parts]
    surname, given = fold_text(true.parts[-1]), fold_text(true.parts[0])
    if folded == [surname]:
        new: tuple[str, ...] = (invented.parts[-1],)
    elif folded == [given]:
        new = (invented.parts[0],)
    elif "," in alias and folded[0] == surname and len(folded) > 1:
        return f"{invented.parts[-1]}, {' '.join(invented.parts[:-1])}".rstrip(", ")
    else:
        new = invented.parts
    return Name(name.before, new, name.after).full


def surnames(names: Iterable[Name]) -> list[str]:
    """The last parts of the names that have more than one."""
    return [name.parts[-1] for name in names if len(name.parts) > 1]
