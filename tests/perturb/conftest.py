"""Items for the tests of the perturbations: built by hand, and read off the real samples."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ncu_exp.config import DistractorConfig, NoiseConfig, PerturbConfig, Policy, Position
from ncu_exp.records import AnswerType, Item, Passage

MakeItem = Callable[..., Item]


@pytest.fixture(scope="session")
def config() -> PerturbConfig:
    return PerturbConfig(
        policy=Policy.faker,
        seed=0,
        spacy_model="en_core_web_sm",
        noise=NoiseConfig(amount=2.0, position=Position.centre),
        distractor=DistractorConfig(gold_position=Position.centre),
    )


@pytest.fixture(scope="session")
def make_item() -> MakeItem:
    def make(
        text: str,
        answer: str,
        *aliases: str,
        question: str = "Which one is meant here?",
        title: str = "",
        others: tuple[str, ...] = (),
        answer_type: AnswerType | None = None,
        item_id: str = "item-1",
    ) -> Item:
        passages = (Passage(title, text), *(Passage("", other, is_gold=False) for other in others))
        return Item(
            item_id=item_id,
            corpus="local",
            question=question,
            answer=answer,
            aliases=aliases,
            passages=passages,
            answer_type=answer_type,
        )

    return make


@pytest.fixture(scope="session")
def real_items(corpora: Path) -> dict[str, list[Item]]:
    """The real samples that have a context, by corpus."""
    return {
        "nq": list(_nq(corpora / "nq_gold/nq-open-oracle.jsonl")),
        "triviaqa": list(_triviaqa(corpora / "triviaqa/rc.wikipedia.excerpts.jsonl")),
        "full_pages": list(_triviaqa(corpora / "triviaqa/rc.wikipedia.full_pages.jsonl")),
        "hotpotqa": list(_hotpotqa(corpora / "hotpotqa/distractor.validation.jsonl")),
        "squad": list(_squad(corpora / "squad/validation.jsonl")),
    }


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    # Split on "\n" alone: a real row holds U+0085, at which str.splitlines() would cut it.
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def _item(row_id: str, corpus: str, question: str, answers: list[str], *passages: Passage) -> Item:
    answer, *aliases = dict.fromkeys(answer for answer in answers if answer.strip())
    return Item(row_id, corpus, question, answer, tuple(aliases), passages)


def _nq(path: Path) -> Iterator[Item]:
    for number, row in enumerate(_rows(path)):
        passages = [Passage(c["title"], c["text"], c["isgold"]) for c in row["ctxs"]]
        yield _item(f"row:{number}", "nq", row["question"], row["answers"], *passages)


def _triviaqa(path: Path) -> Iterator[Item]:
    for row in _rows(path):
        pages = row["entity_pages"]
        texts = zip(pages["title"], pages["wiki_context"], strict=True)
        answers = [row["answer"]["value"], *row["answer"]["aliases"]]
        passages = [Passage(title, text) for title, text in texts]
        yield _item(row["question_id"], "triviaqa", row["question"], answers, *passages)


def _hotpotqa(path: Path) -> Iterator[Item]:
    for row in _rows(path):
        gold = set(row["supporting_facts"]["title"])
        texts = zip(row["context"]["title"], row["context"]["sentences"], strict=True)
        passages = [Passage(title, "".join(text), title in gold) for title, text in texts]
        yield _item(row["id"], "hotpotqa", row["question"], [row["answer"]], *passages)


def _squad(path: Path) -> Iterator[Item]:
    for row in _rows(path):
        passage = Passage(row["title"].replace("_", " "), row["context"])
        yield _item(row["id"], "squad", row["question"], row["answers"]["text"], passage)
