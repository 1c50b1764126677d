"""The options of each launcher, typed: a typo in one is an error at composition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ncu_exp.config import MISSING

_PLUGINS = "hydra_plugins.ncu_exp_launchers"


@dataclass
class SlurmOptions:
    """`hydra/launcher=slurm`: a Slurm job per worker, all of a sweep in one array."""

    _target_: str = f"{_PLUGINS}.SlurmLauncher"
    _convert_: str = "all"
    grain: list[str] = MISSING
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    gpus_per_job: int = MISSING
    gpu_type: str | None = None  # as the cluster's gres names it: h100
    cpus_per_job: int = MISSING
    mem_gb: float = MISSING
    timeout_min: int = MISSING
    max_timeouts: int = MISSING  # how often a worker that ran out of time is queued again
    requeue: bool = MISSING  # whether one that is preempted, or loses its node, is queued again
    array_parallelism: int = MISSING  # workers at once
    setup: list[str] = field(default_factory=list)  # shell lines before Python starts
    parameters: dict[str, Any] = field(default_factory=dict)  # further flags of sbatch
    poll_s: float = MISSING  # between two looks at the queue


@dataclass
class RayOptions:
    """`hydra/launcher=ray`: a Ray task in a process of its own per worker."""

    _target_: str = f"{_PLUGINS}.RayLauncher"
    _convert_: str = "all"
    grain: list[str] = MISSING
    address: str | None = None  # of a cluster; none: Ray starts here, and ends with the sweep
    gpus_per_job: float = MISSING
    cpus_per_job: float = MISSING
    mem_gb: float | None = None
    retries: int = MISSING  # of a worker whose process or node died
    object_store_mb: int = MISSING  # of a Ray that starts here
    init: dict[str, Any] = field(default_factory=dict)  # further arguments of ray.init
    options: dict[str, Any] = field(default_factory=dict)  # and of the task: resources, ...


@dataclass
class JoblibOptions:
    """`hydra/launcher=joblib`: a process of this machine per worker."""

    _target_: str = f"{_PLUGINS}.JoblibLauncher"
    _convert_: str = "all"
    grain: list[str] = MISSING
    n_jobs: int = MISSING  # workers at once
    gpus_per_job: int = MISSING
    threads_per_job: int | None = None  # none: the machine's cores, shared out


def register() -> None:
    """Put the schemas into Hydra's ConfigStore, under the names that `conf/` refers to."""
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.instance()
    for name, node in (("slurm", SlurmOptions), ("ray", RayOptions), ("joblib", JoblibOptions)):
        store.store(group="hydra/launcher", name=f"{name}_schema", node=node, provider="ncu_exp")
