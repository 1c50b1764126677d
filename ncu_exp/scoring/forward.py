"""The few calls into a model that every path shares: logits at chosen rows, caches, checks."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class NonFiniteError(ValueError):
    """A log-probability that is NaN or infinite: an error row, never a number."""


def cache_argument(model: Any) -> str:
    """The name under which `model.forward` takes its key-value cache.

    transformers renamed `past_key_values` to `cache` within 5.x.
    """
    parameters = inspect.signature(model.forward).parameters
    return "cache" if "cache" in parameters else "past_key_values"


def log_softmax(logits: torch.Tensor) -> torch.Tensor:
    """Log-probabilities over the full vocabulary, in float32.

    In bfloat16 the same operation moved values by 0.03 nats.
    """
    import torch

    return torch.log_softmax(logits.float(), dim=-1)


def pick(rows: torch.Tensor, ids: Sequence[int]) -> tuple[tuple[float, ...], bool]:
    """The log-probabilities of `ids` in `rows`, and whether each id is its row's arg max.

    `rows`: float32 log-probabilities, shape (len(ids), vocabulary). Raises NonFiniteError.
    """
    import torch

    chosen = torch.tensor(list(ids), device=rows.device)
    values = rows.gather(1, chosen[:, None])[:, 0]
    logprobs = tuple(values.tolist())
    for place, value in enumerate(logprobs):
        if not math.isfinite(value):
            raise NonFiniteError(f"the log-probability of answer token {place} is {value}")
    return logprobs, bool((rows.argmax(dim=-1) == chosen).all())
