"""Which runs are one system, what it is called, and which systems are refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ncu_exp import provenance
from ncu_exp.compare.loading import AskedRun
from ncu_exp.compare.systems import find_systems, systems_frame
from ncu_exp.errors import UserError
from ncu_exp.tracking import PastRun
from tests.past import config_of

TABLE = pd.DataFrame({"estimator": pd.Series(["exact"], dtype="string")})


def asked(label: str, *overrides: str, precision: str = "fp32", place: Path = Path()) -> AskedRun:
    config: dict[str, Any] = provenance.plain(config_of(place, label, *overrides))
    params = {"precision.name": precision}
    run = PastRun(f"id of {label}", label, "FINISHED", 0, params, {}, {})
    return AskedRun(run, config, TABLE, place)


def labels(runs: Sequence[AskedRun], across: Sequence[str] = ()) -> list[str]:
    return [system.label for system in find_systems(runs, across=across)]


def test_a_model_alone_is_called_by_its_label() -> None:
    assert labels([asked("a"), asked("b")]) == ["a", "b"]


def test_what_varies_stands_behind_the_label() -> None:
    runs = [
        asked("a", f"prompt={prompt}", precision=precision)
        for prompt in ("directive", "plain")
        for precision in ("fp32", "nf4")
    ]
    assert labels(runs, across=["prompt"]) == [
        "a · fp32 · directive",
        "a · nf4 · directive",
        "a · fp32 · plain",
        "a · nf4 · plain",
    ]


def test_any_other_key_tells_systems_of_one_label_apart() -> None:
    runs = [asked("a", f"perturb.noise.position={p}") for p in ("start", "end")]
    told = ["a · perturb.noise.position=start", "a · perturb.noise.position=end"]
    assert labels(runs, across=["perturb.noise"]) == told


def test_runs_of_other_corpora_conditions_and_draws_are_one_system() -> None:
    runs = [
        asked("a"),
        asked("a", "dataset=squad", "dataset.limit=7"),
        asked("a", "condition=oracle", "latency.items=0", "perturb.seed=3"),
    ]
    [system] = find_systems(runs, across=[])
    assert [run.corpus for run in system.runs] == ["sample", "squad", "sample"]
    assert [run.draw for run in system.runs] == [0, 0, 3]


@pytest.mark.parametrize(
    ("override", "key", "values"),
    [
        ("prompt=plain", "prompt.name", "directive, plain"),
        ("perturb.policy=corpus", "perturb.policy", "faker, corpus"),
        ("metrics.tau=0.2", "metrics.tau", "0.05, 0.2"),
        ("score.max_new_tokens=9", "score.max_new_tokens", "5, 9"),
    ],
)
def test_systems_that_were_asked_differently_are_refused(
    override: str, key: str, values: str
) -> None:
    with pytest.raises(UserError) as refused:
        labels([asked("a"), asked("b", override)])
    assert f"they differ in {key} ({values})." in str(refused.value)
    group = key.partition(".")[0]
    assert f"compare.across=[{group}]" in str(refused.value)
    assert len(labels([asked("a"), asked("b", override)], across=[group])) == 2


def test_the_frame_tells_what_is_known_of_a_system() -> None:
    [row] = systems_frame(find_systems([asked("a", "model.params_b=1.5")], across=[])).to_dict(
        "records"
    )
    assert row == {
        "system": "a",
        "model": "a",
        "precision": "fp32",
        "prompt": "directive",
        "estimator": "exact",
        "params_b": 1.5,
    }


def test_a_served_model_has_its_server_s_precision() -> None:
    endpoint = ["model=served", "model.base_url=http://127.0.0.1:1/v1"]
    config: dict[str, Any] = provenance.plain(config_of(Path(), "s", *endpoint))
    run = AskedRun(PastRun("i", "s", "FINISHED", 0, {}, {}, {}), config, TABLE, Path())
    assert list(systems_frame(find_systems([run], across=[]))["precision"]) == ["served"]
