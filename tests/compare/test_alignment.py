"""Only what all systems were asked is paired, and what is left out is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ncu_exp import provenance
from ncu_exp.compare.alignment import Block, align
from ncu_exp.compare.loading import AskedRun
from ncu_exp.compare.systems import System, find_systems
from ncu_exp.errors import UserError
from ncu_exp.records import Arm, Condition
from ncu_exp.tables import items_table
from ncu_exp.tracking import PastRun
from tests.past import config_of
from tests.synthetic import SETTINGS, Run, run


def asked(label: str, made: Run, *overrides: str) -> AskedRun:
    config: dict[str, Any] = provenance.plain(config_of(Path(), label, *overrides))
    table = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    record = PastRun(f"id of {label}", label, "FINISHED", 0, {}, {}, {})
    return AskedRun(record, config, table, Path())


def systems(*runs: AskedRun) -> list[System]:
    return find_systems(runs, across=[])


def aligned(*runs: AskedRun) -> tuple[list[Block], list[str]]:
    return align(systems(*runs), contexts_may_differ=False)


def first(made: Run, n: int) -> Run:
    kept = {item.item_id for item in made.items[:n]}
    return Run(
        made.items[:n],
        [arm for arm in made.arms if arm.item_id in kept],
        [score for score in made.scores if score.item_id in kept],
        [p for p in made.perturbations if p.item_id in kept],
        [],
    )


def with_context(made: Run, change: dict[str, str], condition: Condition) -> Run:
    def changed(arm: Arm) -> Arm:
        if arm.condition is condition and arm.item_id in change:
            return replace(arm, context=change[arm.item_id])
        return arm

    return replace(made, arms=list(map(changed, made.arms)))


def statuses(block: Block, system: str, condition: str) -> pd.Series:
    table = block.tables[system]
    return table[table["condition"] == condition].set_index("item_id")["status"]


def test_the_same_items_and_contexts_need_no_note() -> None:
    made = run(12)
    [block], notes = aligned(asked("a", made), asked("b", made))
    assert (block.corpus, list(block.tables), notes) == ("sample", ["a", "b"], [])


def test_only_shared_items_are_kept_and_counted() -> None:
    made = run(12)
    [block], notes = aligned(asked("a", made), asked("b", first(made, 8)))
    assert notes == ["sample: 8 of 12 items were asked of every system."]
    assert {t["item_id"].nunique() for t in block.tables.values()} == {8}


def test_no_shared_item_is_refused() -> None:
    made = run(12)
    other = replace(made, items=made.items[6:], arms=made.arms[24:], scores=[])
    with pytest.raises(UserError, match="sample: no item was asked of all of a, b"):
        aligned(asked("a", first(made, 6)), asked("b", other))


def test_ids_that_stand_for_other_questions_are_refused() -> None:
    made = run(4)
    others = [replace(item, question="Another one?") for item in made.items]
    with pytest.raises(UserError, match="4 items of b have the ids of others' items"):
        aligned(asked("a", made), asked("b", replace(made, items=others)))


def test_items_with_other_contexts_are_left_out_of_that_condition() -> None:
    made = run(12)
    other = with_context(made, {"i0003": "another text"}, Condition.noise)
    [block], notes = aligned(asked("a", made), asked("b", other))
    assert notes == [
        "sample, noise: 1 of 12 items were shown other contexts in some runs, and are left out "
        "there."
    ]
    for system in ("a", "b"):
        noise = statuses(block, system, "noise")
        assert noise["i0003"] == "excluded"
        assert (noise.drop("i0003") == "ok").all()
        assert (statuses(block, system, "oracle") == "ok").all()


def test_contexts_may_differ_where_they_are_what_is_compared() -> None:
    made = run(12)
    other = with_context(made, {"i0003": "another text"}, Condition.noise)
    [block], notes = align(systems(asked("a", made), asked("b", other)), contexts_may_differ=True)
    assert notes == []
    assert (statuses(block, "a", "noise") == "ok").all()


def test_runs_of_other_conditions_are_put_together() -> None:
    zero_oracle = run(12, conditions=(Condition.zero, Condition.oracle))
    zero_noise = run(12, conditions=(Condition.zero, Condition.noise))
    [block], _ = aligned(
        asked("a", zero_oracle, "condition=oracle"), asked("a", zero_noise, "condition=noise")
    )
    rows = block.tables["a"]
    assert set(rows["condition"]) == {"zero", "oracle", "noise"}
    assert not rows.duplicated(["item_id", "condition", "continuation"]).any()


def test_draws_are_apart_and_only_shared_ones_are_kept() -> None:
    made = run(12)
    runs = [asked(s, made, f"perturb.seed={seed}") for s in "ab" for seed in (0, 1)]
    blocks, notes = aligned(*runs)
    assert ([block.draw for block in blocks], notes) == ([0, 1], [])
    blocks, notes = aligned(*runs[:3])
    assert [block.draw for block in blocks] == [0]
    assert notes == ["sample: only the draws that all systems share, perturb.seed 0."]
    with pytest.raises(UserError, match="No draw is shared by all"):
        aligned(runs[1], runs[2])
