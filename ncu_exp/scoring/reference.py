"""The reference path: one sequence at a time, one forward pass each, nothing shared.

Slow and plain, so that it can be trusted; every other path is compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ncu_exp.records import ContinuationScore
from ncu_exp.scoring.encoding import EncodedContinuation, EncodedRequest
from ncu_exp.scoring.forward import cache_argument, log_softmax, pick


def score_continuation(
    model: Any, prompt_ids: Sequence[int], continuation: EncodedContinuation
) -> ContinuationScore:
    """Score one continuation by one forward pass over prompt + continuation.

    Raises NonFiniteError.
    """
    import torch

    k = len(continuation.ids)
    ids = torch.tensor([[*prompt_ids, *continuation.ids]], device=model.device)
    with torch.inference_mode():
        # The row of a token predicts the next one: the last k + 1 rows, less the very last.
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=k + 1).logits[0, :-1]
        logprobs, is_greedy = pick(log_softmax(logits), continuation.ids)
    return as_score(continuation, logprobs, is_greedy=is_greedy)


def as_score(
    continuation: EncodedContinuation, logprobs: tuple[float, ...], *, is_greedy: bool
) -> ContinuationScore:
    """The record of a scored continuation."""
    return ContinuationScore(
        continuation=continuation.continuation,
        text=continuation.text,
        token_ids=continuation.ids,
        token_logprobs=logprobs,
        boundary_merged=continuation.boundary_merged,
        is_greedy=is_greedy,
    )


def generate_greedy(
    model: Any, prompt_ids: Sequence[int], *, max_new_tokens: int, stop_ids: Collection[int]
) -> tuple[int, ...]:
    """Up to `max_new_tokens` arg max tokens; a stop token ends the answer and is not part of it.

    Own loop, not `generate`: checkpoints ship sampling settings (a repetition penalty, for one)
    that would change what greedy means.
    """
    step = _step_with_cache(model)
    found: list[int] = []
    upcoming = list(prompt_ids)
    while len(found) < max_new_tokens:
        token = step(upcoming)
        if token in stop_ids:
            break
        found.append(token)
        upcoming = [token]
    return tuple(found)


def _step_with_cache(model: Any) -> Callable[[list[int]], int]:
    """The likeliest token behind the tokens given so far, of which each is given once."""
    import torch

    name = cache_argument(model)
    state: dict[str, Any] = {}  # the model makes the cache that it needs

    def step(tokens: list[int]) -> int:
        ids = torch.tensor([tokens], device=model.device)
        with torch.inference_mode():
            output = model(input_ids=ids, use_cache=True, logits_to_keep=1, **state)
        state[name] = output[name]
        return int(output.logits[0, -1].float().argmax())

    return step


def score_reference(
    model: Any, encoded: EncodedRequest, *, stop_ids: Collection[int]
) -> tuple[tuple[ContinuationScore, ...], tuple[int, ...]]:
    """Scores of every continuation, and the greedy token ids."""
    scores = tuple(score_continuation(model, encoded.prompt_ids, c) for c in encoded.continuations)
    greedy = generate_greedy(
        model,
        encoded.prompt_ids,
        max_new_tokens=encoded.request.max_new_tokens,
        stop_ids=stop_ids,
    )
    return scores, greedy
