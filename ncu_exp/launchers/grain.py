"""Which jobs of a sweep share a worker: those that ask the same weights, one after the other.

Loading is what a small job costs most: a 72B model is read for minutes and asked for seconds. So a
worker is one process that loads a model once and does every job that asks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ncu_exp.errors import UserError


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the sweep, composed, with Hydra's own node in it."""

    num: int
    config: DictConfig


def grouped(jobs: Sequence[Job], grain: Sequence[str]) -> list[tuple[Job, ...]]:
    """The jobs of each worker: those that agree in every key of `grain`, in the sweep's order.

    A key may name a group (`model`), a value (`dataset.shard`), or Hydra's (`hydra.job.num`: each
    job by itself). Values are compared as composed, references in them unresolved. Raises UserError
    for a key that there is not.
    """
    found: dict[tuple[str, ...], list[Job]] = {}
    for job in jobs:
        found.setdefault(tuple(_value(job.config, key) for key in grain), []).append(job)
    return [tuple(of_worker) for of_worker in found.values()]


def _value(config: DictConfig, key: str) -> str:
    parent, _, last = key.rpartition(".")
    node: Any = OmegaConf.select(config, parent) if parent else config
    if not isinstance(node, DictConfig) or last not in node.keys():  # noqa: SIM118  None counts
        raise UserError(
            f"hydra.launcher.grain names {key!r}, and no job has such a key. Name groups and keys "
            "of the configuration, as in [model,precision]."
        )
    value = node._get_node(last)
    if isinstance(value, DictConfig):
        return repr(OmegaConf.to_container(value, resolve=False))
    return repr(OmegaConf.to_container(OmegaConf.create({"value": value}), resolve=False))
