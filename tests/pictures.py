"""What a figure says, and whether any of its texts overlaps another or is cut."""

from __future__ import annotations

from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text


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
