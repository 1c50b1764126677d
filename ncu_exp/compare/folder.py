"""The folder of a comparison: its page, its tables in four forms, its figures in two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ncu_exp.compare.comparison import Comparison
from ncu_exp.compare.details import details_of
from ncu_exp.compare.names import FIGURES
from ncu_exp.compare.render import to_latex, to_markdown

if TYPE_CHECKING:
    from ncu_exp.explorer import PageTable

PAGE = "comparison.html"
_FRAMES = ("systems", "summary", "differences", "sensitivity")


def write_comparison(
    comparison: Comparison,
    folder: Path,
    *,
    title: str,
    finding: Sequence[str],
    texts: Mapping[str, PageTable],
) -> None:
    """Fill `folder`: the page, `finding.md`, `tables/*.{md,tex,csv}`, `figures/*.{png,svg}`.

    `finding` are the sentences, `texts` the tables that are read; the CSV files hold the numbers,
    `compared_items.parquet` a row per system and item.
    """
    from ncu_exp.explorer import render_comparison

    tables, figures = folder / "tables", folder / "figures"
    for place in (tables, figures):
        place.mkdir(parents=True, exist_ok=True)
    for name, table in texts.items():
        _write(tables / f"{name}.md", to_markdown(table))
        _write(tables / f"{name}.tex", to_latex(table))
    for name in _FRAMES:
        getattr(comparison, name).to_csv(tables / f"{name}.csv", index=False)
    comparison.items.to_parquet(tables / "compared_items.parquet", index=False)
    lines = [*(f"- {said}" for said in finding), *(f"- Note: {n}" for n in comparison.notes)]
    _write(folder / "finding.md", "\n".join(lines) + "\n")
    page = render_comparison(
        title=title,
        sentences=finding,
        notes=comparison.notes,
        facts=_facts(comparison),
        tables=list(texts.values()),
        items=comparison.items,
        details=details_of(comparison),
        figures=_write_figures(comparison, figures),
        alternatives=FIGURES,
    )
    _write(folder / PAGE, page)


def _write_figures(comparison: Comparison, folder: Path) -> dict[str, bytes]:
    """Both forms of every figure; the PNG bytes by name."""
    from ncu_exp.figures import comparison_figures, to_png, to_svg

    figures = comparison_figures(
        comparison.systems,
        comparison.summary,
        items=comparison.items,
        differences=comparison.differences,
        sensitivity=comparison.sensitivity,
        tau=comparison.metrics.tau,
        confidence=comparison.metrics.confidence,
        margin=comparison.settings.margin,
    )
    pictures: dict[str, bytes] = {}
    for name, figure in figures.items():
        pictures[name] = to_png(figure)
        (folder / f"{name}.png").write_bytes(pictures[name])
        (folder / f"{name}.svg").write_bytes(to_svg(figure))
    return pictures


def _facts(comparison: Comparison) -> dict[str, str]:
    metrics, runs = comparison.metrics, sum(len(s.runs) for s in comparison.compared)
    return {
        "Systems": f"{len(comparison.compared)}, from {runs} runs",
        "Items": f"up to {comparison.summary['n'].max():,} for each system",
        "Corpora": ", ".join(comparison.corpora),
        "Intervals": f"{metrics.confidence:.0%}, {metrics.resamples:,} resamples of the items, "
        f"seed {metrics.seed}, the same for every system",
    }


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
