"""Which layers of a model on a CPU are replaced by those of `layers`, and for how long.

A layer is replaced only while a tree is scored, and only after its replacement gave the same
values on a probe; the reference path never sees one. Whole decoder layers where their parts are
those that `layers` knows; elsewhere their feed-forward and norm layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ncu_exp.scoring import layers
from ncu_exp.scoring.attention import Piece, Plan, tree_attention
from ncu_exp.scoring.forward import cache_argument

if TYPE_CHECKING:
    import torch

_found: WeakKeyDictionary[Any, list[tuple[Any, layers.Forward]]] = WeakKeyDictionary()

DECODER_PARTS = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
ATTENTION_PARTS = {"q_proj", "k_proj", "v_proj", "o_proj"}
# The probe: enough rows for both kinds of products, in a tree of two branches; then a step.
MANY = layers.FEW_ROWS + 8
BRANCHES = (Piece(0, 40, ()), Piece(40, MANY, ((0, 20),)))
ASKED = (0, 19, 20, 39, 40, 41, MANY - 1)
STEP = Plan(
    MANY, (Piece(MANY, MANY + 1, ((0, 20), (40, 60))), Piece(MANY + 1, MANY + 3, ((0, 9),)))
)
DEPTHS = (*range(40), *range(20, MANY - 20), 40, 9, 10)


@contextmanager
def fused(model: Any) -> Iterator[None]:
    """Within it the layers of a model on a CPU that can be replaced are; elsewhere it does nothing.

    Inference only, and within `tree_attention` only.
    """
    replaced = replacements(model) if model.device.type == "cpu" else []
    for layer, forward in replaced:
        layer.forward = forward  # of the instance, before that of the class
    try:
        yield
    finally:
        for layer, _ in replaced:
            del layer.forward


def replacements(model: Any) -> list[tuple[Any, layers.Forward]]:
    """The layers that can be replaced, each with its forward, found out once for each model."""
    import torch

    if model not in _found:
        with torch.inference_mode(), tree_attention(model):
            _found[model] = list(_replacements(model))
    return _found[model]


def _replacements(model: Any) -> Iterator[tuple[Any, layers.Forward]]:
    within: set[Any] = set()  # what a replaced layer does not call, and itself
    last = getattr(model.config.get_text_config(), "num_hidden_layers", 0) - 1
    for layer in model.modules():
        if layer in within or any("forward" in vars(part) for part in layer.modules()):
            continue  # hooks of others stay
        forward = _decoder(layer, last=last)
        if forward is not None and _decodes_equally(model, layer, forward, last=last):
            within.update(layer.modules())
        else:
            forward = _part(layer)
            is_head = layer is model.get_output_embeddings()
            if forward is None and _is_linear(layer) and (is_head or _is_slow(layer.weight.dtype)):
                forward = layers.head(layer)
            if forward is None and _is_slow_four_bit(layer):
                forward = layers.four_bit(layer)
            if forward is None or not _is_equal(layer, forward):
                continue
            within.update(layer.modules())
        yield layer, forward


def _is_linear(layer: Any) -> bool:
    from torch import nn

    return type(layer) is nn.Linear  # a quantised one is a kind of it


def _is_slow_four_bit(layer: Any) -> bool:
    """Whether a layer multiplies by 4-bit weights in bfloat16 where that is slow."""
    return (
        type(layer).__name__ == "Linear4bit"
        and layer.compute_dtype is not None
        and _is_slow(layer.compute_dtype)
    )


def _is_slow(dtype: torch.dtype) -> bool:
    import torch

    return dtype == torch.bfloat16 and not layers.multiplies_bf16()


def _part(layer: Any) -> layers.Forward | None:
    """What may stand for a feed-forward or a norm layer."""
    return layers.gated(layer) if _is_gated(layer) else _norm(layer)


def _is_gated(layer: Any) -> bool:
    projections = [getattr(layer, f"{name}_proj", None) for name in ("gate", "up", "down")]
    return all(map(_is_linear, projections)) and callable(getattr(layer, "act_fn", None))


def _norm(layer: Any) -> layers.Forward | None:
    epsilon = getattr(layer, "variance_epsilon", getattr(layer, "eps", None))
    if "RMSNorm" in type(layer).__name__ and isinstance(epsilon, float):
        return layers.rms_norm(layer, epsilon)
    return None


def _decoder(layer: Any, *, last: int) -> layers.Forward | None:
    """What may stand for a decoder layer, if it has the parts that are known and no others."""
    if dict(layer.named_children()).keys() != DECODER_PARTS:
        return None
    attention = layer.self_attn
    before, between = _norm(layer.input_layernorm), _norm(layer.post_attention_layernorm)
    if (
        dict(attention.named_children()).keys() != ATTENTION_PARTS
        or not all(_is_linear(part) for part in attention.children())
        or not all(hasattr(attention, name) for name in ("head_dim", "scaling", "layer_idx"))
        or getattr(attention, "sliding_window", None) is not None
        or not _is_gated(layer.mlp)
        or before is None
        or between is None
    ):
        return None
    return layers.decoder(layer, before, between, is_last=attention.layer_idx == last)


def _is_equal(layer: Any, forward: layers.Forward) -> bool:
    """Whether a layer and its replacement agree on a probe, to rounding."""
    try:
        return all(
            _is_close(forward(probe), layer(probe))
            for probe in (_probe_of(MANY, layer), _probe_of(3, layer))
        )
    except (TypeError, RuntimeError):
        return False


def _decodes_equally(model: Any, layer: Any, forward: layers.Forward, *, last: int) -> bool:
    """Whether a decoder layer and its replacement agree: what they add, their keys and values.

    The last one also where it computes some rows only.
    """
    import torch
    from transformers import DynamicCache

    rotary = getattr(model.base_model, "rotary_emb", None)
    if rotary is None:
        return False
    depths = torch.tensor([DEPTHS])
    index = layer.self_attn.layer_idx
    try:
        for asked in (None, ASKED) if index == last else (None,):
            caches = (DynamicCache(), DynamicCache())
            for plan in (Plan(0, BRANCHES, asked), STEP):
                here = depths[:, :MANY] if plan.first == 0 else depths[:, MANY:]
                rows = list(plan.asked or range(here.shape[1]))
                states = _probe(here.shape[1], layer.self_attn.q_proj.weight)
                added = []
                for run, cache in zip((forward, layer), caches, strict=True):
                    out = run(
                        states.clone(),
                        attention_mask=None,
                        position_ids=here,
                        use_cache=True,
                        position_embeddings=rotary(states, here),
                        tree=plan,
                        **{cache_argument(model): cache},
                    )
                    added.append((out - states)[:, rows])
                own, other = (cache.layers[index] for cache in caches)
                pairs = ((*added,), (own.keys, other.keys), (own.values, other.values))
                if not all(_is_close(one, expected) for one, expected in pairs):
                    return False
    except (TypeError, RuntimeError, AttributeError, IndexError, ValueError):
        return False
    return True


def _probe_of(rows: int, layer: Any) -> torch.Tensor:
    """Rows that a layer can be asked with; a 4-bit weight does not show how wide they are."""
    import torch

    if hasattr(layer, "compute_dtype"):
        return _probe(rows, torch.empty(layer.in_features, dtype=layer.compute_dtype))
    return _probe(rows, layer.weight if hasattr(layer, "weight") else layer.gate_proj.weight)


def _probe(rows: int, weight: torch.Tensor) -> torch.Tensor:
    import torch

    generator = torch.Generator().manual_seed(rows)
    return torch.randn(1, rows, weight.shape[-1], generator=generator).to(weight)


def _is_close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal to a few roundings of the largest value."""
    import torch

    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    bound = 1e-5 if one.dtype == torch.float32 else 2**-5
    difference = (one.float() - other.float()).abs().max()
    return bool(difference <= bound * other.float().abs().max())
