"""Are the scores of a scorer those of the naive loop?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.agreement import BOUND_NATS
from benchmarks.speed_scorers import OURS

# Of the sum over an answer: padding moves it in float32, rounding in bfloat16; another boundary
# between prompt and answer, or a wrong mask, is off by nats.
BOUNDS_NATS = {"fp32": 1e-2, "bf16": 1.5}


@dataclass(frozen=True, slots=True)
class Check:
    """The largest differences over all answers: of the sum, and of the mean over their tokens.

    `texts_differ` counts the greedy answers that are not the loop's; None where none were asked.
    """

    max_diff_nats: float
    max_mean_diff_nats: float
    texts_differ: int | None
    correct: bool


def check(
    name: str,
    found: Mapping[str, Any],
    loop: Mapping[str, Any],
    *,
    precision: str,
    lengths: Sequence[int],
    as_text: Callable[[Sequence[int]], str],
    stop_ids: Collection[int] = (),
) -> Check:
    """Compare the results of a scorer with the loop's; `lengths` are the tokens of each answer.

    A peer has to be within BOUNDS_NATS. Ours has to be, in float32, within the mean's bound of
    benchmarks/agreement.py, with the same greedy tokens; in bfloat16 ties fall either way.
    """
    import numpy as np

    sums, theirs = (np.array([s for r in f["sums"] for s in r]) for f in (found, loop))
    if not sums.shape == theirs.shape == (len(lengths),):
        return Check(float("nan"), float("nan"), None, correct=False)
    differences = np.abs(sums - theirs)  # a NaN stays one in the maximum
    largest, of_mean = float(differences.max()), float((differences / lengths).max())
    texts = _texts_differ(found, loop, as_text=as_text, stop_ids=stop_ids)
    correct = largest <= BOUNDS_NATS[precision]
    if name == OURS and precision == "fp32":
        correct = of_mean <= BOUND_NATS and not texts
    return Check(largest, of_mean, texts, correct)


def _texts_differ(
    found: Mapping[str, Any],
    loop: Mapping[str, Any],
    *,
    as_text: Callable[[Sequence[int]], str],
    stop_ids: Collection[int],
) -> int | None:
    """Token by token where both gave ids, a stop token at the end or not; else by text."""
    if "ids" not in loop:
        return None
    loops = [[i for i in ids if i not in stop_ids] for ids in loop["ids"]]
    if "ids" in found:
        ours = [[i for i in ids if i not in stop_ids] for ids in found["ids"]]
        return sum(a != b for a, b in zip(ours, loops, strict=True))
    texts: list[str] = found["texts"]
    return sum(a != as_text(ids) for a, ids in zip(texts, loops, strict=True))
