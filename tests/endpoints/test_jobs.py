"""Whole jobs over an endpoint, run as users run them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.scaling import made_up_items
from tests.endpoints.server import KEY, ApiServer, Reply, serving
from tests.endpoints.speaking import Speaker, speaking_model
from tests.faults.process import PATIENCE_S, kept
from tests.runs import Done, ncu_exp
from tests.tiny import save_tiny_model

ITEMS = 12


@pytest.fixture(scope="module")
def speaker() -> Speaker:
    return Speaker(speaking_model())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with items and a tokenizer."""
    folder = tmp_path_factory.mktemp("shared")
    save_tiny_model(folder / "tiny")
    lines = [json.dumps(item) + "\n" for item in made_up_items(ITEMS, words=12)]
    (folder / "items.jsonl").write_text("".join(lines), "utf-8")
    return folder


def arguments(server: ApiServer, shared: Path, *more: str) -> list[str]:
    return [
        *(f"model.base_url={server.url}", f"model.tokenizer={shared / 'tiny'}"),
        *("dataset=local", f"dataset.path={shared / 'items.jsonl'}"),
        *("latency.items=1", "metrics.resamples=200", *(more or ("cache.dir=cache",))),
    ]


def scoring(server: ApiServer) -> list[str]:
    """The answered requests that asked for a score: not the preflight's, not those that time."""
    return [asked for asked in server.answered if "capital of France" not in asked]


def written(folder: Path) -> dict[str, bytes]:
    """Every file that a run left, tracking database and stores included."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def chat_run(
    speaker: Speaker, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Done, ApiServer]:
    """A job over a chat API with a key, and its prices."""
    with serving(ApiServer(speaker, key=KEY)) as server:
        done = ncu_exp(
            tmp_path_factory.mktemp("chat"),
            *("model=gpt4o-mini", "model.top_logprobs=5"),
            *arguments(server, shared),
            OPENAI_API_KEY=KEY,
        )
    assert done.code == 0, done.err
    return done, server


def test_a_chat_job_ends_in_mlflow_like_any_other(chat_run: tuple[Done, ApiServer]) -> None:
    done, server = chat_run
    (run,) = done.runs
    assert run.info.status == "FINISHED"
    table = done.table(run)
    assert set(table["condition"]) == {"zero", "oracle", "adversarial", "noise"}
    ok = table[table["status"] == "ok"]
    assert set(ok["estimator"]) == {"interval"}
    assert (ok["mean_logprob_lower"] <= ok["mean_logprob_upper"]).all()
    metrics = run.data.metrics
    assert metrics["zero/accuracy_lower"] <= metrics["zero/accuracy_upper"]
    assert "zero/accuracy" not in metrics
    assert 0 < metrics["zero/censored_items"] <= 1
    assert metrics["api/requests"] == len(server.asked)
    assert metrics["api/usd"] > 0
    assert metrics["latency/zero_p50_s"] > 0
    names = {a.path for a in done.client.list_artifacts(run.info.run_id)}
    assert {"report.html", "config.yaml", "tables", "figures"} <= names


def test_the_key_is_in_no_file_that_a_run_leaves(chat_run: tuple[Done, ApiServer]) -> None:
    done, _ = chat_run
    files = written(done.folder)
    assert {"mlruns/mlflow.db", "cache/scores.sqlite"} <= files.keys()
    assert [name for name, data in files.items() if KEY.encode() in data] == []
    assert KEY not in done.out + done.err
    assert any(b"OPENAI_API_KEY" in data for data in files.values())  # its name is


def test_neither_is_the_key_of_a_job_that_fails(
    speaker: Speaker, shared: Path, tmp_path: Path
) -> None:
    wrong = "sk-wrong-0815-do-not-tell"
    with serving(ApiServer(speaker, key=KEY)) as server:
        done = ncu_exp(
            tmp_path, "model=gpt4o-mini", *arguments(server, shared), OPENAI_API_KEY=wrong
        )
    assert done.code == 1
    assert "refused the key" in done.err
    assert wrong not in done.out + done.err
    assert [n for n, data in written(tmp_path).items() if wrong.encode() in data] == []
    (run,) = done.runs
    assert run.info.status == "FAILED"
    assert run.data.tags["error"].startswith("CredentialError: gpt-4o-mini: ")


def test_a_sweep_goes_on_without_the_model_whose_key_is_missing(
    speaker: Speaker, shared: Path, tmp_path: Path
) -> None:
    environment = dict.fromkeys(("OPENAI_API_KEY",), "")
    with serving(ApiServer(speaker)) as server:
        done = ncu_exp(
            tmp_path,
            *("-m", "model=smollm2,served,gpt4o-mini", "dataset.limit=1"),
            *arguments(server, shared, "cache.scores=false", "compare.after_sweep=false"),
            *("score.check_requests=0", "latency.items=0"),
            **environment,
        )
    assert done.code == 1
    assert [r.info.status for r in done.runs] == ["FINISHED", "FINISHED", "FAILED"]
    (line,) = [line for line in done.err.splitlines() if line.startswith("  job 2")]
    assert "gpt-4o-mini needs a key: set the environment variable OPENAI_API_KEY" in line
    assert "1 of 3 jobs failed" in done.err
    exact = done.table(done.runs[1])
    exact = exact[exact["status"] == "ok"]
    assert set(exact["condition"]) == {"zero", "oracle", "adversarial", "noise"}
    assert set(exact["estimator"]) == {"exact"}
    # What the endpoints can do was asked, and said, before the first job began.
    ahead = done.err.partition("SmolLM2-135M")[0]
    assert "served: log-probs of prompts, by token ids" in ahead
    assert "gpt-4o-mini: its jobs will fail. CredentialError: gpt-4o-mini needs a key" in ahead


def test_preflight_only_asks_one_tiny_request_and_makes_no_run(
    speaker: Speaker, shared: Path, tmp_path: Path
) -> None:
    with serving(ApiServer(speaker)) as server:
        done = ncu_exp(
            tmp_path,
            *("-m", "model=served,gpt4o-mini", "preflight=only"),
            *arguments(server, shared),
            OPENAI_API_KEY="none-is-needed",
        )
        assert len(server.asked) == 2
    assert done.code == 0, done.err
    assert "served: log-probs of prompts, by token ids" in done.out
    assert "gpt-4o-mini: log-probs of generated tokens with 20 alternatives" in done.out
    assert not (tmp_path / "mlruns").exists()


def test_a_killed_job_asks_nothing_twice_that_was_answered(
    speaker: Speaker, shared: Path, tmp_path: Path
) -> None:
    def slowly(number: int, path: str, body: Any, answer: Any) -> Reply:
        return Reply(200, answer, stall_s=0.05)

    key = {"OPENAI_API_KEY": "none-is-needed"}
    with serving(ApiServer(speaker, fault=slowly)) as server:
        given = ["model=gpt4o-mini", *arguments(server, shared), "latency.items=0"]
        command = [sys.executable, "-m", "ncu_exp", *given, "api.concurrency=2"]
        process = subprocess.Popen(
            command, cwd=tmp_path, env={**os.environ, **key}, stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + PATIENCE_S
        while kept(tmp_path / "cache") < 15:
            assert process.poll() is None, "the job ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        before = kept(tmp_path / "cache")
        assert len(scoring(server)) <= before + 2  # what was under way at the kill
        done = ncu_exp(tmp_path, *given, **key)
        assert done.code == 0, done.err
        asked = scoring(server)
    assert len(asked) - len(set(asked)) <= 2
    killed, finished = sorted(done.runs, key=lambda run: run.info.start_time)
    assert (killed.info.status, finished.info.status) == ("RUNNING", "FINISHED")
    assert finished.data.metrics["store/hit_rate"] > 0
    table: pd.DataFrame = done.table(finished)
    assert (table["status"] == "ok").any()
