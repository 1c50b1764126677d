"""A set of past runs, compared: from their tables to frames of numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_exp.compare.alignment import Block, align
from ncu_exp.compare.differences import differences_of, judge
from ncu_exp.compare.items import items_frame
from ncu_exp.compare.loading import AskedRun
from ncu_exp.compare.matrices import matrices_of, pooled
from ncu_exp.compare.sensitivity import sensitivity_of
from ncu_exp.compare.summary import Resamples, draw, latencies, summarise, summary_frame
from ncu_exp.compare.systems import System, find_systems, is_below, systems_frame
from ncu_exp.config import CompareConfig, MetricsConfig
from ncu_exp.stats import POOLED, Resampling

if TYPE_CHECKING:
    import pandas as pd

# Largest differences of a token between fast and reference scoring (docs/numerics.md), for runs
# that read every score from the store and so checked none. fp16 was not measured: as bf16.
NOISE_NATS = {"fp32": 3e-5, "bf16": 0.3, "fp16": 0.3, "int8": 0.0, "nf4": 0.5}
_NOISE = "numerics/max_abs_diff_nats"


@dataclass(frozen=True)
class Comparison:
    """What was found, as tidy frames, and what a reader has to know of how.

    `notes` say what the systems differ in and what was left out; `blocks` hold the rows that were
    compared.
    """

    systems: pd.DataFrame
    summary: pd.DataFrame
    differences: pd.DataFrame
    sensitivity: pd.DataFrame
    items: pd.DataFrame
    notes: tuple[str, ...]
    compared: tuple[System, ...]
    blocks: tuple[Block, ...]
    settings: CompareConfig
    metrics: MetricsConfig

    @property
    def corpora(self) -> list[str]:
        """In the order of their first runs."""
        return list(dict.fromkeys(block.corpus for block in self.blocks))


def compare(
    runs: Sequence[AskedRun],
    *,
    settings: CompareConfig,
    metrics: MetricsConfig,
    recomputed: Mapping[str, float] | None = None,
) -> Comparison:
    """Compare runs, a system at a time with every other.

    `metrics` says how intervals are drawn; tau and epsilon are each run's own, but for those in
    `recomputed`. Raises UserError where the runs were not asked the same.
    """
    runs = [_with_metrics(run, recomputed or {}) for run in runs]
    systems = find_systems(runs, across=settings.across)
    anew = any(is_below(key, ("perturb", "dataset.context")) for key in settings.across)
    blocks, notes = align(systems, contexts_may_differ=anew)
    own = {system.label: _metrics_of(system, metrics) for system in systems}
    noise = {system.label: _noise_nats(system) for system in systems}
    matrices = matrices_of(blocks, own, noise_nats=noise)
    plan = Resampling(metrics.resamples, metrics.confidence, metrics.seed)
    resamples = Resamples({m.corpus: m.n_clusters for m in matrices}, plan)
    several = len({m.corpus for m in matrices}) > 1
    summary, differences = [], []
    for matrix in (*matrices, *(pooled(matrices) if several else ())):
        drawn = draw(matrix, resamples)
        summary += summarise(matrix, drawn, confidence=metrics.confidence)
        if matrix.name in settings.measures:
            differences += differences_of(matrix, drawn, resamples, settings=settings)
    if not several:  # one corpus is its own pool
        summary += [{**row, "corpus": POOLED} for row in summary]
        differences += [{**row, "corpus": POOLED} for row in differences]
    estimators = {system.label: system.estimator for system in systems}
    items = items_frame(blocks, own)
    return Comparison(
        systems=systems_frame(systems),
        summary=summary_frame([*summary, *latencies(systems)]),
        differences=judge(differences, estimators, confidence=metrics.confidence),
        sensitivity=sensitivity_of(items, own[systems[0].label]),
        items=items,
        notes=(*_repeated(systems), *_own_metrics(own), *notes),
        compared=tuple(systems),
        blocks=tuple(blocks),
        settings=settings,
        metrics=own[systems[0].label],
    )


def _with_metrics(run: AskedRun, given: Mapping[str, float]) -> AskedRun:
    config: Mapping[str, Any] = {**run.config, "metrics": {**run.config["metrics"], **given}}
    return dataclasses.replace(run, config=config)


def _metrics_of(system: System, metrics: MetricsConfig) -> MetricsConfig:
    asked = system.newest.config["metrics"]
    return dataclasses.replace(metrics, tau=asked["tau"], epsilon=asked["epsilon"])


def _noise_nats(system: System) -> float:
    seen = [run.run.metrics[_NOISE] for run in system.runs if _NOISE in run.run.metrics]
    return max(seen, default=NOISE_NATS.get(system.precision, 0.0))


def _own_metrics(own: Mapping[str, MetricsConfig]) -> list[str]:
    """Of systems that are compared under their own tau and epsilon."""
    asked = {(m.tau, m.epsilon) for m in own.values()}
    if len(asked) == 1:
        return []
    told = "; ".join(f"{s}: tau {m.tau:g}, epsilon {m.epsilon:g}" for s, m in own.items())
    return [f"Each system has its own settings of the metrics. {told}."]


def _repeated(systems: Sequence[System]) -> list[str]:
    """Of systems that were asked the same twice."""
    told = []
    for system in systems:
        asked = [
            (run.corpus, run.draw, tuple(run.config["condition"]["names"])) for run in system.runs
        ]
        if len(set(asked)) < len(asked):
            told.append(f"{system.label}: of runs that asked the same, the newest counts.")
    return told
