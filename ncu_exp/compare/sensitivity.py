"""How the order of the systems moves with the settings of the metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_exp.formulas import cus, ncu, ncu_raw, success

if TYPE_CHECKING:
    import pandas as pd

    from ncu_exp.config import MetricsConfig

COLUMNS = (
    *("setting", "family", "measure", "system", "value", "lower", "upper", "rank", "is_default"),
)
TAUS = (0.01, 0.05, 0.1, 0.2, 0.5)
EPSILONS = (1e-5, 1e-3, 1e-2, 0.1)


def sensitivity_of(items: pd.DataFrame, settings: MetricsConfig) -> pd.DataFrame:
    """The measures of each system under other settings, and its rank (1 is the highest value).

    `items` is that of `items_frame`. Items whose values are only bounded have no number here, and
    a system with such items has no rank.
    """
    import pandas as pd

    rows = [
        {
            "setting": setting.told,
            "family": setting.family,
            "measure": setting.measure,
            "system": system,
            "value": setting.statistic(of_system),
            "lower": float("nan"),
            "upper": float("nan"),
            "is_default": setting.is_default,
        }
        for setting in _settings(settings)
        for system, of_system in items.groupby("system", sort=False)
    ]
    frame = pd.DataFrame(rows)
    if frame.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    frame = frame[frame.groupby(["measure", "setting"])["value"].transform("count") > 0]
    ranks = frame.groupby(["measure", "setting"], sort=False)["value"].rank(ascending=False)
    return frame.assign(rank=ranks)[list(COLUMNS)].reset_index(drop=True)


@dataclass(frozen=True, slots=True)
class _Setting:
    family: str
    told: str
    measure: str
    is_default: bool
    statistic: Callable[[pd.DataFrame], float]  # of the items of one system


def _settings(settings: MetricsConfig) -> Iterator[_Setting]:
    import numpy as np

    for tau in sorted({*TAUS, settings.tau}):
        for measure, column in (
            ("oracle/accuracy", "s_post"),
            ("adversarial/prior_dominance", "s_adversarial"),
        ):
            default = tau == settings.tau
            yield _Setting("tau", f"tau = {tau:g}", measure, default, _above(column, tau))
    of_ncu = "oracle/ncu"
    for epsilon in sorted({*EPSILONS, settings.epsilon}):
        default = epsilon == settings.epsilon
        yield _Setting("epsilon", f"epsilon = {epsilon:g}", of_ncu, default, _ncu(epsilon))
    yield _Setting("average", "clipped mean", of_ncu, True, _ncu(settings.epsilon))
    for told, average in (("raw mean", np.mean), ("raw median", np.median)):
        raw = _raw(settings.epsilon, average)
        yield _Setting("average", told, of_ncu, False, raw)
    yield _Setting("average", "pooled", of_ncu, False, _pooled)
    yield _Setting("aliases", "aliases: first answer", of_ncu, True, _first(settings.epsilon))
    for told, suffix in (("likeliest answer", "_best"), ("any answer, log-sum", "_any")):
        yield _Setting("aliases", f"aliases: {told}", of_ncu, False, _ncu(settings.epsilon, suffix))


def _above(column: str, tau: float) -> Callable[[pd.DataFrame], float]:
    def share(of: pd.DataFrame) -> float:
        known = of[column].dropna().to_numpy(dtype="float64")  # not all have that condition
        return float(success(-known, tau=tau).mean()) if len(known) else float("nan")

    return share


def _ncu(epsilon: float, suffix: str = "") -> Callable[[pd.DataFrame], float]:
    def mean(of: pd.DataFrame) -> float:
        return float(ncu(*_surprisals(of, suffix), epsilon=epsilon).mean())

    return mean


def _first(epsilon: float) -> Callable[[pd.DataFrame], float]:
    """NCU of the true answer where aliases were scored beside it."""
    return lambda of: _ncu(epsilon)(of) if of["s_prior_best"].notna().any() else float("nan")


def _raw(epsilon: float, average: Callable[[Any], Any]) -> Callable[[pd.DataFrame], float]:
    return lambda of: float(average(ncu_raw(*_surprisals(of), epsilon=epsilon)))


def _pooled(of: pd.DataFrame) -> float:
    s_prior, s_post = _surprisals(of)
    return float(cus(s_prior, s_post).sum() / s_prior.sum()) if s_prior.sum() else float("nan")


def _surprisals(of: pd.DataFrame, suffix: str = "") -> tuple[Any, Any]:
    """Without and with the context; NaN of an answer that is only bounded."""
    without, with_context = (
        of[f"{name}{suffix}"].to_numpy(dtype="float64") for name in ("s_prior", "s_post")
    )
    return without, with_context
