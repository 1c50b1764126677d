"""The policy `corpus`: another item's answer of the same kind stands for the answer.

The stronger test: a borrowed name is real, so a model cannot tell from its looks that it was put
there. What is borrowed keeps to the item's own format, and goes to every form of the answer.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ncu_exp.perturb import people, terms
from ncu_exp.perturb.dates import date_parts, move_to, shift_date
from ncu_exp.perturb.draws import Draws, known_countries, known_states
from ncu_exp.perturb.entities import natural_core
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.inventors import (
    Fabrication,
    gender_in,
    numeric_spellings,
    people_of,
    rename,
    rename_organization,
    rename_people,
    rename_place,
    shifted,
)
from ncu_exp.perturb.numerals import NumberSwap, UnfitNumberError, number_format, shift_numbers
from ncu_exp.perturb.patterns import NUMERIC_TYPES
from ncu_exp.records import AnswerType, Item

Kin = tuple[AnswerType, str]  # who may borrow from whom


class Pool:
    """The answers of a set of items by their kin: what each may borrow from the others.

    It depends on the set alone, not on its order.
    """

    def __init__(self, typed: Iterable[tuple[Item, AnswerType]]) -> None:
        self._types: dict[str, AnswerType] = {}
        found: dict[Kin, set[str]] = defaultdict(set)
        for item, kind in typed:
            self._types[item.item_id] = kind
            core = natural_core(item)
            kin = kin_of(kind, core) if core else None
            if kin is not None:
                found[kin].add(core)
        self._cores: Mapping[Kin, list[str]] = {kin: sorted(all_) for kin, all_ in found.items()}

    def type_of(self, item: Item) -> AnswerType:
        """The type of an item of the set."""
        return self._types[item.item_id]

    def others(self, item: Item, rng: random.Random) -> Iterator[str]:
        """The answers that the item may borrow, in an order of its own."""
        core = natural_core(item)
        kin = kin_of(self.type_of(item), core)
        cores = [other for other in self._cores.get(kin, ()) if other != core] if kin else []
        rng.shuffle(cores)
        yield from cores


def kin_of(kind: AnswerType, core: str) -> Kin | None:
    """What two answers have in common that may stand for each other; None for one that may not.

    A country for a country, a quantity in the same unit, a date that tells as much.
    """
    if kind in (AnswerType.year, AnswerType.date):
        parts = date_parts(core)
        return None if parts is None else (AnswerType.date, ",".join(sorted(parts)))
    if kind in NUMERIC_TYPES:
        written = number_format(core)
        return None if written is None else (kind, written)
    if kind is AnswerType.yes_no or terms.has_number(core):
        return None
    if kind is AnswerType.person:
        return (kind, "") if len(people_of(core)) == 1 else None
    if kind is AnswerType.place:
        return kind, f"{_sort_of_place(core)} {core.count(', ')}"
    if kind is AnswerType.other:
        if not terms.is_name(core) and terms.is_clause(core):
            return None
        is_plural = fold_text(core).endswith("s")
        return kind, f"{terms.is_name(core)} {is_plural} {terms.class_of(core)}"
    return kind, str(core.startswith('"'))


def _sort_of_place(core: str) -> str:
    folded = fold_text(core)
    if folded in known_countries():
        return "country"
    if folded in known_states():
        return "state"
    return str(terms.class_of(core))


def borrowed(item: Item, pool: Pool, draws: Draws) -> Iterator[Fabrication]:
    """The answers of other items that fit this one, in an order of its own."""
    kind = pool.type_of(item)
    for core in pool.others(item, draws.rng):
        made = _borrow(item, kind, core, draws)
        if made is not None:
            yield made


def _borrow(item: Item, kind: AnswerType, core: str, draws: Draws) -> Fabrication | None:
    if kind in (AnswerType.year, AnswerType.date):
        move = move_to(natural_core(item), core)
        return shifted(item, draws, lambda text: shift_date(text, move))
    if kind in NUMERIC_TYPES:
        swap = NumberSwap.between(natural_core(item), core)
        try:
            return shifted(item, draws, lambda text: shift_numbers(text, swap))
        except UnfitNumberError:
            return None
    numbers = numeric_spellings(item, draws)
    if kind is AnswerType.person:
        return _borrow_person(item, core, draws, numbers=numbers)
    if kind is AnswerType.place:
        return rename_place(item, core, numbers=numbers)
    if kind is AnswerType.organization:
        return rename_organization(item, core, numbers=numbers)
    return rename(item, core, numbers=numbers, is_common=not terms.is_name(core))


def _borrow_person(
    item: Item, core: str, draws: Draws, *, numbers: Mapping[str, str]
) -> Fabrication | None:
    """A person of the same sex as far as names and pronouns tell, under the answer's own title."""
    (true,), (other,) = people_of(natural_core(item)), people_of(core)
    gender, others = gender_in(item, true), people.guess_gender(other, "")
    if gender and others and gender != others:
        return None
    made = people.Name(true.before, other.parts, other.after)
    return rename_people(item, [made], given=draws.first_name(gender), numbers=numbers)
