"""What a user or another's run calls a model is shown as it is written: no formula, no markup."""

from __future__ import annotations

import io

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from rich.console import Console

from ncu_exp.errors import DataError, visible
from ncu_exp.figures import to_png, to_svg
from ncu_exp.figures.style import one_axes
from ncu_exp.terminal import metrics_table, progress_bar

FORMULA = r"$\frac{$"


def figure() -> Figure:
    made, axes = one_axes(FORMULA, height=2)
    axes.set_yticks([0, 1], [FORMULA, "b"])
    axes.set_xticks([0], [FORMULA])
    axes.plot([0, 1], [0, 1], label=FORMULA)
    axes.legend()
    return made


@pytest.mark.parametrize("write", [to_png, to_svg])
def test_a_name_with_dollars_is_drawn(write) -> None:  # type: ignore[no-untyped-def]
    made = figure()
    assert len(write(made)) > 1_000
    assert sum(text.get_text() == FORMULA for text in made.findobj(Text)) >= 4


def test_a_name_with_brackets_is_printed() -> None:
    stream = io.StringIO()
    Console(file=stream, width=100).print(metrics_table([], title="a [/bold] [link=x]b"))
    assert "a[/bold][link=x]b" in "".join(stream.getvalue().split())
    with progress_bar("a [/bold] b", arms=1) as bar:
        bar.advance(1)


def test_a_message_holds_nothing_that_a_terminal_obeys() -> None:
    told = str(DataError("a\x1b[31m\r\u202eb\ud800 Rhône\n"))
    assert told == "a\\x1b[31m\\r\\u202eb\\ud800 Rhône\n"
    assert visible("Ålesund\t–\u2028") == "Ålesund\t–\u2028"
