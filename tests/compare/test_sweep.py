"""Sweeps typed as users type them: the run that holds the jobs, and their comparison."""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.runs import Done, ncu_exp


def parent_of(done: Done) -> Any:
    [found] = [run for run in done.all_runs if run.data.tags.get("kind") == "sweep"]
    return found


def test_the_jobs_of_a_sweep_are_children_of_its_run(sweep: Done) -> None:
    parent = parent_of(sweep)
    assert parent.info.status == "FINISHED"
    assert parent.data.tags["sweep"] == sweep.runs[0].data.tags["sweep"]
    assert parent.data.params == {"condition": "zero, oracle", "precision": "fp32, bf16"}
    assert parent.data.metrics == {"sweep/jobs": 4, "sweep/jobs_failed": 0}
    assert parent.data.tags["axes"] == '["condition", "precision"]'
    assert {r.data.tags["mlflow.parentRunId"] for r in sweep.runs} == {parent.info.run_id}


def test_the_sweep_s_run_holds_the_comparison(sweep: Done) -> None:
    parent = parent_of(sweep)
    found = {a.path for a in sweep.client.list_artifacts(parent.info.run_id)}
    assert found == {"comparison.html", "finding.md", "figures", "tables"}
    described = parent.data.tags["mlflow.note.content"]
    assert "tiny · fp32" in described
    assert "tiny · bf16" in described
    assert "tiny · fp32" in sweep.out  # the finding stands in the terminal as well
    [page] = sweep.folder.glob("multirun/*/*/comparison/comparison.html")
    assert str(page) in sweep.out


def test_jobs_of_other_conditions_are_one_system(sweep: Done) -> None:
    """condition=zero,oracle makes two runs of each model; together they are one row."""
    [summary] = sweep.folder.glob("multirun/*/*/comparison/tables/summary.csv")
    with summary.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert {row["system"] for row in rows} == {"tiny · fp32", "tiny · bf16"}
    assert {"zero/accuracy", "oracle/ncu"} <= {row["measure"] for row in rows}


def raw_rows(done: Done, prompt: str) -> list[dict[str, Any]]:
    """The rows of one job's table, as they stand in the file."""
    [run] = [run for run in done.runs if run.data.params["prompt"] == prompt]
    folder = Path(done.client.download_artifacts(run.info.run_id, "tables"))
    return list(pq.read_table(folder / "items.parquet").to_pylist())


def surprisals(rows: list[dict[str, Any]], condition: str) -> dict[str, float]:
    return {
        row["item_id"]: -math.fsum(row["token_logprobs"]) / len(row["token_logprobs"])
        for row in rows
        if (row["condition"], row["continuation"], row["status"]) == (condition, "true", "ok")
    }


def cell(done: Done, system: str, measure: str) -> dict[str, float]:
    [summary] = done.folder.glob("multirun/*/*/comparison/tables/summary.csv")
    with summary.open(encoding="utf-8") as lines:
        [row] = [
            row
            for row in csv.DictReader(lines)
            if (row["system"], row["corpus"], row["measure"]) == (system, "pooled", measure)
        ]
    return {key: float(row[key]) for key in ("value", "lo", "hi", "n")}


def resampled(values: list[float]) -> tuple[float, float]:
    """The ends of a 95% bootstrap interval of the mean, the slow way."""
    draw = random.Random(7)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(4000))
    return means[100], means[-101]


@pytest.mark.model
def test_the_sweep_of_the_default_model(tmp_path: Path) -> None:
    """Two cells of its table, worked out from the raw tables without the product's code."""
    done = ncu_exp(
        tmp_path,
        *("-m", "prompt=directive,plain", "dataset.limit=8", "latency.items=1"),
    )
    assert done.code == 0, done.err
    assert len(done.runs) == 2
    parent = parent_of(done)
    assert {r.data.tags["mlflow.parentRunId"] for r in done.runs} == {parent.info.run_id}

    rows = raw_rows(done, "plain")
    zero, oracle = surprisals(rows, "zero"), surprisals(rows, "oracle")
    ncus = [min(1.0, max(0.0, (s - oracle[i]) / (s + 1e-5))) for i, s in zero.items()]
    found = cell(done, "SmolLM2-135M · plain", "oracle/ncu")
    assert found["n"] == len(ncus) == 8
    assert found["value"] == pytest.approx(sum(ncus) / len(ncus), abs=1e-12)
    lo, hi = resampled(ncus)
    assert found["lo"] == pytest.approx(lo, abs=0.1 * (hi - lo))
    assert found["hi"] == pytest.approx(hi, abs=0.1 * (hi - lo))

    rows = raw_rows(done, "directive")
    recited = [float(math.exp(-s) > 0.05) for s in surprisals(rows, "adversarial").values()]
    found = cell(done, "SmolLM2-135M · directive", "adversarial/prior_dominance")
    assert found["n"] == len(recited)
    assert found["value"] == pytest.approx(sum(recited) / len(recited), abs=1e-12)
    [table] = done.folder.glob("multirun/*/*/comparison/tables/table1.md")
    told = f"{100 * found['value']:.0f}% [{100 * found['lo']:.0f}, {100 * found['hi']:.0f}]"
    [line] = [x for x in table.read_text("utf-8").splitlines() if "· directive |" in x]
    assert told in line
