"""Down the ladder of precisions: what quantisation costs each model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_exp.figures.marks import Mark, interval_upright
from ncu_exp.figures.readings import (
    Comparison,
    System,
    first_panels,
    heading,
    interval_note,
    n_told,
    shorten,
)
from ncu_exp.figures.style import COLOURS, FAINT, INK, caption, empty, new_figure, plain
from ncu_exp.records import Condition
from ncu_exp.stats import POOLED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE: dict[str, Any] = {"loc": "left", "fontsize": 8.5, "color": INK}
PRECISIONS = ("fp32", "bf16", "fp16", "int8", "nf4")  # finest first
_GREEN, _ORANGE = COLOURS[Condition.oracle], COLOURS[Condition.adversarial]


@dataclass(frozen=True, slots=True)
class _Column:
    measure: str
    name: str
    mark: Mark


_COLUMNS = (
    _Column("oracle/ncu", "NCU (oracle)", Mark(_GREEN, size=5, scale=1)),
    _Column("oracle/accuracy", "Oracle accuracy (%)", Mark(_GREEN, marker="s", size=5)),
    _Column(
        "adversarial/prior_dominance", "Prior dominance (%)", Mark(_ORANGE, marker="D", size=4.5)
    ),
)


def precision_ladder(of: Comparison, differences: pd.DataFrame) -> Figure:
    """Three measures against precision, a row per model and prompt that has two precisions."""
    ladders = [ladder for ladder in _ladders(of) if len({s.precision for s in ladder}) > 1]
    shown, notes = first_panels(ladders, "models")
    title = heading(of, "What a coarser precision costs", notes=notes)
    if not ladders:
        return empty(title, "No model was run in two precisions with the same prompt.")

    floors = _floors(differences)
    height = 0.9 + 0.17 * title.count("\n") + 1.6 * len(shown)
    figure = new_figure(title, height=height)
    grid = figure.subplots(len(shown), len(_COLUMNS), sharey="col", squeeze=False)
    metrics = [of.metric(s, c.measure) for ladder in shown for s in ladder for c in _COLUMNS]
    for row, ladder in zip(grid, shown, strict=True):
        for axes, column in zip(row, _COLUMNS, strict=True):
            _panel(axes, of, ladder=ladder, column=column, floors=floors)
        label = shorten(f"{ladder[0].model} · {ladder[0].prompt}", limit=34)
        row[0].set_title(f"{label}\n{row[0].get_title(loc='left')}", **_TITLE)
    told = "Grey: within the noise floor of the finest precision's number. " if floors else ""
    caption(figure, f"{told}{interval_note(of, metrics)} The upright axes do not begin at 0.")
    return figure


def _panel(
    axes: Axes,
    of: Comparison,
    *,
    ladder: Sequence[System],
    column: _Column,
    floors: dict[tuple[str, frozenset[str]], float],
) -> None:
    plain(axes, grid="y")
    scale = column.mark.scale
    metrics = [of.metric(system, column.measure) for system in ladder]
    finest = metrics[0]
    middles = []
    for x, (system, metric) in enumerate(zip(ladder, metrics, strict=True)):
        floor = floors.get((column.measure, frozenset({ladder[0].name, system.name})), math.nan)
        if finest is not None and not math.isnan(floor + finest.value):
            ends = (scale * (finest.value - floor), scale * (finest.value + floor))
            axes.fill_between((x - 0.35, x + 0.35), *ends, color=FAINT, alpha=0.35, linewidth=0)
        if metric is not None:
            known = interval_upright(axes, x, metric=metric, mark=column.mark)
            middles.append((x, sum(known) / len(known)))
    if middles:
        axes.plot(*zip(*middles, strict=True), color=column.mark.colour, linewidth=0.9, alpha=0.5)
    axes.set_xticks(range(len(ladder)), [system.precision for system in ladder])
    axes.set_xlim(-0.6, len(ladder) - 0.4)
    axes.margins(y=0.15)
    axes.set_title(f"{column.name}, {n_told(metrics)}", **_TITLE)


def _ladders(of: Comparison) -> list[list[System]]:
    """Systems of one model and prompt, the finest precision first."""
    ladders: dict[tuple[str, str], list[System]] = {}
    for system in of.systems:
        if system.precision in PRECISIONS:
            ladders.setdefault((system.model, system.prompt), []).append(system)
    return [
        sorted(ladder, key=lambda s: PRECISIONS.index(s.precision)) for ladder in ladders.values()
    ]


def _floors(differences: pd.DataFrame) -> dict[tuple[str, frozenset[str]], float]:
    """The noise floor of each measure and pair of systems that has one."""
    pooled = differences[differences["corpus"] == POOLED].dropna(subset="noise_floor")
    rows = pooled[["measure", "a", "b", "noise_floor"]].itertuples(index=False)
    return {(str(m), frozenset({str(a), str(b)})): float(floor) for m, a, b, floor in rows}
