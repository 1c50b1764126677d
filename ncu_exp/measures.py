"""What is measured of each item: the values that a run's metrics and a comparison average. Pure.

A measure is a mean, a median, or a ratio of two sums over items. Where an engine only bounds a
log-probability, each item has two values, the ends of what it may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from ncu_exp.formulas import cus, ncu_raw, success, surprisal
from ncu_exp.records import Condition, Continuation, Status

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from ncu_exp.config import MetricsConfig

_MAX_REASONS = 3
BOUNDING = ("interval", "sampled")  # estimators that bound what they cannot tell


class Statistic(StrEnum):
    """What a measure makes of the values of its items."""

    mean = "mean"
    rate = "rate"  # a mean of values that are 0 or 1
    median = "median"
    ratio = "ratio"  # of two sums


@dataclass(frozen=True)
class Ends:
    """Values of items (n,): lower and upper ends of what each may be; one where it is known."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @property
    def are_known(self) -> bool:
        import numpy as np

        return np.array_equal(self.lower, self.upper, equal_nan=True)

    def fall(self, function: Callable[..., Any]) -> Ends:
        """The ends of a function that falls with the values."""
        return Ends(function(self.upper), function(self.lower))

    def rise(self, function: Callable[..., Any]) -> Ends:
        """The ends of a function that rises with the values."""
        return Ends(function(self.lower), function(self.upper))


@dataclass(frozen=True)
class Measure:
    """The values of one measure, a row per item; `totals` are the denominators of a ratio.

    `name` is `<condition>/<measure>`. `n_total` counts the items asked; `otherwise` says why there
    is no number where there is none.
    """

    name: str
    item_ids: NDArray[np.object_]
    values: Ends
    statistic: Statistic
    n_total: int
    otherwise: str = ""
    totals: Ends | None = None

    @property
    def n(self) -> int:
        return len(self.item_ids)

    @property
    def are_known(self) -> bool:
        """Whether every value is known exactly."""
        return self.values.are_known and (self.totals is None or self.totals.are_known)


def measured(table: pd.DataFrame, settings: MetricsConfig) -> Iterator[Measure]:
    """Every measure of the conditions in a run's table (`tables.items_table`).

    Over rows that are ok; NCU and its kin over those whose item also has a zero row that is ok.
    NCU is computed from the surprisals with the tau and epsilon of `settings`, so other settings
    may be asked of the same table. A measure without rows has no values, and a reason.
    """
    prior = ok_rows(rows_of(table, Condition.zero, Continuation.true)).set_index("item_id")
    for condition in Condition:
        rows = rows_of(table, condition, Continuation.true)
        if rows.empty:
            continue
        group = _Group(condition, rows, settings)
        yield from _answering(group)
        if condition is not Condition.zero:
            yield from _utilisation(group, prior)
        if condition is Condition.adversarial:
            yield from _conflict(group, rows_of(table, condition, Continuation.fabricated))


def rows_of(table: pd.DataFrame, condition: Condition, continuation: Continuation) -> pd.DataFrame:
    """The rows of one condition that score one kind of answer."""
    asked = (table["condition"] == condition.value) & (table["continuation"] == continuation.value)
    return table[asked]


def ok_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that have a score."""
    return rows[rows["status"] == Status.ok.value]


@dataclass(frozen=True)
class _Group:
    """The rows of one condition that score the true answer, and how to name what they give."""

    condition: Condition
    rows: pd.DataFrame
    settings: MetricsConfig

    def measure(
        self,
        name: str,
        rows: pd.DataFrame,
        values: Ends,
        *,
        statistic: Statistic,
        otherwise: str = "",
        totals: Ends | None = None,
    ) -> Measure:
        return Measure(
            name=f"{self.condition}/{name}",
            item_ids=rows["item_id"].to_numpy(dtype=object),
            values=values,
            statistic=statistic,
            n_total=len(self.rows),
            otherwise=otherwise,
            totals=totals,
        )


def _answering(group: _Group) -> Iterator[Measure]:
    """How well the true answer stands under the condition."""
    rows = ok_rows(group.rows)
    generated = rows[rows["em"].notna()]
    why = _why_no_row(group.rows, group.condition)
    no_text = why if rows.empty else "no greedy text was generated"
    means = _means(rows)
    known = means.rise(partial(_success, tau=group.settings.tau))
    mean, rate = Statistic.mean, Statistic.rate
    yield group.measure("accuracy", rows, known, statistic=rate, otherwise=why)
    for name, statistic in (("em", rate), ("f1", mean)):
        matched = _known(generated, name)
        yield group.measure(name, generated, matched, statistic=statistic, otherwise=no_text)
    yield group.measure("surprisal", rows, means.fall(surprisal), statistic=mean, otherwise=why)
    if rows["estimator"].isin(BOUNDING).any():
        yield from _censored(group, rows)


def _censored(group: _Group, rows: pd.DataFrame) -> Iterator[Measure]:
    """The shares of answers and of tokens that are only bounded, where an engine bounds them."""
    censored, tokens = _known(rows, "n_censored"), _known(rows, "n_tokens")
    some = censored.rise(lambda count: (count > 0).astype("float64"))
    yield group.measure("censored_items", rows, some, statistic=Statistic.rate)
    yield group.measure("censored_tokens", rows, censored, statistic=Statistic.ratio, totals=tokens)


def _utilisation(group: _Group, prior: pd.DataFrame) -> Iterator[Measure]:
    """What the context did to the surprisal, over items scored with and without it."""
    rows = ok_rows(group.rows)
    means = ["mean_logprob", "mean_logprob_lower", "mean_logprob_upper"]
    pairs = rows.join(prior[means].add_suffix("_prior"), on="item_id", how="inner")
    s_post = _means(pairs).fall(surprisal)
    s_prior = _means(pairs, "_prior").fall(surprisal)
    why = (
        _why_no_row(group.rows, group.condition)
        if rows.empty
        else "no item is scored both under zero and under this condition"
    )
    epsilon = group.settings.epsilon
    # NCU rises with the surprisal without context, and falls with the one with it.
    raw = Ends(
        ncu_raw(s_prior.lower, s_post.upper, epsilon=epsilon),
        ncu_raw(s_prior.upper, s_post.lower, epsilon=epsilon),
    )
    named = {
        "ncu": (raw.rise(_clip), Statistic.mean),
        "ncu_raw_mean": (raw, Statistic.mean),
        "ncu_raw_median": (raw, Statistic.median),
        "negative_transfer_rate": (raw.fall(_is_negative), Statistic.rate),
    }
    for name, (values, statistic) in named.items():
        yield group.measure(name, pairs, values, statistic=statistic, otherwise=why)
    removed, uncertainty = _pooled(s_prior, s_post)
    no_prior = why if pairs.empty else "the surprisal without context is zero for every item"
    yield group.measure(
        "ncu_pooled",
        pairs,
        removed,
        statistic=Statistic.ratio,
        otherwise=no_prior,
        totals=uncertainty,
    )


def _pooled(s_prior: Ends, s_post: Ends) -> tuple[Ends, Ends]:
    """What the context removed of the surprisal, and the surprisal before: a ratio of two sums."""
    import numpy as np

    removed = Ends(cus(s_prior.lower, s_post.upper), cus(s_prior.upper, s_post.lower))
    if not np.isinf(s_prior.upper).any():
        return removed, s_prior
    one = np.ones_like(s_prior.upper)  # the limit of the ratio where a prior is without bound
    return Ends(removed.lower, one), Ends(s_prior.lower, one)


def _conflict(group: _Group, fabricated: pd.DataFrame) -> Iterator[Measure]:
    """Memory against context: the true answer and the fabricated one under the false context.

    "Likelier" and the odds compare log-probabilities per token, as the two answers may differ in
    length.
    """
    true, false = ok_rows(group.rows), ok_rows(fabricated)
    both = true.merge(false, on="item_id", suffixes=("_true", "_false"))
    means_true, means_false = _means(both, "_true"), _means(both, "_false")
    log_odds = Ends(means_false.lower - means_true.upper, means_false.upper - means_true.lower)
    recited = log_odds.fall(_is_negative)
    why_true = _why_no_row(group.rows, group.condition)
    why_false = _why_no_row(fabricated, group.condition)
    why_both = why_true or why_false or "no item has both answers scored"
    known = partial(_success, tau=group.settings.tau)
    mean, rate = Statistic.mean, Statistic.rate
    for name, rows, values, statistic, why in (
        ("prior_dominance", true, _means(true).rise(known), rate, why_true),
        ("prior_dominance_contrastive", both, recited, rate, why_both),
        ("adherence", false, _means(false).rise(known), rate, why_false),
        ("log_odds", both, log_odds, mean, why_both),
    ):
        yield group.measure(name, rows, values, statistic=statistic, otherwise=why)


def _means(rows: pd.DataFrame, suffix: str = "") -> Ends:
    """The ends of the mean log-probabilities of rows; the mean itself where nothing bounds it."""
    mean = rows[f"mean_logprob{suffix}"]
    ends = (rows[f"mean_logprob_{end}{suffix}"].fillna(mean) for end in ("lower", "upper"))
    return Ends(*(end.to_numpy(dtype="float64") for end in ends))


def _known(rows: pd.DataFrame, column: str) -> Ends:
    values = rows[column].to_numpy(dtype="float64")
    return Ends(values, values)


def _clip(raw: Any) -> Any:
    import numpy as np

    return np.clip(raw, 0.0, 1.0)


def _success(mean_logprob: Any, *, tau: float) -> Any:
    return success(mean_logprob, tau=tau).astype("float64")


def _is_negative(values: Any) -> Any:
    return (values < 0).astype("float64")


def _why_no_row(rows: pd.DataFrame, condition: Condition) -> str:
    """Why none of `rows` is ok, most frequent reasons first; empty where one is."""
    if (rows["status"] == Status.ok.value).any():
        return ""
    counts = Counter(zip(rows["status"], rows["reason"], strict=True)).most_common(_MAX_REASONS)
    told = "; ".join(f"{n} {status} ({reason})" for (status, reason), n in counts)
    return f"no {condition} row is ok: {told or 'there is none'}"
