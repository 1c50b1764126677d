"""One job, end to end: items, contexts, prompts, scores, metrics, figures, an MLflow run."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncu_exp import provenance, terminal, tracking
from ncu_exp.config import Config, Numerics
from ncu_exp.errors import ModelError, UserError
from ncu_exp.records import (
    Arm,
    Condition,
    Continuation,
    Item,
    LatencyProbe,
    Score,
    ScoreRequest,
)
from ncu_exp.scoring.engine import EngineHolder, EnginePlan, plan_engine

if TYPE_CHECKING:
    from ncu_exp.data.corpora import LoadedItems
    from ncu_exp.metrics import Metric
    from ncu_exp.scoring.local import LocalEngine
    from ncu_exp.scoring.numerics import NumericsCheck

log = logging.getLogger(__name__)

LIVE_METRICS_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class JobContext:
    """What Hydra knows of the job: its folder, its place in a sweep, the options chosen."""

    output_dir: Path
    choices: Mapping[str, str]
    sweep_id: str | None = None
    job_num: int = 0


@dataclass(frozen=True, slots=True)
class JobResult:
    """A finished job."""

    run_id: str
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """What the engine gave: scores in the order of the requests, latencies, cost."""

    scores: list[Score]
    probes: list[LatencyProbe]
    cost: dict[str, float]
    check: NumericsCheck | None


def run_job(config: Config, job: JobContext, *, engines: EngineHolder) -> JobResult:
    """Run a job inside an MLflow run, which ends FINISHED, FAILED with its error, or KILLED.

    Whatever ended it is raised again after it was logged.
    """
    run = tracking.start_run(
        config.tracking, name=run_name(config), tags=_tags(config, job), params=_params(config, job)
    )
    try:
        with tracking.system_metrics(config.tracking, run):
            metrics = _run(config, job, run=run, engines=engines)
    except KeyboardInterrupt:
        run.fail("interrupted", status="KILLED")
        raise
    except UserError as error:
        run.fail(f"{type(error).__name__}: {error}")
        raise
    except BaseException as error:
        import traceback

        run.fail(f"{type(error).__name__}: {error}\n\n{traceback.format_exc()}")
        raise
    run.finish()
    return JobResult(run.run_id, tuple(metrics))


def run_name(config: Config) -> str:
    """What a person reads in the list of runs: model, corpus, conditions, precision."""
    names = [c.value for c in config.condition.names]
    conditions = "all" if names == ["zero", "oracle", "adversarial", "noise"] else "+".join(names)
    parts = (config.model.label, config.dataset.name.value, conditions, config.precision.name.value)
    return " · ".join(parts)


def _run(
    config: Config, job: JobContext, *, run: tracking.Run, engines: EngineHolder
) -> list[Metric]:
    from ncu_exp.data.corpora import load_items
    from ncu_exp.metrics import aggregate, latency_metrics
    from ncu_exp.perturb.audit import build_arms, context_hashes, perturbations_sha256
    from ncu_exp.prompt import check_prompt
    from ncu_exp.results import Results, loggable, write_results
    from ncu_exp.tables import items_table

    plan = plan_engine(config.model, config.precision.name, prompt=config.prompt.name)
    check_prompt(config.prompt)
    run.log_params({"precision.name": plan.precision.name.value, "device": plan.device})

    loaded = load_items(config.dataset)
    _say_skipped(loaded)
    run.log_dataset(
        tracking.DatasetInput(
            config.dataset.name.value, loaded.source, loaded.sha256, len(loaded.items)
        )
    )
    conditions = asked_conditions(config.condition.names)
    arms, perturbations = build_arms(loaded.items, conditions, config.perturb)
    run.set_tags(
        {
            "dataset_sha256": loaded.sha256,
            "perturbation_sha256": perturbations_sha256(perturbations) if perturbations else None,
            **{f"context_sha256.{c.value}": h for c, h in context_hashes(arms).items()},
        }
    )
    requests = build_requests(loaded.items, arms, config)
    scored = _score(config, plan, requests, run=run, engines=engines)

    table = items_table(loaded.items, arms, scores=scored.scores, settings=config.metrics)
    metrics = aggregate(table, settings=config.metrics)
    metrics += latency_metrics(scored.probes)
    facts = _facts(plan, config)
    results = Results(loaded, perturbations, table, metrics, scored.probes, facts)
    folder = write_results(results, config, job.output_dir / "results")
    run.log_metrics(loggable(metrics) | scored.cost)
    run.log_folder(folder)
    run.announce_table("tables/items_preview.json")
    _refuse_bad_numerics(scored.check)
    return metrics


def asked_conditions(names: Sequence[Condition]) -> list[Condition]:
    """The conditions of a job, in order; the zero condition is always among them.

    Every other condition is measured against the surprisal without context.
    """
    return list(dict.fromkeys([Condition.zero, *names]))


def build_requests(
    items: Sequence[Item], arms: Sequence[Arm], config: Config
) -> list[ScoreRequest]:
    """A request for every arm that exists; the fabricated answer is scored where there is one."""
    from ncu_exp.prompt import build_prompt

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


def _score(
    config: Config,
    plan: EnginePlan,
    requests: Sequence[ScoreRequest],
    *,
    run: tracking.Run,
    engines: EngineHolder,
) -> Scored:
    from ncu_exp.scoring.local import peak_memory_gb, reset_peak_memory
    from ncu_exp.scoring.numerics import check_numerics

    reset_peak_memory()
    engine = engines.open(plan, cache_dir=Path(config.cache.dir).expanduser())
    run.log_params(
        {"model.revision": engine.loaded.revision, "model.params": engine.loaded.n_params}
    )
    scores, cost = _score_with_progress(config, engine, requests, run=run)
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
    probes = list(engine.latency(latency_requests(requests, config.latency.items)))
    cost["memory/peak_gb"] = peak_memory_gb()
    return Scored(scores, probes, cost, check)


def _score_with_progress(
    config: Config, engine: LocalEngine, requests: Sequence[ScoreRequest], *, run: tracking.Run
) -> tuple[list[Score], dict[str, float]]:
    from ncu_exp.scoring.local import count_tokens

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
            if now - told > LIVE_METRICS_EVERY_S:
                told = now
                live = {"progress/requests_done": len(scores), "progress/requests_per_s": per_s}
                run.log_metrics(live, step=len(scores))
    seconds = max(time.perf_counter() - start, 1e-9)
    ordered = [scores[i] for i in range(len(requests))]
    cost = {
        "progress/requests_done": float(len(ordered)),
        "progress/requests_per_s": len(ordered) / seconds,
        "throughput/items_per_s": len({r.item_id for r in requests}) / seconds,
        "throughput/tokens_per_s": count_tokens(ordered) / seconds,
    }
    return ordered, cost


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


def _refuse_bad_numerics(check: NumericsCheck | None) -> None:
    if check is not None and check.exceeded:
        raise ModelError(
            f"the fast path differs from the reference by {check.max_abs_diff_nats:.2e} nats, "
            f"above the bound of {check.bound_nats:.0e} for this precision, on: "
            f"{'; '.join(check.exceeded)}. Use score.numerics=reference with this model, and "
            "please report it."
        )


def _say_skipped(loaded: LoadedItems) -> None:
    if loaded.skipped:
        log.warning("%d of %d rows were skipped:", len(loaded.skipped), loaded.total)
        for row in loaded.skipped[:20]:
            log.warning("  row %s, %s: %s", row.row, row.field, row.reason)


def _facts(plan: EnginePlan, config: Config) -> dict[str, str]:
    return {
        "Precision": f"{plan.precision.name.value} on {plan.device}",
        "Scoring": f"local weights, exact, {config.score.numerics.value} numerics",
    }


def _params(config: Config, job: JobContext) -> dict[str, Any]:
    """The chosen options and the keys that people compare by; not every key there is."""
    groups = ("model", "dataset", "condition", "prompt", "precision", "experiment")
    return {g: job.choices.get(g) for g in groups} | {
        "model.name": config.model.name,
        "model.label": config.model.label,
        "model.engine": config.model.engine.value,
        "model.params_b": config.model.params_b,
        "dataset.path": config.dataset.path,
        "dataset.limit": config.dataset.limit,
        "dataset.seed": config.dataset.seed,
        "dataset.context": config.dataset.context.value,
        "perturb.policy": config.perturb.policy.value,
        "perturb.seed": config.perturb.seed,
        "score.numerics": config.score.numerics.value,
        "score.max_new_tokens": config.score.max_new_tokens,
        "latency.items": config.latency.items,
        "metrics.tau": config.metrics.tau,
        "metrics.epsilon": config.metrics.epsilon,
    }


def _tags(config: Config, job: JobContext) -> dict[str, Any]:
    return {
        "sweep": job.sweep_id,
        "job_num": job.job_num,
        "config_sha256": provenance.config_sha256(config),
        "mlflow.user": provenance.user(),
        "mlflow.source.name": "python -m ncu_exp",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": provenance.git_commit(),
        **{f"version.{k}": v for k, v in provenance.versions().items()},
    }
