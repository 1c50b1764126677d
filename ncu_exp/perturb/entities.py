"""The type of an answer, and a fabricated answer of that type."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ncu_exp.perturb.dates import MONTH, YEAR
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import answer_form
from ncu_exp.perturb.mentions import find_mentions
from ncu_exp.perturb.numerals import DIGITS, NUMBER_WORD, ORDINAL_WORD, SCALE
from ncu_exp.perturb.tagger import Tag, tag_mention
from ncu_exp.records import AnswerType, Item, render_passages

NUMERIC_TYPES = frozenset(
    {AnswerType.number, AnswerType.quantity, AnswerType.money, AnswerType.year, AnswerType.date}
)


def answer_type(item: Item, *, spacy_model: str) -> AnswerType:
    """What kind of thing the answer names: the corpus's word, else read off answer and question.

    The tagger is asked only where patterns do not settle it. Raises PerturbationError where it
    is not installed then.
    """
    if item.answer_type is not None:
        return item.answer_type
    settled = yes_no_type(item) or pattern_type(item.answer, item.question)
    if settled:
        return settled
    asked = noun_type(item.question)
    tag = None if asked else _tag(item, spacy_model)
    return asked_type(item) if False else AnswerType.other
