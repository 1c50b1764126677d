"""APIs that only generate: how often a sampled answer equals the one that is asked about.

An estimate of another kind: of the whole answer, not per token, with the interval that so many
samples allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ncu_exp.errors import EndpointError
from ncu_exp.records import (
    Bounds,
    Continuation,
    ContinuationScore,
    Prompt,
    Score,
    ScoreRequest,
)
from ncu_exp.scoring.chat import (
    CHAT,
    PROBE,
    as_bounded_score,
    chat_messages,
    messages_sha256,
    parse_generated,
)
from ncu_exp.scoring.encoding import first_line
from ncu_exp.scoring.endpoint import AnswerError, Endpoint
from ncu_exp.scoring.exchange import Ask, Exchange
from ncu_exp.scoring.intervals import Bounded
from ncu_exp.stats import wilson_interval

SAMPLED_TOKENS = 32  # an answer that goes on beyond them is not the one asked about
CONFIDENCE = 0.95


class SampledScorer:
    """The share of `samples` answers, drawn at temperature 1, that equals the answer."""

    estimator = "sampled"

    def __init__(self, endpoint: Endpoint, *, samples: int) -> None:
        self._endpoint, self._samples = endpoint, samples

    def preflight(self) -> str:
        ask = self._ask(PROBE, temperature=1, number=0)
        try:
            _parse(self._endpoint.send(ask.path, ask.body))
        except AnswerError as error:
            raise EndpointError(
                f"{self._endpoint.config.label}: {self._endpoint.url} cannot be used: {error}."
            ) from None
        return f"generated text only; {self._samples} samples per prompt"

    def generation(self, request: ScoreRequest) -> Ask:
        body = self._ask(request.prompt, temperature=0, number=0).body
        return Ask(CHAT, {**body, "max_tokens": max(1, request.max_new_tokens)})

    def score(self, request: ScoreRequest, exchange: Exchange) -> Score:
        drawn = [
            exchange.ask(self._ask(request.prompt, temperature=1, number=n), _parse)
            for n in range(self._samples)
        ]
        greedy = ""
        if request.max_new_tokens:
            greedy = exchange.ask(self.generation(request), _parse)
        return Score(
            item_id=request.item_id,
            condition=request.condition,
            continuations=tuple(
                sampled_score(kind, text, drawn) for kind, text in request.continuations
            ),
            greedy_text=first_line(greedy),
            prompt_sha256=messages_sha256(request.prompt),
            estimator=self.estimator,
        )

    def _ask(self, prompt: Prompt, *, temperature: float, number: int) -> Ask:
        body: dict[str, Any] = {
            "messages": chat_messages(prompt),
            "max_tokens": SAMPLED_TOKENS,
            "temperature": temperature,
        }
        return Ask(CHAT, body, number)


def sampled_score(kind: Continuation, text: str, drawn: Sequence[str]) -> ContinuationScore:
    """Bounds of log P(answer) (nats, of the whole answer): Wilson's 95% interval of its share."""
    hits = sum(_plain(sample) == _plain(text) for sample in drawn)
    low, high = wilson_interval(hits, len(drawn), confidence=CONFIDENCE)
    bounds = Bounds(math.log(low) if low > 0 else -math.inf, math.log(high))
    return as_bounded_score(kind, text, Bounded((bounds,), bounds, is_greedy=False))


def _plain(text: str) -> str:
    return first_line(text).rstrip(".").rstrip()


def _parse(answer: Any) -> str:
    return parse_generated(answer, k=0, logprobs=False).text
