"""What a soak has shown, in words, a table and a figure: does anything grow with the jobs?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

PARTS = 10
KEPT_SAMPLES = 400  # in the document


@dataclass(frozen=True, slots=True)
class Measure:
    """What is told of the process: how a part's jobs are averaged, and what counts as flat."""

    name: str
    unit: str
    of_samples: Callable[[Sequence[Mapping[str, float]]], float]
    tolerance: float  # of the last part against the second, as a share


@dataclass(frozen=True, slots=True)
class Growth:
    """What a measure gains over 1,000 jobs, by least squares over the parts after the first."""

    per_1000: float
    lo: float
    hi: float


_HOW = (
    "Hydra composes each job twice, once with its batch before the batch starts and once when it",
    "is the job's turn. With a batch of all the jobs that is a long silence before the first, so",
    "the benchmark sets `hydra.sweeper.max_batch_size=50`; a job that cannot be composed is then",
    "found with its batch, not before the first job. It also sets `OMP_NUM_THREADS=1`, and",
    "`compare.after_sweep=false`: jobs that differ in the seed of their perturbations are no",
    "systems to be compared.",
    "",
)
MEASURES = (
    Measure("Resident memory", "MB", lambda s: fmean(x["resident_mb"] for x in s), 0.05),
    Measure("Open files", "", lambda s: fmean(x["open_files"] for x in s), 0.05),
    Measure("Threads", "", lambda s: fmean(x["threads"] for x in s), 0.05),
    Measure("Processor time of a job", "s", lambda s: _per_job(s, "cpu_s"), 0.10),
    Measure("Wall time of a job", "s", lambda s: _per_job(s, "at_s"), 0.10),
)


def _per_job(samples: Sequence[Mapping[str, float]], what: str) -> float:
    first, last = samples[0], samples[-1]
    return (last[what] - first[what]) / (last["jobs"] - first["jobs"])


def parts_of(samples: Sequence[Mapping[str, float]]) -> list[list[Mapping[str, float]]]:
    """The samples in ten parts of equally many jobs each; what came before the first job is left.

    Each part begins with the last sample of the one before, so that its time is whole. Raises
    ValueError where there are too few jobs for it.
    """
    working = [s for s in samples if s["jobs"] > 0]
    most = int(working[-1]["jobs"]) if working else 0
    ends = [most * part / PARTS for part in range(1, PARTS + 1)]
    parts: list[list[Mapping[str, float]]] = []
    before: list[Mapping[str, float]] = []
    for end in ends:
        start = before[-1]["jobs"] if before else 0
        inside = [s for s in working if start < s["jobs"] <= end]
        if not inside or len({s["jobs"] for s in (*before[-1:], *inside)}) < 2:
            raise ValueError(f"{most} jobs are too few to be told in {PARTS} parts.")
        before = [*before[-1:], *inside]
        parts.append(before)
    return parts


def growth(jobs: Sequence[float], values: Sequence[float]) -> Growth:
    """The slope over the parts after the first, with its 95% interval (Student's t)."""
    from scipy import stats

    if len(set(values[1:])) == 1:  # no slope, and no error of it that could be estimated
        return Growth(0.0, 0.0, 0.0)
    fit = stats.linregress(jobs[1:], values[1:])
    half = float(stats.t.ppf(0.975, len(jobs) - 3)) * fit.stderr
    return Growth(*(1_000 * x for x in (fit.slope, fit.slope - half, fit.slope + half)))


def is_flat(values: Sequence[float], *, tolerance: float) -> bool:
    """Whether the last part is within the tolerance above the second."""
    return values[-1] <= values[1] * (1 + tolerance)


def write_documents(record: Mapping[str, Any], docs: Path) -> str:
    """Write soak.md, and the numbers and the figure below soak/; the text, to be printed."""
    (docs / "soak").mkdir(parents=True, exist_ok=True)
    text = render(record)
    (docs / "soak.md").write_text(text, "utf-8")
    (docs / "soak" / "soak.png").write_bytes(picture(record))
    samples = record["samples"]
    step = -(-len(samples) // KEPT_SAMPLES)
    kept = {**record, "samples": [_rounded(s) for s in (*samples[:-1:step], samples[-1])]}
    kept["ended_s"] = [round(at, 2) for at in record["ended_s"]]
    (docs / "soak" / "soak.json").write_text(json.dumps(kept, separators=(",", ":")) + "\n")
    return text


def _rounded(sample: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in sample.items()}


def render(record: Mapping[str, Any]) -> str:
    """The document: what was run, the table of the parts, and in words what grows."""
    ended = record["ended_s"]
    seconds = [b - a for a, b in pairwise(ended)]
    done, failed = len(ended), record["failed"]
    whole = "" if done == record["jobs"] else f" of {record['jobs']:,} asked for"
    lines = [
        "# A sweep of thousands of small jobs",
        "",
        "`python -m benchmarks.soak` runs one `python -m ncu_exp -m` with a tiny random model and",
        "looks at its process from outside. Each job has its own perturbation of three bundled",
        "items, so that it draws, scores and stores what none before it did, and leaves tables,",
        "figures, a report and a tracked run like any other.",
        "",
        f"{done:,} jobs{whole} ended, {failed} of them failed. The first ended after "
        f"{ended[0]:.0f} s, the last after {ended[-1] / 60:.0f} minutes; between one end and the "
        f"next lie {median(seconds):.2f} s (median). The tracking database holds "
        f"{record['database_mb']:.0f} MB.",
        "",
        *_HOW,
        "![Memory, open files and time against the number of jobs](soak/soak.png)",
        "",
    ]
    try:
        parts = parts_of(record["samples"])
    except ValueError as error:
        return "\n".join([*lines, str(error), ""])
    return "\n".join([*lines, *_table(parts), "", *_words(parts), ""])


def _table(parts: Sequence[Sequence[Mapping[str, float]]]) -> list[str]:
    heads = [f"{m.name}{f', {m.unit}' if m.unit else ''}" for m in MEASURES]
    lines = [f"| jobs | {' | '.join(heads)} |", "|--:" * (len(MEASURES) + 1) + "|"]
    for part in parts:
        cells = [_told(m.of_samples(part), m.unit) for m in MEASURES]
        lines.append(f"| to {part[-1]['jobs']:,} | {' | '.join(cells)} |")
    return lines


def _words(parts: Sequence[Sequence[Mapping[str, float]]]) -> list[str]:
    """A sentence for each measure."""
    jobs = [fmean(s["jobs"] for s in part) for part in parts]
    lines = [
        "Over the second to the last tenth (the first one warms up), with a 95% interval of the "
        "slope:",
        "",
    ]
    for measure in MEASURES:
        values = [measure.of_samples(part) for part in parts]
        found = growth(jobs, values)
        flat = "flat" if is_flat(values, tolerance=measure.tolerance) else "**not flat**"
        unit = f" {measure.unit}" if measure.unit else ""
        lines.append(
            f"- {measure.name}: {flat}. Second tenth {_told(values[1], measure.unit)}{unit}, last "
            f"{_told(values[-1], measure.unit)}{unit} ({values[-1] / values[1] - 1:+.1%}); "
            f"{_slope(found.per_1000)}{unit} for 1,000 jobs more "
            f"[{_slope(found.lo)}, {_slope(found.hi)}]."
        )
    return [
        *lines,
        "",
        "Flat means: the last tenth is above the second by no more than 5% (times: 10%). "
        "Wall time counts what else the machine did meanwhile; processor time is the job's own.",
    ]


def _slope(value: float) -> str:
    return f"{value:+.3g}"


def _told(value: float, unit: str) -> str:
    return f"{value:.2f}" if unit == "s" else f"{value:,.1f}"


def picture(record: Mapping[str, Any]) -> bytes:
    """Memory, open files and threads, and seconds of a job, against the number of jobs; a PNG."""
    from ncu_exp.figures.style import CYCLE, caption, new_figure, plain, to_png

    samples = [s for s in record["samples"] if s["jobs"] > 0]
    figure = new_figure(f"A sweep of {len(record['ended_s']):,} small jobs", height=7.0)
    memory, files, times = figure.subplots(3, 1, sharex=True)
    jobs = [s["jobs"] for s in samples]
    memory.plot(jobs, [s["resident_mb"] for s in samples], color=CYCLE[0])
    memory.set_ylabel("resident memory, MB")
    files.plot(jobs, [s["open_files"] for s in samples], color=CYCLE[2], label="open files")
    files.plot(jobs, [s["threads"] for s in samples], color=CYCLE[3], label="threads")
    files.set_ylabel("open files, threads")
    _draw_times(times, record["ended_s"])
    for axes in (memory, files, times):
        plain(axes, grid="y")
        axes.set_ylim(bottom=0)
    files.legend(frameon=False, fontsize=8.5, loc="lower right")
    times.set_xlabel("jobs ended")
    caption(
        figure,
        "Seconds of a job: from the end of the one before it to its own; the line is "
        "the median of fifty.",
    )
    return to_png(figure)


def _draw_times(axes: Any, ended: Sequence[float]) -> None:
    from ncu_exp.figures.style import CYCLE

    seconds = [b - a for a, b in pairwise(ended)]
    axes.plot(range(2, len(ended) + 1), seconds, ".", markersize=2, alpha=0.3, color=CYCLE[1])
    middle = range(0, len(seconds), 50)
    axes.plot(
        [first + 2 + len(seconds[first : first + 50]) / 2 for first in middle],
        [median(seconds[first : first + 50]) for first in middle],
        color=CYCLE[1],
    )
    axes.set_ylabel("seconds of a job")
