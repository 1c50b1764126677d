"""Feed-forward and norm layers with fewer passes over memory, for the token tree on a CPU.

As transformers writes them, a gated feed-forward layer makes four arrays of rows x intermediate
size and reads each again from main memory, and an RMSNorm makes six. Here the first works on a
block of rows that stays in the cache, in place, and the second is one call into torch. Each layer
is replaced only while a tree is scored, and only after it gave the same values on a probe; the
reference path never sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import torch

BLOCK_ROWS = 1024  # a block of the default model's widest array is 6 MB

Forward = Any  # a layer's forward: (rows..., hidden) to the same shape
_found: WeakKeyDictionary[Any, list[tuple[Any, Forward]]] = WeakKeyDictionary()


@contextmanager
def fused(model: Any) -> Iterator[None]:
    """Within it the layers of a model on a CPU that can be replaced are; elsewhere it does nothing.

    Inference only: what is worked on in place has no gradient.
    """
    replaced = replacements(model) if model.device.type == "cpu" else []
    for layer, forward in replaced:
        layer.forward = forward  # of the instance, before that of the class
    try:
        yield
    finally:
        for layer, _ in replaced:
            del layer.forward


def replacements(model: Any) -> list[tuple[Any, Forward]]:
    """The layers that can be replaced, each with its forward, found out once for each model."""
    if model not in _found:
        _found[model] = [
            (layer, forward)
            for layer in model.modules()
            if "forward" not in vars(layer)  # hooks of others stay
            and (forward := _candidate(layer)) is not None
            and _is_equal(layer, forward)
        ]
    return _found[model]


def _candidate(layer: Any) -> Forward | None:
    from torch import nn

    projections = [getattr(layer, f"{name}_proj", None) for name in ("gate", "up", "down")]
    if all(type(p) is nn.Linear for p in projections) and callable(getattr(layer, "act_fn", None)):
        return _gated(layer)
    epsilon = getattr(layer, "variance_epsilon", getattr(layer, "eps", None))
    if "RMSNorm" in type(layer).__name__ and isinstance(epsilon, float):
        return _rms_norm(layer, epsilon)
    return None


def _gated(layer: Any) -> Forward:
    """down(act(gate(x)) * up(x)), a block of rows at a time."""
    from torch import nn

    in_place: Callable[[torch.Tensor], torch.Tensor] = layer.act_fn
    if isinstance(layer.act_fn, nn.SiLU) or type(layer.act_fn).__name__ == "SiLUActivation":

        def in_place(gate: torch.Tensor) -> torch.Tensor:
            return nn.functional.silu(gate, inplace=True)

    def forward(states: torch.Tensor) -> torch.Tensor:
        rows = states.reshape(-1, states.shape[-1])
        out = rows.new_empty(len(rows), layer.down_proj.out_features)
        for start in range(0, len(rows), BLOCK_ROWS):
            block = rows[start : start + BLOCK_ROWS]
            gate = in_place(layer.gate_proj(block))
            gate.mul_(layer.up_proj(block))
            out[start : start + BLOCK_ROWS] = layer.down_proj(gate)
        return out.view(*states.shape[:-1], -1)

    return forward


def _rms_norm(layer: Any, epsilon: float) -> Forward:
    import torch

    def forward(states: torch.Tensor) -> torch.Tensor:
        shape = (states.shape[-1],)
        return torch.nn.functional.rms_norm(states, shape, layer.weight, epsilon)

    return forward


def _is_equal(layer: Any, forward: Forward) -> bool:
    """Whether the layer and its replacement agree on a probe, to rounding."""
    import torch

    weight = layer.weight if hasattr(layer, "weight") else layer.gate_proj.weight
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(1, 5, weight.shape[-1], generator=generator).to(weight)
    with torch.inference_mode():
        try:
            torch.testing.assert_close(forward(probe), layer(probe))
        except (AssertionError, TypeError, RuntimeError):
            return False
    return True
