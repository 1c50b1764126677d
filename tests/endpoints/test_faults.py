"""Faults of servers, each with what a user is promised of it, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ncu_exp.config import (
    ApiConfig,
    EngineName,
    EstimatorName,
    ModelConfig,
    Numerics,
    PrecisionName,
    PricesConfig,
    PromptStyle,
)
from ncu_exp.errors import BudgetError, CredentialError, EndpointError, ModelError, UserError
from ncu_exp.records import Condition, Continuation, Message, Prompt, Score, ScoreRequest
from ncu_exp.scoring.engine import Engine, plan_engine
from ncu_exp.scoring.holder import EngineHolder
from tests.endpoints.server import KEY, ApiServer, Fault, Reply, error, serving
from tests.endpoints.speaking import Speaker, speaking_model
from tests.tiny import save_tiny_model

COMPLETIONS, CHAT = EngineName.openai_completions, EngineName.openai_chat


@pytest.fixture(scope="module")
def speaker() -> Speaker:
    return Speaker(speaking_model())


@pytest.fixture(scope="module")
def tokenizer_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny_model(tmp_path_factory.mktemp("tokenizer") / "tiny"))


@pytest.fixture
def engines() -> EngineHolder:
    return EngineHolder()


def questions(n: int) -> list[ScoreRequest]:
    return [
        ScoreRequest(
            str(i),
            Condition.zero,
            Prompt(messages=(Message("user", f"question {i}"),)),
            ((Continuation.true, "an answer"),),
            3,
        )
        for i in range(n)
    ]


class Client:
    """An engine for a server, opened anew each time, over one store."""

    def __init__(self, server: ApiServer, store: Path, tokenizer: str) -> None:
        self.server, self.store, self.tokenizer = server, store, tokenizer
        self.engine = CHAT
        self.api: dict[str, Any] = {}
        self.model: dict[str, Any] = {}

    def open(self) -> Engine:
        api = {"concurrency": 2, "timeout_s": 2.0, "max_retries": 3, "max_failure_rate": 1.0}
        model = ModelConfig(
            name="tiny", label="tiny", engine=self.engine, base_url=self.server.url,
            tokenizer=self.tokenizer, **self.model,
        )  # fmt: skip
        plan = plan_engine(
            model,
            PrecisionName.auto,
            prompt=PromptStyle.directive,
            api=ApiConfig(**(api | self.api)),
        )
        return EngineHolder().open(plan, cache_dir=self.store.parent, store=self.store)

    def ask(self, n: int = 4) -> list[Score]:
        engine = self.open()
        try:
            engine.preflight()
            found = dict(engine.score(questions(n), numerics=Numerics.fast, batch_tokens=1))
            engine.verify(())
            return [found[i] for i in range(n)]
        finally:
            engine.close()


@pytest.fixture
def client(speaker: Speaker, tmp_path: Path, tokenizer_dir: str) -> Any:
    with serving(ApiServer(speaker)) as server:
        yield Client(server, tmp_path / "scores.sqlite", tokenizer_dir)


def on(*numbers: int, reply: Reply) -> Fault:
    """A fault of the requests with these numbers (0 is the preflight's)."""

    def fault(number: int, path: str, body: Any, answer: Any) -> Reply | None:
        return reply if number in numbers else None

    return fault


def spoil(change: Any) -> Fault:
    """A fault of every answer but the preflight's: `change` alters it."""

    def fault(number: int, path: str, body: Any, answer: dict[str, Any]) -> Reply | None:
        if number == 0:
            return None
        changed = json.loads(json.dumps(answer))
        change(changed["choices"][0])
        return Reply(200, changed)

    return fault


# --- what is mended by trying again ---------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        error(429, "slow down", retry_after="0.1"),
        error(500, "oops"),
        error(503, "overloaded"),
        Reply(cut=True),
        Reply(stall_s=2.5, body={}),
    ],
    ids=["429", "500", "503", "cut connection", "stall"],
)
def test_a_fault_that_passes_is_not_seen(client: Client, reply: Reply) -> None:
    client.server.fault = on(1, 3, reply=reply)
    assert all(score.ok for score in client.ask())


def test_a_storm_of_429_is_waited_out_as_the_server_asks(client: Client) -> None:
    import time

    start = time.monotonic()
    client.server.fault = on(*range(1, 5), reply=error(429, "slow down", retry_after="1"))
    assert all(score.ok for score in client.ask())
    assert time.monotonic() - start > 1.0


def test_no_more_requests_are_under_way_than_allowed(client: Client) -> None:
    client.api = {"concurrency": 3}
    client.ask(12)
    assert 1 < client.server.most_at_once <= 3


# --- what is not: a row with its reason -----------------------------------------------------------


def _drop(choice: dict[str, Any]) -> None:
    choice["logprobs"] = None


def _zero(choice: dict[str, Any]) -> None:
    for place in choice["logprobs"]["content"]:
        for told in (place, *place["top_logprobs"]):
            told["logprob"] = 0.0


def _nan(choice: dict[str, Any]) -> None:
    choice["logprobs"]["content"][0]["logprob"] = float("nan")


def _refuse(choice: dict[str, Any]) -> None:
    choice["message"] |= {"refusal": "I cannot help with that.", "content": None}


def _filter(choice: dict[str, Any]) -> None:
    choice["finish_reason"] = "content_filter"


def _empty(choice: dict[str, Any]) -> None:
    choice["message"]["content"] = ""
    choice["logprobs"]["content"] = []


def _shapeless(choice: dict[str, Any]) -> None:
    choice.pop("message")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_drop, "no_logprobs"),
        (_zero, "bad_logprobs"),
        (_nan, "bad_logprobs"),
        (_refuse, "refused: I cannot help with that."),
        (_filter, "content_filter"),
        (_empty, "empty_answer"),
        (_shapeless, "malformed_answer"),
    ],
    ids=lambda x: x.__name__ if callable(x) else "",
)
def test_a_chat_answer_that_is_none_is_a_row_with_its_reason(
    client: Client, change: Any, reason: str
) -> None:
    client.server.fault = spoil(change)
    found = client.ask()
    assert [score.reason.startswith(reason) for score in found] == [True] * 4


def _tell_fewer(choice: dict[str, Any]) -> None:
    for values in choice["logprobs"].values():
        del values[-2:]


def _tell_others(choice: dict[str, Any]) -> None:
    choice["logprobs"]["tokens"][3] = "?"


def _tell_zeros(choice: dict[str, Any]) -> None:
    values = choice["logprobs"]["token_logprobs"]
    choice["logprobs"]["token_logprobs"] = [0.0] * len(values)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_drop, "no_logprobs"),
        (_tell_fewer, "wrong_length"),
        (_tell_others, "boundary_not_proven"),
        (_tell_zeros, "bad_logprobs"),
    ],
    ids=lambda x: x.__name__ if callable(x) else "",
)
def test_a_completion_that_is_none_is_a_row_with_its_reason(
    client: Client, change: Any, reason: str
) -> None:
    client.engine = COMPLETIONS
    client.server.fault = spoil(change)
    found = client.ask()
    assert [score.reason.partition(":")[0] for score in found] == [reason] * 4


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (error(500, "oops"), "server_error"),
        (error(429, "slow down", retry_after="0.01"), "rate_limited"),
        (error(400, "This model's maximum context length is 8 tokens"), "request_rejected"),
        (Reply(body={"choices": [1, 2, 3, 4]}, truncate=True), "malformed_answer"),
        (Reply(body="no object"), "malformed_answer"),
        (Reply(cut=True), "connection_lost"),
        (Reply(stall_s=2.5, body={}), "timed_out"),
    ],
    ids=["500", "429", "400", "truncated", "no object", "cut", "stall"],
)
def test_a_fault_that_stays_is_a_row_with_its_reason(
    client: Client, reply: Reply, reason: str
) -> None:
    client.api = {"max_retries": 1, "concurrency": 4}
    client.server.fault = lambda number, path, body, answer: (
        reply if "question 2" in json.dumps(body) else None
    )
    found = client.ask()
    assert [score.ok for score in found] == [True, True, False, True]
    assert found[2].reason.startswith(reason)


# --- what ends a job ------------------------------------------------------------------------------


def test_too_many_failures_end_the_job_early(client: Client) -> None:
    client.api = {"max_failure_rate": 0.2, "max_retries": 0}
    client.server.fault = lambda number, *_: error(500, "oops") if number % 3 == 1 else None
    with pytest.raises(EndpointError, match=r"of 2\d requests failed.*0\.2: \d+ server_error"):
        client.ask(100)
    assert len(client.server.asked) < 30


def test_a_few_failures_end_a_small_job_at_its_end(client: Client) -> None:
    client.api = {"max_failure_rate": 0.2, "max_retries": 0}
    client.server.fault = on(1, 2, reply=error(500, "oops"))
    with pytest.raises(EndpointError, match="2 of 4 requests failed"):
        client.ask(4)


@pytest.mark.parametrize("engine", [CHAT, COMPLETIONS])
def test_a_wrong_key_ends_it_and_is_not_told(
    client: Client, monkeypatch: pytest.MonkeyPatch, engine: EngineName
) -> None:
    monkeypatch.setenv("TINY_KEY", "sk-wrong-0815")
    client.engine, client.server.key = engine, KEY
    client.model = {"api_key_env": "TINY_KEY"}
    with pytest.raises(CredentialError, match="environment variable TINY_KEY") as told:
        client.ask()
    assert "sk-wrong-0815" not in str(told.value)
    monkeypatch.setenv("TINY_KEY", KEY)
    assert all(score.ok for score in client.ask())


def test_a_model_that_is_not_served_ends_it(client: Client) -> None:
    client.server.fault = on(0, reply=error(404, "The model `tiny` does not exist"))
    with pytest.raises(EndpointError, match="does not serve 'tiny'"):
        client.ask()


def test_no_quota_ends_it(client: Client) -> None:
    client.server.fault = on(
        *range(1, 99), reply=error(429, "You exceeded your quota", code="insufficient_quota")
    )
    with pytest.raises(EndpointError, match="exceeded your quota"):
        client.ask()


def test_no_server_at_all_ends_it_at_once(tmp_path: Path, tokenizer_dir: str) -> None:
    nobody = ApiServer.__new__(ApiServer)
    nobody.url = "http://127.0.0.1:9/v1"
    client = Client(nobody, tmp_path / "scores.sqlite", tokenizer_dir)
    client.engine = COMPLETIONS
    with pytest.raises(EndpointError, match=r"nothing answers at http://127\.0\.0\.1:9/v1"):
        client.ask()
    client.engine = CHAT
    with pytest.raises(EndpointError, match="nothing answers"):
        client.ask()


@pytest.mark.parametrize(
    ("engine", "change", "told"),
    [
        (CHAT, _drop, "no_logprobs.*model.logprobs=false"),
        (CHAT, _zero, "bad_logprobs"),
        (COMPLETIONS, _drop, "does not tell the log-probs of a prompt: no_logprobs"),
        (COMPLETIONS, _tell_zeros, "all of them are zero"),
    ],
    ids=lambda x: x.__name__ if callable(x) else "",
)
def test_the_preflight_refuses_what_tells_no_log_probs(
    client: Client, engine: EngineName, change: Any, told: str
) -> None:
    client.engine = engine
    spoiling = spoil(change)
    client.server.fault = lambda _, path, body, answer: spoiling(1, path, body, answer)
    with pytest.raises(EndpointError, match=told):
        client.ask()


class Misplaced(Speaker):
    """As llama-cpp-python's server where a text does not begin with the beginning-of-text token:
    each token is told with the log-prob that it has one place later."""

    def _echoed(self, ids: Any, rows: Any) -> dict[str, Any]:
        return super()._echoed(ids[:-1], rows[1:])


@pytest.mark.parametrize("tokenizer", [True, False], ids=["tokenizer", "no tokenizer"])
def test_the_preflight_sees_log_probs_at_other_places(client: Client, tokenizer: bool) -> None:
    client.engine = COMPLETIONS
    client.tokenizer = client.tokenizer if tokenizer else ""
    client.server.speaker = Misplaced(client.server.speaker.model)
    with pytest.raises(EndpointError, match="misplaced_logprobs"):
        client.ask()


# --- limits, and what is stored -------------------------------------------------------------------


def test_what_was_answered_is_not_asked_again(client: Client) -> None:
    first = client.ask(6)
    asked = len(client.server.asked)
    assert client.ask(6) == first
    assert len(client.server.asked) == asked + 1  # the preflight's
    assert all(score.ok for score in client.ask(8))
    assert len(client.server.asked) == asked + 1 + 3


def test_an_answer_that_was_refused_is_paid_once(client: Client) -> None:
    client.server.fault = spoil(_refuse)
    client.ask()
    client.server.fault = None
    asked = len(client.server.asked)
    assert [score.reason.partition(":")[0] for score in client.ask()] == ["refused"] * 4
    assert len(client.server.asked) == asked + 1


def test_a_broken_answer_is_asked_again(client: Client) -> None:
    client.server.fault = spoil(_drop)
    assert not any(score.ok for score in client.ask())
    client.server.fault = None
    assert all(score.ok for score in client.ask())


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ({"max_requests": 5}, "api.max_requests=5 does not allow another request: 5 requests"),
        ({"max_tokens": 300}, "api.max_tokens=300"),
        ({"max_usd": 0.001}, r"api.max_usd=0.001 .* USD \(prices of 2026-01-01\)"),
    ],
)
def test_a_limit_stops_the_job_and_a_higher_one_goes_on(
    client: Client, limit: dict[str, float], told: str
) -> None:
    client.model = {"prices": PricesConfig(input_usd=2.0, output_usd=5.0, as_of="2026-01-01")}
    client.api = {**limit, "concurrency": 1}
    with pytest.raises(BudgetError, match=told):
        client.ask(40)
    answered = len(client.server.answered)
    assert 1 < answered < 40
    client.api = {"concurrency": 1}
    assert all(score.ok for score in client.ask(40))
    scored = [text for text in client.server.answered if "question" in text]
    assert len(scored) == len(set(scored)) == 40


def test_what_is_spent_is_what_the_server_counted(client: Client) -> None:
    client.model = {"prices": PricesConfig(input_usd=2.0, output_usd=5.0, as_of="2026-01-01")}
    engine = client.open()
    list(engine.score(questions(3), numerics=Numerics.fast, batch_tokens=1))
    usages = [client.server.speaker.answer(p, b)["usage"] for p, b in client.server.asked]
    usd = sum(u["prompt_tokens"] * 2e-6 + u["completion_tokens"] * 5e-6 for u in usages)
    tokens = sum(u["total_tokens"] for u in usages)
    assert engine.spent == {
        "api/requests": 3.0, "api/tokens": float(tokens), "api/usd": pytest.approx(usd),
    }  # fmt: skip


def test_money_is_not_counted_without_prices(client: Client) -> None:
    client.api = {"max_usd": 1.0}
    with pytest.raises(UserError, match=r"prices of tiny are not known.*model.prices.input_usd"):
        client.ask()


def test_other_weights_behind_the_same_address_are_not_served_the_old_scores(
    client: Client,
) -> None:
    client.engine = COMPLETIONS
    first = client.ask()
    asked = len(client.server.asked)
    client.server.speaker = Speaker(speaking_model(seed=1))
    second = client.ask()
    assert len(client.server.asked) >= asked + 8
    assert [s.continuations for s in second] != [s.continuations for s in first]


# --- dialects -------------------------------------------------------------------------------------


class TextOnly(Speaker):
    """As llama-cpp-python's server: no token ids in, an error of its own."""

    def answer(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(body.get("prompt"), list):
            return {"object": "error"}
        return super().answer(path, body)


@pytest.mark.parametrize("kind", ["echo", "vllm", "text", "no tokenizer"])
def test_each_dialect_gives_the_scores_of_the_model_itself(client: Client, kind: str) -> None:
    from ncu_exp.scoring.encoding import encode_request
    from ncu_exp.scoring.reference import score_reference

    # Without a tokenizer a part of a character cannot be told from another.
    other = "Zurich" if kind == "no tokenizer" else "Zürich"
    plain = [
        ScoreRequest(
            str(i), Condition.zero, Prompt(text=f"question {i}:", answer_prefix=" "),
            ((Continuation.true, "an answer"), (Continuation.fabricated, other)), 3,
        )
        for i in range(3)
    ]  # fmt: skip
    model = client.server.speaker.model
    client.server.speaker = (
        TextOnly(model) if kind == "text" else Speaker(model, dialect=kind.partition(" ")[0])
    )
    client.engine = COMPLETIONS
    if kind == "no tokenizer":
        client.tokenizer = ""
    engine = client.open()
    engine.preflight()
    requests = plain if kind == "no tokenizer" else [*plain, *questions(3)]
    found = dict(engine.score(requests, numerics=Numerics.fast, batch_tokens=1))
    for index, request in enumerate(requests):
        encoded = encode_request(client.server.speaker.tokenizer, request)
        exact, greedy = score_reference(model, encoded, stop_ids={256})
        assert not found[index].reason
        for one, other in zip(found[index].continuations, exact, strict=True):
            assert one.token_logprobs == pytest.approx(other.token_logprobs, abs=1e-4)
            assert one.is_greedy == other.is_greedy
            if kind != "no tokenizer":
                assert one.token_ids == other.token_ids
        text = client.server.speaker.tokenizer.decode(list(greedy), skip_special_tokens=True)
        assert found[index].greedy_text == text.strip()


def test_messages_need_the_tokenizer_of_the_served_model(client: Client) -> None:
    client.engine, client.tokenizer = COMPLETIONS, ""
    with pytest.raises(EndpointError, match=r"chat template is not known.*model\.tokenizer"):
        client.ask()


def test_an_address_that_holds_a_secret_is_refused(client: Client) -> None:
    client.server.url = client.server.url.replace("http://", "http://me:secret@")
    with pytest.raises(CredentialError, match="api_key_env") as told:
        client.ask()
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("engine", "estimator"),
    [(COMPLETIONS, EstimatorName.sampled), (EngineName.transformers, EstimatorName.sampled)],
)
def test_an_exact_model_is_not_sampled(engine: EngineName, estimator: EstimatorName) -> None:
    model = ModelConfig(name="m", label="m", engine=engine)
    with pytest.raises(ModelError, match="estimator=auto"):
        plan_engine(model, PrecisionName.auto, prompt=PromptStyle.directive, estimator=estimator)
