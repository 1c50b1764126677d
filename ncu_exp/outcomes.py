"""How the jobs of a run or a sweep ended, as files in its folder: they may be other processes'."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

OUTCOME = "outcome.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: `error` is empty for one that finished.

    `pending`: its run lies in its folder, and has yet to be uploaded to the tracking store.
    `asked_sha256`: of its whole configuration; empty where that could not be read.
    """

    job_num: int
    overrides: list[str]
    run_id: str = ""
    error: str = ""
    pending: bool = False
    asked_sha256: str = ""


def sweep_id(folder: Path) -> str:
    """A name for a sweep, equal in all its jobs: its time, and a hash of where its folder lies."""
    place = folder.absolute()
    digest = sha256(str(place).encode()).hexdigest()[:6]
    return f"{place.parent.name}_{place.name}-{digest}"


def read_outcomes(folder: Path) -> list[Outcome]:
    """The outcomes below a run's or a sweep's folder, by job number."""
    found = [
        Outcome(**json.loads(path.read_text(encoding="utf-8")))
        for path in (*folder.glob(OUTCOME), *folder.glob(f"*/{OUTCOME}"))
    ]
    return sorted(found, key=lambda o: o.job_num)


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Put it into a job's folder, which is made where there is none: all of it or nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{OUTCOME}.{os.getpid()}"
    beside.write_text(json.dumps(asdict(outcome), indent=1), encoding="utf-8")
    beside.replace(folder / OUTCOME)


def asked_sha256(config: object) -> str:
    """Of a job's whole configuration, as plain dataclasses."""
    return sha256(repr(config).encode()).hexdigest()


def finished_before(folder: Path, asked: str) -> Outcome | None:
    """The outcome of an earlier try in a job's folder, if it finished and was asked the same."""
    path = folder / OUTCOME
    if not path.is_file():
        return None
    outcome = Outcome(**json.loads(path.read_text(encoding="utf-8")))
    return outcome if not outcome.error and outcome.asked_sha256 == asked else None


def mark_delivered(folder: Path, run_id: str) -> None:
    """Note in a job's folder, if it is one, that its run is in the tracking store now."""
    path = folder / OUTCOME
    if path.is_file():
        outcome = Outcome(**json.loads(path.read_text(encoding="utf-8")))
        write_outcome(folder, replace(outcome, run_id=run_id, pending=False))
