"""The fast ways to score, and which of them a model can take.

A model takes the token tree if a small tree through it equals the reference; one whose attention
does more than a plain softmax over all ancestors (a sliding window, ALiBi, a recurrence) shows it
there, or in its configuration, and goes a plainer way.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ncu_exp.records import Condition, Continuation, Prompt, ScoreRequest
from ncu_exp.scoring.batched import Outcome, make_batches, score_batch
from ncu_exp.scoring.encoding import EncodedContinuation, EncodedRequest
from ncu_exp.scoring.forward import NonFiniteError
from ncu_exp.scoring.numerics import differences
from ncu_exp.scoring.reference import score_reference
from ncu_exp.scoring.treed import make_groups, score_group

log = logging.getLogger(__name__)

PROBE_BUDGET = 64  # all of the probe in one group, so that its requests stand beside each other


@dataclass(frozen=True, slots=True)
class Way:
    """How requests are grouped under a budget of tokens, and how a group is scored."""

    name: str
    group: Callable[[Sequence[EncodedRequest], int], Iterator[list[EncodedRequest]]]
    score: Callable[[Any, Sequence[EncodedRequest], Collection[int], int], list[Outcome]]
    smallest_budget: int  # below it, less memory is not to be had this way

    def run(
        self,
        model: Any,
        requests: Sequence[EncodedRequest],
        stop_ids: Collection[int],
        budget: int,
    ) -> dict[int, Outcome]:
        """Every request's outcome, by its index."""
        return {
            request.index: outcome
            for group in self.group(requests, budget)
            for request, outcome in zip(
                group, self.score(model, group, stop_ids, budget), strict=True
            )
        }


def _alone(requests: Sequence[EncodedRequest], budget: int) -> Iterator[list[EncodedRequest]]:
    return ([request] for request in requests)


def _one_by_one(
    model: Any, batch: Sequence[EncodedRequest], stop_ids: Collection[int], budget: int
) -> list[Outcome]:
    found: list[Outcome] = []
    for request in batch:
        try:
            found.append(score_reference(model, request, stop_ids=stop_ids))
        except NonFiniteError as error:
            found.append(error)
    return found


def _plain(
    model: Any, batch: Sequence[EncodedRequest], stop_ids: Collection[int], budget: int
) -> list[Outcome]:
    return score_batch(model, batch, stop_ids=stop_ids)


TREE = Way(
    "tree",
    lambda requests, budget: make_groups(requests, tree_tokens=budget),
    lambda model, group, stop_ids, budget: score_group(
        model, group, stop_ids=stop_ids, chunk_tokens=budget
    ),
    smallest_budget=64,
)
BATCHED = Way(
    "batched",
    lambda requests, budget: make_batches(requests, batch_tokens=budget),
    _plain,
    smallest_budget=1,
)
# Padding stands between a prompt and its answer in the cache: a window that counts would miscount.
UNPADDED = Way("unpadded", _alone, _plain, smallest_budget=1)
REFERENCE = Way("reference", _alone, _one_by_one, smallest_budget=1)
WAYS = {way.name: way for way in (TREE, BATCHED, UNPADDED, REFERENCE)}


def choose_way(model: Any, *, stop_ids: Collection[int], bound_nats: float) -> Way:
    """The fastest way whose scores of a small probe equal the reference's within the bound."""
    ways = (UNPADDED,) if _has_window(model.config.get_text_config()) else (TREE, BATCHED)
    probe = _probe(int(model.config.get_text_config().vocab_size))
    reference = REFERENCE.run(model, probe, stop_ids, PROBE_BUDGET)
    for way in ways:
        try:
            found = way.run(model, probe, stop_ids, PROBE_BUDGET)
        except (ValueError, TypeError, RuntimeError, NotImplementedError, IndexError) as error:
            log.info("the %s way cannot run this model: %s", way.name, error)
            continue
        difference = max(_difference(found[i], reference[i]) for i in range(len(probe)))
        if difference <= bound_nats:
            return way
        log.info("the %s way is %.1e nats off the reference", way.name, difference)
    return REFERENCE


def _has_window(config: Any) -> bool:
    window = getattr(config, "sliding_window", None)
    layers = getattr(config, "layer_types", None) or ["sliding_attention"]
    return window is not None and any(layer != "full_attention" for layer in layers)


def _difference(one: Outcome, other: Outcome) -> float:
    if isinstance(one, NonFiniteError) or isinstance(other, NonFiniteError):
        return 0.0 if isinstance(one, NonFiniteError) is isinstance(other, NonFiniteError) else 1e9
    return max(differences(one[0], other[0]))


def _probe(vocabulary: int) -> list[EncodedRequest]:
    """Three requests that share a prefix and part, with two answers each."""
    rng = random.Random(0)

    def draw(length: int) -> tuple[int, ...]:
        return tuple(rng.randrange(vocabulary) for _ in range(length))

    shared = draw(9)
    requests = []
    for index, prompt in enumerate((shared, shared + draw(13), shared[:5] + draw(4))):
        answers = tuple(
            EncodedContinuation(kind, "", draw(3), boundary_merged=False) for kind in Continuation
        )
        asked = ScoreRequest("probe", Condition.zero, Prompt(), (), max_new_tokens=2)
        requests.append(EncodedRequest(index, asked, prompt, answers))
    return requests
