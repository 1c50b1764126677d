"""What the terminal says at the end of a job, beside the table of its metrics."""

from __future__ import annotations

from dataclasses import replace

from ncu_exp.metrics import Loss, losses
from ncu_exp.records import AuditCounts, Condition
from ncu_exp.tables import items_table
from ncu_exp.terminal import left_out
from tests.synthetic import SETTINGS, arm, item, perturbation, score

ZERO, ORACLE, FALSE = Condition.zero, Condition.oracle, Condition.adversarial


def test_losses_are_counted_by_condition_and_reason() -> None:
    arms = [
        *(arm(i, ZERO) for i in "abc"),
        arm("a", FALSE),
        *(replace(arm(i, FALSE), ok=False, context=None, reason=f"yes_no: {i}") for i in "bc"),
    ]
    scores = [score("a", ZERO, [-1.0]), score("b", ZERO, [-1.0])]
    scores.append(score("a", FALSE, [-1.0], false=[-2.0]))
    table = items_table([item(i) for i in "abc"], arms, scores=scores, settings=SETTINGS)
    assert losses(table) == [
        Loss("adversarial", "excluded", "yes_no: b", 2),
        Loss("zero", "error", "not scored", 1),
    ]


def test_what_was_left_out_is_said() -> None:
    lost = [
        Loss("adversarial", "excluded", "yes_no_answer: nothing to put in its place", 7),
        Loss("zero", "error", "not scored", 1),
        Loss("adversarial", "excluded", "no_context: none", 2),
    ]
    assert left_out(lost, AuditCounts(items=20, ok=11, telling=3)) == [
        "zero left out: 1 not scored",
        "adversarial left out: 7 yes_no_answer, 2 no_context",
        "adversarial: in 3 of 11 contexts something still tells the truth "
        "(residue in tables/perturbations.parquet)",
    ]
    assert left_out([], AuditCounts()) == []


def test_of_many_reasons_the_first_are_named() -> None:
    lost = [Loss("noise", "error", f"{n} tokens are too many", 2) for n in range(8)]
    (line,) = left_out(lost, AuditCounts())
    assert line.startswith("noise left out: 2 0 tokens are too many, ")
    assert line.endswith("2 4 tokens are too many, 6 for other reasons")


def test_audit_rows_are_counted() -> None:
    one = perturbation(item("a"))
    rows = [one, replace(one, residue=("the Big Apple",)), replace(one, ok=False, residue=("x",))]
    counts = AuditCounts()
    counts.add(rows[:2])
    counts.add(rows[2:])
    assert counts == AuditCounts(items=3, ok=2, telling=1)
