"""Sweeps in processes of this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ncu_exp.errors import UserError
from ncu_exp.launchers.joblib import JoblibEngine
from ncu_exp.launchers.options import JoblibOptions
from tests.launchers.sweeping import (
    ALONE,
    FEWER,
    Started,
    assert_compared,
    assert_loaded_once,
    assert_one_was_lost,
    assert_whole,
    finished_of,
    launched,
    parent_of,
)
from tests.runs import Done

# As many threads as the basic launcher's process has: the order of sums depends on it.
LAUNCHER = ["hydra/launcher=joblib", f"hydra.launcher.threads_per_job={os.cpu_count()}"]


def test_a_sweep_in_processes_is_as_one_in_a_process(
    tmp_path: Path, tiny_model_dir: Path, sweep: Done
) -> None:
    done = launched(tmp_path, tiny_model_dir, *LAUNCHER)
    assert_whole(done, sweep)
    assert_loaded_once(done)


def test_a_worker_that_is_killed_does_not_end_the_others(
    tmp_path: Path, tiny_model_dir: Path
) -> None:
    started = Started(tmp_path, tiny_model_dir, *LAUNCHER)
    started.kill_worker_of(2)
    done = started.done()
    assert_one_was_lost(done, said="SIGKILL(-9)")
    assert_compared(done)  # what is left


def test_an_interrupted_sweep_goes_on_in_its_folder(tmp_path: Path, tiny_model_dir: Path) -> None:
    again = [*LAUNCHER, "hydra.sweep.dir=multirun/of/mine", ALONE]
    started = Started(tmp_path, tiny_model_dir, *again)
    started.pid_of(2)  # so the first job of its worker has finished
    started.interrupt()
    stopped = started.done()
    assert stopped.code != 0
    runs = {run.info.run_id: run for run in stopped.runs}
    assert {run.info.status for run in runs.values()} <= {"FINISHED", "KILLED"}
    assert parent_of(stopped).info.status == "KILLED"
    finished = {run_id for run_id, run in runs.items() if run.info.status == "FINISHED"}
    assert len(finished) < 4

    done = launched(tmp_path, tiny_model_dir, *again, axes=FEWER)
    assert done.code == 0, done.err
    assert f"{len(finished)} of 4 jobs finished before" in done.out
    assert finished <= {run.info.run_id for run in finished_of(done)}


@dataclass(frozen=True)
class Told:
    """Stands for a worker: notes which GPUs and threads its process may use."""

    path: Path

    def __call__(self) -> None:
        env = os.environ
        self.path.write_text(f"{env.get('CUDA_VISIBLE_DEVICES')} {env['OMP_NUM_THREADS']}", "utf-8")


def run_all(engine: JoblibEngine, workers: Any, folder: Path) -> list[str]:
    return [ended.error for ended in engine.run(workers, folder)]


def test_each_worker_has_its_own_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5,6,7")
    options = JoblibOptions(grain=[], n_jobs=2, gpus_per_job=2, threads_per_job=3)
    workers = [Told(tmp_path / name) for name in "ab"]
    assert run_all(JoblibEngine(options), workers, tmp_path) == ["", ""]
    assert {w.path.read_text("utf-8") for w in workers} == {"3,5 3", "6,7 3"}


def test_more_gpus_than_there_are_is_an_error_and_no_job_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    options = JoblibOptions(grain=[], n_jobs=2, gpus_per_job=1)
    with pytest.raises(UserError, match=r"need 2, and this machine has 1.*gpus_per_job"):
        run_all(JoblibEngine(options), [Told(tmp_path / name) for name in "ab"], tmp_path)
    assert not list(tmp_path.iterdir())
