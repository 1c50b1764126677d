"""The look that all figures share: colours, sizes, titles, and what is told beside the data.

Figures are built directly, without pyplot and without touching matplotlib's global state.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from ncu_exp.records import Condition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by the colour-blind; one for each condition, everywhere.
COLOURS = {
    Condition.zero: "#4D4D4D",
    Condition.oracle: "#009E73",
    Condition.adversarial: "#D55E00",
    Condition.noise: "#0072B2",
    Condition.irrelevant: "#CC79A7",
    Condition.distractor: "#E69F00",
}
# The same eight, for what is no condition: told apart by place or shape first, by colour second.
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#B8A600")
INK, FAINT, GRID = "#222222", "#666666", "#DDDDDD"
_CAPTION_CHARACTERS = 118  # a line of the width of a figure
WIDTH, DPI = 8.0, 150  # inches, dots per inch
NOT_COMPARABLE = {
    "paper": "by the paper's convention for chat APIs: not comparable with other runs",
    "sampled": "of whole answers, by samples: not comparable with scores per token",
}


def to_png(figure: Figure) -> bytes:
    """The figure as PNG; the same figure gives the same bytes (no date, no version inside)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    _as_written(figure)
    buffer = io.BytesIO()
    # `savefig` would draw twice more: to lay out what `draw` lays out by itself.
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    figure.set_layout_engine("none")
    return buffer.getvalue()


def to_svg(figure: Figure) -> bytes:
    """The figure as SVG; the same figure gives the same bytes (no date, fixed ids)."""
    import matplotlib as mpl

    _as_written(figure)
    _settle(figure)
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "ncu_exp"}):  # restored at the end
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _as_written(figure: Figure) -> None:
    """A name with two dollars in it is no formula."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_parse_math(False)


def _settle(figure: Figure) -> None:
    """Lay out once: constrained layout moves with each drawing, and the bytes would too."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def new_figure(title: str, *, height: float) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="white")
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.06)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
    return figure


def one_axes(title: str, *, height: float) -> tuple[Figure, Axes]:
    figure = new_figure(title, height=height)
    axes = figure.subplots()
    plain(axes, grid="x")
    return figure, axes


def empty(title: str, message: str) -> Figure:
    """What is shown where there is nothing to show: why."""
    figure = new_figure(title, height=1.6)
    axes = figure.subplots()
    axes.set_axis_off()
    axes.text(0.5, 0.5, message, ha="center", va="center", fontsize=11, color=FAINT)
    return figure


def add_title_line(figure: Figure, note: str) -> None:
    """A second line of the title."""
    title = f"{figure.get_suptitle()}\n{note}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)


def caption(figure: Figure, text: str) -> None:
    """Small print below all axes, broken into lines: units, what the marks mean, what n is."""
    lines = [line for part in text.splitlines() for line in wrap(part, _CAPTION_CHARACTERS)]
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8.5, color=INK)


def short_labels(labels: Sequence[str], *, limit: int) -> list[str]:
    """Labels of at most `limit` characters, distinct where they were.

    What all begin or end with goes first, then the middles; what then reads alike is numbered.
    """
    told = list(labels)
    if len(told) > 1 and max(map(len, told)) > limit:
        start, end = _alike(told), _alike([label[::-1] for label in told])
        cut = [t[start : len(t) - end].strip(" ·") for t in told]
        told = [f"{'…' * (start > 0)}{t}{'…' * (end > 0)}" for t in cut]
    tail = limit // 2
    told = [f"{t[: limit - tail - 1]}…{t[-tail:]}" if len(t) > limit else t for t in told]
    for place, label in enumerate(told):
        if label in told[:place]:
            told[place] = f"{label[: limit - 5]}…#{place + 1}"
    return told


def _alike(labels: Sequence[str]) -> int:
    """How many characters all labels begin with, up to the end of a word."""
    letters = enumerate(zip(*labels, strict=False))
    start = next((k for k, at_k in letters if len(set(at_k)) > 1), min(map(len, labels)))
    while start and labels[0][start - 1] not in " /":
        start -= 1
    return start


def counted(n: int, what: str) -> str:
    """ "1 system", "2 systems"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def items_told(n: int) -> str:
    return counted(n, "item")


def plain(axes: Axes, *, grid: Literal["x", "y", "both"]) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.grid(axis=grid, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8.5, colors=INK, color=FAINT)
    axes.xaxis.label.set_fontsize(9)
    axes.xaxis.label.set_color(INK)


def tell_beside(axes: Axes, y: float, *, text: str) -> None:
    """Text right of the axes at data height `y`."""
    where = axes.get_yaxis_transform()
    axes.text(1.03, y, text, transform=where, va="center", fontsize=8.5, color=INK)


def tell(axes: Axes, text: str) -> None:
    """Text right of the axes, at its middle."""
    axes.text(1.02, 0.5, text, transform=axes.transAxes, va="center", fontsize=8.5, color=INK)
