"""The least time that a machine needs for a workload: its operations, and the machine's rate."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.speed_worker import DTYPES
from benchmarks.workload import Distinct

ROWS = 2048
SQUARE = (2048, 2048, 2048)
LEAST_PRODUCTS = 3


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sizes of a model that say how many operations it takes.

    `matrix_parameters` counts the weights of the decoder layers' matrices, `query_size` is heads x
    size of a head.
    """

    matrix_parameters: int
    layers: int
    query_size: int
    hidden: int
    intermediate: int
    vocabulary: int


def model_shape(model: str) -> ModelShape:
    """The sizes of a folder's or hub's model, from its configuration: no weights are loaded."""
    import torch
    from torch import nn
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(model)
    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(config)
    ends = [m for m in empty.modules() if isinstance(m, nn.Embedding)]
    not_layers = {id(p) for m in (*ends, empty.get_output_embeddings()) for p in m.parameters()}
    text = config.get_text_config()
    heads = text.num_attention_heads
    return ModelShape(
        matrix_parameters=sum(
            p.numel() for p in empty.parameters() if p.ndim == 2 and id(p) not in not_layers
        ),
        layers=text.num_hidden_layers,
        query_size=heads * (getattr(text, "head_dim", None) or text.hidden_size // heads),
        hidden=text.hidden_size,
        intermediate=getattr(text, "intermediate_size", None) or 4 * text.hidden_size,
        vocabulary=text.vocab_size,
    )


def operations(shape: ModelShape, distinct: Distinct) -> int:
    """Floating-point operations that scoring takes where every distinct token is computed once.

    Two for each weight of the layers' matrices and each token; four for each component of a query,
    each layer and each visible pair; two for each weight of the output head and each scored row.
    """
    return (
        2 * shape.matrix_parameters * distinct.tokens
        + 4 * shape.query_size * shape.layers * distinct.visible_pairs
        + 2 * shape.hidden * shape.vocabulary * distinct.scored_rows
    )


def matrix_rate(shape: ModelShape, dtype: str, *, threads: int, seconds: float = 1.0) -> float:
    """GFLOP/s that this machine sustains in its fastest product: large and square, or the model's.

    Sustained, not the best of many: a workload takes seconds, and on a shared machine the best
    of some milliseconds was up to 1.4 times what any product of any shape kept up.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        up = (ROWS, shape.hidden, shape.intermediate)
        down = (ROWS, shape.intermediate, shape.hidden)
        products = (SQUARE, up, down)
        return max(_rate(p, dtype, seconds=seconds / len(products)) for p in products)
    finally:
        torch.set_num_threads(before)


def _rate(product: tuple[int, int, int], dtype: str, *, seconds: float) -> float:
    """Over all of the products that fit into the time; the first one is not counted."""
    import torch

    rows, inner, columns = product
    kind = getattr(torch, DTYPES[dtype])
    left, right = torch.randn(rows, inner).to(kind), torch.randn(columns, inner).to(kind).T
    out = torch.mm(left, right)
    done, start = 0, time.perf_counter()
    while done < LEAST_PRODUCTS or time.perf_counter() < start + seconds:
        torch.mm(left, right, out=out)
        done += 1
    return 2e-9 * done * rows * inner * columns / (time.perf_counter() - start)
