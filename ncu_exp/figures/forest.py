"""Pairwise differences between systems, with intervals and the margin of equivalence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_exp.figures.marks import Mark, interval_across
from ncu_exp.figures.readings import Comparison, heading
from ncu_exp.figures.style import FAINT, INK, caption, empty, new_figure, plain, tell_beside
from ncu_exp.stats import POOLED, Metric

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_ROWS = 30
_MEASURES = (
    ("oracle/ncu", "NCU (oracle)", 1.0),
    ("adversarial/prior_dominance", "Prior dominance (percentage points)", 100.0),
)
_VERDICTS = {
    "higher": "the first is higher",
    "lower": "the first is lower",
    "equivalent": "equivalent",
    "tie": "tie",
    "undecided": "undecided",
    "not_comparable": "not comparable",
}
_COLOURS = {"higher": INK, "lower": INK, "equivalent": "#0072B2", "tie": "#0072B2"}
_BAND = "#56B4E9"


@dataclass(frozen=True, slots=True)
class _Table:
    """The rows of one measure, the largest differences first."""

    name: str
    scale: float
    rows: list[Mapping[Any, Any]]
    n_pairs: int


def differences(of: Comparison, frame: pd.DataFrame) -> Figure:
    """A forest plot of the differences between pairs of systems, all corpora together."""
    tables = [table for each in _MEASURES if (table := _table(frame, *each)).rows]
    title = heading(of, "Differences between systems, item by item")
    if not tables:
        return empty(title, "There are no two systems with items in common.")

    heights = [0.45 + 0.36 * len(table.rows) for table in tables]
    figure = new_figure(title, height=0.9 + 0.17 * title.count("\n") + sum(heights))
    grid = figure.subplots(len(tables), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, table in zip(grid, tables, strict=True):
        _forest(axes, of, table=table)
    tied = any(row["verdict"] == "tie" for table in tables for row in table.rows)
    bounded = any(not math.isnan(row["lower"]) for table in tables for row in table.rows)
    caption(
        figure,
        "The first system minus the second, over the items both have. Blue band: differences too "
        f"small to matter (margin). Bars: {of.confidence:.0%} intervals; p: adjusted for the "
        "number of comparisons (Holm), of equivalence where that is the verdict."
        + (" Tie: within the numeric noise of the two precisions." if tied else "")
        + (" Open marks: bounded from both sides." if bounded else ""),
    )
    return figure


def _table(frame: pd.DataFrame, measure: str, name: str, scale: float) -> _Table:
    chosen = frame[(frame["corpus"] == POOLED) & (frame["measure"] == measure)]
    rows = sorted(chosen.to_dict("records"), key=lambda row: -_size(row))
    return _Table(name, scale, list(rows[:MAX_ROWS]), len(rows))


def _size(row: Mapping[Any, Any]) -> float:
    """|difference|, of the middle where it is bounded; below all others where it is unknown."""
    middle = row["difference"]
    if math.isnan(middle):
        middle = (row["lower"] + row["upper"]) / 2
    return -1.0 if math.isnan(middle) else abs(middle)


def _forest(axes: Axes, of: Comparison, *, table: _Table) -> None:
    plain(axes, grid="x")
    axes.axvline(0, color=INK, linewidth=0.9)
    reach = 0.0
    for y, row in enumerate(table.rows):
        reach = max(reach, _row(axes, y, row=row, scale=table.scale, margin=of.margin))
        told = f"{_VERDICTS.get(row['verdict'], row['verdict'])}{_p(row)}\nn = {row['n']:,}"
        tell_beside(axes, y, text=told)
    labels = [f"{of.label_of(row['a'])}\n− {of.label_of(row['b'])}" for row in table.rows]
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", labelsize=7.5)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    reach = 1.08 * reach or table.scale
    axes.set_xlim(-reach, reach)
    more = table.n_pairs - len(table.rows)
    left_out = f", the {MAX_ROWS} largest; {more:,} smaller ones not shown" if more else ""
    axes.set_title(f"{table.name}{left_out}", loc="left", fontsize=9, color=INK)


def _row(
    axes: Axes, y: int, *, row: Mapping[Any, Any], scale: float, margin: float | None
) -> float:
    """The band of the margin and the difference; returns how far from 0 they reach."""
    told = row["margin"] if not math.isnan(row["margin"]) else margin
    margin = math.nan if told is None else scale * told
    axes.fill_betweenx((y - 0.5, y + 0.5), -margin, margin, color=_BAND, alpha=0.3, linewidth=0)
    metric = Metric(
        name=str(row["measure"]),
        value=row["difference"],
        lo=row["lo"],
        hi=row["hi"],
        n=row["n"],
        n_total=row["n"],
        lower=row["lower"],
        upper=row["upper"],
    )
    mark = Mark(_COLOURS.get(row["verdict"], FAINT), size=6, scale=scale)
    if not math.isnan(metric.value) or metric.is_bounded:
        interval_across(axes, y, metric=metric, mark=mark)
    ends = (metric.value, metric.lo, metric.hi, metric.lower, metric.upper)
    return max([abs(scale * x) for x in ends if not math.isnan(x)] + [margin, 0.0])


def _p(row: Mapping[Any, Any]) -> str:
    p = row["p_equivalence"] if row["verdict"] == "equivalent" else row["p_holm"]
    if math.isnan(p) or row["verdict"] == "tie":  # which no test decided
        return ""
    return ", p < 0.001" if p < 0.001 else f", p = {p:.2g}"
