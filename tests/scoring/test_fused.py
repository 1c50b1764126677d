"""Layers with fewer passes over memory: which are replaced, by what, and for how long."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch

from ncu_exp.scoring import layers
from ncu_exp.scoring.attention import Piece, Plan, tree_attention
from ncu_exp.scoring.fused import fused, replacements
from tests.tiny import tiny_model


def names(model: Any) -> dict[str, int]:
    return dict(Counter(type(layer).__name__ for layer, _ in replacements(model)))


WHOLE = {"LlamaDecoderLayer": 2, "LlamaRMSNorm": 1, "Linear": 1}  # the last norm, and the head


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        ("llama", WHOLE),
        (
            "qwen2",
            {"Qwen2DecoderLayer": 2, "Qwen2RMSNorm": 1, "Linear": 1},
        ),  # its q, k, v have a bias
        # Its heads are normalised too: only parts of its layers are known.
        ("qwen3", {"Qwen3MLP": 2, "Qwen3RMSNorm": 9, "Linear": 1}),
        # Its norm multiplies by 1 + weight: the probe shows it.
        ("gemma", {"GemmaMLP": 2, "Linear": 1}),
        ("gpt2", {"Linear": 1}),
    ],
)
def test_what_is_replaced(architecture: str, expected: dict[str, int]) -> None:
    model = tiny_model(architecture)
    if architecture == "gemma":
        for name, weight in model.named_parameters():
            if "norm" in name:
                torch.nn.init.normal_(weight)
    assert names(model) == expected


def test_a_layer_without_positions_is_not_taken_for_its_neighbour() -> None:
    """SmolLM3 rotates in some layers and not in others, with the same parts in all of them."""
    model = tiny_model("smollm3")
    assert [layer.self_attn.use_rope for layer in model.model.layers] == [1, 0]
    found = [layer for layer, _ in replacements(model)]
    assert model.model.layers[0] in found
    assert model.model.layers[1] not in found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_layer_of_a_model_in_any_type_is_replaced(dtype: torch.dtype) -> None:
    assert names(tiny_model("llama").to(dtype)) == WHOLE


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("block", [1, 3, 1024])
@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.parametrize("architecture", ["llama", "gemma"])
def test_a_replaced_layer_gives_what_the_layer_gives(
    architecture: str, dtype: torch.dtype, block: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model(architecture).to(dtype)
    found = [
        (layer, forward)
        for layer, forward in replacements(model)
        if not type(layer).__name__.endswith("DecoderLayer")
    ]
    assert len(found) >= 2
    monkeypatch.setattr(layers, "BLOCK_ROWS", block)
    monkeypatch.setattr(layers, "FEW_ROWS", few)
    states = torch.randn(2, 7, 32, dtype=dtype)
    before = states.clone()
    with torch.inference_mode():
        for layer, forward in found:
            torch.testing.assert_close(forward(states), layer(states))
            assert forward(states[:, :0]).shape == layer(states[:, :0]).shape
    assert torch.equal(states, before)


@pytest.mark.parametrize("block", [1, 3, 1024])
@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_a_model_of_replaced_layers_gives_what_the_model_gives(
    architecture: str, block: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model(architecture)
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(weight)
    replacements(model)
    monkeypatch.setattr(layers, "BLOCK_ROWS", block)
    monkeypatch.setattr(layers, "FEW_ROWS", few)
    plan = Plan(0, (Piece(0, 5, ()), Piece(5, 7, ((0, 3),))))
    given = {
        "input_ids": torch.arange(7)[None],
        "position_ids": torch.tensor([[*range(5), 3, 4]]),
        "tree": plan,
    }
    with torch.inference_mode(), tree_attention(model):
        expected = model(**given).logits
        with fused(model):
            found = model(**given).logits
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("asked", [(), (0,), (6,), (2, 3, 4, 5), tuple(range(7))])
def test_the_last_layer_computes_what_is_asked_for(asked: tuple[int, ...]) -> None:
    model = tiny_model("llama")
    plan = Plan(0, (Piece(0, 5, ()), Piece(5, 7, ((0, 3),))))
    given = {
        "input_ids": torch.arange(7)[None],
        "position_ids": torch.tensor([[*range(5), 3, 4]]),
    }
    rows = torch.tensor(asked, dtype=torch.long)
    with torch.inference_mode(), tree_attention(model), fused(model):
        whole = model(**given, tree=plan)
        found = model(**given, tree=replace(plan, asked=asked), logits_to_keep=rows)
    torch.testing.assert_close(found.logits, whole.logits[:, rows])
    for one, other in zip(found.cache.layers, whole.cache.layers, strict=True):
        torch.testing.assert_close(one.keys, other.keys)
        torch.testing.assert_close(one.values, other.values)


@pytest.mark.parametrize("rows", [1, 7, 8, 15, 16, 63, 64, 65])
@pytest.mark.parametrize("has_bias", [True, False])
def test_few_rows_are_multiplied_as_many_are(rows: int, has_bias: bool) -> None:
    torch.manual_seed(rows)
    layer = torch.nn.Linear(24, 40, bias=has_bias)
    states = torch.randn(rows, 24)
    out = layers.linear(states, layer)
    assert out.shape == (rows, 40)
    torch.testing.assert_close(out, layer(states))


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("rows", [3, layers.FEW_ROWS + 1])
def test_bf16_is_multiplied_in_float32_where_it_is_slow(
    rows: int, has_bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "multiplies_bf16", lambda: False)
    torch.manual_seed(0)
    layer = torch.nn.Linear(96, 160, bias=has_bias, dtype=torch.bfloat16)
    states = torch.randn(rows, 96, dtype=torch.bfloat16)
    with torch.inference_mode():
        out = layers.linear(states, layer)
        exact = torch.nn.functional.linear(
            states.double(), layer.weight.double(), layer.bias.double() if has_bias else None
        )
    assert out.dtype == torch.bfloat16
    assert (out.double() - exact).abs().max() <= 2**-8 * exact.abs().max()


def test_four_bit_layers_are_replaced_where_bf16_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    from bitsandbytes.nn import Linear4bit, Params4bit

    monkeypatch.setattr(layers, "multiplies_bf16", lambda: False)
    model = tiny_model("llama").to(torch.bfloat16)
    mlp = model.model.layers[0].mlp
    four = Linear4bit(
        32, 64, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4", compress_statistics=True
    )
    four.weight = Params4bit(mlp.gate_proj.weight.data, requires_grad=False, quant_type="nf4")
    mlp.gate_proj = four.to("cpu")
    states = torch.randn(layers.FEW_ROWS + 1, 32, dtype=torch.bfloat16)
    (forward,) = [forward for layer, forward in replacements(model) if layer is mlp.gate_proj]
    with torch.inference_mode():
        plain, wide = mlp.gate_proj(states), forward(states)
    assert wide.dtype == plain.dtype
    assert (wide.float() - plain.float()).abs().max() <= 2**-6 * plain.float().abs().max()


def test_layers_are_replaced_within_and_whole_again_after() -> None:
    model = tiny_model("llama")
    layer = model.model.layers[0]

    def break_off() -> None:
        with fused(model):
            assert "forward" in vars(layer)
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError, match="in between"):
        break_off()
    assert "forward" not in vars(layer)


def test_a_layer_with_a_hook_of_others_is_left_alone() -> None:
    model = tiny_model("llama")
    hooked = model.model.layers[0].mlp
    hooked.forward = hooked.forward
    found = [layer for layer, _ in replacements(model)]
    assert hooked not in found
    assert model.model.layers[0] not in found
    assert model.model.layers[0].input_layernorm in found
    assert model.model.layers[1] in found


def test_a_layer_that_only_looks_alike_is_left_alone() -> None:
    model = tiny_model("llama")
    layer = model.model.layers[1].mlp
    layer.__class__ = type("Halved", (type(layer),), {"forward": lambda self, x: x / 2})
    found = [layer for layer, _ in replacements(model)]
    assert layer not in found
    assert model.model.layers[1] not in found
    assert model.model.layers[0] in found
