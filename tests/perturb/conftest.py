"""Items for the tests of the perturbations: built by hand, and those of the real samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.perturbations import read
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
    return dict(read(corpora))
