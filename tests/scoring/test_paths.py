"""Reference and batched path: exact values, and equality over architectures and batches."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncu_exp.config import ModelConfig, Numerics, PrecisionName
from ncu_exp.errors import ModelError
from ncu_exp.records import (
    Condition,
    Continuation,
    ContinuationScore,
    Prompt,
    Score,
    ScoreRequest,
)
from ncu_exp.scoring.batched import make_batches, score_batch
from ncu_exp.scoring.encoding import EncodedContinuation, encode_request, first_line
from ncu_exp.scoring.forward import NonFiniteError, pick
from ncu_exp.scoring.local import LocalEngine
from ncu_exp.scoring.memory import Memory, NoMemory
from ncu_exp.scoring.numerics import Handful, check_numerics, max_abs_diff
from ncu_exp.scoring.precision import PRECISIONS
from ncu_exp.scoring.reference import score_reference
from ncu_exp.scoring.ways import BATCHED, TREE, UNPADDED, Way
from ncu_exp.scoring.weights import OpenedModel
from tests.tiny import byte_tokenizer, tiny_model

ARCHITECTURES = ("llama", "qwen2", "gpt2", "gemma")


def engine_of(
    model: Any, *, window: int | None = 4096, memory: Memory | None = None
) -> LocalEngine:
    opened = OpenedModel(
        config=ModelConfig(name="tiny", label="tiny"),
        place="tiny",
        arguments={},
        hf_config=model.config,
        tokenizer=byte_tokenizer(),
        precision=PRECISIONS[PrecisionName.fp32],
        device="cpu",
        window=window,
        stop_ids=frozenset({256}),
        revision="tiny",
    )
    return LocalEngine(opened, memory=memory or NoMemory(), load=lambda: model)


def ask(text: str, *answers: str, n: int = 5, item_id: str = "i") -> ScoreRequest:
    kinds = (Continuation.true, Continuation.fabricated)
    return ScoreRequest(
        item_id, Condition.zero, Prompt(text=text), tuple(zip(kinds, answers, strict=False)), n
    )


def run(
    engine: LocalEngine,
    requests: list[ScoreRequest],
    *,
    numerics: Numerics,
    batch_tokens: int = 512,
) -> list[Score]:
    found = dict(engine.score(requests, numerics=numerics, batch_tokens=batch_tokens))
    return [found[i] for i in range(len(requests))]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def engine(request: pytest.FixtureRequest) -> LocalEngine:
    return engine_of(tiny_model(request.param))


def test_reference_is_the_sum_of_next_token_log_probabilities() -> None:
    """By hand: run each prefix alone and read the next token from its last row."""
    import torch

    model = tiny_model("llama")
    (score,) = run(engine_of(model), [ask("ab", "cd")], numerics=Numerics.reference)
    ids = byte_tokenizer()("abcd").input_ids
    expected = []
    for cut in (2, 3):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids[:cut]])).logits[0, -1].double()
        expected.append(float(logits[ids[cut]] - torch.logsumexp(logits, 0)))
    assert score.continuations[0].token_logprobs == pytest.approx(expected, abs=1e-5)
    assert score.continuations[0].sum_logprob == pytest.approx(sum(expected), abs=1e-5)
    assert score.continuations[0].mean_logprob == pytest.approx(sum(expected) / 2, abs=1e-5)


def test_greedy_is_the_arg_max_of_each_step() -> None:
    import torch

    model = tiny_model("llama")
    (score,) = run(engine_of(model), [ask("hello", "x")], numerics=Numerics.reference)
    ids = list(byte_tokenizer()("hello").input_ids)
    expected = []
    for _ in range(5):
        with torch.no_grad():
            token = int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
        if token == 256:
            break
        expected.append(token)
        ids.append(token)
    assert list(score.greedy_ids) == expected
    assert expected, "a model that stops at once would prove nothing"


def test_greedy_answer_is_marked_greedy(engine: LocalEngine) -> None:
    asked = encode_request(engine.opened.tokenizer, ask("What?", n=5))
    _, greedy = score_reference(engine.model, asked, stop_ids=())
    other = (*greedy[:-1], (greedy[-1] + 1) % 256)
    request = dataclasses.replace(
        asked,
        continuations=tuple(
            EncodedContinuation(Continuation.true, "", ids, boundary_merged=False)
            for ids in (greedy, other)
        ),
    )
    for scores, again in (
        score_reference(engine.model, request, stop_ids=()),
        score_batch(engine.model, [request], stop_ids=())[0],
    ):
        assert again == greedy
        assert [c.is_greedy for c in scores] == [True, False]


# Few letters, so that texts share beginnings; some others, so that tokens are not letters.
texts = st.text(st.sampled_from("aaabé😀 "), min_size=1, max_size=40)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    asked=st.lists(
        st.tuples(texts, st.lists(texts, max_size=2), st.integers(0, 6)), min_size=1, max_size=7
    ),
    batch_tokens=st.sampled_from([5, 60, 300, 5000]),
)
@pytest.mark.parametrize("way", [TREE, BATCHED, UNPADDED], ids=lambda w: w.name)
def test_every_fast_way_equals_the_reference(
    engine: LocalEngine, way: Way, asked: list[tuple[str, list[str], int]], batch_tokens: int
) -> None:
    engine = engine_of(engine.model)
    engine._way = way
    # Items of two requests, so that a tree has something to share.
    requests = [ask(t, *a, n=n, item_id=str(i // 2)) for i, (t, a, n) in enumerate(asked)]
    reference = run(engine, requests, numerics=Numerics.reference)
    fast = run(engine, requests, numerics=Numerics.fast, batch_tokens=batch_tokens)
    for slow, quick in zip(reference, fast, strict=True):
        assert slow.ok
        assert quick.ok
        assert max_abs_diff(slow, quick) < 1e-4
        assert slow.greedy_ids == quick.greedy_ids
        assert [c.token_ids for c in slow.continuations] == [
            c.token_ids for c in quick.continuations
        ]


def test_an_item_longer_than_the_window_is_an_error_row() -> None:
    engine = engine_of(tiny_model("llama"), window=20)
    for numerics in Numerics:
        short, long = run(engine, [ask("x" * 15, "y"), ask("x" * 16, "y")], numerics=numerics)
        assert short.ok
        assert long.reason == "prompt_too_long: 21 tokens exceed the model's window of 20"
        assert long.prompt_tokens == 16


def test_a_value_that_is_not_finite_is_an_error_row() -> None:
    import torch

    model = tiny_model("llama")
    with torch.no_grad():
        model.get_input_embeddings().weight[ord("!")] = float("nan")
    engine = engine_of(model)
    bad = byte_tokenizer().decode([ord("!")])  # the byte whose embedding is broken
    for numerics in Numerics:
        good, broken = run(engine, [ask("fine", "y"), ask(f"a{bad}", "yy")], numerics=numerics)
        assert good.ok
        assert broken.reason == "the log-probability of answer token 0 is nan"


def test_pick_refuses_minus_infinity() -> None:
    import torch

    with pytest.raises(NonFiniteError, match="token 1 is -inf"):
        pick(torch.tensor([[0.0, -1.0], [0.0, -math.inf]]), (1, 1))


def test_batches_keep_the_budget_and_lose_nobody() -> None:
    tokenizer = byte_tokenizer()
    lengths = [3, 50, 7, 7, 20, 200, 1]
    requests = [
        encode_request(tokenizer, ask("x" * n, "y", n=0), index=i) for i, n in enumerate(lengths)
    ]
    batches = list(make_batches(requests, batch_tokens=60))
    assert sorted(r.index for b in batches for r in b) == list(range(7))
    for batch in batches:
        widest = max(r.length for r in batch)
        assert len(batch) == 1 or widest * len(batch) <= 60
    assert len(batches) < len(lengths)


@pytest.mark.parametrize("way", [TREE, BATCHED], ids=lambda w: w.name)
def test_out_of_memory_halves_the_budget_and_goes_on(way: Way) -> None:
    """A real allocation failure cannot be had without risk to the machine: it is injected."""
    import torch

    engine = engine_of(tiny_model("llama"))
    requests = [ask("x" * (20 + i), "y", item_id=str(i)) for i in range(8)]
    engine._way = way
    expected = run(engine, requests, numerics=Numerics.fast)
    budgets = []

    def short_of_memory(model: Any, group: Any, stop_ids: Any, budget: int) -> Any:
        budgets.append(budget)
        if budget > 100:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return way.score(model, group, stop_ids, budget)

    engine._way = dataclasses.replace(way, score=short_of_memory)
    found = run(engine, requests, numerics=Numerics.fast, batch_tokens=400)
    assert budgets[:3] == [400, 200, 100]
    assert set(budgets[2:]) == {100}
    assert max(max_abs_diff(a, b) for a, b in zip(found, expected, strict=True)) < 1e-4


@pytest.mark.parametrize("way", [TREE, BATCHED], ids=lambda w: w.name)
def test_out_of_memory_on_one_request_names_the_item(way: Way) -> None:
    def no_memory(*args: Any) -> Any:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory")

    engine = engine_of(tiny_model())
    engine._way = dataclasses.replace(way, score=no_memory)
    with pytest.raises(ModelError, match="item big"):
        run(engine, [ask("x", "y", item_id="big")], numerics=Numerics.fast)


def test_the_check_of_a_fast_run_finds_a_wrong_score() -> None:
    engine = engine_of(tiny_model("llama"))
    requests = [ask(f"question {i}", "yes", item_id=str(i)) for i in range(6)]
    scores = run(engine, requests, numerics=Numerics.fast)
    check = check_numerics(engine, list(zip(requests, scores, strict=True)), bound_nats=1e-4)
    assert check is not None
    assert check.checked == 6
    assert check.max_abs_diff_nats < 1e-4
    assert not check.exceeded
    # The scores of other items stand in for a fast path that mixes them up.
    check = check_numerics(
        engine, list(zip(requests, scores[1:] + scores[:1], strict=True)), bound_nats=1e-4
    )
    assert check is not None
    assert check.exceeded
    assert check_numerics(engine, [], bound_nats=1e-4) is None


def test_the_handful_to_check_is_drawn_evenly_and_by_its_seed() -> None:
    answer = ContinuationScore(
        Continuation.true, "a", (1,), (-1.0,), boundary_merged=False, is_greedy=False
    )

    def drawn(seed: int) -> list[str]:
        handful = Handful(3, seed=seed)
        for k in range(12):
            scored = (
                Score(str(k), Condition.zero, (answer,))
                if k % 2
                else Score(str(k), Condition.zero, reason="too long")
            )
            handful.offer(ask("q", "a", item_id=str(k)), scored)
        return [request.item_id for request, _ in handful.pairs]

    assert drawn(5) == drawn(5)
    counts = Counter(place for seed in range(2000) for place in drawn(seed))
    assert set(counts) == {"1", "3", "5", "7", "9", "11"}
    assert all(900 < n < 1100 for n in counts.values())  # of 1000 each
    assert Handful(0, seed=0).pairs == []


def test_latency_probes_every_request_and_never_stops_early() -> None:
    engine = engine_of(tiny_model("llama"), window=100)
    requests = [ask("x" * 10, "y"), ask("x" * 99, "y"), ask("x" * 20, "y")]
    probes = list(engine.latency(requests))
    assert len(probes) == 2  # the second does not fit the window
    assert all(p.latency_s > 0 for p in probes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(" Paris\n\nQuestion:", "Paris"), ("\n Paris", "Paris"), ("", ""), ("\n", "")],
)
def test_a_generated_answer_ends_with_its_line(text: str, expected: str) -> None:
    assert first_line(text) == expected
