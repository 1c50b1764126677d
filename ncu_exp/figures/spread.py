"""How NCU spreads over the items of each system."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ncu_exp.figures.marks import band, histogram
from ncu_exp.figures.readings import Comparison, System, first_panels, heading
from ncu_exp.figures.style import COLOURS, INK, caption, empty, new_figure, plain
from ncu_exp.records import Condition

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ncu_exp.stats import Metric

_FEW = 3  # systems that have the whole width each


def ncu_distribution(of: Comparison, items: pd.DataFrame) -> Figure:
    """A histogram of bounded NCU under oracle per system; items at exactly 0 are a bar apart.

    Where an API bounds NCU, every panel has the share of items with at least some NCU instead.
    """
    subject = "Share of the uncertainty that the context removed (NCU, oracle)"
    groups = [(system, _known(items, system)) for system in of.systems]
    groups = [(system, rows) for system, rows in groups if len(rows)]
    shown, notes = first_panels(groups, "systems", total=of.n_systems)
    title = heading(of, subject, notes=notes)
    if not groups:
        return empty(title, "No item is scored both without and with a context.")

    columns = 1 if len(shown) <= _FEW else 2
    lines = math.ceil(len(shown) / columns)
    height = 1.0 + 0.17 * title.count("\n") + lines * 1.35
    figure = new_figure(title, height=height)
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    bounded = any(rows["ncu"].isna().any() for _, rows in shown)
    for axes, (system, rows) in zip(grid.flat, shown, strict=False):
        plain(axes, grid="y")
        (band if bounded else histogram)(axes, rows, colour=COLOURS[Condition.oracle])
        at_zero = _at_zero(rows) if bounded else ""
        _title(
            axes, system, told=f"n = {len(rows):,}{at_zero}", mean=of.metric(system, "oracle/ncu")
        )
    _ticks(grid[-1, 0], zero=0 if bounded else -0.06)
    for axes in grid.flat[len(shown) - columns : len(shown)]:  # the lowest of each column
        axes.tick_params(labelbottom=True)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    what = (
        "Up: items with at least this NCU (%), within the band."
        if bounded
        else "Up: items (%); the hatched bar: exactly 0."
    )
    across = "NCU of an item (0: the context did not help or made it worse, 1: nothing is left)"
    interval = f"[ ]: {of.confidence:.0%} bootstrap interval of the mean."
    caption(figure, f"{across}.\n{what} {interval}")
    return figure


def _known(items: pd.DataFrame, system: System) -> pd.DataFrame:
    """The system's items that have an NCU, or bounds of one; where it is known both ends are it."""
    rows = items[items["system"] == system.name]
    ends = {end: rows[end].fillna(rows["ncu"]) for end in ("ncu_lower", "ncu_upper")}
    return rows.assign(**ends).dropna(subset=["ncu_lower", "ncu_upper"])


def _at_zero(rows: pd.DataFrame) -> str:
    """The share of items at exactly 0: from those that are there for sure to those that may be."""
    ends = sorted({100 * float((rows[f"ncu_{end}"] == 0).mean()) for end in ("upper", "lower")})
    return ", " + "…".join(f"{end:.0f}" for end in ends) + "% at exactly 0"


def _title(axes: Axes, system: System, *, told: str, mean: Metric | None) -> None:
    if mean is not None:
        ends = (mean.lower, mean.upper) if mean.is_bounded else (mean.value,)
        value = "…".join(f"{end:.2f}" for end in ends)
        interval = "" if math.isnan(mean.lo) else f" [{mean.lo:.2f}, {mean.hi:.2f}]"
        told = f"mean {value}{interval}, {told}"
    axes.set_title(f"{system.label}\n{told}", loc="left", fontsize=8.5, color=INK)


def _ticks(axes: Axes, *, zero: float) -> None:
    """`zero`: where 0 is; a histogram has a bar of exactly 0 left of the others."""
    axes.set_xticks([zero, 0.2, 0.4, 0.6, 0.8, 1], ["0", "0.2", "0.4", "0.6", "0.8", "1"])
