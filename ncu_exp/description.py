"""What a run says of itself in the tracking store: its name, parameters, tags and facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncu_exp import provenance
from ncu_exp.config import Config, EngineName, EstimatorName, PromptStyle
from ncu_exp.scoring.engine import EnginePlan, estimator_of


@dataclass(frozen=True, slots=True)
class JobContext:
    """What Hydra knows of the job: its folder, its place in a sweep, the options chosen."""

    output_dir: Path
    choices: Mapping[str, str]
    sweep_id: str | None = None
    job_num: int = 0


# How a chat API's numbers are obtained.
_CHAT = {
    EstimatorName.auto: "chat API, intervals from {k} alternatives per token",
    EstimatorName.paper: "chat API by the paper's convention (-15 nats where a token is missing): "
    "not comparable with exact scores or intervals",
    EstimatorName.sampled: "shares of {samples} sampled answers with Wilson's 95% intervals, of "
    "whole answers: not comparable with scores per token",
}


def run_name(config: Config) -> str:
    """What a person reads in the list of runs: model, corpus, conditions, precision, prompt."""
    names = [c.value for c in config.condition.names]
    conditions = "all" if names == ["zero", "oracle", "adversarial", "noise"] else "+".join(names)
    parts = [config.model.label, config.dataset.name.value, conditions, config.precision.name.value]
    if config.prompt.name is not PromptStyle.directive:  # the default goes without saying
        parts.append(config.prompt.name.value)
    if config.dataset.shard is not None:
        parts.append(f"shard {config.dataset.shard}")
    estimator = estimator_of(config.model, config.estimator)
    if estimator is not EstimatorName.auto:
        parts.append(f"{estimator.value} estimator")
    return " · ".join(parts)


def engine_facts(plan: EnginePlan, config: Config) -> dict[str, str]:
    """How the numbers were obtained, for the head of the report."""
    if not plan.is_endpoint:
        return {
            "Precision": f"{plan.precision.name.value} on {plan.device}",
            "Scoring": f"local weights, exact, {config.score.numerics.value} numerics",
        }
    if plan.model.engine is EngineName.openai_completions:
        told = "log-probs of prompts, exact"
    else:
        told = _CHAT[plan.estimator].format(k=plan.model.top_logprobs, samples=plan.samples)
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
        "dataset.shard": config.dataset.shard,
        "dataset.context": config.dataset.context.value,
        "perturb.policy": config.perturb.policy.value,
        "perturb.seed": config.perturb.seed,
        "perturb.path": config.perturb.path,
        "estimator": estimator_of(config.model, config.estimator).value,
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
        **machine_tags(),
    }


def machine_tags() -> dict[str, Any]:
    """Who runs it, with which code and which versions."""
    return {
        "mlflow.user": provenance.user(),
        "mlflow.source.name": "python -m ncu_exp",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": provenance.git_commit(),
        **{f"version.{k}": v for k, v in provenance.versions().items()},
    }
