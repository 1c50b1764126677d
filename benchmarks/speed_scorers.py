"""The scorers of the speed benchmark, each behind a process that keeps its model loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.agreement import PEERS_VARIABLE, REQUIREMENTS
from benchmarks.peers import peer_python
from ncu_exp.errors import ModelError

ROOT = Path(__file__).parents[1]
WORKER = Path(__file__).with_name("speed_worker.py")
OURS, LOOP = "ncu_exp", "naive"
# The folder of a peer's environment and what is in it: the same torch and transformers for all.
ENVIRONMENTS = {
    "lm-eval": ("lm-eval", REQUIREMENTS),
    "lm-eval-8": ("lm-eval", REQUIREMENTS),
    "minicons": ("minicons", ("minicons==0.3.39", *REQUIREMENTS[1:])),
}
NAMES = (OURS, LOOP, *ENVIRONMENTS)
WITHOUT_GREEDY = ("minicons",)  # its scorers do not generate


def is_able(name: str, work: str) -> bool:
    """Whether a scorer can do a work."""
    return not (work == "greedy" and name in WITHOUT_GREEDY)


def scorer_python(name: str, *, cache_dir: Path, peers: Path | None) -> Path:
    """The Python that has a scorer; a peer's is installed on first use. Raises NetworkError."""
    if name not in ENVIRONMENTS:
        return Path(sys.executable)
    kept = peers or Path(os.environ.get(PEERS_VARIABLE) or cache_dir / "peers")
    folder, requirements = ENVIRONMENTS[name]
    return peer_python(kept.expanduser().resolve() / folder, requirements)


class Scorer:
    """A scorer in a process of its own, which waits for work on its standard input."""

    def __init__(self, name: str, process: subprocess.Popen[str], errors: Path) -> None:
        self.name, self._process, self._errors = name, process, errors
        self.versions: dict[str, str] = {}
        self.note = ""

    def wait_until_loaded(self) -> None:
        """Return when the model is loaded. Raises ModelError where the process has died."""
        hello = self._answer()
        self.versions, self.note = hello["versions"], hello["note"]

    def ask(self, work: str) -> dict[str, Any]:
        """Its answer, after it has worked. Raises ModelError where the process has died."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"work": work}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # there will be no answer, which is told below
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            tail = self._errors.read_text("utf-8", errors="replace").strip()[-2000:]
            raise ModelError(f"the scorer {self.name} ended with {code}:\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def started(
    name: str, python: Path, *, model: str, workload: Path, precision: str, threads: int
) -> Iterator[Scorer]:
    """A scorer that loads its model meanwhile; its process ends with the context."""
    ours = python == Path(sys.executable)
    command = [python, "-P" if ours else "-I", WORKER, name, model, workload, precision, threads]
    environment = {
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": str(threads),
        "PYTHONPATH": str(ROOT),
        "TOKENIZERS_PARALLELISM": "false",
    }
    errors = workload.with_name(f"{name}-{precision}.log")
    with errors.open("wb") as log:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | environment,
        )
    try:
        yield Scorer(name, process, errors)
    finally:
        process.kill()
        process.communicate()
