"""A real PostgreSQL and a real MLflow server over it, which can be killed and started again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
import requests
from mlflow import MlflowClient
from mlflow.entities import Run

# What a user sets where minutes of retries are too long; here a second is.
QUICK = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
}
# What a machine under load may take for what takes seconds.
_START_S = 420.0
_PATIENCE_S = 1200.0


def postgresql_bin() -> Path | None:
    """The folder of initdb and postgres, which Debian keeps out of the PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = str(debian[-1]) if debian else shutil.which("initdb")
    return Path(found).parent if found else None


class PostgreSQL:
    """A cluster in a folder of its own, on a socket there, run by a user who is not root."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self._folder, self._binaries = folder, binaries
        self._user = "postgres" if _exists("postgres") else "nobody"
        self._as: dict[str, str] = {"user": self._user} if os.getuid() == 0 else {}
        if self._as:
            shutil.chown(folder, self._user)
        self._run("initdb", "-D", f"{folder}/data", "-U", "mlflow", "-A", "trust", "--no-sync")
        self._process = subprocess.Popen(
            [binaries / "postgres", "-D", f"{folder}/data", "-k", str(folder),
             "-c", "listen_addresses=", "-c", "fsync=off"],
            **self._as, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
        )  # fmt: skip
        self._create("mlflow")

    @property
    def uri(self) -> str:
        return f"postgresql+psycopg://mlflow@/mlflow?host={self._folder}"

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
        self._process.wait(timeout=60)

    def _create(self, name: str) -> None:
        end = time.monotonic() + _START_S
        while True:
            try:
                self._run("createdb", "-h", str(self._folder), "-U", "mlflow", name)
                return
            except subprocess.CalledProcessError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._binaries / program, *arguments],
            **self._as, check=True, capture_output=True, cwd=self._folder,
        )  # fmt: skip


class Server:
    """`mlflow server` on one port for all its lives; artifacts pass through it."""

    def __init__(
        self,
        folder: Path,
        database: str,
        *options: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._folder, self._options = folder, options
        self._database, self._environment = database, environment or {}
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, unless it runs, and wait until it answers."""
        if self._process is not None:
            return
        with (self._folder / "server.log").open("ab") as log_file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", self._database,
                 "--artifacts-destination", f"{self._folder}/artifacts", "--host", "127.0.0.1",
                 "--port", str(self.port), "--workers", "1", *self._options],
                env={
                    **os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
                    **self._environment,
                },
                stdout=log_file, stderr=subprocess.STDOUT,
                cwd=self._folder, start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + _START_S
        while not self._answers():
            log = (self._folder / "server.log").read_text()[-2000:]
            if self._process.poll() is not None or time.monotonic() > end:
                self.kill()
                pytest.fail(log)
            time.sleep(0.2)

    def kill(self) -> None:
        """SIGKILL, to all of its processes."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=60)
            self._process = None

    def runs(self, experiment: str) -> list[Run]:
        client = MlflowClient(tracking_uri=self.uri)
        found = client.get_experiment_by_name(experiment)
        return list(client.search_runs([found.experiment_id])) if found else []

    def artifacts(self, run: Run, path: str = "") -> set[str]:
        """The paths of all files of a run."""
        client = MlflowClient(tracking_uri=self.uri)
        found: set[str] = set()
        for entry in client.list_artifacts(run.info.run_id, path or None):
            found |= self.artifacts(run, entry.path) if entry.is_dir else {entry.path}
        return found

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.uri}/health", timeout=5).status_code == 200
        except requests.ConnectionError:
            return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def command(folder: Path, *arguments: str, module: str = "ncu_exp") -> subprocess.Popen[str]:
    """A command as a user starts it, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit code, and all that it printed."""
    try:
        out, err = process.communicate(timeout=_PATIENCE_S)
    finally:
        process.kill()  # nothing where it has ended
    return process.returncode, out + err


def all_ended(at_once: Sequence[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """The same of several; none is left behind where one fails."""
    try:
        return [ended(process) for process in at_once]
    finally:
        for process in at_once:
            process.kill()
            process.communicate()


def when(happens: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for a moment in the life of a process."""
    end = time.monotonic() + _PATIENCE_S
    while not happens():
        assert process.poll() is None, "".join(process.communicate())
        assert time.monotonic() < end
        time.sleep(0.02)


def journal_holds(folder: Path, text: str) -> bool:
    """Whether a run whose folder lies anywhere below was told something."""
    return any(text in path.read_text() for path in folder.rglob("tracking*.jsonl"))
