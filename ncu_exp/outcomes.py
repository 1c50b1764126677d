"""How the jobs of a run or a sweep ended, as files in its folder: they may be other processes'."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

OUTCOME = "outcome.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: `error` is empty for one that finished."""

    job_num: int
    overrides: list[str]
    run_id: str = ""
    error: str = ""


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
