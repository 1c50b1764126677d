"""Rates of systems side by side: a row per system, a panel per condition or corpus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_exp.figures.marks import Mark, interval_across
from ncu_exp.figures.readings import (
    Comparison,
    corpus_label,
    heading,
    interval_note,
    n_told,
    panel_corpora,
)
from ncu_exp.figures.style import COLOURS, GRID, INK, caption, empty, new_figure, plain
from ncu_exp.records import Condition
from ncu_exp.stats import POOLED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ncu_exp.stats import Metric

_COLUMNS = 4
_ORANGE = COLOURS[Condition.adversarial]
_CONDITIONS = {
    Condition.zero: "zero/accuracy",
    Condition.oracle: "oracle/accuracy",
    Condition.noise: "noise/accuracy",
    Condition.adversarial: "adversarial/prior_dominance",
}
_MEANINGS = {
    Condition.zero: "no context",
    Condition.oracle: "the true context",
    Condition.noise: "the same in noise",
    Condition.adversarial: "prior dominance",
}


@dataclass(frozen=True, slots=True)
class _Series:
    measure: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    corpus: str
    series: tuple[_Series, ...]


def success_by_condition(of: Comparison) -> Figure:
    """How often the true answer is likely, a panel per condition, all corpora together."""
    title = heading(of, f"How often the true answer has a probability above {of.tau:g}")
    panels = [
        _Panel(_condition(condition), POOLED, (_Series(measure, Mark(COLOURS[condition], size=5)),))
        for condition, measure in _CONDITIONS.items()
        if any(of.metric(system, measure) for system in of.systems)
    ]
    told = "Items (%) with exp(mean log-probability per answer token) above the threshold."
    return _rows(of, panels, title=title, told=told)


def prior_dominance(of: Comparison) -> Figure:
    """Under the false context: how often the true answer stays likely, and the false one is."""
    both = (
        _Series("adversarial/prior_dominance", Mark(_ORANGE, size=5)),
        _Series("adversarial/adherence", Mark(INK, marker="D", size=4.5)),
    )
    told = (
        f"Items (%) whose answer has a probability above {of.tau:g} under the adversarial context."
        "\nOrange ●: the true answer (prior dominance). Black ◆: the fabricated one (adherence)."
    )
    return _by_corpus(
        of,
        both,
        subject="When the context is false: recited (prior dominance) or followed (adherence)",
        told=told,
    )


def negative_transfer(of: Comparison) -> Figure:
    """How often the true context made the true answer less likely."""
    mark = Mark(COLOURS[Condition.oracle], size=5)
    return _by_corpus(
        of,
        (_Series("oracle/negative_transfer_rate", mark),),
        subject="How often the context made the answer less likely (negative transfer)",
        told="Items (%) with raw NCU below 0 under oracle, the context that holds the answer.",
    )


def _by_corpus(of: Comparison, series: tuple[_Series, ...], *, subject: str, told: str) -> Figure:
    corpora, notes = panel_corpora(of)
    several = len(of.corpora) > 1
    panels = [
        _Panel(corpus_label(corpus, limit=14) if several else "", corpus, series)
        for corpus in corpora
        if any(of.metric(x, s.measure, corpus=corpus) for x in of.systems for s in series)
    ]
    where = f", {len(of.corpora)} corpora" if several else ""
    title = heading(of, subject, where=where, notes=notes)
    return _rows(of, panels, title=title, told=told)


def _condition(condition: Condition) -> str:
    return f"{condition}\n{_MEANINGS[condition]}"


def _rows(of: Comparison, panels: Sequence[_Panel], *, title: str, told: str) -> Figure:
    """A panel beside the other, with the systems as rows of all of them."""
    if not panels:
        return empty(title, "No item was scored.")
    columns = min(_COLUMNS, len(panels))
    lines = math.ceil(len(panels) / columns)
    step = 0.25 + 0.13 * (len(panels[0].series) - 1)  # inches
    height = 1.0 + 0.17 * title.count("\n") + lines * (0.85 + step * max(2, len(of.systems)))
    figure = new_figure(title, height=height)
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        _panel(axes, of, panel=panel)
    for axes in grid.flat[len(panels) - columns : len(panels)]:  # the lowest of each column
        axes.tick_params(labelbottom=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    shown = [
        metric
        for panel in panels
        for series in panel.series
        for system in of.systems
        if (metric := of.metric(system, series.measure, corpus=panel.corpus)) is not None
    ]
    _limit(grid[0, 0], shown)
    caption(figure, f"{told}\n{interval_note(of, shown)}")
    return figure


def _limit(axes: Axes, shown: Sequence[Metric]) -> None:
    """Per cent from 0 to the first of a few round numbers that holds everything."""
    numbers = [x for m in shown for x in (m.value, m.upper, m.hi) if not math.isnan(x)]
    end = next((end for end in (20, 50) if 100 * max(numbers) <= end), 100)
    axes.set_xlim(-0.03 * end, 1.03 * end)
    axes.set_xticks([0, end / 2, end], ["0", f"{end / 2:.0f}", f"{end}"])


def _panel(axes: Axes, of: Comparison, *, panel: _Panel) -> None:
    plain(axes, grid="x")
    shown: list[Metric | None] = []
    middle = (len(panel.series) - 1) / 2
    for y, system in enumerate(of.systems):
        if y % 2:  # every second row is shaded, to be followed across the panels
            axes.axhspan(y - 0.5, y + 0.5, color=GRID, alpha=0.3, linewidth=0, zorder=0)
        for place, series in enumerate(panel.series):
            metric = of.metric(system, series.measure, corpus=panel.corpus)
            _row(axes, y + 0.36 * (place - middle), metric=metric, mark=series.mark)
            shown.append(metric)
    axes.set_yticks(range(len(of.systems)), [system.label for system in of.systems])
    axes.set_ylim(len(of.systems) - 0.5, -0.5)
    told = f"{panel.title}\n{n_told(shown)}".strip()
    axes.set_title(told, loc="left", fontsize=9, color=INK)


def _row(axes: Axes, y: float, *, metric: Metric | None, mark: Mark) -> None:
    """The mark, and the number right of the axes."""
    told = "–"
    if metric is not None:
        ends = interval_across(axes, y, metric=metric, mark=mark)
        told = "…".join(f"{end:.0f}" for end in ends)
    where = axes.get_yaxis_transform()
    axes.text(1.05, y, told, transform=where, va="center", fontsize=7.5, color=INK)
