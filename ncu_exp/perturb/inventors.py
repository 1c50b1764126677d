"""One inventor per kind of answer: a value of that kind, and how every alias reads under it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ncu_exp.perturb import people, terms, things
from ncu_exp.perturb.clauses import reword
from ncu_exp.perturb.dates import draw_date_shift, shift_date
from ncu_exp.perturb.draws import Draws, is_given_name
from ncu_exp.perturb.entities import natural_core
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import answer_form
from ncu_exp.perturb.mentions import find_lookalikes
from ncu_exp.perturb.numerals import draw_number_shift, other_spelling, shift_numbers
from ncu_exp.perturb.patterns import NUMERIC_TYPES, pattern_type
from ncu_exp.perturb.shortforms import ShortForm
from ncu_exp.records import AnswerType, Item, render_passages

_GIVEN_NAME_QUESTION = re.compile(r"\b(?:first|given|middle|christian) name", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fabrication:
    """What stands for the answer, in natural case and without the answer's article.

    `spellings` says how each alias reads (by default like `core`). `parts` are short forms of the
    answer that may stand alone in a text. `drawn` are the invented words alone: these must not
    collide with the item. `is_common`: a common word, which takes its case from the text;
    `is_numeric`: a number or a date, which may stand in the text in another precision;
    `is_clause`: its words may stand in the text, and it as a whole may not.
    """

    core: str
    spellings: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[ShortForm, ...] = ()
    drawn: str = ""
    is_common: bool = False
    is_numeric: bool = False
    is_clause: bool = False

    def spelling(self, answer: str) -> str:
        return self.spellings.get(answer, self.core)


def searched_answers(item: Item) -> tuple[str, ...]:
    """The answer, its aliases, and what says the same in another way.

    Small numbers in their other spelling ("8" and "eight"), a common noun in its other number
    ("laser" and "lasers").
    """
    extra = [other_spelling(answer_form(answer).core) for answer in item.answers]
    noun = natural_core(item)
    if _is_noun(noun):
        extra.append(terms.other_number(noun))
    return tuple(dict.fromkeys((*item.answers, *filter(None, extra))))


def _is_noun(core: str) -> bool:
    """Whether the answer is a common noun or a short term, with a plural of its own."""
    last = core.rpartition(" ")[2]
    is_word = last.isascii() and last.isalpha() and len(last) > 3
    return core.islower() and is_word and not (terms.has_number(core) or terms.is_clause(core))


def _in_other_number(core: str, made: str) -> dict[str, str]:
    """How a common noun in its other number reads."""
    return {terms.other_number(core): terms.other_number(made)} if _is_noun(core) else {}


def answers_to_hide(item: Item) -> list[str]:
    """The forms of the answer that the question does not tell itself.

    A form that stands in the question ("... known as The Friendly Islands?") is what is asked
    about: it stays in the context.
    """
    return [answer for answer in item.answers if not find_lookalikes(item.question, [answer])]


def is_numeric(item: Item, answer: str) -> bool:
    """Whether a form of the answer is a number or a date, and not a name."""
    return pattern_type(answer_form(answer).core, item.question) in NUMERIC_TYPES


Inventor = Callable[[Item, Draws], Fabrication]


# --- numbers and dates --------------------------------------------------------------------------


def invent_number(item: Item, draws: Draws) -> Fabrication:
    """Another number, in the same format and unit."""
    shift = draw_number_shift(draws.rng)
    return shifted(item, draws, lambda text: shift_numbers(text, shift))


def invent_date(item: Item, draws: Draws) -> Fabrication:
    """Another date, in the same format."""
    shift = draw_date_shift(draws.rng, item.answer)
    return shifted(item, draws, lambda text: shift_date(text, shift))


def invent_mixed(item: Item, draws: Draws) -> Fabrication:
    """A term with a number in it ("Category 4"): another number, the same term."""
    return shifted(item, draws, terms.draw_shift(draws.rng, item.answer))


def shifted(item: Item, draws: Draws, change: Callable[[str], str]) -> Fabrication:
    """What a change of its numbers or dates makes of the answer, and of each alias."""
    new = change(natural_core(item))
    spellings = {}
    for answer in searched_answers(item)[1:]:
        core = answer_form(answer).core
        changed = change(core)
        # A name among numbers is another thing ("2006" and who did it then): another name for it.
        spellings[answer] = changed if changed != core else _any_name(core, draws)
    return Fabrication(new, spellings, drawn=new, is_numeric=True)


def _any_name(core: str, draws: Draws) -> str:
    name = people.parse_name(core)
    if name is not None and len(name.parts) > 1 and is_given_name(name.parts[0]):
        return people.invent_name(name, draws, gender="").full
    return terms.invent_term(core, draws)


# --- names --------------------------------------------------------------------------------------


def _invent_person(item: Item, draws: Draws) -> Fabrication:
    true = people_of(natural_core(item))
    if not true:
        return invent_other(item, draws)
    asks_given = _GIVEN_NAME_QUESTION.search(item.question) is not None
    made = [
        people.invent_name(name, draws, gender=gender_in(item, name), asks_given=asks_given)
        for name in true
    ]
    given = draws.first_name(gender_in(item, true[0]))
    return rename_people(item, made, given=given, numbers=numeric_spellings(item, draws))


def people_of(core: str) -> list[people.Name]:
    """The names that the answer consists of; none where a piece of it is no name."""
    names = [people.parse_name(piece) for piece in people.split_people(core)[0]]
    return [name for name in names if name] if all(names) else []


def gender_in(item: Item, name: people.Name) -> str:
    """`female`, `male` or empty, as far as the name and the beginning of the context tell."""
    return people.guess_gender(name, render_passages(item.gold_passages)[:4000])


def rename_people(
    item: Item, made: Sequence[people.Name], *, given: str, numbers: Mapping[str, str]
) -> Fabrication:
    """Other names for the people of the answer, one for each, and for all that is short for them.

    `given` is put before a single name where an alias has more; `numbers` are the spellings of
    aliases that are numbers.
    """
    core, ending = terms.split_possessive(natural_core(item))
    _, joiners = people.split_people(core)
    context = render_passages(item.gold_passages)
    full = "".join(a + b for a, b in zip((n.full for n in made), (*joiners, ""), strict=True))
    spellings = {item.answer: full + ending}
    pairs = list(zip(people_of(core), made, strict=True))
    for alias in item.aliases:
        bare = answer_form(alias).core
        for old, new in pairs:
            spelled = people.rename_alias(bare, old, new, given=given)
            is_one_of_them = fold_text(bare) == fold_text(old.full)
            if spelled and (len(pairs) == 1 or is_one_of_them):
                spellings[alias] = spelled
    parts = [
        ShortForm(found, spelled)
        for old, new in pairs
        for found, spelled in people.other_lengths(context, old, new)
    ]
    parts += [part for old, new in pairs for part in _name_parts(old, new)]
    parts += [
        ShortForm(name, made[0].parts[-1], is_ambiguous=True) for name in _alias_surnames(item)
    ]
    drawn = " ".join(part for name in made for part in name.parts)
    return Fabrication(full + ending, {**spellings, **numbers}, tuple(parts), drawn)


def _name_parts(old: people.Name, new: people.Name) -> list[ShortForm]:
    if len(old.parts) < 2:
        return []
    family, new_family = old.parts[-1], new.parts[-1]
    return [
        ShortForm(family, new_family),
        ShortForm(people.plural(family), people.plural(new_family)),  # "the Darwins"
        ShortForm(old.parts[0], new.parts[0], is_ambiguous=True),
    ]


def _alias_surnames(item: Item) -> list[str]:
    """Surnames of aliases that are names of people, among aliases that are often noise."""
    names = [people.parse_name(alias) for alias in item.aliases if "," not in alias]
    return people.surnames(
        n for n in names if n and len(n.parts) in (2, 3) and is_given_name(n.parts[0])
    )


def _invent_place(item: Item, draws: Draws) -> Fabrication:
    made = things.invent_place(natural_core(item), draws)
    return rename_place(item, made, numbers=numeric_spellings(item, draws))


def rename_place(item: Item, made: str, *, numbers: Mapping[str, str]) -> Fabrication:
    """Another place; of "town, state" each part stands alone for its own."""
    core = natural_core(item)
    old, new = re.split(r",\s+", core), re.split(r",\s+", made)
    if len(old) != len(new) or len(old) == 1:
        return rename(item, made, numbers=numbers)
    by_part = dict(zip(map(fold_text, old), new, strict=True))
    spellings = {a: by_part[fold_text(a)] for a in item.aliases if fold_text(a) in by_part}
    parts = tuple(ShortForm(a, b) for a, b in zip(old, new, strict=True))
    return Fabrication(made, {**spellings, **numbers}, parts, drawn=made)


def _invent_organization(item: Item, draws: Draws) -> Fabrication:
    core, _ = terms.split_possessive(natural_core(item))
    made = things.invent_organization(core, draws, question=item.question)
    return rename_organization(item, made, numbers=numeric_spellings(item, draws))


def rename_organization(item: Item, made: str, *, numbers: Mapping[str, str]) -> Fabrication:
    """Another organisation, with what is short for both: acronyms, a team's own name."""
    core, ending = terms.split_possessive(natural_core(item))
    named = rename(item, made, numbers=numbers)
    short, new_short = things.acronym(core), things.acronym(made) or made
    spellings = {a: new_short for a in item.aliases if a.replace(".", "") == short != core}
    parts = [*named.parts, *_organization_parts(core, made)]
    if len(short) > 2:
        parts.append(ShortForm(short, new_short))
    return Fabrication(made + ending, {**named.spellings, **spellings}, tuple(parts), drawn=made)


def _organization_parts(core: str, made: str) -> list[ShortForm]:
    """A team's own name ("Bears"), or the first word of a firm's ("Houghton")."""
    words, new_words = core.split(), made.split()
    if len(words) < 2:
        return []
    is_plural = words[-1].endswith("s")
    place = -1 if is_plural else 0
    old, new = words[place], new_words[place]
    if not (things.is_bare_name(old) and things.is_bare_name(new)):
        return []
    return [ShortForm(old, new, is_ambiguous=not is_plural)]


def _invent_work(item: Item, draws: Draws) -> Fabrication:
    made = things.invent_work(natural_core(item), draws)
    return Fabrication(made, numeric_spellings(item, draws), drawn=made)


def _invent_event(item: Item, draws: Draws) -> Fabrication:
    made = things.invent_event(natural_core(item), draws)
    return rename(item, made, numbers=numeric_spellings(item, draws))


def rename(
    item: Item, made: str, *, numbers: Mapping[str, str], is_common: bool = False
) -> Fabrication:
    """Another name; where both have a head noun, what stands before or after it is short for it."""
    core, _ = terms.split_possessive(natural_core(item))
    spellings = {**(_in_other_number(core, made) if is_common else {}), **numbers}
    proper, new_proper = things.without_heads(core), things.without_heads(made)
    if not proper or not new_proper:
        return Fabrication(made, spellings, drawn=made, is_common=is_common)
    within = [a for a in item.aliases if f" {fold_text(a)} " in f" {fold_text(proper)} "]
    spellings |= dict.fromkeys(within, new_proper)
    part = ShortForm(proper, new_proper, is_ambiguous=True)
    return Fabrication(made, spellings, (part,), drawn=made, is_common=is_common)


def invent_other(item: Item, draws: Draws) -> Fabrication:
    """Other words of the same class or ending; a name keeps its head noun, an office its title."""
    core, ending = terms.split_possessive(natural_core(item))
    office, country = things.invent_office(core, draws)
    if office:
        return Fabrication(office + ending, numeric_spellings(item, draws), drawn=country)
    made = terms.is_name(core) and things.keep_heads(core, draws, draws.last_name)
    made = made or terms.invent_term(core, draws)
    spellings = _in_other_number(core, made) | numeric_spellings(item, draws)
    return Fabrication(made + ending, spellings, drawn=made, is_common=True)


def invent_clause(item: Item, draws: Draws) -> Fabrication:
    """The same clause with other names, or saying the contrary, or with another object."""
    made = reword(natural_core(item), draws, question=item.question)
    return Fabrication(made, numeric_spellings(item, draws), drawn=made, is_clause=True)


def numeric_spellings(item: Item, draws: Draws) -> dict[str, str]:
    """Numbers and dates among the aliases of a name: each becomes another number or date."""
    shift = terms.draw_shift(draws.rng, " ".join(item.aliases))
    cores = {a: answer_form(a).core for a in item.aliases if is_numeric(item, a)}
    return {alias: shift(core) for alias, core in cores.items()}


NAME_INVENTORS: dict[AnswerType, Inventor] = {
    AnswerType.person: _invent_person,
    AnswerType.place: _invent_place,
    AnswerType.organization: _invent_organization,
    AnswerType.work_of_art: _invent_work,
    AnswerType.event: _invent_event,
}
