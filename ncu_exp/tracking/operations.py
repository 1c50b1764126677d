"""What a run can be told, as plain records: written to a journal, and applied to MLflow.

A live run and one that is uploaded later go through the same `apply`, so that they cannot differ.
Each operation can be applied again without changing anything.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncu_exp.provenance import without_credentials

if TYPE_CHECKING:
    from mlflow import MlflowClient

PARAM_LENGTH = 6000
TAG_LENGTH = 5000


class Kind(StrEnum):
    params = "params"
    tags = "tags"
    metrics = "metrics"
    dataset = "dataset"
    folder = "folder"
    text = "text"
    end = "end"


@dataclass(frozen=True, slots=True)
class DatasetInput:
    """The dataset of a run, as the UI's "Datasets" field shows it."""

    name: str
    source: str
    sha256: str
    n_items: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a run is told; `body` holds JSON values alone."""

    kind: Kind
    body: Mapping[str, Any]


def now_ms() -> int:
    """Milliseconds since 1970, as MLflow counts time."""
    return int(time.time() * 1000)


def params(values: Mapping[str, Any]) -> Operation:
    return Operation(Kind.params, _texts(values, PARAM_LENGTH))


def tags(values: Mapping[str, Any]) -> Operation:
    return Operation(Kind.tags, _texts(values, TAG_LENGTH))


def metrics(values: Mapping[str, float], *, step: int) -> Operation:
    """The finite ones: a NaN breaks the run's page, and infinity becomes a number."""
    finite = {k: float(v) for k, v in values.items() if math.isfinite(v)}
    return Operation(Kind.metrics, {"values": finite, "at": now_ms(), "step": step})


def dataset(given: DatasetInput) -> Operation:
    body = {
        "name": given.name,
        "source": without_credentials(given.source),
        "sha256": given.sha256,
        "n_items": given.n_items,
    }
    return Operation(Kind.dataset, body)


def folder(path: str) -> Operation:
    """Every file below a folder, at the same relative places; `path` as from the journal's."""
    return Operation(Kind.folder, {"path": path})


def text(content: str, *, file: str) -> Operation:
    return Operation(Kind.text, {"content": content, "file": file})


def end(status: str) -> Operation:
    return Operation(Kind.end, {"status": status, "at": now_ms()})


def failure(error: str, status: str) -> tuple[Operation, ...]:
    """The end of a run with its error: the first line as a tag, all of it as an artifact."""
    error = without_credentials(error)
    first = error.strip().split("\n")[0]
    return tags({"error": first}), text(error, file="error.txt"), end(status)


def apply(client: MlflowClient, run_id: str, operation: Operation, *, place: Path) -> None:
    """Tell MLflow one operation; paths in it are relative to `place`.

    Raises what the client raises, and OSError for an artifact that no store took.
    """
    _APPLY[operation.kind](client, run_id, operation.body, place)


def _texts(values: Mapping[str, Any], length: int) -> dict[str, str]:
    return {k: without_credentials(str(v))[:length] for k, v in values.items() if v is not None}


def _params(client: MlflowClient, run_id: str, body: Mapping[str, Any], place: Path) -> None:
    from mlflow.entities import Param

    client.log_batch(run_id, params=[Param(k, v) for k, v in body.items()])


def _tags(client: MlflowClient, run_id: str, body: Mapping[str, Any], place: Path) -> None:
    from mlflow.entities import RunTag

    client.log_batch(run_id, tags=[RunTag(k, v) for k, v in body.items()])


def _metrics(client: MlflowClient, run_id: str, body: Mapping[str, Any], place: Path) -> None:
    from mlflow.entities import Metric

    at, step = body["at"], body["step"]
    client.log_batch(run_id, metrics=[Metric(k, v, at, step) for k, v in body["values"].items()])


def _dataset(client: MlflowClient, run_id: str, body: Mapping[str, Any], place: Path) -> None:
    from mlflow.entities import Dataset
    from mlflow.entities import DatasetInput as Input

    entity = Dataset(
        name=body["name"],
        digest=body["sha256"][:36],
        source_type="local",
        source=json.dumps({"uri": body["source"]}),
        profile=json.dumps({"num_rows": body["n_items"]}),
    )
    client.log_inputs(run_id, [Input(dataset=entity, tags=[])])


def _folder(client: MlflowClient, run_id: str, body: Mapping[str, Any], place: Path) -> None:
    try:
        client.log_artifacts(run_id, str(place / body["path"]))
    except Exception as error:  # each artifact store's library has its own
        raise OSError(f"{body['path']} was not uploaded: {error}") from error


def _text(client: MlflowClient, run_id: str, body: Mapping[str, Any], place: Path) -> None:
    try:
        client.log_text(run_id, body["content"], body["file"])
    except Exception as error:  # likewise
        raise OSError(f"{body['file']} was not uploaded: {error}") from error


def _end(client: MlflowClient, run_id: str, body: Mapping[str, Any], place: Path) -> None:
    client.set_terminated(run_id, body["status"], end_time=body["at"])


_APPLY: dict[Kind, Callable[[MlflowClient, str, Mapping[str, Any], Path], None]] = {
    Kind.params: _params,
    Kind.tags: _tags,
    Kind.metrics: _metrics,
    Kind.dataset: _dataset,
    Kind.folder: _folder,
    Kind.text: _text,
    Kind.end: _end,
}
