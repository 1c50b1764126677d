"""Formulas against hand-computed values; metrics of small tables worked out in the comments."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_exp.formulas import (
    cus,
    exact_match,
    ncu,
    ncu_raw,
    normalize_answer,
    success,
    surprisal,
    token_f1,
)
from ncu_exp.metrics import aggregate, latency_metrics
from ncu_exp.records import Arm, Condition, LatencyProbe, Score
from ncu_exp.stats import Metric
from ncu_exp.tables import items_table
from tests.synthetic import FOUR, SETTINGS, arm, item, run, score

ZERO, ORACLE, FALSE = Condition.zero, Condition.oracle, Condition.adversarial
nats = st.floats(min_value=0, max_value=50)
EPSILON = 1e-5


def measured(arms: list[Arm], scores: list[Score]) -> dict[str, Metric]:
    return {metric.name: metric for metric in aggregate(table(arms, scores), settings=SETTINGS)}


def table(arms: list[Arm], scores: list[Score]) -> pd.DataFrame:
    items = [item(item_id) for item_id in dict.fromkeys(a.item_id for a in arms)]
    return items_table(items, arms, scores=scores, settings=SETTINGS)


# --- formulas -------------------------------------------------------------------------------------


def test_formulas_of_one_item() -> None:
    # S_prior = 2, S_post = 0.5: CUS = 1.5, raw NCU = 1.5 / 2.00001.
    assert surprisal(-2.0) == 2.0
    assert cus(2.0, 0.5) == 1.5
    assert ncu_raw(2.0, 0.5, epsilon=EPSILON) == pytest.approx(0.74999625, abs=1e-9)
    assert ncu(2.0, 0.5, epsilon=EPSILON) == pytest.approx(0.74999625, abs=1e-9)
    # The context hurts: S_post = 3, CUS = -1, raw NCU = -1 / 2.00001, bounded to 0.
    assert ncu_raw(2.0, 3.0, epsilon=EPSILON) == pytest.approx(-0.4999975, abs=1e-9)
    assert ncu(2.0, 3.0, epsilon=EPSILON) == 0.0


def test_a_certain_answer_has_a_surprisal_of_plain_zero() -> None:
    assert math.copysign(1, surprisal(0.0)) == 1


def test_success_is_strictly_above_the_threshold() -> None:
    # exp(-3) = 0.0498 < 0.05 < 0.0503 = exp(-2.99)
    assert not success(-3.0, tau=0.05)
    assert success(-2.99, tau=0.05)
    assert not success(0.0, tau=1.0)


def test_formulas_take_arrays_and_keep_nan() -> None:
    s_prior, s_post = np.array([2.0, 2.0, np.nan]), np.array([0.5, 3.0, 1.0])
    assert ncu(s_prior, s_post, epsilon=EPSILON) == pytest.approx(
        np.array([0.74999625, 0.0, np.nan]), nan_ok=True
    )
    assert success(np.array([-1.0, -4.0]), tau=0.05).tolist() == [True, False]


@given(s_prior=nats, s_post=nats)
def test_ncu_is_raw_ncu_within_its_bounds(s_prior: float, s_post: float) -> None:
    raw, bounded = (f(s_prior, s_post, epsilon=EPSILON) for f in (ncu_raw, ncu))
    assert raw < 1
    assert bounded == max(0.0, min(1.0, raw))


@given(s_prior=st.floats(0.01, 50), s_post=nats, tokens=st.integers(1, 40))
def test_the_number_of_tokens_cancels_in_raw_ncu(
    s_prior: float, s_post: float, tokens: int
) -> None:
    per_token = ncu_raw(s_prior, s_post, epsilon=EPSILON)
    summed = ncu_raw(s_prior * tokens, s_post * tokens, epsilon=EPSILON)
    # Up to epsilon, whose part of the denominator is at most epsilon / s_prior.
    assert summed == pytest.approx(per_token, rel=1.01 * EPSILON / s_prior, abs=1e-12)


# --- string matching ------------------------------------------------------------------------------


def test_normal_form_drops_case_punctuation_articles_and_spaces() -> None:
    assert normalize_answer("  The U.S.A., and a  Theatre!\n") == "usa and theatre"
    assert normalize_answer("An «Élan»") == "«élan»"  # ASCII punctuation only, as in the original


def test_exact_match_takes_any_of_the_answers() -> None:
    assert exact_match("the Denver Broncos.", ["Denver Broncos", "Broncos"]) == 1
    assert exact_match("Broncos", ["Denver Broncos", "The Broncos"]) == 1
    assert exact_match("Denver", ["Denver Broncos", "Broncos"]) == 0


def test_f1_is_the_best_overlap_with_any_of_the_answers() -> None:
    # "cat sat on mat" and "cat on mat" share 3 words: P = 3/4, R = 3/3, F1 = 6/7.
    assert token_f1("The cat sat on the mat", ["a cat on a mat", "dog"]) == pytest.approx(6 / 7)
    # A repeated word counts as often as both have it: shared 1, P = 1/2, R = 1, F1 = 2/3.
    assert token_f1("no no", ["no"]) == pytest.approx(2 / 3)
    assert token_f1("Oslo", ["Paris"]) == 0
    assert token_f1("", ["Paris"]) == 0


def official_f1(prediction: str, truth: str) -> float:
    """SQuAD v1.1's definition, by precision and recall."""
    predicted, gold = normalize_answer(prediction).split(), normalize_answer(truth).split()
    same = sum((Counter(predicted) & Counter(gold)).values())
    if same == 0:
        return 0
    precision, recall = same / len(predicted), same / len(gold)
    return 2 * precision * recall / (precision + recall)


words = st.lists(st.sampled_from(["the", "a", "Paris,", "paris", "on", "U.S."]), max_size=6)


@given(prediction=words.map(" ".join), truths=st.lists(words.map(" ".join), min_size=1, max_size=3))
def test_f1_agrees_with_the_official_definition(prediction: str, truths: list[str]) -> None:
    official = max(official_f1(prediction, truth) for truth in truths)
    assert token_f1(prediction, truths) == pytest.approx(official)


# --- metrics of a run -----------------------------------------------------------------------------


@pytest.fixture
def three() -> dict[str, Metric]:
    """Three items without and with context; the third was known beforehand, and the context hurt.

    a: S_prior 2,      S_post 0.5: CUS  1.5,    raw  0.749996
    b: S_prior 4,      S_post 1:   CUS  3,      raw  0.749998
    c: S_prior 0.0001, S_post 1:   CUS -0.9999, raw -0.9999 / 0.00011 = -9090
    """
    arms = [arm(i, c) for i in "abc" for c in (ZERO, ORACLE)]
    scores = [
        score("a", ZERO, [-2.0], greedy="London"),
        score("b", ZERO, [-3.0, -5.0], greedy="It is Paris"),
        score("c", ZERO, [-1e-4], greedy="Paris."),
        score("a", ORACLE, [-0.5]),
        score("b", ORACLE, [-1.0, -1.0]),
        score("c", ORACLE, [-1.0]),
    ]
    return measured(arms, scores)


def test_answering(three: dict[str, Metric]) -> None:
    # P per token: e^-2 = 0.135, e^-4 = 0.018, e^-0.0001 = 1: two of three above 0.05.
    assert three["zero/accuracy"].value == pytest.approx(2 / 3)
    assert three["oracle/accuracy"].value == 1
    assert three["zero/surprisal"].value == pytest.approx(6.0001 / 3)
    assert three["oracle/surprisal"].value == pytest.approx(2.5 / 3)
    # "It is Paris" against "Paris": P = 1/3, R = 1, F1 = 1/2.
    assert three["zero/em"].value == pytest.approx(1 / 3)
    assert three["zero/f1"].value == pytest.approx((0 + 0.5 + 1) / 3)
    assert three["zero/n"].value == three["zero/n_total"].value == 3


def test_utilisation(three: dict[str, Metric]) -> None:
    raw = [1.5 / 2.00001, 3 / 4.00001, -0.9999 / 0.00011]
    assert three["oracle/ncu"].value == pytest.approx((raw[0] + raw[1] + 0) / 3)
    assert three["oracle/ncu_raw_mean"].value == pytest.approx(sum(raw) / 3)
    assert three["oracle/ncu_raw_median"].value == pytest.approx(raw[0])
    assert three["oracle/negative_transfer_rate"].value == pytest.approx(1 / 3)


def test_a_context_that_changes_nothing_is_no_negative_transfer() -> None:
    arms = [arm("a", c) for c in (ZERO, ORACLE)]
    found = measured(arms, [score("a", c, [-2.0]) for c in (ZERO, ORACLE)])
    assert found["oracle/negative_transfer_rate"].value == 0
    assert found["oracle/ncu_raw_mean"].value == 0


def test_the_pooled_ratio_does_not_blow_up_where_raw_ncu_does(three: dict[str, Metric]) -> None:
    assert three["oracle/ncu_raw_mean"].value < -3000
    assert three["oracle/ncu_pooled"].value == pytest.approx(1 - 2.5 / 6.0001)


def test_intervals_hold_the_value(three: dict[str, Metric]) -> None:
    for metric in three.values():
        if not metric.name.endswith(("/n", "/n_total")):
            assert metric.lo <= metric.value <= metric.hi, metric.name


@pytest.fixture
def conflict() -> dict[str, Metric]:
    """Four items under a false context, log-probabilities of the true and the false answer.

    a: -2 and -1; b: -4 and -0.5; c: -1 and -5; d has no adversarial context.
    """
    arms = [arm(i, FALSE) for i in "abc"] + [arm("d", FALSE, reason="yes or no")]
    scores = [
        score("a", FALSE, [-2.0], false=[-1.0, -1.0]),
        score("b", FALSE, [-4.0], false=[-0.5]),
        score("c", FALSE, [-1.0], false=[-5.0]),
    ]
    return measured(arms, scores)


def test_memory_against_context(conflict: dict[str, Metric]) -> None:
    # True answer above 0.05: e^-2 yes, e^-4 no, e^-1 yes. Likelier than the false one: only c.
    assert conflict["adversarial/prior_dominance"].value == pytest.approx(2 / 3)
    assert conflict["adversarial/prior_dominance_contrastive"].value == pytest.approx(1 / 3)
    # False answer above 0.05: e^-1 yes, e^-0.5 yes, e^-5 no.
    assert conflict["adversarial/adherence"].value == pytest.approx(2 / 3)
    # Odds: -1 + 2 = 1, -0.5 + 4 = 3.5, -5 + 1 = -4.
    assert conflict["adversarial/log_odds"].value == pytest.approx((1 + 3.5 - 4) / 3)


def test_excluded_items_count_as_asked_for_only(conflict: dict[str, Metric]) -> None:
    for name, metric in conflict.items():
        assert metric.n_total == 4, name
        if "ncu" not in name and "transfer" not in name and name != "adversarial/n_total":
            assert metric.n == 3, name


def test_ncu_counts_items_that_are_scored_with_and_without_context() -> None:
    arms = [arm(i, c) for i in "abcd" for c in (ZERO, ORACLE)]
    scores = [
        score("a", ZERO, [-2.0]),
        Score("b", ZERO, reason="too long"),
        score("c", ZERO, [-2.0]),
        score("d", ZERO, [-2.0]),
        score("a", ORACLE, [-1.0]),
        score("b", ORACLE, [-1.0]),
        Score("c", ORACLE, reason="too long"),
        score("d", ORACLE, [-2.0]),
    ]
    found = measured(arms, scores)
    assert (found["oracle/accuracy"].n, found["oracle/accuracy"].n_total) == (3, 4)
    assert (found["oracle/ncu"].n, found["oracle/ncu"].n_total) == (2, 4)
    assert found["oracle/ncu_pooled"].value == pytest.approx(1 - 3 / 4)  # a and d
    assert found["zero/n"].value == 3


def test_names_are_those_of_the_contract() -> None:
    everywhere = {"accuracy", "em", "f1", "surprisal", "n", "n_total"}
    with_context = everywhere | {
        "ncu",
        "ncu_raw_mean",
        "ncu_raw_median",
        "ncu_pooled",
        "negative_transfer_rate",
    }
    conflict = {"prior_dominance", "prior_dominance_contrastive", "adherence", "log_odds"}
    made = run(8)
    whole = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    names = [metric.name for metric in aggregate(whole, settings=SETTINGS)]
    expected = {f"zero/{m}" for m in everywhere}
    expected |= {f"{c}/{m}" for c in FOUR[1:] for m in with_context}
    expected |= {f"adversarial/{m}" for m in conflict}
    assert sorted(names) == sorted(expected)


def test_a_condition_without_a_scored_row_is_nan_with_the_reasons() -> None:
    arms = [arm("a", ZERO), arm("a", ORACLE, reason="no context"), arm("a", FALSE, reason="yes/no")]
    found = measured(arms, [Score("a", ZERO, reason="out of memory")])
    for name, metric in found.items():
        if name.endswith(("/n", "/n_total")):
            assert metric.value == (1 if name.endswith("total") else 0)
        else:
            assert math.isnan(metric.value), name
            assert metric.n == 0
    assert found["zero/accuracy"].reason == "no zero row is ok: 1 error (out of memory)"
    assert found["oracle/ncu"].reason == "no oracle row is ok: 1 excluded (no context)"
    assert found["adversarial/log_odds"].reason == "no adversarial row is ok: 1 excluded (yes/no)"


def test_ncu_without_the_zero_condition_is_nan_with_a_reason() -> None:
    found = measured([arm("a", ORACLE)], [score("a", ORACLE, [-1.0])])
    assert found["oracle/accuracy"].value == 1
    assert math.isnan(found["oracle/ncu"].value)
    assert "scored both under zero" in found["oracle/ncu"].reason


def test_string_matching_without_generated_text_is_nan_with_a_reason() -> None:
    made = [score("a", ZERO, [-1.0], greedy="")]
    silent = items_table(
        [item("a")], [arm("a", ZERO)], scores=made, settings=SETTINGS, generated=False
    )
    found = {metric.name: metric for metric in aggregate(silent, settings=SETTINGS)}
    assert math.isnan(found["zero/em"].value)
    assert found["zero/f1"].reason == "no greedy text was generated"
    assert found["zero/accuracy"].value == 1


def test_pooling_over_items_without_any_uncertainty_is_nan_with_a_reason() -> None:
    arms = [arm(i, c) for i in "ab" for c in (ZERO, ORACLE)]
    scores = [score(i, c, [0.0]) for i in "ab" for c in (ZERO, ORACLE)]
    pooled = measured(arms, scores)["oracle/ncu_pooled"]
    assert math.isnan(pooled.value)
    assert pooled.reason == "the surprisal without context is zero for every item"


def test_other_settings_can_be_asked_of_the_same_table() -> None:
    arms = [arm("a", ZERO), arm("a", ORACLE)]
    made = table(arms, [score("a", ZERO, [-2.0]), score("a", ORACLE, [-0.5])])
    settings = replace(SETTINGS, tau=0.5, epsilon=1.0)
    found = {metric.name: metric.value for metric in aggregate(made, settings=settings)}
    assert found["oracle/ncu"] == pytest.approx(1.5 / 3)
    assert (found["zero/accuracy"], found["oracle/accuracy"]) == (0, 1)  # 0.14 and 0.61


def test_an_empty_table_has_no_metrics() -> None:
    assert aggregate(table([], []), settings=SETTINGS) == []


def test_latency_percentiles_of_each_condition() -> None:
    probes = [LatencyProbe(f"i{k}", ORACLE, float(k)) for k in (5, 1, 4, 2, 3)]
    found = {metric.name: metric for metric in latency_metrics(probes)}
    assert set(found) == {"latency/oracle_p50_s", "latency/oracle_p95_s"}
    assert found["latency/oracle_p50_s"].value == 3
    assert found["latency/oracle_p95_s"].value == pytest.approx(4.8)  # 4 + 0.8 (5 - 4)
    assert found["latency/oracle_p50_s"].n == 5
    assert latency_metrics([]) == []
