"""The ways of scoring that the GPU benchmark compares, and how far one is from the reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncu_exp.records import Condition
from ncu_exp.scoring.batched import Outcome
from ncu_exp.scoring.encoding import EncodedRequest
from ncu_exp.scoring.forward import NonFiniteError
from ncu_exp.scoring.numerics import differences
from ncu_exp.scoring.ways import BATCHED, REFERENCE, TREE, Way

NAIVE = "naive loop"
LARGEST_BUDGET = 16384


@dataclass(frozen=True, slots=True)
class Contender:
    """A way under a budget of tokens."""

    name: str
    way: Way
    budget: int

    def run(self, model: Any, requests: Sequence[EncodedRequest]) -> dict[int, Outcome]:
        """Every request's outcome, by its index; no token ends a greedy answer."""
        return self.way.run(model, requests, (), self.budget)


def contenders() -> list[Contender]:
    """The ways that are compared, the naive loop (a forward pass for each answer) first."""
    return [
        Contender(NAIVE, REFERENCE, 1),
        Contender("batched 4096", BATCHED, 4096),
        Contender("tree 4096", TREE, 4096),
        Contender(f"tree {LARGEST_BUDGET}", TREE, LARGEST_BUDGET),
    ]


def compare(
    outcomes: Mapping[int, Outcome], reference: Mapping[int, Outcome]
) -> dict[str, float | None]:
    """The differences of the tokens' log-probabilities (nats; None if not finite), greedy answers.

    `greedy_equal` is the share of requests with the same greedy answer; it is not judged, since
    two tokens may be as likely as each other.
    """
    found_differences: list[float] = []
    greedy = 0
    for index, expected in reference.items():
        found = outcomes[index]
        if isinstance(expected, NonFiniteError) or isinstance(found, NonFiniteError):
            found_differences.append(math.nan)
            continue
        greedy += expected[1] == found[1]
        found_differences += differences(expected[0], found[0])
    # NumPy's maximum of anything with NaN is NaN; Python's may hide it.
    largest, median = float(np.max(found_differences)), float(np.median(found_differences))
    return {
        "max_abs_diff_nats": largest if math.isfinite(largest) else None,
        "median_abs_diff_nats": median if math.isfinite(median) else None,
        "greedy_equal": greedy / len(reference),
    }


def control_nats(requests: Sequence[EncodedRequest], reference: Mapping[int, Outcome]) -> float:
    """The largest difference between a true answer's tokens behind two contexts of its item.

    The oracle and the adversarial prompt share their first half: what a way that lets a row see
    the wrong branch would get wrong is of this size.
    """
    by_item: dict[str, dict[Condition, tuple[float, ...]]] = {}
    for request in requests:
        outcome = reference[request.index]
        if not isinstance(outcome, NonFiniteError):
            found = by_item.setdefault(request.request.item_id, {})
            found[request.request.condition] = outcome[0][0].token_logprobs
    pairs = [
        zip(found[Condition.oracle], found[Condition.adversarial], strict=True)
        for found in by_item.values()
        if {Condition.oracle, Condition.adversarial} <= set(found)
    ]
    return max((abs(a - b) for pair in pairs for a, b in pair), default=0.0)
