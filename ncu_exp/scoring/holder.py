"""Opens the engine that a plan needs, and keeps it for the next job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ncu_exp.config import EngineName, EstimatorName
from ncu_exp.scoring.engine import Engine, EnginePlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from ncu_exp.scoring.endpoint import Endpoint
    from ncu_exp.scoring.local import LocalEngine


class EngineHolder:
    """Keeps the engine of the last job, for the next job of the sweep that needs the same."""

    def __init__(self) -> None:
        self._key: tuple[str, str] | None = None
        self._engine: Engine | None = None

    def open(self, plan: EnginePlan, *, cache_dir: Path, store: Path | None) -> Engine:
        """The engine of the plan: the one that is open, or a new one after the old was closed.

        With `store`, a file, the engine remembers there what it scores or is answered.
        """
        key = (plan.key, str(store))
        if self._engine is None or self._key != key:
            self.close()
            make: Callable[[EnginePlan, Path, Path | None], Engine]
            make = _endpoint if plan.is_endpoint else open_local
            self._engine, self._key = make(plan, cache_dir, store), key
        self._engine.begin()
        return self._engine

    def close(self) -> None:
        """Close the engine, if there is one."""
        if self._engine is not None:
            self._engine.close()
            self._engine = self._key = None


def open_local(plan: EnginePlan, cache_dir: Path, store: Path | None) -> LocalEngine:
    """The engine of local weights, none of which is loaded yet."""
    from ncu_exp.contents import ContentStore
    from ncu_exp.scoring.local import LocalEngine
    from ncu_exp.scoring.memory import NoMemory, StoredMemory
    from ncu_exp.scoring.weights import open_model

    opened = open_model(plan.model, plan.precision, device=plan.device, cache_dir=cache_dir)
    memory = StoredMemory(ContentStore(store), opened) if store else NoMemory()
    return LocalEngine(opened, memory=memory)


def _endpoint(plan: EnginePlan, cache_dir: Path, store: Path | None) -> Engine:
    """The engine of an endpoint; nothing stays open where it cannot be opened."""
    from ncu_exp.contents import ContentStore
    from ncu_exp.scoring.endpoint import Endpoint

    endpoint = Endpoint(plan.model, plan.api, store=ContentStore(store) if store else None)
    try:
        return _over(endpoint, plan, cache_dir)
    except BaseException:
        endpoint.close()
        raise


def _over(endpoint: Endpoint, plan: EnginePlan, cache_dir: Path) -> Engine:
    """The engine over an endpoint, with the tokenizer of its model where that is known."""
    from ncu_exp.scoring.chat import ChatScorer
    from ncu_exp.scoring.completions import CompletionsScorer
    from ncu_exp.scoring.sampled import SampledScorer
    from ncu_exp.scoring.served import EndpointEngine
    from ncu_exp.scoring.tokenizers import guess_tokenizer, open_tokenizer

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
