"""A table of words as Markdown, and as LaTeX for a paper (booktabs)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ncu_exp.explorer import PageTable

_IN_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "∞": r"$\infty$",
    "−": "$-$",
    "±": r"$\pm$",
    "τ": r"$\tau$",
    "·": r"$\cdot$",
    "…": r"\ldots{}",
    "–": "--",
}


def to_markdown(table: PageTable) -> str:
    """A pipe table with its title above and its note below."""
    rule = ["---"] * len(table.header)
    lines = [_line(row) for row in (table.header, rule, *table.rows)]
    title, note = _without_tags(table.title), _without_tags(table.note)
    return "\n".join([f"### {title}", "", *lines, "", note]).rstrip() + "\n"


def to_latex(table: PageTable) -> str:
    """A booktabs table in a `table` environment: needs `booktabs` alone."""
    lines = [" & ".join(map(_escaped, row)) + r" \\" for row in (table.header, *table.rows)]
    return "\n".join(
        [
            r"\begin{table}[ht]",
            rf"\caption{{{_escaped(table.title)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_without_tags(cell).replace("|", r"\|") for cell in cells) + " |"


def _without_tags(text: str) -> str:
    """One line; Markdown would take a tag in it for one of its own."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", " ".join(text.split()))


def _escaped(text: str) -> str:
    return "".join(_IN_LATEX.get(character, character) for character in " ".join(text.split()))
