"""What every engine offers, and which one a model needs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ncu_exp import provenance
from ncu_exp.config import (
    ApiConfig,
    EngineName,
    EstimatorName,
    ModelConfig,
    Numerics,
    PrecisionName,
    PromptStyle,
)
from ncu_exp.errors import CredentialError, ModelError
from ncu_exp.records import LatencyProbe, NumericsCheck, Score, ScoreRequest
from ncu_exp.scoring.precision import (
    SERVED,
    Precision,
    check_api_precision,
    resolve_device,
    resolve_precision,
)

ENDPOINT = "endpoint"  # stands for the device of a model that a server runs


class Engine(Protocol):
    """A model that answers `ScoreRequest`s, wherever it runs."""

    asked: int  # requests of this job so far
    recalled: int  # those of them that were known from before
    loading_s: float

    @property
    def revision(self) -> str:
        """The weights, for people."""

    @property
    def spent(self) -> dict[str, float]:
        """What the job has cost so far, as metrics; nothing where it costs time alone."""

    def preflight(self) -> str:
        """What the engine can do, in a line. Raises UserError where it cannot be used."""

    def begin(self) -> None:
        """A new job."""

    def score(
        self, requests: Sequence[ScoreRequest], *, numerics: Numerics, batch_tokens: int
    ) -> Iterator[tuple[int, Score]]:
        """Yield (index of the request, its score) in the order of completion."""

    def latency(self, requests: Sequence[ScoreRequest]) -> Iterator[LatencyProbe]:
        """Time requests, one after the other."""

    def verify(self, pairs: Sequence[tuple[ScoreRequest, Score]]) -> NumericsCheck | None:
        """Check scores of a job that is done. Raises UserError where the job has failed."""

    def close(self) -> None:
        """Let go of weights, connections and files."""


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """A model whose options were checked, before anything is loaded or asked."""

    model: ModelConfig
    precision: Precision
    device: str
    estimator: EstimatorName = EstimatorName.auto
    api: ApiConfig = field(default_factory=ApiConfig)
    samples: int = 1

    @property
    def key(self) -> str:
        """Equal keys mean the same weights in the same precision, asked in the same way."""
        parts = (self.model, self.estimator, self.api, self.samples)
        return repr([self.precision.name.value, self.device, *map(provenance.plain, parts)])

    @property
    def is_endpoint(self) -> bool:
        return self.device == ENDPOINT


def plan_engine(
    model: ModelConfig,
    precision: PrecisionName,
    *,
    prompt: PromptStyle,
    estimator: EstimatorName = EstimatorName.auto,
    api: ApiConfig | None = None,
    samples: int = 1,
) -> EnginePlan:
    """Check that a model can be asked like this here; loads nothing, and asks nobody.

    Raises CredentialError, PrecisionError or ModelError with what would work.
    """
    if prompt is not PromptStyle.plain and not model.chat:
        raise ModelError(
            f"prompt={prompt.value} asks in chat messages, and {model.label} is a base model "
            "without a chat template. Use prompt=plain."
        )
    _check_estimator(model, estimator)
    if model.engine is EngineName.transformers:
        device = resolve_device(model.device)
        return EnginePlan(model, resolve_precision(precision, model, device=device), device)
    from ncu_exp.scoring.budget import check_prices

    api = api or ApiConfig()
    check_api_precision(precision, model)
    check_key(model)
    check_url(model)
    check_prices(model, api)
    if prompt is PromptStyle.plain and model.engine is EngineName.openai_chat:
        raise ModelError(
            f"prompt=plain asks in plain text, and {model.label} is asked in chat messages. Use "
            "prompt=directive or prompt=grounded."
        )
    return EnginePlan(model, SERVED, ENDPOINT, estimator_of(model, estimator), api, samples)


def estimator_of(model: ModelConfig, asked: EstimatorName) -> EstimatorName:
    """The estimator that is used: of an API without log-probs, samples; `auto` of exact scores."""
    if model.engine is not EngineName.openai_chat:
        return EstimatorName.auto
    return asked if model.logprobs else EstimatorName.sampled


def _check_estimator(model: ModelConfig, estimator: EstimatorName) -> None:
    if estimator is EstimatorName.paper and not model.logprobs:
        raise ModelError(
            f"estimator=paper needs log-probs, and {model.label} tells none (model.logprobs=false)."
        )
    if estimator is EstimatorName.sampled and model.engine is not EngineName.openai_chat:
        raise ModelError(
            f"estimator=sampled is for chat APIs; the scores of {model.label} are exact. "
            "Use estimator=auto."
        )


def check_url(model: ModelConfig) -> None:
    """Refuse an address that holds a secret: it would be written down with the configuration."""
    from urllib.parse import urlsplit

    parts = urlsplit(model.base_url or "")
    if parts.username or parts.password or parts.query:
        raise CredentialError(
            f"model.base_url of {model.label} holds a user name or a query: addresses are written "
            "down. Put the key into an environment variable, and name it: model.api_key_env=NAME"
        )


def check_key(model: ModelConfig) -> None:
    """Raise CredentialError where the model needs a key and its variable is not set."""
    if model.api_key_env and not os.environ.get(model.api_key_env):
        raise CredentialError(
            f"{model.label} needs a key: set the environment variable {model.api_key_env} "
            "(it is read from there only, and written nowhere)."
        )
