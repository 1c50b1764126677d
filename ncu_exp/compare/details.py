"""The items that the page shows whole: what was asked, and what every system made of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ncu_exp.compare.alignment import Block
from ncu_exp.explorer import ItemDetail, item_row
from ncu_exp.records import Perturbation
from ncu_exp.report import chosen_examples, pieces_of

if TYPE_CHECKING:
    from ncu_exp.compare.comparison import Comparison
    from ncu_exp.compare.systems import System

MOST_VIEWS = 6_000  # items times systems: some 10 kB each

_RowKey = tuple[str, str, str, str]  # system, condition, continuation, text


def details_of(comparison: Comparison) -> list[ItemDetail]:
    """Some items of each corpus, chosen by a hash of their id, under the first draw of contexts."""
    first = {block.corpus: block for block in reversed(comparison.blocks)}
    shown = min(comparison.settings.items, MOST_VIEWS // len(comparison.compared))
    each = shown // max(1, len(first))
    return [
        detail
        for block in reversed(first.values())
        for detail in _of_block(block, comparison.compared, each)
    ]


@dataclass
class _Read:
    """What the runs' tables hold of the chosen items."""

    rows: dict[str, dict[_RowKey, Mapping[Any, Any]]] = field(default_factory=dict)
    audit: dict[str, Perturbation] = field(default_factory=dict)


def _of_block(block: Block, systems: Sequence[System], count: int) -> list[ItemDetail]:
    of_any = next(iter(block.tables.values()))
    chosen = chosen_examples(map(str, of_any["item_id"].unique()), count)
    read = _read(block, systems, chosen)
    return [
        _detail(block.corpus, item_id, read.rows[item_id], read.audit.get(item_id))
        for item_id in sorted(read.rows)
    ]


def _read(block: Block, systems: Sequence[System], chosen: Collection[str]) -> _Read:
    """Of rows that two runs of a system hold, the newest run's."""
    found = _Read()
    runs = (
        (s, r) for s in systems for r in s.runs if (r.corpus, r.draw) == (block.corpus, block.draw)
    )
    for system, run in runs:
        rows, audit = run.read_whole(chosen)
        for row in rows.to_dict("records"):
            key = (system.label, row["condition"], row["continuation"], row["text"])
            found.rows.setdefault(row["item_id"], {})[key] = row
        found.audit |= {p.item_id: p for p in audit}
    return found


def _detail(
    corpus: str,
    item_id: str,
    rows: Mapping[_RowKey, Mapping[Any, Any]],
    audit: Perturbation | None,
) -> ItemDetail:
    first = next(iter(rows.values()))
    original, perturbed = pieces_of(audit) if audit is not None else ([], [])
    return ItemDetail(
        corpus=corpus,
        item_id=item_id,
        question=str(first["question"]),
        answer=str(first["answer"]),
        original=tuple(original),
        perturbed=tuple(perturbed) if audit is not None and audit.ok else None,
        fabricated=audit.fabricated if audit is not None else None,
        rows=tuple(item_row(system, row) for (system, *_), row in rows.items()),
    )
