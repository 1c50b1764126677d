"""Commands run as users run them, and the store that they leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import Run

TINY = [
    "model=hf",
    "model.label=tiny",
    "latency.items=1",
    "metrics.resamples=200",
    "cache.dir=cache",
]


# Libraries that no command loads before it has to.
HEAVY = [
    "torch", "transformers", "mlflow", "pandas", "numpy", "spacy", "faker", "datasets",
    "matplotlib", "scipy", "pyarrow", "openai", "rich", "jinja2",
    "submitit", "ray", "joblib",
]  # fmt: skip


@dataclass(frozen=True)
class Done:
    """A finished command, and the store that it left."""

    folder: Path
    code: int
    out: str
    err: str

    @property
    def client(self) -> MlflowClient:
        return MlflowClient(tracking_uri=f"sqlite:///{self.folder}/mlruns/mlflow.db")

    @property
    def runs(self) -> list[Run]:
        """Those of jobs, by job number."""
        return sorted(
            (run for run in self.all_runs if "job_num" in run.data.tags),
            key=lambda r: int(r.data.tags["job_num"]),
        )

    @property
    def all_runs(self) -> list[Run]:
        """Those of jobs, of the sweep, and of comparisons."""
        experiment = self.client.get_experiment_by_name("ncu_exp")
        assert experiment is not None
        return list(self.client.search_runs([experiment.experiment_id]))

    def table(self, run: Run, name: str = "items") -> pd.DataFrame:
        with TemporaryDirectory() as folder:
            path = self.client.download_artifacts(run.info.run_id, f"tables/{name}.parquet", folder)
            return pd.read_parquet(path)


def ncu_exp(folder: Path, *arguments: str, **environment: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "ncu_exp", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return Done(folder, done.returncode, done.stdout, done.stderr)


def hear_signals() -> None:
    """Before a process starts: what is started in the background, or by nohup, ignores these."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
