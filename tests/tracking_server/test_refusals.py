"""What ends a job at its start, and what it goes on without: by what a store really answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import ErrorCode

from ncu_exp import tracking
from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError
from ncu_exp.tracking.faults import is_passing
from tests.tracking_server.services import PostgreSQL


@pytest.fixture(autouse=True)
def _no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


def start(uri: str, folder: Path, *, experiment: str = "e") -> tracking.Run:
    config = TrackingConfig(uri=uri, experiment=experiment)
    return tracking.start_run(config, name="r", tags={}, params={}, folder=folder)


@contextmanager
def other_server(status: int, body: bytes) -> Iterator[str]:
    """A web server that gives one answer to everything; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Not to the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, b"You are not authenticated."),
        (403, b'{"error_code": "PERMISSION_DENIED", "message": "no"}'),
        (404, b"not here"),
        (200, b"<html>another site</html>"),
    ],
)
def test_an_answer_that_no_retry_mends_is_an_error(
    status: int, body: bytes, tmp_path: Path
) -> None:
    with other_server(status, body) as uri, pytest.raises(UserError, match="cannot be used"):
        start(uri, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, b"later"),
        (500, b'{"error_code": "INTERNAL_ERROR", "message": "oh"}'),
        (502, b"<html>bad gateway</html>"),
        (503, b'{"error_code": "TEMPORARILY_UNAVAILABLE", "message": "no database"}'),
    ],
)
def test_a_server_that_cannot_serve_now_is_away(status: int, body: bytes, tmp_path: Path) -> None:
    with other_server(status, body) as uri:
        run = start(uri, tmp_path)
        assert run.is_away
        run.finish()
    assert tracking.is_pending(tmp_path)


@pytest.mark.parametrize(
    ("code", "passes"),
    [
        ("TEMPORARILY_UNAVAILABLE", True),
        ("RESOURCE_DOES_NOT_EXIST", False),
        ("INTERNAL_ERROR", False),
    ],
)
def test_mlflows_code_decides_where_no_request_failed(code: str, passes: bool) -> None:
    """The first is what a locked database gets, after the 20 s that MLflow waits."""
    assert is_passing(MlflowException("it is so", ErrorCode.Value(code))) is passes


def test_nobody_there_is_away(tmp_path: Path) -> None:
    for uri in ("http://127.0.0.1:9", "http://no-such-host.invalid"):
        assert start(uri, tmp_path).is_away


def _not_a_database(place: Path) -> str:
    (place / "x.db").write_text("a text, and a long one, which is no database at all" * 40)
    return f"sqlite:///{place}/x.db"


def _in_a_file(place: Path) -> str:
    (place / "file").touch()
    return f"sqlite:///{place}/file/mlflow.db"


@pytest.mark.parametrize(
    "address",
    [
        _not_a_database,
        _in_a_file,
        lambda _: "http://127.0.0.1:999999",
        lambda _: "nonsense://somewhere",
        lambda _: "http://",
    ],
    ids=["no database", "no folder", "no port", "no scheme", "no host"],
)
def test_an_address_that_cannot_be_meant_is_an_error(
    address: Callable[[Path], str], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"tracking\.uri=.* cannot be used"):
        start(address(tmp_path), tmp_path / "run")
    assert not tracking.is_pending(tmp_path / "run")


def test_a_database_of_another_schema_is_an_error(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    start(uri, tmp_path / "run").finish()
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = 'of the future'")
    elsewhere = f"sqlite:///{tmp_path}/./mlflow.db"  # the same file, which is opened anew
    with pytest.raises(UserError, match=r"schema|revision"):
        start(elsewhere, tmp_path / "again")


def test_an_experiment_that_was_deleted_is_an_error(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    run = start(uri, tmp_path / "run")
    run.finish()
    MlflowClient(tracking_uri=uri).delete_experiment(run.experiment_id)
    with pytest.raises(UserError, match="cannot be used"):
        start(uri, tmp_path / "again")


def test_a_database_server_that_is_there_without_the_database_is_an_error(
    postgresql: PostgreSQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlflow.store.db.utils.MAX_RETRY_COUNT", 1)  # of 100 s
    with pytest.raises(UserError, match="does not exist"):
        start(postgresql.uri.replace("/mlflow?", "/another?"), tmp_path)
