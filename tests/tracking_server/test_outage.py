"""The server is killed while a job runs, and away when a sweep starts: nothing is lost."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from ncu_exp import tracking, upload
from ncu_exp.compare.cli import parse
from ncu_exp.compare.cli import run as run_comparison
from ncu_exp.config import TrackingConfig
from tests.tracking_server.services import (
    QUICK,
    Server,
    command,
    ended,
    journal_holds,
    when,
)

EXPERIMENT = "of a group that lost its server"
TIMES = ("progress/", "throughput/", "memory/", "store/")  # what differs from run to run


@dataclass(frozen=True)
class Outage:
    """What was done and said while the server was away, and what the upload said later."""

    server: Server
    job: Path
    job_told: str
    sweep: Path
    sweep_told: str
    uploaded: str
    calm: Run  # the same job as the disturbed one, undisturbed

    @property
    def runs(self) -> list[Run]:
        return [
            run for run in self.server.runs(EXPERIMENT) if run.info.run_id != self.calm.info.run_id
        ]


@pytest.fixture(scope="module")
def outage(running: Server, job: list[str], tmp_path_factory: pytest.TempPathFactory) -> Outage:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUICK.items():
            patch.setenv(name, value)
        return _outage(running, job, tmp_path_factory.mktemp("away"))


def _outage(server: Server, job: list[str], folder: Path) -> Outage:
    place = ["tracking=server", f"tracking.uri={server.uri}", f"tracking.experiment={EXPERIMENT}"]
    server.start()
    code, told = ended(command(folder / "calm", *job, *place))
    assert code == 0, told
    (calm,) = server.runs(EXPERIMENT)

    process = command(folder / "job", *job, *place)
    when(lambda: journal_holds(folder / "job", '"dataset"'), process)
    server.kill()
    code, job_told = ended(process)
    assert code == 0, job_told
    code, sweep_told = ended(command(folder / "sweep", "-m", *job, *place, "precision=fp32,bf16"))
    assert code == 0, sweep_told

    server.start()
    _close_to_dead(server)
    with redirect_stdout(StringIO()) as uploaded:
        assert upload.main([str(folder / "job" / "multirun"), str(folder / "sweep")]) == 0
    return Outage(
        server, folder / "job", job_told, folder / "sweep", sweep_told, uploaded.getvalue(), calm
    )


def _close_to_dead(server: Server) -> None:
    """Before the upload: the disturbed run is open and bare, the sweep is unknown."""
    names = [run.info.status for run in server.runs(EXPERIMENT)]
    assert sorted(names) == ["FINISHED", "RUNNING"]


def test_a_job_whose_server_dies_says_so_once_and_goes_on(outage: Outage) -> None:
    told = " ".join(outage.job_told.split())
    assert told.count("The job goes on") == 1
    (folder,) = (p.parent for p in outage.job.rglob("outcome.json"))
    assert f"python -m ncu_exp.upload {folder}" in told
    assert (folder / "results" / "tables" / "items.parquet").is_file()


def test_its_run_equals_an_undisturbed_one(outage: Outage) -> None:
    (disturbed,) = (run for run in outage.runs if "sweep" not in run.data.tags)
    assert disturbed.info.status == "FINISHED"
    assert _asked_and_found(disturbed) == _asked_and_found(outage.calm)
    assert disturbed.inputs.dataset_inputs == outage.calm.inputs.dataset_inputs
    assert outage.server.artifacts(disturbed) == outage.server.artifacts(outage.calm)
    assert _table(outage.server, disturbed) == _table(outage.server, outage.calm)
    assert disturbed.info.start_time < disturbed.info.end_time


def test_its_metrics_keep_their_times(outage: Outage) -> None:
    (folder,) = (p.parent for p in outage.job.rglob("outcome.json"))
    (journal,) = tracking.journals_below(folder)
    (disturbed,) = (run for run in outage.runs if "sweep" not in run.data.tags)
    client = MlflowClient(tracking_uri=outage.server.uri)
    told = [o.body for o in journal.read().operations if o.kind == "metrics"]
    for metric in ("progress/requests_done", "zero/accuracy"):
        history = client.get_metric_history(disturbed.info.run_id, metric)
        assert [(m.value, m.timestamp, m.step) for m in history] == [
            (body["values"][metric], body["at"], body["step"])
            for body in told
            if metric in body["values"]
        ]


def test_a_sweep_whose_server_was_away_has_its_parent(outage: Outage) -> None:
    swept = [run for run in outage.runs if "sweep" in run.data.tags]
    (parent,) = (run for run in swept if run.data.tags.get("kind") == "sweep")
    children = [run for run in swept if run is not parent]
    assert [run.data.tags["mlflow.parentRunId"] for run in children] == [parent.info.run_id] * 2
    assert {run.info.status for run in swept} == {"FINISHED"}
    assert "did not take 2 of 2 runs of this sweep" in outage.sweep_told
    assert "can be compared once its runs are uploaded" in outage.sweep_told


def test_outcomes_tell_what_waits_until_it_is_uploaded(outage: Outage) -> None:
    outcomes = [json.loads(p.read_text()) for p in outage.sweep.rglob("outcome.json")]
    ids = {run.info.run_id for run in outage.runs}
    assert [o["pending"] for o in outcomes] == [False, False]
    assert {o["run_id"] for o in outcomes} <= ids


def test_a_second_upload_does_nothing(outage: Outage, capsys: pytest.CaptureFixture[str]) -> None:
    before = [(run.info.run_id, run.data.tags) for run in outage.runs]
    assert upload.main([str(outage.job), str(outage.sweep)]) == 0
    assert "Nothing to do" in capsys.readouterr().out
    assert [(run.info.run_id, run.data.tags) for run in outage.runs] == before


def test_the_comparison_is_made_by_the_command_that_the_upload_prints(
    outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(outage.sweep)  # below which the comparison lies as well
    line = next(x for x in outage.uploaded.splitlines() if "ncu_exp.compare" in x)
    run_comparison(parse(shlex.split(line)[3:]))
    (parent,) = (run for run in outage.runs if run.data.tags.get("kind") == "sweep")
    assert "comparison.html" in outage.server.artifacts(parent)


def test_an_upload_that_is_killed_is_continued(server: Server, tmp_path: Path) -> None:
    config = _pending(tmp_path / "run", metrics=200)
    moved = ["tracking.experiment=killed uploads", f"tracking.uri={server.uri}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ncu_exp.upload", str(tmp_path), *moved], stdout=subprocess.PIPE
    )
    when(lambda: bool(server.runs("killed uploads")), process)  # type: ignore[arg-type]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (half,) = server.runs("killed uploads")
    assert half.info.status == "RUNNING"

    assert upload.main([str(tmp_path), *moved]) == 0
    (whole,) = server.runs("killed uploads")
    assert whole.info.run_id == half.info.run_id
    assert whole.info.status == "FINISHED"
    client = MlflowClient(tracking_uri=server.uri)
    history = client.get_metric_history(whole.info.run_id, "m")
    assert [m.value for m in history] == [float(i) for i in range(200)]
    assert config.experiment != "killed uploads"


def test_two_runs_of_one_key_become_one(server: Server, tmp_path: Path) -> None:
    """MLflow asks again where an answer is lost: a server that took both has the run twice."""
    _pending(tmp_path, metrics=1)
    (journal,) = tracking.journals_below(tmp_path)
    client = MlflowClient(tracking_uri=server.uri)
    experiment = client.create_experiment("doubles")
    for _ in range(2):
        client.create_run(experiment, tags={"journal": journal.read().head.key})
    moved = ["tracking.experiment=doubles", f"tracking.uri={server.uri}"]
    assert upload.main([str(tmp_path), *moved]) == 0
    (only,) = server.runs("doubles")
    assert only.info.status == "FINISHED"


def _pending(folder: Path, *, metrics: int) -> TrackingConfig:
    """A run of which no store knows: its server is nowhere."""
    away = TrackingConfig(uri="http://127.0.0.1:9", experiment="e")
    (folder / "results").mkdir(parents=True)
    (folder / "results" / "a.txt").write_text("a")
    run = tracking.start_run(away, name="r", tags={}, params={"p": 1}, folder=folder)
    for number in range(metrics):
        run.log_metrics({"m": float(number)}, step=number)
    run.log_folder(folder / "results")
    run.finish()
    assert tracking.is_pending(folder)
    return away


def _asked_and_found(run: Run) -> tuple[dict[str, str], dict[str, float], dict[str, str]]:
    metrics = {k: v for k, v in run.data.metrics.items() if not k.startswith(TIMES)}
    changing = ("journal", "mlflow.source.git.commit")  # somebody may commit between the two
    tags = {k: v for k, v in run.data.tags.items() if k not in changing}
    assert {k for k in run.data.metrics if k.startswith("progress/")}
    return run.data.params, metrics, tags


def _table(server: Server, run: Run) -> bytes:
    client = MlflowClient(tracking_uri=server.uri)
    return Path(client.download_artifacts(run.info.run_id, "tables/items.parquet")).read_bytes()
