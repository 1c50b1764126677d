"""Numbers that are known within bounds only: worked out by hand, and shown as what they are."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest

from ncu_exp.description import engine_facts, run_name
from ncu_exp.figures import all_figures, to_png
from ncu_exp.formulas import ncu_raw
from ncu_exp.metrics import aggregate, losses
from ncu_exp.records import AuditCounts, Condition
from ncu_exp.report import Examples, render_report
from ncu_exp.results import loggable
from ncu_exp.stats import Metric, Resampling, mean_interval
from ncu_exp.tablefile import parquet_schema
from ncu_exp.tables import items_table
from ncu_exp.terminal import metrics_table
from tests.composing import composed
from tests.synthetic import SETTINGS, arm, bounded, item, run, score
from tests.test_report import Page

ZERO, ORACLE, FALSE = Condition.zero, Condition.oracle, Condition.adversarial


@pytest.fixture
def two() -> dict[str, Metric]:
    """Of `a` all is known; of `b` the first of two tokens of each answer."""
    arms = [arm(i, c) for i in "ab" for c in (ZERO, ORACLE, FALSE)]
    scores = [
        score("a", ZERO, [-2.0, -2.0]),
        score("a", ORACLE, [-0.5, -0.5]),
        score("a", FALSE, [-4.0, -4.0], false=[-1.0]),
        bounded(score("b", ZERO, [-3.0, -1.0])),
        bounded(score("b", ORACLE, [-1.0, -9.0])),
        bounded(score("b", FALSE, [-8.0, -8.0], false=[-6.2, -0.1])),
    ]
    table = items_table([item("a"), item("b")], arms, scores=scores, settings=SETTINGS)
    return {m.name: m for m in aggregate(table, settings=SETTINGS)}


def test_rates_lie_between_what_the_bounds_allow(two: dict[str, Metric]) -> None:
    # Means of b: zero [-inf, -1.5], oracle [-inf, -0.5], true [-inf, -4], fabricated [-inf, -3.1].
    # Above log 0.05 = -3.0: of a zero, oracle and the fabricated one; of b zero and oracle perhaps.
    def ends(name: str) -> tuple[float, float]:
        assert math.isnan(two[name].value)
        return two[name].lower, two[name].upper

    assert ends("zero/accuracy") == (0.5, 1.0)
    assert ends("oracle/accuracy") == (0.5, 1.0)
    assert two["adversarial/prior_dominance"].value == 0.0  # -4 is too little, whatever follows
    assert two["adversarial/adherence"].value == 0.5
    assert ends("adversarial/prior_dominance_contrastive") == (0.0, 0.5)
    assert ends("zero/surprisal") == (pytest.approx((2 + 1.5) / 2), math.inf)


def test_ncu_takes_opposite_ends(two: dict[str, Metric]) -> None:
    # b: S_prior in [1.5, inf], S_post in [0.5, inf]: raw NCU from -inf to its limit 1, NCU 0 to 1.
    exact = ncu_raw(2.0, 0.5, epsilon=SETTINGS.epsilon)
    ncu = two["oracle/ncu"]
    assert (ncu.lower, ncu.upper) == (pytest.approx(exact / 2), pytest.approx((exact + 1) / 2))
    assert two["oracle/ncu_raw_mean"].lower == -math.inf
    assert two["oracle/ncu_raw_mean"].upper == pytest.approx((exact + 1) / 2)
    pooled = two["oracle/ncu_pooled"]
    assert (pooled.lower, pooled.upper) == (-math.inf, 1.0)
    hurt = two["oracle/negative_transfer_rate"]
    assert (hurt.lower, hurt.upper) == (0.0, 0.5)


def test_the_share_that_is_only_bounded_is_told(two: dict[str, Metric]) -> None:
    assert two["zero/censored_items"].value == 0.5
    assert two["zero/censored_tokens"].value == 0.25


def test_raw_ncu_has_its_limits() -> None:
    prior, post = np.array([2.0, math.inf, 2.0, math.inf]), np.array([1.0, 1.0, math.inf, math.inf])
    found = ncu_raw(prior, post, epsilon=0.0)
    assert found.tolist() == [0.5, 1.0, -math.inf, -math.inf]


def test_infinities_have_no_interval_of_their_own() -> None:
    plan = Resampling(100, 0.95, 0)
    found = mean_interval([-math.inf, 1.0, 2.0], plan)
    assert (found.value, found.lo, found.hi) == (-math.inf, -math.inf, 2.0)


def test_only_finite_ends_are_logged(two: dict[str, Metric]) -> None:
    logged = loggable(list(two.values()))
    assert "zero/accuracy" not in logged
    assert (logged["zero/accuracy_lower"], logged["zero/accuracy_upper"]) == (0.5, 1.0)
    assert "oracle/ncu_raw_mean_lower" not in logged
    assert all(math.isfinite(value) for value in logged.values())


def test_rows_hold_the_bounds_of_each_token() -> None:
    arms = [arm("b", ZERO), arm("b", ORACLE)]
    scores = [bounded(score("b", ZERO, [-3.0, -1.0])), score("b", ORACLE, [-1.0])]
    table = items_table([item("b")], arms, scores=scores, settings=SETTINGS)
    assert table["token_logprobs_lower"].tolist() == [[-3.0, -math.inf], None]
    assert table["token_logprobs_upper"].tolist() == [[-3.0, 0.0], None]
    assert table["n_censored"].tolist() == [1, 0]
    assert table["ncu_lower"].tolist() == [
        pytest.approx(math.nan, nan_ok=True),
        pytest.approx(0.333, abs=1e-3),
    ]
    assert table["ncu_upper"][1] == 1.0
    assert math.isnan(table["ncu"][1])
    assert set(parquet_schema().names) == set(table.columns)


def test_a_run_of_an_api_is_shown_with_its_bounds() -> None:
    whole = run(60)
    scores = [bounded(s) if s.ok and int(s.item_id[1:]) % 3 else s for s in whole.scores]
    table = items_table(whole.items, whole.arms, scores=scores, settings=SETTINGS)
    metrics = aggregate(table, settings=SETTINGS)
    figures = all_figures(table, metrics, probes=whole.probes, settings=SETTINGS)
    assert "pairs are only bounded, and not shown" in figures["surprisal"].get_suptitle()
    html = render_report(
        losses=losses(table),
        audit=AuditCounts(),
        examples=Examples(
            whole.items[:5], table[table["item_id"].isin([f"i{k:04}" for k in range(5)])], ()
        ),
        item_count=60,
        metrics=metrics,
        figures={name: to_png(figure) for name, figure in figures.items()},
        header={"Model": "an API"},
        settings=SETTINGS,
    )
    page = Page(html)
    accuracy = next(m for m in metrics if m.name == "oracle/accuracy")
    assert f"{100 * accuracy.lower:.0f}…{100 * accuracy.upper:.0f}%" in page.text
    assert "nothing is guessed" in page.text
    assert "≤ 0.00" in page.text
    from rich.console import Console

    console = Console(width=200, record=True, file=io.StringIO())
    console.print(metrics_table(metrics, title="an API"))
    told = console.export_text()
    assert "answers bounded only" in told
    assert f"{100 * accuracy.lower:.0f}…{100 * accuracy.upper:.0f}%" in told


@pytest.mark.parametrize(
    ("overrides", "name", "fact"),
    [
        (["model=gpt4o-mini"], "gpt-4o-mini · sample · all · auto", "intervals from 20"),
        (["model=gpt4o-mini", "estimator=paper"], "paper estimator", "not comparable"),
        (["model=claude-haiku"], "sampled estimator", "shares of 20 sampled answers"),
        (["model=served"], "served · sample · all · auto", "exact"),
        (["model=served", "estimator=paper"], "served · sample · all · auto", "exact"),
    ],
)
def test_a_name_says_how_the_numbers_were_obtained(
    overrides: list[str], name: str, fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ncu_exp.experiment import plan_of

    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, "a key")
    config = composed(*overrides)
    assert run_name(config).endswith(name)
    assert fact in engine_facts(plan_of(config), config)["Scoring"]


@pytest.mark.parametrize("estimator", ["paper", "sampled"])
def test_figures_say_what_is_not_comparable(estimator: str) -> None:
    whole = run(20)
    table = items_table(whole.items, whole.arms, scores=whole.scores, settings=SETTINGS)
    table["estimator"] = table["estimator"].where(table["status"] != "ok", estimator)
    figures = all_figures(
        table, aggregate(table, settings=SETTINGS), probes=whole.probes, settings=SETTINGS
    )
    titles = {name: figure.get_suptitle() for name, figure in figures.items()}
    assert [name for name, title in titles.items() if "not comparable" not in title] == ["latency"]
