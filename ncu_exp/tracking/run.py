"""Starts a run, logs to it, ends it.

Everything is written to the run's journal first, and told to MLflow second, through a client with
an explicit run id: MLflow's fluent state is per thread, and an environment variable can point it
at another run. A store that is away costs a job nothing: what it was not told is delivered at the
job's end, or by `python -m ncu_exp.upload`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError
from ncu_exp.provenance import without_credentials
from ncu_exp.tracking import operations as op
from ncu_exp.tracking.delivery import create, deliver, end_doubles, join_family
from ncu_exp.tracking.faults import delivery_errors, is_passing, store_errors, told
from ncu_exp.tracking.journal import Head, Journal, begin, journals
from ncu_exp.tracking.place import new_head
from ncu_exp.tracking.store import (
    SWEEP_RUN,
    answering,
    note_away,
    note_back,
    open_experiment,
    open_store,
    reach,
    unusable,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient

log = logging.getLogger(__name__)


class Run:
    """An open run: in its journal, and in MLflow while that answers.

    A run without a journal raises UserError where MLflow does not take what it is told.
    """

    def __init__(self, config: TrackingConfig, head: Head, *, journal: Journal | None) -> None:
        self._config, self._head, self._journal = config, head, journal
        self._client: MlflowClient | None = None  # None while the store is away
        self.run_id = ""  # until the store has made the run
        self.experiment_id = ""

    @property
    def is_away(self) -> bool:
        """Whether what the run is told goes to its journal alone."""
        return self._client is None

    def open(self) -> None:
        """Make the run in the store; raises UserError where no retry would mend the answer."""
        try:
            client = reach(self._config.uri)
            self.experiment_id = open_experiment(client, self._config)
            self.run_id = create(client, self.experiment_id, self._head)
            join_family(client, self.experiment_id, self._head, run_id=self.run_id)
        except store_errors() as error:
            if self._journal is None or not is_passing(error):
                self._forget()
                raise unusable(self._config, error) from None
            self._go_away(error)
            return
        self._client = client
        note_back(self._config.uri)

    def reopen(self, run_id: str) -> None:
        """Log more to a run that exists."""
        with answering(self._config):
            self._client = open_store(self._config.uri)
            self.run_id = run_id
            self.experiment_id = self._client.get_run(run_id).info.experiment_id

    def log_params(self, params: Mapping[str, Any]) -> None:
        self._tell(op.params(params))

    def set_tags(self, tags: Mapping[str, Any]) -> None:
        self._tell(op.tags(tags))

    def log_metrics(self, metrics: Mapping[str, float], *, step: int = 0) -> None:
        """Log the finite ones."""
        self._tell(op.metrics(metrics, step=step))

    def log_dataset(self, dataset: op.DatasetInput) -> None:
        self._tell(op.dataset(dataset))

    def describe(self, markdown: str) -> None:
        """What the UI shows as the run's description; cut at a line where it is too long."""
        if len(markdown) > op.TAG_LENGTH:
            markdown = markdown[: op.TAG_LENGTH].rpartition("\n")[0]
        self._tell(op.tags({"mlflow.note.content": markdown}))

    def log_folder(self, folder: Path) -> None:
        """Upload every file below `folder`, at the same relative places."""
        self._tell(op.folder(os.path.relpath(folder, self._place)))

    def announce_table(self, artifact: str) -> None:
        """Make the UI show a JSON table artifact in its evaluation view."""
        entry = f'[{{"path": "{artifact}", "type": "table"}}]'
        self._tell(op.tags({"mlflow.loggedArtifacts": entry}))

    def finish(self) -> None:
        self._tell(op.end("FINISHED"))
        self._settle()

    def fail(self, error: str, *, status: str = "FAILED") -> None:
        """End the run with its error: the first line as a tag, all of it as an artifact.

        A journal that cannot be written, as on a full disk, does not keep the store from it.
        """
        for operation in op.failure(error, status):
            try:
                self._write(operation)
            except UserError as unwritten:
                log.warning("%s", unwritten)
            self._apply(operation)
        self._settle()

    @property
    def _place(self) -> Path:
        return self._journal.folder if self._journal is not None else Path()

    def _tell(self, operation: op.Operation) -> None:
        self._write(operation)
        self._apply(operation)

    def _write(self, operation: op.Operation) -> None:
        if self._journal is not None:
            self._journal.add(operation)

    def _apply(self, operation: op.Operation) -> None:
        if self._client is None:
            return
        try:
            op.apply(self._client, self.run_id, operation, place=self._place)
        except store_errors() as error:
            if self._journal is None:
                raise unusable(self._config, error) from None
            self._go_away(error)

    def _go_away(self, error: Exception) -> None:
        self._client = None
        note_away(self._config.uri)
        log.warning(
            "%s The job goes on; all that its run is told is kept in %s and delivered at its end.",
            _sentence(str(unusable(self._config, error))),
            self._journal.path if self._journal is not None else "",
        )

    def _settle(self) -> None:
        """The end is told: the store has it all, or is given it all, or gets it later."""
        if self._journal is None:
            return
        if self._client is not None:
            self._mark_delivered(self._client, self._journal)
        else:
            self._deliver_late(self._journal)

    def _mark_delivered(self, client: MlflowClient, journal: Journal) -> None:
        try:
            end_doubles(client, self.experiment_id, self._head.key)
            journal.mark_delivered(self.run_id, without_credentials(self._config.uri))
        except delivery_errors() as error:  # an upload will do nothing twice
            log.warning("The run is in the store, which was not noted: %s", told(error))

    def _deliver_late(self, journal: Journal) -> None:
        try:
            self.run_id = deliver(journal, self._config)
        except delivery_errors() as error:
            log.warning(
                "The run could not be delivered: %s Its results lie in %s. %s brings them in.",
                _sentence(told(error)),
                journal.folder,
                upload_command(journal.folder),
            )
            return
        log.info("The run was delivered to the tracking store after all: %s", self.run_id)

    def _forget(self) -> None:
        """The job will not run: there is nothing to upload."""
        if self._journal is not None:
            self._journal.path.unlink(missing_ok=True)


def start_run(
    config: TrackingConfig,
    *,
    name: str,
    tags: Mapping[str, Any],
    params: Mapping[str, Any],
    folder: Path | None = None,
) -> Run:
    """Open a run in the configured experiment, creating store and experiment where needed.

    A job of a sweep (its tag `sweep`) becomes a child of the sweep's run, where there is one.
    `folder` gets the run's journal; without one, a store that is away is an error. Raises
    UserError for a store that refuses.
    """
    run = _open(config, name=name, sweep=tags.get("sweep"), is_sweep=False, folder=folder)
    run.set_tags(tags)
    run.log_params(params)
    return run


def start_sweep(
    config: TrackingConfig,
    sweep: str,
    *,
    name: str,
    tags: Mapping[str, Any],
    folder: Path | None = None,
) -> Run:
    """Open the run of a sweep, of which the runs of its jobs become children."""
    run = _open(config, name=name, sweep=sweep, is_sweep=True, folder=folder)
    run.set_tags({**tags, **SWEEP_RUN, "sweep": sweep})
    return run


def reopen_run(config: TrackingConfig, run_id: str) -> Run:
    """A run that exists, to log more to it."""
    run = Run(config, new_head(config, name="", sweep=None, is_sweep=False), journal=None)
    run.reopen(run_id)
    return run


def is_pending(folder: Path) -> bool:
    """Whether the last try of the job in a folder left a journal that no store has."""
    written = journals(folder)
    try:
        return bool(written) and not written[-1].read().is_delivered
    except UserError:  # damaged: `upload` says where
        return True


def upload_command(folder: Path) -> str:
    """What brings a folder's journals into the tracking store."""
    import shlex

    return f"python -m ncu_exp.upload {shlex.quote(str(folder))}"


def _open(
    config: TrackingConfig, *, name: str, sweep: str | None, is_sweep: bool, folder: Path | None
) -> Run:
    head = new_head(config, name=name, sweep=sweep, is_sweep=is_sweep)
    journal = None if folder is None else begin(folder.absolute(), head)
    run = Run(config, head, journal=journal)
    run.open()
    return run


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


@contextmanager
def system_metrics(config: TrackingConfig, run: Run) -> Iterator[None]:
    """Let MLflow sample CPU, memory and GPU use into the run meanwhile, if asked for.

    Its samples go to the store alone, not to the journal: there are none while it is away.
    """
    if not config.system_metrics or run.is_away:
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
