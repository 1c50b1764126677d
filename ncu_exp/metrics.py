"""The metrics of a run, from its table; within bounds where its values are only bounded. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ncu_exp.formulas import cus, ncu_raw, success, surprisal
from ncu_exp.records import Condition, Continuation, LatencyProbe, Status
from ncu_exp.stats import (
    Estimate,
    Resampling,
    mean_interval,
    median_interval,
    ratio_interval,
)
from ncu_exp.stats import Metric as Metric

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from ncu_exp.config import MetricsConfig

_MAX_REASONS = 3
BOUNDING = ("interval", "sampled")  # estimators that bound what they cannot tell


@dataclass(frozen=True, slots=True)
class Loss:
    """Items without a score under a condition, for one reason."""

    condition: str
    status: str
    reason: str
    items: int


def losses(table: pd.DataFrame) -> list[Loss]:
    """What was lost of a run, by condition, status and reason; the most frequent first.

    Reasons of one code ("prompt_too_long: 5,123 tokens ...") are one, and one of them stands for
    all.
    """
    lost = table[table["status"] != Status.ok.value]
    rows = zip(lost["condition"], lost["status"], lost["reason"], lost["item_id"], strict=True)
    alike: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for condition, status, reason, item_id in rows:
        alike[condition, status, reason.partition(":")[0]][item_id] = reason
    order = {condition.value: place for place, condition in enumerate(Condition)}
    found = [
        Loss(condition, status, min(reasons.values()), len(reasons))
        for (condition, status, _), reasons in alike.items()
    ]
    return sorted(found, key=lambda loss: (-loss.items, order[loss.condition], loss.reason))


def aggregate(table: pd.DataFrame, *, settings: MetricsConfig) -> list[Metric]:
    """Every metric of a run, named `<condition>/<metric>`, for the conditions in `table`.

    `table` is that of `tables.items_table`. Metrics are over rows that are ok; NCU and its kin
    over those whose item also has a zero row that is ok (n counts the pairs). NCU is computed
    from the surprisals with the epsilon of `settings`, so other settings may be asked of the same
    table. A metric without rows is NaN with a reason.
    """
    prior = _ok(_rows(table, Condition.zero, Continuation.true)).set_index("item_id")
    metrics: list[Metric] = []
    for condition in Condition:
        rows = _rows(table, condition, Continuation.true)
        if rows.empty:
            continue
        group = _Group(condition, rows, settings)
        metrics += _answering(group)
        if condition is not Condition.zero:
            metrics += _utilisation(group, prior)
        if condition is Condition.adversarial:
            metrics += _conflict(group, _rows(table, condition, Continuation.fabricated))
    return metrics


def latency_metrics(probes: Sequence[LatencyProbe]) -> list[Metric]:
    """`latency/<condition>_p50_s` and `_p95_s`: batch-1 seconds, for each condition probed."""
    import numpy as np

    metrics: list[Metric] = []
    for condition in Condition:
        seconds = [probe.latency_s for probe in probes if probe.condition is condition]
        if not seconds:
            continue
        for percent in (50, 95):
            value, n = float(np.percentile(seconds, percent)), len(seconds)
            name = f"latency/{condition}_p{percent}_s"
            metrics.append(Metric(name, value, np.nan, np.nan, n, n))
    return metrics


@dataclass(frozen=True)
class _Ends:
    """Values of items, as the lower and the upper ends of what they may be; one where known."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @property
    def are_known(self) -> bool:
        import numpy as np

        return np.array_equal(self.lower, self.upper, equal_nan=True)

    def fall(self, function: Callable[..., Any]) -> _Ends:
        """The ends of a function that falls with the values."""
        return _Ends(function(self.upper), function(self.lower))

    def rise(self, function: Callable[..., Any]) -> _Ends:
        """The ends of a function that rises with the values."""
        return _Ends(function(self.lower), function(self.upper))


@dataclass(frozen=True)
class _Group:
    """The rows of one condition that score the true answer, and how to name what they give."""

    condition: Condition
    rows: pd.DataFrame
    settings: MetricsConfig

    @property
    def plan(self) -> Resampling:
        return Resampling(self.settings.resamples, self.settings.confidence, self.settings.seed)

    def metric(self, measure: str, estimate: Estimate, *, n: int, otherwise: str = "") -> Metric:
        """`estimate` under its full name; `otherwise` is the reason where it is NaN."""
        missing = estimate.value != estimate.value
        return Metric(
            name=f"{self.condition}/{measure}",
            value=estimate.value,
            lo=estimate.lo,
            hi=estimate.hi,
            n=n,
            n_total=len(self.rows),
            reason=otherwise if missing else "",
        )

    def bounded(self, measure: str, low: Estimate, high: Estimate, *, n: int) -> Metric:
        """A number that lies between two estimates."""
        return Metric(
            name=f"{self.condition}/{measure}",
            value=math.nan,
            lo=low.lo,
            hi=high.hi,
            n=n,
            n_total=len(self.rows),
            reason="known within bounds only",
            lower=low.value,
            upper=high.value,
        )

    def mean(self, measure: str, values: Any, *, otherwise: str) -> Metric:
        estimate = mean_interval(values, self.plan)
        return self.metric(measure, estimate, n=len(values), otherwise=otherwise)

    def of_ends(
        self,
        measure: str,
        ends: _Ends,
        *,
        otherwise: str,
        interval: Callable[..., Estimate] = mean_interval,
    ) -> Metric:
        """A mean (or another statistic that rises with each value) of values or of their ends."""
        n = len(ends.lower)
        low = interval(ends.lower, self.plan)
        if ends.are_known:
            return self.metric(measure, low, n=n, otherwise=otherwise)
        return self.bounded(measure, low, interval(ends.upper, self.plan), n=n)


def _answering(group: _Group) -> list[Metric]:
    """How well the true answer stands under the condition."""
    rows = _ok(group.rows)
    generated = rows[rows["em"].notna()]
    why = _why_no_row(group.rows, group.condition)
    no_text = why if rows.empty else "no greedy text was generated"
    means = _means(rows)
    known = means.rise(partial(success, tau=group.settings.tau))
    n, n_total = len(rows), len(group.rows)
    return [
        group.of_ends("accuracy", known, otherwise=why),
        group.mean("em", _floats(generated, "em"), otherwise=no_text),
        group.mean("f1", _floats(generated, "f1"), otherwise=no_text),
        group.of_ends("surprisal", means.fall(surprisal), otherwise=why),
        group.metric("n", Estimate(float(n)), n=n),
        group.metric("n_total", Estimate(float(n_total)), n=n_total),
        *_censored(group, rows),
    ]


def _censored(group: _Group, rows: pd.DataFrame) -> list[Metric]:
    """The shares of answers and of tokens that are only bounded, where an engine bounds them."""
    import numpy as np

    if not rows["estimator"].isin(BOUNDING).any():
        return []
    censored, tokens = _floats(rows, "n_censored"), _floats(rows, "n_tokens")
    share = ratio_interval(censored, tokens, plan=group.plan)
    return [
        group.mean("censored_items", np.asarray(censored > 0), otherwise=""),
        group.metric("censored_tokens", share, n=len(rows)),
    ]


def _utilisation(group: _Group, prior: pd.DataFrame) -> list[Metric]:
    """What the context did to the surprisal, over items scored with and without it."""
    rows = _ok(group.rows)
    means = ["mean_logprob", "mean_logprob_lower", "mean_logprob_upper"]
    priors = prior[means].add_suffix("_prior")
    pairs = rows.join(priors, on="item_id", how="inner")
    s_post = _means(pairs).fall(surprisal)
    s_prior = _means(pairs, "_prior").fall(surprisal)
    why = (
        _why_no_row(group.rows, group.condition)
        if rows.empty
        else "no item is scored both under zero and under this condition"
    )
    epsilon = group.settings.epsilon
    # NCU rises with the surprisal without context, and falls with the one with it.
    raw = _Ends(
        ncu_raw(s_prior.lower, s_post.upper, epsilon=epsilon),
        ncu_raw(s_prior.upper, s_post.lower, epsilon=epsilon),
    )
    no_prior = why if pairs.empty else "the surprisal without context is zero for every item"
    return [
        group.of_ends("ncu", raw.rise(_clip), otherwise=why),
        group.of_ends("ncu_raw_mean", raw, otherwise=why),
        group.of_ends("ncu_raw_median", raw, otherwise=why, interval=median_interval),
        _pooled(group, s_prior, s_post, otherwise=no_prior),
        group.of_ends("negative_transfer_rate", raw.fall(_is_negative), otherwise=why),
    ]


def _pooled(group: _Group, s_prior: _Ends, s_post: _Ends, *, otherwise: str) -> Metric:
    n = len(s_post.lower)
    low = _ratio(group, s_prior.lower, s_post.upper)
    if s_prior.are_known and s_post.are_known:
        return group.metric("ncu_pooled", low, n=n, otherwise=otherwise)
    return group.bounded("ncu_pooled", low, _ratio(group, s_prior.upper, s_post.lower), n=n)


def _ratio(group: _Group, s_prior: Any, s_post: Any) -> Estimate:
    """The pooled NCU; at its limits where a sum is without bound."""
    import numpy as np

    if np.isinf(s_post).any():
        return Estimate(-math.inf, -math.inf, -math.inf)
    if np.isinf(s_prior).any():
        return Estimate(1.0, 1.0, 1.0)
    return ratio_interval(cus(s_prior, s_post), s_prior, plan=group.plan)


def _conflict(group: _Group, fabricated: pd.DataFrame) -> list[Metric]:
    """Memory against context: the true answer and the fabricated one under the false context.

    "Likelier" and the odds compare log-probabilities per token, as the two answers may differ in
    length.
    """
    true, false = _ok(group.rows), _ok(fabricated)
    both = true.merge(false, on="item_id", suffixes=("_true", "_false"))
    means_true, means_false = _means(both, "_true"), _means(both, "_false")
    log_odds = _Ends(means_false.lower - means_true.upper, means_false.upper - means_true.lower)
    why_true = _why_no_row(group.rows, group.condition)
    why_false = _why_no_row(fabricated, group.condition)
    known = partial(success, tau=group.settings.tau)
    why_both = why_true or why_false or "no item has both answers scored"
    return [
        group.of_ends("prior_dominance", _means(true).rise(known), otherwise=why_true),
        group.of_ends(
            "prior_dominance_contrastive", log_odds.fall(_is_negative), otherwise=why_both
        ),
        group.of_ends("adherence", _means(false).rise(known), otherwise=why_false),
        group.of_ends("log_odds", log_odds, otherwise=why_both),
    ]


def _means(rows: pd.DataFrame, suffix: str = "") -> _Ends:
    """The ends of the mean log-probabilities of rows; the mean itself where nothing bounds it."""
    mean = rows[f"mean_logprob{suffix}"]
    ends = (rows[f"mean_logprob_{end}{suffix}"].fillna(mean) for end in ("lower", "upper"))
    return _Ends(*(end.to_numpy(dtype="float64") for end in ends))


def _clip(raw: Any) -> Any:
    import numpy as np

    return np.clip(raw, 0.0, 1.0)


def _is_negative(values: Any) -> Any:
    return values < 0


def _rows(table: pd.DataFrame, condition: Condition, continuation: Continuation) -> pd.DataFrame:
    asked = (table["condition"] == condition.value) & (table["continuation"] == continuation.value)
    return table[asked]


def _ok(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["status"] == Status.ok.value]


def _floats(rows: pd.DataFrame, column: str) -> NDArray[np.float64]:
    return rows[column].to_numpy(dtype="float64")


def _why_no_row(rows: pd.DataFrame, condition: Condition) -> str:
    """Why none of `rows` is ok, most frequent reasons first; empty where one is."""
    if (rows["status"] == Status.ok.value).any():
        return ""
    counts = Counter(zip(rows["status"], rows["reason"], strict=True)).most_common(_MAX_REASONS)
    told = "; ".join(f"{n} {status} ({reason})" for (status, reason), n in counts)
    return f"no {condition} row is ok: {told or 'there is none'}"
