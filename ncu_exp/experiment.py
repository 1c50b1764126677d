"""One job, end to end: items, contexts, prompts, scores, metrics, figures, an MLflow run."""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ncu_exp import tracking
from ncu_exp.asking import Asked, asked_conditions, asking, build_requests
from ncu_exp.config import Config
from ncu_exp.description import JobContext, engine_facts, run_name, run_params, run_tags
from ncu_exp.errors import ModelError, UserError
from ncu_exp.records import Condition, NumericsCheck
from ncu_exp.scoring.engine import EnginePlan, plan_engine
from ncu_exp.scoring.holder import EngineHolder

if TYPE_CHECKING:
    from ncu_exp.data.corpora import LoadedItems
    from ncu_exp.results import Findings, ResultsWriter

log = logging.getLogger(__name__)

BLOCK_ITEMS = 256  # items whose contexts and scores are in memory at once


@dataclass(frozen=True, slots=True)
class JobResult:
    """A finished job: its MLflow run (empty where that has yet to be uploaded), what it found."""

    run_id: str
    findings: Findings


def run_job(config: Config, job: JobContext, *, engines: EngineHolder) -> JobResult:
    """Run a job inside an MLflow run, which ends FINISHED, FAILED with its error, or KILLED.

    Whatever ended it is raised again after it was logged.
    """
    run = tracking.start_run(
        config.tracking,
        name=run_name(config),
        tags=run_tags(config, job),
        params=run_params(config, job),
        folder=job.output_dir,
    )
    tracking.end_earlier(job.output_dir, config.tracking, run)
    try:
        with tracking.system_metrics(config.tracking, run):
            findings = _run(config, job, run=run, engines=engines)
    except (KeyboardInterrupt, SystemExit):  # the latter as well where Slurm queues it again
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
    return JobResult(run.run_id, findings)


def plan_of(config: Config) -> EnginePlan:
    """How the job's model is to be asked; raises UserError where it cannot be."""
    return plan_engine(
        config.model,
        config.precision.name,
        prompt=config.prompt.name,
        estimator=config.estimator,
        api=config.api,
        samples=config.score.samples,
    )


def preflight(config: Config, *, engines: EngineHolder) -> str:
    """What the job's engine can do, in a line; for an endpoint, after one tiny request."""
    plan = plan_of(config)
    engine = engines.open(plan, cache_dir=Path(config.cache.dir).expanduser(), store=None)
    return engine.preflight()


def _run(config: Config, job: JobContext, *, run: tracking.Run, engines: EngineHolder) -> Findings:
    from ncu_exp.data.corpora import load_items
    from ncu_exp.perturb.tagger import draw_versions
    from ncu_exp.prompt import check_prompt
    from ncu_exp.results import ResultsWriter, loggable

    plan = plan_of(config)
    check_prompt(config.prompt)
    run.log_params({"precision.name": plan.precision.name.value, "device": plan.device})

    loaded = load_items(config.dataset)
    _say_skipped(loaded)
    run.log_dataset(
        tracking.DatasetInput(
            config.dataset.name.value, loaded.source, loaded.sha256, len(loaded.items)
        )
    )
    run.set_tags(
        {
            "dataset_sha256": loaded.sha256,
            "version.spacy_model": draw_versions(config.perturb.spacy_model).get("spacy_model"),
        }
    )
    with ResultsWriter(job.output_dir / "results", loaded, config) as results:
        asked = _ask_all(loaded, config, plan, run=run, engines=engines, results=results)
        run.set_tags(
            {
                "perturbation_sha256": results.digests.perturbations,
                **{f"context_sha256.{c.value}": h for c, h in results.digests.contexts.items()},
            }
        )
        findings = results.finish(asked.probes, engine_facts(plan, config))
    run.log_metrics(loggable(findings.metrics) | asked.cost)
    run.log_folder(results.folder)
    run.announce_table("tables/items_preview.json")
    _refuse_bad_numerics(asked.check)
    if asked.failure is not None:
        raise asked.failure
    return findings


def _ask_all(
    loaded: LoadedItems,
    config: Config,
    plan: EnginePlan,
    *,
    run: tracking.Run,
    engines: EngineHolder,
    results: ResultsWriter,
) -> Asked:
    """Ask for every item, a block at a time, so that memory does not grow with their number."""
    from ncu_exp.contents import PERTURBATIONS, ContentStore
    from ncu_exp.perturb.audit import build_arms
    from ncu_exp.perturb.policies import make_perturb

    items, conditions = loaded.items, asked_conditions(config.condition.names)
    with ExitStack() as stack:
        arms_of_all = len(items) * len(conditions)
        asker = stack.enter_context(
            asking(config, plan, run=run, engines=engines, arms=arms_of_all)
        )
        perturb = None
        if Condition.adversarial in conditions:
            store = None
            if config.cache.perturbations:
                path = Path(config.cache.dir).expanduser() / PERTURBATIONS
                store = stack.enter_context(closing(ContentStore(path)))
            watch = partial(asker.watch, title="answers to borrow")
            perturb = make_perturb(loaded.drawn, config.perturb, store=store, watch=watch)
        for first in range(0, len(items), BLOCK_ITEMS):
            block = items[first : first + BLOCK_ITEMS]
            arms, perturbations = build_arms(block, conditions, config.perturb, perturb=perturb)
            requests = build_requests(block, arms, config)
            scores = asker.ask(requests, excluded=len(arms) - len(requests))
            results.add(block, arms, perturbations=perturbations, scores=scores)
    return asker.finish()


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
