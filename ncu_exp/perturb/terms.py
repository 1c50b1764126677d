"""Common nouns and terms: other words of the same class, or of the same ending and case."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Collection

from ncu_exp.perturb.dates import MONTH, YEAR, draw_date_shift, shift_date
from ncu_exp.perturb.draws import Draws
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.numerals import (
    NUMBER_WORD,
    ORDINAL_WORD,
    draw_number_shift,
    like_case,
    shift_numbers,
)
from ncu_exp.perturb.words import (
    CLASSES,
    COMMON_WORDS,
    FUNCTION_WORDS,
    MODIFIER_ENDINGS,
    MODIFIERS,
    NOUN_ENDINGS,
    QUALIFIERS,
)

_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_COMPOUND = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ACRONYM = re.compile(r"[A-Z]{2,6}")
_NUMBER = re.compile(rf"\d|\b(?:{NUMBER_WORD}|{ORDINAL_WORD})\b", re.IGNORECASE)
_CLAUSE_WORD = re.compile(
    r"\b(?:is|are|was|were|be|been|had|has|have|must|can|could|will|would|should|may|might|did|does)\b"
)
_STAYS_IN_CLASS = 0.8  # of the draws; all other members may be taken
_LONGEST_TERM = 4  # words that carry meaning; with more of them it is a sentence


def is_name(core: str) -> bool:
    """Whether the answer is written like a name: capitals at its end and in half of its words."""
    words = content_words(re.sub(r"\s*\([^)]*\)$", "", core))
    capitals = [word for word in words if word[0].isupper() or word[0].isdigit()]
    has_capital = any(word[0].isupper() for word in words)
    return has_capital and words[-1] in capitals and 2 * len(capitals) >= len(words)


def is_clause(core: str) -> bool:
    """Whether an answer that is no name is too much of a sentence to put other words into."""
    return _CLAUSE_WORD.search(core) is not None or len(content_words(core)) > _LONGEST_TERM


def content_words(core: str) -> list[str]:
    """The words that are no function words."""
    return [token for token in _TOKEN.findall(core) if not is_function_word(token)]


def is_function_word(token: str) -> bool:
    """Whether the word is a function word as it is written: "us" is one, "US" is none."""
    is_acronym = token.isupper() and len(token) > 1
    return fold_text(token) in FUNCTION_WORDS and not is_acronym


def has_number(core: str) -> bool:
    """Whether there is a number in the answer, in digits or in words."""
    return _NUMBER.search(core) is not None


def draw_shift(rng: random.Random, core: str) -> Callable[[str], str]:
    """A change of the numbers in a text: of its dates where it has any, else of all of them."""
    dates, numbers = draw_date_shift(rng, core), draw_number_shift(rng)
    if re.search(rf"(?<!\d){YEAR}(?!\d)|\b{MONTH}\b", core):
        return lambda text: shift_date(text, dates)
    return lambda text: shift_numbers(text, numbers)


def class_of(core: str) -> tuple[str, ...] | None:
    """The closed class that the answer is out of, in its singular or plural."""
    folded = fold_text(core)
    for members in CLASSES:
        if {folded, folded.removesuffix("s")} & set(map(fold_text, members)):
            return members
    return None


def class_member(core: str, draws: Draws) -> str | None:
    """Another member of the answer's closed class, in its case and number; None without a class."""
    members = class_of(core)
    if members is None:
        return None
    is_singular = fold_text(core) in map(fold_text, members)
    member = draws.choice(members)
    return like_case(core, member if is_singular else plural(member))


def split_possessive(text: str) -> tuple[str, str]:
    """A text and its possessive ending ("Gandhi's"), which what stands for it keeps."""
    match = re.search(r"['’]s$", text)
    return (text[: match.start()], match.group()) if match else (text, "")


def other_number(term: str) -> str:
    """The plural of a singular term ("laser beam"), the singular of a plural one."""
    head, space, noun = term.rpartition(" ")
    return head + space + (_singular(noun) if is_plural(noun) else plural(noun))


def is_plural(noun: str) -> bool:
    """Whether a noun looks like a plural ("lens" and "gas" are taken for one)."""
    return noun.endswith("s") and not noun.endswith(("ss", "us", "is", "ics"))


def _singular(noun: str) -> str:
    if noun.endswith("ies") and len(noun) > 4:
        return noun[:-3] + "y"
    return noun[:-2] if re.search(r"(?:ch|sh|ss|x)es$", noun) else noun[:-1]


def plural(noun: str) -> str:
    """The regular plural of a noun."""
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search(r"(?:ch|sh|s|x)$", noun) else "s")


def invent_term(core: str, draws: Draws) -> str:
    """Each word that carries meaning replaced by one of the same class, or ending, and case.

    A compound ("super-regional") is one word. Words of a script that the lists lack stay as they
    are.
    """
    member = class_member(core, draws)
    if member is not None:
        return member
    tokens = [match.group() for match in _COMPOUND.finditer(core)]
    after = dict(itertools.pairwise(tokens))
    used: set[str] = set()

    def other_word(match: re.Match[str]) -> str:
        token, possessive = split_possessive(match.group())
        folded = fold_text(token)
        if is_function_word(token) or not folded.isascii() or folded in QUALIFIERS:
            return match.group()
        if _ACRONYM.fullmatch(token):
            return "".join(draws.letter() for _ in token) + possessive
        if possessive and token[0].isupper():  # "Polignac's conjecture"
            return draws.last_name() + possessive
        follows = core[match.end() :].startswith(" ") and not possessive
        is_modifier = follows and not is_function_word(after[match.group()])
        kin = class_member(token, draws) if draws.rng.random() < _STAYS_IN_CLASS else None
        word = kin or common_word(token, draws, is_modifier=is_modifier, used=used)
        used.add(word)
        return (word if kin else like_case(token, word)) + possessive

    return _COMPOUND.sub(other_word, core)


def common_word(
    token: str, draws: Draws, *, is_modifier: bool = False, used: Collection[str] = ()
) -> str:
    """A common word with the same ending, so that it can stand in the same sentence.

    A modifier stands before a noun: it is an adjective where the token is one, else a material.
    """
    words = _fitting_words(fold_text(token), is_modifier=is_modifier)
    return draws.choice([word for word in words if word not in used] or words)


def _fitting_words(token: str, *, is_modifier: bool) -> tuple[str, ...]:
    for ending, words in COMMON_WORDS:
        if not token.endswith(ending) or len(token) <= len(ending) + 2:
            continue
        if is_modifier:
            return words if ending in MODIFIER_ENDINGS else MODIFIERS
        if ending not in NOUN_ENDINGS:
            return words
    return COMMON_WORDS[-1][1]
