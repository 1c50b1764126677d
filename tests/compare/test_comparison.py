"""What a comparison computes, beside numbers computed another way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, bootstrap, ttest_rel

from ncu_exp.compare.comparison import Comparison, compare
from ncu_exp.compare.loading import AskedRun
from ncu_exp.records import Condition
from ncu_exp.tables import items_table
from tests.compare.test_alignment import asked
from tests.past import config_of, rescored, shifted
from tests.synthetic import SETTINGS, Run, bounded, run

N = 80


def compared(*runs: AskedRun, resamples: int = 400, across: Sequence[str] = ()) -> Comparison:
    config = config_of(Path(), "a", f"metrics.resamples={resamples}")
    settings = replace(config.compare, across=list(across))
    return compare(list(runs), settings=settings, metrics=config.metrics)


def noisy(made: Run, seed: int, spread: float = 0.5) -> Run:
    """Another model: its log-probabilities are those of `made` times a random factor each."""
    rng = np.random.default_rng(seed)
    return rescored(made, lambda logprob: logprob * float(rng.lognormal(0, spread)))


@pytest.fixture(scope="module")
def two() -> Comparison:
    made = run(N)
    return compared(asked("a", made), asked("b", noisy(made, 1)))


def table_of(made: Run) -> pd.DataFrame:
    return items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)


def surprisals(made: Run, condition: str) -> pd.Series:
    """By item, from the raw log-probabilities alone."""
    return pd.Series(
        {
            score.item_id: -np.mean(score.continuations[0].token_logprobs)
            for score in made.scores
            if score.condition == condition and score.continuations
        }
    )


def row(frame: pd.DataFrame, **where: Any) -> dict[str, Any]:
    for column, value in where.items():
        frame = frame[frame[column] == value]
    [found] = frame.to_dict("records")
    return {str(key): value for key, value in found.items()}


def test_values_are_those_of_the_raw_log_probabilities(two: Comparison) -> None:
    made = noisy(run(N), 1)
    s_prior, s_post = surprisals(made, "zero"), surprisals(made, "oracle")
    ncu = ((s_prior - s_post) / (s_prior + 1e-5)).clip(0, 1)
    found = row(two.summary, system="b", corpus="sample", measure="oracle/ncu")
    assert found["value"] == pytest.approx(ncu.mean(), abs=1e-12)
    assert (found["n"], found["n_total"]) == (N, N)
    accuracy = row(two.summary, system="b", corpus="sample", measure="oracle/accuracy")
    assert accuracy["value"] == pytest.approx((np.exp(-s_post) > 0.05).mean())
    pooled = row(two.summary, system="b", corpus="sample", measure="oracle/ncu_pooled")
    assert pooled["value"] == pytest.approx(1 - s_post.sum() / s_prior.sum())
    median = row(two.summary, system="b", corpus="sample", measure="oracle/ncu_raw_median")
    assert median["value"] == pytest.approx(((s_prior - s_post) / (s_prior + 1e-5)).median())


def test_intervals_are_those_of_the_same_bootstrap_in_scipy(two: Comparison) -> None:
    made = run(N)
    s_prior, s_post = surprisals(made, "zero"), surprisals(made, "oracle")
    raw = ((s_prior - s_post) / (s_prior + 1e-5)).sort_index().to_numpy()
    for measure, values, statistic in (
        ("oracle/ncu", np.clip(raw, 0, 1), np.mean),
        ("oracle/ncu_raw_median", raw, np.median),
    ):
        expected = bootstrap(
            (values,), statistic, n_resamples=4000, method="percentile", rng=1, vectorized=True
        ).confidence_interval
        found = row(two.summary, system="a", corpus="sample", measure=measure)
        width = expected.high - expected.low
        assert found["lo"] == pytest.approx(expected.low, abs=0.15 * width)
        assert found["hi"] == pytest.approx(expected.high, abs=0.15 * width)


def test_a_difference_of_means_has_the_p_of_a_paired_t_test(two: Comparison) -> None:
    made = run(N)
    ncus = []
    for of in (made, noisy(made, 1)):
        s_prior, s_post = surprisals(of, "zero"), surprisals(of, "oracle")
        ncus.append(((s_prior - s_post) / (s_prior + 1e-5)).clip(0, 1))
    expected = ttest_rel(ncus[0], ncus[1])
    found = row(two.differences, corpus="sample", measure="oracle/ncu")
    assert found["test"] == "paired_t"
    assert found["difference"] == pytest.approx((ncus[0] - ncus[1]).mean())
    assert found["p"] == pytest.approx(expected.pvalue)
    assert found["lo"] < found["difference"] < found["hi"]


def test_a_difference_of_rates_has_the_p_of_mcnemar(two: Comparison) -> None:
    made = run(N)
    first, second = (np.exp(-surprisals(of, "noise")) > 0.05 for of in (made, noisy(made, 1)))
    only_a, only_b = int((first & ~second).sum()), int((second & ~first).sum())
    found = row(two.differences, corpus="sample", measure="noise/accuracy")
    assert found["test"] == "mcnemar"
    assert found["p"] == pytest.approx(binomtest(only_a, only_a + only_b).pvalue)
    assert found["difference"] == pytest.approx((only_a - only_b) / found["n"])
    assert found["n"] == N - N // 50  # one in fifty is too long for the noise


def test_what_is_left_out_of_one_system_is_left_out_of_the_pair() -> None:
    made = run(N)
    lost = {item.item_id for item in made.items[:30]}
    ragged = replace(
        made,
        scores=[s for s in made.scores if not (s.item_id in lost and s.condition == "oracle")],
    )
    both = compared(asked("a", ragged), asked("b", noisy(made, 1)))
    alone = compared(
        *(
            asked(label, replace(of, scores=[s for s in of.scores if s.item_id not in lost]))
            for label, of in (("a", made), ("b", noisy(made, 1)))
        )
    )
    where = {"corpus": "sample", "measure": "oracle/ncu"}
    found, expected = row(both.differences, **where), row(alone.differences, **where)
    assert found["n"] == expected["n"] == N - 30
    for key in ("difference", "p", "lo", "hi", "detectable"):
        assert found[key] == pytest.approx(expected[key], rel=0.2 if key in ("lo", "hi") else 1e-9)
    assert row(both.summary, system="b", **where)["n"] == N


def test_a_system_is_tied_with_itself_and_surely_unlike_a_much_worse_one() -> None:
    made = run(N)
    worse = replace(
        made,
        scores=[
            shifted(replace(made, scores=[s]), 4.0).scores[0] if s.condition == "oracle" else s
            for s in made.scores
        ],
    )
    found = compared(asked("a", made), asked("same", made), asked("worse", worse))
    where = {"corpus": "pooled", "measure": "oracle/ncu"}
    assert row(found.differences, a="a", b="same", **where)["verdict"] == "tie"
    assert row(found.differences, a="a", b="worse", **where)["verdict"] == "higher"
    of_surprisal = row(found.summary, system="worse", corpus="pooled", measure="oracle/surprisal")
    assert of_surprisal["value"] == pytest.approx(4 * surprisals(made, "oracle").mean())


def test_small_differences_of_many_items_are_equivalent_and_of_few_undecided() -> None:
    made = run(2000, conditions=(Condition.zero, Condition.oracle))
    found = compared(asked("a", made), asked("b", noisy(made, 1, spread=0.05)), resamples=100)
    pair = row(found.differences, corpus="pooled", measure="oracle/ncu")
    assert pair["verdict"] == "equivalent"
    assert pair["p_equivalence"] < 0.05
    few = run(40, conditions=(Condition.zero, Condition.oracle))
    found = compared(asked("a", few), asked("b", noisy(few, 1, spread=1.0)), resamples=100)
    pair = row(found.differences, corpus="pooled", measure="oracle/ncu")
    assert pair["verdict"] == "undecided"
    assert pair["detectable"] > abs(pair["difference"])


def test_holm_is_over_the_family_of_a_corpus(two: Comparison) -> None:
    from statsmodels.stats.multitest import multipletests

    for _, family in two.differences.groupby("corpus"):
        tested = family.dropna(subset="p")
        expected = multipletests(tested["p"], method="holm")[1]
        assert tested["p_holm"].to_numpy() == pytest.approx(expected)


def test_pooled_is_over_all_corpora_and_one_alone_is_its_own_pool() -> None:
    runs = [
        asked(label, noisy(run(n, seed=c), s), f"dataset={corpus}")
        for s, label in enumerate(("a", "b"))
        for c, (corpus, n) in enumerate({"sample": 40, "squad": 60}.items())
    ]
    found = compared(*runs)
    by_corpus = {
        corpus: row(found.summary, system="b", corpus=corpus, measure="oracle/ncu")
        for corpus in ("sample", "squad", "pooled")
    }
    parts = [by_corpus["sample"], by_corpus["squad"]]
    whole = sum(part["value"] * part["n"] for part in parts) / sum(part["n"] for part in parts)
    assert by_corpus["pooled"]["value"] == pytest.approx(whole)
    assert by_corpus["pooled"]["n"] == 100
    assert by_corpus["pooled"]["hi"] - by_corpus["pooled"]["lo"] < max(
        part["hi"] - part["lo"] for part in parts
    )


def test_draws_of_the_same_items_are_clusters() -> None:
    made = run(N)
    once = compared(asked("a", made), asked("b", noisy(made, 1)))
    again = compared(
        *(
            asked(label, of, f"perturb.seed={seed}")
            for label, of in (("a", made), ("b", noisy(made, 1)))
            for seed in (0, 1, 2)
        )
    )
    where = {"corpus": "sample", "measure": "oracle/ncu"}
    first = row(once.summary, system="a", **where)
    repeated = row(again.summary, system="a", **where)
    assert repeated["n"] == 3 * first["n"]
    # The same items thrice say no more than once.
    for key in ("value", "lo", "hi"):
        assert repeated[key] == pytest.approx(first[key])
    pair = row(again.differences, **where)
    assert pair["test"] == "bootstrap"
    assert pair["difference"] == pytest.approx(row(once.differences, **where)["difference"])


def test_bounded_values_stay_bounds_that_hold_the_exact_ones() -> None:
    made, other = run(N), noisy(run(N), 1)
    exact = compared(asked("a", made), asked("b", other))
    told = replace(other, scores=[bounded(s) if s.continuations else s for s in other.scores])
    found = compared(asked("a", made), asked("b", told))
    assert list(found.systems["estimator"]) == ["exact", "interval"]
    for corpus, measure in (("sample", "oracle/accuracy"), ("pooled", "oracle/ncu")):
        where = {"corpus": corpus, "measure": measure}
        number, bounds = (
            row(exact.summary, system="b", **where),
            row(found.summary, system="b", **where),
        )
        assert math.isnan(bounds["value"])
        assert bounds["lower"] <= number["value"] <= bounds["upper"]
        assert bounds["lo"] <= number["lo"]
        assert bounds["hi"] >= number["hi"]
        pair, pair_bounds = row(exact.differences, **where), row(found.differences, **where)
        assert pair_bounds["lower"] <= pair["difference"] <= pair_bounds["upper"]
        assert pair_bounds["p"] >= pair["p"] or pair_bounds["p"] == 1
        assert pair_bounds["p_equivalence"] >= pair["p_equivalence"]


def test_numbers_of_other_kinds_are_not_tested() -> None:
    made = run(N)
    paper = replace(made, scores=[replace(s, estimator="paper") for s in made.scores])
    found = compared(asked("a", made), asked("b", paper))
    assert set(found.differences["verdict"]) == {"not_comparable"}
    assert found.differences["p"].isna().all()


def test_each_system_keeps_its_own_tau_where_that_is_what_varies() -> None:
    made = run(N)
    strict = asked("a", made, "metrics.tau=0.5")
    alone = compared(strict)
    assert alone.metrics.tau == 0.5
    both = compared(strict, asked("b", made), across=["metrics.tau"])
    rates = [row(both.summary, system=s, corpus="sample", measure="oracle/accuracy") for s in "ab"]
    assert rates[0]["value"] < rates[1]["value"]
    assert "a: tau 0.5, epsilon 1e-05; b: tau 0.05" in " ".join(both.notes)


def test_the_order_of_runs_changes_no_number(two: Comparison) -> None:
    made = run(N)
    turned = compared(asked("b", noisy(made, 1)), asked("a", made))
    keys = ["system", "corpus", "measure"]
    first, second = (f.summary.set_index(keys).sort_index() for f in (two, turned))
    pd.testing.assert_frame_equal(first, second)
