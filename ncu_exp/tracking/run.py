"""Starts a run, logs to it, ends it.

Everything goes through a client with an explicit run id: MLflow's fluent state is per thread, and
an environment variable can point it at another run.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncu_exp.config import TrackingConfig
from ncu_exp.provenance import without_credentials
from ncu_exp.tracking.store import SWEEP_RUN, answering, find_sweep_run, open_experiment, open_store

if TYPE_CHECKING:
    from mlflow import MlflowClient

PARAM_LENGTH = 6000
TAG_LENGTH = 5000


@dataclass(frozen=True, slots=True)
class DatasetInput:
    """The dataset of a run, as the UI's "Datasets" field shows it."""

    name: str
    source: str
    sha256: str
    n_items: int


class Run:
    """An open MLflow run."""

    def __init__(self, client: MlflowClient, run_id: str, experiment_id: str) -> None:
        self._client = client
        self.run_id = run_id
        self.experiment_id = experiment_id

    def log_params(self, params: Mapping[str, Any]) -> None:
        from mlflow.entities import Param

        entities = [Param(k, str(v)[:PARAM_LENGTH]) for k, v in params.items() if v is not None]
        self._client.log_batch(self.run_id, params=entities)

    def set_tags(self, tags: Mapping[str, Any]) -> None:
        from mlflow.entities import RunTag

        entities = [RunTag(k, str(v)[:TAG_LENGTH]) for k, v in tags.items() if v is not None]
        self._client.log_batch(self.run_id, tags=entities)

    def log_metrics(self, metrics: Mapping[str, float], *, step: int = 0) -> None:
        """Log the finite ones: a NaN breaks the run's page, and infinity becomes a number."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        entities = [Metric(k, float(v), now, step) for k, v in metrics.items() if math.isfinite(v)]
        self._client.log_batch(self.run_id, metrics=entities)

    def log_dataset(self, dataset: DatasetInput) -> None:
        from mlflow.entities import Dataset
        from mlflow.entities import DatasetInput as Input

        entity = Dataset(
            name=dataset.name,
            digest=dataset.sha256[:36],
            source_type="local",
            source=json.dumps({"uri": dataset.source}),
            profile=json.dumps({"num_rows": dataset.n_items}),
        )
        self._client.log_inputs(self.run_id, [Input(dataset=entity, tags=[])])

    def describe(self, markdown: str) -> None:
        """What the UI shows as the run's description; cut at a line where it is too long."""
        if len(markdown) > TAG_LENGTH:
            markdown = markdown[:TAG_LENGTH].rpartition("\n")[0]
        self._client.set_tag(self.run_id, "mlflow.note.content", markdown)

    def log_folder(self, folder: Path) -> None:
        """Upload every file below `folder`, at the same relative places."""
        self._client.log_artifacts(self.run_id, str(folder))

    def announce_table(self, artifact: str) -> None:
        """Make the UI show a JSON table artifact in its evaluation view."""
        entry = [{"path": artifact, "type": "table"}]
        self._client.set_tag(self.run_id, "mlflow.loggedArtifacts", json.dumps(entry))

    def finish(self) -> None:
        self._client.set_terminated(self.run_id, "FINISHED")

    def fail(self, error: str, *, status: str = "FAILED") -> None:
        """End the run with its error: the first line as a tag, all of it as an artifact."""
        error = without_credentials(error)
        self.set_tags({"error": error.strip().split("\n")[0]})
        self._client.log_text(self.run_id, error, "error.txt")
        self._client.set_terminated(self.run_id, status)


def start_run(
    config: TrackingConfig, *, name: str, tags: Mapping[str, Any], params: Mapping[str, Any]
) -> Run:
    """Open a run in the configured experiment, creating store and experiment where needed.

    A job of a sweep (its tag `sweep`) becomes a child of the sweep's run, where there is one.
    Raises UserError if the tracking server does not answer.
    """
    with answering(config):
        client = open_store(config.uri)
        experiment_id = open_experiment(client, config)
        sweep = tags.get("sweep")
        parent = find_sweep_run(client, experiment_id, sweep) if sweep else None
        run = _create(client, experiment_id, name=name)
        run.set_tags({**tags, "mlflow.parentRunId": parent.info.run_id if parent else None})
        run.log_params(params)
    return run


def start_sweep(config: TrackingConfig, sweep: str, *, name: str, tags: Mapping[str, Any]) -> Run:
    """Open the run of a sweep, of which the runs of its jobs become children."""
    with answering(config):
        client = open_store(config.uri)
        run = _create(client, open_experiment(client, config), name=name)
        run.set_tags({**tags, **SWEEP_RUN, "sweep": sweep})
    return run


def reopen_run(config: TrackingConfig, run_id: str) -> Run:
    """A run that exists, to log more to it."""
    with answering(config):
        client = open_store(config.uri)
        return Run(client, run_id, client.get_run(run_id).info.experiment_id)


def _create(client: MlflowClient, experiment_id: str, *, name: str) -> Run:
    return Run(client, client.create_run(experiment_id, run_name=name).info.run_id, experiment_id)


@contextmanager
def system_metrics(config: TrackingConfig, run: Run) -> Iterator[None]:
    """Let MLflow sample CPU, memory and GPU use into the run meanwhile, if asked for."""
    if not config.system_metrics:
        yield
        return
    import mlflow
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    mlflow.set_tracking_uri(config.uri)  # the monitor's thread knows no client of ours
    monitor = SystemMetricsMonitor(run.run_id)
    monitor.start()
    try:
        yield
    finally:
        monitor.finish()
