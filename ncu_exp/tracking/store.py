"""Where runs are kept: the store, its experiments, the run of a sweep, and how to look at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError
from ncu_exp.provenance import without_credentials

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

SWEEP_RUN = {"kind": "sweep"}  # the tag that tells the run of a sweep from those of its jobs


@contextmanager
def answering(config: TrackingConfig) -> Iterator[None]:
    """Turns what the client raises into a UserError that names the store, without a password."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        raise UserError(
            without_credentials(
                f"tracking.uri={config.uri} cannot be used: {str(error).splitlines()[0]}"
            )
        ) from None  # the client's own exception holds the URL whole


@lru_cache(maxsize=4)
def open_store(uri: str) -> MlflowClient:
    """A client of the store; a SQLite database is made where there is none."""
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


def open_experiment(client: MlflowClient, config: TrackingConfig) -> str:
    """The id of the configured experiment, created where there is none."""
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


def find_sweep_run(client: MlflowClient, experiment_id: str, sweep: str) -> Run | None:
    """The run that a sweep's jobs are children of; None where nobody made one."""
    asked = f"tags.sweep = '{sweep}' and tags.kind = '{SWEEP_RUN['kind']}'"
    found = client.search_runs([experiment_id], asked, max_results=1)
    return found[0] if found else None


def ui_command(config: TrackingConfig) -> str:
    """The command that opens the UI over this store, or the address of the server."""
    if config.uri.startswith(("http:", "https:")):
        return without_credentials(config.uri)
    return f"mlflow ui --host 127.0.0.1 --backend-store-uri {without_credentials(config.uri)}"
