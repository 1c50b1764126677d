"""Recited, not read: what a system knew before, against what it took from the context."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_exp.figures.readings import Comparison, System, first_panels, heading
from ncu_exp.figures.style import COLOURS, INK, caption, empty, new_figure, plain
from ncu_exp.formulas import NEAR_ZERO
from ncu_exp.records import Condition

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GREEN, _ORANGE = COLOURS[Condition.oracle], COLOURS[Condition.adversarial]


@dataclass(frozen=True, slots=True)
class _Points:
    """A system's items with a known NCU; `hidden` are those that are only bounded."""

    system: System
    rows: pd.DataFrame
    hidden: int

    @property
    def recited(self) -> pd.Series[bool]:
        return (self.rows["em"] == 1) & (self.rows["ncu"] < NEAR_ZERO)


def prior_and_context(of: Comparison, items: pd.DataFrame) -> Figure:
    """Probability of the answer without context against NCU, a point per item."""
    groups = [points for system in of.systems if len((points := _points(items, system)).rows)]
    shown, notes = first_panels(groups, "systems", total=of.n_systems)
    title = heading(of, "Read or recited: prior knowledge against NCU, per item", notes=notes)
    if not groups:
        return empty(title, "No item has a known NCU under oracle.")

    columns = 2 if len(shown) == 4 else min(3, len(shown))
    lines = math.ceil(len(shown) / columns)
    side = {1: 3.0, 2: 2.6, 3: 1.75}[columns]  # inches
    height = 1.15 + 0.17 * title.count("\n") + lines * (side + 0.75)
    figure = new_figure(title, height=height)
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axes, points in zip(grid.flat, shown, strict=False):
        _scatter(axes, points)
    for axes in grid.flat[len(shown) - columns : len(shown)]:  # the lowest of each column
        axes.tick_params(labelbottom=True)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel("NCU (oracle)", fontsize=9, color=INK)
    caption(
        figure,
        "Across: the answer's probability per token without context, exp(-S_prior).\n"
        f"Orange ◆: recited, not read: the greedy text is right (em = 1) though NCU < {NEAR_ZERO:g}"
        " (shaded). Green ●: any other item.",
    )
    return figure


def _points(items: pd.DataFrame, system: System) -> _Points:
    rows = items[items["system"] == system.name]
    known = rows.dropna(subset=["s_prior", "ncu"])
    hidden = rows["ncu"].isna() & rows["ncu_lower"].notna()
    return _Points(system, known, int(hidden.sum()))


def _scatter(axes: Axes, points: _Points) -> None:
    import numpy as np

    plain(axes, grid="both")
    n, recited = len(points.rows), points.recited.to_numpy()
    prior = np.exp(-points.rows["s_prior"].to_numpy(dtype="float64"))
    ncu = points.rows["ncu"].to_numpy(dtype="float64")
    axes.axhspan(0, NEAR_ZERO, color=_ORANGE, alpha=0.12, linewidth=0)
    size, alpha = 60 / (1 + math.log10(n)) ** 1.5, max(0.25, min(0.9, 12 / math.sqrt(n)))
    for marker, colour, which in (("o", _GREEN, ~recited), ("D", _ORANGE, recited)):
        axes.scatter(
            prior[which],
            ncu[which],
            s=size,
            marker=marker,
            color=colour,
            alpha=alpha,
            linewidths=0,
            clip_on=False,
            zorder=3,
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_box_aspect(1)
    axes.set_title(_told(points), loc="left", fontsize=8.5, color=INK)


def _told(points: _Points) -> str:
    """The system, and how many of the items with a text were recited."""
    with_text = int(points.rows["em"].notna().sum())
    told = f"recited, not read: {int(points.recited.sum()):,} of {with_text:,}"
    if not with_text:
        told = f"no text: recited or read is unknown\nn = {len(points.rows):,}"
    if points.hidden:
        told += f"\n({points.hidden:,} only bounded, not shown)"
    return f"{points.system.label}\n{told}"
