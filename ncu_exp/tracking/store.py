"""Where runs are kept: the store, its experiments, the run of a sweep, and how to look at them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError
from ncu_exp.provenance import without_credentials
from ncu_exp.tracking.faults import store_errors, told

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

SWEEP_RUN = {"kind": "sweep"}  # the tag that tells the run of a sweep from those of its jobs
KEY = "journal"  # the tag that holds the key of the run's journal
PARENT = "mlflow.parentRunId"
_KNOCK_S = 10.0
# Stores that did not answer this process when it last asked.
_away: set[str] = set()


@contextmanager
def answering(config: TrackingConfig) -> Iterator[None]:
    """Turns what the client raises into a UserError that names the store, without a password."""
    try:
        yield
    except store_errors() as error:
        # The client's own exception holds the URL whole.
        raise unusable(config, error) from None


def unusable(config: TrackingConfig, error: Exception) -> UserError:
    uri = without_credentials(config.uri)
    return UserError(f"tracking.uri={uri} cannot be used: {told(error)}")


@lru_cache(maxsize=4)
def open_store(uri: str) -> MlflowClient:
    """A client of the store; a SQLite database is made where there is none."""
    from mlflow import MlflowClient

    if is_server(uri) and not urlsplit(uri).hostname:
        raise OSError("it names no host, as http://host:5000 does.")  # MLflow would ask for "api"
    # What a database refuses is told once, by whoever asked; MLflow would add its traceback.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
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


def reach(uri: str) -> MlflowClient:
    """A client of the store; ConnectionError at once from a server that was away a moment ago.

    MLflow asks a server that is away for minutes, which a process with a hundred runs to tell it
    would wait a hundred times.
    """
    if uri in _away and not _answers(uri):
        raise ConnectionError("it still does not answer.")
    return open_store(uri)


def note_away(uri: str) -> None:
    _away.add(uri)


def note_back(uri: str) -> None:
    _away.discard(uri)


def _answers(uri: str) -> bool:
    import requests

    if not is_server(uri):
        return True
    try:
        return requests.get(f"{uri.rstrip('/')}/health", timeout=_KNOCK_S).status_code < 500
    except requests.exceptions.SSLError:
        return True  # it does: MLflow may be told to mind its certificate less
    except requests.exceptions.RequestException:
        return False


def is_server(uri: str) -> bool:
    return uri.startswith(("http:", "https:"))


def open_experiment(client: MlflowClient, config: TrackingConfig) -> str:
    """The id of the configured experiment, created where there is none."""
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(config.experiment)
    if found is None:
        try:
            location = artifact_location(config)
            return str(client.create_experiment(config.experiment, artifact_location=location))
        except MlflowException:
            found = client.get_experiment_by_name(config.experiment)  # another process was faster
            if found is None:
                raise
    return str(found.experiment_id)


def artifact_location(config: TrackingConfig) -> str | None:
    """Where a new experiment keeps its artifacts; None leaves it to the store.

    A server is not given a folder of this machine: it would hand it to other machines' clients.
    """
    location = config.artifact_location
    if location is None or (is_server(config.uri) and not urlsplit(location).scheme):
        return None
    return location


def find_sweep_run(client: MlflowClient, experiment_id: str, sweep: str) -> Run | None:
    """The run that a sweep's jobs are children of; None where nobody made one."""
    asked = f"tags.sweep = '{sweep}' and tags.kind = '{SWEEP_RUN['kind']}'"
    found = client.search_runs([experiment_id], asked, max_results=1)
    return found[0] if found else None


def ui_command(config: TrackingConfig) -> str:
    """The command that opens the UI over this store, or the address of the server."""
    if is_server(config.uri):
        return without_credentials(config.uri)
    return f"mlflow ui --host 127.0.0.1 --backend-store-uri {without_credentials(config.uri)}"
