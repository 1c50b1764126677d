"""Journals of runs, and their upload: what a killed process, a torn line, a second try leave."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from ncu_exp import tracking, upload
from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError
from ncu_exp.outcomes import Outcome, read_outcomes, write_outcome
from ncu_exp.tracking.journal import Writer

AWAY = TrackingConfig(uri="http://127.0.0.1:9", experiment="e")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a store that is there."""
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/mlflow.db"


@pytest.fixture(autouse=True)
def _no_retries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.chdir(tmp_path)  # where an experiment without a place keeps its artifacts


def start(folder: Path, config: TrackingConfig = AWAY) -> tracking.Run:
    return tracking.start_run(config, name="r", tags={"a": 1}, params={"b": 2}, folder=folder)


def upload_to(store: str, test: str, *arguments: object) -> int:
    return upload.main(
        [*map(str, arguments), f"tracking.uri={store}", f"tracking.experiment={test}"]
    )


def runs(store: str, experiment: str) -> list[Run]:
    client = MlflowClient(tracking_uri=store)
    found = client.get_experiment_by_name(experiment)
    return list(client.search_runs([found.experiment_id])) if found else []


def killed_in(folder: Path, *, uri: str, experiment: str = "e") -> None:
    """A process that starts a run, logs to it, and is killed."""
    code = f"""
import os, signal
from pathlib import Path
from ncu_exp.config import TrackingConfig
from ncu_exp.tracking import start_run
config = TrackingConfig(uri={uri!r}, experiment={experiment!r})
run = start_run(config, name="r", tags={{}}, params={{}}, folder=Path({str(folder)!r}))
run.log_metrics({{"m": 1.0}}, step=3)
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], timeout=300, check=False, capture_output=True)


def test_a_run_of_a_store_that_is_there_waits_for_nothing(store: str, tmp_path: Path) -> None:
    start(tmp_path, TrackingConfig(uri=store, experiment="there")).finish()
    assert not tracking.is_pending(tmp_path)
    assert upload.main([str(tmp_path)]) == 0
    assert len(runs(store, "there")) == 1


def test_a_killed_run_is_ended_where_it_stands(store: str, tmp_path: Path) -> None:
    killed_in(tmp_path, uri=store, experiment="killed")
    (open_still,) = runs(store, "killed")
    assert open_still.info.status == "RUNNING"
    assert upload.main([str(tmp_path)]) == 0
    (run,) = runs(store, "killed")
    assert run.info.run_id == open_still.info.run_id
    assert run.info.status == "KILLED"
    assert "without a word" in run.data.tags["error"]
    assert run.data.metrics == {"m": 1.0}


def test_a_killed_run_that_was_ended_meanwhile_stays_so(store: str, tmp_path: Path) -> None:
    killed_in(tmp_path, uri=store, experiment="ended")
    (run,) = runs(store, "ended")
    MlflowClient(tracking_uri=store).set_terminated(run.info.run_id, "FAILED")
    assert upload.main([str(tmp_path)]) == 0
    assert [run.info.status for run in runs(store, "ended")] == ["FAILED"]


def test_a_run_at_work_is_left_alone(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = start(tmp_path)
    assert upload_to(store, "at work", tmp_path) == 0
    assert "is left alone" in capsys.readouterr().out
    assert not runs(store, "at work")
    run.fail("interrupted", status="KILLED")
    assert upload_to(store, "at work", tmp_path) == 0
    (found,) = runs(store, "at work")
    assert (found.info.status, found.data.tags["error"]) == ("KILLED", "interrupted")


def test_of_another_machine_nobody_knows(store: str, tmp_path: Path) -> None:
    start(tmp_path)
    path = tmp_path / "tracking.jsonl"
    head, *rest = path.read_text().splitlines()
    moved = json.loads(head)
    moved["body"]["writer"] = dataclasses.asdict(Writer("elsewhere", 1, 0.0))
    path.write_text("\n".join([json.dumps(moved), *rest]) + "\n")
    assert upload_to(store, "elsewhere", tmp_path) == 0
    assert not runs(store, "elsewhere")
    assert upload_to(store, "elsewhere", tmp_path, "ended=true") == 0
    assert [run.info.status for run in runs(store, "elsewhere")] == ["KILLED"]


def test_a_line_cut_short_is_no_damage(store: str, tmp_path: Path) -> None:
    run = start(tmp_path)
    with (tmp_path / "tracking.jsonl").open("a") as journal:
        journal.write('{"op": "metrics", "bo')
    run.log_metrics({"m": 1.0})  # does not go on in the middle of that line
    run.finish()
    assert upload_to(store, "cut short", tmp_path) == 0
    assert [run.data.metrics for run in runs(store, "cut short")] == [{"m": 1.0}]


def test_a_damaged_line_is_named_and_the_other_runs_come_in(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("good", "bad"):
        start(tmp_path / name).finish()
    path = tmp_path / "bad" / "tracking.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[1] = b"\x00" * len(lines[1])
    path.write_bytes(b"\n".join(lines))
    assert upload_to(store, "damaged", tmp_path) == 1
    assert f"{path}, line 2, is damaged" in capsys.readouterr().err
    assert len(runs(store, "damaged")) == 1


def test_a_process_killed_before_its_first_line_leaves_nothing(store: str, tmp_path: Path) -> None:
    (tmp_path / "tracking.jsonl").write_text('{"op": "he')
    assert upload_to(store, "nothing", tmp_path) == 0


def test_a_second_try_has_a_journal_of_its_own_and_the_results(store: str, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    for text in ("first", "second"):
        (tmp_path / "results" / "a.txt").write_text(text)
        run = start(tmp_path)
        run.log_folder(tmp_path / "results")
        run.log_metrics({"m": float(len(text))})
        run.finish()
    assert upload_to(store, "tries", tmp_path) == 0
    client = MlflowClient(tracking_uri=store)
    held = {
        run.data.metrics["m"]: [a.path for a in client.list_artifacts(run.info.run_id)]
        for run in runs(store, "tries")
    }
    assert held == {5.0: [], 6.0: ["a.txt"]}


def test_an_outcome_tells_that_its_run_came_in(store: str, tmp_path: Path) -> None:
    start(tmp_path).finish()
    write_outcome(tmp_path, Outcome(0, [], pending=tracking.is_pending(tmp_path)))
    assert [o.pending for o in read_outcomes(tmp_path)] == [True]
    assert upload_to(store, "outcome", tmp_path) == 0
    (run,) = runs(store, "outcome")
    assert [(o.pending, o.run_id) for o in read_outcomes(tmp_path)] == [(False, run.info.run_id)]


def test_jobs_and_sweep_find_each_other_in_any_order(store: str, tmp_path: Path) -> None:
    there = TrackingConfig(uri=store, experiment="family")
    gone = dataclasses.replace(AWAY, experiment="family")
    tracking.start_sweep(gone, "s1", name="s", tags={}, folder=tmp_path).finish()
    tags = {"sweep": "s1"}
    for number, config in enumerate((there, gone)):  # the server came back between them
        tracking.start_run(
            config, name=f"job {number}", tags=tags, params={}, folder=tmp_path / str(number)
        ).finish()
    assert upload.main([str(tmp_path / "1"), f"tracking.uri={store}"]) == 0
    assert upload.main([str(tmp_path), f"tracking.uri={store}"]) == 0
    by_name = {run.info.run_name: run for run in runs(store, "family")}
    assert by_name.keys() == {"s", "job 0", "job 1"}
    parent = by_name["s"].info.run_id
    for job in ("job 0", "job 1"):
        assert by_name[job].data.tags["mlflow.parentRunId"] == parent


def test_what_cannot_be_brought_in_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tmp_path).finish()
    assert upload.main([str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "r (" in told
    assert "tracking.uri=http://127.0.0.1:9 cannot be used" in told


def test_without_a_journal_a_store_that_is_away_is_an_error() -> None:
    with pytest.raises(UserError, match="cannot be used"):
        tracking.start_run(AWAY, name="r", tags={}, params={})


@pytest.mark.parametrize(
    "arguments", [["no-such-folder"], ["tracking.uri=x"], [".", "ended=maybe"], [".", "a=b"]]
)
def test_arguments_that_mean_nothing_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert upload.main(arguments) == 1
    assert "UserError" in capsys.readouterr().err
