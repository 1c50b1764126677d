"""How the order of the systems moves with the settings of the metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        {"family": family, "setting": setting, "measure": measure, "is_default": is_default}
        | {"system": system, "value": value, "lower": float("nan"), "upper": float("nan")}
        for family, setting, measure, is_default, statistic in _settings(settings)
        for system, of_system in items.groupby("system", sort=False)
        for value in [statistic(of_system)]
    ]
    frame = pd.DataFrame(rows)
    if frame.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    frame = frame[frame.groupby(["measure", "setting"])["value"].transform("count") > 0]
    ranks = frame.groupby(["measure", "setting"], sort=False)["value"].rank(ascending=False)
    return frame.assign(rank=ranks)[list(COLUMNS)].reset_index(drop=True)


def _settings(
    settings: MetricsConfig,
) -> Iterator[tuple[str, str, str, bool, Callable[[pd.DataFrame], float]]]:
    for tau in sorted({*TAUS, settings.tau}):
        for measure, column in (
            ("oracle/accuracy", "s_post"),
            ("adversarial/prior_dominance", "s_adversarial"),
        ):
            yield "tau", f"tau = {tau:g}", measure, tau == settings.tau, _above(column, tau)
    for epsilon in sorted({*EPSILONS, settings.epsilon}):
        default = epsilon == settings.epsilon
        yield "epsilon", f"epsilon = {epsilon:g}", "oracle/ncu", default, _ncu_with(epsilon)
    raw = settings.epsilon
    yield "average", "raw mean", "oracle/ncu", False, lambda of: _raw(of, raw).mean(skipna=False)
    yield (
        "average",
        "raw median",
        "oracle/ncu",
        False,
        lambda of: _raw(of, raw).median(skipna=False),
    )
    yield "average", "pooled", "oracle/ncu", False, _pooled


def _above(column: str, tau: float) -> Callable[[pd.DataFrame], float]:
    def share(of: pd.DataFrame) -> float:
        known = of[column].dropna().to_numpy(dtype="float64")  # not all have that condition
        return float(success(-known, tau=tau).mean()) if len(known) else float("nan")

    return share


def _ncu_with(epsilon: float) -> Callable[[pd.DataFrame], float]:
    def mean(of: pd.DataFrame) -> float:
        return float(ncu(*_surprisals(of), epsilon=epsilon).mean())

    return mean


def _pooled(of: pd.DataFrame) -> float:
    s_prior, s_post = _surprisals(of)
    return float(cus(s_prior, s_post).sum() / s_prior.sum()) if s_prior.sum() else float("nan")


def _raw(of: pd.DataFrame, epsilon: float) -> Any:
    import pandas as pd

    return pd.Series(ncu_raw(*_surprisals(of), epsilon=epsilon))


def _surprisals(of: pd.DataFrame) -> tuple[Any, Any]:
    return of["s_prior"].to_numpy(dtype="float64"), of["s_post"].to_numpy(dtype="float64")
