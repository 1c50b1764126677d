"""Runs whose process ended without a word: killed, out of memory, its machine gone, queued again.

Their journals tell which they are: one that has no end. Whoever knows that the process is gone ends
the run here, in the journal first and in the store second.
"""

from __future__ import annotations

import logging
import socket
from pathlib import Path

from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError
from ncu_exp.tracking import operations as op
from ncu_exp.tracking.delivery import deliver
from ncu_exp.tracking.faults import delivery_errors, told
from ncu_exp.tracking.journal import Journal, journals
from ncu_exp.tracking.run import Run, upload_command

log = logging.getLogger(__name__)


def end_lost(folder: Path, config: TrackingConfig, error: str, *, status: str = "FAILED") -> str:
    """End the run of a job whose process is known to be gone; its id, where the store has it."""
    run_id = ""
    for journal in _without_end(folder):
        run_id = _end(journal, config, error=error, status=status)
    return run_id


def end_earlier(folder: Path, config: TrackingConfig, run: Run) -> None:
    """End the runs that earlier tries in `folder` left open; `run`, just begun, takes their place.

    One whose process lives on this machine is left alone.
    """
    for journal in _without_end(folder)[:-1]:
        writer = journal.read().head.writer
        if writer.host == socket.gethostname() and writer.may_live():
            continue
        goes_on = f"run {run.run_id}" if run.run_id else "a new run"
        error = f"its process was killed or queued again: {goes_on} goes on"
        _end(journal, config, error=error, status="KILLED")


def _without_end(folder: Path) -> list[Journal]:
    """The journals of a folder that nobody ended; one that cannot be read is left to `upload`."""
    found = []
    for journal in journals(folder):
        try:
            if not journal.read().has_ended:
                found.append(journal)
        except UserError as error:
            log.warning("%s", error)
    return found


def _end(journal: Journal, config: TrackingConfig, *, error: str, status: str) -> str:
    try:
        for operation in op.failure(error, status):
            journal.add(operation)
        return deliver(journal, config)
    except delivery_errors() as unwritten:
        log.warning(
            "A run that was lost could not be ended: %s %s does it.",
            told(unwritten),
            upload_command(journal.folder),
        )
        return ""
