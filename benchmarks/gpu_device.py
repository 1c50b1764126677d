"""The device that the GPU benchmark runs on: its peak, its memory, its compiled graphs."""

from __future__ import annotations

import gc
import importlib.metadata
import math
import platform
import time
from typing import Any

PACKAGES = ("torch", "transformers", "triton", "bitsandbytes")


def measure_peak(device: str, dtype: str) -> float:
    """Operations per second of a square matrix product of random numbers: the best of several."""
    import torch

    size, tries = (8192, 30) if device == "cuda" else (512, 5)
    left, right = torch.randn(2, size, size, device=device, dtype=getattr(torch, dtype)).unbind()
    best = math.inf
    for turn in range(-5, tries):
        synchronise(device)
        start = time.perf_counter()
        left @ right
        synchronise(device)
        if turn >= 0:
            best = min(best, time.perf_counter() - start)
    return float(2 * size**3 / best)


def synchronise(device: str) -> None:
    """Wait for all that was given to the device."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def free_bytes(device: str) -> float:
    """Memory of the device that nobody holds."""
    import psutil
    import torch

    if device == "cuda":
        return float(torch.cuda.mem_get_info()[0])
    return float(psutil.virtual_memory().available)


def start_compiling_anew(device: str) -> None:
    """Forget compiled graphs, so that the limit on recompiling counts for each shape apart."""
    gc.collect()
    if device == "cuda":
        import torch._dynamo.utils

        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()


def compiled_graphs(device: str) -> int | None:
    """Graphs compiled for this shape so far; None where nothing is compiled."""
    if device != "cuda":
        return None
    import torch._dynamo.utils

    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def describe(device: str) -> dict[str, Any]:
    """The device and the versions, without anything that names the machine."""
    import torch

    versions = {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}
    if device != "cuda":
        return {"device": f"CPU ({platform.machine()})", "versions": versions}
    name, memory = torch.cuda.get_device_name(), torch.cuda.get_device_properties(0).total_memory
    versions["cuda"] = torch.version.cuda
    return {"device": name, "memory_gb": memory / 1e9, "versions": versions}


def version(package: str) -> str | None:
    """The version of a package, or None where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
