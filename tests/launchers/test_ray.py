"""Sweeps on a Ray that starts with them, on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.launchers.sweeping import (
    ALONE,
    ONE,
    Started,
    assert_one_was_lost,
    assert_whole,
    launched,
)
from tests.runs import Done

pytest.importorskip("ray", reason="ray is not installed: pip install 'ncu_exp[ray]'")

CORES = os.cpu_count() or 1
# Two workers at once with as many threads each as the basic launcher's process has.
LAUNCHER = [
    "hydra/launcher=ray",
    "hydra.launcher.gpus_per_job=0",
    f"hydra.launcher.cpus_per_job={CORES}",
    f"+hydra.launcher.init.num_cpus={2 * CORES}",
]


def test_a_sweep_on_ray_is_as_one_in_a_process(
    tmp_path: Path, tiny_model_dir: Path, sweep: Done
) -> None:
    assert_whole(launched(tmp_path, tiny_model_dir, *LAUNCHER), sweep)


def test_a_worker_that_is_killed_does_not_end_the_others(
    tmp_path: Path, tiny_model_dir: Path
) -> None:
    started = Started(tmp_path, tiny_model_dir, *LAUNCHER, "hydra.launcher.retries=0", ALONE)
    started.kill_worker_of(2)
    assert_one_was_lost(started.done(), said="WorkerCrashedError")


def test_a_worker_that_is_killed_starts_again_and_goes_on(
    tmp_path: Path, tiny_model_dir: Path
) -> None:
    again = [*LAUNCHER, "hydra.launcher.retries=1", ALONE]
    started = Started(tmp_path, tiny_model_dir, *again, axes=ONE)
    started.kill_worker_of(1)
    done = started.done()
    assert done.code == 0, done.err
    assert [run.info.status for run in done.runs if run.data.tags["job_num"] == "0"] == ["FINISHED"]
    killed, finished = sorted(
        (run for run in done.runs if run.data.tags["job_num"] == "1"),
        key=lambda run: run.info.start_time,
    )
    assert (killed.info.status, finished.info.status) == ("KILLED", "FINISHED")
    assert finished.info.run_id in killed.data.tags["error"]


def test_gpus_that_are_not_there_are_an_error_and_no_wait(
    tmp_path: Path, tiny_model_dir: Path
) -> None:
    done = launched(
        tmp_path, tiny_model_dir, "hydra/launcher=ray", "hydra.launcher.gpus_per_job=64"
    )
    assert done.code == 1
    assert "hydra.launcher.gpus_per_job=64, and this machine has " in done.err
