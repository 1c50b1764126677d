"""What the GPU benchmark asks, and the operations that it takes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.gpu_shapes import Shape
from benchmarks.speed_limit import operations
from benchmarks.workload import count_distinct
from ncu_exp.records import Condition, Continuation, Prompt, ScoreRequest
from ncu_exp.scoring.encoding import EncodedContinuation, EncodedRequest

GREEDY_TOKENS = 5  # the default of score.max_new_tokens

# Tokens of the prompts; all prompts share the system prompt, and the adversarial one shares its
# context with the oracle one up to the first replaced word. Lengths vary by a tenth.
HEAD = 36
ZERO = 60
CONTEXT = 270
CONTEXT_SHARED = 150
NOISE = 580


def make_requests(n_items: int, vocabulary: int, *, seed: int = 0) -> list[EncodedRequest]:
    """Four requests per item with five answers in all, as the paper's four conditions ask them."""
    rng = random.Random(seed)

    def draw(length: int) -> tuple[int, ...]:
        return tuple(rng.randrange(vocabulary) for _ in range(length))

    def about(length: int) -> int:
        return round(length * rng.uniform(0.9, 1.1))

    head = draw(HEAD)
    requests: list[EncodedRequest] = []
    for item in range(n_items):
        true, fabricated = (draw(rng.randint(2, 6)) for _ in range(2))
        oracle = head + draw(about(CONTEXT) - HEAD)
        shared = oracle[: about(CONTEXT_SHARED)]
        prompts = {
            Condition.zero: head + draw(about(ZERO) - HEAD),
            Condition.oracle: oracle,
            Condition.adversarial: shared + draw(len(oracle) - len(shared)),
            Condition.noise: head + draw(about(NOISE) - HEAD),
        }
        for condition, prompt in prompts.items():
            answers = {Continuation.true: true}
            if condition is Condition.adversarial:
                answers[Continuation.fabricated] = fabricated
            requests.append(
                EncodedRequest(
                    len(requests),
                    ScoreRequest(f"item-{item}", condition, Prompt(), (), GREEDY_TOKENS),
                    prompt,
                    tuple(
                        EncodedContinuation(kind, "", ids, boundary_merged=False)
                        for kind, ids in answers.items()
                    ),
                )
            )
    return requests


def replace_new_tokens(encoded: EncodedRequest, count: int) -> EncodedRequest:
    """The same request with another number of greedy tokens."""
    return replace(encoded, request=replace(encoded.request, max_new_tokens=count))


@dataclass(frozen=True, slots=True)
class Work:
    """What scoring the answers takes: tokens, one by one and distinct, and operations.

    `operations` are those of the distinct tokens, if each is computed once, by whatever way.
    """

    items: int
    answers: int
    naive_tokens: int
    distinct_tokens: int
    operations: int

    @classmethod
    def of(cls, shape: Shape, requests: Sequence[EncodedRequest]) -> Work:
        answers = [(r.prompt_ids, c.ids) for r in requests for c in r.continuations]
        distinct = count_distinct(answers)
        return cls(
            items=len({r.request.item_id for r in requests}),
            answers=len(answers),
            naive_tokens=sum(len(prompt) + len(ids) for prompt, ids in answers),
            distinct_tokens=distinct.tokens,
            operations=operations(shape.sizes, distinct),
        )
