"""Every option of every group composes, and what is wrong is said at composition."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import ConfigCompositionException
from omegaconf import OmegaConf
from omegaconf.errors import ConfigAttributeError, ValidationError

from ncu_exp.config import Config, Corpus, PrecisionName, conf_dir, from_dictconfig, register
from ncu_exp.errors import UserError
from ncu_exp.records import Condition
from tests.runs import HEAVY

# Values that an option leaves to the user, by file.
REQUIRED = {
    "model/hf": ["model.name=some/model"],
    "dataset/local": ["dataset.path=x.jsonl"],
    "tracking/server": ["tracking.uri=http://127.0.0.1:5000"],
}
OPTIONS = sorted(
    str(path.relative_to(conf_dir()).with_suffix(""))
    for path in conf_dir().rglob("*.yaml")
    if path.name != "config.yaml"
)


@pytest.fixture(scope="module", autouse=True)
def hydra_ready() -> Iterator[None]:
    GlobalHydra.instance().clear()
    register()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        yield


def composed(*overrides: str) -> Config:
    cfg = compose("config", overrides=list(overrides), return_hydra_config=True)
    cfg.hydra.runtime.cwd = "/somewhere"
    OmegaConf.set_readonly(cfg.hydra, False)
    from hydra.core.hydra_config import HydraConfig

    HydraConfig.instance().set_config(cfg)
    OmegaConf.set_struct(cfg, False)
    del cfg["hydra"]
    return from_dictconfig(cfg)


def test_there_are_options_in_every_group() -> None:
    groups = {option.partition("/")[0] for option in OPTIONS}
    assert groups == {
        "model", "dataset", "condition", "precision", "prompt", "tracking", "experiment", "hydra",
    }  # fmt: skip


@pytest.mark.parametrize("option", [o for o in OPTIONS if not o.startswith("hydra/")])
def test_every_file_composes_alone(option: str) -> None:
    group, _, name = option.partition("/")
    config = composed(f"{group}={name}", *REQUIRED.get(option, []))
    assert config.condition.names


def test_the_defaults() -> None:
    config = composed()
    assert config.model.label == "SmolLM2-135M"
    assert config.dataset.name is Corpus.sample
    assert [c.value for c in config.condition.names] == ["zero", "oracle", "adversarial", "noise"]
    assert config.precision.name is PrecisionName.auto
    assert (config.metrics.tau, config.metrics.epsilon) == (0.05, 1e-5)
    assert config.score.max_new_tokens == 5
    assert config.tracking.uri == "sqlite:////somewhere/mlruns/mlflow.db"


def test_a_base_model_is_asked_in_plain_text_unless_told_otherwise() -> None:
    assert composed("model=qwen7b-base").prompt.name.value == "plain"
    assert composed("model=qwen7b-base", "prompt=grounded").prompt.name.value == "grounded"
    assert composed("model=qwen7b").prompt.name.value == "directive"
    assert composed("model=qwen7b", "experiment=base_vs_instruct").prompt.name.value == "plain"


def test_the_label_of_a_named_model_is_its_name() -> None:
    assert composed("model=hf", "model.name=org/thing").model.label == "org/thing"


def test_one_condition() -> None:
    assert composed("condition=adversarial").condition.names == [Condition.adversarial]


@pytest.mark.parametrize(
    ("overrides", "error", "told"),
    [
        (["model=nothing"], ConfigCompositionException, "smollm2"),
        (["dataset.limt=3"], ConfigCompositionException, "limt"),
        (["dataset.limit=many"], ConfigCompositionException, "many"),
        (["score.numerics=quick"], ConfigCompositionException, "reference"),
        (["precision.name=fp8"], ConfigCompositionException, "nf4"),
        (["model=hf"], UserError, "model.name"),
        (["metrics.tau=1.5"], UserError, "metrics.tau=1.5"),
        (["dataset.limit=0"], UserError, "dataset.limit=0"),
        (["metrics.epsilon=0"], UserError, "metrics.epsilon"),
        (["condition.names=[]"], UserError, "condition.names"),
    ],
)
def test_what_is_wrong_is_said_by_name(
    overrides: list[str], error: type[Exception], told: str
) -> None:
    with pytest.raises(error) as raised:
        composed(*overrides)
    chain = f"{raised.value} {raised.value.__cause__}"
    assert told in chain


def test_errors_of_types_are_the_schemas() -> None:
    cfg = compose("config")
    with pytest.raises(ConfigAttributeError):
        _ = cfg.model.nmae
    with pytest.raises(ValidationError):
        cfg.score.max_new_tokens = "five"


# The sweeps of the README: the batch of a sweep is validated before its first job.
SWEEPS = [
    ["model=qwen1.5b,qwen7b,qwen72b", "dataset=nq,triviaqa,hotpotqa"],
    ["model=qwen7b,qwen7b-base", "experiment=base_vs_instruct"],
    ["precision=bf16,int8,nf4", "condition=oracle,adversarial"],
    ["precision=fp32,bf16,nf4", "experiment=quantisation"],
    ["perturb.noise.position=start,centre,end", "experiment=noise_position"],
    ["model=qwen1.5b,qwen7b,qwen72b", "experiment=scaling"],
    ["model=smollm2", "condition=zero,oracle", "precision=fp32,bf16", "dataset.limit=12"],
]


@pytest.mark.parametrize("sweep", SWEEPS, ids=" ".join)
def test_every_job_of_the_readmes_sweeps_composes(sweep: list[str]) -> None:
    from itertools import product

    choices = [
        [f"{key}={value}" for value in values.split(",")]
        for key, _, values in (part.partition("=") for part in sweep)
    ]
    jobs = list(product(*choices))
    assert len(jobs) > 1
    for job in jobs:
        composed(*job)


EXPERIMENTS = sorted(path.stem for path in (conf_dir() / "experiment").glob("*.yaml"))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_says_what_it_asks_and_what_it_costs(name: str) -> None:
    text = (conf_dir() / "experiment" / f"{name}.yaml").read_text(encoding="utf-8")
    comments = " ".join(line[1:].strip() for line in text.splitlines() if line.startswith("#"))
    assert "?" in comments
    assert "Cost: " in comments
    assert f"experiment={name}" in comments
    composed(f"experiment={name}")


def light(*arguments: str) -> str:
    """What `python -m ncu_exp ...` prints, having loaded nothing that takes seconds to load."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ncu_exp", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    told = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in told}
    assert "hydra" in loaded
    assert not loaded & set(HEAVY)
    return done.stdout


def test_help_names_the_groups_and_shows_examples() -> None:
    text = light("--help")
    for group in ("model:", "dataset:", "condition:", "precision:", "prompt:", "tracking:"):
        assert f"\n{group}" in text
    assert text.count("python -m ncu_exp ") >= 3


def test_cfg_job_shows_the_whole_configuration() -> None:
    text = light("--cfg", "job")
    assert "max_new_tokens: 5" in text
