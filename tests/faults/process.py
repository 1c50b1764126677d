"""A job in a process of its own, that is watched and given signals at moments of its life."""

from __future__ import annotations

import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scaling import made_up_items
from ncu_exp.contents import SCORES
from tests.runs import TINY, hear_signals
from tests.tiny import save_tiny_model

PATIENCE_S = 300.0
# Threads of one job that wait for each other: two cores that others use too make that slow.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def arguments_for(place: Path, *, items: int) -> list[str]:
    """Those of a job on made-up items with a tiny model, both of which are put into the place."""
    model = save_tiny_model(place / "model")
    data = place / "items.jsonl"
    rows = (json.dumps(item) + "\n" for item in made_up_items(items, words=30))
    data.write_text("".join(rows), encoding="utf-8")
    return [
        *(*TINY, f"model.name={model}", "dataset=local", f"dataset.path={data}"),
        *("precision=fp32", "score.batch_tokens=512", "condition.names=[oracle,adversarial]"),
    ]


def kept(cache: Path, name: str = SCORES) -> int:
    """The entries in a store of a cache; none where there is no store yet."""
    path = cache / name
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path, timeout=10)) as db:
        tables = db.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'contents'")
        is_made = tables.fetchone()[0] == 1
        return int(db.execute("SELECT COUNT(*) FROM contents").fetchone()[0]) if is_made else 0


@dataclass(frozen=True)
class Job:
    """A command that runs in a folder: its process, and what waits for its end."""

    folder: Path
    pid: int
    poll: Callable[[], int | None]
    wait: Callable[[], tuple[int, str]]  # the exit code, and what was said to standard error

    def reached(self, is_time: Callable[[], bool]) -> bool:
        """Whether the moment came before the process ended."""
        deadline = time.monotonic() + PATIENCE_S
        while self.poll() is None:
            if is_time():
                return True
            assert time.monotonic() < deadline, "the moment never came"
            time.sleep(0.01)
        return False

    def send(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal and wait for the end."""
        os.kill(self.pid, number)
        return self.wait()


def start(folder: Path, *arguments: str) -> Job:
    """The command in a new process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ncu_exp", *arguments],
        cwd=folder,
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,
    )

    def wait() -> tuple[int, str]:
        _, told = process.communicate(timeout=PATIENCE_S)
        return process.returncode, told

    return Job(folder, process.pid, process.poll, wait)


class Warm:
    """Starts commands without the seconds that imports take: a process that forks (`warm.py`)."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.warm"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, **ONE_THREAD},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Warm:
        return self

    def __exit__(self, *args: object) -> None:
        self._process.communicate(timeout=PATIENCE_S)

    def start(self, folder: Path, *arguments: str) -> Job:
        """The command in a fork; one at a time."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        asked.write(json.dumps({"folder": str(folder), "arguments": arguments}) + "\n")
        asked.flush()
        pid = int(answers.readline())

        def poll() -> int | None:
            return 0 if select.select([answers], [], [], 0)[0] else None

        def wait() -> tuple[int, str]:
            return int(answers.readline()), (folder / "told").read_text(encoding="utf-8")

        return Job(folder, pid, poll, wait)
