"""Sweeps on a real Slurm of one node, which `.ci/slurm` starts."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from ncu_exp.errors import UserError
from ncu_exp.launchers.options import SlurmOptions
from ncu_exp.launchers.slurm import SlurmEngine
from tests.launchers.sweeping import (
    ALONE,
    AXES,
    ONE,
    Started,
    assert_compared,
    assert_loaded_once,
    assert_one_was_lost,
    assert_same_findings,
    assert_whole,
    launched,
    parent_of,
)
from tests.runs import Done

needs_slurm = pytest.mark.skipif(
    os.environ.get("NCU_EXP_SLURM") != "1",
    reason="NCU_EXP_SLURM is not set: .ci/slurm starts a Slurm on this machine (as root)",
)
LAUNCHER = [
    "hydra/launcher=slurm",
    *("hydra.launcher.partition=batch", "hydra.launcher.gpus_per_job=0"),
    *("hydra.launcher.cpus_per_job=1", "hydra.launcher.mem_gb=2", "hydra.launcher.timeout_min=20"),
    "hydra.launcher.poll_s=0.5",
]
HEARD_S = 3.0  # until a signal that Slurm was asked to send has come
OPTIONS = SlurmOptions(
    grain=[],
    gpus_per_job=0,
    cpus_per_job=1,
    mem_gb=1,
    timeout_min=1,
    max_timeouts=0,
    requeue=True,
    array_parallelism=1,
    poll_s=0.2,
)


def slurm(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def array_of(started: Started) -> str:
    """The Slurm job of a sweep, as the command tells it."""
    [job_id] = re.findall(r"Slurm job (\d+);", started.out())
    return job_id


def fields(job: str) -> dict[str, str]:
    told = slurm("scontrol", "show", "job", "--oneliner", job)
    return dict(word.partition("=")[::2] for word in shlex.split(told) if "=" in word)


@needs_slurm
def test_a_sweep_on_slurm_is_as_one_in_a_process(
    tmp_path: Path, tiny_model_dir: Path, sweep: Done
) -> None:
    card = "hydra.launcher.gpus_per_job=1"
    started = Started(tmp_path, tiny_model_dir, *LAUNCHER, card, axes=AXES)
    started.pid_of(0)
    asked = fields(f"{array_of(started)}_0")
    done = started.done()
    assert_whole(done, sweep)
    assert_loaded_once(done)
    assert asked["Partition"] == "batch"
    assert "gres/gpu:1" in asked["TresPerNode"].replace("gres:gpu", "gres/gpu")
    assert asked["Requeue"] == "1"


@needs_slurm
def test_a_worker_that_is_killed_does_not_end_the_others(
    tmp_path: Path, tiny_model_dir: Path
) -> None:
    started = Started(tmp_path, tiny_model_dir, *LAUNCHER, ALONE)
    started.kill_worker_of(2)
    assert_one_was_lost(started.done(), said="FAILED")


@needs_slurm
def test_jobs_that_are_preempted_go_on_and_lose_nothing(
    tmp_path: Path, tiny_model_dir: Path, sweep: Done
) -> None:
    started = Started(tmp_path, tiny_model_dir, *LAUNCHER, axes=AXES)
    pid = started.hold(2)  # its worker has finished job 0
    slurm("sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap", "sleep 1")
    with suppress(ProcessLookupError):
        while True:  # Slurm wakes what it preempts, and gives it seconds to end by itself
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.002)
    done = started.done()
    assert done.code == 0, done.err
    restarts = [int(fields(f"{array_of(started)}_{task}")["Restarts"]) for task in (0, 1)]
    assert restarts[0] == 1
    assert restarts[1] <= 1  # the other worker may have finished by then

    assert_same_findings(done, sweep)
    assert_compared(done)
    assert parent_of(done).info.status == "FINISHED"
    tries = Counter(run.data.tags["job_num"] for run in done.runs)
    assert tries["0"] == 1  # it was finished: not repeated
    assert tries["2"] == 2
    ids = {run.info.run_id for run in done.runs}
    for run in done.runs:
        if run.info.status != "FINISHED":
            assert run.info.status == "KILLED"
            assert any(other in run.data.tags["error"] for other in ids - {run.info.run_id})


@needs_slurm
def test_a_worker_that_runs_out_of_time_is_queued_again(
    tmp_path: Path, tiny_model_dir: Path
) -> None:
    started = Started(tmp_path, tiny_model_dir, *LAUNCHER, ALONE, axes=ONE)
    pid = started.hold(0)
    slurm("scancel", "--signal=USR2", array_of(started))  # as Slurm does before the end of the time
    time.sleep(HEARD_S)
    os.kill(pid, signal.SIGCONT)
    done = started.done()
    assert done.code == 0, done.err
    assert Counter(run.info.status for run in done.runs) == {"FINISHED": 2, "KILLED": 1}


@needs_slurm
def test_what_slurm_refuses_is_said_in_its_words(tmp_path: Path, tiny_model_dir: Path) -> None:
    done = launched(tmp_path, tiny_model_dir, *LAUNCHER, "hydra.launcher.partition=none")
    assert done.code == 1
    assert "Slurm refused the sweep" in done.err
    assert "invalid partition" in done.err
    assert parent_of(done).info.status == "FAILED"


@needs_slurm
def test_an_interrupted_sweep_leaves_no_job_in_the_queue(
    tmp_path: Path, tiny_model_dir: Path
) -> None:
    started = Started(tmp_path, tiny_model_dir, *LAUNCHER)
    started.hold(0)
    array = array_of(started)
    started.interrupt()
    done = started.done()
    assert done.code != 0
    assert slurm("squeue", "--noheader", f"--jobs={array}").strip() == ""
    assert parent_of(done).info.status == "KILLED"
    ended = {run.data.tags["job_num"]: run.info.status for run in done.runs}
    assert ended["0"] == "KILLED"
    assert set(ended.values()) <= {"KILLED", "FINISHED"}


def test_a_machine_without_slurm_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="there is no Slurm on this machine"):
        next(SlurmEngine(OPTIONS).run([], tmp_path))
