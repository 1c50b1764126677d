"""The folder of a finished job: configuration, tables, figures and report, as files."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ncu_exp import provenance
from ncu_exp.config import Config
from ncu_exp.records import LatencyProbe, Perturbation

if TYPE_CHECKING:
    import pandas as pd

    from ncu_exp.data.corpora import LoadedItems
    from ncu_exp.metrics import Metric


@dataclass(frozen=True, slots=True)
class Results:
    """What a job found, ready to be written down."""

    loaded: LoadedItems
    perturbations: Sequence[Perturbation]
    table: pd.DataFrame
    metrics: Sequence[Metric]
    probes: Sequence[LatencyProbe]
    facts: Mapping[str, str]  # of the engine: precision, device, weights


def loggable(metrics: Sequence[Metric]) -> dict[str, float]:
    """Metrics by the names that MLflow shows, with `_lo` and `_hi` where there is an interval."""
    found: dict[str, float] = {}
    for metric in metrics:
        for suffix, value in (("", metric.value), ("_lo", metric.lo), ("_hi", metric.hi)):
            if math.isfinite(value):
                found[metric.name + suffix] = value
    return found


def write_results(results: Results, config: Config, folder: Path) -> Path:
    """Write everything that a run keeps below `folder`, and return it."""
    import yaml

    from ncu_exp.figures import all_figures, to_png
    from ncu_exp.report import render_report

    folder.mkdir(parents=True, exist_ok=True)
    _write_text(folder / "config.yaml", yaml.safe_dump(provenance.plain(config), sort_keys=False))
    _write_tables(results, folder / "tables")
    figures = all_figures(
        results.table, results.metrics, probes=results.probes, settings=config.metrics
    )
    pictures = {name: to_png(figure) for name, figure in figures.items()}
    for name, picture in pictures.items():
        path = folder / "figures" / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(picture)
    report = render_report(
        results.loaded.items,
        results.table,
        metrics=results.metrics,
        perturbations=results.perturbations,
        figures=pictures,
        header=_header(results, config),
        settings=config.metrics,
    )
    _write_text(folder / "report.html", report)
    return folder


def _write_tables(results: Results, folder: Path) -> None:
    import pandas as pd

    from ncu_exp.perturb.audit import PERTURBATION_COLUMNS, perturbation_rows
    from ncu_exp.tables import parquet_schema, preview

    folder.mkdir(exist_ok=True)
    results.table.to_parquet(folder / "items.parquet", index=False, schema=parquet_schema())
    rows = perturbation_rows(results.perturbations)
    audit = pd.DataFrame(rows, columns=list(PERTURBATION_COLUMNS))  # without rows, too
    audit.to_parquet(folder / "perturbations.parquet", index=False)
    _write_text(folder / "items_preview.json", json.dumps(preview(results.table)))
    skipped = [{"row": s.row, "field": s.field, "reason": s.reason} for s in results.loaded.skipped]
    if skipped:
        pd.DataFrame(skipped).to_csv(folder / "skipped_rows.csv", index=False)


def _header(results: Results, config: Config) -> dict[str, str]:
    versions = provenance.versions()
    return {
        "Model": f"{config.model.label} ({config.model.name})",
        **results.facts,
        "Dataset": f"{config.dataset.name.value}, {len(results.loaded.items)} items "
        f"of {results.loaded.total} ({results.loaded.source})",
        "Prompt": config.prompt.name.value,
        "When": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Machine": f"{platform.system()} {platform.machine()}",
        "Versions": ", ".join(f"{k} {v}" for k, v in versions.items()),
    }


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
