"""How the ranks of systems move when the settings of the metrics do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_exp.figures.readings import Comparison, heading
from ncu_exp.figures.style import CYCLE, FAINT, INK, caption, empty, new_figure, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = {
    "oracle/ncu": "NCU (oracle)",
    "adversarial/prior_dominance": "Prior dominance",
    "oracle/accuracy": "Oracle accuracy",
    "zero/accuracy": "Zero accuracy",
}


@dataclass(frozen=True, slots=True)
class _Chart:
    """Ranks of the systems (rows) under each setting (columns) of one family and measure."""

    title: str
    settings: list[str]
    default: str | None
    ranks: pd.DataFrame


def sensitivity(of: Comparison, frame: pd.DataFrame) -> Figure:
    """A line per system from setting to setting: where lines cross, the order depends on it."""
    shown = [system.name for system in of.systems]
    frame = frame[frame["system"].isin(shown)]  # their ranks are among all
    charts = [
        _chart(rows, family=str(family), measure=str(measure))
        for (family, measure), rows in frame.groupby(["family", "measure"], sort=False)
    ]
    charts = [chart for chart in charts if len(chart.settings) > 1 and len(chart.ranks) > 1]
    subject = "How the order of the systems depends on the settings"
    title = heading(of, subject)
    if not charts:
        return empty(title, "There are no two systems under two settings to rank.")

    heights = [0.75 + 0.2 * max(4, len(chart.ranks)) for chart in charts]
    figure = new_figure(title, height=0.8 + 0.17 * title.count("\n") + sum(heights))
    grid = figure.subplots(len(charts), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, chart in zip(grid, charts, strict=True):
        _draw(axes, of, chart=chart)
    caption(
        figure,
        "Rank 1: the highest value; ties share a rank. Dashed: the default setting. Systems whose "
        "number is only bounded have no rank.",
    )
    return figure


def _chart(rows: pd.DataFrame, *, family: str, measure: str) -> _Chart:
    settings = [str(setting) for setting in rows["setting"].unique()]
    default = rows.loc[rows["is_default"].astype(bool), "setting"]
    ranks = rows.pivot(index="system", columns="setting", values="rank")[settings]
    ranks = ranks.dropna(how="all")
    moved = int((ranks.max(axis=1) > ranks.min(axis=1)).sum())
    name = _NAMES.get(measure, measure)
    title = f"{name}, by {family}: {moved} of {len(ranks)} systems change rank"
    return _Chart(title, settings, None if default.empty else str(default.iloc[0]), ranks)


def _draw(axes: Axes, of: Comparison, *, chart: _Chart) -> None:
    plain(axes, grid="y")
    last = len(chart.settings) - 1
    order = [system.name for system in of.systems if system.name in chart.ranks.index]
    for name in order:
        k = [system.name for system in of.systems].index(name)
        ranks = chart.ranks.loc[name].to_numpy(dtype="float64")
        colour = CYCLE[k % len(CYCLE)]
        axes.plot(ranks, color=colour, linewidth=1.8, marker="o", markersize=4, clip_on=False)
    lowest = max(len(order), float(chart.ranks.max().max()))  # ranks are among all systems
    axes.set_ylim(lowest + 0.5, 0.5)
    for x, side in ((0, -1), (last, 1)):
        column = chart.ranks[chart.settings[x]].to_dict()
        ends = {name: float(column[name]) for name in order}
        _labels(axes, of, ranks=ends, side=side)
    if chart.default is not None:
        x = chart.settings.index(chart.default)
        axes.axvline(x, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    ticks = [_tick(s, is_default=s == chart.default) for s in chart.settings]
    axes.set_xticks(range(last + 1), ticks)
    axes.set_xlim(-0.02 * last, 1.02 * last)
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(axis="x", length=0)
    axes.set_title(chart.title, loc="left", fontsize=9, color=INK)


def _labels(axes: Axes, of: Comparison, *, ranks: dict[str, float], side: int) -> None:
    """Names beside the ends of the lines, one below the other, each led to from its rank.

    `side` is -1 left of the axes and 1 right of them.
    """
    edge, beside = (0.0, -0.05) if side < 0 else (1.0, 1.05)  # of the axes' width
    across = axes.get_yaxis_transform()
    placed = sorted(ranks, key=lambda name: (math.isnan(ranks[name]), ranks[name]))
    spread = abs(axes.get_ylim()[0] - axes.get_ylim()[1]) / len(placed)
    for place, name in enumerate(placed):
        slot = 0.5 + (place + 0.5) * spread
        rank, label = ranks[name], of.label_of(name)
        known = not math.isnan(rank)
        told = [label, f"{rank:g}" if known else "–"][::-side]
        axes.text(
            beside,
            slot,
            "  ".join(told),
            transform=across,
            fontsize=7.5,
            color=INK if known else FAINT,
            ha="right" if side < 0 else "left",
            va="center",
        )
        if known:
            ends = ([edge + 0.25 * (beside - edge), edge + 0.85 * (beside - edge)], [rank, slot])
            axes.plot(*ends, transform=across, color=FAINT, linewidth=0.6, clip_on=False)


def _tick(setting: str, *, is_default: bool) -> str:
    told = setting.replace(" = ", "\n").replace(": ", "\n").replace(" of ", "\nof ")
    return f"{told}\n(default)" if is_default else told
