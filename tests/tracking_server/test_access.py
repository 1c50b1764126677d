"""A server that asks who is there: MLflow's own authentication, by MLflow's own variables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_exp import tracking
from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError
from tests.tracking_server.services import PostgreSQL, Server, command, ended

PASSWORD, WRONG = "correct-horse-battery", "wrong-horse-battery"


@pytest.fixture(scope="module")
def guarded(postgresql: PostgreSQL, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guarded")
    settings = folder / "auth.ini"
    settings.write_text(
        "[mlflow]\ndefault_permission = READ\nadmin_username = admin\n"
        f"database_uri = sqlite:///{folder}/users.db\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
    )
    environment = {
        "MLFLOW_AUTH_CONFIG_PATH": str(settings),
        "MLFLOW_AUTH_ADMIN_PASSWORD": PASSWORD,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "of-this-test",
    }
    server = Server(folder, postgresql.uri, "--app-name", "basic-auth", environment=environment)
    yield server
    server.kill()


def test_a_wrong_password_is_an_error_at_once(
    guarded: Server, job: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "admin")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", WRONG)
    place = ["tracking=server", f"tracking.uri={guarded.uri}", "tracking.experiment=guarded"]
    code, told = ended(command(tmp_path, *job, *place))
    assert code == 1
    assert f"tracking.uri={guarded.uri} cannot be used" in " ".join(told.split())
    assert "MLFLOW_TRACKING_PASSWORD" in told
    assert WRONG not in told
    assert not list(tmp_path.rglob("items.parquet")), "the job ran all the same"
    assert not list(tmp_path.rglob("tracking*.jsonl")), "there is nothing to upload"


def test_the_right_one_logs_and_stands_in_no_file(
    guarded: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "admin")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.txt").write_text("a")
    config = TrackingConfig(uri=guarded.uri, experiment="guarded")
    run = tracking.start_run(config, name="r", tags={}, params={}, folder=tmp_path)
    run.log_folder(tmp_path / "results")
    run.finish()
    (found,) = guarded.runs("guarded")
    assert found.info.status == "FINISHED"
    assert guarded.artifacts(found) == {"a.txt"}
    assert all(PASSWORD not in p.read_text() for p in tmp_path.rglob("*") if p.is_file())


def test_a_password_in_the_address_stands_in_no_file(guarded: Server, tmp_path: Path) -> None:
    address = guarded.uri.replace("//", f"//admin:{PASSWORD}@")
    config = TrackingConfig(uri=address, experiment="by address")
    tracking.start_run(config, name="r", tags={}, params={"a": address}, folder=tmp_path).finish()
    assert PASSWORD not in (tmp_path / "tracking.jsonl").read_text()
    wrong = TrackingConfig(uri=address.replace(PASSWORD, WRONG), experiment="by address")
    with pytest.raises(UserError) as told:
        tracking.start_run(wrong, name="r", tags={}, params={}, folder=tmp_path / "wrong")
    assert WRONG not in str(told.value)
