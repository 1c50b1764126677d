"""Two sweeps at once over one server: PostgreSQL behind it, artifacts through it."""

from __future__ import annotations

import pytest
from mlflow.entities import Run

from tests.tracking_server.services import Server, all_ended, command

EXPERIMENT = "of a group"


@pytest.fixture(scope="module")
def runs(running: Server, job: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Those of a sweep of four jobs and of one of two, from two commands at once."""
    running.start()
    place = ["tracking=server", f"tracking.uri={running.uri}", f"tracking.experiment={EXPERIMENT}"]
    sweeps = [["precision=fp32,bf16", "condition=zero,oracle"], ["prompt=directive,plain"]]
    at_once = [
        command(tmp_path_factory.mktemp("user"), "-m", *job, *place, *swept) for swept in sweeps
    ]
    for code, told in all_ended(at_once):
        assert code == 0, told
        assert f"To see it:\n  {running.uri}" in told
    return running.runs(EXPERIMENT)


def test_each_sweep_is_a_parent_of_its_jobs(runs: list[Run]) -> None:
    assert {run.info.status for run in runs} == {"FINISHED"}
    parents = [run for run in runs if run.data.tags.get("kind") == "sweep"]
    children = {
        parent.info.run_name: [
            run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id
        ]
        for parent in parents
    }
    counted = {name: len(found) for name, found in children.items()}
    assert counted == {"sweep of precision × condition": 4, "sweep of prompt": 2}
    assert len(runs) == 8


def test_comparison_and_tables_went_through_the_server(runs: list[Run], running: Server) -> None:
    assert all(run.info.artifact_uri.startswith("mlflow-artifacts:/") for run in runs)
    for run in runs:
        is_sweep = run.data.tags.get("kind") == "sweep"
        wanted = "comparison.html" if is_sweep else "tables/items.parquet"
        assert wanted in running.artifacts(run), run.info.run_name
