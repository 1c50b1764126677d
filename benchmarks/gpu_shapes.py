"""The shapes of Qwen2.5 that the GPU benchmark measures, and a random model of a shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.gpu_ways import LARGEST_BUDGET
from benchmarks.speed_limit import ModelShape
from ncu_exp.config import PrecisionName
from ncu_exp.scoring.precision import PRECISIONS

if TYPE_CHECKING:
    import torch

NF4_BYTES = 0.5 + 4 / 64  # per weight: four bits, and a float32 scale for every 64


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model, and what a run of it asks for.

    `spread` is the standard deviation of the random weights. Of the items that are asked for, one
    in `divisor` is used. `least_s` is the time without which the shape is not started.
    """

    name: str
    precision: PrecisionName
    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_heads: int
    vocabulary: int
    tied: bool
    spread: float = 0.02
    divisor: int = 1
    least_s: float = 60.0

    @property
    def matrix_params(self) -> int:
        """Parameters of the matrices between the embedding and the head."""
        key_size = self.hidden // self.heads * self.key_heads
        attention = 2 * self.hidden * (self.hidden + key_size)
        return self.layers * (attention + 3 * self.hidden * self.intermediate)

    @property
    def sizes(self) -> ModelShape:
        """What its operations are counted by."""
        return ModelShape(
            matrix_parameters=self.matrix_params,
            layers=self.layers,
            query_size=self.hidden,
            hidden=self.hidden,
            intermediate=self.intermediate,
            vocabulary=self.vocabulary,
        )

    @property
    def embedding_params(self) -> int:
        return self.hidden * self.vocabulary * (1 if self.tied else 2)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("tiny", PrecisionName.fp32, 64, 128, 2, 4, 2, 512, tied=True, spread=0.2),
        Shape("tiny-nf4", PrecisionName.nf4, 64, 128, 2, 4, 2, 512, tied=False, spread=0.2),
        Shape("qwen2.5-1.5b", PrecisionName.bf16, 1536, 8960, 28, 12, 2, 151936, tied=True),
        Shape("qwen2.5-7b", PrecisionName.bf16, 3584, 18944, 28, 28, 4, 152064, tied=False),
        Shape(
            "qwen2.5-72b-nf4",
            PrecisionName.nf4,
            8192,
            29568,
            80,
            64,
            8,
            152064,
            tied=False,
            divisor=4,
            least_s=120.0,
        ),
    )
}
ON_CUDA = ("tiny", "qwen2.5-1.5b", "qwen2.5-7b", "qwen2.5-72b-nf4")


def build_model(shape: Shape, *, device: str, seed: int = 0) -> Any:
    """A random model, made on the device one module at a time.

    Nothing larger than the finished model and one matrix in 16 bits is ever held: an nf4 model of
    145 GB in 16 bits is made within the 41 GB that it takes.
    """
    import torch
    from transformers import AutoModelForCausalLM, Qwen2Config

    precision = PRECISIONS[shape.precision]
    dtype = getattr(torch, precision.dtype)
    config = Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        max_position_embeddings=32768,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        tie_word_embeddings=shape.tied,
        initializer_range=shape.spread,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    generator = torch.Generator(device).manual_seed(seed)

    def parameter(like: torch.Tensor, fill: Callable[[torch.Tensor], Any]) -> torch.nn.Parameter:
        made = torch.empty(like.shape, dtype=dtype, device=device)
        fill(made)
        return torch.nn.Parameter(made, requires_grad=False)

    def normal(made: torch.Tensor) -> None:
        made.normal_(0.0, shape.spread, generator=generator)

    for name, module in list(model.named_modules()):
        is_head, is_linear = name == "lm_head", isinstance(module, torch.nn.Linear)
        if "weight" not in module._parameters or (is_head and shape.tied):
            continue
        if getattr(module, "bias", None) is not None:
            module.bias = parameter(module.bias, torch.nn.init.zeros_)
        is_matrix = is_linear or isinstance(module, torch.nn.Embedding)
        weight = parameter(module.weight, normal if is_matrix else torch.nn.init.ones_)
        if is_linear and precision.quantized and not is_head:
            model.set_submodule(name, _nf4(module, weight))
        else:
            module.weight = weight
    if shape.tied:
        model.lm_head.weight = model.model.embed_tokens.weight
    rotary = model.model.rotary_emb
    model.model.rotary_emb = type(rotary)(config=config).to(device)
    assert not any(t.is_meta for t in (*model.parameters(), *model.buffers()))
    return model.eval()


def _nf4(linear: torch.nn.Linear, weight: torch.Tensor) -> Any:
    """What transformers makes of a linear layer under our configuration of nf4."""
    import bitsandbytes.nn

    bnb: Any = bitsandbytes.nn
    how = {"compress_statistics": False, "quant_type": "nf4"}
    sizes = (linear.in_features, linear.out_features)
    made = bnb.Linear4bit(*sizes, bias=False, compute_dtype=weight.dtype, device="meta", **how)
    made.bias = linear.bias
    made.weight = bnb.Params4bit(weight.data, requires_grad=False, module=made, **how)
    made.weight = made.weight.to(weight.device)  # quantises
    return made


def needed_bytes(shape: Shape) -> float:
    """About what a run takes: weights, one matrix, and the largest pass with its cache.

    The head's rows are at most a tenth of the tokens, in 16 and twice in 32 bits; the cache is
    held twice where it grows.
    """
    precision = PRECISIONS[shape.precision]
    width = 4 if precision.dtype == "float32" else 2
    matrix = NF4_BYTES if precision.quantized else width
    key_size = shape.hidden // shape.heads * shape.key_heads
    cache = 2 * (shape.layers + 1) * 2 * key_size * width
    states = (4 * shape.intermediate + 8 * shape.hidden) * width
    head = shape.vocabulary * (width + 8) / 10
    return (
        shape.matrix_params * matrix
        + shape.embedding_params * width
        + shape.hidden * shape.intermediate * width
        + LARGEST_BUDGET * (cache + states + head)
        + 3 * LARGEST_BUDGET**2  # the mask of flex attention, a byte for each pair
    )
