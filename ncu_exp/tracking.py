"""The only file that knows MLflow: starts a run, logs to it, ends it.

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
from urllib.parse import urlsplit

from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError
from ncu_exp.provenance import without_credentials

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

    Raises UserError if the tracking server does not answer.
    """
    from mlflow.exceptions import MlflowException

    try:
        client = _client(config.uri)
        experiment_id = _experiment(client, config)
        run = Run(
            client, client.create_run(experiment_id, run_name=name).info.run_id, experiment_id
        )
        run.set_tags(tags)
        run.log_params(params)
    except MlflowException as error:
        raise UserError(
            without_credentials(
                f"tracking.uri={config.uri} cannot be used: {str(error).splitlines()[0]}"
            )
        ) from None  # the client's own exception holds the URL whole
    return run


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


def _client(uri: str) -> MlflowClient:
    from mlflow import MlflowClient

    if not uri.startswith("sqlite:"):
        return MlflowClient(tracking_uri=uri)
    from filelock import FileLock

    database = Path(urlsplit(uri).path.removeprefix("/") or "mlflow.db")
    database.parent.mkdir(parents=True, exist_ok=True)
    # Two processes that create the tables at once race; the first use does it under a lock.
    with FileLock(f"{database}.lock"):
        client = MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
    return client


def _experiment(client: MlflowClient, config: TrackingConfig) -> str:
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(config.experiment)
    if found is None:
        try:
            location = config.artifact_location
            return str(client.create_experiment(config.experiment, artifact_location=location))
        except MlflowException:
            found = client.get_experiment_by_name(config.experiment)  # another process was faster
            if found is None:
                raise
    return str(found.experiment_id)


def ui_command(config: TrackingConfig) -> str:
    """The command that opens the UI over this store, or the address of the server."""
    if config.uri.startswith(("http:", "https:")):
        return without_credentials(config.uri)
    return f"mlflow ui --host 127.0.0.1 --backend-store-uri {without_credentials(config.uri)}"
