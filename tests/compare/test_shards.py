"""A dataset shared out over jobs: together they are the run that it would have been."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ncu_exp.compare.alignment import align
from ncu_exp.compare.cli import parse, run
from ncu_exp.compare.loading import AskedRun
from ncu_exp.compare.systems import find_systems
from ncu_exp.description import JobContext, run_name
from ncu_exp.experiment import run_job
from ncu_exp.scoring.holder import EngineHolder
from tests.compare.test_alignment import asked, first
from tests.composing import composed
from tests.synthetic import run as made_of

SHARDS = ("0/3", "1/3", "2/3")


def compared(store: Path, run_ids: list[str], monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """The summary of a comparison of some runs, made by the command in a folder of its own."""
    folder = store / "-".join(run_ids)[:20]
    folder.mkdir()
    monkeypatch.chdir(folder)
    place = [
        f"tracking.uri=sqlite:///{store}/mlflow.db",
        f"tracking.artifact_location={store}/artifacts",
    ]
    run(parse([f"runs=[{','.join(run_ids)}]", *place, "metrics.resamples=100"]))
    (found,) = folder.rglob("summary.csv")
    table = pd.read_csv(found)
    return table[~table["measure"].str.startswith("latency/")].reset_index(drop=True)


def test_shards_are_compared_as_the_run_that_they_are_parts_of(
    tmp_path: Path, tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = composed(
        *("model=hf", f"model.name={tiny_model_dir}", "model.label=tiny", "latency.items=0"),
        *("dataset.limit=14", "metrics.resamples=100", f"cache.dir={tmp_path}/cache"),
        "perturb.policy=corpus",  # answers are borrowed from the items of all shards
        store=tmp_path,
    )
    engines = EngineHolder()
    ids: dict[str | None, str] = {}
    tables: dict[str | None, pd.DataFrame] = {}
    for shard in (None, *SHARDS):
        of_shard = replace(config, dataset=replace(config.dataset, shard=shard))
        folder = tmp_path / "jobs" / (shard or "whole")
        ids[shard] = run_job(of_shard, JobContext(folder, choices={}), engines=engines).run_id
        tables[shard] = pd.read_parquet(folder / "results" / "tables" / "items.parquet")
        assert (f"shard {shard}" in run_name(of_shard)) is (shard is not None)

    parts = pd.concat([tables[shard] for shard in SHARDS])
    key = ["item_id", "condition", "continuation", "text"]
    pd.testing.assert_frame_equal(
        parts.sort_values(key, ignore_index=True), tables[None].sort_values(key, ignore_index=True)
    )
    whole = compared(tmp_path, [ids[None]], monkeypatch)
    merged = compared(tmp_path, [ids[shard] for shard in SHARDS], monkeypatch)
    assert whole["n_total"].max() == 14
    pd.testing.assert_frame_equal(merged, whole)


@pytest.mark.parametrize(
    ("shards", "told"),
    [
        (["0/3", "2/3"], ["the items of shard 1/3 are missing"]),
        (["0/3", "1/3", "2/3"], []),
        (["0/3", "0/2", "1/2"], []),  # the halves are all there
        ([None, "0/3"], []),
    ],
)
def test_a_shard_that_no_run_has_is_named(shards: list[str | None], told: list[str]) -> None:
    def part(shard: str | None) -> AskedRun:
        found = asked("a", first(made_of(6), 6))
        config: dict[str, Any] = dict(found.config)
        return replace(found, config={**config, "dataset": {**config["dataset"], "shard": shard}})

    _, notes = align(find_systems([part(s) for s in shards], across=[]), contexts_may_differ=False)
    assert [note.rpartition(": ")[2].rstrip(".") for note in notes] == told
