"""An answer made ready for a search: what of it a text must hold, and what may stand before it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ncu_exp.perturb.folding import fold_text, script
from ncu_exp.perturb.words import FUNCTION_WORDS


@dataclass(frozen=True, slots=True)
class Form:
    """An answer taken apart.

    `core` is the answer without punctuation at its edges and without `lead`, the article or
    preposition before it ("the retina", "in 1966"), which may stand in a text or not. `core` is
    empty where the answer has no word character (")", "---").
    """

    answer: str
    lead: str
    core: str


# Lower case only: a capital makes the word part of a title ("In the Realm of the Hackers").
_LEAD = re.compile(
    r"(?:(?:usually|in|on|at|by|from|to|of|for|during|since|until|after|before|as|with|about|around"
    r"|approximately|nearly|almost|over|under|more than|less than|no more than|up to|an estimated"
    r"|the|a|an)\s+)+(?=\S)"
)
_CAPITAL_LEAD = re.compile(
    r"(?:The|A|An|THE)\s+(?=\S)|(?:In|On|By|From|About|Around|Since|Until)\s+(?=\d)"
)
_ABBREVIATION = re.compile(
    r"(?:(?:^|[\s.])\w|\b(?:jr|sr|inc|ltd|co|corp|bros|st|dr|mr|mrs|esq|ft|mt))\.$", re.IGNORECASE
)
_BRACKETS = {")": "(", "]": "[", "}": "{", "”": "“", "»": "«"}
_OPENERS = {opener: closer for closer, opener in _BRACKETS.items()}


@lru_cache(maxsize=4096)
def answer_form(answer: str) -> Form:
    """Take an answer apart."""
    core = _strip_edges(answer)
    lead = _LEAD.match(core) or _CAPITAL_LEAD.match(core)
    if lead:
        rest = _strip_edges(core[lead.end() :])
        if rest and (fold_text(rest) not in FUNCTION_WORDS or rest[0].isupper()):
            return Form(answer, lead.group().strip(), rest)
    return Form(answer, "", core)


def answer_forms(answers: Sequence[str]) -> list[Form]:
    """The forms to search for, each once; a possessive is left to its bare answer if that is one.

    "Frank Zappa's" beside "Frank Zappa" would swallow the ending that a text needs.
    """
    forms: dict[tuple[str, str], Form] = {}
    for answer in answers:
        form = answer_form(answer)
        if form.core:
            forms.setdefault((form.lead, form.core), form)
    bare = {fold_text(form.core) for form in forms.values()}
    return [form for form in forms.values() if not _is_possessive_of(form.core, bare)]


def _is_possessive_of(core: str, bare: set[str]) -> bool:
    folded = fold_text(core)
    return folded.endswith("'s") and folded[:-2] in bare


def _strip_edges(answer: str) -> str:
    text = answer.strip()
    while text and not _opens(text):
        text = text[1:].lstrip()
    while text and not _closes(text):
        text = text[:-1].rstrip()
    return text if any(script(char) for char in text) else ""


def _opens(text: str) -> bool:
    """Whether the first character belongs to the answer."""
    first, rest = text[0], text[1:]
    if first in ".-−+":
        return rest[:1].isdigit()
    if first == '"':
        return rest[:-1].count('"') % 2 == 1
    if first in _OPENERS:
        return _OPENERS[first] in rest[:-1]
    return bool(script(first)) or is_currency(first)


def _closes(text: str) -> bool:
    """Whether the last character belongs to the answer."""
    last, rest = text[-1], text[:-1]
    if last == ".":
        return bool(_ABBREVIATION.search(text))
    if last == '"':
        return rest.count('"') % 2 == 1
    if last in _BRACKETS:
        return rest.count(_BRACKETS[last]) > rest.count(last)
    return bool(script(last)) or is_currency(last) or last in "%°′″!?+#"


def is_currency(char: str) -> bool:
    """Whether the character is a currency sign."""
    return unicodedata.category(char) == "Sc"
