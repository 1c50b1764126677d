"""What a person sees while a job runs and when it ends."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from ncu_exp.metrics import Metric

ROWS = (
    ("accuracy", "accuracy"),
    ("surprisal", "surprisal (nats)"),
    ("ncu", "NCU"),
    ("ncu_raw_median", "raw NCU, median"),
    ("ncu_pooled", "NCU, pooled"),
    ("negative_transfer_rate", "negative transfer"),
    ("em", "exact match"),
    ("f1", "F1"),
    ("prior_dominance", "prior dominance"),
    ("prior_dominance_contrastive", "prior dominance, contrastive"),
    ("adherence", "adherence"),
    ("log_odds", "log odds (nats)"),
)


class Bar:
    """A running progress bar; `advance` by work done, whatever its unit."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def advance(self, work: float, *, done: int, total: int, per_s: float) -> None:
        self._progress.update(
            self._task, advance=work, counted=f"{done}/{total} requests", rate=f"{per_s:.1f}/s"
        )


@contextmanager
def progress_bar(title: str, *, work: float) -> Iterator[Bar]:
    """A bar over `work` units, with count, rate and the time left."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[counted]}"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield Bar(progress, progress.add_task(title, total=work, counted="", rate=""))


def metrics_table(metrics: Sequence[Metric], *, title: str) -> Table:
    """Conditions as columns, measures as rows: value, interval, and n of n_total."""
    from rich.table import Table

    by_name = {m.name: m for m in metrics}
    conditions = list(dict.fromkeys(m.name.partition("/")[0] for m in metrics))
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for condition in conditions:
        table.add_column(condition, justify="right")
    table.add_row("items", *(_count(by_name, c) for c in conditions))
    for key, label in ROWS:
        cells = [_cell(by_name.get(f"{c}/{key}")) for c in conditions]
        if any(cells):
            table.add_row(label, *cells)
    return table


def _count(by_name: dict[str, Metric], condition: str) -> str:
    n, total = by_name.get(f"{condition}/n"), by_name.get(f"{condition}/n_total")
    return f"{n.value:.0f} of {total.value:.0f}" if n and total else ""


def _cell(metric: Metric | None) -> str:
    if metric is None or math.isnan(metric.value):
        return ""
    interval = "" if math.isnan(metric.lo) else f" [{metric.lo:.2f}, {metric.hi:.2f}]"
    return f"{metric.value:.3f}{interval}"
