"""What kind of thing an answer names: read off the corpus, the answer, the question, a tagger."""

from __future__ import annotations

import re

from ncu_exp.perturb.dates import MONTH, YEAR
from ncu_exp.perturb.draws import is_given_name, known_countries, known_states
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import natural_core
from ncu_exp.perturb.mentions import find_mentions
from ncu_exp.perturb.numerals import DIGITS, NUMBER_WORD, ORDINAL_WORD, SCALE
from ncu_exp.perturb.tagger import Tag, tag_mention
from ncu_exp.perturb.words import FUNCTION_WORDS, HEADS, word_list
from ncu_exp.records import AnswerType, Item, render_passages

NUMERIC_TYPES = frozenset(
    {AnswerType.number, AnswerType.quantity, AnswerType.money, AnswerType.year, AnswerType.date}
)


def answer_type(item: Item, *, spacy_model: str) -> AnswerType:
    """The answer's type: the corpus's own, else what patterns, the question and the tagger say.

    The tagger reads the sentence of the first mention, and only where nothing else settles the
    type. Raises PerturbationError where it is needed and not installed.
    """
    if item.answer_type is not None:
        return item.answer_type
    core = natural_core(item.answers)
    if _is_yes_no(core, item.question):
        return AnswerType.yes_no
    pattern = pattern_type(core, item.question)
    if pattern is not None:
        return pattern
    if _KIND_OF.search(item.question) or not any(c.isupper() for c in core):
        return AnswerType.other  # a common noun; no name to be tagged
    asked = noun_type(item.question)
    return asked if asked is not None else _name_type(item, core, spacy_model)


# --- yes or no ----------------------------------------------------------------------------------

_WH = re.compile(r"\s*\W*(?:what|which|who|whom|whose|where|when|why|how)\b", re.IGNORECASE)


def _is_yes_no(core: str, question: str) -> bool:
    """Whether "yes" or "no" answers a polar question ("what do you say ..." asks for a word)."""
    return fold_text(core) in ("yes", "no") and _WH.match(question) is None


# --- numbers, quantities, money, dates ----------------------------------------------------------

_COUNT_QUESTION = re.compile(
    r"\bhow (?:many|much|long|far|tall|old|big|high|large|deep|wide|fast|often|heavy)\b"
    r"|\bnumber of\b|\bpopulation\b|\bpercent",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(?:when|what (?:month|date|day|time)|which (?:month|date|day)|birthday)\b", re.I
)
_NUMBER = rf"(?:{DIGITS}(?:st|nd|rd|th)?|{NUMBER_WORD}|{ORDINAL_WORD}|{SCALE})"
_NUMBERS = rf"{_NUMBER}(?:(?:\s|-|–|—|/|,?\sand\s|\sto\s|\sor\s)+{_NUMBER})*"
_CURRENCY_WORD = (
    r"(?:dollars?|euros?|pounds?|pence|cents?|yen|rupees?|francs?|pesos?|roubles?|rubles?)"
)
_MONEY = re.compile(
    rf"[A-Z]{{0,3}}[$€£¥₹₩₽]\s?{_NUMBERS}.*|{_NUMBERS}\s?(?:[\w.]+\s)?{_CURRENCY_WORD}", re.I
)
_CLOCK = re.compile(r"\d{1,2}:\d\d\b")
_YEAR_ONLY = re.compile(rf"{YEAR}(?:\s?(?:AD|A\.D\.|CE))?")
_ERA = re.compile(r"\b(?:century|centuries|BCE?|AD|BP)\b|\d0s\b")


def pattern_type(core: str, question: str) -> AnswerType | None:
    """The type of an answer that is built of numbers and date words, else None."""
    counts = _COUNT_QUESTION.search(question) is not None
    if _MONEY.fullmatch(core):
        return AnswerType.money
    if _YEAR_ONLY.fullmatch(core) and not counts:
        return AnswerType.year
    if _CLOCK.search(core):
        return AnswerType.quantity
    if _is_date(core, question) and not counts:
        return AnswerType.date
    if re.fullmatch(_NUMBERS, core, re.IGNORECASE):
        return AnswerType.number
    return AnswerType.quantity if _is_quantity(core) else None


def _is_date(core: str, question: str) -> bool:
    lower_rest = not any(c.isupper() for c in re.sub(rf"\b{MONTH}\b|\b[A-Z]{{2,3}}$", "", core))
    if re.search(rf"\b{MONTH}\b", core):
        return lower_rest and (bool(re.search(r"\d", core)) or bool(_WHEN.search(question)))
    return lower_rest and bool(re.search(rf"\b{YEAR}\b", core) or _ERA.search(core))


def _is_quantity(core: str) -> bool:
    """A number and, after it, a unit: up to five words without a name among them."""
    match = re.match(rf"{_NUMBERS}\b\s?[-%°]?", core, re.IGNORECASE)
    if match is None:
        return False
    unit = core[match.end() :].split()
    return len(unit) <= 5 and not any(word[0].isupper() and len(word) > 3 for word in unit)


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
        neighborhood neighbourhood district territory
        """),
    AnswerType.organization: word_list("""
        band group team club company university college party airline organisation organization
        corporation manufacturer agency orchestra label school outlet brand studio network
        """),
    AnswerType.work_of_art: word_list("""
        film movie book novel song album play show series opera painting musical single sitcom poem
        comic magazine newspaper programme program soundtrack symphony ballet
        """),
    AnswerType.event: word_list("war battle festival tournament competition championship award"),
}
_TYPE_OF_NOUN = {noun: kind for kind, nouns in _NOUNS.items() for noun in nouns}
_KIND_OF = re.compile(r"\b(?:type|kind|sort|form|species|breed|style|genre)s? of\b", re.IGNORECASE)
_ASKED = re.compile(
    r"\b(?:which|what|name (?:the|of the)|what (?:is|was) the)\s+((?:[\w'’.-]+\s*){1,6})", re.I
)
_NAME_OF = re.compile(r"\bnames? of (?:the|an?)?\s*((?:[\w'’.-]+\s*){1,4})", re.IGNORECASE)


def noun_type(question: str) -> AnswerType | None:
    """The type that "which <noun>" or "the name of the <noun>" asks for, else None."""
    for pattern in (_NAME_OF, _ASKED):
        for match in pattern.finditer(question):
            found = _last_known_noun(match.group(1))
            if found is not None:
                return found
    return None


def _last_known_noun(phrase: str) -> AnswerType | None:
    """The type of the phrase's head: "American film director" asks for a person."""
    found = None
    for word in fold_text(phrase).split():
        if word in FUNCTION_WORDS:
            break
        found = _TYPE_OF_NOUN.get(word, _TYPE_OF_NOUN.get(word.removesuffix("s"), found))
    return found


# --- names --------------------------------------------------------------------------------------


def _name_type(item: Item, core: str, spacy_model: str) -> AnswerType:
    question = item.question
    tag = _tag(item, spacy_model)
    if re.search(r"\bwho(?:m|se)?\b", question, re.IGNORECASE):
        return _who_type(core, tag)
    if re.search(r"\bwhere\b", question, re.IGNORECASE):
        return AnswerType.place
    if tag is None or tag.type in NUMERIC_TYPES:
        return AnswerType.other
    return tag.type


def _who_type(core: str, tag: Tag | None) -> AnswerType:
    """A person, unless a country or what is plainly an organisation did it.

    The small tagger takes many a name for an organisation or a place.
    """
    if fold_text(core) in known_countries() | known_states():
        return AnswerType.place
    words = core.split()
    if tag is not None and tag.exact and tag.type is AnswerType.organization:
        has_head = any(fold_text(word).strip(".,") in HEADS for word in words)
        if has_head or (len(words) > 1 and not is_given_name(words[0])):
            return AnswerType.organization
    return AnswerType.person


def _tag(item: Item, spacy_model: str) -> Tag | None:
    """The tagger's word on the first mention; None where the gold context has no mention."""
    context = render_passages(item.gold_passages)
    mentions = find_mentions(context, (item.answer,)) or find_mentions(context, item.answers)
    if not mentions:
        return None
    return tag_mention(context, mentions[0].start, mentions[0].end, spacy_model=spacy_model)
