"""Figures: what they say, that nothing overlaps or is cut, and that they are the same each time."""

from __future__ import annotations

import io
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from ncu_exp.figures import COLOURS, all_figures, latency, success_rates, to_png
from ncu_exp.metrics import aggregate
from ncu_exp.records import Condition, LatencyProbe
from ncu_exp.tables import items_table
from tests.pictures import assert_legible, said
from tests.synthetic import FOUR, SETTINGS, arm, item, run, score

NAMES = ["success_rates", "ncu_distribution", "surprisal", "latency"]


def figures_of(n: int, conditions: Sequence[Condition] = FOUR) -> dict[str, Figure]:
    made = run(n, conditions=conditions)
    table = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    metrics = aggregate(table, settings=SETTINGS)
    return all_figures(table, metrics, probes=made.probes, settings=SETTINGS)


@pytest.mark.parametrize(
    ("n", "conditions"),
    [
        (3, FOUR),
        (96, FOUR),
        (1000, FOUR),
        (24, list(Condition)),
        (24, [Condition.zero]),
        (24, [Condition.zero, Condition.oracle]),
        (0, FOUR),
    ],
    ids=["3", "96", "1000", "all-conditions", "zero-only", "one-context", "empty"],
)
def test_no_text_overlaps_another_or_the_edge(n: int, conditions: Sequence[Condition]) -> None:
    figures = figures_of(n, conditions)
    assert list(figures) == NAMES
    for name, figure in figures.items():
        assert_legible(name, figure)


def test_what_is_told_beside_a_row_stands_outside_the_data() -> None:
    figures = figures_of(24)
    for name in ("success_rates", "ncu_distribution", "latency"):
        figures[name].draw_without_rendering()
        for axes in figures[name].axes:
            told = [t for t in axes.texts if "n = " in t.get_text()]
            assert told
            assert all(t.get_window_extent().x0 > axes.bbox.x1 for t in told), name


def test_png_bytes_are_an_image_and_the_same_each_time() -> None:
    once, again = figures_of(24), figures_of(24)
    for name in NAMES:
        png = to_png(once[name])
        assert png == to_png(again[name]), name
        assert b"Software" not in png
        pixels = imread(io.BytesIO(png))
        assert pixels.shape[1] == 1200
        assert pixels.min() < 0.5 < pixels.max()


def test_global_state_of_matplotlib_is_left_alone() -> None:
    before = dict(mpl.rcParams)
    for figure in figures_of(3).values():
        to_png(figure)
    assert dict(mpl.rcParams) == before


def test_success_rates_show_value_interval_and_n_of_each_row() -> None:
    arms = [arm(i, Condition.adversarial) for i in "ab"]
    arms.append(arm("c", Condition.adversarial, reason="yes or no"))
    scores = [
        score("a", Condition.adversarial, [-1.0], false=[-9.0]),
        score("b", Condition.adversarial, [-1.0], false=[-1.0]),
    ]
    table = items_table([item(i) for i in "abc"], arms, scores=scores, settings=SETTINGS)
    figure = success_rates(aggregate(table, settings=SETTINGS), settings=SETTINGS)
    assert "above 0.05, 3 items" in said(figure)
    assert "100% [100, 100]\nn = 2 of 3" in said(figure)  # true answers
    assert "50% [0, 100]\nn = 2 of 3" in said(figure)  # fabricated answers
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert labels == [
        "adversarial\ntrue answer (prior dominance)",
        "adversarial\nfabricated answer (adherence)",
    ]


def test_a_condition_without_scores_has_a_row_that_says_so() -> None:
    arms = [arm("a", Condition.zero), arm("a", Condition.oracle, reason="no context")]
    made = items_table(
        [item("a")], arms, scores=[score("a", Condition.zero, [-1.0])], settings=SETTINGS
    )
    figure = success_rates(aggregate(made, settings=SETTINGS), settings=SETTINGS)
    assert "not scored\nn = 0 of 1" in said(figure)


def test_the_histogram_accounts_for_every_item_and_names_the_ends() -> None:
    made = run(96)
    table = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    metrics = aggregate(table, settings=SETTINGS)
    figure = all_figures(table, metrics, probes=[], settings=SETTINGS)["ncu_distribution"]
    for axes, condition in zip(figure.axes, FOUR[1:], strict=True):
        ncu = table.loc[table["condition"] == condition, "ncu"].dropna()
        assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(100)
        labels = [t.get_text() for t in axes.texts]
        assert labels[:2] == [
            f"{100 * (ncu == 0).mean():.0f}%",
            f"{100 * (ncu >= 0.95).mean():.0f}%",
        ]
        assert labels[2].startswith(f"{condition}\nn = {len(ncu)} of 96\nmean {ncu.mean():.2f}")


def test_the_scatter_has_a_point_per_pair_on_its_side_of_the_diagonal() -> None:
    arms = [arm(i, c) for i in "ab" for c in (Condition.zero, Condition.oracle)]
    scores = [
        score("a", Condition.zero, [-2.0]),
        score("a", Condition.oracle, [-0.5]),
        score("b", Condition.zero, [-1.0]),
        score("b", Condition.oracle, [-4.0]),
    ]
    table = items_table([item("a"), item("b")], arms, scores=scores, settings=SETTINGS)
    figure = all_figures(table, [], probes=[], settings=SETTINGS)["surprisal"]
    (axes,) = figure.axes
    (points,) = axes.collections
    np.testing.assert_allclose(points.get_offsets(), [[2.0, 0.5], [1.0, 4.0]])
    assert axes.get_title(loc="left") == "oracle, n = 2\nhelped 50%, hurt 50%"
    assert axes.get_xlim() == axes.get_ylim()
    assert axes.get_xlim()[1] > 4


def test_latency_names_its_percentiles() -> None:
    probes = [LatencyProbe(f"i{k}", Condition.zero, k / 10) for k in range(1, 6)]
    assert "p50 0.3 s, p95 0.48 s\nn = 5" in said(latency(probes))


def test_what_cannot_be_shown_is_said() -> None:
    nothing = figures_of(0)
    assert "No item was scored." in said(nothing["success_rates"])
    assert "Latency was not measured" in said(nothing["latency"])
    zero_only = figures_of(8, [Condition.zero])
    for name in ("ncu_distribution", "surprisal"):
        assert "scored both without and with a context" in said(zero_only[name])


def test_each_condition_has_a_colour_of_its_own() -> None:
    assert set(COLOURS) == set(Condition)
    assert len(set(COLOURS.values())) == len(COLOURS)
