"""The commands that users type, as processes of their own, with a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runs import TINY, Done, ncu_exp


def test_a_sweep_makes_a_run_per_job(sweep: Done) -> None:
    assert sweep.code == 0, sweep.err
    assert [r.info.status for r in sweep.runs] == ["FINISHED"] * 4
    asked = [(r.data.params["condition"], r.data.params["precision.name"]) for r in sweep.runs]
    assert asked == [("zero", "fp32"), ("zero", "bf16"), ("oracle", "fp32"), ("oracle", "bf16")]
    assert len({r.data.tags["sweep"] for r in sweep.runs}) == 1


def test_ncu_appears_in_the_oracle_runs_alone(sweep: Done) -> None:
    for run in sweep.runs:
        has_ncu = "oracle/ncu" in run.data.metrics
        assert has_ncu == (run.data.params["condition"] == "oracle")
        assert {"zero/accuracy", "zero/accuracy_lo", "zero/surprisal"} <= set(run.data.metrics)


def test_each_run_holds_the_log_probs_of_its_items(sweep: Done) -> None:
    for run in sweep.runs:
        table = sweep.table(run)
        conditions = {"zero"} | {run.data.params["condition"]}
        assert set(table.condition) == conditions
        assert len(table) == 12 * len(conditions)
        assert (table.status == "ok").all()
        assert (table.token_logprobs.map(len) == table.n_tokens).all()
        sums = table.token_logprobs.map(sum)
        assert (sums - table.sum_logprob).abs().max() < 1e-9


def test_the_same_items_are_asked_in_every_run(sweep: Done) -> None:
    asked = [set(sweep.table(r).item_id) for r in sweep.runs]
    assert all(a == asked[0] for a in asked)
    for tag in ("dataset_sha256", "version.torch", "config_sha256"):
        assert all(r.data.tags[tag] for r in sweep.runs)
    assert len({r.data.tags["dataset_sha256"] for r in sweep.runs}) == 1


def test_the_artifacts_are_those_of_the_contract(sweep: Done) -> None:
    client, run = sweep.client, sweep.runs[-1]
    found = {a.path for a in client.list_artifacts(run.info.run_id)}
    found |= {a.path for a in client.list_artifacts(run.info.run_id, "tables")}
    found |= {a.path for a in client.list_artifacts(run.info.run_id, "figures")}
    assert {
        "config.yaml",
        "report.html",
        "tables/items.parquet",
        "tables/items_preview.json",
        "tables/perturbations.parquet",
    } <= found
    assert sum(path.endswith(".png") for path in found) == 4
    assert {"item_id", "ok", "residue"} <= set(sweep.table(run, "perturbations").columns)


def test_the_terminal_shows_the_table_and_how_to_open_the_ui(sweep: Done) -> None:
    assert "accuracy" in sweep.out
    assert "12 of 12" in sweep.out
    assert "mlflow ui --host 127.0.0.1" in sweep.out


def test_every_output_gathers_under_multirun_and_mlruns(sweep: Done) -> None:
    assert {p.name for p in sweep.folder.iterdir()} == {"cache", "multirun", "mlruns"}
    assert len(list(sweep.folder.glob("multirun/*/*/*/results/report.html"))) == 4


def test_a_job_that_fails_leaves_its_error_and_the_others_run(
    tmp_path: Path, tiny_model_dir: Path
) -> None:
    done = ncu_exp(
        tmp_path,
        "-m",
        *TINY,
        f"model.name={tiny_model_dir}",
        "precision=fp16,fp32",
        "condition=zero",
        "dataset.limit=3",
    )
    assert done.code == 1
    assert [r.info.status for r in done.runs] == ["FAILED", "FINISHED"]
    assert done.runs[0].data.tags["error"].startswith("PrecisionError: precision=fp16")
    assert "1 of 2 jobs failed" in done.err
    [parent] = [run for run in done.all_runs if run.data.tags.get("kind") == "sweep"]
    assert parent.info.status == "FAILED"
    assert parent.data.tags["error"] == "1 of 2 jobs failed"
    assert "is FAILED, and not compared" in done.out
    assert "job 0" in done.err
    assert "PrecisionError: precision=fp16" in done.err
    assert "Traceback" not in done.err + done.out


@pytest.fixture(scope="module")
def bad_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all of them: a new store takes seconds to make."""
    return tmp_path_factory.mktemp("bad")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["model=nothing"], "Available options in 'model'"),
        (["dataset.limt=1"], "Key 'limt' not in 'DatasetConfig'"),
        (["dataset=local"], "set dataset.path=FILE"),
        (["dataset=squad", "dataset.path=absent.jsonl"], "absent.jsonl"),
        (["model=gpt4o-mini"], "environment variable OPENAI_API_KEY"),
        (["model=hf"], "model.name must be given"),
        (["model=qwen1.5b-base", "prompt=grounded"], "prompt=plain"),
        (["tracking.uri=http://u:hunter2@127.0.0.1:99999"], "tracking.uri=http://127.0.0.1:99999"),
    ],
    ids=lambda v: v if isinstance(v, str) else " ".join(v),
)
def test_bad_input_is_one_clear_line(bad_folder: Path, arguments: list[str], told: str) -> None:
    done = ncu_exp(bad_folder, *arguments, OPENAI_API_KEY="", MLFLOW_HTTP_REQUEST_MAX_RETRIES="0")
    assert done.code == 1
    assert told in done.err
    assert "Traceback" not in done.err + done.out
    left = "".join(p.read_text() for p in bad_folder.rglob("*.log"))
    assert "hunter2" not in done.err + done.out + left


def test_no_network_is_said_in_one_line(bad_folder: Path, tmp_path: Path) -> None:
    # A name that resolves nowhere stands in for a machine without a network.
    endpoint = {"HF_ENDPOINT": "http://hub.invalid", "HF_HOME": str(tmp_path / "hf")}
    model = ncu_exp(bad_folder, "model=qwen1.5b", "dataset.limit=1", **endpoint)
    assert model.code == 1
    assert "model=hf model.name=/" in model.err
    data = ncu_exp(bad_folder, "dataset=hotpotqa", "dataset.limit=1", **endpoint)
    assert data.code == 1
    assert "dataset.path=" in data.err
    assert "Traceback" not in model.err + data.err


def test_a_file_of_ones_own(tmp_path: Path, tiny_model_dir: Path) -> None:
    rows = [
        {
            "q": f"Who wrote book {i}?",
            "a": "Ada Lovelace",
            "docs": [f"Book {i} is by Ada Lovelace."],
        }
        for i in range(4)
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps(r) for r in rows))
    done = ncu_exp(
        tmp_path,
        *TINY,
        f"model.name={tiny_model_dir}",
        "dataset=local",
        "dataset.path=mine.jsonl",
        "dataset.columns={question: q, answer: a, context: docs}",
    )
    assert done.code == 0, done.err
    (run,) = done.runs
    assert run.data.metrics["oracle/n"] == 4
    table = done.table(run)
    fabricated = table[table.continuation == "fabricated"]
    assert set(fabricated.condition) == {"adversarial"}
    assert "Ada Lovelace" not in set(fabricated.text)
    assert len(done.table(run, "perturbations")) == 4
