"""The tables of a comparison, in words: as they stand on the page, in Markdown and in LaTeX."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ncu_exp.compare.names import label
from ncu_exp.compare.paper import MEASURES, metrics_of, published
from ncu_exp.explorer import PageTable
from ncu_exp.stats import POOLED, Metric, metric_of
from ncu_exp.wording import decimal, has_number, interval, is_share, percent, told

if TYPE_CHECKING:
    import pandas as pd

    from ncu_exp.compare.comparison import Comparison

_MISSING = "–"
_SMALLEST_P = 0.0001
SHOWN_DIFFERENCES = 300  # rows of the table that is read; the CSV file has all


def tables_of(comparison: Comparison) -> dict[str, PageTable]:
    """Every table by file name (without suffix), the most read first."""
    found = {"table1": _table_1(comparison)}
    if len(comparison.corpora) > 1:
        found["by_corpus"] = _by_corpus(comparison)
    found["differences"] = _differences(comparison)
    found["sensitivity"] = _sensitivity(comparison)
    return {name: table for name, table in found.items() if table.rows}


def metrics_by_name(rows: pd.DataFrame) -> dict[str, Metric]:
    """The rows of a summary as metrics, by measure."""
    return {str(row["measure"]): metric_of(row) for row in rows.to_dict("records")}


def _table_1(comparison: Comparison) -> PageTable:
    """The paper's Table 1 for these systems, the paper's own row beneath each that it has."""
    measures = _measures(comparison)
    rows: list[tuple[str, ...]] = []
    for system in comparison.compared:
        found = _of(comparison, system.label, POOLED)
        if not found:
            continue
        rows.append((_marked(system.label, system.estimator), *_cells(found, measures)))
        paper = published(str(system.newest.config["model"]["name"]))
        if paper is not None:
            rows.append((f"paper: {paper.label}", *_cells(metrics_of(paper), measures)))
    n = int(comparison.summary.query("corpus == @POOLED")["n"].max())
    corpora = comparison.corpora
    where = f"of {corpora[0]}" if len(corpora) == 1 else f"of {len(corpora)} corpora together"
    note = (
        f"Over up to {n:,} items {where}; brackets: {comparison.metrics.confidence:.0%} "
        "intervals of a bootstrap that draws the same items for every system. Accuracy and prior "
        f"dominance: share of answers with a probability above {comparison.metrics.tau:g} per "
        "token. Latency: seconds of one request with the gold context (median), measured one at a "
        "time."
    )
    if any(row[0].startswith("paper:") for row in rows):
        note += (
            " The paper's rows are arXiv 2606.23695's, over its own 3,000 items and contexts; its "
            "latency sums four passes."
        )
    return PageTable(
        "The paper's table, for these runs", ("", *map(label, measures)), tuple(rows), note
    )


def _by_corpus(comparison: Comparison) -> PageTable:
    measures = _measures(comparison)
    rows = [
        (corpus, system.label, *_cells(found, measures))
        for corpus in comparison.corpora
        for system in comparison.compared
        if (found := _of(comparison, system.label, corpus))
    ]
    header = ("Corpus", "", *map(label, measures))
    return PageTable("The same by corpus", header, tuple(rows))


def _differences(comparison: Comparison) -> PageTable:
    found = comparison.differences
    if len(comparison.corpora) == 1:  # it is its own pool
        found = found[found["corpus"] != POOLED]
    shown = _shown(found)
    rows = tuple(_difference(row) for row in shown.to_dict("records"))
    family = found.groupby("corpus")["p"].count().max() if len(found) else 0
    settings = comparison.settings
    note = (
        f"a minus b over the items that both have. p: exact McNemar for shares, paired t for "
        f"means, else from the bootstrap's spread; adjusted by Holm over the {family:,} tests of "
        f"a corpus. Equivalent: shown to lie within ±{settings.margin:g} (two one-sided tests, not "
        "adjusted). Tie: within the numeric noise of the two. Detectable: what a test of so many "
        f"items would find with {settings.power:.0%} power."
    )
    if len(shown) < len(found):
        note = (
            f"The {len(shown):,} of {len(found):,} rows with the smallest p; all of them: "
            f"tables/differences.csv. {note}"
        )
    header = ("Corpus", "Measure", "a", "b", "a − b", "n", "p", "p, Holm", "Detectable", "Verdict")
    return PageTable("Differences between pairs", header, rows, note)


def _shown(found: pd.DataFrame) -> pd.DataFrame:
    """All rows where a reader can read them, else those that are surest, in the same order."""
    surest = found["p"].sort_values(kind="stable").index[:SHOWN_DIFFERENCES]
    return found.loc[sorted(surest)]


def _difference(row: Mapping[Any, Any]) -> tuple[str, ...]:
    measure = str(row["measure"])
    return (
        str(row["corpus"]),
        label(measure),
        str(row["a"]),
        str(row["b"]),
        difference(row),
        f"{row['n']:,}",
        probability(row["p"]),
        probability(row["p_holm"]),
        _size(row["detectable"], measure),
        str(row["verdict"]).replace("_", " "),
    )


def difference(row: Mapping[Any, Any]) -> str:
    """A difference with its interval: points of percent for shares, else the measure's own unit."""
    number = _signed(percent if is_share(str(row["measure"])) else decimal)
    unit = " points" if is_share(str(row["measure"])) else ""
    ends = (row["lower"], row["upper"]) if math.isnan(row["difference"]) else (row["difference"],)
    return "…".join(map(number, ends)) + unit + interval(row["lo"], row["hi"], number)


def probability(p: float) -> str:
    """A p value to two digits; a bound where it is smaller than anybody would tell apart."""
    if math.isnan(p):
        return _MISSING
    return f"< {_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.2g}"


def _sensitivity(comparison: Comparison) -> PageTable:
    found = comparison.sensitivity
    systems = [system.label for system in comparison.compared]
    rows = []
    for (measure, setting), group in found.groupby(["measure", "setting"], sort=False):
        of = group.set_index("system")
        mark = " (default)" if bool(group["is_default"].iloc[0]) else ""
        told_of = [_ranked(of.loc[s]) if s in of.index else _MISSING for s in systems]
        rows.append((label(str(measure)), f"{setting}{mark}", *told_of))
    note = (
        "Value and, in brackets, rank (1 is the highest). Where the ranks of the defaults hold in "
        "every row, the order of the systems does not hang on a choice of the metric."
    )
    return PageTable(
        "Does the order hang on a setting?", ("Measure", "Setting", *systems), tuple(rows), note
    )


def _ranked(row: Any) -> str:
    if math.isnan(row["value"]):
        return _MISSING
    number = percent(row["value"]) + "%" if is_share(row["measure"]) else decimal(row["value"])
    return f"{number} ({row['rank']:g})"


def _measures(comparison: Comparison) -> list[str]:
    """The columns of the paper's table that were measured."""
    measured = set(comparison.summary["measure"])
    return [measure for measure in MEASURES if measure in measured]


def _of(comparison: Comparison, system: str, corpus: str) -> dict[str, Metric]:
    """The measures of a system over a corpus."""
    rows = comparison.summary
    return metrics_by_name(rows[(rows["system"] == system) & (rows["corpus"] == corpus)])


def _cells(metrics: Mapping[str, Metric], measures: Iterable[str]) -> list[str]:
    return [
        told(metrics[m]) if m in metrics and has_number(metrics[m]) else _MISSING for m in measures
    ]


def _marked(system: str, estimator: str) -> str:
    return (
        system if estimator in ("exact", "interval") else f"{system} ({estimator}: not comparable)"
    )


def _size(value: float, measure: str) -> str:
    if not math.isfinite(value):
        return _MISSING
    return f"{100 * value:.1f} points" if is_share(measure) else f"{value:.3f}"


def _signed(number: Any) -> Any:
    return lambda value: ("+" if value > 0 else "") + number(value)
