"""What a run says of itself in the tracking store: its name, parameters, tags and facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncu_exp import provenance
from ncu_exp.config import Config, EngineName, EstimatorName
from ncu_exp.scoring.engine import EnginePlan


@dataclass(frozen=True, slots=True)
class JobContext:
    """What Hydra knows of the job: its folder, its place in a sweep, the options chosen."""

    output_dir: Path
    choices: Mapping[str, str]
    sweep_id: str | None = None
    job_num: int = 0


def run_name(config: Config) -> str:
    """What a person reads in the list of runs: model, corpus, conditions, precision."""
    names = [c.value for c in config.condition.names]
    conditions = "all" if names == ["zero", "oracle", "adversarial", "noise"] else "+".join(names)
    parts = [config.model.label, config.dataset.name.value, conditions, config.precision.name.value]
    if config.estimator is not EstimatorName.auto:
        parts.append(f"{config.estimator.value} estimator")
    return " · ".join(parts)


def engine_facts(plan: EnginePlan, config: Config) -> dict[str, str]:
    """How the numbers were obtained, for the head of the report."""
    if not plan.is_endpoint:
        return {
            "Precision": f"{plan.precision.name.value} on {plan.device}",
            "Scoring": f"local weights, exact, {config.score.numerics.value} numerics",
        }
    how = {
        EstimatorName.paper: "chat API by the paper's convention (-15 nats where a token is "
        "missing): not comparable with exact scores or intervals",
        EstimatorName.sampled: f"shares of {plan.samples} sampled answers with Wilson's 95% "
        "intervals, of whole answers: not comparable with scores per token",
    }
    exact = plan.model.engine is EngineName.openai_completions
    otherwise = (
        "log-probs of prompts, exact"
        if exact
        else f"chat API, intervals from {plan.model.top_logprobs} alternatives per token"
    )
    told = otherwise if exact else how.get(plan.estimator, otherwise)
    return {"Served at": plan.model.base_url or "its vendor's address", "Scoring": told}


def run_params(config: Config, job: JobContext) -> dict[str, Any]:
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
        "perturb.path": config.perturb.path,
        "estimator": config.estimator.value,
        "score.numerics": config.score.numerics.value,
        "score.max_new_tokens": config.score.max_new_tokens,
        "latency.items": config.latency.items,
        "metrics.tau": config.metrics.tau,
        "metrics.epsilon": config.metrics.epsilon,
    }


def run_tags(config: Config, job: JobContext) -> dict[str, Any]:
    """What the run can be found and checked by."""
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
