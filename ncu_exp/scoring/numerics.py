"""The check of a fast run: a seeded handful of its requests, scored again by reference."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_exp.config import Numerics
from ncu_exp.records import Score, ScoreRequest

if TYPE_CHECKING:
    from ncu_exp.scoring.local import LocalEngine


@dataclass(frozen=True, slots=True)
class NumericsCheck:
    """The largest difference of a token's log-probability (nats), and what exceeds the bound."""

    checked: int
    max_abs_diff_nats: float
    bound_nats: float
    exceeded: tuple[str, ...]


def check_numerics(
    engine: LocalEngine,
    requests: Sequence[ScoreRequest],
    scores: Sequence[Score],
    *,
    count: int,
    seed: int,
) -> NumericsCheck | None:
    """Score `count` of the requests again by reference and compare token by token.

    `scores[i]` belongs to `requests[i]`. None where there is nothing to compare.
    """
    scored = [i for i, s in enumerate(scores) if s.ok and s.continuations]
    chosen = random.Random(seed).sample(scored, min(count, len(scored)))
    if not chosen:
        return None
    bound = engine.opened.precision.bound_nats
    again = engine.score(
        # No generation: the log-probabilities are what is compared.
        [_without_generation(requests[i]) for i in chosen],
        numerics=Numerics.reference,
        batch_tokens=1,
    )
    worst, exceeded = 0.0, []
    for place, reference in again:
        difference = max_abs_diff(scores[chosen[place]], reference)
        worst = max(worst, difference)
        if not difference <= bound:
            exceeded.append(f"{reference.item_id} ({reference.condition}): {difference:.2e}")
    return NumericsCheck(len(chosen), worst, bound, tuple(exceeded))


def max_abs_diff(one: Score, other: Score) -> float:
    """The largest difference between the token log-probabilities of two scores (nats)."""
    return max(
        (
            abs(a - b)
            for left, right in zip(one.continuations, other.continuations, strict=True)
            for a, b in zip(left.token_logprobs, right.token_logprobs, strict=True)
        ),
        default=0.0,
    )


def _without_generation(request: ScoreRequest) -> ScoreRequest:
    return dataclasses.replace(request, max_new_tokens=0)
