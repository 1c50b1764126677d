"""From a journal to a run in the tracking store: once, however often it is tried.

The journal's key is a tag of the run from its creation on: a try that was cut short is found by it
and continued. What was applied before is applied again, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncu_exp.config import TrackingConfig
from ncu_exp.provenance import without_credentials
from ncu_exp.tracking.faults import is_passing, store_errors
from ncu_exp.tracking.journal import Entries, Head, Journal
from ncu_exp.tracking.operations import Kind, Operation, apply, tags
from ncu_exp.tracking.store import (
    KEY,
    PARENT,
    SWEEP_RUN,
    answering,
    find_sweep_run,
    note_away,
    note_back,
    open_experiment,
    reach,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as MlflowRun

_LOCK_S = 600.0  # how long one delivery waits for another of the same journal
UNENDED = "its process ended without a word: it was killed, or its machine was"


def deliver(journal: Journal, config: TrackingConfig) -> str:
    """Bring a whole journal into the store, and mark it so; the run's id.

    Raises what the store raises, and UserError for a journal that cannot be read.
    """
    from filelock import FileLock

    with FileLock(f"{journal.path}.lock", timeout=_LOCK_S):
        entries = journal.read()
        if entries.is_delivered:
            return entries.run_id
        client = reach(config.uri)
        experiment_id = open_experiment(client, config)
        run_id = _claim(client, experiment_id, entries.head)
        for operation in _to_apply(journal, entries):
            apply(client, run_id, operation, place=journal.folder)
        if not entries.has_ended:
            _end_killed(client, run_id, journal)
        join_family(client, experiment_id, entries.head, run_id=run_id)
        journal.mark_delivered(run_id, without_credentials(config.uri))
    note_back(config.uri)
    return run_id


def deliver_safely(journal: Journal, config: TrackingConfig) -> str:
    """The same; raises UserError, without a password, whatever the store raised."""
    with answering(config):
        try:
            return deliver(journal, config)
        except store_errors() as error:
            if is_passing(error):
                note_away(config.uri)
            raise


def create(client: MlflowClient, experiment_id: str, head: Head) -> str:
    """A new run that the journal's key finds again; its id."""
    run = client.create_run(
        experiment_id, start_time=head.started, tags={KEY: head.key}, run_name=head.name
    )
    return str(run.info.run_id)


def end_doubles(client: MlflowClient, experiment_id: str, key: str) -> str | None:
    """The one run of a key, None where there is none; others are deleted.

    There are others where an answer to `create_run` was lost and MLflow asked again.
    """
    asked = f"tags.{KEY} = '{key}'"
    found: Sequence[MlflowRun] = client.search_runs(
        [experiment_id], asked, order_by=["attributes.start_time ASC", "attributes.run_id ASC"]
    )
    for double in found[1:]:
        client.delete_run(double.info.run_id)
    return str(found[0].info.run_id) if found else None


def join_family(client: MlflowClient, experiment_id: str, head: Head, *, run_id: str) -> None:
    """Make a job's run the child of its sweep's, and a sweep's run the parent of its jobs'."""
    if head.sweep is None:
        return
    if not head.is_sweep:
        parent = find_sweep_run(client, experiment_id, head.sweep)
        if parent is not None:
            client.set_tag(run_id, PARENT, parent.info.run_id)
        return
    token: str | None = None
    while True:
        page = client.search_runs(
            [experiment_id], f"tags.sweep = '{head.sweep}'", max_results=1000, page_token=token
        )
        for run in page:
            if run.data.tags.get("kind") != SWEEP_RUN["kind"] and PARENT not in run.data.tags:
                client.set_tag(run.info.run_id, PARENT, run_id)
        token = page.token
        if not token:
            return


def _claim(client: MlflowClient, experiment_id: str, head: Head) -> str:
    return end_doubles(client, experiment_id, head.key) or create(client, experiment_id, head)


def _to_apply(journal: Journal, entries: Entries) -> list[Operation]:
    """All but the folders of a job that a later try has written anew: they are that one's now."""
    operations = list(entries.operations)
    if journal.is_superseded():
        operations = [o for o in operations if o.kind is not Kind.folder]
    return operations


def _end_killed(client: MlflowClient, run_id: str, journal: Journal) -> None:
    """End a run that nobody ended; one that was ended meanwhile is left as it is."""
    if client.get_run(run_id).info.status != "RUNNING":
        return
    apply(client, run_id, tags({"error": UNENDED}), place=journal.folder)
    last = int(journal.path.stat().st_mtime * 1000)
    client.set_terminated(run_id, "KILLED", end_time=last)
