"""What an engine remembers of earlier scores and latencies: the score store, or nothing."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ncu_exp.config import Numerics
from ncu_exp.contents import ContentStore, content_key
from ncu_exp.provenance import code_sha256, versions
from ncu_exp.records import ContinuationScore
from ncu_exp.scoring.batched import Outcome
from ncu_exp.scoring.encoding import EncodedRequest, hash_ids
from ncu_exp.scoring.forward import NonFiniteError
from ncu_exp.scoring.reference import as_score
from ncu_exp.scoring.weights import OpenedModel, fingerprint

ENGINE = "transformers"
VERSION = 1  # of what a score means; raise it when a change of code changes scores


class Memory(Protocol):
    """What an engine asks before it computes, and tells afterwards."""

    def recall(
        self, requests: Sequence[EncodedRequest], numerics: Numerics
    ) -> Mapping[int, Outcome]:
        """The outcomes that are known, by the request's index."""

    def keep(self, outcomes: Iterable[tuple[EncodedRequest, Outcome]], numerics: Numerics) -> None:
        """Remember outcomes; an error is not one, and is tried again the next time."""

    def recall_latencies(self, requests: Sequence[EncodedRequest]) -> Sequence[float] | None:
        """The seconds of all the requests, or None where any is unknown on this machine."""

    def keep_latencies(self, requests: Sequence[EncodedRequest], seconds: Sequence[float]) -> None:
        """Remember the seconds of requests on this machine."""

    def recall_way(self) -> str | None:
        """The name of the fast way that the model took on this machine, if that is known."""

    def keep_way(self, name: str) -> None:
        """Remember the way that was found for the model on this machine."""

    def close(self) -> None:
        """Nothing is asked or told any more."""


class NoMemory:
    """Remembers nothing."""

    def recall(
        self, requests: Sequence[EncodedRequest], numerics: Numerics
    ) -> Mapping[int, Outcome]:
        return {}

    def keep(self, outcomes: Iterable[tuple[EncodedRequest, Outcome]], numerics: Numerics) -> None:
        return None

    def recall_latencies(self, requests: Sequence[EncodedRequest]) -> None:
        return None

    def keep_latencies(self, requests: Sequence[EncodedRequest], seconds: Sequence[float]) -> None:
        return None

    def recall_way(self) -> None:
        return None

    def keep_way(self, name: str) -> None:
        return None

    def close(self) -> None:
        return None


class StoredMemory:
    """Remembers in a score store, for one model in one precision on one kind of device."""

    def __init__(self, store: ContentStore, opened: OpenedModel) -> None:
        self._store = store
        self._weights = fingerprint(opened, store)
        self._device = opened.device.partition(":")[0]
        self._scope = [ENGINE, VERSION, self._weights, opened.precision.name.value, self._device]

    def recall(
        self, requests: Sequence[EncodedRequest], numerics: Numerics
    ) -> Mapping[int, Outcome]:
        keys = {request.index: self._key(request, numerics) for request in requests}
        found = self._store.read(keys.values())
        return {
            request.index: _outcome(request, found[keys[request.index]])
            for request in requests
            if keys[request.index] in found
        }

    def keep(self, outcomes: Iterable[tuple[EncodedRequest, Outcome]], numerics: Numerics) -> None:
        values = {
            self._key(request, numerics): _value(outcome)
            for request, outcome in outcomes
            if not isinstance(outcome, NonFiniteError)
        }
        self._store.write(values, origin=self._weights)

    def recall_latencies(self, requests: Sequence[EncodedRequest]) -> Sequence[float] | None:
        keys = [self._latency_key(request) for request in requests]
        found = self._store.read(keys)
        return [found[key] for key in keys] if set(keys) <= set(found) else None

    def keep_latencies(self, requests: Sequence[EncodedRequest], seconds: Sequence[float]) -> None:
        values = {self._latency_key(r): s for r, s in zip(requests, seconds, strict=True)}
        self._store.write(values, origin=self._weights)

    def recall_way(self) -> str | None:
        key = self._way_key()
        found = self._store.read([key]).get(key)
        return None if found is None else str(found)

    def keep_way(self, name: str) -> None:
        self._store.write({self._way_key(): name}, origin=self._weights)

    def close(self) -> None:
        self._store.close()

    def _key(self, request: EncodedRequest, numerics: Numerics) -> str:
        answers = [
            [hash_ids(c.ids), c.boundary_merged, c.continuation.value]
            for c in request.continuations
        ]
        length = request.request.max_new_tokens
        return content_key(self._scope, numerics.value, request.prompt_sha256, answers, length)

    def _latency_key(self, request: EncodedRequest) -> str:
        length = request.request.max_new_tokens
        return content_key(self._scope, "latency", self._machine(), request.prompt_sha256, length)

    def _way_key(self) -> str:
        """A way was proven for this machine, these libraries and this code alone."""
        code = code_sha256(Path(__file__).parent)
        return content_key(self._scope, "way", self._machine(), versions(), code)

    def _machine(self) -> list[Any]:
        return [platform.node(), platform.machine(), os.cpu_count(), self._gpu()]

    def _gpu(self) -> str:
        if self._device != "cuda":
            return ""
        import torch

        return str(torch.cuda.get_device_name())


def _value(outcome: tuple[tuple[ContinuationScore, ...], tuple[int, ...]]) -> Any:
    scores, greedy = outcome
    return {"answers": [[list(s.token_logprobs), s.is_greedy] for s in scores], "greedy": greedy}


def _outcome(request: EncodedRequest, value: Any) -> Outcome:
    scores = tuple(
        as_score(continuation, tuple(logprobs), is_greedy=is_greedy)
        for continuation, (logprobs, is_greedy) in zip(
            request.continuations, value["answers"], strict=True
        )
    )
    return scores, tuple(value["greedy"])
