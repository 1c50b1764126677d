"""Attention over a token tree: each row attends to its ancestors and itself, and to nothing else.

On a CPU the work is done segment by segment: the segment's rows against the rows above it, all of
them visible, and against each other, causally; the two softmaxes are then merged by their
normalisers. No mask is made and no pair is computed that is no ancestor. On other devices flex
attention skips the blocks of such pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ncu_exp.scoring.tree import joined, stretches

if TYPE_CHECKING:
    import torch

NAME = "ncu_exp_tree"  # among transformers' attention implementations
BLOCK = 128  # rows of a block of flex attention


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
    """The pieces of one forward pass, covering its rows in order; `first` is its first row.

    `asked` are the rows behind which logits are wanted, counted from the first; None for all.
    """

    first: int
    pieces: tuple[Piece, ...]
    asked: tuple[int, ...] | None = None

    def of_asked(self) -> Plan:
        """The plan of the asked rows alone: all of their ancestors stand in the cache."""
        if self.asked is None:
            return self
        runs = iter(stretches([self.first + row for row in self.asked]))
        pieces: list[Piece] = []
        start, end = next(runs, (0, 0))
        for piece in self.pieces:
            while start < min(end, piece.end):
                before = ((piece.start, start),) if start > piece.start else ()
                last = min(end, piece.end)
                pieces.append(Piece(start, last, joined((*piece.above, *before))))
                start, end = (last, end) if last < end else next(runs, (0, 0))
        return Plan(self.first, tuple(pieces))


@contextmanager
def tree_attention(model: Any) -> Iterator[None]:
    """Within it a model takes the argument `tree`, a Plan, and attends as it says."""
    register()
    before = model.config._attn_implementation
    model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(before)
        forget()


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

    The rows of the queries are those of the pieces, one after another.

    A piece of many rows is causal in itself and sees all that is above it: two calls, merged.

    Fewer key than query heads (grouped queries) are read as they are, without copies.
    """
    import torch

    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    _, heads, rows, dim = query.shape
    out = query.new_empty((1, rows, heads, dim))
    done = 0
    for piece in plan.pieces:
        here = slice(done, done + piece.end - piece.start)
        done = here.stop
        asked, place = query[:, :, here], out[:, here].transpose(1, 2)
        if piece.end - piece.start == 1:  # a step of an answer: it sees all of its path
            path = joined((*piece.above, (piece.start, piece.end)))
            place.copy_(flash(asked, _rows(key, path), _rows(value, path), scale=scale)[0])
            continue
        own = slice(piece.start, piece.end)
        result, lse = flash(asked, key[:, :, own], value[:, :, own], 0.0, True, scale=scale)
        if not piece.above:
            place.copy_(result)
            continue
        above, lse_above = flash(
            asked, _rows(key, piece.above), _rows(value, piece.above), scale=scale
        )
        share = torch.sigmoid(lse_above - lse).unsqueeze(-1).to(result.dtype)
        torch.lerp(result, above, share, out=place)
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
    """The same by flex attention, which skips blocks of pairs that are no ancestors.

    Padded to whole blocks, two at least, and never to as many rows as keys: so one compiled graph
    serves every tree, and the kernel for decoding, which refuses some short grouped queries, is
    never asked.
    """
    rows = query.shape[2]
    wide, deep = _padded(rows), _padded(key.shape[2])
    deep += BLOCK * (deep == wide)
    result: torch.Tensor = _flex(query.device.type)(
        _pad(query, wide),
        _pad(key, deep),
        _pad(value, deep),
        block_mask=_block_mask(plan, wide, deep, device=query.device),
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return result[:, :, :rows].transpose(1, 2).contiguous()


def _padded(rows: int) -> int:
    return max(2 * BLOCK, -(-rows // BLOCK) * BLOCK)


def _pad(states: torch.Tensor, rows: int) -> torch.Tensor:
    import torch

    return torch.nn.functional.pad(states, (0, 0, 0, rows - states.shape[2])).contiguous()


@lru_cache(maxsize=2)
def _flex(device_type: str) -> Any:
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    # Uncompiled it computes every pair: right, but for tests on a CPU only. fullgraph: an error,
    # and not that same slow way, where it cannot be compiled.
    if device_type == "cpu":
        return flex_attention
    return torch.compile(flex_attention, dynamic=True, fullgraph=True)


@lru_cache(maxsize=1)  # every layer of a forward pass asks for the same one
def _block_mask(plan: Plan, queries: int, keys: int, *, device: torch.device) -> Any:
    from torch.nn.attention.flex_attention import create_block_mask

    visible = visible_pairs(plan, queries, keys, device=device)
    return create_block_mask(
        lambda batch, head, row, column: visible[row, column],
        None,
        None,
        queries,
        keys,
        device=device,
    )


def forget() -> None:
    """Let go of the last mask: a byte for each pair of rows, on the device."""
    _block_mask.cache_clear()


def visible_pairs(
    plan: Plan, queries: int, keys: int, *, device: torch.device | str = "cpu"
) -> torch.Tensor:
    """Which key row each query row sees, as booleans of shape (queries, keys), made on the device.

    Rows behind the plan's last are padding, and see nothing.
    """
    import torch

    count = len(plan.pieces)
    above = torch.zeros(count + 1, keys, dtype=torch.bool)
    first = torch.full((count + 1,), keys, dtype=torch.long)
    piece_of = torch.full((queries,), count, dtype=torch.long)
    for number, piece in enumerate(plan.pieces):
        piece_of[piece.start - plan.first : piece.end - plan.first] = number
        first[number] = piece.start
        for start, end in piece.above:
            above[number, start:end] = True
    above, first, piece_of = above.to(device), first.to(device), piece_of.to(device)
    own = torch.arange(queries, device=device)[:, None] + plan.first
    column = torch.arange(keys, device=device)
    return above[piece_of] | ((first[piece_of][:, None] <= column) & (column <= own))
