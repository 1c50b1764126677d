"""A job in this process, with a tiny model: its run's end, and what it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mlflow import MlflowClient

from ncu_exp import asking, experiment, report
from ncu_exp.asking import asked_conditions, latency_requests
from ncu_exp.config import Config, Numerics, Policy, PromptStyle
from ncu_exp.description import JobContext, run_name
from ncu_exp.errors import DataError, ModelError
from ncu_exp.experiment import run_job
from ncu_exp.records import Condition, Prompt, ScoreRequest
from ncu_exp.scoring.holder import EngineHolder
from tests.composing import composed


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def config(store: Path, tiny_model_dir: Path) -> Config:
    return composed(
        "model=hf",
        f"model.name={tiny_model_dir}",
        "model.label=tiny",
        "dataset.limit=4",
        "latency.items=0",
        "metrics.resamples=100",
        f"cache.dir={store}/cache",
        store=store,
    )


def last_run(config: Config) -> Any:
    client = MlflowClient(tracking_uri=config.tracking.uri)
    found = client.get_experiment_by_name(config.tracking.experiment)
    assert found is not None
    return client.search_runs([found.experiment_id], max_results=1)[0]


def run(config: Config, tmp_path: Path) -> experiment.JobResult:
    return run_job(config, JobContext(tmp_path, choices={"model": "hf"}), engines=EngineHolder())


def test_all_metrics_of_the_contract_are_logged(config: Config, tmp_path: Path) -> None:
    config.latency.items = 2
    run(config, tmp_path)
    found = last_run(config)
    assert found.info.status == "FINISHED"
    everywhere = {"accuracy", "em", "f1", "surprisal", "n", "n_total"}
    with_context = {"ncu", "ncu_raw_mean", "ncu_raw_median", "ncu_pooled", "negative_transfer_rate"}
    conflict = {"prior_dominance", "prior_dominance_contrastive", "adherence", "log_odds"}
    expected = {f"{c}/{m}" for c in ("zero", "oracle", "adversarial", "noise") for m in everywhere}
    expected |= {f"{c}/{m}" for c in ("oracle", "adversarial", "noise") for m in with_context}
    expected |= {f"adversarial/{m}" for m in conflict}
    expected |= {f"latency/{c}_p50_s" for c in ("zero", "oracle", "adversarial", "noise")}
    expected |= {"throughput/items_per_s", "throughput/tokens_per_s", "memory/peak_gb"}
    expected |= {"numerics/max_abs_diff_nats"}
    assert expected <= set(found.data.metrics)
    assert found.data.metrics["numerics/max_abs_diff_nats"] < 1e-4
    assert {"perturbation_sha256", "context_sha256.noise"} <= set(found.data.tags)


def test_a_job_that_was_done_is_repeated_without_weights(config: Config, tmp_path: Path) -> None:
    config.cache.dir = str(tmp_path / "cache")
    config.latency.items = 1
    hit_rates = []
    for name in ("a", "b"):
        engines = EngineHolder()
        run_job(config, JobContext(tmp_path / name, choices={}), engines=engines)
        hit_rates.append(last_run(config).data.metrics["store/hit_rate"])
        assert engines._engine is not None
        assert engines._engine.is_loaded is (name == "a")
    assert hit_rates == [0, 1]
    one, two = ((tmp_path / n / "results" / "tables" / "items.parquet") for n in ("a", "b"))
    assert one.read_bytes() == two.read_bytes()


def test_the_prior_of_an_earlier_run_comes_for_free(config: Config, tmp_path: Path) -> None:
    config.cache.dir = str(tmp_path / "cache")
    config.score.check_requests = 0
    config.condition.names = [Condition.zero]
    run(config, tmp_path / "zero")
    config.condition.names = [Condition.oracle]
    run(config, tmp_path / "oracle")
    assert last_run(config).data.metrics["store/hit_rate"] == 0.5


def test_without_the_store_everything_is_computed_and_equal(config: Config, tmp_path: Path) -> None:
    config.cache.scores = False
    for name in ("a", "b"):
        run(config, tmp_path / name)
        assert last_run(config).data.metrics["store/hit_rate"] == 0
    one, two = ((tmp_path / n / "results" / "tables" / "items.parquet") for n in ("a", "b"))
    assert one.read_bytes() == two.read_bytes()


def test_reference_numerics_gives_the_same_table_within_the_bound(
    config: Config, tmp_path: Path
) -> None:
    import pandas as pd

    run(config, tmp_path / "fast")
    config.score.numerics = Numerics.reference
    run(config, tmp_path / "reference")
    assert "numerics/max_abs_diff_nats" not in last_run(config).data.metrics
    fast, slow = (
        pd.read_parquet(tmp_path / n / "results" / "tables" / "items.parquet")
        for n in ("fast", "reference")
    )
    assert (fast.sum_logprob - slow.sum_logprob).abs().max() < 1e-4
    assert fast.greedy_text.equals(slow.greedy_text)


def test_the_size_of_the_blocks_changes_no_result(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.cache.scores = False
    tags, tables, audits = [], [], []
    for size in (256, 3, 1):
        monkeypatch.setattr(experiment, "BLOCK_ITEMS", size)
        folder = tmp_path / str(size)
        run(config, folder)
        tags.append({k: v for k, v in last_run(config).data.tags.items() if "sha256" in k})
        tables.append(pd.read_parquet(folder / "results/tables/items.parquet"))
        audits.append(pd.read_parquet(folder / "results/tables/perturbations.parquet"))
    assert len(tags[0]) == 7
    assert tags[0] == tags[1] == tags[2]
    for table, audit in zip(tables, audits, strict=True):
        pd.testing.assert_frame_equal(audit, audits[0])
        pd.testing.assert_frame_equal(
            table.drop(columns=["token_ids", "token_logprobs"]),
            tables[0].drop(columns=["token_ids", "token_logprobs"]),
            atol=1e-4,  # other neighbours, other rounding
        )


def test_where_the_report_has_no_room_every_item_has_a_page(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "SHOWN_ITEMS", 1)
    monkeypatch.setattr(report, "PAGED_ITEMS", 3)
    monkeypatch.setattr(experiment, "BLOCK_ITEMS", 1)
    run(config, tmp_path)
    results = tmp_path / "results"
    pages = sorted(path.name for path in (results / "items").iterdir())
    assert pages == ["00001-00001.html", "00002-00002.html", "00003-00003.html"]
    audit = pd.read_parquet(results / "tables" / "perturbations.parquet")
    for page, row in zip(pages, audit.to_dict("records"), strict=False):
        text = (results / "items" / page).read_text("utf-8")
        assert f">{row['item_id']}</span>" in text
        assert (f"Fabricated answer: {row['fabricated']} " in text) is row["ok"]
    told = (results / "report.html").read_text("utf-8")
    assert all(f'href="items/{page}"' in told for page in pages)
    assert "The first 3 items" in told


@pytest.mark.parametrize("policy", list(Policy))
def test_a_frozen_set_gives_the_run_that_it_came_from(
    policy: Policy, config: Config, tmp_path: Path
) -> None:
    config.dataset.limit = 20
    config.perturb.policy = policy
    run(config, tmp_path / "first")
    tags = last_run(config).data.tags
    tables = tmp_path / "first" / "results" / "tables"
    assert set(pd.read_parquet(tables / "perturbations.parquet")["policy"]) == {policy.value}
    config.perturb.path = str(tables / "perturbations.parquet")
    config.perturb.policy, config.perturb.seed = Policy.faker, 7
    run(config, tmp_path / "second")
    assert last_run(config).data.tags["perturbation_sha256"] == tags["perturbation_sha256"]
    assert last_run(config).data.params["perturb.path"] == config.perturb.path
    again = tmp_path / "second" / "results" / "tables"
    one, two = (pd.read_parquet(folder / "items.parquet") for folder in (tables, again))
    pd.testing.assert_frame_equal(
        *(
            table[table["condition"] != Condition.noise].reset_index(drop=True)
            for table in (one, two)
        )
    )  # the filler of the noise follows the seed, frozen set or not
    name = "perturbations.parquet"
    assert (again / name).read_bytes() == (tables / name).read_bytes()


def test_a_failing_job_leaves_a_failed_run(config: Config, tmp_path: Path) -> None:
    config.dataset.path = str(tmp_path / "absent.jsonl")
    with pytest.raises(DataError):
        run(config, tmp_path)
    found = last_run(config)
    assert found.info.status == "FAILED"
    assert "absent.jsonl" in found.data.tags["error"]


def test_an_interrupted_job_leaves_a_killed_run(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(asking.Asker, "ask", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path)
    assert last_run(config).info.status == "KILLED"


def test_a_bug_leaves_its_traceback(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(experiment, "build_requests", bug)
    with pytest.raises(ZeroDivisionError):
        run(config, tmp_path)
    found = last_run(config)
    client = MlflowClient(tracking_uri=config.tracking.uri)
    text = Path(
        client.download_artifacts(found.info.run_id, "error.txt", str(tmp_path))
    ).read_text()
    assert "ZeroDivisionError: a bug" in text
    assert "Traceback" in text


def test_a_fast_path_beyond_its_bound_fails_the_run_with_the_items(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ncu_exp.records import NumericsCheck
    from ncu_exp.scoring import local

    check = NumericsCheck(4, 0.5, 1e-4, ("single-001 (oracle): 5.00e-01",))
    monkeypatch.setattr(local, "check_numerics", lambda *a, **k: check)
    with pytest.raises(ModelError, match="single-001"):
        run(config, tmp_path)
    found = last_run(config)
    assert found.info.status == "FAILED"
    assert found.data.metrics["numerics/max_abs_diff_nats"] == 0.5


def test_the_zero_condition_is_always_asked() -> None:
    assert asked_conditions([Condition.oracle]) == [Condition.zero, Condition.oracle]
    assert asked_conditions([Condition.noise, Condition.zero]) == [Condition.zero, Condition.noise]


def test_run_names(config: Config) -> None:
    assert run_name(config) == "tiny · sample · all · auto"
    config.condition.names = [Condition.oracle]
    assert run_name(config) == "tiny · sample · oracle · auto"
    config.prompt.name = PromptStyle.plain
    assert run_name(config) == "tiny · sample · oracle · auto · plain"


def test_latency_is_probed_on_items_that_have_every_condition() -> None:
    def ask(item_id: str, condition: Condition) -> ScoreRequest:
        return ScoreRequest(item_id, condition, Prompt(text="x"), (), 5)

    requests = [
        ask("half", Condition.zero),
        ask("whole", Condition.zero),
        ask("whole", Condition.oracle),
        ask("too", Condition.zero),
        ask("too", Condition.oracle),
    ]
    assert [r.item_id for r in latency_requests(requests, 1)] == ["whole", "whole"]
    assert len(latency_requests(requests, 9)) == 4
    assert latency_requests(requests, 0) == []
    assert latency_requests([], 3) == []
    # block by block, as a job asks
    kept: list[ScoreRequest] = []
    for block in (requests[:1], requests[1:3], requests[3:]):
        kept = latency_requests([*kept, *block], 1)
    assert kept == latency_requests(requests, 1)
