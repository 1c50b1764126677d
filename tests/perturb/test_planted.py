"""Mentions planted at random in generated contexts: they are replaced, and nothing else is."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import assume, given
from hypothesis import strategies as st

from ncu_exp.config import PerturbConfig
from ncu_exp.perturb.audit import perturb_item
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.words import significant_words
from ncu_exp.records import AnswerType, Item, Passage

ALPHABETS = ("bcdéfgüklmñoprşuvž", "бвгдеёжзийклмнорстуф", "βγδεζθικλμνοπρστφχψ")
FILLERS = (
    "over",
    "1987",
    "6,000",
    "и",
    "seven",
    "während",
    "東京",
    "don't",
    "(see",
    "II)",
    "x.",
    "…",
)
WRAPPERS = (
    "{}",
    "{},",
    "({})",
    "“{}”",
    '"{}"',
    "‘{}’",
    "{}'s",
    "{}’s",
    "{};",
    "—{}—",
    "{}: ",
    "\n{}\n",
)
DECOYS = ("{}ien", "Pre{}", "{}9", "9{}", "{}’tis", "{}_")


def without_accents(text: str) -> str:
    letters = unicodedata.normalize("NFD", text)
    return "".join(c for c in letters if not unicodedata.combining(c))


def inside(sign: str) -> Callable[[str], str]:
    """Put a sign that is not seen into the middle of the first word."""
    return lambda text: text[:2] + sign + text[2:]


def between(sign: str) -> Callable[[str], str]:
    return lambda text: text.replace(" ", sign)


SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    str.upper,
    without_accents,
    lambda text: unicodedata.normalize("NFD", text),
    inside("\u00ad"),  # a soft hyphen
    inside("\u200b"),  # a space of no width
    *map(between, ("\u00a0", "\u202f", "  ", "\n", "-", "\u2010", "\u2011")),
)


@dataclass(frozen=True)
class Planted:
    """A text, and where the answer was planted in it."""

    answer: str
    text: str
    places: tuple[tuple[int, int], ...]


@st.composite
def planted(draw: st.DrawFn) -> Planted:
    alphabet = draw(st.sampled_from(ALPHABETS))
    word = st.text(alphabet, min_size=5, max_size=9).map(str.capitalize)
    answer = " ".join(draw(st.lists(word, min_size=1, max_size=3, unique_by=str)))
    assume(significant_words(answer) == set(fold_text(answer).split()))
    text = "It says "
    places = []
    for _ in range(draw(st.integers(1, 8))):
        before, after = draw(st.sampled_from(WRAPPERS)).split("{}")
        spelled = draw(st.sampled_from(SPELLINGS))(answer)
        start = len(text) + len(before)
        places.append((start, start + len(spelled)))
        text += before + spelled + after + " "
        text += " ".join(draw(st.lists(st.sampled_from(FILLERS), min_size=1, max_size=4))) + " "
        if draw(st.booleans()):
            text += draw(st.sampled_from(DECOYS)).format(answer) + " "
    return Planted(answer, text, tuple(places))


@given(planted(), st.sampled_from([AnswerType.place, AnswerType.work_of_art]))
def test_what_was_planted_is_replaced_and_nothing_else(
    config: PerturbConfig, plants: Planted, kind: AnswerType
) -> None:
    item = Item(
        "item-1",
        "local",
        "Which one is meant?",
        plants.answer,
        (),
        (Passage("", plants.text),),
        answer_type=kind,
    )
    made = perturb_item(item, config)
    assert made.ok, made.reason
    assert tuple((span.start, span.end) for span in made.spans) == plants.places
    assert made.perturbed is not None
    rest, done = made.perturbed, 0
    for span in made.spans:
        before = made.original[done : span.start]
        assert rest.startswith(before + span.replacement)
        rest, done = rest.removeprefix(before + span.replacement), span.end
    assert rest == made.original[done:]
