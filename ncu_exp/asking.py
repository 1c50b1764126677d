"""From arms to scores: the requests of a job, its engine, progress, latency and cost."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ncu_exp import terminal, tracking
from ncu_exp.config import Config, Numerics
from ncu_exp.contents import SCORES
from ncu_exp.errors import EndpointError, UserError
from ncu_exp.prompt import build_prompt
from ncu_exp.records import (
    Arm,
    Condition,
    Continuation,
    Item,
    LatencyProbe,
    NumericsCheck,
    Score,
    ScoreRequest,
)
from ncu_exp.scoring.engine import Engine, EnginePlan
from ncu_exp.scoring.holder import EngineHolder

log = logging.getLogger(__name__)

LIVE_METRICS_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What was seen while asking: latencies, cost, and the check of a fast run, what failed."""

    probes: list[LatencyProbe]
    cost: dict[str, float]
    check: NumericsCheck | None
    failure: UserError | None = None  # of the job, once its results are written


def asked_conditions(names: Sequence[Condition]) -> list[Condition]:
    """The conditions of a job, in order; the zero condition is always among them.

    Every other condition is measured against the surprisal without context.
    """
    return list(dict.fromkeys([Condition.zero, *names]))


def build_requests(
    items: Sequence[Item], arms: Sequence[Arm], config: Config
) -> list[ScoreRequest]:
    """A request for every arm that exists; the fabricated answer is scored where there is one."""
    by_id = {item.item_id: item for item in items}
    requests = []
    for arm in arms:
        if not arm.ok:
            continue
        item = by_id[arm.item_id]
        answers = [(Continuation.true, item.answer)]
        if arm.fabricated is not None:
            answers.append((Continuation.fabricated, arm.fabricated))
        aliases = item.aliases[: config.score.aliases]
        answers += [(Continuation.alias, alias) for alias in aliases]
        requests.append(
            ScoreRequest(
                item_id=item.item_id,
                condition=arm.condition,
                prompt=build_prompt(item.question, arm.context, config.prompt),
                continuations=tuple(answers),
                max_new_tokens=config.score.max_new_tokens,
            )
        )
    return requests


@contextmanager
def asking(
    config: Config, plan: EnginePlan, *, run: tracking.Run, engines: EngineHolder, arms: int
) -> Iterator[Asker]:
    """The planned engine behind a progress bar over `arms`, those that are excluded included."""
    from ncu_exp.scoring.local import reset_peak_memory

    reset_peak_memory()
    cache_dir = Path(config.cache.dir).expanduser()
    store = cache_dir / SCORES if config.cache.scores else None
    engine = engines.open(plan, cache_dir=cache_dir, store=store)
    log.info("%s: %s", config.model.label, engine.preflight())
    run.log_params({"model.revision": engine.revision})
    with terminal.progress_bar(config.model.label, arms=arms) as bar:
        yield Asker(config, engine, run=run, bar=bar)


class Asker:
    """Asks the engine of a job block by block, and keeps the little that the end needs.

    That is a handful of requests to check a fast run by, and those that probe latency.
    """

    def __init__(
        self, config: Config, engine: Engine, *, run: tracking.Run, bar: terminal.Bar
    ) -> None:
        from ncu_exp.scoring.numerics import Handful

        self._config, self._engine = config, engine
        self._run, self._bar = run, bar
        self._handful = Handful(config.score.check_requests, seed=config.dataset.seed)
        self._probed: list[ScoreRequest] = []
        self._start = self._told = time.perf_counter()
        self._seconds = 0.0  # of the engine, without loading
        self._requests = self._items = self._tokens = 0

    def watch(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """The items one by one, with a bar of their own beside that of the requests."""
        return self._bar.watch(items, title)

    def ask(self, requests: Sequence[ScoreRequest], *, excluded: int) -> list[Score]:
        """The scores of a block, in the order of its requests.

        All requests of an item are in one block; `excluded` counts the block's arms without one.
        """
        from ncu_exp.scoring.local import count_tokens

        self._bar.advance(excluded)
        start, loading = time.perf_counter(), self._engine.loading_s
        found = self._score(requests)
        loading = self._engine.loading_s - loading
        self._seconds += time.perf_counter() - start - loading
        scores = [found[index] for index in range(len(requests))]
        for request, score in zip(requests, scores, strict=True):
            self._handful.offer(request, score)
        self._probed = latency_requests([*self._probed, *requests], self._config.latency.items)
        self._items += len({request.item_id for request in requests})
        self._tokens += count_tokens(scores)
        return scores

    def _score(self, requests: Sequence[ScoreRequest]) -> dict[int, Score]:
        settings = self._config.score
        found: dict[int, Score] = {}
        for index, score in self._engine.score(
            requests, numerics=settings.numerics, batch_tokens=settings.batch_tokens
        ):
            found[index] = score
            self._requests += 1
            self._bar.advance(1, per_s=self._per_s, usd=self._engine.spent.get("api/usd"))
            if time.perf_counter() - self._told > LIVE_METRICS_EVERY_S:
                self._tell()
        return found

    @property
    def _per_s(self) -> float:
        return self._requests / max(time.perf_counter() - self._start, 1e-9)

    def _tell(self) -> None:
        self._told = time.perf_counter()
        live = {
            "progress/requests_done": self._requests,
            "progress/requests_per_s": self._per_s,
        }
        live |= {f"progress/{k.rpartition('/')[2]}": v for k, v in self._engine.spent.items()}
        self._run.log_metrics(live, step=self._requests)

    def finish(self) -> Asked:
        """Check a fast run, probe latency, and count what it all took."""
        from ncu_exp.scoring.local import peak_memory_gb

        self._tell()
        engine = self._engine
        cost = {"store/hit_rate": engine.recalled / max(engine.asked, 1)}
        if not engine.recalled:  # what was remembered says nothing of speed
            cost["throughput/items_per_s"] = self._items / self._seconds
            cost["throughput/tokens_per_s"] = self._tokens / self._seconds
        check, failure = None, None
        fast = self._config.score.numerics is Numerics.fast
        try:
            check = engine.verify(self._handful.pairs if fast else ())
        except EndpointError as error:
            failure = error
        if check is not None:
            cost["numerics/max_abs_diff_nats"] = check.max_abs_diff_nats
        probes = list(engine.latency(self._probed))
        cost["memory/peak_gb"] = peak_memory_gb()
        return Asked(probes, cost | engine.spent, check, failure)


def latency_requests(requests: Sequence[ScoreRequest], n_items: int) -> list[ScoreRequest]:
    """The requests of the first `n_items` items that have every condition, so that they compare."""
    by_item: dict[str, list[ScoreRequest]] = {}
    for request in requests:
        by_item.setdefault(request.item_id, []).append(request)
    most = max((len(group) for group in by_item.values()), default=0)
    whole = [group for group in by_item.values() if len(group) == most]
    return [request for group in whole[:n_items] for request in group]
