"""Does the time per item stay flat, and the memory, as a data set grows?

    python -m benchmarks.scaling [--items N ...] [--words N] [--name NAME] [--docs FOLDER]
                                 [OVERRIDE ...]

Each size is one `python -m ncu_exp` in a process of its own, on made-up items and a tiny random
model, so that what is measured is all that the framework does around a model: reading, drawing,
perturbing, prompting, scoring, storing, tables, metrics, figures, report and tracking.
The operating system counts the peak memory of the process. The smallest run's time is the start-up
(imports, MLflow, spaCy), so the time per item is that between a size and the next one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

SIZES = (100, 1_000, 10_000)
# The bootstrap would outweigh the tiny model; its own time is linear in the items.
OVERRIDES = ("precision=fp32", "metrics.resamples=100", "latency.items=0")
NAMES = ("Ada Lovelace", "Blaise Pascal", "Carl Gauss", "Emmy Noether", "Leonhard Euler")


@dataclass(frozen=True, slots=True)
class Size:
    """One run: its items, its wall-clock seconds and the peak of its resident memory."""

    items: int
    seconds: float
    peak_mb: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run every size, print the table and write it down; the exit code is that of the runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument("--words", type=int, default=60, help="of each context (default 60)")
    parser.add_argument("--name", default="scaling", help="of the files that are written")
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs/scaling")
    args, overrides = parser.parse_known_args(argv)
    found: list[Size] = []
    with tempfile.TemporaryDirectory() as scratch:
        model = _save_model(Path(scratch) / "model")
        for n in sorted(args.items):
            items = made_up_items(n, words=args.words)
            found.append(run_size(items, n, Path(scratch), model=model, overrides=overrides))
            print(render(found).splitlines()[-1], flush=True)
    args.docs.mkdir(parents=True, exist_ok=True)
    rows = {
        "overrides": [*OVERRIDES, *overrides],
        "words": args.words,
        "sizes": [asdict(size) for size in found],
    }
    (args.docs / f"{args.name}.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    (args.docs / f"{args.name}.md").write_text(render(found), "utf-8")
    print(f"\n{render(found)}")
    return 0


def run_size(
    items: Iterable[Mapping[str, str]],
    n: int,
    scratch: Path,
    *,
    model: Path,
    overrides: Sequence[str],
) -> Size:
    """One job on `n` items. Raises CalledProcessError where it fails."""
    data, folder = scratch / f"{n}.jsonl", scratch / f"run-{n}"
    with data.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(item) + "\n" for item in items)
    folder.mkdir()
    command = [
        *(sys.executable, "-m", "ncu_exp", "model=hf", f"model.name={model}", "dataset=local"),
        *(f"dataset.path={data}", f"cache.dir={folder}/cache", *OVERRIDES, *overrides),
    ]
    start = time.perf_counter()
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        tail = (folder / "log.txt").read_text("utf-8", errors="replace")[-3000:]
        raise subprocess.CalledProcessError(process.returncode, command, stderr=tail)
    return Size(n, seconds, usage.ru_maxrss / 1024)  # kilobytes on Linux


def made_up_items(n: int, *, words: int) -> Iterator[Mapping[str, str]]:
    """Items with a person's name for an answer and a context of so many words that holds it."""
    rng = random.Random(0)
    vocabulary = [f"w{rng.randrange(10**5)}" for _ in range(2_000)]
    for number in range(n):
        before, after = (" ".join(rng.choices(vocabulary, k=words // 2)) for _ in range(2))
        name = rng.choice(NAMES)
        yield {
            "id": f"item-{number}",
            "question": f"Who counted the {rng.choice(vocabulary)} of number {number}?",
            "answer": name,
            "context": f"{before}. In the end it was {name} who did it. {after}.",
        }


def render(sizes: Sequence[Size]) -> str:
    """The table in Markdown: between a size and the one before, milliseconds for each item more."""
    lines = ["| items | seconds | ms per item more | peak memory, MB |", "|--:|--:|--:|--:|"]
    for place, size in enumerate(sizes):
        per_item = ""
        if place:
            less = sizes[place - 1]
            per_item = f"{1e3 * (size.seconds - less.seconds) / (size.items - less.items):.1f}"
        lines.append(f"| {size.items:,} | {size.seconds:.1f} | {per_item} | {size.peak_mb:,.0f} |")
    return "\n".join(lines) + "\n"


def _save_model(folder: Path) -> Path:
    from tests.tiny import save_tiny_model

    return save_tiny_model(folder)


if __name__ == "__main__":
    sys.exit(main())
