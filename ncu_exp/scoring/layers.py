"""Layers of a decoder that make few passes over memory: what `fused` puts in the place of others.

As transformers writes them, a decoder layer reads and writes some thirty arrays of rows x hidden
size or more in main memory. Here a block of rows stays in the cache from one operation to the
next, is worked on in place, and products are added to the residual stream by the matrix product
itself. For inference only: what is worked on in place has no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ncu_exp.scoring.attention import Plan, attend_by_segment

if TYPE_CHECKING:
    import torch

BLOCK_ROWS = 1024  # a block of the default model's widest array is 6 MB
FEW_ROWS = 64  # of a greedy step: the product is then computed transposed
WHOLE_ROWS = 8  # and for a multiple of this many rows

Forward = Callable[..., Any]


def blocks(rows: int) -> Iterator[slice]:
    """The rows, a block at a time."""
    for start in range(0, rows, BLOCK_ROWS):
        yield slice(start, start + BLOCK_ROWS)


def linear(states: torch.Tensor, layer: Any) -> torch.Tensor:
    """What an `nn.Linear` gives, for states of shape (rows, features in).

    For few rows in float32 MKL took up to three times as long for states times weights as for
    weights times states, and for 15 rows twice as long as for 16.
    """
    import torch

    rows = len(states)
    if rows > FEW_ROWS and states.dtype == torch.bfloat16 and not multiplies_bf16():
        return _wide(states, layer.weight, layer.bias)
    if rows > FEW_ROWS or states.dtype != torch.float32:
        return torch.nn.functional.linear(states, layer.weight, layer.bias)
    if missing := -rows % WHOLE_ROWS:
        states = torch.nn.functional.pad(states, (0, 0, 0, missing))
    out = torch.mm(layer.weight, states.T).T[:rows]
    return out if layer.bias is None else out.add_(layer.bias)


@cache
def multiplies_bf16() -> bool:
    """Whether products of bfloat16 are quick here: with AVX2 alone they took seven times as long.

    In float32 the same product, rounded once at its end, is what such an instruction gives.
    """
    import torch

    return torch.backends.cpu.get_cpu_capability() != "AVX2"


def _wide(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """The product in float32, rounded to the type of the states."""
    import torch

    wide_bias = None if bias is None else bias.float()
    out = torch.nn.functional.linear(states.float(), weight.float(), wide_bias)
    return out.to(states.dtype)


def four_bit(layer: Any) -> Forward:
    """A `Linear4bit` of bitsandbytes: its weights are unpacked once for all rows."""
    from bitsandbytes.functional import dequantize_4bit

    plain = type(layer).forward

    def forward(states: torch.Tensor) -> torch.Tensor:
        if states.numel() // states.shape[-1] <= FEW_ROWS:
            few: torch.Tensor = plain(layer, states)
            return few
        weight = dequantize_4bit(layer.weight.data, layer.weight.quant_state)
        return _wide(states, weight.to(states.dtype), layer.bias)

    return forward


def add_linear(out: torch.Tensor, states: torch.Tensor, layer: Any) -> None:
    """Add to `out`, in place, what an `nn.Linear` gives.

    Narrower types go the long way, which rounds the product before it is added, as the model does.
    """
    import torch

    if len(states) > FEW_ROWS and states.dtype == torch.float32 and layer.bias is None:
        out.addmm_(states, layer.weight.T)
    else:
        out.add_(linear(states, layer))


def head(layer: Any) -> Forward:
    """An `nn.Linear`: an output head over few rows, or any whose type is slow here."""

    def forward(states: torch.Tensor) -> torch.Tensor:
        rows = states.reshape(-1, states.shape[-1])
        out: torch.Tensor = linear(rows, layer).unflatten(0, states.shape[:-1])
        return out

    return forward


def rms_norm(layer: Any, epsilon: float) -> Forward:
    """x / sqrt(mean(x**2) + epsilon) * weight, in one call into torch."""
    import torch

    def forward(states: torch.Tensor) -> torch.Tensor:
        shape = (states.shape[-1],)
        return torch.nn.functional.rms_norm(states, shape, layer.weight, epsilon)

    return forward


def gated(layer: Any) -> Forward:
    """down(act(gate(x)) * up(x)), a block of rows at a time."""
    inner = _gated_inner(layer)

    def forward(states: torch.Tensor) -> torch.Tensor:
        rows = states.reshape(-1, states.shape[-1])
        out = rows.new_empty(len(rows), layer.down_proj.out_features)
        for block in blocks(len(rows)):
            out[block] = linear(inner(rows[block]), layer.down_proj)
        shaped: torch.Tensor = out.unflatten(0, states.shape[:-1])
        return shaped

    return forward


def _gated_inner(layer: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """act(gate(x)) * up(x) of a block of rows."""
    from torch import nn

    act: Callable[[torch.Tensor], torch.Tensor] = layer.act_fn
    if isinstance(layer.act_fn, nn.SiLU) or type(layer.act_fn).__name__ == "SiLUActivation":

        def act(gate: torch.Tensor) -> torch.Tensor:
            return nn.functional.silu(gate, inplace=True)

    def inner(block: torch.Tensor) -> torch.Tensor:
        return act(linear(block, layer.gate_proj)).mul_(linear(block, layer.up_proj))

    return inner


def decoder(
    layer: Any, norm_before: Forward, norm_between: Forward, *, is_last: bool = False
) -> Forward:
    """x += o(attention(norm(x))); x += down(act(gate(norm(x))) * up(norm(x))).

    The attention over a tree, with rotary positions; for its one sequence (a batch of one). Works
    on its input in place: in a model that is the output of the layer before, or what the embedding
    gave, which nobody asks for again. The last layer of a model leaves the rows as they are that
    nobody asks for, when their keys and values are made.
    """
    attention, mlp = layer.self_attn, layer.mlp
    size = attention.head_dim
    inner = _gated_inner(mlp)

    def project(
        states: torch.Tensor, projections: Sequence[Any], cos: torch.Tensor, sin: torch.Tensor
    ) -> list[torch.Tensor]:
        """Of each projection (rows, heads, size); those but the value are rotated."""
        made = [states.new_empty(len(states), p.out_features // size, size) for p in projections]
        for block in blocks(len(states)):
            normed = norm_before(states[block])
            for out, projection in zip(made, projections, strict=True):
                out[block] = linear(normed, projection).view(-1, *out.shape[1:])
                if projection is not attention.v_proj:
                    rotate(out[block], cos[block], sin[block])
        return made

    def forward(
        hidden_states: torch.Tensor,
        *args: Any,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        tree: Plan,
        **kwargs: Any,
    ) -> torch.Tensor:
        (states,) = hidden_states
        cos, sin = (part[0, :, None, : size // 2] for part in position_embeddings)
        q, k, v = attention.q_proj, attention.k_proj, attention.v_proj
        asked = list(tree.asked) if is_last and tree.asked is not None else None
        if asked is None:
            plan, rows = tree, states
            query, key, value = project(states, (q, k, v), cos, sin)
        else:
            plan, rows = tree.of_asked(), states[asked]
            key, value = project(states, (k, v), cos, sin)
            (query,) = project(rows, (q,), cos[asked], sin[asked])
        cache: Any = kwargs.get("cache", kwargs.get("past_key_values"))
        keys, values = cache.update(_by_head(key), _by_head(value), attention.layer_idx)
        attended = attend_by_segment(
            _by_head(query), keys, values, plan=plan, scale=attention.scaling
        ).flatten(2)[0]
        for block in blocks(len(rows)):
            add_linear(rows[block], attended[block], attention.o_proj)
            add_linear(rows[block], inner(norm_between(rows[block])), mlp.down_proj)
        if asked is not None:
            states[asked] = rows
        return hidden_states

    return forward


def _by_head(states: torch.Tensor) -> torch.Tensor:
    """(rows, heads, size) as (1, heads, rows, size), without a copy."""
    return states.transpose(0, 1).unsqueeze(0)


def rotate(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    """Turn the pairs (i, i + size / 2) of each head by their angles, in place.

    `states`: (rows, heads, size); `cos` and `sin`: (rows, 1, size / 2). Each product is rounded
    before the sum, as transformers' `apply_rotary_pos_emb` does.
    """
    first, second = states.chunk(2, dim=-1)
    turned = first * sin
    first.mul_(cos).sub_(second * sin)
    second.mul_(cos).add_(turned)
