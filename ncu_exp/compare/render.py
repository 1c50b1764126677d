"""A table of words as Markdown, and as LaTeX for a paper (booktabs)."""

from __future__ import annotations

from collections.abc import Sequence

from ncu_exp.explorer import PageTable

_IN_MATH = {
    "∞": r"$\infty$",
    "−": "$-$",
    "±": r"$\pm$",
    "τ": r"$\tau$",
    "…": r"\ldots{}",
    "–": "--",
}


def to_markdown(table: PageTable) -> str:
    """A pipe table with its title above and its note below."""
    rule = ["---"] * len(table.header)
    lines = [_line(row) for row in (table.header, rule, *table.rows)]
    return "\n".join([f"### {table.title}", "", *lines, "", table.note]).rstrip() + "\n"


def to_latex(table: PageTable) -> str:
    """A booktabs table in a `table` environment: needs `booktabs` alone."""
    import pandas as pd

    frame = pd.DataFrame(list(table.rows), columns=list(table.header))
    style = (
        frame.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
    )
    text: str = style.to_latex(
        hrules=True,
        column_format="l" + "r" * (len(table.header) - 1),
        caption=_escaped(table.title),
        position="ht",
    )
    for character, command in _IN_MATH.items():
        text = text.replace(character, command)
    return text


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in cells) + " |"


def _escaped(text: str) -> str:
    return text.replace("%", r"\%").replace("&", r"\&").replace("_", r"\_")
