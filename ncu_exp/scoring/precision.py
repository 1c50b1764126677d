"""What a precision means on a device, and whether it can be had, decided before weights load."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from ncu_exp.config import EngineName, ModelConfig, PrecisionName
from ncu_exp.errors import PrecisionError


@dataclass(frozen=True, slots=True)
class Precision:
    """A concrete precision.

    `dtype` names the torch dtype of the weights, or of the arithmetic where the weights are
    quantised. `bound_nats` is the largest difference of a token's log-probability between the
    fast and the reference path that a healthy run shows.
    """

    name: PrecisionName
    dtype: str
    bytes_per_weight: float
    bound_nats: float
    quantized: bool = False


# A bound is some four times the largest difference seen (docs/numerics.md): it is there to catch
# scores that are wrong, which are off by nats, and not to fail a run for its precision.
PRECISIONS = {
    p.name: p
    for p in (
        Precision(PrecisionName.fp32, "float32", 4.0, 1e-4),
        Precision(PrecisionName.bf16, "bfloat16", 2.0, 1.0),
        Precision(PrecisionName.fp16, "float16", 2.0, 0.25),
        Precision(PrecisionName.int8, "bfloat16", 1.1, 1.5, quantized=True),
        Precision(PrecisionName.nf4, "bfloat16", 0.6, 1.5, quantized=True),
    )
}
# Of a model that a server runs: it decides the precision, and does not tell it.
SERVED = Precision(PrecisionName.auto, "", 0.0, 0.0)


def resolve_device(device: str) -> str:
    """`auto` as the device that is there; anything else as it is, if it is there.

    Raises PrecisionError for a CUDA device that this machine or this build of torch lacks.
    """
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise PrecisionError(
            f"model.device={device}: torch {torch.__version__} sees no CUDA device here. "
            "Use model.device=cpu, or install a CUDA build of torch."
        )
    return device


def resolve_precision(asked: PrecisionName, model: ModelConfig, *, device: str) -> Precision:
    """The concrete precision for a local model on a device.

    Raises PrecisionError, naming what would work, for one that the device has no kernel for, that
    the checkpoint cannot take, or whose package is missing.
    """
    name = asked
    if asked is PrecisionName.auto:
        name = model.cuda_precision if device.startswith("cuda") else PrecisionName.fp32
    if name is PrecisionName.auto:
        raise PrecisionError(
            f"model {model.label}: model.cuda_precision must be a concrete precision, not auto."
        )
    precision = PRECISIONS[name]
    if device == "cpu" and name is PrecisionName.fp16:
        raise PrecisionError(
            "precision=fp16 has no fast kernel on a CPU (about ten times slower than bf16). "
            "Use precision=fp32 or precision=bf16, or a CUDA device."
        )
    if model.quantized:
        _check_quantized_checkpoint(model, precision, device=device)
    elif precision.quantized and importlib.util.find_spec("bitsandbytes") is None:
        raise PrecisionError(
            f"precision={name.value} needs the package bitsandbytes: pip install bitsandbytes. "
            "Without it: precision=fp32 or precision=bf16."
        )
    return precision


def _check_quantized_checkpoint(model: ModelConfig, precision: Precision, *, device: str) -> None:
    what = f"{model.label} is a checkpoint that is {model.quantized} quantised already"
    if precision.quantized:
        raise PrecisionError(
            f"precision={precision.name.value}: {what}. Use precision=auto or precision=fp16, "
            "or the unquantised checkpoint."
        )
    if device == "cpu":
        raise PrecisionError(
            f"{what}; its kernels need a CUDA device, and none is in use here. "
            "Use an unquantised model."
        )
    if importlib.util.find_spec("gptqmodel") is None:
        raise PrecisionError(f"{what}; it needs the package gptqmodel: pip install gptqmodel.")


def check_api_precision(asked: PrecisionName, model: ModelConfig) -> None:
    """Refuse a precision for a model that a server runs: the server decides it."""
    if model.engine is not EngineName.transformers and asked is not PrecisionName.auto:
        raise PrecisionError(
            f"precision={asked.value}: {model.label} is run by its server, which decides the "
            "precision. Use precision=auto."
        )


def check_memory(n_params: int, precision: Precision, *, device: str, label: str) -> None:
    """Refuse weights that cannot fit the memory of the device, before a byte is loaded.

    Counts weights alone; activations come on top. Raises PrecisionError naming the precisions
    that would fit.
    """
    free = _free_bytes(device)
    if n_params * precision.bytes_per_weight <= free:
        return
    fitting = [
        p.name.value
        for p in PRECISIONS.values()
        if n_params * p.bytes_per_weight <= free and not (device == "cpu" and p.dtype == "float16")
    ]
    works = (
        f"precision={' or precision='.join(fitting)} would fit"
        if fitting
        else "no precision fits: take a smaller model, or serve it over several GPUs (model=served)"
    )
    raise PrecisionError(
        f"{label} in {precision.name.value} needs {n_params * precision.bytes_per_weight / 1e9:.1f}"
        f" GB for its weights, and {device} has {free / 1e9:.1f} GB; {works}."
    )


def _free_bytes(device: str) -> float:
    import psutil
    import torch

    if device.startswith("cuda"):
        indices = (
            [torch.device(device).index] if ":" in device else range(torch.cuda.device_count())
        )
        return float(sum(torch.cuda.mem_get_info(i)[0] for i in indices))
    return float(psutil.virtual_memory().available)
