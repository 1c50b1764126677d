"""The key-value cache with room: what it holds is what transformers' own one holds."""

from __future__ import annotations

import pytest
import torch
from transformers import DynamicCache

from ncu_exp.scoring.room import roomy_cache


@pytest.mark.parametrize("rows", [1, 5, 9, 100])
def test_it_holds_what_a_growing_cache_holds(rows: int) -> None:
    ours, theirs = roomy_cache(rows), DynamicCache()
    for new in (4, 1, 3, 1, 1):
        for layer in (0, 1):
            keys, values = torch.randn(2, 1, 3, new, 8)
            found, expected = (c.update(keys, values, layer) for c in (ours, theirs))
            assert torch.equal(found[0], expected[0])
            assert torch.equal(found[1], expected[1])
        assert ours.get_seq_length() == theirs.get_seq_length()


def test_within_its_room_nothing_is_moved() -> None:
    cache = roomy_cache(5)
    first, _ = cache.update(torch.zeros(1, 3, 4, 8), torch.zeros(1, 3, 4, 8), 0)
    second, _ = cache.update(torch.zeros(1, 3, 1, 8), torch.zeros(1, 3, 1, 8), 0)
    assert second.data_ptr() == first.data_ptr()


def test_transformers_goes_on_with_its_own_layers() -> None:
    from transformers.cache_utils import DYNAMIC_LAYER_TYPE_MAPPING, DynamicLayer

    roomy_cache(1)
    assert DYNAMIC_LAYER_TYPE_MAPPING.get("full_attention", DynamicLayer) is DynamicLayer
    assert type(DynamicCache().layer_class_to_replicate()) is DynamicLayer
