"""Ctrl-C, and what Slurm, Docker and systemd send: runs are marked KILLED, scores are kept."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.faults.process import ONE_THREAD, arguments_for, kept, start
from tests.runs import Done, ncu_exp

ITEMS = 60


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return arguments_for(tmp_path_factory.mktemp("asked"), items=ITEMS)


def stop_while_scoring(folder: Path, arguments: list[str], number: signal.Signals) -> None:
    job = start(folder, *arguments)
    assert job.reached(lambda: kept(folder / "cache") > 3)
    code, told = job.send(number)
    assert code == 128 + number, told
    assert "Stopped. What was scored is kept: the same command goes on from there." in told
    assert "Traceback" not in told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
def test_a_job_that_is_asked_to_end_is_killed_in_the_tracking_store(
    tmp_path: Path, arguments: list[str], number: signal.Signals
) -> None:
    stop_while_scoring(tmp_path, arguments, number)
    (run,) = Done(tmp_path, 0, "", "").runs
    assert run.info.status == "KILLED"
    assert run.data.tags["error"] == "interrupted"


def test_ctrl_c_ends_a_sweep_and_its_job_and_the_next_start_goes_on(
    tmp_path: Path, arguments: list[str]
) -> None:
    swept = ["-m", *arguments, "prompt=directive,grounded"]
    stop_while_scoring(tmp_path, swept, signal.SIGINT)
    stopped = Done(tmp_path, 0, "", "")
    assert {run.info.status for run in stopped.all_runs} == {"KILLED"}
    assert len(stopped.runs) == 1
    assert len(stopped.all_runs) == 2  # the sweep's own
    before = kept(tmp_path / "cache")

    again = ncu_exp(tmp_path, *swept, **ONE_THREAD)
    assert again.code == 0, again.err
    finished = [run for run in again.runs if run.info.status == "FINISHED"]
    assert len(finished) == 2
    first = min(finished, key=lambda run: run.data.tags["job_num"])
    asked = int(first.data.metrics["zero/n"]) * 2 + int(first.data.metrics["adversarial/n"])
    assert first.data.metrics["store/hit_rate"] * asked >= before - 1  # the way is no score
