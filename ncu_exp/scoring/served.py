"""Scores from an endpoint: several requests in flight, each failure with its reason."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from ncu_exp.config import Numerics
from ncu_exp.errors import BudgetError, EndpointError, ModelError
from ncu_exp.records import LatencyProbe, Score, ScoreRequest
from ncu_exp.scoring.endpoint import AnswerError, Endpoint
from ncu_exp.scoring.exchange import Exchange, Scorer

ENOUGH = 20  # requests, before a share of failures stops a job in the middle


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
