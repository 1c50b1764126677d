"""Scores from an endpoint: several requests in flight, each failure with its reason."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ncu_exp.config import EngineName, EstimatorName, Numerics
from ncu_exp.errors import BudgetError, EndpointError, ModelError
from ncu_exp.records import LatencyProbe, Score, ScoreRequest
from ncu_exp.scoring.endpoint import AnswerError, Endpoint, NoAnswerError
from ncu_exp.scoring.tokenizers import guess_tokenizer, open_tokenizer

if TYPE_CHECKING:
    from ncu_exp.scoring.engine import EnginePlan

T = TypeVar("T")

ENOUGH = 20  # requests, before a share of failures stops a job in the middle


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to a server: where, and what; `number` tells equal ones apart (samples)."""

    path: str
    body: Mapping[str, Any]
    number: int = 0


class Exchange:
    """What one prompt needs to be asked; `sent` counts what the store did not know."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.sent = 0

    def ask(self, ask: Ask, parse: Callable[[Mapping[str, Any]], T]) -> T:
        """What `parse` makes of the answer, which is stored unless it is broken (AnswerError)."""
        kind = f"answer {ask.number}"
        known = self._endpoint.recall(ask.path, ask.body, kind=kind)
        if known is not None:
            return parse(known)
        answer = self._endpoint.send(ask.path, ask.body)
        self.sent += 1
        try:
            found = parse(answer)
        except NoAnswerError:
            self._endpoint.keep(ask.path, ask.body, answer, kind=kind)
            raise
        self._endpoint.keep(ask.path, ask.body, answer, kind=kind)
        return found


class Scorer(Protocol):
    """How one kind of endpoint is asked for a score."""

    estimator: str

    def preflight(self) -> str:
        """Ask one tiny request; what the endpoint can do, in a line.

        Raises UserError where it cannot be used.
        """

    def score(self, request: ScoreRequest, exchange: Exchange) -> Score:
        """The score of a request. Raises AnswerError where it has none."""

    def generation(self, request: ScoreRequest) -> Ask:
        """The request that generates an answer, as a person would ask it."""


def open_endpoint(endpoint: Endpoint, plan: EnginePlan, *, cache_dir: Path) -> EndpointEngine:
    """The engine of an endpoint, with the tokenizer of its model where that is known.

    Raises EndpointError where nothing answers.
    """
    from ncu_exp.scoring.chat import ChatScorer
    from ncu_exp.scoring.completions import CompletionsScorer
    from ncu_exp.scoring.sampled import SampledScorer

    if endpoint.config.base_url:
        endpoint.find_model()
    if plan.estimator is EstimatorName.sampled:
        return EndpointEngine(endpoint, SampledScorer(endpoint, samples=plan.samples))
    tokenizer = None
    if endpoint.config.tokenizer:
        tokenizer = open_tokenizer(endpoint.config.tokenizer, cache_dir=cache_dir)
    elif endpoint.config.base_url:
        tokenizer = guess_tokenizer(endpoint.names(), cache_dir=cache_dir)
    if endpoint.config.engine is EngineName.openai_chat:
        return EndpointEngine(endpoint, ChatScorer(endpoint, tokenizer, estimator=plan.estimator))
    return EndpointEngine(endpoint, CompletionsScorer(endpoint, tokenizer))


class EndpointEngine:
    """An endpoint that answers `ScoreRequest`s; what it can do is asked on first use."""

    def __init__(self, endpoint: Endpoint, scorer: Scorer) -> None:
        self.endpoint, self._scorer = endpoint, scorer
        self.loading_s = 0.0
        self.asked = self.recalled = 0
        self._reasons: Counter[str] = Counter()
        self._told = ""

    @property
    def revision(self) -> str:
        return self.endpoint.model

    @property
    def spent(self) -> dict[str, float]:
        """What the job has cost so far."""
        budget = self.endpoint.budget
        spent = {"api/requests": float(budget.requests), "api/tokens": float(budget.tokens)}
        if self.endpoint.config.prices.input_usd is not None:
            spent["api/usd"] = budget.usd
        return spent

    def preflight(self) -> str:
        """What the endpoint can do, in a line; asked once."""
        self._told = self._told or self._scorer.preflight()
        return self._told

    def begin(self) -> None:
        """A new job: its counts and its limits begin here."""
        self.asked = self.recalled = 0
        self._reasons.clear()
        self.endpoint.begin()

    def close(self) -> None:
        self.endpoint.close()

    def score(
        self, requests: Sequence[ScoreRequest], *, numerics: Numerics, batch_tokens: int
    ) -> Iterator[tuple[int, Score]]:
        """Yield (index of the request, its score) in the order of completion.

        A request that fails gives a Score with a reason. Raises EndpointError where too many do,
        BudgetError where a limit is reached: what was answered until then is stored.
        """
        upcoming = iter(enumerate(requests))
        flying: dict[Future[tuple[Score, int]], int] = {}
        with ThreadPoolExecutor(self.endpoint.api.concurrency) as pool:
            while True:
                for index, request in upcoming:
                    flying[pool.submit(self._score, request)] = index
                    if len(flying) == self.endpoint.api.concurrency:
                        break
                if not flying:
                    return
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    index = flying.pop(future)
                    score, sent = future.result()
                    self._count(score, sent=sent)
                    yield index, score

    def latency(self, requests: Sequence[ScoreRequest]) -> Iterator[LatencyProbe]:
        """Seconds of one request that generates, alone on its way; network and queue included.

        What was measured before is not measured, nor paid, again. A request that fails is left out.
        """
        for request in requests:
            ask = self._scorer.generation(request)
            seconds = self.endpoint.recall(ask.path, ask.body, kind="latency")
            if seconds is None:
                start = time.perf_counter()
                try:
                    self.endpoint.try_once(ask.path, ask.body)
                except AnswerError:
                    continue
                except BudgetError:
                    return  # what was scored is worth more than how fast it was
                seconds = time.perf_counter() - start
                self.endpoint.keep(ask.path, ask.body, seconds, kind="latency")
            yield LatencyProbe(request.item_id, request.condition, float(seconds))

    def verify(self, pairs: Sequence[tuple[ScoreRequest, Score]]) -> None:
        """Raise EndpointError where more requests failed than a job may lose."""
        failed = self._reasons.total()
        if failed > self.endpoint.api.max_failure_rate * max(self.asked, 1):
            told = ", ".join(f"{n} {reason}" for reason, n in self._reasons.most_common(3))
            raise EndpointError(
                f"{self.endpoint.config.label}: {failed} of {self.asked} requests failed, above "
                f"api.max_failure_rate={self.endpoint.api.max_failure_rate:g}: {told}. What was "
                "answered is stored: start again to ask for the rest."
            )

    def _score(self, request: ScoreRequest) -> tuple[Score, int]:
        exchange = Exchange(self.endpoint)
        try:
            score = self._scorer.score(request, exchange)
        except (AnswerError, ModelError) as error:
            score = Score(
                item_id=request.item_id,
                condition=request.condition,
                estimator=self._scorer.estimator,
                reason=str(error),
            )
        return score, exchange.sent

    def _count(self, score: Score, *, sent: int) -> None:
        self.asked += 1
        if score.ok:
            self.recalled += not sent
        else:
            self._reasons[score.reason.partition(":")[0]] += 1
        if self.asked >= ENOUGH:
            self.verify(())
