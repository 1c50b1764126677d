"""Runs that have ended, read back: what they were asked, what they logged, the files they left."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError
from ncu_exp.tracking.store import SWEEP_RUN, answering, find_sweep_run, open_store

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as MlflowRun

_NAMED = 5  # sweeps, experiments or runs that a message names
FINISHED = "FINISHED"


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run of one job as the store knows it; `started` counts milliseconds since 1970."""

    run_id: str
    name: str
    status: str
    started: int
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    artifact_uri: str = ""

    @property
    def is_finished(self) -> bool:
        return self.status == FINISHED


@dataclass(frozen=True, slots=True)
class FoundRuns:
    """The runs of jobs that were asked for, oldest first, and the sweep's own run if one was."""

    runs: tuple[PastRun, ...]
    sweep: PastRun | None = None


def find_runs(
    config: TrackingConfig,
    *,
    sweep: str | None = None,
    experiment: str | None = None,
    run_ids: Sequence[str] = (),
) -> FoundRuns:
    """The runs of a sweep, of a whole experiment, or those named.

    Raises UserError, naming what there is, where there are none.
    """
    with answering(config):
        client = open_store(config.uri)
        if run_ids:
            return FoundRuns(tuple(_past(_get(client, run_id)) for run_id in run_ids))
        name = experiment or config.experiment
        known = client.get_experiment_by_name(name)
        if known is None:
            raise UserError(f"There is no experiment {name!r}. {_experiments(client)}")
        asked = f"tags.sweep = '{_quotable(sweep)}'" if sweep else ""
        found = [
            _past(run)
            for run in _search(client, known.experiment_id, asked)
            if run.data.tags.get("kind") not in (SWEEP_RUN["kind"], "comparison")
        ]
        if not found:
            told = _sweeps(client, known.experiment_id) if sweep else ""
            what = f"no sweep {sweep!r}" if sweep else "no run"
            raise UserError(f"There is {what} in experiment {name!r}. {told}".strip())
        parent = find_sweep_run(client, known.experiment_id, sweep) if sweep else None
    runs = tuple(sorted(found, key=lambda run: run.started))
    return FoundRuns(runs, _past(parent) if parent else None)


def artifact_folder(config: TrackingConfig, run: PastRun, path: str) -> Path:
    """A folder or file of a run's artifacts: where it lies, or a copy of what a server holds."""
    place = urlsplit(run.artifact_uri)
    if place.scheme in ("", "file") and place.path:
        return Path(url2pathname(place.path)) / path
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # a bar for each file
    with answering(config):
        return Path(open_store(config.uri).download_artifacts(run.run_id, path))


def _past(run: MlflowRun) -> PastRun:
    return PastRun(
        run_id=run.info.run_id,
        name=run.info.run_name or run.info.run_id,
        status=run.info.status,
        started=run.info.start_time,
        params=dict(run.data.params),
        tags=dict(run.data.tags),
        metrics=dict(run.data.metrics),
        artifact_uri=run.info.artifact_uri or "",
    )


def _get(client: MlflowClient, run_id: str) -> MlflowRun:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_run(run_id)
    except MlflowException:
        raise UserError(f"There is no run {run_id!r} in this store.") from None


def _search(client: MlflowClient, experiment_id: str, asked: str) -> list[MlflowRun]:
    """All of them: the store gives at most a page at a time, and says so quietly."""
    found: list[MlflowRun] = []
    token: str | None = None
    while True:
        page = client.search_runs([experiment_id], asked, max_results=1000, page_token=token)
        found += page
        token = page.token
        if not token:
            return found


def _quotable(sweep: str) -> str:
    if "'" in sweep:
        raise UserError(f"{sweep!r} is no sweep: its id has no quotes in it.")
    return sweep


def _experiments(client: MlflowClient) -> str:
    names = [experiment.name for experiment in client.search_experiments(max_results=_NAMED)]
    return f"There are: {', '.join(names)}."


def _sweeps(client: MlflowClient, experiment_id: str) -> str:
    newest = client.search_runs([experiment_id], max_results=1000)
    ids = list(dict.fromkeys(run.data.tags["sweep"] for run in newest if "sweep" in run.data.tags))
    return f"The last ones: {', '.join(ids[:_NAMED])}." if ids else "None was tracked there."
