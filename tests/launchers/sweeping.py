"""Sweeps under a launcher: started as users do, watched from outside, and looked at afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Run

from ncu_exp.outcomes import Outcome, read_outcomes
from tests.runs import TINY, Done, hear_signals

PATIENCE_S = 900.0
# The sweep of the fixture `sweep`, which Hydra's own launcher runs: jobs 0 and 2 ask fp32, 1 and 3
# bf16, so that each launcher makes two workers of it.
AXES = ("condition=zero,oracle", "precision=fp32,bf16", "dataset.limit=12")
# The same with fewer items, and a sweep of one worker's two jobs.
FEWER = (*AXES[:2], "dataset.limit=4", "latency.items=0")
ALONE = "compare.after_sweep=false"
ONE = ("condition=oracle", "precision=fp32", "prompt=directive,plain", *FEWER[2:])
MEASURED = ("latency/", "progress/", "throughput/", "memory/", "store/", "system/", "time/")


class Started:
    """A sweep that runs; its jobs are other processes'."""

    def __init__(
        self, folder: Path, model: Path, *arguments: str, axes: Sequence[str] = FEWER
    ) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "ncu_exp", "-m", *TINY, f"model.name={model}", *axes]
        self._out, self._err = folder / "out.txt", folder / "err.txt"
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [*command, *arguments],
                cwd=folder,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=hear_signals,
            )

    def out(self) -> str:
        """What the command has printed so far."""
        return self._out.read_text("utf-8")

    def pid_of(self, job_num: int) -> int:
        """The process of a job, once the job's run is open in the tracking store."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for journal in self.folder.glob(f"multirun/*/*/{job_num}/tracking.jsonl"):
                lines = journal.read_text("utf-8").splitlines()
                if len(lines) > 2:  # its head, its tags: the store has made the run
                    return int(json.loads(lines[0])["body"]["writer"]["pid"])
            assert self.process.poll() is None, self._err.read_text() + self._out.read_text()
            time.sleep(0.02)
        raise AssertionError(f"job {job_num} never began")

    def hold(self, job_num: int) -> int:
        """Stop the worker of a job in it, so that it stays there; its process."""
        pid = self.pid_of(job_num)
        os.kill(pid, signal.SIGSTOP)
        return pid

    def kill_worker_of(self, job_num: int) -> None:
        pid = self.pid_of(job_num)
        assert pid != self.process.pid
        os.kill(pid, signal.SIGKILL)

    def interrupt(self) -> None:
        """Ctrl-C, which a terminal sends to the whole group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def done(self) -> Done:
        code = self.process.wait(timeout=PATIENCE_S)
        return Done(self.folder, code, self._out.read_text(), self._err.read_text())


def launched(folder: Path, model: Path, *arguments: str, axes: Sequence[str] = AXES) -> Done:
    return Started(folder, model, *arguments, axes=axes).done()


def parent_of(done: Done) -> Run:
    [found] = [run for run in done.all_runs if run.data.tags.get("kind") == "sweep"]
    return found


def outcomes(done: Done) -> list[Outcome]:
    [folder] = done.folder.glob("multirun/*/*")
    return read_outcomes(folder)


def numbers(run: Run) -> Mapping[str, float]:
    """What the job found, apart from what it cost."""
    return {k: v for k, v in run.data.metrics.items() if not k.startswith(MEASURED)}


def finished_of(done: Done) -> list[Run]:
    """A finished run for each job, once."""
    finished = [run for run in done.runs if run.info.status == "FINISHED"]
    assert [run.data.tags["job_num"] for run in finished] == ["0", "1", "2", "3"]
    return finished


def assert_same_findings(done: Done, basic: Done) -> None:
    """The numbers of Hydra's own launcher."""
    for mine, other in zip(finished_of(done), basic.runs, strict=True):
        assert mine.data.params == other.data.params
        assert numbers(mine) == pytest.approx(numbers(other), abs=1e-6)
        rows, others = rows_of(done, mine), rows_of(basic, other)
        assert rows.keys() == others.keys()
        for key, logprobs in rows.items():
            assert logprobs == pytest.approx(others[key], abs=1e-5)


def rows_of(done: Done, run: Run) -> dict[tuple[str, str, str], Any]:
    table = done.table(run)
    keys = zip(table["item_id"], table["condition"], table["continuation"], strict=True)
    return dict(zip(keys, table["token_logprobs"], strict=True))


def assert_whole(done: Done, basic: Done) -> None:
    """A sweep that nothing disturbed: one parent, four children, their comparison, one folder."""
    assert done.code == 0, done.err
    assert_same_findings(done, basic)
    assert len(done.runs) == 4
    parent = parent_of(done)
    assert parent.info.status == "FINISHED"
    assert {run.data.tags["mlflow.parentRunId"] for run in done.runs} == {parent.info.run_id}
    assert parent.data.metrics == {"sweep/jobs": 4, "sweep/jobs_failed": 0}
    assert_compared(done)
    [folder] = done.folder.glob("multirun/*/*")  # the clock was asked once, for all processes
    assert sorted(p.parent.name for p in folder.glob("*/outcome.json")) == ["0", "1", "2", "3"]


def assert_compared(done: Done) -> None:
    found = {a.path for a in done.client.list_artifacts(parent_of(done).info.run_id)}
    assert found >= {"comparison.html", "finding.md", "figures", "tables"}


def assert_loaded_once(done: Done) -> None:
    """Each worker's two jobs share a model: the first of them loads it."""
    [folder] = done.folder.glob("multirun/*/*")
    loads = [
        (folder / str(num) / "ncu_exp.log").read_text("utf-8").count("were loaded in")
        for num in range(4)
    ]
    assert loads == [1, 1, 0, 0]


def assert_one_was_lost(done: Done, *, said: str) -> None:
    """The worker of job 2 was killed in it: the others are whole."""
    assert done.code == 1
    statuses = {int(run.data.tags["job_num"]): run.info.status for run in done.runs}
    assert statuses == {0: "FINISHED", 1: "FINISHED", 2: "FAILED", 3: "FINISHED"}
    [lost] = [run for run in done.runs if run.info.status == "FAILED"]
    assert "its worker died" in lost.data.tags["error"]
    assert said in lost.data.tags["error"]
    ended = outcomes(done)
    assert [bool(o.error) for o in ended] == [False, False, True, False]
    assert ended[2].run_id == lost.info.run_id
    assert "1 of 4 jobs failed" in done.err
    assert said in done.err
    parent = parent_of(done)
    assert parent.info.status == "FAILED"
    assert parent.data.metrics == {"sweep/jobs": 4, "sweep/jobs_failed": 1}
