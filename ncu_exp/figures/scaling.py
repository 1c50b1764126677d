"""Against the size of the model: NCU, prior dominance, and the time of a request."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_exp.figures.marks import Mark, interval_upright
from ncu_exp.figures.readings import Comparison, System, heading, interval_note, n_told, shorten
from ncu_exp.figures.style import CYCLE, FAINT, INK, caption, counted, empty, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MEASURES = (
    ("oracle/ncu", "NCU (oracle)", 1.0),
    ("adversarial/prior_dominance", "Prior dominance (%)", 100.0),
    ("latency/oracle_p50_s", "Oracle request, p50 (s)", 1.0),
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
_OTHERS = "*"  # of ways beyond the markers
_SIZE = re.compile(r"[-_ :/]*\d+(\.\d+)?[bm]\b", re.IGNORECASE)
_TICK_GAP = 0.17  # of the axis' width, at least, between two sizes that are told


@dataclass(frozen=True, slots=True)
class _Keys:
    """The colour of each family of models, and the marker of each way of asking."""

    families: dict[str, str]
    ways: dict[str, str]
    offsets: dict[str, float]

    def mark(self, system: System, *, scale: float) -> Mark:
        colour, marker = self.families[_family(system)], self.ways[_way(system)]
        return Mark(colour, marker=marker, size=5.5, scale=scale)


def scaling(of: Comparison) -> Figure:
    """NCU, prior dominance and latency against billions of parameters, on a log scale."""
    sized = [system for system in of.systems if system.params_b > 0]
    unknown = len(of.systems) - len(sized)
    notes = [f"{counted(unknown, 'system')} of unknown size not shown"] if unknown else []
    title = heading(of, "NCU, prior dominance and latency by size of the model", notes=notes)
    if len({system.params_b for system in sized}) < 2:
        return empty(title, "Fewer than two sizes of models are known: nothing to draw a line by.")

    keys = _keys(sized)
    key_heights = [0.19 * math.ceil(len(key) / 3) + 0.06 for key in (keys.families, keys.ways)]
    heights = [2.4, *key_heights]  # inches
    figure = new_figure(title, height=1.2 + 0.17 * title.count("\n") + sum(heights))
    grid = figure.add_gridspec(3, len(_MEASURES), height_ratios=heights)
    panels = [figure.add_subplot(grid[0, column]) for column in range(len(_MEASURES))]
    shown = []
    for axes, (measure, name, scale) in zip(panels, _MEASURES, strict=True):
        metrics = [of.metric(system, measure) for system in sized]
        _panel(axes, [(s, m) for s, m in zip(sized, metrics, strict=True) if m], keys, scale)
        axes.set_title(f"{name}\n{n_told(metrics)}", loc="left", fontsize=9, color=INK)
        _sizes(axes, [system.params_b for system in sized])
        shown += metrics
    panels[0].set_ylim(0, 1.02)
    panels[1].set_ylim(0, 102)
    panels[2].set_ylim(0, panels[2].get_ylim()[1] * 1.05)
    _legends([figure.add_subplot(grid[row, :]) for row in (1, 2)], keys)
    caption(figure, f"Across: parameters of the model, log scale. {interval_note(of, shown)}")
    return figure


def _panel(axes: Axes, points: Sequence[tuple[System, Any]], keys: _Keys, scale: float) -> None:
    plain(axes, grid="y")
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for system, metric in sorted(points, key=lambda point: point[0].params_b):
        x = system.params_b * keys.offsets[_way(system)]
        ends = interval_upright(axes, x, metric=metric, mark=keys.mark(system, scale=scale))
        line = lines.setdefault((_family(system), _way(system)), [])
        line.append((x, sum(ends) / len(ends)))
    for (family, _), line in lines.items():
        axes.plot(*zip(*line, strict=True), color=keys.families[family], linewidth=0.8, alpha=0.5)


def _sizes(axes: Axes, sizes: Sequence[float]) -> None:
    """Ticks at the sizes there are, those too near to the one before left out."""
    from matplotlib.ticker import NullLocator

    low, high = min(sizes), max(sizes)
    axes.set_xscale("log")
    margin = (high / low) ** 0.12
    axes.set_xlim(low / margin, high * margin)
    gap = _TICK_GAP * math.log(high / low)
    ticks: list[float] = []
    for size in sorted(set(sizes)):
        if not ticks or math.log(size / ticks[-1]) >= gap:
            ticks.append(size)
    axes.set_xticks(ticks, [_size_told(size) for size in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def _legends(below: Sequence[Axes], keys: _Keys) -> None:
    """What the colours and the markers stand for, each in axes of its own below the panels."""
    from matplotlib.lines import Line2D

    families = [
        Line2D([], [], color=colour, linewidth=2.5, label=shorten(family, limit=28))
        for family, colour in keys.families.items()
    ]
    ways = [
        Line2D([], [], color=FAINT, marker=m, linestyle="none", label=shorten(way, limit=28))
        for way, m in keys.ways.items()
    ]
    for axes, handles in zip(below, (families, ways), strict=True):
        axes.set_axis_off()
        axes.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(0, 1),
            borderaxespad=0,
            ncols=3,
            fontsize=8,
            frameon=False,
        )


def _keys(systems: Sequence[System]) -> _Keys:
    families = list(dict.fromkeys(_family(system) for system in systems))
    ways = list(dict.fromkeys(_way(system) for system in systems))
    spread = math.log(max(s.params_b for s in systems) / min(s.params_b for s in systems))
    step = min(0.035, 0.12 / len(ways)) * spread
    return _Keys(
        families={f: CYCLE[k] if k < len(CYCLE) else FAINT for k, f in enumerate(families)},
        ways={w: _MARKERS[k] if k < len(_MARKERS) else _OTHERS for k, w in enumerate(ways)},
        offsets={w: math.exp(step * (k - (len(ways) - 1) / 2)) for k, w in enumerate(ways)},
    )


def _family(system: System) -> str:
    """The model's name without its size: "smollm2" of "smollm2-135m"."""
    return _SIZE.sub("", system.model).strip("-_ ") or system.model


def _way(system: System) -> str:
    return f"{system.precision} · {system.prompt}"


def _size_told(params_b: float) -> str:
    return f"{params_b * 1000:.0f}M" if params_b < 1 else f"{params_b:.3g}B"
