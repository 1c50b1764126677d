"""The check of a fast run: a seeded handful of its requests, scored again by reference."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncu_exp.config import Numerics
from ncu_exp.records import ContinuationScore, NumericsCheck, Score, ScoreRequest

if TYPE_CHECKING:
    from ncu_exp.scoring.engine import Engine


class Handful:
    """A seeded draw of `count` scored requests from a stream of unknown length.

    Each request that has a score is as likely in it as any other (Vitter's algorithm R).
    """

    def __init__(self, count: int, *, seed: int) -> None:
        self.pairs: list[tuple[ScoreRequest, Score]] = []
        self._count = count
        self._rng = random.Random(seed)
        self._seen = 0

    def offer(self, request: ScoreRequest, score: Score) -> None:
        if not (score.ok and score.continuations):
            return
        self._seen += 1
        if len(self.pairs) < self._count:
            self.pairs.append((request, score))
        elif (place := self._rng.randrange(self._seen)) < self._count:
            self.pairs[place] = (request, score)


def check_numerics(
    engine: Engine, pairs: Sequence[tuple[ScoreRequest, Score]], *, bound_nats: float
) -> NumericsCheck | None:
    """Score the requests again by reference and compare with their scores, token by token.

    None where there is nothing to compare.
    """
    if not pairs:
        return None
    again = engine.score(
        # No generation: the log-probabilities are what is compared.
        [dataclasses.replace(request, max_new_tokens=0) for request, _ in pairs],
        numerics=Numerics.reference,
        batch_tokens=1,
    )
    worst, exceeded = 0.0, []
    for place, reference in again:
        difference = max_abs_diff(pairs[place][1], reference)
        worst = max(worst, difference)
        if not difference <= bound_nats:
            exceeded.append(f"{reference.item_id} ({reference.condition}): {difference:.2e}")
    return NumericsCheck(len(pairs), worst, bound_nats, tuple(exceeded))


def max_abs_diff(one: Score, other: Score) -> float:
    """The largest difference between the token log-probabilities of two scores (nats)."""
    return max(differences(one.continuations, other.continuations), default=0.0)


def differences(
    ones: Sequence[ContinuationScore], others: Sequence[ContinuationScore]
) -> list[float]:
    """How far each token's log-probability is from the other's (nats), answer by answer."""
    return [
        abs(a - b)
        for one, other in zip(ones, others, strict=True)
        for a, b in zip(one.token_logprobs, other.token_logprobs, strict=True)
    ]
