"""How long does it take to compare many runs, and how much memory?

    python -m benchmarks.comparison [--runs 50] [--items 3000]

Leaves runs with invented scores in a store of its own, compares them as `python -m
ncu_exp.compare` does, and writes docs/comparison_time.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.past import leave_runs

DOCS = Path(__file__).resolve().parent.parent / "docs" / "comparison_time.md"


@dataclass(frozen=True)
class Taken:
    seconds: float
    cpu_seconds: float
    peak_gb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--items", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with TemporaryDirectory() as place:
        store = Path(place)
        labels = [f"model-{number:02}" for number in range(asked.runs)]
        config, ids = leave_runs(store, labels, items=asked.items)
        command = [
            *(sys.executable, "-m", "ncu_exp.compare", f"runs=[{','.join(ids)}]"),
            f"tracking.uri={config.tracking.uri}",
            f"tracking.artifact_location={config.tracking.artifact_location}",
        ]
        taken = [compare(command, store) for _ in range(asked.rounds)]
    report(asked, taken)


def compare(command: list[str], place: Path) -> Taken:
    """One comparison as a process of its own."""
    start = time.perf_counter()
    with (place / "out").open("w") as out:
        process = subprocess.Popen(command, cwd=place, stdout=out, stderr=out)
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit((place / "out").read_text())
    cpu = usage.ru_utime + usage.ru_stime
    taken = Taken(seconds, cpu, usage.ru_maxrss / 2**20)
    print(f"{taken.seconds:.1f} s, {taken.cpu_seconds:.1f} s of CPU, {taken.peak_gb:.2f} GB")
    return taken


def report(asked: argparse.Namespace, taken: list[Taken]) -> None:
    middle = sorted(taken, key=lambda one: one.seconds)[len(taken) // 2]
    pairs = asked.runs * (asked.runs - 1) // 2
    DOCS.write_text(
        f"""# How long a comparison takes

Written by `python -m benchmarks.comparison --runs {asked.runs} --items {asked.items}` on
{os.cpu_count()} cores ({platform.machine()}): {asked.runs} runs of {asked.items:,} items under four
conditions, {pairs:,} pairs of systems, 2,000 resamples shared by all; page, tables and figures
included. Median of {len(taken)} rounds, each a process of its own.

| | |
|---|--:|
| from the command to its end | {middle.seconds:.0f} s |
| of all cores together | {middle.cpu_seconds:.0f} s |
| peak memory | {max(one.peak_gb for one in taken):.2f} GB |
""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
