"""The audit rows of a run as a table: `tables/perturbations.parquet`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncu_exp.perturb.tagger import draw_versions
from ncu_exp.records import AnswerType, Perturbation, Span

if TYPE_CHECKING:
    import pyarrow as pa

PERTURBATION_COLUMNS = (
    "item_id",
    "policy",
    "seed",
    "entity_type",
    "answer",
    "fabricated",
    "spans",
    "context_sha256",
    "residue",
    "ok",
    "reason",
    "original",
    "perturbed",
)


VERSIONS_KEY = b"ncu_exp.draw_versions"  # of the schema's metadata: JSON, version by package


def perturbation_schema(*, spacy_model: str) -> pa.Schema:
    """The Arrow schema of the table, with the versions that the draws depend on."""
    import pyarrow as pa

    types = {"seed": pa.int64(), "ok": pa.bool_()}
    fields = [(name, types.get(name, pa.string())) for name in PERTURBATION_COLUMNS]
    versions = json.dumps(draw_versions(spacy_model)).encode("ascii")
    return pa.schema(fields, metadata={VERSIONS_KEY: versions})


def perturbation_rows(perturbations: Iterable[Perturbation]) -> list[dict[str, object]]:
    """The audit as rows of `tables/perturbations.parquet`; spans and residue are JSON texts."""
    return [
        {
            "item_id": p.item_id,
            "policy": p.policy,
            "seed": p.seed,
            "entity_type": p.entity_type.value,
            "answer": p.answer,
            "fabricated": p.fabricated,
            "spans": _json([_span_row(span) for span in p.spans]),
            "context_sha256": p.context_sha256,
            "residue": _json(list(p.residue)),
            "ok": p.ok,
            "reason": p.reason,
            "original": p.original,
            "perturbed": p.perturbed,
        }
        for p in perturbations
    ]


def perturbation_of(row: Mapping[str, Any]) -> Perturbation:
    """The audit row that a row of the table tells."""
    return Perturbation(
        item_id=row["item_id"],
        policy=row["policy"],
        seed=row["seed"],
        entity_type=AnswerType(row["entity_type"]),
        answer=row["answer"],
        fabricated=row["fabricated"],
        spans=spans_of(row),
        residue=tuple(json.loads(row["residue"])),
        original=row["original"],
        perturbed=row["perturbed"],
        ok=row["ok"],
        reason=row["reason"],
    )


def spans_of(row: Mapping[str, Any]) -> tuple[Span, ...]:
    """What was replaced in the context of a row of the table."""
    return tuple(Span(**span) for span in json.loads(row["spans"]))


def read_perturbations(path: Path, item_ids: Collection[str]) -> list[Perturbation]:
    """The audit rows of some items."""
    import pyarrow.parquet as pq

    chosen = [("item_id", "in", list(item_ids))]
    rows = pq.read_table(
        path, columns=list(PERTURBATION_COLUMNS), filters=chosen, page_checksum_verification=True
    )
    return [perturbation_of(row) for row in rows.to_pylist()]


def _span_row(span: Span) -> dict[str, object]:
    return {
        "start": span.start,
        "end": span.end,
        "original": span.original,
        "replacement": span.replacement,
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
