"""Exact scores from local weights: the `transformers` engine."""

from __future__ import annotations

import gc
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ncu_exp.config import Numerics
from ncu_exp.errors import ModelError
from ncu_exp.records import LatencyProbe, NumericsCheck, Score, ScoreRequest
from ncu_exp.scoring.batched import Outcome
from ncu_exp.scoring.encoding import EncodedRequest, encode_request, first_line
from ncu_exp.scoring.forward import NonFiniteError
from ncu_exp.scoring.memory import Memory
from ncu_exp.scoring.numerics import check_numerics
from ncu_exp.scoring.reference import generate_greedy
from ncu_exp.scoring.ways import REFERENCE, TREE, WAYS, Way, choose_way
from ncu_exp.scoring.weights import OpenedModel, load_weights

log = logging.getLogger(__name__)


class LocalEngine:
    """A model that answers `ScoreRequest`s, and loads its weights when one has to be computed.

    `batch_tokens` bounds the tokens of one forward pass; running out of memory halves it from
    then on.
    """

    estimator = "exact"

    def __init__(
        self, opened: OpenedModel, *, memory: Memory, load: Callable[[], Any] | None = None
    ) -> None:
        self.opened = opened
        self._memory = memory
        self._load = load or (lambda: load_weights(opened))
        self._model: Any = None
        self._way: Way | None = None
        self._fitting = sys.maxsize  # tokens of a forward pass that have not been too many
        self.asked = self.recalled = 0  # requests of the job, and those that memory answered
        self.loading_s = 0.0

    @property
    def revision(self) -> str:
        return self.opened.revision

    @property
    def spent(self) -> dict[str, float]:
        return {}

    def preflight(self) -> str:
        precision = self.opened.precision.name.value
        return f"local weights {self.revision}, {precision} on {self.opened.device}"

    def begin(self) -> None:
        self.asked = self.recalled = 0

    @property
    def model(self) -> Any:
        """The weights, loaded on first use."""
        if self._model is None:
            start = time.perf_counter()
            self._model = self._load()
            took = time.perf_counter() - start
            self.loading_s += took
            log.info("The weights of %s were loaded in %.1f s.", self.opened.config.label, took)
        return self._model

    @property
    def is_loaded(self) -> bool:
        return self._model is not None

    def close(self) -> None:
        """Let go of the weights and of the memory's files."""
        self._model = self._way = None
        self._memory.close()
        free_device_memory()

    def score(
        self, requests: Sequence[ScoreRequest], *, numerics: Numerics, batch_tokens: int
    ) -> Iterator[tuple[int, Score]]:
        """Yield (index of the request, its score) in the order of completion.

        What is remembered comes first. A request that cannot be scored gives a Score with a
        reason: longer than the model's window, no tokens, a log-probability that is not finite.
        """
        ready: list[EncodedRequest] = []
        for index, request in enumerate(requests):
            encoded = self._encode(request, index)
            if isinstance(encoded, Score):
                yield index, encoded
            else:
                ready.append(encoded)
        known = self._memory.recall(ready, numerics)
        self.asked += len(ready)
        self.recalled += len(known)
        for encoded in ready:
            if encoded.index in known:
                yield encoded.index, self._finish(encoded, known[encoded.index])
        missing = [encoded for encoded in ready if encoded.index not in known]
        for done in self._compute(missing, numerics, batch_tokens):
            self._memory.keep(done, numerics)
            for encoded, outcome in done:
                yield encoded.index, self._finish(encoded, outcome)

    def latency(self, requests: Sequence[ScoreRequest]) -> Iterator[LatencyProbe]:
        """Seconds of prompt + greedy tokens at batch size 1, device synchronised.

        The first request runs twice, the first time unmeasured. Every probe generates all of its
        tokens, a stop token or not, so that probes compare. Requests too long for the model's
        window are left out. What this machine measured before is not measured again.
        """
        ready = [
            e for i, r in enumerate(requests) if isinstance(e := self._encode(r, i), EncodedRequest)
        ]
        known = self._memory.recall_latencies(ready)
        if known is None:
            for encoded in ready[:1]:
                self._generate_timed(encoded)
            known = [self._generate_timed(encoded) for encoded in ready]
            self._memory.keep_latencies(ready, known)
        for encoded, seconds in zip(ready, known, strict=True):
            yield LatencyProbe(encoded.request.item_id, encoded.request.condition, seconds)

    def verify(self, pairs: Sequence[tuple[ScoreRequest, Score]]) -> NumericsCheck | None:
        """Score a handful again by reference, and compare; None where there is nothing to."""
        return check_numerics(self, pairs, bound_nats=self.opened.precision.bound_nats)

    def _encode(self, request: ScoreRequest, index: int) -> EncodedRequest | Score:
        try:
            encoded = encode_request(self.opened.tokenizer, request, index=index)
        except ModelError as error:
            if request.prompt.messages and not self.opened.tokenizer.chat_template:
                raise  # no item of this run can be asked
            return _failed(request, str(error))
        window = self.opened.window
        if window is not None and encoded.length > window:
            return _failed(
                request,
                f"prompt_too_long: {encoded.length} tokens exceed the model's window of {window}",
                encoded=encoded,
            )
        return encoded

    def _compute(
        self, ready: Sequence[EncodedRequest], numerics: Numerics, budget: int
    ) -> Iterator[list[tuple[EncodedRequest, Outcome]]]:
        """Score what nobody remembers, a group at a time."""
        if not ready:
            return
        way = REFERENCE if numerics is Numerics.reference else self.way
        budget = min(budget, self._fitting)
        waiting = deque(way.group(ready, budget))
        while waiting:
            group = waiting.popleft()
            try:
                outcomes = way.score(self.model, group, self.opened.stop_ids, budget)
            except (MemoryError, RuntimeError) as error:
                if not _out_of_memory(error):
                    raise
                budget = self._fitting = budget // 2
                if budget < way.smallest_budget or (way is not TREE and len(group) == 1):
                    raise _too_large(group, error) from error
                log.warning("out of memory: going on with score.batch_tokens=%d", budget)
                free_device_memory()
                rest = [request for later in (group, *waiting) for request in later]
                waiting = deque(way.group(rest, budget))
                continue
            yield list(zip(group, outcomes, strict=True))

    @property
    def way(self) -> Way:
        """The fast way that this model takes, found out on first use on a machine."""
        if self._way is None:
            self._way = WAYS.get(self._memory.recall_way() or "") or self._choose_way()
        return self._way

    def _choose_way(self) -> Way:
        way = choose_way(
            self.model,
            stop_ids=self.opened.stop_ids,
            bound_nats=self.opened.precision.bound_nats,
        )
        self._memory.keep_way(way.name)
        return way

    def _finish(self, encoded: EncodedRequest, outcome: Outcome) -> Score:
        if isinstance(outcome, NonFiniteError):
            return _failed(encoded.request, str(outcome), encoded=encoded)
        scores, greedy = outcome
        text = self.opened.tokenizer.decode(list(greedy), skip_special_tokens=True)
        return Score(
            item_id=encoded.request.item_id,
            condition=encoded.request.condition,
            continuations=scores,
            greedy_text=first_line(text),
            greedy_ids=greedy,
            prompt_tokens=len(encoded.prompt_ids),
            prompt_sha256=encoded.prompt_sha256,
            estimator=self.estimator,
        )

    def _generate_timed(self, encoded: EncodedRequest) -> float:
        self._synchronise()
        start = time.perf_counter()
        generate_greedy(
            self.model,
            encoded.prompt_ids,
            max_new_tokens=max(1, encoded.request.max_new_tokens),
            stop_ids=(),
        )
        self._synchronise()
        return time.perf_counter() - start

    def _synchronise(self) -> None:
        if self.opened.device.startswith("cuda"):
            import torch

            torch.cuda.synchronize()


def _failed(request: ScoreRequest, reason: str, *, encoded: EncodedRequest | None = None) -> Score:
    return Score(
        item_id=request.item_id,
        condition=request.condition,
        prompt_tokens=len(encoded.prompt_ids) if encoded else 0,
        prompt_sha256=encoded.prompt_sha256 if encoded else "",
        reason=reason,
    )


def _too_large(group: Sequence[EncodedRequest], error: BaseException) -> ModelError:
    largest = max(group, key=lambda encoded: encoded.length)
    return ModelError(
        f"out of memory on item {largest.request.item_id} alone ({largest.length} tokens). Use a "
        f"smaller precision or a device with more memory. ({str(error).splitlines()[0]})"
    )


def _out_of_memory(error: BaseException) -> bool:
    import torch

    # The CPU allocator raises a plain RuntimeError.
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        "not enough memory" in str(error)
    )


def free_device_memory() -> None:
    """Give unused device memory back, after references to it are gone."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def count_tokens(scores: Sequence[Score]) -> int:
    """Tokens that the scores took: prompts, continuations and generated ones."""
    return sum(
        s.prompt_tokens + sum(len(c.token_ids) for c in s.continuations) + len(s.greedy_ids)
        for s in scores
        if s.ok
    )


def reset_peak_memory() -> None:
    """Start the count of `peak_memory_gb` anew on CUDA devices."""
    import torch

    for index in range(torch.cuda.device_count()):
        torch.cuda.reset_peak_memory_stats(index)


def peak_memory_gb() -> float:
    """Peak memory in GB: of all CUDA devices since the reset, or of this process on a CPU.

    The process's own peak never falls, so on a CPU it includes the earlier jobs of a sweep.
    """
    import torch

    if torch.cuda.is_available():
        devices = range(torch.cuda.device_count())
        return sum(torch.cuda.max_memory_allocated(i) for i in devices) / 1e9
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
