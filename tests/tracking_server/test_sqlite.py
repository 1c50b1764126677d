"""The default store, a SQLite database, under more than one process."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Run

from ncu_exp import upload
from tests.tracking_server.services import all_ended, command, ended, journal_holds, when


def test_eight_jobs_that_start_at_once_share_a_new_database(job: list[str], tmp_path: Path) -> None:
    folders = [f"hydra.run.dir=multirun/{number}" for number in range(8)]
    at_once = [command(tmp_path, *job, folder) for folder in folders]
    for code, told in all_ended(at_once):
        assert code == 0, told
    assert [run.info.status for run in _runs(tmp_path)] == ["FINISHED"] * 8
    assert upload.main([str(tmp_path / "multirun")]) == 0
    assert len(_runs(tmp_path)) == 8


def test_a_database_that_is_locked_for_long_costs_the_job_nothing(
    job: list[str], tmp_path: Path
) -> None:
    """Longer than MLflow waits, 20 s: the job goes on, and its run is delivered at its end."""
    process = command(tmp_path, *job, "dataset.limit=3")
    when(lambda: journal_holds(tmp_path, '"dataset"'), process)
    database = tmp_path / "mlruns" / "mlflow.db"
    with closing(sqlite3.connect(database, timeout=60, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        when(lambda: "The job goes on" in _log(tmp_path), process)
        other.execute("ROLLBACK")
    code, told = ended(process)
    assert code == 0, told
    assert "database is locked" in told
    assert "Traceback" not in told
    (run,) = _runs(tmp_path)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["zero/n"] == 3
    assert not upload.main([str(tmp_path / "multirun")])
    assert len(_runs(tmp_path)) == 1


def _runs(folder: Path) -> list[Run]:
    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/mlruns/mlflow.db")
    experiment = client.get_experiment_by_name("ncu_exp")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id]))


def _log(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("ncu_exp.log"))
