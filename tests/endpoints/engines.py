"""Engines over a tiny model that answers as an API would, and over the same model itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ncu_exp.config import ApiConfig, EngineName, EstimatorName, ModelConfig, Numerics
from ncu_exp.contents import ContentStore
from ncu_exp.records import Score, ScoreRequest
from ncu_exp.scoring.chat import ChatScorer
from ncu_exp.scoring.endpoint import Endpoint
from ncu_exp.scoring.served import EndpointEngine
from tests.endpoints.speaking import Speaker

API = ApiConfig(concurrency=1, timeout_s=20, max_retries=2, max_failure_rate=1.0)


class Direct(Endpoint):
    """An endpoint without a network: what is sent is answered by a speaker."""

    def __init__(
        self, speaker: Speaker, *, store: ContentStore | None = None, **changes: Any
    ) -> None:
        model = ModelConfig(
            name="tiny", label="tiny", engine=EngineName.openai_chat, base_url="http://nowhere/v1"
        )
        for key, value in changes.items():
            setattr(model, key, value)
        super().__init__(model, API, store=store)
        self._speaker = speaker
        self.sent = 0

    def send(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.sent += 1
        return self._speaker.answer(path, body)

    try_once = send


def chat_engine(
    speaker: Speaker,
    *,
    tokenizer: bool = True,
    estimator: EstimatorName = EstimatorName.auto,
    **changes: Any,
) -> EndpointEngine:
    endpoint = Direct(speaker, **changes)
    known = speaker.tokenizer if tokenizer else None
    return EndpointEngine(endpoint, ChatScorer(endpoint, known, estimator=estimator))


def scores_of(engine: Any, requests: Sequence[ScoreRequest]) -> list[Score]:
    found = dict(engine.score(requests, numerics=Numerics.fast, batch_tokens=4096))
    return [found[index] for index in range(len(requests))]
