"""A key-value cache with room for rows to come."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

if TYPE_CHECKING:
    import torch


def roomy_cache(rows: int) -> DynamicCache:
    """transformers' growing cache with room for `rows` rows: a step copies its own and no earlier.

    More of them are taken too, at the price of a copy.
    """
    cache = DynamicCache()
    kind: Any = partial(_RoomyLayer, rows)
    cache.layer_class_to_replicate = kind
    return cache


class _RoomyLayer(DynamicLayer):
    """`keys` and `values`, of shape (batch, heads, rows, size), are the filled part of the room."""

    _layer_type = None  # transformers would take it for every layer of that type

    def __init__(self, rows: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._rows = rows
        self._room: torch.Tensor | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """All keys and values so far, with the new ones behind the earlier."""
        room, start = self._room, 0
        if room is None:
            self.lazy_initialization(key_states, value_states)
        else:
            start = self.get_seq_length()
        batch, heads, new, size = key_states.shape
        end = start + new
        if room is None or end > self._rows:
            self._rows = max(end, self._rows if room is None else 2 * self._rows)
            self._room = key_states.new_empty(2, batch, heads, self._rows, size)
            if room is not None:
                self._room[..., :start, :] = room[..., :start, :]
            room = self._room
        room[0, ..., start:end, :] = key_states
        room[1, ..., start:end, :] = value_states
        self.keys, self.values = room[..., :end, :]
        return self.keys, self.values
