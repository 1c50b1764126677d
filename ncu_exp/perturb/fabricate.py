"""A fabricated answer of a type, and how every spelling of the true answer reads under it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ncu_exp.perturb import people, things
from ncu_exp.perturb.dates import draw_date_shift, shift_date
from ncu_exp.perturb.draws import Draws, is_given_name, rng_for
from ncu_exp.perturb.entities import NUMERIC_TYPES
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import answer_form, natural_core
from ncu_exp.perturb.mentions import find_lookalikes
from ncu_exp.perturb.numerals import draw_number_shift, other_spelling, shift_numbers
from ncu_exp.perturb.words import folded_words, is_significant, significant_words
from ncu_exp.records import AnswerType, Item, render_passages

_TRIES = 200  # draws until an item counts as one that nothing can be fabricated for


@dataclass(frozen=True, slots=True)
class Fabrication:
    """What stands for the answer, in natural case and without the answer's article.

    `spellings` says how each alias reads (by default like `core`). `parts` are short forms of the
    answer that may stand alone in a text, each with its replacement: a surname, an acronym.
    """

    core: str
    spellings: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[tuple[str, str], ...] = ()
    drawn: str = ""  # the invented words: these may collide, what was kept of the answer not
    is_common: bool = False  # a common word, which takes its case from the text

    def spelling(self, answer: str) -> str:
        return self.spellings.get(answer, self.core)


def searched_answers(item: Item) -> tuple[str, ...]:
    """The answer, its aliases, and small numbers in their other spelling ("8" and "eight")."""
    extra = [other_spelling(answer_form(answer).core) for answer in item.answers]
    return tuple(dict.fromkeys((*item.answers, *filter(None, extra))))


def fabricate(item: Item, entity_type: AnswerType, *, seed: int) -> Fabrication | None:
    """Invent an answer of the type, seeded by (seed, item id).

    It shares no significant word with the answer or an alias and is mentioned neither in the
    question nor in any passage. None where no draw out of many is free of that.
    """
    draws = Draws(rng_for(seed, item.item_id, "faker", entity_type.value))
    invent = _inventor(item, entity_type)
    is_numeric = entity_type in NUMERIC_TYPES and invent is not _invent_other
    is_free = _numbers_free(item) if is_numeric else _words_free(item)
    for _ in range(_TRIES):
        made = invent(item, draws)
        if made.core and is_free(made):
            return made
    return None


Inventor = Callable[[Item, Draws], Fabrication]


def _inventor(item: Item, entity_type: AnswerType) -> Inventor:
    core = natural_core(item.answers)
    probe = random.Random(0)
    is_date = entity_type in (AnswerType.year, AnswerType.date)
    if is_date and shift_date(core, draw_date_shift(probe, core)) != core:
        return _invent_date
    if entity_type in NUMERIC_TYPES and shift_numbers(core, draw_number_shift(probe)) != core:
        return _invent_number
    return _NAME_INVENTORS.get(entity_type, _invent_other)


# --- numbers and dates --------------------------------------------------------------------------


def _invent_number(item: Item, draws: Draws) -> Fabrication:
    shift = draw_number_shift(draws.rng)
    return _shifted(item, lambda text: shift_numbers(text, shift))


def _invent_date(item: Item, draws: Draws) -> Fabrication:
    shift = draw_date_shift(draws.rng, item.answer)
    return _shifted(item, lambda text: shift_date(text, shift))


def _shifted(item: Item, change: Callable[[str], str]) -> Fabrication:
    cores = {answer: answer_form(answer).core for answer in searched_answers(item)}
    new = change(cores[item.answer])
    changed = {answer: change(core) for answer, core in cores.items()}
    return Fabrication(
        core=new,
        # An alias without a number in it reads like the answer.
        spellings={a: text if text != cores[a] else new for a, text in changed.items()},
        drawn=new,
    )


# --- names --------------------------------------------------------------------------------------


def _invent_person(item: Item, draws: Draws) -> Fabrication:
    core, ending = _possessive(natural_core(item.answers))
    pieces, joiners = people.split_people(core)
    true = [name for name in map(people.parse_name, pieces) if name is not None]
    if len(true) != len(pieces):
        return _invent_other(item, draws)
    context = render_passages(item.gold_passages)[:4000]
    made = [people.invent_name(n, draws, gender=people.guess_gender(n, context)) for n in true]
    full = "".join(a + b for a, b in zip((n.full for n in made), (*joiners, ""), strict=True))
    spellings = {item.answer: full + ending}
    for alias in item.aliases:
        bare = answer_form(alias).core
        for old, new in zip(true, made, strict=True):
            spelled = people.rename_alias(bare, old, new)
            is_one_of = len(true) > 1 and fold_text(bare) == fold_text(old.full)
            if spelled and (len(true) == 1 or is_one_of):
                spellings[alias] = spelled
    parts = [pair for old, new in zip(true, made, strict=True) for pair in _name_parts(old, new)]
    parts += [(name, made[0].parts[-1]) for name in _alias_surnames(item)]
    drawn = " ".join(part for name in made for part in name.parts)
    return Fabrication(full + ending, spellings, tuple(dict(reversed(parts)).items()), drawn)


def _name_parts(old: people.Name, new: people.Name) -> list[tuple[str, str]]:
    if len(old.parts) < 2:
        return []
    return [(old.parts[-1], new.parts[-1]), (old.parts[0], new.parts[0])]


def _alias_surnames(item: Item) -> list[str]:
    """Surnames of aliases that are names of people, among aliases that are often noise."""
    names = [people.parse_name(alias) for alias in item.aliases if "," not in alias]
    return people.surnames(
        n for n in names if n and len(n.parts) in (2, 3) and is_given_name(n.parts[0])
    )


def _invent_place(item: Item, draws: Draws) -> Fabrication:
    core = natural_core(item.answers)
    made = things.invent_place(core, draws)
    old, new = re.split(r",\s+", core), re.split(r",\s+", made)
    pairs = tuple(zip(old, new, strict=True)) if len(old) == len(new) > 1 else ()
    by_part = {fold_text(a): b for a, b in pairs}
    spellings = {
        alias: by_part[fold_text(alias)] for alias in item.aliases if fold_text(alias) in by_part
    }
    return Fabrication(made, spellings, pairs, drawn=made)


def _invent_organization(item: Item, draws: Draws) -> Fabrication:
    core, ending = _possessive(natural_core(item.answers))
    made = things.invent_organization(core, draws, question=item.question)
    short, new_short = things.acronym(core), things.acronym(made) or made
    spellings = {
        alias: new_short for alias in item.aliases if alias.replace(".", "") == short != core
    }
    parts = [(short, new_short)] if len(short) > 2 else []
    words, new_words = core.split(), made.split()
    if len(words) > 1:
        parts += [
            (w, n)
            for w, n in ((words[0], new_words[0]), (words[-1], new_words[-1]))
            if things.is_bare_name(w) and things.is_bare_name(n)
        ]
    return Fabrication(made + ending, spellings, tuple(dict(parts).items()), drawn=made)


def _invent_work(item: Item, draws: Draws) -> Fabrication:
    return _plain(things.invent_work(natural_core(item.answers), draws))


def _invent_event(item: Item, draws: Draws) -> Fabrication:
    return _plain(things.invent_event(natural_core(item.answers), draws))


def _invent_other(item: Item, draws: Draws) -> Fabrication:
    core, ending = _possessive(natural_core(item.answers))
    made = things.invent_other(core, draws)
    return Fabrication(made + ending, drawn=made, is_common=True)


def _plain(made: str) -> Fabrication:
    return Fabrication(made, drawn=made)


def _possessive(core: str) -> tuple[str, str]:
    """The core and its possessive ending ("Gandhi's"), which the fabricated answer keeps."""
    match = re.search(r"['’]s$", core)
    return (core[: match.start()], match.group()) if match else (core, "")


_NAME_INVENTORS: dict[AnswerType, Inventor] = {
    AnswerType.person: _invent_person,
    AnswerType.place: _invent_place,
    AnswerType.organization: _invent_organization,
    AnswerType.work_of_art: _invent_work,
    AnswerType.event: _invent_event,
}


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
        words = {word for word in folded_words(made.drawn) if is_significant(word)}
        return fold_text(made.core) not in forbidden and bool(words) and words.isdisjoint(taken)

    return is_free


def _numbers_free(item: Item) -> Callable[[Fabrication], bool]:
    """Whether the new number or date is in no alias, and mentioned nowhere."""
    text = _everything(item)
    forbidden = {fold_text(answer_form(answer).core) for answer in searched_answers(item)}

    def is_free(made: Fabrication) -> bool:
        values = [made.core, *filter(None, [other_spelling(made.core)])]
        return forbidden.isdisjoint(map(fold_text, values)) and not find_lookalikes(text, values)

    return is_free
