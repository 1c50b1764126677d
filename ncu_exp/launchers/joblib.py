"""Workers as processes of this machine, with joblib's process executor (loky).

Each worker has an executor of its own: one that loses a process gives up all of its others.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncu_exp.errors import UserError
from ncu_exp.launchers.engine import Ended, not_installed, one_line
from ncu_exp.launchers.options import JoblibOptions
from ncu_exp.launchers.worker import Worker

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class _Place:
    """A place for one worker at a time: which GPUs and how many cores it may use."""

    env: dict[str, str]


class JoblibEngine:
    """Runs `n_jobs` workers at once."""

    def __init__(self, options: JoblibOptions) -> None:
        self._options = options

    @property
    def grain(self) -> Sequence[str]:
        return self._options.grain

    def run(self, workers: Sequence[Worker], folder: Path) -> Generator[Ended]:
        free = self._places(len(workers))
        waiting = deque(enumerate(workers))
        running: dict[Future[Any], tuple[int, Any, _Place]] = {}
        try:
            while waiting or running:
                while waiting and free:
                    index, worker = waiting.popleft()
                    place = free.pop()
                    executor = _loky().ProcessPoolExecutor(max_workers=1, env=place.env)
                    running[executor.submit(worker)] = (index, executor, place)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    index, executor, place = running.pop(future)
                    executor.shutdown(wait=True)
                    free.append(place)
                    yield Ended(index, _error(future))
        finally:
            for _, executor, _ in running.values():
                executor.shutdown(wait=True, kill_workers=True)

    def _places(self, workers: int) -> list[_Place]:
        n_jobs, gpus = self._options.n_jobs, self._options.gpus_per_job
        if n_jobs < 1:
            raise UserError(f"hydra.launcher.n_jobs={n_jobs} starts nothing: it must be >= 1.")
        n_jobs = min(n_jobs, workers)
        cores = self._options.threads_per_job or max(1, _loky().cpu_count() // n_jobs)
        threads = dict.fromkeys(_THREADS, str(cores))
        if not gpus:
            return [_Place(threads)] * n_jobs
        devices = _devices()
        if len(devices) < n_jobs * gpus:
            raise UserError(
                f"{n_jobs} workers of {gpus} GPUs each need {n_jobs * gpus}, and this machine has "
                f"{len(devices)}: lower hydra.launcher.n_jobs or hydra.launcher.gpus_per_job."
            )
        shares = [devices[i * gpus : (i + 1) * gpus] for i in range(n_jobs)]
        return [_Place({**threads, _VISIBLE: ",".join(share)}) for share in shares]


def _loky() -> Any:
    try:
        from joblib.externals import loky
    except ImportError:
        raise not_installed("joblib", "joblib") from None
    return loky


def _error(future: Future[Any]) -> str:
    error = future.exception()
    return "" if error is None else f"{type(error).__name__}: {one_line(error)}"


def _devices() -> list[str]:
    """The GPUs that this process may use, as CUDA names them."""
    if _VISIBLE in os.environ:
        return [name for name in os.environ[_VISIBLE].split(",") if name]
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    return [str(number) for number in range(len(lines))]
