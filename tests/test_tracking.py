"""Runs in a real MLflow store: SQLite, in a folder of the test."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from ncu_exp import tracking
from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> TrackingConfig:
    place = tmp_path_factory.mktemp("store")
    return TrackingConfig(
        uri=f"sqlite:///{place}/deep/mlflow.db",
        experiment="an experiment",
        artifact_location=str(place / "artifacts"),
    )


def start(config: TrackingConfig) -> tracking.Run:
    return tracking.start_run(
        config,
        name="a name",
        tags={"sweep": "s1", "absent": None},
        params={"model": "m", "x": None},
    )


def read(config: TrackingConfig, run: tracking.Run):  # type: ignore[no-untyped-def]
    return MlflowClient(tracking_uri=config.uri).get_run(run.run_id)


def test_a_run_from_start_to_finish(config: TrackingConfig, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "a.png").write_bytes(b"png")
    run = start(config)
    run.log_metrics({"zero/accuracy": 0.5, "zero/em": math.nan, "oracle/ncu_raw_mean": -math.inf})
    run.log_dataset(tracking.DatasetInput("sample", "bundled", "ab" * 32, 96))
    run.log_folder(tmp_path)
    run.announce_table("tables/items_preview.json")
    run.finish()

    found = read(config, run)
    assert found.info.status == "FINISHED"
    assert found.info.run_name == "a name"
    assert found.data.params == {"model": "m"}
    assert found.data.tags["sweep"] == "s1"
    assert "absent" not in found.data.tags
    assert found.data.metrics == {"zero/accuracy": 0.5}  # NaN and infinity are not numbers
    assert [i.dataset.name for i in found.inputs.dataset_inputs] == ["sample"]
    client = MlflowClient(tracking_uri=config.uri)
    assert [a.path for a in client.list_artifacts(run.run_id, "figures")] == ["figures/a.png"]


def test_a_failed_run_holds_its_error(config: TrackingConfig) -> None:
    run = start(config)
    run.fail("DataError: row 7 has no answer\n\nTraceback ...")
    found = read(config, run)
    assert found.info.status == "FAILED"
    assert found.data.tags["error"] == "DataError: row 7 has no answer"
    client = MlflowClient(tracking_uri=config.uri)
    assert "error.txt" in [a.path for a in client.list_artifacts(run.run_id)]


def test_values_longer_than_the_store_takes_are_cut(config: TrackingConfig) -> None:
    run = start(config)
    run.set_tags({"long": "x" * 20_000})
    run.log_params({"long": "y" * 20_000})
    found = read(config, run)
    assert found.data.tags["long"] == "x" * tracking.TAG_LENGTH
    assert found.data.params["long"] == "y" * tracking.PARAM_LENGTH


def test_system_metrics_on_request(config: TrackingConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.1")
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLES_BEFORE_LOGGING", "1")
    run = start(config)
    with tracking.system_metrics(config, run):
        pass
    assert not read(config, run).data.metrics
    asked = TrackingConfig(**{**vars(config), "system_metrics": True})
    with tracking.system_metrics(asked, run):
        time.sleep(2)
    names = read(config, run).data.metrics
    assert any(name.startswith("system/") for name in names)


def test_a_server_that_is_away_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    away = TrackingConfig(uri="http://me:hunter2@127.0.0.1:9", experiment="e")
    with pytest.raises(UserError, match=r"tracking\.uri=http://127\.0\.0\.1:9 cannot") as told:
        start(away)
    assert "hunter2" not in str(told.value)


def test_processes_that_start_at_once_share_a_new_store(tmp_path: Path) -> None:
    code = f"""
from ncu_exp.config import TrackingConfig
from ncu_exp.tracking import start_run
config = TrackingConfig(uri="sqlite:///{tmp_path}/mlflow.db", experiment="e")
start_run(config, name="r", tags={{}}, params={{}}).finish()
"""
    racing = [
        subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, cwd=tmp_path)
        for _ in range(4)
    ]
    for process in racing:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.get_experiment_by_name("e")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    assert [r.info.status for r in runs] == ["FINISHED"] * 4


@pytest.mark.parametrize(
    ("uri", "command"),
    [
        ("sqlite:////a/mlflow.db", "--backend-store-uri sqlite:////a/mlflow.db"),
        ("http://u:p@host:5000", "http://host:5000"),
    ],
)
def test_how_to_open_the_ui(uri: str, command: str) -> None:
    told = tracking.ui_command(TrackingConfig(uri=uri, experiment="e"))
    assert told.endswith(command)
