"""A map of systems by corpora, with the numbers in the cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_exp.figures.readings import Comparison, corpus_label, heading, panel_corpora
from ncu_exp.figures.style import INK, caption, empty, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ncu_exp.stats import Metric


@dataclass(frozen=True, slots=True)
class _Map:
    """A measure, its matplotlib colour map, and how its numbers are written."""

    measure: str
    name: str
    colours: str
    form: str


_MAPS = (
    _Map("oracle/ncu", "NCU (oracle)", "Greens", "{:.2f}"),
    _Map("adversarial/prior_dominance", "Prior dominance (%)", "Oranges", "{:.0%}"),
)
_NARROW = 5  # columns of a map that still has another beside it
_DARK = 0.72  # from this value on the ink is white


def heat_map(of: Comparison) -> Figure:
    """NCU and prior dominance of each system on each corpus: the darker the higher."""
    corpora, notes = panel_corpora(of)
    where = f", {len(of.corpora)} corpora" if len(of.corpora) > 1 else ""
    title = heading(of, "NCU and prior dominance at a glance", where=where, notes=notes)
    tables = [_cells(of, each.measure, corpora=corpora) for each in _MAPS]
    known = [metric for cells in tables for row in cells for metric in row if metric is not None]
    if not known:
        return empty(title, "Neither NCU nor prior dominance is known.")

    beside = len(corpora) <= _NARROW
    top, step = (0.9, 0.24) if beside else (1.5, 0.34)  # inches: labels, and a row
    tall = top + step * max(2, len(of.systems))
    height = 0.7 + 0.17 * title.count("\n") + tall * (1 if beside else 2)
    figure = new_figure(title, height=height)
    grid = figure.subplots(*((1, 2) if beside else (2, 1)), sharey=beside, squeeze=False)
    for axes, each, cells in zip(grid.flat, _MAPS, tables, strict=True):
        _draw(axes, cells, of=each, between="…" if beside else "…\n")
        axes.set_title(each.name, loc="left", fontsize=9, color=INK)
        labels = [corpus_label(corpus, limit=14) for corpus in corpora]
        axes.set_xticks(range(len(labels)), labels, rotation=90 if len(labels) > 2 else 0)
        axes.set_yticks(range(len(of.systems)), [system.label for system in of.systems])
    told = (
        "Two numbers: the API bounds it from both sides."
        if any(metric.is_bounded for metric in known)
        else ""
    )
    caption(figure, f"The darker the higher. –: not measured. {told}".strip())
    return figure


def _cells(of: Comparison, measure: str, *, corpora: Sequence[str]) -> list[list[Metric | None]]:
    return [[of.metric(s, measure, corpus=corpus) for corpus in corpora] for s in of.systems]


def _draw(axes: Axes, cells: list[list[Metric | None]], *, of: _Map, between: str) -> None:
    import numpy as np

    shades = np.array([[_middle(metric) for metric in row] for row in cells])
    axes.imshow(shades, vmin=0, vmax=1.1, cmap=of.colours, aspect="auto", interpolation="nearest")
    for y, row in enumerate(cells):
        for x, metric in enumerate(row):
            ink = "white" if shades[y, x] > _DARK else INK
            told = between.join(_told(metric, form=of.form))
            axes.text(x, y, told, ha="center", va="center", fontsize=7.5, color=ink)
    axes.spines[:].set_visible(False)
    axes.tick_params(labelsize=8.5, colors=INK, length=0, top=True, labeltop=True)
    axes.tick_params(labelbottom=False, bottom=False)
    for edge in range(1, shades.shape[1]):
        axes.axvline(edge - 0.5, color="white", linewidth=1.5)
    for edge in range(1, shades.shape[0]):
        axes.axhline(edge - 0.5, color="white", linewidth=1.5)


def _middle(metric: Metric | None) -> float:
    """The shade of a cell; none where the number is not known, or bounded only."""
    return float("nan") if metric is None or metric.is_bounded else metric.value


def _told(metric: Metric | None, *, form: str) -> list[str]:
    """The number of a cell, or its two ends."""
    if metric is None:
        return ["–"]
    ends = (metric.lower, metric.upper) if metric.is_bounded else (metric.value,)
    return [form.format(end).removesuffix("%") for end in ends]
