"""Chat APIs: the exact value of a model lies in the interval that an API over it allows."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from functools import cache

import pandas as pd
import pytest

from ncu_exp.config import Continuing, EstimatorName
from ncu_exp.metrics import aggregate
from ncu_exp.records import Arm, Condition, Continuation, Item, Message, Prompt, Score, ScoreRequest
from ncu_exp.scoring.sampled import SampledScorer, sampled_score
from ncu_exp.scoring.served import EndpointEngine
from ncu_exp.stats import Metric
from ncu_exp.tables import items_table
from tests.endpoints.engines import Direct, chat_engine, scores_of
from tests.endpoints.speaking import EOS, Speaker, speaking_model
from tests.scoring.test_paths import engine_of
from tests.synthetic import SETTINGS

ITEMS = 200
ASKED = ITEMS * 5  # answers: two of them under one condition
FOUR = (Condition.zero, Condition.oracle, Condition.adversarial, Condition.noise)
ROUNDED = 1e-4  # nats: the speaker tells six decimals, and batches differ in the last bits


@dataclass(frozen=True, eq=False)
class Asked:
    """Requests of made-up items, their exact scores, and a speaker that answers as an API."""

    items: list[Item]
    arms: list[Arm]
    requests: list[ScoreRequest]
    exact: list[Score]
    speaker: Speaker

    @cache  # noqa: B019  lives as long as the module's fixture
    def scores(self, k: int, tokenizer: bool = True) -> list[Score]:
        """What an API tells that gives `k` alternatives."""
        engine = chat_engine(self.speaker, top_logprobs=k, tokenizer=tokenizer)
        return scores_of(engine, self.requests)

    @cache  # noqa: B019
    def told(self, k: int) -> dict[str, Metric]:
        return self.metrics([score for score in self.scores(k) if score.ok])

    def metrics(self, scores: list[Score]) -> dict[str, Metric]:
        return {m.name: m for m in aggregate(self.table(scores), settings=SETTINGS)}

    def table(self, scores: list[Score]) -> pd.DataFrame:
        return items_table(self.items, self.arms, scores=scores, settings=SETTINGS)


def prompt(question: str) -> Prompt:
    return Prompt(messages=(Message("user", question),))


@pytest.fixture(scope="module")
def asked() -> Asked:
    """Two hundred items under four conditions: a thousand answers, of every kind.

    Some are what the model says, some part from it after a token or more, some are chance.
    """
    speaker = Speaker(speaking_model())
    rng = random.Random(0)

    def letters(n: int) -> str:
        return "".join(rng.choice("abcdefghijklmnop qrstuvwxyz") for _ in range(n))

    prompts = {(i, c): prompt(letters(12)) for i in range(ITEMS) for c in FOUR}
    ids = {
        key: speaker.tokenizer(
            speaker.tokenizer.apply_chat_template(
                [{"role": "user", "content": p.messages[0].content}],
                tokenize=False,
                add_generation_prompt=True,
            ),
            add_special_tokens=False,
        )["input_ids"]
        for key, p in prompts.items()
    }
    speaker.prepare(ids.values(), tokens=8)

    def said(key: tuple[int, Condition]) -> str:
        rows = speaker._rows[tuple(ids[key])]
        path = [int(row.argmax()) for row in rows]
        return speaker._text(path[: path.index(EOS)] if EOS in path else path).strip()

    def answer(i: int) -> str:
        spoken = said((i, rng.choice(FOUR)))[: rng.randint(1, 6)].strip()
        kind = rng.random()
        if kind < 0.4 and spoken:
            return spoken
        if kind < 0.7 and spoken:
            return spoken[:-1] + letters(2).strip() + "e"
        return letters(rng.randint(1, 6)).strip() or "x"

    items, arms, requests = [], [], []
    for i in range(ITEMS):
        true, false = answer(i), answer(i) + "z"
        items.append(Item(str(i), "sample", "?", true))
        for condition in FOUR:
            answers = [(Continuation.true, true)]
            if condition is Condition.adversarial:
                answers.append((Continuation.fabricated, false))
            fabricated = false if condition is Condition.adversarial else None
            arms.append(Arm(str(i), condition, None, fabricated))
            requests.append(
                ScoreRequest(str(i), condition, prompts[i, condition], tuple(answers), 5)
            )
    untold = [replace(request, max_new_tokens=0) for request in requests]
    exact = scores_of(engine_of(speaker.model), untold)
    return Asked(items, arms, requests, exact, speaker)


def assert_holds(exact: Metric, bounded: Metric) -> None:
    if bounded.is_bounded:
        assert bounded.lower - ROUNDED <= exact.value <= bounded.upper + ROUNDED, bounded
    else:
        assert exact.value == pytest.approx(bounded.value, abs=1e-3), bounded


@pytest.mark.parametrize("k", [1, 5, 20])
@pytest.mark.parametrize("tokenizer", [True, False], ids=["tokens known", "tokens unknown"])
def test_the_exact_value_lies_in_the_interval(asked: Asked, k: int, tokenizer: bool) -> None:
    found = asked.scores(k, tokenizer=tokenizer)
    assert all(score.ok == bool(score.greedy_text) for score in found)
    answers = censored = narrower = 0
    for exact, bounded in zip(asked.exact, found, strict=True):
        for one, other in zip(exact.continuations, bounded.continuations, strict=False):
            interval = other.mean_interval
            assert interval.lower - ROUNDED <= one.mean_logprob <= interval.upper + ROUNDED
            answers += 1
            censored += bool(other.n_censored)
            narrower += interval.upper < 0 or interval.exact
    assert answers > 0.9 * ASKED
    assert 0.05 * answers < censored < answers  # both kinds are there
    assert narrower > 0.99 * answers  # a bound says something of nearly every answer


@pytest.mark.parametrize("k", [1, 5, 20])
def test_every_metric_of_a_run_holds_the_exact_one(asked: Asked, k: int) -> None:
    found = asked.scores(k)
    usable = {(s.item_id, s.condition) for s in found if s.ok}
    exact = asked.metrics([s for s in asked.exact if (s.item_id, s.condition) in usable])
    bounded = asked.told(k)
    compared = {name for name in exact if not name.endswith(("/em", "/f1", "/n", "/n_total"))}
    assert len(compared) == 4 * 2 + 3 * 5 + 4
    for name in compared:
        assert_holds(exact[name], bounded[name])
    assert bounded["adversarial/prior_dominance"].is_bounded
    rows = asked.table([s for s in found if s.ok]).dropna(subset="ncu_lower")
    true = asked.table(asked.exact).loc[rows.index]
    assert (rows["ncu_lower"] <= true["ncu"] + 1e-3).all()
    assert (rows["ncu_upper"] >= true["ncu"] - 1e-3).all()


def test_more_alternatives_give_narrower_intervals(asked: Asked) -> None:
    """How wide they are on these items, whose answers are mostly not what the model says."""
    found = {k: asked.told(k)["oracle/accuracy"] for k in (1, 5, 20)}
    widths = [metric.upper - metric.lower for metric in found.values()]
    assert [f"{width:.2f}" for width in widths] == ["0.90", "0.84", "0.78"]
    censored = [asked.told(k)["oracle/censored_tokens"].value for k in (1, 5, 20)]
    assert [f"{share:.2f}" for share in censored] == ["0.87", "0.82", "0.69"]


@pytest.mark.parametrize("how", [c for c in Continuing if c is not Continuing.no])
def test_a_server_that_goes_on_from_a_text_tells_every_token(asked: Asked, how: Continuing) -> None:
    some = asked.requests[:60]
    plain = scores_of(chat_engine(asked.speaker, top_logprobs=20), some)
    found = scores_of(chat_engine(asked.speaker, top_logprobs=261, continues=how), some)
    fewer = scores_of(chat_engine(asked.speaker, top_logprobs=20, continues=how), some)
    for exact, whole, part, before in zip(asked.exact, found, fewer, plain, strict=False):
        for one, every, some_of_it, unasked in zip(
            exact.continuations,
            whole.continuations,
            part.continuations,
            before.continuations,
            strict=False,
        ):
            assert every.n_censored == 0
            assert every.token_logprobs == pytest.approx(one.token_logprobs, abs=ROUNDED)
            interval = some_of_it.mean_interval
            assert interval.lower - ROUNDED <= one.mean_logprob <= interval.upper + ROUNDED
            assert some_of_it.n_censored <= unasked.n_censored


def test_the_papers_convention_is_its_own_kind(asked: Asked) -> None:
    found = scores_of(
        chat_engine(asked.speaker, estimator=EstimatorName.paper), asked.requests[:40]
    )
    means = [c.mean_logprob for s in found for c in s.continuations]
    assert -15.0 in means
    assert {s.estimator for s in found} == {"paper"}
    rows = asked.table(found)
    rows = rows[rows["status"] == "ok"]
    assert rows["mean_logprob"].notna().all()
    assert rows["mean_logprob_lower"].isna().all()


def test_the_papers_convention_is_the_mean_of_generated_parts_of_the_answer() -> None:
    from ncu_exp.scoring.chat import papers_score
    from tests.scoring.test_intervals import IS, PARIS

    found = papers_score(Continuation.true, "Paris", [PARIS, IS])
    # " is" follows "Paris", and counts: it is a part of "Paris" as well.
    assert found.mean_logprob == pytest.approx((math.log(0.6) + math.log(0.9)) / 2)
    assert papers_score(Continuation.true, "Rome", [PARIS, IS]).mean_logprob == -15.0


def test_samples_are_counted() -> None:
    found = sampled_score(Continuation.true, "Paris", ["Paris", "Paris.", "paris", "Rome\nParis"])
    # 2 of 4: Wilson's interval at 95% is 0.150 to 0.850 (Newcombe 1998's formula by hand).
    interval = found.mean_interval
    assert math.exp(interval.lower) == pytest.approx(0.1500, abs=1e-3)
    assert math.exp(interval.upper) == pytest.approx(0.8500, abs=1e-3)
    never = sampled_score(Continuation.true, "Oslo", ["Paris"] * 20).mean_interval
    assert never.lower == -math.inf
    assert math.exp(never.upper) == pytest.approx(0.1611, abs=1e-3)


def test_a_sampled_share_is_near_the_probability(asked: Asked) -> None:
    """Of one-letter answers, whose probability is that of the letter and of the end behind it."""
    endpoint = Direct(asked.speaker)
    engine = EndpointEngine(endpoint, SampledScorer(endpoint, samples=30))
    request = ScoreRequest("0", Condition.zero, prompt("ab"), ((Continuation.true, "a"),), 2)
    (score,) = scores_of(engine, [request])
    assert score.estimator == "sampled"
    assert endpoint.sent == 31  # and the greedy answer
    assert score.continuations[0].mean_interval.upper < 0
