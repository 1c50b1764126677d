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


def invent_name(name: Name, draws: Draws, *, gender: str, asks_given: bool = False) -> Name:
    """Another name with as many parts; initials stay initials, titles stay.

    `asks_given`: the question asks for a given name, so a single part is one.
    """
    title = fold_text(name.before).split(" ")[-1] if name.before else ""
    if len(name.parts) == 1:
        is_given = asks_given or title in _ROYAL or is_given_name(name.parts[0])
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
        if title in _FEMALE_TITLES or _FEMALE_WORDS.fullmatch(title):
            return "female"
        if title in _MALE_TITLES or _MALE_WORDS.fullmatch(title):
            return "male"
    known = gender_of(name.parts[0])
    if known:
        return known
    women, men = len(_FEMALE_WORDS.findall(context)), len(_MALE_WORDS.findall(context))
    return "" if women == men else ("female" if women > men else "male")


def rename_alias(alias: str, true: Name, invented: Name, *, given: str) -> str | None:
    """How an alias of the person reads under the new name; None where it is no name at all.

    Part for part where the alias has parts of the true name ("Madison", "President Madison"),
    turned round for "Madison, James", else the whole new name. `given` is put before a single
    name where the alias has more.
    """
    name = parse_name(alias)
    if name is None:
        return None
    by_part = dict(zip(map(fold_text, true.parts[:-1]), invented.parts[:-1], strict=False))
    by_part[fold_text(true.parts[-1])] = invented.parts[-1]
    folded = [fold_text(part) for part in name.parts]
    if all(part in by_part for part in folded):
        new = tuple(by_part[part] for part in folded)
    elif len(true.parts) == 1 and folded[-1] in by_part:
        new = (given, *invented.parts)
    else:
        new = invented.parts
    if "," in alias and len(new) > 1 and folded[0] == fold_text(true.parts[-1]):
        return f"{invented.parts[-1]}, {' '.join(invented.parts[:-1])}"
    return Name(name.before, new, name.after).full


def plural(family: str) -> str:
    """A surname of several people: the Finches, the Kennedys."""
    return family + ("es" if family.endswith(("ch", "sh", "s", "x", "z")) else "s")


def surnames(names: Iterable[Name]) -> list[str]:
    """The last parts of the names that have more than one."""
    return [name.parts[-1] for name in names if len(name.parts) > 1]


def other_lengths(text: str, true: Name, invented: Name) -> list[tuple[str, str]]:
    """The name with more or fewer parts, as the text has it, and what it becomes.

    "Nelson Aldrich Rockefeller" for Nelson Rockefeller becomes the whole new name; "Ariana
    Richards" for Ariana Clarice Richards its first and last part.
    """
    if len(true.parts) < 2:
        return []
    given, family = re.escape(true.parts[0]), re.escape(true.parts[-1])
    between = r"(?:[A-Z][\w.'’-]*|[\"“][^\"”\n]{1,20}[\"”])"
    longer = re.findall(rf"\b{given} (?:{between} ){{1,3}}{family}\b", text)
    ends = (f"{true.parts[0]} {true.parts[-1]}", f"{invented.parts[0]} {invented.parts[-1]}")
    bare = " ".join(invented.parts)
    return [*((found, bare) for found in dict.fromkeys(longer)), ends]
