"""Marks that several figures draw: a rate with its interval, the spread of NCU over items."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_exp.figures.style import FAINT, INK, tell_beside

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ncu_exp.stats import Metric

_NCU_BINS = 20


@dataclass(frozen=True, slots=True)
class Mark:
    """How a number is drawn: `size` in points; `scale` makes the axis' unit of a metric's."""

    colour: str
    marker: str = "o"
    size: float = 8
    scale: float = 100


def interval_across(axes: Axes, y: float, *, metric: Metric, mark: Mark) -> tuple[float, ...]:
    """A number at height `y` with its interval; two open marks where it is bounded.

    Returns the number, or its two ends, in the axis' unit.
    """
    return _interval(lambda xs, **style: axes.plot(xs, [y] * len(xs), **style), metric, mark)


def interval_upright(axes: Axes, x: float, *, metric: Metric, mark: Mark) -> tuple[float, ...]:
    """The same at `x`, upwards."""
    return _interval(lambda ys, **style: axes.plot([x] * len(ys), ys, **style), metric, mark)


def _interval(plot: Callable[..., Any], metric: Metric, mark: Mark) -> tuple[float, ...]:
    lo, hi = mark.scale * metric.lo, mark.scale * metric.hi
    thick, line = mark.size / 8, {"color": mark.colour, "solid_capstyle": "butt"}
    if not math.isnan(lo):
        plot([lo, hi], linewidth=3 * thick, alpha=0.45, **line)
    known = (metric.lower, metric.upper) if metric.is_bounded else (metric.value,)
    ends = tuple(mark.scale * end for end in known)
    if metric.is_bounded:  # known to lie between two ends, which are open
        plot(ends, linewidth=8 * thick, alpha=0.3, **line)
    fill = "white" if metric.is_bounded else mark.colour
    style = {"marker": mark.marker, "color": mark.colour, "mfc": fill, "markersize": mark.size}
    for end in ends:
        plot([end], linestyle="none", clip_on=False, **style)
    return ends


def rate(axes: Axes, y: int, *, metric: Metric, colour: str, marker: str) -> None:
    lo, hi = 100 * metric.lo, 100 * metric.hi
    of = f"n = {metric.n:,} of {metric.n_total:,}"
    if math.isnan(metric.value) and not metric.is_bounded:
        tell_beside(axes, y, text=f"not scored\n{of}")
        return
    ends = interval_across(axes, y, metric=metric, mark=Mark(colour, marker))
    within = "" if math.isnan(lo) else f" [{lo:.0f}, {hi:.0f}]"
    told = "…".join(f"{x:.0f}" for x in ends)
    tell_beside(axes, y, text=f"{told}%{within}\n{of}")


def band(axes: Axes, rows: pd.DataFrame, *, colour: str) -> None:
    """The share of items with an NCU of at least x: between those of the two ends of each item."""
    import numpy as np

    x = np.linspace(0, 1, 201)
    low, high = (
        100 * (rows[f"ncu_{end}"].to_numpy(dtype="float64")[:, None] >= x).mean(axis=0)
        for end in ("lower", "upper")
    )
    axes.fill_between(x[1:], low[1:], high[1:], color=colour, alpha=0.35, linewidth=0)
    for share in (low, high):
        axes.plot(x[1:], share[1:], color=colour, linewidth=1.5, clip_on=False)
    axes.set_ylim(0, 102)
    axes.set_xlim(0, 1.01)


def histogram(axes: Axes, rows: pd.DataFrame, *, colour: str) -> None:
    """Shares in (0, 1] by bins, and the share at exactly 0 as a hatched bar left of them."""
    import numpy as np

    values = rows["ncu"].to_numpy(dtype="float64")
    edges = np.linspace(0, 1, _NCU_BINS + 1)
    counts, _ = np.histogram(values[values > 0], edges)
    shares = 100 * counts / values.size
    at_zero = 100 * float(np.mean(values == 0))
    axes.bar(edges[:-1], shares, width=1 / _NCU_BINS, align="edge", color=colour, edgecolor="white")
    axes.bar(-0.06, at_zero, width=0.05, color="white", edgecolor=colour, hatch="//////")
    axes.axvline(-0.0175, color=FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
    for x, share in ((-0.06, at_zero), (1 - 0.5 / _NCU_BINS, shares[-1])):
        axes.text(x, share, f"{share:.0f}%", ha="center", va="bottom", fontsize=8, color=INK)
    axes.margins(y=0.25)
    axes.set_xlim(-0.1, 1.01)
