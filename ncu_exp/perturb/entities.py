"""What kind of thing an answer names: read off the corpus, the answer, the question, a tagger."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ncu_exp.perturb.dates import YEAR
from ncu_exp.perturb.draws import is_given_name, known_countries, known_states
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import answer_form
from ncu_exp.perturb.mentions import find_mentions
from ncu_exp.perturb.patterns import NUMERIC_TYPES, pattern_type
from ncu_exp.perturb.tagger import Excerpt, excerpt, tag
from ncu_exp.perturb.terms import class_of, is_name
from ncu_exp.perturb.things import asks_for_band
from ncu_exp.perturb.words import (
    EVENT_HEADS,
    FUNCTION_WORDS,
    HEADS,
    ORGANIZATION_HEADS,
    PLACE_HEADS,
    QUALIFIERS,
    TITLES,
    word_list,
)
from ncu_exp.records import AnswerType, Item, render_passages


def answer_types(items: Sequence[Item], *, spacy_model: str) -> list[AnswerType]:
    """The answers' types: the corpus's own, else what patterns, the question and the tagger say.

    In the order of the items. The tagger reads the sentences of first mentions, all at once, and
    only where nothing else settles the type. Raises PerturbationError where it is needed and not
    installed.
    """
    found = [_untagged_type(item) for item in items]
    unsettled = [item for item, kind in zip(items, found, strict=True) if kind is None]
    excerpts = [_excerpt(item) for item in unsettled]
    tags = iter(tag([e for e in excerpts if e is not None], spacy_model=spacy_model))
    settled = iter(
        [
            _tagged_type(item, None if at is None else next(tags))
            for item, at in zip(unsettled, excerpts, strict=True)
        ]
    )
    return [next(settled) if kind is None else kind for kind in found]


def _untagged_type(item: Item) -> AnswerType | None:
    """The type as far as it is settled without the tagger."""
    if item.answer_type is not None:
        return item.answer_type
    core = natural_core(item)
    if _is_yes_no(core, item.question):
        return AnswerType.yes_no
    pattern = pattern_type(core, item.question)
    if pattern is not None:
        return pattern
    if _KIND_OF.search(item.question) or not _may_be_name(item, core):
        return AnswerType.other
    asked = noun_type(item.question)
    return asked if asked is not None else _untagged_name_type(item, core)


@lru_cache(maxsize=256)  # asked for again and again while an item is perturbed
def natural_core(item: Item) -> str:
    """The core of the answer as the gold passages write it: Steve Jobs for STEVE JOBS.

    Where they lack it, an alias says how it is written, in capitals and in order ("Stanton,
    Giancarlo"); else several words in capitals get a capital each.
    """
    core = answer_form(item.answer).core
    others = [answer_form(alias).core for alias in item.aliases]
    family, comma, given = core.partition(", ")
    if comma and fold_text(f"{given} {family}") in map(fold_text, others):
        return f"{given} {family}"
    context = render_passages(item.gold_passages)
    for mention in find_mentions(context, (core,)):
        written = context[mention.start : mention.end]
        if written.isupper() or (not core.isupper() and not (" " in written and is_name(written))):
            return core
        return written if core[0].islower() else written[0].upper() + written[1:]
    if not core.isupper():
        return core
    spelled = [other for other in others if fold_text(other) == fold_text(core)]
    mixed = next((other for other in spelled if not other.isupper()), None)
    if mixed is not None:
        return mixed[0].upper() + mixed[1:]
    if " " not in core and len(core) < 6:  # as likely an acronym
        return core
    return re.sub(r"(['’])S\b", r"\1s", core.title())


# --- yes or no ----------------------------------------------------------------------------------

_WH = re.compile(r"\s*\W*(?:what|which|who|whom|whose|where|when|why|how)\b", re.IGNORECASE)


def _is_yes_no(core: str, question: str) -> bool:
    """Whether "yes" or "no" answers a polar question ("what do you say ..." asks for a word)."""
    return fold_text(core) in ("yes", "no") and _WH.match(question) is None


# --- what the question asks for -----------------------------------------------------------------

_NOUNS: dict[AnswerType, tuple[str, ...]] = {
    AnswerType.person: word_list("""
        actor actress singer songwriter writer author novelist poet playwright screenwriter director
        producer president king queen monarch emperor politician statesman artist painter sculptor
        composer musician rapper comedian footballer player quarterback golfer boxer swimmer driver
        pilot scientist physicist chemist engineer architect inventor explorer philosopher detective
        man woman person character protagonist governor senator minister coach captain host judge
        """),
    AnswerType.place: word_list("""
        city town country state county continent river lake ocean sea mountain island village
        capital street region province nation place location stadium airport port desert suburb
        neighborhood neighbourhood district territory area building
        """),
    AnswerType.organization: word_list("""
        band group team club company university college party airline organisation organization
        corporation manufacturer agency orchestra label school outlet brand studio network
        restaurant museum
        """),
    AnswerType.work_of_art: word_list("""
        film movie book novel song album play show series opera painting musical single sitcom poem
        comic magazine newspaper programme program soundtrack symphony ballet adaptation trilogy
        """),
    AnswerType.event: word_list("war battle festival tournament competition championship award"),
}
_TYPE_OF_NOUN = {noun: kind for kind, nouns in _NOUNS.items() for noun in nouns}
_KIND_OF = re.compile(r"\b(?:type|kind|sort|form|species|breed|style|genre)s? of\b", re.IGNORECASE)
# A question mark inside a word is an apostrophe that was lost: "which children?s series".
_WORDS = r"(?:[\w'’.-]+(?:\?s\b)?\s*)"
_ASKED = re.compile(
    rf"\b(?:wh(?:at|ich) (?:is|was|are|were) the|which|what|name the)\s+({_WORDS}{{1,6}})",
    re.IGNORECASE,
)
_NAME_OF = re.compile(rf"\bnames? of (?:the|an?)?\s*({_WORDS}{{1,4}})", re.IGNORECASE)
_TITLE_OF = re.compile(r"\btitle of\b", re.IGNORECASE)


def noun_type(question: str) -> AnswerType | None:
    """The type that "which <noun>" or "the name of the <noun>" asks for, else None."""
    for pattern in (_NAME_OF, _ASKED):
        for match in pattern.finditer(question):
            found = _head_type(match.group(1))
            if found is not None:
                return found
    return AnswerType.work_of_art if _TITLE_OF.search(question) else None


def _head_type(phrase: str) -> AnswerType | None:
    """The type of the phrase's head: "American film director" asks for a person.

    A possessor is asked for itself: "which country's prime minister".
    """
    found = None
    for word in re.findall(r"[\w'.-]+", fold_text(phrase)):
        noun = word.removesuffix("'s")
        if noun in FUNCTION_WORDS:
            break
        found = _TYPE_OF_NOUN.get(noun, _TYPE_OF_NOUN.get(noun.removesuffix("s"), found))
        if noun != word and found is not None:
            break
    return found


# --- names --------------------------------------------------------------------------------------


def _may_be_name(item: Item, core: str) -> bool:
    """Whether the answer may name something: in capitals, and with capitals in the passages too.

    What ends with a number ("State Route 41", "DVB-S2") is a term with a number in it.
    """
    ends_with_number = re.search(rf"(?<!\S)(?!\(?{YEAR}\)?$)\S*\d\S*$", core) is not None
    if not is_name(core) or ends_with_number:
        return False
    context = render_passages(item.gold_passages)
    mentions = find_mentions(context, (core,))
    return not any(context[mention.start : mention.end].islower() for mention in mentions)


def _untagged_name_type(item: Item, core: str) -> AnswerType | None:
    """The type of a name as far as the question's who or where or its own last word settle it."""
    if _asks(_WHO, item.question):
        return _untagged_who_type(item, core)
    return AnswerType.place if _asks(_WHERE, item.question) else _type_of_head(core)


_WHO = re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE)
_WHERE = re.compile(r"\bwhere\b", re.IGNORECASE)
_ASKS_ELSE = re.compile(r"\b(?:what|which|how)\b", re.IGNORECASE)


def _asks(word: re.Pattern[str], question: str) -> bool:
    return word.search(question) is not None and _ASKS_ELSE.search(question) is None


def _tagged_type(item: Item, tagged: AnswerType | None) -> AnswerType:
    """The type of a name that was not settled before the tagger saw it."""
    words = fold_text(natural_core(item)).split()
    if _asks(_WHO, item.question):  # the small tagger takes many a person for a place
        return AnswerType.organization if tagged is AnswerType.organization else AnswerType.person
    if tagged is None or tagged in NUMERIC_TYPES:
        is_person = 1 < len(words) < 5 and is_given_name(words[0])
        return AnswerType.person if is_person else AnswerType.other
    if tagged is AnswerType.person and answer_form(item.answer).lead:
        return AnswerType.other  # people have no article
    if tagged is AnswerType.place and words[0] in TITLES and words[0] not in QUALIFIERS:
        return AnswerType.person  # Captain Flint
    return tagged


def _type_of_head(core: str) -> AnswerType | None:
    """The type that the name's last word tells: a river is a place, a cup an event."""
    head = fold_text(core).split()[-1].strip(".,")
    if head in EVENT_HEADS:
        return AnswerType.event
    if head in ORGANIZATION_HEADS:
        return AnswerType.organization
    return AnswerType.place if head in PLACE_HEADS else None


_GROUP_DID = re.compile(r"\bwho(?:m)? (?:won|wins|beat|defeated|lost|did)\b", re.IGNORECASE)


def _untagged_who_type(item: Item, core: str) -> AnswerType | None:
    """A person, unless a country, an office or what is plainly an organisation did it.

    Not settled where the question may be about a group, and the name has no article.
    """
    words = fold_text(core).split()
    if fold_text(core) in known_countries() | known_states():
        return AnswerType.place
    if class_of(core) is not None or words[-1].strip(".") in HEADS:
        return AnswerType.organization
    if words[0] in TITLES and "of" in words:
        return AnswerType.other
    has_article = bool(answer_form(item.answer).lead)
    if _GROUP_DID.search(item.question) or asks_for_band(item.question):
        if has_article:
            return AnswerType.organization
        return AnswerType.person if is_given_name(words[0]) else None
    return AnswerType.other if has_article else AnswerType.person


def _excerpt(item: Item) -> Excerpt | None:
    """The sentence of the first mention; None where the gold context has no mention."""
    context = render_passages(item.gold_passages)
    mentions = find_mentions(context, (item.answer,)) or find_mentions(context, item.answers)
    return excerpt(context, mentions[0].start, mentions[0].end) if mentions else None
