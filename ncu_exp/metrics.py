"""The metrics of a run, from its table; within bounds where its values are only bounded. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ncu_exp.measures import Measure, Statistic, measured, ok_rows, rows_of
from ncu_exp.records import Condition, Continuation, LatencyProbe, Status
from ncu_exp.stats import Estimate, Resampling, mean_interval, median_interval, ratio_interval
from ncu_exp.stats import Metric as Metric

if TYPE_CHECKING:
    import pandas as pd

    from ncu_exp.config import MetricsConfig


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

    `table` is that of `tables.items_table`; the measures are those of `measures.measured`, with
    the item counts beside them. A metric without rows is NaN with a reason.
    """
    plan = Resampling(settings.resamples, settings.confidence, settings.seed)
    return _counts(table) + [_metric(measure, plan) for measure in measured(table, settings)]


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


def _counts(table: pd.DataFrame) -> list[Metric]:
    """Of each condition, the items scored and the items asked."""
    found: list[Metric] = []
    for condition in Condition:
        rows = rows_of(table, condition, Continuation.true)
        n, n_total = len(ok_rows(rows)), len(rows)
        for name, value in (("n", n), ("n_total", n_total)) if n_total else ():
            found.append(
                Metric(f"{condition}/{name}", float(value), math.nan, math.nan, value, n_total)
            )
    return found


def _metric(measure: Measure, plan: Resampling) -> Metric:
    """The measure over its items, with its interval; between two numbers where it is bounded."""
    low = _estimate(measure, "lower", plan)
    high = low if measure.are_known else _estimate(measure, "upper", plan)
    bounded = not measure.are_known
    missing = math.isnan(low.value)
    return Metric(
        name=measure.name,
        value=math.nan if bounded else low.value,
        lo=low.lo,
        hi=high.hi,
        n=measure.n,
        n_total=measure.n_total,
        reason="known within bounds only" if bounded else measure.otherwise if missing else "",
        lower=low.value if bounded else math.nan,
        upper=high.value if bounded else math.nan,
    )


def _estimate(measure: Measure, end: Literal["lower", "upper"], plan: Resampling) -> Estimate:
    import numpy as np

    values = getattr(measure.values, end)
    if measure.totals is None:
        of = median_interval if measure.statistic is Statistic.median else mean_interval
        return of(values, plan)
    if np.isinf(values).any():  # nothing bounds what was lost
        return Estimate(-math.inf, -math.inf, -math.inf)
    return ratio_interval(values, getattr(measure.totals, end), plan=plan)
