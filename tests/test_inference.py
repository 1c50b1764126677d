"""Paired statistics: against SciPy, statsmodels, published examples and known populations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats as scipy_stats

from benchmarks import coverage
from ncu_exp.inference import (
    bootstrap_ratios,
    equivalence_p,
    holm,
    matched_rates,
    mcnemar_exact,
    minimum_detectable,
    paired_t,
    percentile_interval,
    resampled_counts,
    z_test,
)
from ncu_exp.stats import Resampling, mean_interval, ratio_interval

PLAN = Resampling(resamples=400, confidence=0.9, seed=7)
# Agresti, Categorical Data Analysis (1990), p. 350: 1600 people asked twice whether they approve.
ONLY_FIRST, ONLY_SECOND, ASKED = 150, 86, 1600
# Student (1908), hours of sleep gained by two drugs: `sleep` in R.
DRUG_1 = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
DRUG_2 = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])

p_values = arrays(np.float64, st.integers(0, 12), elements=st.floats(0, 1))
samples = arrays(np.float64, st.tuples(st.just(3), st.integers(2, 9)), elements=st.floats(-9, 9))


def moments(gaps: np.ndarray) -> tuple[float, float, int]:
    return float(gaps.mean()), float(gaps.std(ddof=1)), len(gaps)


def test_counts_are_the_resamples_of_the_reports() -> None:
    counts = resampled_counts(30, PLAN)
    drawn = np.random.default_rng(PLAN.seed).integers(0, 30, (PLAN.resamples, 30))
    assert np.array_equal(counts, [np.bincount(row, minlength=30) for row in drawn])
    assert (counts.sum(axis=1) == 30).all()
    assert np.array_equal(counts, resampled_counts(30, PLAN))


def test_intervals_are_those_of_the_reports() -> None:
    above, below = np.random.default_rng(1).exponential(size=(2, 5000))
    counts = resampled_counts(5000, PLAN)  # drawn in batches
    mean = percentile_interval(bootstrap_ratios(above, np.ones(5000), counts=counts), 0.9)
    found = mean_interval(above, PLAN)
    assert np.ravel(mean) == pytest.approx([found.lo, found.hi])
    ratio = percentile_interval(bootstrap_ratios(above, below, counts=counts), 0.9)
    found = ratio_interval(above, below, plan=PLAN)
    assert np.ravel(ratio) == pytest.approx([found.lo, found.hi])


def test_ratios_are_a_slow_loop_over_rows() -> None:
    rng = np.random.default_rng(2)
    items = [rng.random((2, rng.integers(1, 5))) for _ in range(12)]  # (systems, rows) of an item
    sums = np.array([item.sum(axis=1) for item in items]).T
    rows = np.array([item.shape[1] for item in items], dtype=float)
    draws = bootstrap_ratios(sums, rows, counts=resampled_counts(12, PLAN))
    again = np.random.default_rng(PLAN.seed)
    for draw in draws:
        drawn = [items[i] for i in again.integers(0, 12, 12)]
        assert draw == pytest.approx(np.concatenate(drawn, axis=1).mean(axis=1))


def test_ratios_spread_as_scipys_do() -> None:
    above, below = np.random.default_rng(3).exponential(size=(2, 80))
    plan = Resampling(5000, 0.95, seed=1)
    draws = bootstrap_ratios(above, below, counts=resampled_counts(80, plan))[:, 0]
    theirs = scipy_stats.bootstrap(
        (above, below), lambda a, b, axis: a.sum(axis) / b.sum(axis), paired=True,
        n_resamples=5000, method="percentile", rng=np.random.default_rng(99),
    )  # fmt: skip
    assert draws.std(ddof=1) == pytest.approx(theirs.standard_error, rel=0.05)
    ends = np.ravel(percentile_interval(draws, 0.95))
    assert ends == pytest.approx(theirs.confidence_interval, abs=0.1 * theirs.standard_error)


def test_an_infinity_reaches_only_the_resamples_that_draw_it() -> None:
    values = np.tile(np.arange(5.0), (4, 1))
    values[0, 1], values[1, 2], values[2, 3] = np.inf, -np.inf, np.nan
    values[3, :2] = np.inf, -np.inf
    counts = resampled_counts(5, PLAN)
    draws = bootstrap_ratios(values, np.ones(5), counts=counts)
    for column, (extreme, at) in enumerate([(np.inf, 1), (-np.inf, 2), (np.nan, 3)]):
        hit = counts[:, at] > 0
        assert np.array_equal(draws[hit, column], np.full(hit.sum(), extreme), equal_nan=True)
        plain = bootstrap_ratios(np.arange(5.0), np.ones(5), counts=counts)[:, 0]
        assert np.array_equal(draws[~hit, column], plain[~hit])
    assert np.array_equal(np.isnan(draws[:, 3]), (counts[:, :2] > 0).all(axis=1))


def test_nothing_drawn_is_nan() -> None:
    draws = bootstrap_ratios([[1.0, 0.0]], [[1.0, 0.0]], counts=[[1.0, 1.0], [0.0, 2.0]])
    assert np.array_equal(draws, [[1], [np.nan]], equal_nan=True)
    assert np.isnan(percentile_interval(draws, 0.9)).all()


@pytest.mark.parametrize("clusters", [3, 50, 801])
def test_equal_systems_have_equal_draws_to_the_last_bit(clusters: int) -> None:
    rng = np.random.default_rng(4)
    values = np.repeat(rng.random((1, clusters)), 7, axis=0)
    counts = resampled_counts(clusters, Resampling(401, 0.9, seed=7))  # an edge of BLAS's blocks
    draws = bootstrap_ratios(values, rng.random(clusters), counts=counts)
    assert not (draws - draws[:, :1]).any()


@settings(deadline=None)
@given(samples)
def test_the_draw_of_a_difference_is_the_difference_of_draws(values: np.ndarray) -> None:
    counts, rows = resampled_counts(values.shape[1], PLAN), np.ones(values.shape[1])
    draws = bootstrap_ratios(values, rows, counts=counts)
    gaps = bootstrap_ratios(values[0] - values[1], rows, counts=counts)[:, 0]
    assert draws[:, 0] - draws[:, 1] == pytest.approx(gaps, abs=1e-12)


@settings(deadline=None)
@given(samples, st.floats(0.5, 0.99), st.floats(-5, 5))
def test_percentile_intervals_order_nest_and_shift(
    values: np.ndarray, confidence: float, shift: float
) -> None:
    draws = values.T
    lo, hi = percentile_interval(draws, confidence)
    assert (np.diff([draws.min(axis=0), lo, hi, draws.max(axis=0)], axis=0) >= 0).all()
    inner_lo, inner_hi = percentile_interval(draws, confidence / 2)
    assert (lo <= inner_lo + 1e-12).all()
    assert (inner_hi <= hi + 1e-12).all()
    moved = percentile_interval(-draws + shift, confidence)
    assert moved[0] == pytest.approx(shift - hi)
    assert moved[1] == pytest.approx(shift - lo)


def test_an_infinite_draw_leaves_the_other_end_alone() -> None:
    assert percentile_interval([1.0, 2.0, 3.0, np.inf, np.inf], 0.4) == (2.0, np.inf)
    assert percentile_interval([-np.inf, 1.0, 2.0, 3.0], 0.4) == (-np.inf, 3.0)


def test_mcnemar_is_statsmodels_and_the_binomial_test() -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    a, b = (cells.ravel() for cells in np.meshgrid(np.arange(0, 40, 3), np.arange(1, 60, 7)))
    found = mcnemar_exact(a, b)
    for first, second, p in zip(a, b, found, strict=True):
        assert p == pytest.approx(mcnemar([[5, first], [second, 9]], exact=True).pvalue)
        assert p == pytest.approx(scipy_stats.binomtest(int(first), int(first + second)).pvalue)
    assert mcnemar_exact(np.zeros((2, 3)), np.zeros((2, 3))) == pytest.approx(np.ones((2, 3)))


def test_the_approval_ratings() -> None:
    assert mcnemar_exact(ONLY_FIRST, ONLY_SECOND) == pytest.approx(3.716e-5, abs=5e-9)
    se = math.sqrt(ONLY_FIRST + ONLY_SECOND) / ASKED  # of no difference
    assert (0.04 / se) ** 2 == pytest.approx(17.3559, abs=5e-5)
    assert z_test(0.04, se) == pytest.approx(3.099e-5, abs=5e-9)
    difference, se = matched_rates(ONLY_FIRST, ONLY_SECOND, ASKED)
    assert se == pytest.approx(0.0095, abs=1e-4)
    assert [difference - 1.96 * se, difference + 1.96 * se] == pytest.approx([0.02, 0.06], abs=2e-3)


def test_matched_rates_by_hand() -> None:
    # 8 items, 3 of a alone and 1 of b alone: cells 3.5 and 1.5 of 10.
    difference, se = matched_rates([3, 0, 8], [1, 0, 0], [8, 8, 8])
    assert difference == pytest.approx([0.2, 0, 0.8])
    by_hand = [math.sqrt(5 - 0.2**2 * 10), math.sqrt(1), math.sqrt(9 - 0.8**2 * 10)]
    assert se == pytest.approx(np.array(by_hand) / 10)
    assert np.isnan(matched_rates(0, 0, 0)).all()


@settings(deadline=None)
@given(st.integers(1, 300), st.data())
def test_matched_rates_always_have_width(n: int, data: st.DataObject) -> None:
    a = data.draw(st.integers(0, n))
    b = data.draw(st.integers(0, n - a))
    difference, se = matched_rates(a, b, n)
    assert se > 0
    assert abs(difference) <= abs(a - b) / n
    assert matched_rates(b, a, n) == (-difference, se)


def test_the_t_test_is_scipys_and_students() -> None:
    gaps = DRUG_2 - DRUG_1
    assert paired_t(*moments(gaps)) == pytest.approx(0.002833, abs=5e-7)
    assert paired_t(*moments(gaps)) == pytest.approx(scipy_stats.ttest_rel(DRUG_2, DRUG_1).pvalue)
    many = np.random.default_rng(5).normal(0.1, size=(25, 4))
    found = paired_t(many.mean(axis=0), many.std(axis=0, ddof=1), 25)
    assert found == pytest.approx(scipy_stats.ttest_1samp(many, 0).pvalue)


def test_differences_without_spread() -> None:
    assert paired_t([0, 0.3, -0.3, 0.1], [0, 0, 0, 1e-17], [9, 5, 2, 3]) == pytest.approx(
        [1, 2**-4, 0.5, 0.25]
    )
    flips = scipy_stats.permutation_test(
        (np.full(5, 0.3), np.zeros(5)), lambda a, b: np.mean(a - b), permutation_type="samples"
    )
    assert flips.pvalue == pytest.approx(2**-4)
    assert np.isnan(
        paired_t([0.3, 0.3, np.nan, np.inf], [np.nan, 0, 1, np.nan], [1, 0, 5, 5])
    ).all()
    assert z_test([0.0, 0.0], [0.0, 1.0]) == pytest.approx([1, 1])
    assert np.isnan(z_test([0.3, 0.3, np.nan], [0.0, 1e-17, 1.0])).all()


def test_holm_is_statsmodels_and_the_textbook() -> None:
    from statsmodels.stats.multitest import multipletests

    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    p = np.random.default_rng(6).random(40) ** 3
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    with_gaps = np.insert(p, [0, 7, 40], np.nan)
    assert np.isnan(holm(with_gaps)).sum() == 3
    assert holm(with_gaps)[~np.isnan(with_gaps)] == pytest.approx(holm(p))
    assert holm([]).shape == (0,)
    assert np.isnan(holm([np.nan])).all()


@settings(deadline=None)
@given(p_values)
def test_holm_keeps_the_order_and_lowers_nothing(p: np.ndarray) -> None:
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()
    assert adjusted[p == p.min(initial=1)] == pytest.approx(min(1, p.min(initial=1) * len(p)))


def test_equivalence_is_statsmodels() -> None:
    from statsmodels.stats.weightstats import ttost_paired

    rng = np.random.default_rng(8)
    for margin in (0.05, 0.3, 1.0):
        a, b = rng.normal(size=(2, 30))
        mean, sd, n = moments(a - b)
        found = equivalence_p(mean, sd / math.sqrt(n), margin=margin, df=n - 1)
        assert found == pytest.approx(ttost_paired(a, b, -margin, margin)[0])


def test_equivalence_reads_students_interval() -> None:
    # R: 95 percent confidence interval 0.7001142 to 2.4598858 of the mean difference.
    mean, sd, n = moments(DRUG_2 - DRUG_1)
    found = equivalence_p(mean, sd / math.sqrt(n), margin=2.4598858, df=n - 1)
    assert found == pytest.approx(0.025, abs=1e-6)


@settings(deadline=None)
@given(st.floats(-1, 1), st.floats(0.01, 1), st.floats(0.01, 2))
def test_equivalent_is_an_interval_within_the_margin(gap: float, se: float, margin: float) -> None:
    reach = scipy_stats.norm.ppf(0.95) * se
    p = equivalence_p(gap, se, margin=margin)
    both = scipy_stats.norm.sf((gap + margin) / se), scipy_stats.norm.cdf((gap - margin) / se)
    assert p == pytest.approx(max(both))
    if abs(abs(gap) + reach - margin) > 1e-9:
        assert (p < 0.05) == (abs(gap) + reach < margin)


def test_equivalence_without_spread_and_over_arrays() -> None:
    gaps = [0, 0.05, 0.1, -0.1, 0.2, np.nan]
    assert equivalence_p(gaps, 0, margin=0.1)[:5].tolist() == [0, 0, 1, 1, 1]
    assert math.isnan(equivalence_p(gaps, 0, margin=0.1)[5])
    assert equivalence_p(np.zeros((2, 3)), np.ones(3), margin=np.ones((2, 1))).shape == (2, 3)


def test_the_minimum_detectable_difference_has_its_power() -> None:
    se = np.array([0.01, 0.2, np.nan])
    found = minimum_detectable(se, confidence=0.95, power=0.8)
    assert found[:2] / se[:2] == pytest.approx([2.8016, 2.8016], abs=5e-5)  # 1.96 + 0.8416
    assert math.isnan(found[2])
    drawn = np.random.default_rng(9).normal(found[0], se[0], size=20_000)
    assert (z_test(drawn, 0.01) < 0.05).mean() == pytest.approx(0.8, abs=0.01)


SETS = 2000


@pytest.mark.parametrize("name", [
    "a rate of 0.3", "a rate of 0.3, three rows an item, drawn by item",
    "mean NCU, atoms at 0 and 1", "difference of two systems' mean NCU", "pooled NCU",
    "difference of two systems' rates", "the same, Agresti and Min",
])  # fmt: skip
def test_intervals_hold_the_truth_as_often_as_they_say(name: str) -> None:
    found, error = coverage.share(coverage.COVERAGE[name], 100, sets=SETS, plan=coverage.PLAN)
    assert coverage.LOWEST - 2 * error <= found <= coverage.HIGHEST + 2 * error


def test_rows_drawn_without_their_items_do_not() -> None:
    trial = coverage.COVERAGE["the same, wrongly drawn by row"]
    assert coverage.share(trial, 100, sets=500, plan=coverage.PLAN)[0] < 0.85


@pytest.mark.parametrize("name", coverage.ERRORS)
def test_tests_err_no_more_often_than_they_say(name: str) -> None:
    found, error = coverage.share(coverage.ERRORS[name], 100, sets=SETS, plan=coverage.PLAN)
    assert found <= coverage.ALPHA + 3 * error
