"""Figures under test: what one says, whether it is legible, and those of invented comparisons."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

from matplotlib.figure import Figure
from matplotlib.text import Text

from ncu_exp.figures import comparison_figures
from ncu_exp.figures.readings import Comparison, comparison
from tests.frames import MARGIN, TAU, Frames, frames

THREE = ("squad", "hotpotqa", "nq-open")
MANY = tuple(f"corpus-with-a-long-name-{k}" for k in range(14))
SERVED = {1: "interval", 3: "paper", 5: "sampled"}
CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "1": (1, {}),
    "2-bounded": (2, {"estimators": SERVED, "corpora": THREE}),
    "2-long": (2, {"long_labels": True}),
    "4": (4, {"corpora": THREE}),
    "6-bounded": (6, {"estimators": SERVED}),
    "12": (12, {"estimators": SERVED, "long_labels": True}),
    "50": (50, {"corpora": THREE, "estimators": SERVED, "long_labels": True}),
    "14-corpora": (3, {"corpora": MANY, "estimators": SERVED}),
}


def texts(figure: Figure) -> list[Text]:
    return [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]


def said(figure: Figure) -> str:
    return "\n".join(t.get_text() for t in texts(figure))


def shown_texts(figure: Figure) -> list[Text]:
    """The texts that are drawn: tick labels outside the limits of their axis are not."""
    figure.draw_without_rendering()
    hidden = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
        if not axes.axison
        or not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
        for label in (tick.label1, tick.label2)
    }
    return [t for t in texts(figure) if t not in hidden and t.get_rotation() in (0, 90)]


def assert_legible(name: str, figure: Figure) -> None:
    """No text overlaps another or the edge of the figure."""
    boxes = [(t.get_text(), t.get_window_extent()) for t in shown_texts(figure)]
    for text, box in boxes:
        inside = box.x0 >= 0 and box.y0 >= 0
        inside &= box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        assert inside, f"{name}: {text!r} is cut"
    for (one, a), (other, b) in combinations(boxes, 2):
        assert not a.overlaps(b), f"{name}: {one!r} overlaps {other!r}"


def drawn(of: Frames) -> dict[str, Figure]:
    return comparison_figures(
        of.systems,
        of.summary,
        items=of.items,
        differences=of.differences,
        sensitivity=of.sensitivity,
        tau=TAU,
        confidence=0.95,
        margin=MARGIN,
    )


def read(of: Frames) -> Comparison:
    return comparison(of.systems, of.summary, tau=TAU, confidence=0.95, margin=MARGIN)


@cache
def case(name: str) -> tuple[Frames, dict[str, Figure]]:
    n, options = CASES[name]
    made = frames(n, n_items=24, **options)
    return made, drawn(made)
