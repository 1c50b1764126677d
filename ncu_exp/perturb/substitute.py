"""The adversarial context: every mention of the answer replaced, everything else left alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import answer_form
from ncu_exp.perturb.inventors import Fabrication
from ncu_exp.perturb.mentions import Mention
from ncu_exp.perturb.numerals import like_case
from ncu_exp.perturb.shortforms import find_parts
from ncu_exp.perturb.terms import has_number
from ncu_exp.records import Span


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    new: str
    answer: str  # the form that was matched; empty for a part


def substitute(
    context: str, mentions: Sequence[Mention], fabrication: Fabrication, *, question: str
) -> tuple[str, tuple[Span, ...]]:
    """Put the fabricated answer for every mention, its parts for what is short for the answer.

    Possessives, capitals and the text's own articles stay, `a` and `an` agree with what follows,
    and a list of several answers ("Utah, Arizona and Nevada") becomes one. Short forms that stand
    in the question, or that may be short for something else, are left. The spans are in order and
    do not overlap.
    """
    edits = [_mention_edit(context, mention, fabrication) for mention in mentions]
    spans = [(edit.start, edit.end) for edit in edits]
    for start, end, new in find_parts(context, fabrication.parts, spans, question=question):
        edits.append(_Edit(start, end, _shout(context[start:end], new), ""))
    edits = _longest(edits)
    if not fabrication.is_common:
        edits = _write_out_first(edits, fabrication.core)
    edits = _merge_lists(context, edits)
    edits = _agree_articles(context, edits)
    return apply_edits(context, [(e.start, e.end, e.new) for e in edits])


def apply_edits(
    context: str, edits: Sequence[tuple[int, int, str]]
) -> tuple[str, tuple[Span, ...]]:
    """The text with ordered, disjoint stretches replaced, and the spans of what was replaced."""
    pieces: list[str] = []
    spans: list[Span] = []
    position = 0
    for start, end, new in edits:
        pieces += [context[position:start], new]
        spans.append(Span(start, end, context[start:end], new))
        position = end
    return "".join([*pieces, context[position:]]), tuple(spans)


def as_asked(fabrication: Fabrication, mentions: Sequence[Mention]) -> Fabrication:
    """The fabrication with the number or date that will stand in the context as its answer.

    The text may have the answer under other spellings only ("December 1972" for a full date). A
    year that stands inside one of them ("1918" in "30 October 1918") stays the answer.
    """
    spellings = [fabrication.spelling(mention.matched_answer) for mention in mentions]
    stands = re.compile(rf"(?<![\w.,]){re.escape(fabrication.core)}(?![\w.,])")
    if not fabrication.is_numeric or any(stands.search(spelling) for spelling in spellings):
        return fabrication
    numbers = [spelling for spelling in spellings if has_number(spelling)]
    return replace(fabrication, core=(numbers or spellings)[0])


def _longest(edits: list[_Edit]) -> list[_Edit]:
    """The edits in order, without those that a longer one overlaps."""
    kept: list[_Edit] = []
    for edit in sorted(edits, key=lambda e: (e.start - e.end, e.start)):
        if all(edit.end <= other.start or other.end <= edit.start for other in kept):
            kept.append(edit)
    return sorted(kept, key=lambda e: e.start)


def _write_out_first(edits: list[_Edit], core: str) -> list[_Edit]:
    """The whole fabricated name at the first mention, where the text has short forms only."""
    if any(fold_text(core) in fold_text(edit.new) for edit in edits):
        return edits
    first = next((edit for edit in edits if edit.answer), edits[0])
    return [replace(edit, new=core) if edit is first else edit for edit in edits]


# --- single edits -------------------------------------------------------------------------------


def _mention_edit(context: str, mention: Mention, fabrication: Fabrication) -> _Edit:
    found = context[mention.start : mention.end]
    start = mention.end - len(_without_lead(found, mention.matched_answer))
    core = context[start : mention.end]
    new = fabrication.spelling(mention.matched_answer)
    form = answer_form(mention.matched_answer)
    if core.islower() and not form.core.islower():
        new = new.lower() if fabrication.is_common or fabrication.is_numeric else new
    elif core[0].isupper() and form.core.islower():
        new = like_case(core, new)
    return _Edit(start, mention.end, _shout(core, new), mention.matched_answer)


def _without_lead(found: str, answer: str) -> str:
    """The mention without the article or preposition of its answer, where the text has it."""
    lead = answer_form(answer).lead
    if lead and fold_text(found).startswith(fold_text(lead) + " "):
        return re.sub(rf"^\s*(?:\S+\s+){{{len(lead.split())}}}", "", found)
    return found


def _shout(found: str, new: str) -> str:
    """All capitals for all capitals, but for what may be an acronym."""
    is_shouted = found.isupper() and (" " in found or len(found) > 5)
    return new.upper() if is_shouted else new


# --- edits among themselves ---------------------------------------------------------------------

_LIST_JOINT = re.compile(r",? (?:and|or|&) |, |/")


def _merge_lists(context: str, edits: list[_Edit]) -> list[_Edit]:
    """One edit for neighbours in a list of different answers that would all read the same."""
    merged: list[_Edit] = []
    for edit in edits:
        last = merged[-1] if merged else None
        if (
            last is not None
            and last.new == edit.new
            and fold_text(last.answer) != fold_text(edit.answer)
            and _LIST_JOINT.fullmatch(context[last.end : edit.start])
        ):
            merged[-1] = _Edit(last.start, edit.end, last.new, edit.answer)
        else:
            merged.append(edit)
    return merged


_ARTICLE_BEFORE = re.compile(r"(?<![\w.'’-])(an?|An?)(\s+)$")
_VOWEL = re.compile(
    r"(?!eu|ew|one\b|once\b|uni(?!n|m)|us(?!h)|uk|ut[ae]|ub)[aeiou]|hono|heir|hour|8|11\b|18\b"
)
_LETTER_WITH_VOWEL = re.compile(r"[AEFHILMNORSX](?![a-z])")


def agree(article: str, word: str) -> str:
    """`a` or `an`, whichever fits the sound of the next word, with the article's capital."""
    is_acronym = re.match(r"[A-Z]{2,}\b|[A-Z]\b", word) is not None
    sounds = _LETTER_WITH_VOWEL.match(word) if is_acronym else _VOWEL.match(fold_text(word))
    return article[0] + ("n" if sounds else "")


def _agree_articles(context: str, edits: list[_Edit]) -> list[_Edit]:
    """Take the article before a replacement into the edit, where it has to change."""
    agreed: list[_Edit] = []
    for edit in edits:
        earliest = max(edit.start - 8, agreed[-1].end if agreed else 0)
        before = _ARTICLE_BEFORE.search(context[earliest : edit.start])
        if before is not None:
            article, space = before.groups()
            wanted = agree(article, edit.new)
            if wanted != article:
                start = edit.start - len(article + space)
                edit = replace(edit, start=start, new=f"{wanted}{space}{edit.new}")
        agreed.append(edit)
    return agreed
