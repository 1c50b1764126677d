"""The command over a real store: what it finds, writes, logs and refuses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from mlflow import MlflowClient

from ncu_exp import tracking
from ncu_exp.compare.cli import Asked, parse, run
from ncu_exp.config import Config
from ncu_exp.errors import UserError
from ncu_exp.records import Condition
from tests.past import config_of, leave_run, leave_runs, rescored
from tests.synthetic import run as made_of

FILES = {
    "comparison.html",
    *(f"tables/table1.{suffix}" for suffix in ("md", "tex")),
    *(f"tables/differences.{suffix}" for suffix in ("md", "tex", "csv")),
    *(f"tables/sensitivity.{suffix}" for suffix in ("md", "tex", "csv")),
    *("tables/summary.csv", "tables/systems.csv", "tables/compared_items.parquet"),
    *(f"figures/{name}.{suffix}" for name in ("scaling", "heat_map") for suffix in ("png", "svg")),
}


@dataclass(frozen=True)
class Stored:
    """A store with three runs of a sweep, one of which failed."""

    place: Path
    config: Config
    run_ids: list[str]
    parent: tracking.Run

    @property
    def client(self) -> MlflowClient:
        return MlflowClient(tracking_uri=self.config.tracking.uri)

    def asked(self, *arguments: str) -> Asked:
        tracked = self.config.tracking
        place = [
            f"tracking.uri={tracked.uri}",
            f"tracking.artifact_location={tracked.artifact_location}",
        ]
        return parse([*arguments, *place, "metrics.resamples=200", "compare.items=5"])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    place = tmp_path_factory.mktemp("store")
    config = config_of(place, "a")
    parent = tracking.start_sweep(config.tracking, "s1", name="s", tags={"axes": '["prompt"]'})
    made = made_of(30)
    ids = [
        leave_run(config_of(place, "a", f"prompt={prompt}"), of, sweep="s1", job_num=number)
        for number, (prompt, of) in enumerate(
            {"directive": made, "plain": rescored(made, lambda logprob: 1.5 * logprob)}.items()
        )
    ]
    failed = tracking.start_run(
        config.tracking, name="a job that failed", tags={"sweep": "s1", "job_num": 2}, params={}
    )
    failed.fail("no such model")
    return Stored(place, config, [*ids, failed.run_id], parent)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_of(stored: Stored, run_id: str) -> set[str]:
    def below(path: str | None) -> set[str]:
        found: set[str] = set()
        for entry in stored.client.list_artifacts(run_id, path):
            found |= below(entry.path) if entry.is_dir else {entry.path}
        return found

    return below(None)


def test_a_sweep_is_compared_on_its_own_run(stored: Stored, folder: Path) -> None:
    said = run(stored.asked("sweep=s1"))
    assert any(line.startswith("a · directive ") for line in said)
    assert "Note: a job that failed is FAILED, and not compared." in said
    assert files_of(stored, stored.parent.run_id) >= FILES
    [page] = folder.glob("multirun/*/*/comparison/comparison.html")
    assert str(page) in said[-1]
    described = stored.client.get_run(stored.parent.run_id).data.tags["mlflow.note.content"]
    assert "### The paper's table, for these runs" in described
    assert "| a · plain |" in described


def test_children_hang_below_the_sweep_s_run(stored: Stored) -> None:
    for run_id in stored.run_ids:
        tags = stored.client.get_run(run_id).data.tags
        assert tags["mlflow.parentRunId"] == stored.parent.run_id


def test_other_runs_are_compared_on_a_run_of_their_own(stored: Stored, folder: Path) -> None:
    named = f"runs=[{stored.run_ids[0]},{stored.run_ids[1]}]"
    with pytest.raises(UserError, match=r"differ in prompt\.name \(directive, plain\)"):
        run(stored.asked(named))
    said = run(stored.asked(named, "compare.across=[prompt]"))
    run_id = said[-2].split()[5]
    found = stored.client.get_run(run_id)
    assert found.data.tags["kind"] == "comparison"
    assert found.info.status == "FINISHED"
    assert files_of(stored, run_id) >= FILES
    # What compares runs is no run to compare.
    again = run(stored.asked("experiment=ncu_exp", "compare.across=[prompt]"))
    assert "Note: a job that failed is FAILED, and not compared." in again


def test_tau_is_computed_anew_where_it_is_given(stored: Stored, folder: Path) -> None:
    run(stored.asked("sweep=s1", "metrics.tau=0.5"))
    [page] = folder.glob("multirun/*/*/comparison/tables/summary.csv")
    found = pd.read_csv(page)
    of_a = found[(found["system"] == "a · directive") & (found["measure"] == "oracle/accuracy")]
    scores = [s for s in made_of(30).scores if s.condition == "oracle"]
    expected = sum(s.continuations[0].mean_logprob > -0.6931471805599453 for s in scores) / 30
    assert of_a["value"].to_numpy() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["sweep=s2"], r"There is no sweep 's2' in experiment 'ncu_exp'\. The last ones: s1\."),
        (["experiment=other"], r"There is no experiment 'other'\. There are: .*ncu_exp"),
        (["runs=[nothing]"], "There is no run 'nothing' in this store"),
        (["sweep=s1", "compare.margins=1"], "margins"),
        (["sweep=it's"], "is no sweep"),
    ],
)
def test_what_cannot_be_found_is_named(stored: Stored, arguments: list[str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        run(stored.asked(*arguments))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Name one of"),
        (["sweep=a", "experiment=b"], "Name one of"),
        (["model=x"], "'model=x' means nothing here"),
    ],
)
def test_what_means_nothing_is_refused(arguments: list[str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        parse(arguments)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("noise", "a and b are equivalent in NCU amid noise"),
        ("zero", "a knows more answers without"),
    ],
)
def test_runs_without_the_gold_context_alone_are_compared_too(
    tmp_path: Path, folder: Path, condition: str, said: str
) -> None:
    conditions = list(dict.fromkeys([Condition.zero, Condition(condition)]))
    made = made_of(40, conditions=conditions)
    ids = [
        leave_run(config_of(tmp_path, label, f"condition={condition}"), of)
        for label, of in {"a": made, "b": rescored(made, lambda logprob: 3 * logprob)}.items()
    ]
    place = [
        f"tracking.uri=sqlite:///{tmp_path}/mlflow.db",
        f"tracking.artifact_location={tmp_path}/artifacts",
    ]
    told = run(parse([f"runs=[{','.join(ids)}]", *place, "metrics.resamples=200"]))
    assert said in told[0]


def test_a_failed_run_alone_is_no_comparison(stored: Stored) -> None:
    with pytest.raises(UserError, match="None of these runs is finished"):
        run(stored.asked(f"runs=[{stored.run_ids[2]}]"))


def test_two_corpora_have_a_table_each(tmp_path: Path, folder: Path) -> None:
    config, ids = leave_runs(tmp_path, ["a", "b"], items=20, corpora=("sample", "squad"))
    place = [
        f"tracking.uri={config.tracking.uri}",
        f"tracking.artifact_location={config.tracking.artifact_location}",
    ]
    run(parse([f"runs=[{','.join(ids)}]", *place, "metrics.resamples=200", "compare.items=4"]))
    [table] = folder.glob("multirun/*/*/comparison/tables/by_corpus.md")
    lines = table.read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("| squad |") for line in lines) == 2
