"""What the GPU benchmark asks, and the operations that it takes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.gpu_shapes import Shape
from ncu_exp.records import Condition, Continuation, Prompt, ScoreRequest
from ncu_exp.scoring.encoding import EncodedContinuation, EncodedRequest
from ncu_exp.scoring.tree import TokenTree, build_tree

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
    operations: float

    @classmethod
    def of(cls, shape: Shape, requests: Sequence[EncodedRequest]) -> Work:
        answers = [(r.prompt_ids, c.ids) for r in requests for c in r.continuations]
        # The last token of an answer predicts nothing that is asked for.
        tree = build_tree([prompt + ids[:-1] for prompt, ids in answers])
        rows = {
            row
            for (prompt, _), path in zip(answers, tree.paths, strict=True)
            for row in path[len(prompt) - 1 :]
        }
        return cls(
            items=len({r.request.item_id for r in requests}),
            answers=len(answers),
            naive_tokens=sum(len(prompt) + len(ids) for prompt, ids in answers),
            distinct_tokens=len(tree.tokens),
            operations=operations(shape, tree, head_rows=len(rows)),
        )


def operations(shape: Shape, tree: TokenTree, *, head_rows: int) -> float:
    """Multiplications and additions of a pass over a tree.

    Two for each parameter of a matrix and row of the tree; in each layer's attention four for each
    pair of a row and itself or an ancestor, and unit of width; the head at `head_rows` rows.
    """
    pairs = sum(depth + 1 for depth in tree.depths)
    matrices = 2.0 * shape.matrix_params * len(tree.tokens)
    attention = 4.0 * shape.layers * shape.hidden * pairs
    return matrices + attention + 2.0 * shape.hidden * shape.vocabulary * head_rows
