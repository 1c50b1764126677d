"""Where a text mentions an answer: whole words of any script, offsets into the original text.

A mention is found whatever its case, diacritics, quotes, dashes and spaces. It is not found inside
another word ("Croatian"), inside another number ("7" in 2017, "6" in 1.6 or 6,000) or in a word
that only looks like a short answer ("kiss" for "Kiss", "us" for "US").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ncu_exp.perturb.folding import Folded, fold, fold_text, is_mark, script
from ncu_exp.perturb.numerals import MONTH, NUMBER_WORD, SCALE
from ncu_exp.perturb.words import FUNCTION_WORDS


@dataclass(frozen=True, slots=True)
class Mention:
    """`text[start:end]` mentions `matched_answer` (characters of the original text)."""

    start: int
    end: int
    matched_answer: str


@dataclass(frozen=True, slots=True)
class Form:
    """An answer made ready for the search.

    `core` is the answer without punctuation at its edges and without `lead`, the article or
    preposition before it ("the retina", "in 1966"), which may stand in the text or not. Empty
    where the answer has no word character.
    """

    answer: str
    lead: str
    core: str


def find_mentions(text: str, answers: Sequence[str]) -> list[Mention]:
    """Every mention of the answers in the text, in order; longer ones win over what they overlap.

    Short capitalised answers (up to four letters) need a capital in the text, function words the
    very same case; lower-case function words ("a", "no") are never mentions.
    """
    return _search(text, answers, _case_fits)


def find_lookalikes(text: str, answers: Sequence[str]) -> list[Mention]:
    """As `find_mentions`, in any case: what a reader or a scorer could still take for an answer.

    Only function words keep their case: "us" in a text is no "US".
    """
    return _search(text, answers, _case_fits_loosely)


def has_word_character(answer: str) -> bool:
    """Whether there is anything in the answer to search for (not so in ")" and "---")."""
    return bool(answer_form(answer).core)


def occurs_inside_words(text: str, answers: Sequence[str]) -> list[str]:
    """The words of the text that hold an answer without being one, in order, each once."""
    folded = fold(text)
    found: dict[str, None] = {}
    for form in _forms(answers):
        core = fold_text(form.core)
        start = folded.text.find(core)
        while start >= 0:
            end = start + len(core)
            if _joins_left(folded, start, end) or _joins_right(folded, start, end):
                found.setdefault(_surrounding_word(folded, start, end))
            start = folded.text.find(core, end)
    return list(found)


# --- the search ---------------------------------------------------------------------------------


def _search(
    text: str, answers: Sequence[str], case_fits: Callable[[Form, str, bool], bool]
) -> list[Mention]:
    folded = fold(text)
    found: list[Mention] = []
    for form in _forms(answers):
        for start, end in _whole_words(folded, form):
            first, last = folded.original_span(start, end)
            if case_fits(form, text[first:last], _opens_sentence(folded, start)):
                found.append(Mention(first, last, form.answer))
    return _longest(found)


def _longest(found: list[Mention]) -> list[Mention]:
    """The mentions that are left when longer ones shut out those that they overlap."""
    kept: list[Mention] = []
    taken: set[int] = set()
    for mention in sorted(found, key=lambda m: (m.start - m.end, m.start)):
        if mention.start not in taken and mention.end - 1 not in taken:
            kept.append(mention)
            taken.update(range(mention.start, mention.end))
    return sorted(kept, key=lambda m: m.start)


def _whole_words(folded: Folded, form: Form) -> Iterator[tuple[int, int]]:
    first_word = fold_text(form.core).split(" ")[0]
    if first_word not in folded.text:  # cheap, and true of most of a hundred aliases
        return
    pattern = _pattern(form)
    position = 0
    while match := pattern.search(folded.text, position):
        start, end = match.span()
        end = _without_final_stop(folded.text, start, end)
        core_start = match.start("core")
        if _joins_left(folded, core_start, end) or _joins_right(folded, core_start, end):
            position = start + 1
        else:
            yield start, end
            position = end


_SPACE = r"(?: +\n? *|\n *)"


@lru_cache(maxsize=4096)
def _pattern(form: Form) -> re.Pattern[str]:
    core = _SPACE.join(map(re.escape, fold_text(form.core).split(" ")))
    # A final mark of the name may be missing in the text ("Inc.", "Teen Titans Go!").
    core = re.sub(r"(\\\.|!|\\\?)$", r"(?:\1)?", core)
    lead = _SPACE.join(map(re.escape, fold_text(form.lead).split()))
    before = rf"(?:(?<!\w){lead}{_SPACE})?" if lead else ""
    return re.compile(f"{before}(?P<core>{core})")


def _without_final_stop(text: str, start: int, end: int) -> int:
    """Leave out the full stop of an abbreviation where it ends a paragraph too."""
    if text[end - 1] == "." and end - start > 1 and re.match(r"['\")\]]*\s*(?:\n|$)", text[end:]):
        return end - 1
    return end


# --- answers ------------------------------------------------------------------------------------

_LEAD = re.compile(
    r"(?:(?:usually|in|on|at|by|from|to|of|for|during|since|until|after|before|as|with|about|around"
    r"|approximately|nearly|almost|over|under|more than|less than|no more than|up to|an estimated"
    r"|the|a|an)\s+)+(?=\S)"
)
_ARTICLE = re.compile(r"(?:The|A|An)\s+(?=\S)|(?:In|On|By|From|About|Around)\s+(?=\d)")
_ABBREVIATION = re.compile(
    r"(?:(?:^|[\s.])\w|\b(?:jr|sr|inc|ltd|co|corp|bros|st|dr|mr|mrs|esq|ft|mt))\.$", re.IGNORECASE
)
_CLOSERS = {")": "(", "]": "[", "}": "{", '"': '"', "”": "“", "»": "«", "'": "'", "’": "‘"}
_OPENERS = {opener: closer for closer, opener in _CLOSERS.items()}


def _forms(answers: Sequence[str]) -> list[Form]:
    """One form per distinct core; an answer's possessive is dropped where the bare answer exists."""
    forms: dict[tuple[str, str], Form] = {}
    for answer in answers:
        form = answer_form(answer)
        if form.core:
            forms.setdefault((form.lead, form.core), form)
    bare = {fold_text(form.core) for form in forms.values()}
    return [form for form in forms.values() if _bare_of_possessive(form.core) not in bare]


def _bare_of_possessive(core: str) -> str:
    folded = fold_text(core)
    return folded[:-2] if folded.endswith("'s") else ""


@lru_cache(maxsize=4096)
def answer_form(answer: str) -> Form:
    """Take an answer apart: what leads it, and the core that a text must hold."""
    core = _strip_edges(answer)
    lead = _LEAD.match(core) or _ARTICLE.match(core)
    rest = _strip_edges(core[lead.end() :]) if lead else ""
    if lead and rest and fold_text(rest) not in FUNCTION_WORDS:
        return Form(answer, lead.group().strip(), rest)
    return Form(answer, "", core)


def _strip_edges(answer: str) -> str:
    text = answer.strip()
    while text and not _opens(text):
        text = text[1:].lstrip()
    while text and not _closes(text):
        text = text[:-1].rstrip()
    if not any(script(char) for char in text):
        return ""
    return text


def _opens(text: str) -> bool:
    """Whether the first character belongs to the answer."""
    first, rest = text[0], text[1:]
    if first in ".-−+" and rest[:1].isdigit():
        return True
    if first in _OPENERS and _OPENERS[first] in rest[:-1]:
        return True
    return bool(script(first)) or _is_currency(first)


def _closes(text: str) -> bool:
    """Whether the last character belongs to the answer."""
    last, rest = text[-1], text[:-1]
    if last in _CLOSERS and _CLOSERS[last] in rest[1:] and not script(rest[-1:] or " ") == "":
        return rest.count(_CLOSERS[last]) % 2 == 1 or _CLOSERS[last] != last
    if last == ".":
        return bool(_ABBREVIATION.search(text))
    return bool(script(last)) or _is_currency(last) or last in "%°′″!?+#"


def _is_currency(char: str) -> bool:
    return unicodedata.category(char) == "Sc"
