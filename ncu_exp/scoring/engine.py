"""Which engine a model needs, whether it can run at all, and the one model kept in memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ncu_exp.config import EngineName, ModelConfig, PrecisionName, PromptStyle
from ncu_exp.errors import CredentialError, ModelError
from ncu_exp.scoring.precision import (
    Precision,
    check_api_precision,
    resolve_device,
    resolve_precision,
)

if TYPE_CHECKING:
    from ncu_exp.scoring.local import LocalEngine


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """A model whose options were checked, before anything is loaded."""

    model: ModelConfig
    precision: Precision
    device: str

    @property
    def key(self) -> tuple[str, ...]:
        """Equal keys mean the same weights in the same precision on the same device."""
        m = self.model
        parts = (
            m.name,
            m.source,
            m.revision,
            m.trust_remote_code,
            self.precision.name,
            self.device,
        )
        return tuple(str(p) for p in parts)


def plan_engine(model: ModelConfig, precision: PrecisionName, *, prompt: PromptStyle) -> EnginePlan:
    """Check that a model can be asked like this here; loads nothing.

    Raises CredentialError, PrecisionError or ModelError with what would work.
    """
    if prompt is not PromptStyle.plain and not model.chat:
        raise ModelError(
            f"prompt={prompt.value} asks in chat messages, and {model.label} is a base model "
            "without a chat template. Use prompt=plain."
        )
    if model.engine is not EngineName.transformers:
        check_api_precision(precision, model)
        check_key(model)
        raise ModelError(
            f"model.engine={model.engine.value} ({model.label}) is not part of this version yet: "
            "it scores local weights. Use model=smollm2, one of the qwen options, or model=hf."
        )
    device = resolve_device(model.device)
    return EnginePlan(model, resolve_precision(precision, model, device=device), device)


def check_key(model: ModelConfig) -> None:
    """Raise CredentialError where the model needs a key and its variable is not set."""
    if model.api_key_env and not os.environ.get(model.api_key_env):
        raise CredentialError(
            f"{model.label} needs a key: set the environment variable {model.api_key_env} "
            "(it is read from there only, and written nowhere)."
        )


class EngineHolder:
    """Keeps the model of the last job, for the next job of the sweep that needs the same."""

    def __init__(self) -> None:
        self._key: tuple[str, ...] | None = None
        self._engine: LocalEngine | None = None

    def open(self, plan: EnginePlan, *, cache_dir: Path, store: Path | None) -> LocalEngine:
        """The engine of the plan: the one in memory, or a new one after the old is unloaded.

        With `store`, a file, the engine remembers what it scores there.
        """
        from ncu_exp.contents import ContentStore
        from ncu_exp.scoring.local import LocalEngine
        from ncu_exp.scoring.memory import NoMemory, StoredMemory
        from ncu_exp.scoring.weights import open_model

        key = (*plan.key, str(store))
        if self._engine is None or self._key != key:
            self.close()
            opened = open_model(plan.model, plan.precision, device=plan.device, cache_dir=cache_dir)
            memory = StoredMemory(ContentStore(store), opened) if store else NoMemory()
            self._engine, self._key = LocalEngine(opened, memory=memory), key
        return self._engine

    def close(self) -> None:
        """Unload the model, if there is one."""
        if self._engine is not None:
            self._engine.close()
            self._engine = self._key = None
