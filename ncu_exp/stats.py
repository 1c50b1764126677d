"""Point estimates with seeded bootstrap intervals, and the record that carries them.

Items are the unit of resampling. Every call draws its resamples from a fresh generator with the
plan's seed, so two samples of the same size are resampled alike: differences between their
intervals come from the data, not from the draw.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    FloatArray = NDArray[np.float64]

POOLED = "pooled"  # the corpus of a number that is of all corpora together
_BATCH_ELEMENTS = 2**20  # resampled values held at once: 8 MB of indices, 8 MB per sample


@dataclass(frozen=True, slots=True)
class Metric:
    """A named number over `n` of `n_total` items, with its interval.

    `value` is NaN where the number does not exist, and `reason` then says why; `lo` and `hi` are
    NaN where there is no interval (counts, latencies, fewer than two items). Where the items' own
    values are only bounded, `value` is NaN, `lower` and `upper` bound what it would be, and `lo`
    and `hi` are the outer ends of their intervals.
    """

    name: str
    value: float
    lo: float
    hi: float
    n: int
    n_total: int
    reason: str = ""
    lower: float = math.nan
    upper: float = math.nan

    @property
    def is_bounded(self) -> bool:
        """Whether the number is known within bounds only."""
        return not math.isnan(self.lower)


def metric_of(row: Mapping[Any, Any]) -> Metric:
    """A row of a comparison's summary (measure, value, lo, hi, lower, upper, n, n_total)."""
    return Metric(
        name=str(row["measure"]),
        value=float(row["value"]),
        lo=float(row["lo"]),
        hi=float(row["hi"]),
        n=int(row["n"]),
        n_total=int(row["n_total"]),
        lower=float(row["lower"]),
        upper=float(row["upper"]),
    )


@dataclass(frozen=True, slots=True)
class Resampling:
    """How a bootstrap is drawn: how often, from which seed, for which confidence (0 to 1)."""

    resamples: int
    confidence: float
    seed: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A point estimate and the ends of its interval; NaN where undefined."""

    value: float
    lo: float = math.nan
    hi: float = math.nan


def mean_interval(values: ArrayLike, plan: Resampling) -> Estimate:
    """The mean of `values` (n,), or a rate where they are 0 and 1; NaN of an empty sample."""
    import numpy as np

    return _estimate(np.mean, (np.asarray(values, dtype=np.float64),), plan)


def median_interval(values: ArrayLike, plan: Resampling) -> Estimate:
    """The median of `values` (n,); NaN of an empty sample."""
    import numpy as np

    return _estimate(np.median, (np.asarray(values, dtype=np.float64),), plan)


def ratio_interval(numerators: ArrayLike, denominators: ArrayLike, *, plan: Resampling) -> Estimate:
    """Sum of `numerators` over sum of `denominators` (n,), pairs resampled together.

    NaN where the denominators sum to zero. Where they do so in a resample, the interval is NaN.
    """
    import numpy as np

    pairs = (np.asarray(numerators, np.float64), np.asarray(denominators, np.float64))
    return _estimate(_ratio_of_sums, pairs, plan)


def wilson_interval(hits: int, n: int, *, confidence: float) -> tuple[float, float]:
    """Wilson's score interval of a share of `hits` among `n` draws."""
    from scipy.stats import binomtest

    interval = binomtest(hits, n).proportion_ci(confidence_level=confidence, method="wilson")
    return float(interval.low), float(interval.high)


def _ratio_of_sums(numerators: FloatArray, denominators: FloatArray, axis: int = -1) -> Any:
    import numpy as np

    above, below = numerators.sum(axis=axis), denominators.sum(axis=axis)
    return np.divide(above, below, out=np.full_like(below, np.nan), where=below != 0)


def _estimate(
    statistic: Callable[..., Any], samples: tuple[FloatArray, ...], plan: Resampling
) -> Estimate:
    """`statistic` of the samples with a percentile interval.

    Percentile rather than BCa: BCa is undefined (NaN and a warning) on constant data, which rates
    of 0 and 1 are at small n, and its jackknife is inconsistent for the median, while its gain was
    at most three points of coverage. Measured for nominal 95%: percentile 93-95% on rates, medians
    and NCU-like data at n=24 and n=96; on long-tailed means (lognormal) 89% and 91%, BCa 89% and
    92%. On constant data the interval has no width: that the sample does not vary is all it says.
    """
    import numpy as np

    n = samples[0].size
    if n == 0:
        return Estimate(math.nan)
    with np.errstate(invalid="ignore"):  # infinities of both signs
        value = float(statistic(*samples, axis=-1))
    if n < 2 or math.isnan(value):
        return Estimate(value)
    if not np.isfinite(samples).all():  # no interval between infinities: all that there is
        return Estimate(value, float(np.min(samples[0])), float(np.max(samples[0])))
    from scipy.stats import DegenerateDataWarning, bootstrap

    with warnings.catch_warnings():
        # Only where a resample has no value (a ratio over nothing): NaN says so, by contract.
        warnings.simplefilter("ignore", DegenerateDataWarning)
        interval = bootstrap(
            samples,
            statistic,
            paired=len(samples) > 1,
            vectorized=True,
            axis=-1,
            n_resamples=plan.resamples,
            batch=max(1, _BATCH_ELEMENTS // n),
            confidence_level=plan.confidence,
            method="percentile",
            rng=np.random.default_rng(plan.seed),
        ).confidence_interval
    return Estimate(value, float(interval.low), float(interval.high))
