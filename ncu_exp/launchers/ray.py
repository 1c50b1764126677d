"""Workers as Ray tasks, on a cluster or on a Ray that starts and ends with the sweep."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from ncu_exp.errors import UserError
from ncu_exp.launchers.engine import Ended, not_installed, one_line
from ncu_exp.launchers.options import RayOptions
from ncu_exp.launchers.worker import Worker

_LOCAL = "local"
_MIB = 2**20


class RayEngine:
    """Runs each worker as a task; Ray decides where and when, by what it needs."""

    def __init__(self, options: RayOptions) -> None:
        self._options = options

    @property
    def grain(self) -> Sequence[str]:
        return self._options.grain

    def run(self, workers: Sequence[Worker], folder: Path) -> Generator[Ended]:
        # Nothing about this machine is sent to Ray's makers unless it is asked for.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError:
            raise not_installed("ray", "ray") from None
        try:
            ray.init(**self._init())
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(f"Ray does not start: {one_line(error)}") from error
        running: dict[Any, int] = {}
        try:
            self._check_resources(ray.cluster_resources())
            task = ray.remote(**self._task_options())(_work)
            running |= {task.remote(worker): index for index, worker in enumerate(workers)}
            while running:
                [ended], _ = ray.wait(list(running), num_returns=1)
                yield Ended(running.pop(ended), _error(ended))
        finally:
            for left in running:
                ray.cancel(left, force=True)
            ray.shutdown()

    def _address(self) -> str:
        return self._options.address or os.environ.get("RAY_ADDRESS") or _LOCAL

    def _init(self) -> dict[str, Any]:
        address = self._address()
        given: dict[str, Any] = {"address": address}
        if address == _LOCAL:
            given |= {
                "include_dashboard": False,
                "object_store_memory": self._options.object_store_mb * _MIB,
                "_node_ip_address": "127.0.0.1",
            }
        return given | self._options.init

    def _task_options(self) -> dict[str, Any]:
        o = self._options
        given: dict[str, Any] = {
            "num_gpus": o.gpus_per_job,
            "num_cpus": o.cpus_per_job,
            "max_retries": o.retries,
            "max_calls": 1,  # the process ends with its worker, and gives its memory back
        }
        if o.mem_gb is not None:
            given["memory"] = int(o.mem_gb * 1024 * _MIB)
        return given | o.options

    def _check_resources(self, offered: dict[str, float]) -> None:
        """A task that asks more than a Ray of one machine has would wait for ever."""
        if self._address() != _LOCAL:
            return
        asked = {"GPU": self._options.gpus_per_job, "CPU": self._options.cpus_per_job}
        for what, amount in asked.items():
            if amount > offered.get(what, 0):
                key = f"hydra.launcher.{what.lower()}s_per_job"
                raise UserError(
                    f"{key}={amount:g}, and this machine has {offered.get(what, 0):g}: lower it, "
                    "or join a cluster with hydra.launcher.address=HOST:PORT."
                )


def _error(ended: Any) -> str:
    """What Ray says of a task that did not return; empty for one that did."""
    import ray

    try:
        ray.get(ended)
    except ray.exceptions.RayError as error:
        return f"Ray: {type(error).__name__}: {one_line(error)}"
    return ""


def _work(worker: Worker) -> list[int]:
    return worker()
