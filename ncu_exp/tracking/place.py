"""Where a run belongs, as its journal keeps it: without a password, and as seen from any folder."""

from __future__ import annotations

import dataclasses
import os
import uuid
from pathlib import Path
from urllib.parse import urlsplit

from ncu_exp.config import TrackingConfig
from ncu_exp.provenance import without_credentials
from ncu_exp.tracking.journal import Head, this_process
from ncu_exp.tracking.operations import now_ms


def new_head(config: TrackingConfig, *, name: str, sweep: str | None, is_sweep: bool) -> Head:
    """The head of a run that starts now, with a key of its own."""
    return Head(
        key=uuid.uuid4().hex,
        name=name,
        started=now_ms(),
        uri=without_credentials(_from_anywhere(config.uri)),
        experiment=config.experiment,
        artifact_location=_absolute(config.artifact_location),
        sweep=sweep,
        is_sweep=is_sweep,
        writer=this_process(),
    )


def place_of(head: Head) -> TrackingConfig:
    """Where the journal's run belongs, as its job was told.

    A journal keeps no password: where MLFLOW_TRACKING_URI names the same place with one, it is
    used.
    """
    named = os.environ.get("MLFLOW_TRACKING_URI", "")
    uri = named if without_credentials(named) == head.uri else head.uri
    return TrackingConfig(
        uri=uri, experiment=head.experiment, artifact_location=head.artifact_location
    )


def moved(config: TrackingConfig, *, uri: str | None, experiment: str | None) -> TrackingConfig:
    """Another place instead, where one is given; its artifacts go where its own store puts them."""
    if uri is not None and without_credentials(uri) != config.uri:
        config = dataclasses.replace(config, artifact_location=None)
    if uri is not None:
        config = dataclasses.replace(config, uri=uri)
    return config if experiment is None else dataclasses.replace(config, experiment=experiment)


def _from_anywhere(uri: str) -> str:
    """A SQLite database named from the working directory, named from the root."""
    parts = urlsplit(uri)
    relative = parts.path.removeprefix("/")
    if parts.scheme.partition("+")[0] != "sqlite" or not relative or relative.startswith("/"):
        return uri
    return f"{parts.scheme}:///{Path(relative).absolute()}"


def _absolute(location: str | None) -> str | None:
    return location if not location or urlsplit(location).scheme else str(Path(location).absolute())
