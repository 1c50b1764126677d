"""Statistics of paired comparisons: shared resamples, tests of a difference, and of its absence.

Everything is vectorised over systems, pairs or measures, and pure. A *cluster* is what is drawn
again: an item with all of its rows. One array of counts serves every system and every measure of
the same items, so the difference of two systems' draws is the draw of their difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ncu_exp.stats import FloatArray, Resampling

_BATCH_ELEMENTS = 2**20  # indices held at once: 8 MB
_NO_SPREAD = 1e-12  # relative to the value: less spread than this is rounding


def resampled_counts(clusters: int, plan: Resampling) -> FloatArray:
    """How often each cluster is drawn in each resample: (resamples, clusters).

    Rows sum to `clusters`. The same draws as `ncu_exp.stats` makes of as many items under the same
    plan, so that the intervals of a comparison are those of the reports it compares.
    """
    import numpy as np

    rng = np.random.default_rng(plan.seed)
    counts = np.zeros((plan.resamples, clusters))
    batch = max(1, _BATCH_ELEMENTS // max(1, clusters))
    for start in range(0, plan.resamples if clusters else 0, batch):
        rows = counts[start : start + batch]
        drawn = rng.integers(0, clusters, rows.shape)
        drawn += np.arange(len(rows))[:, np.newaxis] * clusters
        rows[...] = np.bincount(drawn.ravel(), minlength=rows.size).reshape(rows.shape)
    return counts


def bootstrap_ratios(
    numerators: ArrayLike, denominators: ArrayLike, *, counts: ArrayLike
) -> FloatArray:
    """Draws of each system's sum of numerators over its sum of denominators: (resamples, systems).

    `numerators` and `denominators` are (systems, clusters), the sums of each cluster's rows, or
    (clusters,) for all systems alike; `counts` is (resamples, clusters). A mean is the sum of
    values over the number of rows; a cluster that does not count has 0 in both. NaN where the
    denominators drawn sum to 0. A resample that draws an infinity, or a NaN, has it (both
    infinities: NaN); one that does not is untouched by it. Equal systems have equal draws, to the
    last bit.
    """
    import numpy as np

    drawn = np.asarray(counts, dtype=np.float64)
    above = _drawn_sums(np.atleast_2d(np.asarray(numerators, dtype=np.float64)), drawn)
    below = _drawn_sums(np.atleast_2d(np.asarray(denominators, dtype=np.float64)), drawn)
    ratios = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan)
    with np.errstate(invalid="ignore"):  # inf / inf
        np.divide(above, below, out=ratios, where=below != 0)
    return ratios


def percentile_interval(draws: ArrayLike, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Ends of the percentile interval along axis 0 of `draws` (resamples, ...), confidence 0 to 1.

    NaN where any draw is NaN. Where any is infinite, the ends are draws, the next ones outwards: no
    interpolation between a number and an infinity.
    """
    import numpy as np

    found = np.asarray(draws, dtype=np.float64)
    shape, found = found.shape[1:], found.reshape(len(found), -1)
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    ends = np.full((2, found.shape[1]), np.nan)
    finite = np.isfinite(found).all(axis=0)
    if finite.any():
        ends[:, finite] = np.quantile(found[:, finite], tails, axis=0)
    infinite = ~finite & ~np.isnan(found).any(axis=0)
    if infinite.any():
        ends[0, infinite] = np.quantile(found[:, infinite], tails[0], axis=0, method="lower")
        ends[1, infinite] = np.quantile(found[:, infinite], tails[1], axis=0, method="higher")
    return ends[0].reshape(shape), ends[1].reshape(shape)


def mcnemar_exact(only_a: ArrayLike, only_b: ArrayLike) -> FloatArray:
    """Two-sided exact p of McNemar's test: twice the smaller binomial tail, at most 1.

    `only_a` and `only_b` count the items of which one system alone has the property; 1 where there
    are none. For independent items: rows that share an item need `z_test`.
    """
    import numpy as np
    from scipy.stats import binom

    a, b = np.asarray(only_a, dtype=np.float64), np.asarray(only_b, dtype=np.float64)
    tail = np.asarray(binom.cdf(np.minimum(a, b), a + b, 0.5), dtype=np.float64)
    return np.minimum(1.0, 2 * tail)


def paired_t(mean: ArrayLike, sd: ArrayLike, n: ArrayLike) -> FloatArray:
    """Two-sided p of Student's t for the mean of `n` paired differences.

    `sd` is their standard deviation, with n - 1. Without spread, a mean of 0 has p 1, and any other
    has 2^(1-n): t is infinite there, but a p of 0 says more than n items can, and 2^(1-n) is what
    the exact test that flips the differences' signs gives. NaN with fewer than two differences.
    """
    import numpy as np
    from scipy.stats import t

    mean, sd, n = (np.asarray(x, dtype=np.float64) for x in np.broadcast_arrays(mean, sd, n))
    size = np.where(n >= 2, n, np.nan)
    p = 2 * t.sf(np.abs(_in_units(mean, sd / np.sqrt(size))), size - 1)
    return np.where(_is_flat(mean, sd) & (mean != 0), np.exp2(1 - size), p)


def z_test(difference: ArrayLike, se: ArrayLike) -> FloatArray:
    """Two-sided normal p of a difference with a standard error from the bootstrap.

    Without spread, a difference of 0 has p 1; any other has none (NaN): draws that do not vary say
    nothing of the noise, and how many clusters they came from is not known here.
    """
    import numpy as np
    from scipy.stats import norm

    arrays = np.broadcast_arrays(difference, se)
    gap, spread = (np.asarray(x, dtype=np.float64) for x in arrays)
    p = 2 * norm.sf(np.abs(_in_units(gap, spread)))
    return np.where(_is_flat(gap, spread) & (gap != 0), np.nan, p)


def holm(p: ArrayLike) -> FloatArray:
    """Holm's (1979) adjusted p of a family of tests (m,).

    NaN stays NaN and does not count: what was not tested is not of the family.
    """
    import numpy as np

    values = np.asarray(p, dtype=np.float64)
    adjusted = np.full_like(values, np.nan)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    steps = values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def matched_rates(
    only_a: ArrayLike, only_b: ArrayLike, n: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Difference a - b of two rates over the same `n` items, and its standard error: never zero.

    Agresti and Min, "Simple improved confidence intervals for comparing matched proportions",
    Statistics in Medicine 24 (2005): Wald's, with 0.5 added to each cell of the 2 x 2 table. The
    difference is therefore a little nearer to 0 than that of the rates: (a - b) / (n + 2). For
    independent items. NaN of no items.
    """
    import numpy as np

    a, b, total = (np.asarray(x, dtype=np.float64) for x in (only_a, only_b, n))
    size = np.where(total > 0, total + 2, np.nan)
    difference = (a - b) / size
    se = np.sqrt((a + b + 1) / size - difference**2) / np.sqrt(size)
    return difference, se


def equivalence_p(
    difference: ArrayLike, se: ArrayLike, *, margin: ArrayLike, df: ArrayLike | None = None
) -> FloatArray:
    """p of two one-sided tests (Schuirmann 1987) that the difference lies within +-`margin`.

    The larger of the two: that of the nearer end of the margin. Normal, or Student's t with `df`.
    Without spread 0 within the margin and 1 from its ends on. A p below alpha says that the
    interval of confidence 1 - 2 alpha lies within the margin.
    """
    import numpy as np
    from scipy.stats import norm, t

    gap, spread, bound = (np.asarray(x, dtype=np.float64) for x in (difference, se, margin))
    room = bound - np.abs(gap)
    with np.errstate(invalid="ignore", divide="ignore"):
        steps = np.where((room == 0) & (spread == 0), -np.inf, room / spread)
    p = norm.sf(steps) if df is None else t.sf(steps, np.asarray(df, dtype=np.float64))
    return np.asarray(p, dtype=np.float64)


def minimum_detectable(se: ArrayLike, *, confidence: float, power: float) -> FloatArray:
    """The least true difference that a two-sided test finds with this `power` (both 0 to 1).

    In the units of `se`, the standard error of the paired difference: (z_{1-alpha/2} + z_power) se.
    """
    import numpy as np
    from scipy.stats import norm

    steps = norm.ppf((1 + confidence) / 2) + norm.ppf(power)
    return np.asarray(steps * np.asarray(se, dtype=np.float64))


def _drawn_sums(values: FloatArray, counts: FloatArray) -> FloatArray:
    """Each resample's sum of each system's values (systems, clusters): (resamples, systems)."""
    import numpy as np

    finite = np.isfinite(values)
    sums = _products(np.where(finite, values, 0.0), counts)
    odd = ~finite.all(axis=0)
    if odd.any():
        special, drawn = values[:, odd], counts[:, odd]
        for extreme in (np.inf, -np.inf, np.nan):
            held = np.isnan(special) if np.isnan(extreme) else special == extreme
            hit = _products(held.astype(np.float64), drawn) > 0
            with np.errstate(invalid="ignore"):  # infinities of both signs
                sums[hit] += extreme
    return sums


def _products(values: FloatArray, counts: FloatArray) -> FloatArray:
    """counts @ values.T, each distinct row once: a matrix product may round equal rows apart."""
    import numpy as np

    distinct: dict[bytes, int] = {}
    of_row = [distinct.setdefault(row.tobytes(), len(distinct)) for row in values]
    first = [of_row.index(place) for place in range(len(distinct))]
    return np.asarray((counts @ values[first].T)[:, of_row])


def _in_units(value: FloatArray, spread: FloatArray) -> FloatArray:
    """`value` over `spread`; 0 over 0 is 0."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((value == 0) & (spread == 0), 0.0, value / spread)


def _is_flat(value: FloatArray, spread: FloatArray) -> FloatArray:
    """Where the spread is none, up to rounding."""
    import numpy as np

    return np.asarray(np.isfinite(value) & (spread <= _NO_SPREAD * np.abs(value)))
