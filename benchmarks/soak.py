"""Do memory, open files and time per job stay flat over thousands of jobs in one sweep?

    python -m benchmarks.soak [--jobs 2000] [--folder FOLDER] [--docs FOLDER] [OVERRIDE ...]
    python -m benchmarks.soak --read FOLDER [--docs FOLDER]

One `python -m ncu_exp -m` runs so many small jobs in one process: a tiny random model, three
bundled items, another perturbation in each job, so that each draws, scores and stores what none
before it did. The process is looked at from outside, after each job and at least every few seconds:
resident memory, open files, threads, processor seconds; when a job ended tells its `outcome.json`.
The cache is new. The jobs are not compared at the end: so many systems are no comparison.

What is seen goes to `samples.jsonl` in FOLDER at once; `--read` makes the documents of a soak that
is still going on, or was broken off. Exit code 1: the sweep failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.soak_report import write_documents

OVERRIDES = (
    "model=hf",
    "model.label=tiny",
    "precision=fp32",
    "dataset.limit=3",
    "condition=adversarial",
    "latency.items=0",
    "metrics.resamples=100",
    "cache.dir=cache",
    "compare.after_sweep=false",
    # Hydra composes a batch before it starts one: all jobs at once would be minutes of silence.
    "hydra.sweeper.max_batch_size=50",
)
# A model as small gains nothing from more, and threads that wait for a busy machine's cores spin.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
LOOK_EVERY_S, SAMPLE_EVERY_S = 0.2, 10.0
SAMPLES = "samples.jsonl"


@dataclass(frozen=True, slots=True)
class Sample:
    """The process after so many jobs; `at_s` and `cpu_s` are seconds since it started."""

    jobs: int
    at_s: float
    cpu_s: float
    resident_mb: float
    open_files: int
    threads: int


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sweep, write down what was seen of it; the exit code is that of the sweep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--folder", type=Path, help="keep the sweep here (default: nowhere)")
    parser.add_argument("--read", type=Path, help="run nothing, read the soak of this folder")
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs")
    args, overrides = parser.parse_known_args(argv)
    if args.read:
        return _write(read(args.read), args.docs)
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or Path(scratch)
        code = soak(folder.absolute(), jobs=args.jobs, overrides=overrides)
        written = _write(read(folder), args.docs)
        if code:
            print((folder / "log.txt").read_text("utf-8", errors="replace")[-3_000:])
    return code or written


def _write(record: Mapping[str, Any], docs: Path) -> int:
    """Write and print the documents; 1 where there is nothing to tell yet."""
    if len(record["ended_s"]) < 2:
        print("Fewer than two jobs have ended.")
        return 1
    print(write_documents(record, docs))
    return 0


def soak(folder: Path, *, jobs: int, overrides: Sequence[str]) -> int:
    """Run the sweep in a folder, sampling it into `samples.jsonl`; its exit code."""
    from tests.tiny import save_tiny_model

    folder.mkdir(parents=True, exist_ok=True)
    model = save_tiny_model(folder / "model")
    asked = [*OVERRIDES, *overrides, f"perturb.seed=range(0,{jobs})"]
    command = [sys.executable, "-m", "ncu_exp", "-m", *asked, f"model.name={model}"]
    facts = {"jobs": jobs, "overrides": asked, "started": time.time()}
    (folder / "soak.json").write_text(json.dumps(facts), "utf-8")
    with (
        (folder / "log.txt").open("wb") as log,
        (folder / SAMPLES).open("w", encoding="utf-8") as samples,
    ):
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env=ONE_THREAD | os.environ
        )
        for sample in _watch(process, folder):
            samples.write(json.dumps(asdict(sample)) + "\n")
            samples.flush()
    return process.wait()


def _watch(process: subprocess.Popen[bytes], folder: Path) -> Iterator[Sample]:
    """A sample after each job, and every few seconds, until the process ends."""
    seen, start = psutil.Process(process.pid), time.perf_counter()
    done, told = 0, start
    while process.poll() is None:
        time.sleep(LOOK_EVERY_S)
        ended = _jobs_ended(folder, done)
        now = time.perf_counter()
        if ended == done and now - told < SAMPLE_EVERY_S:
            continue
        done, told = ended, now
        try:
            yield _look_at(seen, jobs=done, at_s=now - start)
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            return  # it ended between the two looks


def _look_at(seen: psutil.Process, *, jobs: int, at_s: float) -> Sample:
    with seen.oneshot():
        cpu = seen.cpu_times()
        return Sample(
            jobs=jobs,
            at_s=at_s,
            cpu_s=cpu.user + cpu.system + cpu.children_user + cpu.children_system,
            resident_mb=seen.memory_info().rss / 1e6,
            open_files=seen.num_fds(),
            threads=seen.num_threads(),
        )


def _jobs_ended(folder: Path, known: int) -> int:
    """How many jobs have ended, of which so many are known; they run one after another."""
    sweep = next(folder.glob("multirun/*/*/"), None)
    while sweep is not None and (sweep / str(known) / "outcome.json").exists():
        known += 1
    return known


def read(folder: Path) -> dict[str, Any]:
    """What a soak has left in its folder so far: its facts, its samples, when its jobs ended."""
    facts = json.loads((folder / "soak.json").read_text("utf-8"))
    lines = (folder / SAMPLES).read_text("utf-8").splitlines()
    samples = [json.loads(line) for line in lines]
    outcomes = sorted(
        (int(path.parent.name), path.stat().st_mtime, json.loads(path.read_text("utf-8")))
        for path in folder.glob("multirun/*/*/*/outcome.json")
    )
    return {
        **facts,
        "samples": samples,
        "ended_s": [at - facts["started"] for _, at, _ in outcomes],
        "failed": sum(bool(outcome["error"]) for _, _, outcome in outcomes),
        "database_mb": sum(p.stat().st_size for p in folder.glob("mlruns/mlflow.db*")) / 1e6,
    }


if __name__ == "__main__":
    sys.exit(main())
