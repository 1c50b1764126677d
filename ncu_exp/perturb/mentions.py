"""Where a text mentions an answer: whole words of any script, offsets into the original text.

A mention is found whatever its case, diacritics, quotes, dashes and spaces. It is not found inside
another word ("Croatian") or another number ("7" in 2017, "6" in 1.6 or 6,000), nor in a word that
only looks like a short answer ("kiss" for "Kiss", "us" for "US").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ncu_exp.perturb.boundaries import stands_alone
from ncu_exp.perturb.folding import Folded, fold, fold_text, script
from ncu_exp.perturb.forms import Form, answer_forms
from ncu_exp.perturb.words import FUNCTION_WORDS

_SHORT = 4  # letters; a capitalised answer up to this length needs a capital in the text


@dataclass(frozen=True, slots=True)
class Mention:
    """`text[start:end]` mentions `matched_answer` (characters of the original text)."""

    start: int
    end: int
    matched_answer: str


def find_mentions(text: str, answers: Sequence[str]) -> list[Mention]:
    """Every mention of the answers in the text, in order; longer ones win over what they overlap.

    A possessive ending stays outside, an answer's own article inside ("The Yankees") where it
    stands in the text. Short capitalised answers need a capital, function words the very same
    case; lower-case function words ("a", "no") are never mentions.
    """
    return _search(text, answers, case_fits=_careful_case)


def find_lookalikes(text: str, answers: Sequence[str]) -> list[Mention]:
    """As `find_mentions`, in any case: what a reader or a scorer could still take for an answer.

    Function words keep their case even here: "us" is no "US".
    """
    return _search(text, answers, case_fits=_any_case)


def find_inside_words(text: str, answers: Sequence[str]) -> list[str]:
    """The words and numbers of the text that hold an answer without being one, each once."""
    folded = fold(text)
    found: dict[str, None] = {}
    for form in answer_forms(answers):
        core = fold_text(form.core)
        start = folded.text.find(core)
        while start >= 0:
            end = start + len(core)
            if not stands_alone(folded, start, end):
                found.setdefault(_surrounding_word(folded, start, end))
            start = folded.text.find(core, end)
    return list(found)


def _search(
    text: str, answers: Sequence[str], *, case_fits: Callable[[Form, str, bool], bool]
) -> list[Mention]:
    folded = fold(text)
    found: list[Mention] = []
    for form in answer_forms(answers):
        for start, core_start, end in _whole_words(folded, form):
            first, last = folded.original_span(start, end)
            core = text[folded.starts[core_start] : last]
            if case_fits(form, core, _opens_sentence(text[max(0, first - 8) : first])):
                found.append(Mention(first, last, form.answer))
    return _longest(found)


def _longest(found: list[Mention]) -> list[Mention]:
    """The mentions that are left when longer ones shut out those that they overlap."""
    kept: list[Mention] = []
    taken: set[int] = set()
    for mention in sorted(found, key=lambda m: (m.start - m.end, m.start)):
        covered = range(mention.start, mention.end)
        if taken.isdisjoint(covered):
            kept.append(mention)
            taken.update(covered)
    return sorted(kept, key=lambda m: m.start)


def _whole_words(folded: Folded, form: Form) -> Iterator[tuple[int, int, int]]:
    """Start, start of the core and end of each place where the form stands alone."""
    if re.split("[ -]", fold_text(form.core))[0].rstrip(".!?") not in folded.text:
        return  # true of most of a hundred aliases, and cheap
    pattern = _pattern(form)
    position = 0
    while match := pattern.search(folded.text, position):
        start, core_start, end = match.start(), match.start("core"), match.end()
        if _ends_paragraph(folded.text, end):
            end -= 1
        if stands_alone(folded, core_start, end):
            yield start, core_start, end
            position = end
        else:
            position = core_start + 1


_SPACE = r"(?: +\n? *|\n *)"  # a line may break inside a name, a paragraph may not
_JOINT = rf"(?:-|{_SPACE})"  # "Campbell Bannerman", "Campbell-Bannerman"


@lru_cache(maxsize=4096)
def _pattern(form: Form) -> re.Pattern[str]:
    words = re.split(r" |(?<=[^\W\d])-(?=[^\W\d])", fold_text(form.core))
    core = _JOINT.join(map(re.escape, words))
    core = re.sub(r"(\\\.|!|\\\?)$", r"(?:\1)?", core)  # "Inc.", "Teen Titans Go!"
    lead = _SPACE.join(map(re.escape, fold_text(form.lead).split()))
    return re.compile(
        rf"(?:(?<!\w){lead}{_SPACE})?(?P<core>{core})" if lead else f"(?P<core>{core})"
    )


def _ends_paragraph(text: str, end: int) -> bool:
    """Whether the last character is a full stop that ends the sentence too ("in the U.S.")."""
    return text[end - 1] == "." and re.match(r"['\")\]]*[ ]*(?:\n|$)", text[end:]) is not None


_SENTENCE_END = re.compile(r"(?:^|[.!?:\n]['\")\]]*)\s*['\"(\[“‘]*$")


def _opens_sentence(before: str) -> bool:
    return _SENTENCE_END.search(before) is not None


def _careful_case(form: Form, core: str, opens_sentence: bool) -> bool:
    answer = form.core
    if fold_text(answer) in FUNCTION_WORDS:
        # "US" and "IT" in capitals; "It" and "A" only where no sentence gives them the capital.
        is_capital = core.isupper() and len(core) > 1
        return core == answer and not answer.islower() and (is_capital or not opens_sentence)
    if _needs_capital(form):
        return not core[0].islower()
    return True


def _needs_capital(form: Form) -> bool:
    """A name that is a common word without its capital: "Kiss", "K", "The Office"."""
    answer = form.core
    if " " in answer or not answer[0].isupper():
        return False
    if answer.isupper() and len(answer) >= _SHORT:  # SKODA: capitals that say nothing
        return False
    return len(fold_text(answer)) <= _SHORT or bool(form.lead)


def _any_case(form: Form, core: str, opens_sentence: bool) -> bool:
    if fold_text(form.core) in FUNCTION_WORDS:
        return _careful_case(form, core, opens_sentence)
    return True


_INNER = "-–−'’.,:/"
_LONGEST_WORD = 40  # characters shown on each side; scripts without spaces have no end


def _surrounding_word(folded: Folded, start: int, end: int) -> str:
    text = folded.original
    first, last = folded.original_span(start, end)
    while first > 0 and start - first < _LONGEST_WORD and _goes_on(text, first - 1, -1):
        first -= 1
    while last < len(text) and last - end < _LONGEST_WORD and _goes_on(text, last, 1):
        last += 1
    return text[first:last]


def _goes_on(text: str, index: int, step: int) -> bool:
    """Whether the character belongs to the word: a letter, or a sign with a letter beyond it."""
    if script(text[index]):
        return True
    beyond = index + step
    return text[index] in _INNER and 0 <= beyond < len(text) and bool(script(text[beyond]))
