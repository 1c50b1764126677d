"""Which way a model takes is found out, and whichever it is, the scores are the reference's."""

from __future__ import annotations

import random

import pytest

from ncu_exp.config import Numerics
from ncu_exp.scoring.attention import Piece, Plan, attend_by_blocks, attend_by_segment
from ncu_exp.scoring.encoding import encode_request
from ncu_exp.scoring.numerics import max_abs_diff
from ncu_exp.scoring.tree import stretches
from ncu_exp.scoring.treed import make_groups
from ncu_exp.scoring.ways import choose_way
from tests.scoring.test_paths import ask, engine_of, run
from tests.tiny import byte_tokenizer, tiny_model


@pytest.mark.parametrize(
    ("architecture", "way"),
    [
        ("llama", "tree"),
        ("qwen2", "tree"),
        ("gpt2", "tree"),
        ("gemma", "tree"),
        ("mistral", "unpadded"),
        ("bloom", "batched"),
        ("mamba", "reference"),
    ],
)
def test_the_way_of_an_architecture(architecture: str, way: str) -> None:
    model = tiny_model(architecture)
    assert choose_way(model, stop_ids={256}, bound_nats=1e-4).name == way
    engine = engine_of(model)
    rng = random.Random(1)
    requests = [
        ask("ab" * rng.randint(1, 20), "cab", "b", item_id=str(i // 2), n=3) for i in range(6)
    ]
    reference = run(engine, requests, numerics=Numerics.reference)
    for slow, quick in zip(reference, run(engine, requests, numerics=Numerics.fast), strict=True):
        assert slow.ok
        assert max_abs_diff(slow, quick) < 1e-4
        assert slow.greedy_ids == quick.greedy_ids


def test_the_tree_leaves_the_model_as_it_was() -> None:
    model = tiny_model("llama")
    run(engine_of(model), [ask("abc", "d")], numerics=Numerics.fast)
    assert model.config._attn_implementation == "sdpa"


def test_a_group_keeps_an_item_together_and_the_budget() -> None:
    tokenizer = byte_tokenizer()
    requests = [
        encode_request(tokenizer, ask("x" * 30 + tail, "y", item_id=item), index=i)
        for i, (item, tail) in enumerate((item, t) for item in "abcde" for t in ("", "1", "2"))
    ]
    groups = list(make_groups(requests, tree_tokens=70))
    assert [r.index for g in groups for r in g] == list(range(15))
    assert [{r.request.item_id for r in g} for g in groups] == [{"a", "b"}, {"c", "d"}, {"e"}]
    assert [len(g) for g in make_groups(requests, tree_tokens=1)] == [3] * 5


def test_stretches() -> None:
    assert stretches((0, 1, 2, 7, 8, 20)) == ((0, 3), (7, 9), (20, 21))
    assert stretches(()) == ()


# On a CPU flex attention runs uncompiled, for this test alone.
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile:UserWarning")
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_both_kernels_equal_a_masked_softmax(key_heads: int) -> None:
    """By the definition: each row sees its ancestors and itself, in double precision."""
    import torch

    torch.manual_seed(0)
    # Rows 0-2 stand in the cache; 3-5 go on from row 1; 6 and 7 from row 4.
    plan = Plan(3, (Piece(3, 6, ((0, 2),)), Piece(6, 8, ((0, 2), (3, 5)))))
    sees = {3: [0, 1, 3], 4: [0, 1, 3, 4], 5: [0, 1, 3, 4, 5]}
    sees |= {6: [0, 1, 3, 4, 6], 7: [0, 1, 3, 4, 6, 7]}
    query = torch.randn(1, 4, 5, 16)
    key, value = torch.randn(2, 1, key_heads, 8, 16).unbind()
    wide_key, wide_value = (t.repeat_interleave(4 // key_heads, 1).double() for t in (key, value))
    expected = torch.empty(1, 5, 4, 16, dtype=torch.double)
    for row, rows in sees.items():
        scores = (query[:, :, row - 3 : row - 2].double() @ wide_key[:, :, rows].mT) * 0.3
        expected[:, row - 3] = (scores.softmax(-1) @ wide_value[:, :, rows])[:, :, 0]
    for attend in (attend_by_segment, attend_by_blocks):
        found = attend(query, key, value, plan=plan, scale=0.3)
        assert (found.double() - expected).abs().max() < 1e-5
