"""Jobs that need the same weights share a worker."""

from __future__ import annotations

from itertools import product

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import open_dict

from ncu_exp.config import conf_dir, register
from ncu_exp.errors import UserError
from ncu_exp.launchers.grain import Job, grouped

DEFAULT = ["model", "precision", "dataset.shard"]


def swept(*axes: str) -> list[Job]:
    """The jobs of a sweep over axes such as `model=a,b`, the last one fastest."""
    choices = []
    for axis in axes:
        key, _, values = axis.partition("=")
        choices.append([f"{key}={value}" for value in values.split(",")])
    GlobalHydra.instance().clear()
    register()
    jobs = []
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        for num, overrides in enumerate(product(*choices)):
            config = compose("config", overrides=list(overrides), return_hydra_config=True)
            with open_dict(config):
                config.hydra.job.num = num
            jobs.append(Job(num, config))
    return jobs


def numbers(jobs: list[Job], grain: list[str]) -> list[list[int]]:
    return [[job.num for job in of_worker] for of_worker in grouped(jobs, grain)]


def test_a_worker_for_each_model_and_precision_in_the_sweep_s_order() -> None:
    jobs = swept("dataset=sample,nq", "model=smollm2,qwen7b", "precision=fp32,bf16")
    assert numbers(jobs, DEFAULT) == [[0, 4], [1, 5], [2, 6], [3, 7]]


@pytest.mark.parametrize(
    "launcher", ["slurm", "slurm_72b", "slurm_72b_bf16", "ray", "ray_72b", "joblib"]
)
def test_it_is_the_grain_of_each_launcher(launcher: str) -> None:
    [job] = swept(f"hydra/launcher={launcher}")
    assert job.config.hydra.launcher.grain == DEFAULT


def test_parts_of_a_dataset_are_done_at_once() -> None:
    jobs = swept("dataset.shard=0/2,1/2", "condition=zero,oracle")
    assert numbers(jobs, DEFAULT) == [[0, 1], [2, 3]]


def test_what_a_job_is_asked_besides_makes_no_worker() -> None:
    jobs = swept("prompt=directive,plain", "condition=zero,oracle", "metrics.tau=0.05,0.1")
    assert numbers(jobs, DEFAULT) == [list(range(8))]


def test_a_key_of_the_model_makes_other_weights() -> None:
    jobs = swept("model.revision=main,v2", "condition=zero,oracle")
    assert numbers(jobs, DEFAULT) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("grain", "expected"),
    [
        ([], [[0, 1, 2, 3]]),
        (["dataset.limit"], [[0, 1], [2, 3]]),
        (["hydra.job.num"], [[0], [1], [2], [3]]),
        (["condition"], [[0, 2], [1, 3]]),
    ],
)
def test_the_grain_can_be_named(grain: list[str], expected: list[list[int]]) -> None:
    jobs = swept("dataset.limit=1,2", "condition=zero,oracle")
    assert numbers(jobs, grain) == expected


def test_a_key_that_is_empty_is_a_key() -> None:
    assert numbers(swept("dataset.limit=null,2"), ["dataset.limit"]) == [[0], [1]]


@pytest.mark.parametrize("key", ["modle", "model.nmae", "model.name.more", "nothing.at.all"])
def test_a_typo_in_the_grain_is_named(key: str) -> None:
    with pytest.raises(UserError, match=f"'{key}'"):
        grouped(swept("condition=zero"), [key])
