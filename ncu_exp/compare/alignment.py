"""The items that all systems were asked, under the same contexts: what may be paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_exp.compare.loading import AskedRun
from ncu_exp.compare.systems import System
from ncu_exp.config import parse_shard
from ncu_exp.errors import UserError
from ncu_exp.records import Condition, Status

if TYPE_CHECKING:
    import pandas as pd

_ROW = ["item_id", "condition", "continuation", "text"]
_NAMED = 5  # items that a message names
CONTEXTS_DIFFER = "contexts differ between the runs"


@dataclass(frozen=True)
class Block:
    """One corpus under one draw of its contexts: a table for each system, of the same items."""

    corpus: str
    draw: int
    tables: Mapping[str, pd.DataFrame]  # by system


def align(systems: Sequence[System], *, contexts_may_differ: bool) -> tuple[list[Block], list[str]]:
    """The blocks of what can be paired, and what was left out of them, in sentences.

    Raises UserError where systems share no item, or where one id stands for different questions.
    """
    merged: dict[str, dict[int, dict[str, pd.DataFrame]]] = {}
    notes: list[str] = []
    for system in systems:
        for (corpus, draw), runs in _by_block(system).items():
            merged.setdefault(corpus, {}).setdefault(draw, {})[system.label] = _merge(runs)
            notes += _missing_shards(f"{corpus}, {system.label}", runs)
    blocks: list[Block] = []
    for corpus, draws in merged.items():
        asked = {label for tables in draws.values() for label in tables}
        shared = {draw: tables for draw, tables in draws.items() if set(tables) == asked}
        if not shared:
            raise UserError(
                f"{corpus}: the contexts were drawn with other seeds (perturb.seed) for some "
                f"systems than for others: {sorted(draws)}. No draw is shared by all."
            )
        if len(shared) < len(draws):
            kept = ", ".join(map(str, sorted(shared)))
            notes.append(f"{corpus}: only the draws that all systems share, perturb.seed {kept}.")
        for draw, tables in sorted(shared.items()):
            block, told = _shared_items(corpus, tables)
            if not contexts_may_differ:
                told += _exclude_other_contexts(corpus, block)
            blocks.append(Block(corpus, draw, block))
            notes += told
    return blocks, notes


def _by_block(system: System) -> dict[tuple[str, int], list[AskedRun]]:
    found: dict[tuple[str, int], list[AskedRun]] = {}
    for run in system.runs:
        found.setdefault((run.corpus, run.draw), []).append(run)
    return found


def _missing_shards(what: str, runs: Sequence[AskedRun]) -> list[str]:
    """Which parts of a sharded dataset no run has; an interrupted or failed job leaves one."""
    shards = [run.config["dataset"].get("shard") for run in runs]
    if None in shards:
        return []  # one of the runs has them all
    parts: dict[int, set[int]] = {}
    for part, count in map(parse_shard, shards):
        parts.setdefault(count, set()).add(part)
    if any(len(there) == count for count, there in parts.items()):
        return []
    return [
        f"{what}: the items of shard {part}/{count} are missing."
        for count, there in parts.items()
        for part in range(count)
        if part not in there
    ]


def _merge(runs: Sequence[AskedRun]) -> pd.DataFrame:
    """The rows of several runs as one table; of rows that stand in two, the newest run's."""
    import pandas as pd

    if len(runs) == 1:
        return runs[0].table
    rows = pd.concat([run.table for run in runs], ignore_index=True)
    return rows.drop_duplicates(_ROW, keep="last", ignore_index=True)


def _shared_items(
    corpus: str, tables: Mapping[str, pd.DataFrame]
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The tables with the items that stand in all of them."""
    asked = {label: _questions(table) for label, table in tables.items()}
    first, *others = asked.values()
    shared, everything = first.index, first.index
    for other in others:
        shared, everything = shared.intersection(other.index), everything.union(other.index)
    if not len(shared):
        raise UserError(f"{corpus}: no item was asked of all of {', '.join(tables)}.")
    for label, other in asked.items():
        different = shared[(first.loc[shared] != other.loc[shared]).to_numpy()]
        if len(different):
            raise UserError(
                f"{corpus}: {len(different):,} items of {label} have the ids of others' items and "
                f"other questions or answers: {', '.join(different[:_NAMED])}. They are not the "
                "same data."
            )
    told = (
        [f"{corpus}: {len(shared):,} of {len(everything):,} items were asked of every system."]
        if len(shared) < len(everything)
        else []
    )
    return {label: t[t["item_id"].isin(shared)] for label, t in tables.items()}, told


def _questions(table: pd.DataFrame) -> pd.Series:
    """Of each item, question and answer as one text."""
    of_items = table.drop_duplicates("item_id").set_index("item_id")
    questions: pd.Series = of_items["question"].astype(str) + "\n" + of_items["answer"].astype(str)
    return questions


def _exclude_other_contexts(corpus: str, tables: dict[str, pd.DataFrame]) -> list[str]:
    """Mark as excluded the rows of items whose contexts are not the same in all tables."""
    told: list[str] = []
    for condition in Condition:
        shown = [
            of_condition.drop_duplicates("item_id").set_index("item_id")["context_sha256"]
            for table in tables.values()
            if len(of_condition := table[table["condition"] == condition.value])
        ]
        different: set[str] = set()
        for other in shown[1:]:
            first, second = shown[0].astype("string").align(other.astype("string"), join="inner")
            unequal = first.notna() & second.notna() & (first != second)
            different |= set(first.index[unequal.fillna(False).to_numpy(dtype=bool)])
        if not different:
            continue
        for label, table in tables.items():
            tables[label] = _excluded(table, condition, different)
        told.append(
            f"{corpus}, {condition}: {len(different):,} of {len(shown[0]):,} items were shown "
            "other contexts in some runs, and are left out there."
        )
    return told


def _excluded(table: pd.DataFrame, condition: Condition, items: set[str]) -> pd.DataFrame:
    rows = (table["condition"] == condition.value) & table["item_id"].isin(items)
    return table.assign(
        status=table["status"].astype("string").mask(rows, Status.excluded.value),
        reason=table["reason"].astype("string").mask(rows, CONTEXTS_DIFFER),
    )
