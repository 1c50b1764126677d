"""A fabricated answer: drawn until it collides with nothing that the item says."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice

from ncu_exp.config import Policy
from ncu_exp.perturb import terms
from ncu_exp.perturb.borrow import Pool, borrowed
from ncu_exp.perturb.clauses import holds_name
from ncu_exp.perturb.dates import draw_date_shift, shift_date
from ncu_exp.perturb.draws import Draws, rng_for
from ncu_exp.perturb.entities import natural_core
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import answer_form
from ncu_exp.perturb.inventors import (
    NAME_INVENTORS,
    Fabrication,
    Inventor,
    invent_clause,
    invent_date,
    invent_mixed,
    invent_number,
    invent_other,
    searched_answers,
)
from ncu_exp.perturb.mentions import find_lookalikes
from ncu_exp.perturb.numerals import draw_number_shift, other_spelling, shift_numbers
from ncu_exp.perturb.patterns import NUMERIC_TYPES
from ncu_exp.perturb.words import folded_words, is_significant, significant_words
from ncu_exp.records import AnswerType, Item, render_passages

_TRIES = 200  # draws until an item counts as one that nothing can be fabricated for


def is_clause(item: Item, entity_type: AnswerType) -> bool:
    """Whether the answer is no term to be replaced as one: a clause, or a name within a phrase."""
    form, core = answer_form(item.answer), natural_core(item)
    if entity_type is not AnswerType.other or terms.is_name(core) or terms.has_number(core):
        return False
    return form.lead == "to" or terms.is_clause(core) or holds_name(core)


def fabricate(
    item: Item, entity_type: AnswerType, *, seed: int, pool: Pool | None = None
) -> Fabrication | None:
    """Invent an answer of the type, or borrow one from the pool, seeded by (seed, item id).

    It is mentioned neither in the question nor in any passage and, unless it is a clause, shares
    no significant word with the answer or an alias. None where no draw out of many is free of that.
    """
    if not natural_core(item):
        return None
    policy = Policy.faker if pool is None else Policy.corpus
    draws = Draws(rng_for(seed, item.item_id, policy.value, entity_type.value))
    found = _invented(item, entity_type, draws) if pool is None else borrowed(item, pool, draws)
    # Either reads every passage: it is made when it is needed.
    is_free = cache(lambda as_a_whole: (_whole_free if as_a_whole else _words_free)(item))
    for made in islice(found, _TRIES):
        if is_free(made.is_numeric or made.is_clause)(made):
            return made
    return None


def _invented(item: Item, entity_type: AnswerType, draws: Draws) -> Iterator[Fabrication]:
    invent = _inventor(item, entity_type)
    while True:
        yield invent(item, draws)


def _inventor(item: Item, entity_type: AnswerType) -> Inventor:
    core = natural_core(item)
    probe = random.Random(0)
    is_date = entity_type in (AnswerType.year, AnswerType.date)
    if is_date and shift_date(core, draw_date_shift(probe, core)) != core:
        return invent_date
    if entity_type in NUMERIC_TYPES and shift_numbers(core, draw_number_shift(probe)) != core:
        return invent_number
    if entity_type not in NAME_INVENTORS and terms.has_number(core):
        return invent_mixed
    if is_clause(item, entity_type):
        return invent_clause
    return NAME_INVENTORS.get(entity_type, invent_other)


# --- collisions ---------------------------------------------------------------------------------


def _everything(item: Item) -> str:
    return f"{item.question}\n\n{render_passages(item.passages)}"


def _words_free(item: Item) -> Callable[[Fabrication], bool]:
    """Whether no invented word stands in an alias, the question or a passage."""
    taken = set(folded_words(_everything(item)))
    for answer in item.answers:
        taken |= significant_words(answer)
    forbidden = {fold_text(answer_form(answer).core) for answer in item.answers}

    def is_free(made: Fabrication) -> bool:
        drawn = [word for word in folded_words(made.drawn) if not any(c.isdigit() for c in word)]
        words = {word for word in drawn if is_significant(word)}
        return fold_text(made.core) not in forbidden and bool(words) and words.isdisjoint(taken)

    return is_free


def _whole_free(item: Item) -> Callable[[Fabrication], bool]:
    """Whether the new number, date or clause is no alias, and mentioned nowhere."""
    text = _everything(item)
    forbidden = {fold_text(answer_form(answer).core) for answer in searched_answers(item)}

    def is_free(made: Fabrication) -> bool:
        values = [made.core, *filter(None, [other_spelling(made.core)])]
        spelled = map(fold_text, (*values, *made.spellings.values()))
        return forbidden.isdisjoint(spelled) and not find_lookalikes(text, values)

    return is_free
