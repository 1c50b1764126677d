"""What a person sees while a job runs and when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ncu_exp.records import AuditCounts, Condition
from ncu_exp.wording import told

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from ncu_exp.metrics import Loss, Metric

# Metric names with a place for the condition, and what a person calls them.
ROWS = (
    ("{}/accuracy", "accuracy"),
    ("{}/surprisal", "surprisal, nats"),
    ("{}/ncu", "NCU"),
    ("{}/ncu_raw_median", "raw NCU, median"),
    ("{}/ncu_pooled", "NCU, pooled"),
    ("{}/negative_transfer_rate", "negative transfer"),
    ("{}/censored_items", "answers bounded only"),
    ("{}/censored_tokens", "  of their tokens"),
    ("{}/em", "exact match"),
    ("{}/f1", "F1"),
    ("{}/prior_dominance", "prior dominance"),
    ("{}/prior_dominance_contrastive", "  contrastive"),
    ("{}/adherence", "adherence"),
    ("{}/log_odds", "log odds, nats"),
    ("latency/{}_p50_s", "latency p50, s"),
)
T = TypeVar("T")
_MAX_REASONS = 5  # of a condition; the report lists more


class Bar:
    """A running progress bar, advanced by arms that are done."""

    def __init__(self, progress: Progress, task: TaskID, *, arms: int) -> None:
        self._progress = progress
        self._task = task
        self._arms = arms
        self._done = 0
        self._rate = ""

    def advance(self, arms: int, *, per_s: float | None = None, usd: float | None = None) -> None:
        self._done += arms
        if per_s is not None:
            self._rate = f"{per_s:.1f}/s" + (f", {usd:.4f} USD" if usd is not None else "")
        counted = f"{self._done}/{self._arms} requests"
        self._progress.update(self._task, advance=arms, counted=counted, rate=self._rate)

    def watch(self, things: Sequence[T], title: str) -> Iterator[T]:
        """The things one by one, with a bar of their own until the last."""
        task = self._progress.add_task(title, total=len(things), counted="", rate="")
        for number, thing in enumerate(things, start=1):
            yield thing
            self._progress.update(task, advance=1, counted=f"{number}/{len(things)}")
        self._progress.remove_task(task)


@contextmanager
def progress_bar(title: str, *, arms: int) -> Iterator[Bar]:
    """A bar over `arms`, with count, rate and the time left."""
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
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[counted]}"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=arms, counted="", rate="")
        yield Bar(progress, task, arms=arms)


def metrics_table(metrics: Sequence[Metric], *, title: str) -> Table:
    """Conditions as columns, measures as rows: value, interval, and n of n_total."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    by_name = {m.name: m for m in metrics}
    asked = [c.value for c in Condition if f"{c.value}/n" in by_name]
    table = Table(
        title=Text(title, "table.title"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    table.add_column("")
    for condition in asked:
        table.add_column(condition, justify="right")
    table.add_row("items", *(_count(by_name, c) for c in asked))
    for key, label in ROWS:
        found = [by_name.get(key.format(c)) for c in asked]
        cells = ["" if metric is None else told(metric) for metric in found]
        if any(cells):
            table.add_row(label, *cells)
    return table


def _count(by_name: dict[str, Metric], condition: str) -> str:
    n, total = by_name[f"{condition}/n"], by_name[f"{condition}/n_total"]
    return f"{n.value:.0f} of {total.value:.0f}"


def left_out(losses: Sequence[Loss], audit: AuditCounts) -> list[str]:
    """How many items each condition lost and why, and what was left in adversarial contexts."""
    lines = []
    for condition in Condition:
        lost = [loss for loss in losses if loss.condition == condition.value]
        if lost:
            told = [f"{loss.items} {loss.reason.partition(':')[0]}" for loss in lost[:_MAX_REASONS]]
            rest = sum(loss.items for loss in lost[_MAX_REASONS:])
            told += [f"{rest} for other reasons"] if rest else []
            lines.append(f"{condition.value} left out: {', '.join(told)}")
    if audit.telling:
        lines.append(
            f"adversarial: in {audit.telling} of {audit.ok} contexts something still tells the "
            "truth (residue in tables/perturbations.parquet)"
        )
    return lines
