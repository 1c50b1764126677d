"""Past runs in a real store, with invented scores: what a comparison reads back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import yaml

from ncu_exp import provenance, tracking
from ncu_exp.config import Config
from ncu_exp.description import JobContext, run_name, run_params, run_tags
from ncu_exp.metrics import aggregate, latency_metrics
from ncu_exp.perturb.table import PERTURBATION_COLUMNS, perturbation_rows
from ncu_exp.records import Score
from ncu_exp.results import loggable
from ncu_exp.tablefile import parquet_schema
from ncu_exp.tables import items_table
from tests.composing import composed
from tests.synthetic import Run, run

RESAMPLES = "metrics.resamples=400"


def config_of(store: Path, label: str, *overrides: str) -> Config:
    """A job's configuration: a model by its label, and whatever else is overridden."""
    model = ["model=hf", f"model.name=org/{label}", f"model.label={label}"]
    return composed(*model, RESAMPLES, *overrides, store=store)


def leave_run(
    config: Config,
    made: Run,
    *,
    precision: str = "fp32",
    sweep: str | None = None,
    job_num: int = 0,
    aggregated: bool = False,
) -> str:
    """A finished run with the tables of `made`; its id. `aggregated`: with metrics as well."""
    job = JobContext(Path(), choices={}, sweep_id=sweep, job_num=job_num)
    logged = tracking.start_run(
        config.tracking,
        name=run_name(config),
        tags=run_tags(config, job),
        params=run_params(config, job) | {"precision.name": precision},
    )
    table = items_table(made.items, made.arms, scores=made.scores, settings=config.metrics)
    audit = pd.DataFrame(perturbation_rows(made.perturbations), columns=list(PERTURBATION_COLUMNS))
    with TemporaryDirectory() as place:
        tables = Path(place) / "tables"
        tables.mkdir()
        table.to_parquet(tables / "items.parquet", index=False, schema=parquet_schema())
        audit.to_parquet(tables / "perturbations.parquet", index=False)
        (Path(place) / "config.yaml").write_text(yaml.safe_dump(provenance.plain(config)))
        logged.log_folder(Path(place))
    metrics = latency_metrics(made.probes)
    if aggregated:
        metrics += aggregate(table, settings=config.metrics)
    logged.log_metrics(loggable(metrics) | {"numerics/max_abs_diff_nats": 1e-5})
    logged.finish()
    return logged.run_id


def leave_runs(
    store: Path,
    labels: Sequence[str],
    *,
    items: int,
    corpora: Sequence[str] = ("sample",),
    overrides: Sequence[str] = (),
) -> tuple[Config, list[str]]:
    """A run for each label and corpus, each system a little worse than the one before."""
    ids: list[str] = []
    for c, corpus in enumerate(corpora):
        made = run(items, seed=c)
        for number, label in enumerate(labels):
            config = config_of(store, label, f"dataset={corpus}", *overrides)
            ids.append(leave_run(config, shifted(made, 0.9**number)))
    return config_of(store, labels[0]), ids


def shifted(made: Run, factor: float) -> Run:
    """The run of a model whose log-probabilities are all `factor` times those of `made`."""
    return rescored(made, lambda logprob: logprob * factor)


def rescored(made: Run, change: Callable[[float], float]) -> Run:
    return replace(made, scores=[_changed(score, change) for score in made.scores])


def _changed(score: Score, change: Callable[[float], float]) -> Score:
    continuations = tuple(
        replace(c, token_logprobs=tuple(map(change, c.token_logprobs))) for c in score.continuations
    )
    return replace(score, continuations=continuations)
