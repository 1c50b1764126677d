"""From arms to scores: the requests of a job, its engine, progress, latency and cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ncu_exp import terminal, tracking
from ncu_exp.config import Config, Numerics
from ncu_exp.prompt import build_prompt
from ncu_exp.records import (
    Arm,
    Condition,
    Continuation,
    Item,
    LatencyProbe,
    Score,
    ScoreRequest,
)
from ncu_exp.scoring.engine import EngineHolder, EnginePlan

if TYPE_CHECKING:
    from ncu_exp.scoring.local import LocalEngine
    from ncu_exp.scoring.numerics import NumericsCheck

LIVE_METRICS_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Scored:
    """What the engine gave: scores in the order of the requests, latencies, cost."""

    scores: list[Score]
    probes: list[LatencyProbe]
    cost: dict[str, float]
    check: NumericsCheck | None


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


def score(
    config: Config,
    plan: EnginePlan,
    requests: Sequence[ScoreRequest],
    *,
    run: tracking.Run,
    engines: EngineHolder,
) -> Scored:
    """Score every request on the planned engine, check a fast run, and probe latency."""
    from ncu_exp.scoring.local import count_tokens, peak_memory_gb, reset_peak_memory
    from ncu_exp.scoring.numerics import check_numerics

    reset_peak_memory()
    cache_dir = Path(config.cache.dir).expanduser()
    store = cache_dir / "scores.sqlite" if config.cache.scores else None
    engine = engines.open(plan, cache_dir=cache_dir, store=store)
    asked, recalled = engine.asked, engine.recalled
    run.log_params({"model.revision": engine.opened.revision})
    start, loading = time.perf_counter(), engine.loading_s
    scores = _score_with_progress(config, engine, requests, run=run)
    seconds = time.perf_counter() - start - (engine.loading_s - loading)
    cost = {}
    if engine.recalled == recalled:  # what was remembered says nothing of speed
        cost["throughput/items_per_s"] = len({r.item_id for r in requests}) / seconds
        cost["throughput/tokens_per_s"] = count_tokens(scores) / seconds
    check = None
    if config.score.numerics is Numerics.fast:
        check = check_numerics(
            engine,
            requests,
            scores,
            count=config.score.check_requests,
            seed=config.dataset.seed,
        )
    if check is not None:
        cost["numerics/max_abs_diff_nats"] = check.max_abs_diff_nats
    cost["store/hit_rate"] = (engine.recalled - recalled) / max(engine.asked - asked, 1)
    probes = list(engine.latency(latency_requests(requests, config.latency.items)))
    cost["memory/peak_gb"] = peak_memory_gb()
    return Scored(scores, probes, cost, check)


def _score_with_progress(
    config: Config, engine: LocalEngine, requests: Sequence[ScoreRequest], *, run: tracking.Run
) -> list[Score]:
    # Work is counted in characters, so that the time left is right though lengths differ.
    work = [_characters(r) for r in requests]
    scores: dict[int, Score] = {}
    start = told = time.perf_counter()
    with terminal.progress_bar(config.model.label, work=sum(work)) as bar:
        for index, score in engine.score(
            requests, numerics=config.score.numerics, batch_tokens=config.score.batch_tokens
        ):
            scores[index] = score
            now = time.perf_counter()
            per_s = len(scores) / max(now - start, 1e-9)
            bar.advance(work[index], done=len(scores), total=len(requests), per_s=per_s)
            if now - told > LIVE_METRICS_EVERY_S or len(scores) == len(requests):
                told = now
                live = {"progress/requests_done": len(scores), "progress/requests_per_s": per_s}
                run.log_metrics(live, step=len(scores))
    return [scores[i] for i in range(len(requests))]


def _characters(request: ScoreRequest) -> int:
    return len(request.prompt.text) + sum(len(m.content) for m in request.prompt.messages)


def latency_requests(requests: Sequence[ScoreRequest], n_items: int) -> list[ScoreRequest]:
    """The requests of the first `n_items` items that have every condition, so that they compare."""
    by_item: dict[str, list[ScoreRequest]] = {}
    for request in requests:
        by_item.setdefault(request.item_id, []).append(request)
    most = max((len(group) for group in by_item.values()), default=0)
    whole = [group for group in by_item.values() if len(group) == most]
    return [request for group in whole[:n_items] for request in group]
