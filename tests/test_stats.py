"""Intervals: against a bootstrap written out in numpy, on known populations, on the edges."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from ncu_exp import stats
from ncu_exp.stats import Resampling, mean_interval, median_interval, ratio_interval

PLAN = Resampling(resamples=500, confidence=0.9, seed=7)


def resampled(values: np.ndarray, plan: Resampling = PLAN) -> np.ndarray:
    """The resamples of `values` that the plan's seed draws, (resamples, n)."""
    n = len(values)
    return values[np.random.default_rng(plan.seed).integers(0, n, (plan.resamples, n))]


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(1).exponential(size=30)


def test_a_mean_interval_is_the_numpy_percentile_bootstrap(values: np.ndarray) -> None:
    found = mean_interval(values, PLAN)
    lo, hi = np.percentile(resampled(values).mean(axis=1), [5, 95])
    assert found.value == pytest.approx(values.mean())
    assert (found.lo, found.hi) == pytest.approx((lo, hi))


def test_a_median_interval_is_the_numpy_percentile_bootstrap(values: np.ndarray) -> None:
    found = median_interval(values, PLAN)
    lo, hi = np.percentile(np.median(resampled(values), axis=1), [5, 95])
    assert found.value == pytest.approx(np.median(values))
    assert (found.lo, found.hi) == pytest.approx((lo, hi))


def test_a_ratio_resamples_its_pairs_together(values: np.ndarray) -> None:
    below = np.random.default_rng(2).exponential(size=30) + values
    found = ratio_interval(values, below, plan=PLAN)
    ratios = resampled(values).sum(axis=1) / resampled(below).sum(axis=1)
    assert found.value == pytest.approx(values.sum() / below.sum())
    assert (found.lo, found.hi) == pytest.approx(tuple(np.percentile(ratios, [5, 95])))


def test_samples_of_one_size_share_their_resamples(values: np.ndarray) -> None:
    plain, shifted = mean_interval(values, PLAN), mean_interval(values + 1, PLAN)
    assert shifted.lo - plain.lo == pytest.approx(1)
    assert shifted.hi - plain.hi == pytest.approx(1)
    assert mean_interval(values, PLAN) == plain
    assert mean_interval(values, Resampling(500, 0.9, seed=8)) != plain


def test_batches_do_not_change_the_interval(
    values: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = mean_interval(values, PLAN)
    monkeypatch.setattr(stats, "_BATCH_ELEMENTS", 7 * 30)
    assert mean_interval(values, PLAN) == whole


def test_memory_is_bounded() -> None:
    many = np.random.default_rng(0).random(20_000)  # 500 resamples of it: 80 MB of values
    tracemalloc.start()
    mean_interval(many, PLAN)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6


@pytest.mark.parametrize(
    ("draw", "truth", "interval"),
    [
        (lambda rng: rng.random(60) < 0.3, 0.3, mean_interval),
        (lambda rng: rng.exponential(size=60), math.log(2), median_interval),
    ],
    ids=["rate", "median"],
)
def test_the_interval_covers_as_often_as_it_says(draw, truth, interval) -> None:
    rng = np.random.default_rng(3)
    plan = Resampling(resamples=400, confidence=0.9, seed=0)
    found = [interval(draw(rng), plan) for _ in range(300)]
    coverage = np.mean([e.lo <= truth <= e.hi for e in found])
    # Two standard errors of 300 trials are 3.5 points; the percentile interval is a little short.
    assert 0.84 <= coverage <= 0.95


def test_a_wider_confidence_gives_a_wider_interval(values: np.ndarray) -> None:
    narrow = mean_interval(values, Resampling(500, 0.5, seed=7))
    wide = mean_interval(values, Resampling(500, 0.99, seed=7))
    assert wide.lo < narrow.lo < narrow.hi < wide.hi


def test_constant_data_has_an_interval_without_width() -> None:
    for interval in (mean_interval, median_interval):
        found = interval([1.0] * 12, PLAN)
        assert (found.value, found.lo, found.hi) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_values_have_no_interval(n: int) -> None:
    ratio = ratio_interval([3.0] * n, [2.0] * n, plan=PLAN)
    for found in (mean_interval([1.5] * n, PLAN), median_interval([1.5] * n, PLAN), ratio):
        assert math.isnan(found.value) if n == 0 else found.value == 1.5
        assert math.isnan(found.lo)
        assert math.isnan(found.hi)


def test_a_ratio_over_nothing_is_nan() -> None:
    assert math.isnan(ratio_interval([1.0, 2.0], [0.0, 0.0], plan=PLAN).value)


def test_a_ratio_whose_resamples_can_be_over_nothing_has_no_interval() -> None:
    found = ratio_interval([0.0, 1.0], [0.0, 2.0], plan=PLAN)  # a quarter resample 0 twice
    assert found.value == 0.5
    assert math.isnan(found.lo)
    assert math.isnan(found.hi)
