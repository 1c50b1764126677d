"""Layers with fewer passes over memory: which are replaced, by what, and for how long."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ncu_exp.scoring import fused as room
from ncu_exp.scoring.fused import fused, replacements
from tests.tiny import tiny_model


def names(model: Any) -> list[str]:
    return sorted({type(layer).__name__ for layer, _ in replacements(model)})


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        ("llama", ["LlamaMLP", "LlamaRMSNorm"]),
        ("qwen2", ["Qwen2MLP", "Qwen2RMSNorm"]),
        ("gemma", ["GemmaMLP"]),  # its norm multiplies by 1 + weight: the probe shows it
        ("gpt2", []),
    ],
)
def test_what_is_replaced(architecture: str, expected: list[str]) -> None:
    model = tiny_model(architecture)
    if architecture == "gemma":
        for name, weight in model.named_parameters():
            if "norm" in name:
                torch.nn.init.normal_(weight)
    assert names(model) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("block", [1, 3, 1024])
def test_a_replaced_layer_gives_what_the_layer_gives(
    dtype: torch.dtype, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "BLOCK_ROWS", block)
    model = tiny_model("llama").to(dtype)
    found = replacements(model)
    assert len(found) == 2 + 5  # layers of each kind in a model of two
    states = torch.randn(2, 7, 32, dtype=dtype)
    before = states.clone()
    with torch.inference_mode():
        for layer, forward in found:
            torch.testing.assert_close(forward(states), layer(states))
    assert torch.equal(states, before)


def test_layers_are_replaced_within_and_whole_again_after() -> None:
    model = tiny_model("llama")
    layer = model.model.layers[0].mlp

    def break_off() -> None:
        with fused(model):
            assert "forward" in vars(layer)
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError, match="in between"):
        break_off()
    assert "forward" not in vars(layer)


def test_a_layer_with_a_hook_of_others_is_left_alone() -> None:
    model = tiny_model("llama")
    layer = model.model.layers[0].mlp
    layer.forward = layer.forward
    assert layer not in [found for found, _ in replacements(model)]


def test_a_layer_that_only_looks_alike_is_left_alone() -> None:
    model = tiny_model("llama")
    layer = model.model.layers[1].mlp
    layer.__class__ = type("Halved", (type(layer),), {"forward": lambda self, x: x / 2})
    found = [layer for layer, _ in replacements(model)]
    assert layer not in found
    assert model.model.layers[0].mlp in found
