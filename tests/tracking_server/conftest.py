"""The shared tracking of a group: a server over PostgreSQL, started for these tests alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.tracking_server.services import QUICK, PostgreSQL, Server, postgresql_bin


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    binaries = postgresql_bin()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed: .ci/postgres installs it (Debian: postgresql)")
    pytest.importorskip("psycopg", reason="pip install 'ncu_exp[dev]' brings psycopg")
    folder = Path(mkdtemp(prefix="ncu-pg-"))  # short: it holds a socket; and open to its user
    cluster = PostgreSQL(folder, binaries)
    yield cluster
    cluster.stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def running(postgresql: PostgreSQL, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"), postgresql.uri)
    yield server
    server.kill()


@pytest.fixture
def server(running: Server) -> Server:
    """The server, up, whatever the test before did to it."""
    running.start()
    return running


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MLFLOW_TRACKING")]:
        monkeypatch.delenv(name)
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def job(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The overrides of a job of seconds."""
    cache = tmp_path_factory.mktemp("cache")
    return [
        "model=hf", "model.label=tiny", f"model.name={tiny_model_dir}", f"cache.dir={cache}",
        "dataset.limit=2", "latency.items=0", "metrics.resamples=100", "condition=zero",
    ]  # fmt: skip
