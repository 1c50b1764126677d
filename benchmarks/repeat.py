"""How much sooner is a finished sweep done the second time, and is it the same?

    python -m benchmarks.repeat [--repeats 3] [--docs FOLDER] [OVERRIDE ...]

A sweep (default: `prompt=grounded,directive` of the default model and the bundled items) runs as
users run it, `python -m ncu_exp -m`, with a cache that holds the default model's weights, where no
other model is named, and no scores. Then the weights are taken away from that cache, so that a run
that loads them fails, and the same command runs again, a few times. The items tables of all jobs
have to be the same, byte for byte. What is left of the time is start-up, metrics with their
bootstrap, figures and tracking. The comparison at a sweep's end is apart: it takes as long every
time (compare.after_sweep=false).

Exit code 0: measured. 1: a run failed, or a table differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

SWEEP = ("prompt=grounded,directive",)
JOBS_ALONE = "compare.after_sweep=false"
TABLES = "multirun/**/results/tables/items.parquet"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sweep and its repeats, print the table and write it down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs/repeat")
    args, overrides = parser.parse_known_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            record = measure(Path(scratch), overrides or SWEEP, repeats=args.repeats)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    args.docs.mkdir(parents=True, exist_ok=True)
    (args.docs / "repeat.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    (args.docs / "repeat.md").write_text(render(record), "utf-8")
    print(render(record))
    return 0


def measure(scratch: Path, overrides: Sequence[str], *, repeats: int) -> dict[str, Any]:
    """Seconds of the first time and of each repeat. Raises RuntimeError as the exit code says."""
    cache = scratch / "cache"
    if not any(each.startswith("model=") for each in overrides):
        # Converts the packaged weights; asks what the sweep does not: it answers nothing of it.
        _run(scratch / "weights", cache, ["prompt=plain", "dataset.limit=1", "condition=zero"])
    folder = scratch / "sweeps"
    first, tables = _run(folder, cache, ["-m", JOBS_ALONE, *overrides])
    for weights in cache.glob("models/*/*.safetensors"):
        weights.unlink()
    seconds = []
    for number in range(repeats):
        again, found = _run(folder, cache, ["-m", JOBS_ALONE, *overrides])
        if found != tables:
            raise RuntimeError(f"the tables of repeat {number} are not those of the first time")
        seconds.append(again)
    return {
        "overrides": list(overrides),
        "jobs": len(tables),
        "first_s": first,
        "repeats_s": seconds,
        "tables_sha256": tables,
    }


def _run(folder: Path, cache: Path, arguments: Sequence[str]) -> tuple[float, list[str]]:
    """Seconds of a command in a folder, and the hashes of the tables that it made there."""
    folder.mkdir(exist_ok=True)
    before = set(folder.glob(TABLES))
    command = [sys.executable, "-m", "ncu_exp", *arguments, f"cache.dir={cache}"]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    tables = sorted(set(folder.glob(TABLES)) - before)
    return seconds, [hashlib.sha256(path.read_bytes()).hexdigest() for path in tables]


def render(record: dict[str, Any]) -> str:
    """What was measured, in Markdown."""
    again = median(record["repeats_s"])
    spread = f"{min(record['repeats_s']):.1f} to {max(record['repeats_s']):.1f}"
    return (
        f"`python -m ncu_exp -m {' '.join(record['overrides'])}`, {record['jobs']} jobs\n\n"
        "| | seconds |\n|---|--:|\n"
        f"| first time, weights converted before | {record['first_s']:.1f} |\n"
        f"| again, weights taken away (median of {len(record['repeats_s'])}; {spread}) "
        f"| {again:.1f} |\n"
        f"| ratio | {record['first_s'] / again:.1f} |\n\n"
        "The items tables of all jobs are the same, byte for byte.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
