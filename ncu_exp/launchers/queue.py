"""Slurm's queue, as `squeue` tells it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

# States from which a job does not come back; one that is queued again is PENDING, not PREEMPTED.
_OVER = frozenset({
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "REVOKED", "TIMEOUT",
})  # fmt: skip
_UNKNOWN_JOB = "Invalid job id"


@dataclass(frozen=True, slots=True)
class State:
    """A job's state and why it is in it, in Slurm's words."""

    name: str
    reason: str = ""

    @property
    def is_over(self) -> bool:
        return self.name in _OVER or self is LOST

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})" if self.reason not in ("", "None") else self.name


LOST = State("unknown to Slurm by now")


@dataclass(frozen=True, slots=True)
class Queue:
    """The jobs of one array, or the one job, that `job_id` names."""

    job_id: str

    def states(self) -> Mapping[str, State] | None:
        """By job id; None while Slurm does not answer, as in its maintenance."""
        command = ["squeue", "--noheader", "--array", "--states=all", f"--jobs={self.job_id}"]
        told = subprocess.run(
            [*command, "--format=%i|%T|%r"], capture_output=True, text=True, check=False
        )
        if told.returncode:
            return {} if _UNKNOWN_JOB in told.stderr else None
        rows = (line.split("|", 2) for line in told.stdout.splitlines() if line.count("|") >= 2)
        return {job: State(state, reason) for job, state, reason in rows}
