"""Attention over a token tree: each row attends to its ancestors and itself, and to nothing else.

On a CPU the work is done segment by segment: the segment's rows against the rows above it, all of
them visible, and against each other, causally; the two softmaxes are then merged by their
normalisers. No mask is made and no pair is computed that is no ancestor. On other devices flex
attention skips the blocks of such pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

NAME = "ncu_exp_tree"  # among transformers' attention implementations


class UnsupportedAttentionError(ValueError):
    """A model whose attention does more than a plain softmax over all ancestors."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows `start` to `end` (exclusive) of the cache, whose ancestors are `above`, in order.

    The rows follow one another: each is the parent of the next.
    """

    start: int
    end: int
    above: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The pieces of one forward pass, covering its rows in order; `first` is its first row."""

    first: int
    pieces: tuple[Piece, ...]


def register() -> None:
    """Make the attention known to transformers under `NAME`; doing it again changes nothing."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, _no_mask)


def _no_mask(*args: Any, **kwargs: Any) -> None:
    return None


def _attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: None,
    scaling: float | None = None,
    dropout: float = 0.0,
    tree: Plan | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' attention interface: query (1, heads, rows, dim) to (1, rows, heads, dim)."""
    if tree is None:
        raise UnsupportedAttentionError("the model does not hand its arguments to its attention")
    for name in ("sliding_window", "softcap", "s_aux", "position_bias"):
        if kwargs.get(name) is not None:
            raise UnsupportedAttentionError(f"the model's attention has a {name}")
    attend = attend_by_segment if query.device.type == "cpu" else attend_by_blocks
    return attend(query, key, value, plan=tree, scale=scaling), None


def attend_by_segment(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    plan: Plan,
    scale: float | None,
) -> torch.Tensor:
    """Attention of each piece with its own kernel calls; key and value hold all rows so far.

    Fewer key than query heads (grouped queries) are read as they are, without copies.
    """
    import torch

    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    _, heads, rows, dim = query.shape
    out = query.new_empty((1, rows, heads, dim))
    for piece in plan.pieces:
        here = slice(piece.start - plan.first, piece.end - plan.first)
        asked = query[:, :, here]
        own = slice(piece.start, piece.end)
        result, lse = flash(asked, key[:, :, own], value[:, :, own], 0.0, True, scale=scale)
        if piece.above:
            above, lse_above = flash(
                asked, _rows(key, piece.above), _rows(value, piece.above), 0.0, False, scale=scale
            )
            share = torch.sigmoid(lse_above - lse).unsqueeze(-1).to(result.dtype)
            result = torch.lerp(result, above, share)
        out[:, here] = result.transpose(1, 2)
    return out


def _rows(states: torch.Tensor, stretches: Sequence[tuple[int, int]]) -> torch.Tensor:
    import torch

    parts = [states[:, :, start:end] for start, end in stretches]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def attend_by_blocks(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    plan: Plan,
    scale: float | None,
) -> torch.Tensor:
    """The same by flex attention, which skips blocks of pairs that are no ancestors."""
    visible = _block_mask(plan, query.shape[2], key.shape[2], device=query.device)
    result: torch.Tensor = _flex(query.device.type)(
        query,
        key,
        value,
        block_mask=visible,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return result.transpose(1, 2).contiguous()


@lru_cache(maxsize=2)
def _flex(device_type: str) -> Any:
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    # Uncompiled it computes every pair: right, but for tests on a CPU only.
    return flex_attention if device_type == "cpu" else torch.compile(flex_attention, dynamic=True)


@lru_cache(maxsize=1)  # every layer of a forward pass asks for the same one
def _block_mask(plan: Plan, queries: int, keys: int, *, device: torch.device) -> Any:
    from torch.nn.attention.flex_attention import create_block_mask

    visible = visible_pairs(plan, queries, keys).to(device)
    return create_block_mask(
        lambda batch, head, row, column: visible[row, column],
        None,
        None,
        queries,
        keys,
        device=device,
    )


def visible_pairs(plan: Plan, queries: int, keys: int) -> torch.Tensor:
    """Which key row each query row sees, as booleans of shape (queries, keys)."""
    import torch

    visible = torch.zeros(queries, keys, dtype=torch.bool)
    for piece in plan.pieces:
        here = slice(piece.start - plan.first, piece.end - plan.first)
        length = piece.end - piece.start
        visible[here, piece.start : piece.end] = torch.ones(length, length, dtype=torch.bool).tril()
        for start, end in piece.above:
            visible[here, start:end] = True
    return visible
