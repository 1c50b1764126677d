"""Which runs are one system, a model under one way of asking, and whether they may be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_exp.compare.loading import AskedRun
from ncu_exp.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

# Keys that say neither what a system is nor what it was asked. Contexts are compared themselves.
_ASIDE = (
    "tracking",
    "cache",
    "latency",
    "api",
    "preflight",
    "compare",
    "condition",
    "dataset.path",
    "dataset.limit",
    "dataset.seed",
    "dataset.shard",
    "dataset.name",
    "dataset.hub_id",
    "dataset.hub_config",
    "dataset.hub_file",
    "dataset.split",
    "dataset.revision",
    "dataset.on_error",
    "dataset.columns",
    "metrics.resamples",
    "metrics.confidence",
    "metrics.seed",
    "model.label",
    "model.params_b",
    "model.prices",
    "model.device",
    "model.api_key_env",
    "model.cuda_precision",
    "score.batch_tokens",
    "score.check_requests",
    "score.numerics",
    "perturb.seed",
    "perturb.path",
    "precision",  # as it was resolved, instead
)
# Keys of what was asked: systems that differ in them are compared only where that is meant.
_ASKED = ("prompt", "perturb", "dataset.context", "score", "metrics")
PRECISION = "precision"
SERVED = "served"


@dataclass(frozen=True)
class System:
    """The runs of one model under one way of asking, oldest first, and what to call it."""

    label: str
    runs: tuple[AskedRun, ...]

    @property
    def newest(self) -> AskedRun:
        return self.runs[-1]

    @property
    def precision(self) -> str:
        return precision_of(self.newest)

    @property
    def estimator(self) -> str:
        """How its log-probabilities were obtained: exact, interval, paper or sampled."""
        found = {str(e) for run in self.runs for e in run.table["estimator"].dropna().unique()}
        return max(found, key=("exact", "interval", "paper", "sampled").index, default="exact")


def find_systems(runs: Sequence[AskedRun], *, across: Sequence[str]) -> list[System]:
    """The runs by system, in the order of their first runs.

    Raises UserError naming the keys in which systems were asked differently, those of `across`
    (and what stands below them) apart.
    """
    by_identity: dict[tuple[tuple[str, str], ...], list[AskedRun]] = {}
    for run in runs:
        by_identity.setdefault(tuple(sorted(identity(run).items())), []).append(run)
    identities = [dict(pairs) for pairs in by_identity]
    _refuse_other_questions(identities, across)
    labels = _labels(identities, [found[-1] for found in by_identity.values()])
    return [
        System(label, tuple(found))
        for label, found in zip(labels, by_identity.values(), strict=True)
    ]


def identity(run: AskedRun) -> dict[str, str]:
    """Everything that makes a run's system what it is, by configuration key."""
    found = {
        key: str(value)
        for key, value in _flat(run.config)
        if not is_below(key, _ASIDE) and value is not None
    }
    return {**found, PRECISION: precision_of(run)}


def precision_of(run: AskedRun) -> str:
    """The precision that `auto` came to; a served model has its server's."""
    if run.config["model"]["engine"] != "transformers":
        return SERVED
    return run.run.params.get("precision.name") or str(run.config["precision"]["name"])


def differing(identities: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """The keys whose values are not the same in all, with those values; of a prompt, its name."""
    keys = sorted({key for one in identities for key in one})
    found = {
        key: values
        for key in keys
        if len(values := list(dict.fromkeys(one.get(key, "-") for one in identities))) > 1
    }
    if "prompt.name" in found:
        return {
            k: v for k, v in found.items() if k == "prompt.name" or k.partition(".")[0] != "prompt"
        }
    return found


def systems_frame(systems: Sequence[System]) -> pd.DataFrame:
    """A row per system: what is known of it."""
    import pandas as pd

    rows = [
        {
            "system": system.label,
            "model": str(system.newest.config["model"]["label"]),
            "precision": system.precision,
            "prompt": str(system.newest.config["prompt"]["name"]),
            "estimator": system.estimator,
            "params_b": system.newest.config["model"].get("params_b"),
        }
        for system in systems
    ]
    return pd.DataFrame(rows).astype({"params_b": "float64"})


def _refuse_other_questions(identities: Sequence[Mapping[str, str]], across: Sequence[str]) -> None:
    others = {
        key: values
        for key, values in differing(identities).items()
        if is_below(key, _ASKED) and not is_below(key, across)
    }
    if not others:
        return
    told = "; ".join(f"{key} ({', '.join(map(_shortened, v))})" for key, v in others.items())
    allowed = ",".join(dict.fromkeys(key.rpartition(".")[0] or key for key in others))
    raise UserError(
        f"These runs were not asked the same: they differ in {told}. To compare them all the "
        f"same, as what the comparison is about: compare.across=[{allowed}]. Where tau or epsilon "
        "differ, metrics.tau=... and metrics.epsilon=... compute all of them alike."
    )


def _labels(identities: Sequence[Mapping[str, str]], runs: Sequence[AskedRun]) -> list[str]:
    """Short unique names: the model's label, and what tells it from the others."""
    parts = [[str(run.config["model"]["label"])] for run in runs]
    different = differing(identities)
    for key in (PRECISION, "prompt.name"):
        if key in different:
            for part, one in zip(parts, identities, strict=True):
                part.append(one.get(key, "-"))
    for key in different:
        labels = [" · ".join(part) for part in parts]
        alike = {label for label in labels if labels.count(label) > 1}
        for label in alike:
            places = [i for i, other in enumerate(labels) if other == label]
            if len({identities[i].get(key, "-") for i in places}) > 1:
                for i in places:
                    parts[i].append(f"{key}={_shortened(identities[i].get(key, '-'))}")
    return [" · ".join(part) for part in parts]


def _flat(config: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def is_below(key: str, places: Sequence[str]) -> bool:
    """Whether a configuration key is one of `places`, or stands below one."""
    return any(key == place or key.startswith(f"{place}.") for place in places)


def _shortened(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:37]}..."
