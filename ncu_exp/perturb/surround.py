"""The contexts around the gold passages: noise, irrelevant text, and the corpus's distractors.

The filler is this project's own text about everyday things; it names nobody and nothing, and a
sentence that mentions an answer or a word of the question is left out for that item.
"""

from __future__ import annotations

import random
from functools import lru_cache
from importlib.resources import files

from ncu_exp.config import DistractorConfig, NoiseConfig, Position
from ncu_exp.perturb.draws import rng_for
from ncu_exp.perturb.mentions import find_lookalikes
from ncu_exp.perturb.words import folded_words, significant_words
from ncu_exp.records import Item, render_passages


def noise_context(item: Item, config: NoiseConfig, *, seed: int) -> str | None:
    """The gold context in the middle of filler, `amount` words of filler per word of it.

    The filler is whole sentences, its length right to within one of them. None where no sentence
    of the filler suits the item.
    """
    gold = render_passages(item.gold_passages)
    words = round(config.amount * len(gold.split()))
    before = {Position.start: 0, Position.centre: words // 2, Position.end: words}[config.position]
    sentences = filler_sentences(item, seed=seed, purpose="noise")
    if not sentences:
        return None
    supply = _Supply(sentences, rng_for(seed, item.item_id, "noise", "order"))
    texts = [supply.take(before), gold, supply.take(words - before)]
    return "\n\n".join(filter(None, texts))


def irrelevant_context(item: Item, *, seed: int) -> str | None:
    """Answer-free filler, as many words as the gold context to within one sentence."""
    sentences = filler_sentences(item, seed=seed, purpose="irrelevant")
    if not sentences:
        return None
    supply = _Supply(sentences, rng_for(seed, item.item_id, "irrelevant", "order"))
    return supply.take(len(render_passages(item.gold_passages).split()))


def distractor_context(item: Item, config: DistractorConfig) -> str | None:
    """The gold passages among the item's own distractors; None where it has none."""
    others, gold = item.distractor_passages, item.gold_passages
    if not others:
        return None
    middle = len(others) // 2
    place = {Position.start: 0, Position.centre: middle, Position.end: len(others)}
    at = place[config.gold_position]
    return render_passages((*others[:at], *gold, *others[at:]))


def filler_sentences(item: Item, *, seed: int, purpose: str) -> list[str]:
    """The filler that says nothing about the item, in an order of the item's own."""
    told = significant_words(item.question)
    suited = [
        sentence
        for sentence in _filler()
        if told.isdisjoint(folded_words(sentence)) and not find_lookalikes(sentence, item.answers)
    ]
    rng_for(seed, item.item_id, purpose).shuffle(suited)
    return suited


class _Supply:
    """Sentences in order, shuffled anew when all have been used."""

    def __init__(self, sentences: list[str], rng: random.Random) -> None:
        self._sentences = sentences
        self._rng = rng
        self._next = 0

    def take(self, words: int) -> str:
        """Sentences of about so many words together: as near as whole sentences come."""
        taken: list[str] = []
        length = 0
        while True:
            sentence = self._peek()
            longer = length + len(sentence.split())
            if abs(longer - words) >= abs(length - words):
                return " ".join(taken)
            taken.append(sentence)
            length = longer
            self._next += 1

    def _peek(self) -> str:
        if self._next == len(self._sentences):
            self._rng.shuffle(self._sentences)
            self._next = 0
        return self._sentences[self._next]


@lru_cache(maxsize=1)
def _filler() -> tuple[str, ...]:
    text = files("ncu_exp.perturb").joinpath("filler.txt").read_text(encoding="utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip())
