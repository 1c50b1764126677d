"""The folder of a finished job: configuration, tables, figures and report, as files."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ncu_exp import provenance
from ncu_exp.config import Config
from ncu_exp.disk import room_in
from ncu_exp.records import Arm, AuditCounts, Item, LatencyProbe, Perturbation, Score

if TYPE_CHECKING:
    import pandas as pd

    from ncu_exp.data.corpora import LoadedItems
    from ncu_exp.metrics import Loss, Metric


def loggable(metrics: Sequence[Metric]) -> dict[str, float]:
    """Metrics by the names that MLflow shows, with `_lo` and `_hi` where there is an interval.

    One that is known within bounds only has `_lower` and `_upper` instead of a value.
    """
    found: dict[str, float] = {}
    for metric in metrics:
        named = {
            "": metric.value,
            "_lo": metric.lo,
            "_hi": metric.hi,
            "_lower": metric.lower,
            "_upper": metric.upper,
        }
        for suffix, value in named.items():
            if math.isfinite(value):
                found[metric.name + suffix] = value
    return found


@dataclass(frozen=True, slots=True)
class Findings:
    """What a run found: its metrics, what was lost of it, and what was done to the contexts."""

    metrics: tuple[Metric, ...]
    losses: tuple[Loss, ...]
    audit: AuditCounts


class ResultsWriter:
    """The folder of a job, filled block by block; `finish` adds what needs all of the items.

    Left by an exception, it removes the tables that are not whole. Raises DiskFullError where the
    folder has no room.
    """

    def __init__(self, folder: Path, loaded: LoadedItems, config: Config) -> None:
        from ncu_exp.perturb.digests import ContextDigests
        from ncu_exp.perturb.table import perturbation_schema
        from ncu_exp.report import chosen_examples
        from ncu_exp.tablefile import ParquetAppender, parquet_schema

        self.folder = folder
        self.digests = ContextDigests()
        self._loaded, self._config = loaded, config
        self._tables = folder / "tables"
        with room_in(folder):
            self._tables.mkdir(parents=True, exist_ok=True)
        self._rows = ParquetAppender(self._tables / "items.parquet", parquet_schema())
        audit = perturbation_schema(spacy_model=config.perturb.spacy_model)
        self._audit = ParquetAppender(self._tables / "perturbations.parquet", audit)
        self._shown = chosen_examples(item.item_id for item in loaded.items)
        self._added = self._paged = 0  # items
        self._pages: list[str] = []  # where the report has no room for all items
        self._counts = AuditCounts()
        self._examples: list[Item] = []
        self._perturbations: list[Perturbation] = []  # of the examples

    def __enter__(self) -> ResultsWriter:
        return self

    def __exit__(self, kind: object, *args: object) -> None:
        if kind is not None:
            self._rows.discard()
            self._audit.discard()

    def add(
        self,
        items: Sequence[Item],
        arms: Sequence[Arm],
        *,
        perturbations: Sequence[Perturbation],
        scores: Sequence[Score],
    ) -> None:
        """Write the rows of a block of items, all of their arms together."""
        from ncu_exp.tables import items_table

        self.digests.add(arms, perturbations)
        generated = self._config.score.max_new_tokens > 0
        table = items_table(
            items, arms, scores=scores, settings=self._config.metrics, generated=generated
        )
        with room_in(self.folder):
            self._rows.append(table)
            self._append_audit(perturbations)
            self._write_page(items, table, perturbations)
        self._counts.add(perturbations)
        self._examples += [item for item in items if item.item_id in self._shown]
        self._perturbations += [p for p in perturbations if p.item_id in self._shown]

    def _append_audit(self, perturbations: Sequence[Perturbation]) -> None:
        import pandas as pd

        from ncu_exp.perturb.table import PERTURBATION_COLUMNS, perturbation_rows

        rows = perturbation_rows(perturbations)
        if perturbations:
            self._audit.append(pd.DataFrame(rows, columns=list(PERTURBATION_COLUMNS)))

    def _write_page(
        self, items: Sequence[Item], table: pd.DataFrame, perturbations: Sequence[Perturbation]
    ) -> None:
        from ncu_exp.report import PAGED_ITEMS, SHOWN_ITEMS, Examples, render_items

        first = self._added + 1
        self._added += len(items)
        if len(self._loaded.items) <= SHOWN_ITEMS or first > PAGED_ITEMS:
            return
        page = f"items/{first:05}-{self._added:05}.html"
        title = f"Items {first:,} to {self._added:,} of {len(self._loaded.items):,}"
        (self.folder / page).parent.mkdir(exist_ok=True)
        examples = Examples(items, table, perturbations)
        _write_text(self.folder / page, render_items(examples, title=title))
        self._pages.append(page)
        self._paged = self._added

    def finish(self, probes: Sequence[LatencyProbe], facts: Mapping[str, str]) -> Findings:
        """Close the tables, and write configuration, metrics' figures and report beside them.

        `facts` are the engine's: precision, device, weights.
        """
        with room_in(self.folder):
            return self._finish(probes, facts)

    def _finish(self, probes: Sequence[LatencyProbe], facts: Mapping[str, str]) -> Findings:
        import yaml

        from ncu_exp.metrics import aggregate, latency_metrics, losses
        from ncu_exp.tablefile import preview, read_first_rows, read_measured

        self._rows.close()
        self._audit.close()
        path = self._tables / "items.parquet"
        table = read_measured(path)
        metrics = aggregate(table, settings=self._config.metrics) + latency_metrics(probes)
        _write_text(
            self.folder / "config.yaml",
            yaml.safe_dump(provenance.plain(self._config), sort_keys=False),
        )
        shown = json.dumps(preview(read_first_rows(path)))
        _write_text(self._tables / "items_preview.json", shown)
        self._write_skipped()
        lost = losses(table)
        self._write_report(table, metrics, lost=lost, probes=probes, facts=facts)
        return Findings(tuple(metrics), tuple(lost), self._counts)

    def _write_skipped(self) -> None:
        import pandas as pd

        skipped = [asdict(row) for row in self._loaded.skipped]
        if skipped:
            pd.DataFrame(skipped).to_csv(self._tables / "skipped_rows.csv", index=False)

    def _write_report(
        self,
        table: pd.DataFrame,
        metrics: Sequence[Metric],
        *,
        lost: Sequence[Loss],
        probes: Sequence[LatencyProbe],
        facts: Mapping[str, str],
    ) -> None:
        from ncu_exp.figures import all_figures, to_png
        from ncu_exp.report import Examples, render_report
        from ncu_exp.tablefile import read_rows

        settings = self._config.metrics
        figures = all_figures(table, metrics, probes=probes, settings=settings)
        pictures = {name: to_png(figure) for name, figure in figures.items()}
        for name, picture in pictures.items():
            path = self.folder / "figures" / f"{name}.png"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(picture)
        rows = read_rows(self._tables / "items.parquet", self._shown)
        report = render_report(
            losses=lost,
            audit=self._counts,
            examples=Examples(self._examples, rows, self._perturbations),
            item_count=len(self._loaded.items),
            metrics=metrics,
            figures=pictures,
            header=self._header(facts),
            settings=settings,
            pages=self._pages,
            paged_items=self._paged,
        )
        _write_text(self.folder / "report.html", report)

    def _header(self, facts: Mapping[str, str]) -> dict[str, str]:
        config, loaded = self._config, self._loaded
        return {
            "Model": f"{config.model.label} ({config.model.name})",
            **facts,
            "Dataset": f"{config.dataset.name.value}, {len(loaded.items)} items "
            f"of {loaded.total} ({loaded.source})"
            + (f", shard {config.dataset.shard}" if config.dataset.shard else ""),
            "Prompt": config.prompt.name.value,
            "When": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "Machine": f"{platform.system()} {platform.machine()}",
            "Versions": ", ".join(f"{k} {v}" for k, v in provenance.versions().items()),
        }


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
