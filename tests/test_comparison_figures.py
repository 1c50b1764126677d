"""Figures of a comparison: what they say, legible for any number of systems, the same each time."""

from __future__ import annotations

import io
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from ncu_exp.figures import to_png, to_svg
from ncu_exp.figures.bump import sensitivity
from ncu_exp.figures.forest import differences
from ncu_exp.figures.ladder import precision_ladder
from ncu_exp.figures.recited import prior_and_context
from ncu_exp.figures.style import short_labels
from tests.frames import MARGIN, Frames, frames
from tests.pictures import CASES, THREE, assert_legible, case, drawn, read, said

NAMES = [
    "success_by_condition", "ncu_distribution", "prior_dominance", "negative_transfer", "scaling",
    "heat_map", "prior_and_context", "precision_ladder", "differences", "sensitivity",
]  # fmt: skip


def told_beside(figure: Figure, panel: int) -> list[str]:
    return [t.get_text() for t in figure.axes[panel].texts]


def row_labels(figure: Figure, panel: int = 0) -> list[str]:
    return [t.get_text() for t in figure.axes[panel].get_yticklabels()]


def number(of: Frames, system: str, corpus: str, measure: str) -> pd.Series:
    s = of.summary
    rows = s[(s["system"] == system) & (s["corpus"] == corpus) & (s["measure"] == measure)]
    return rows.iloc[0]


@pytest.mark.parametrize("name", CASES)
def test_no_text_overlaps_another_or_the_edge(name: str) -> None:
    _, figures = case(name)
    assert list(figures) == NAMES
    for each, figure in figures.items():
        assert_legible(f"{name}: {each}", figure)


def test_bytes_are_an_image_and_the_same_each_time() -> None:
    once, again = drawn(case("2-bounded")[0]), drawn(case("2-bounded")[0])
    for name in NAMES:
        svg = to_svg(once[name])
        assert svg == to_svg(again[name]), name
        assert b"<dc:date>" not in svg
    for name in ("success_by_condition", "heat_map", "scaling"):  # rows, cells, points
        png = to_png(again[name])
        assert png == to_png(once[name]) == to_png(once[name]), name
        assert b"Software" not in png
        assert imread(io.BytesIO(png)).shape[1] == 1200


def test_global_state_of_matplotlib_is_left_alone() -> None:
    before = dict(mpl.rcParams)
    made = case("4")[0]
    to_svg(prior_and_context(read(made), made.items))
    assert dict(mpl.rcParams) == before


def test_what_cannot_be_shown_is_said() -> None:
    nothing = drawn(frames(0))
    assert list(nothing) == NAMES
    for name, figure in nothing.items():
        assert_legible(name, figure)
        assert "0 systems" in figure.get_suptitle(), name
        assert len(figure.axes[0].texts) == 1, name  # why
    one = case("1")[1]
    assert "Fewer than two sizes" in said(one["scaling"])
    assert "two precisions" in said(one["precision_ladder"])
    assert "no two systems" in said(one["differences"])
    assert "no two systems" in said(one["sensitivity"])


def test_success_has_a_row_per_system_and_a_panel_per_condition() -> None:
    made, figures = case("4")
    figure = figures["success_by_condition"]
    assert "above 0.05\n4 systems, 3 corpora together" in figure.get_suptitle()
    assert row_labels(figure) == list(made.systems["system"])
    measures = ["zero/accuracy", "oracle/accuracy", "noise/accuracy", "adversarial/prior_dominance"]
    for panel, measure in enumerate(measures):
        values = [number(made, s, "pooled", measure)["value"] for s in made.systems["system"]]
        assert told_beside(figure, panel) == [f"{100 * value:.0f}" for value in values]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[1] == "oracle\nthe true context\nn = 72"
    assert titles[3] == "adversarial\nprior dominance\nn = 63 of 72"


def test_bounded_numbers_are_two_open_marks_with_a_band_between() -> None:
    made, figures = case("6-bounded")
    bounded = number(made, made.systems["system"][1], "pooled", "zero/accuracy")
    axes = figures["success_by_condition"].axes[0]
    ends = [
        line.get_xdata()[0]
        for line in axes.lines
        if line.get_markerfacecolor() == "white" and line.get_marker() == "o"
    ]
    np.testing.assert_allclose(ends, [100 * bounded["lower"], 100 * bounded["upper"]])
    assert axes.texts[1].get_text() == f"{ends[0]:.0f}…{ends[1]:.0f}"
    assert "Open marks" in said(figures["success_by_condition"])


def test_estimators_that_are_not_comparable_have_daggers_explained() -> None:
    _, figures = case("6-bounded")
    for name, figure in figures.items():
        title = figure.get_suptitle()
        assert "† by the paper's convention" in title, name
        assert "not comparable" in title, name
        assert "‡ of whole answers, by samples" in title, name
    assert [label[-1] for label in row_labels(figures["prior_dominance"])[3:]][::2] == ["†", "‡"]


def test_a_corpus_has_a_panel_and_all_together_one_more() -> None:
    made, figures = case("4")
    for name, measures in (
        ("prior_dominance", ("adversarial/prior_dominance", "adversarial/adherence")),
        ("negative_transfer", ("oracle/negative_transfer_rate",)),
    ):
        titles = [axes.get_title(loc="left").splitlines()[0] for axes in figures[name].axes]
        assert titles == [*THREE, "all corpora"]
        for panel, corpus in enumerate([*THREE, "pooled"]):
            values = [
                number(made, system, corpus, measure)["value"]
                for system in made.systems["system"]
                for measure in measures
            ]
            assert told_beside(figures[name], panel) == [f"{100 * v:.0f}" for v in values]
    one = case("6-bounded")[1]["prior_dominance"]
    assert len(one.axes) == 1
    assert "corpus sample" in one.get_suptitle()


def test_panels_beyond_the_twelfth_are_counted() -> None:
    corpora = case("14-corpora")[1]
    shown = [axes for axes in corpora["prior_dominance"].axes if axes.axison]
    assert len(shown) == 12
    assert "the first 11 of 14 corpora are shown" in corpora["prior_dominance"].get_suptitle()
    fifty = case("50")[1]
    for name in ("ncu_distribution", "prior_and_context"):
        assert "the first 12 of 50 systems are shown" in fifty[name].get_suptitle()


def test_the_histograms_account_for_every_item() -> None:
    made, figures = case("4")
    for axes, system in zip(figures["ncu_distribution"].axes, made.systems["system"], strict=True):
        ncu = made.items.loc[made.items["system"] == system, "ncu"]
        assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(100)
        assert axes.texts[0].get_text() == f"{100 * (ncu == 0).mean():.0f}%"
        told = f"{system}\nmean {ncu.mean():.2f} ["
        assert axes.get_title(loc="left").startswith(told)
        assert axes.get_title(loc="left").endswith("n = 72")
    assert "% at exactly 0" in said(case("6-bounded")[1]["ncu_distribution"])


def test_the_cells_of_the_map_are_the_numbers() -> None:
    made, figures = case("4")
    maps = (("oracle/ncu", "{:.2f}"), ("adversarial/prior_dominance", "{:.0%}"))
    for panel, (measure, form) in enumerate(maps):
        expected = [
            form.format(number(made, system, corpus, measure)["value"]).removesuffix("%")
            for system in made.systems["system"]
            for corpus in [*THREE, "pooled"]
        ]
        assert told_beside(figures["heat_map"], panel) == expected
    assert "…" in told_beside(case("6-bounded")[1]["heat_map"], 0)[1]


def test_recited_items_are_counted_and_marked() -> None:
    made, figures = case("6-bounded")
    for axes, system in zip(figures["prior_and_context"].axes, made.systems["system"], strict=True):
        rows = made.items[made.items["system"] == system].dropna(subset="ncu")
        recited = rows[(rows["em"] == 1) & (rows["ncu"] < 0.1)]
        told = f"recited, not read: {len(recited)} of {len(rows)}"
        assert axes.get_title(loc="left").splitlines()[1] == told
        points = [c.get_offsets() for c in axes.collections]
        assert [len(p) for p in points] == [len(rows) - len(recited), len(recited)]
        np.testing.assert_allclose(points[1][:, 0], np.exp(-recited["s_prior"]))
    assert "only bounded, not shown" in said(figures["prior_and_context"])


def test_where_no_text_was_generated_nothing_is_called_recited() -> None:
    made = case("4")[0]
    figure = prior_and_context(read(made), made.items.assign(em=np.nan))
    assert "no text" in figure.axes[0].get_title(loc="left")
    assert "recited, not read: 0" not in said(figure)


def test_sizes_are_told_and_ways_of_asking_have_markers() -> None:
    figure = case("12")[1]["scaling"]
    assert "3 systems of unknown size not shown" in figure.get_suptitle()
    ticks = [t.get_text() for t in figure.axes[0].get_xticklabels()]
    assert ticks[:2] == ["135M", "360M"]
    families, ways = (
        [t.get_text() for t in axes.get_legend().get_texts()] for axes in figure.axes[3:]
    )
    assert families == ["smollm2", "qwen3", "llama-3.2"]
    assert ways == ["bf16 · plain", "nf4 · plain"]
    assert figure.axes[0].get_xscale() == "log"


def test_a_ladder_goes_from_the_finest_precision_with_noise_floors() -> None:
    made = frames(42, n_items=24)
    made = replace(made, systems=made.systems.sort_values("model", kind="stable"))
    figure = precision_ladder(read(made), made.differences)
    assert [t.get_text() for t in figure.axes[3].get_xticklabels()] == [
        *["fp32", "bf16", "fp16", "int8", "nf4"]
    ]
    finest = made.systems.query("model == 'llama-3.2-1b' and precision == 'fp32'")["system"].iloc[0]
    value = number(made, finest, "pooled", "oracle/ncu")["value"]
    floors = [band.get_datalim(figure.axes[3].transData) for band in figure.axes[3].collections]
    assert len(floors) == 4
    for floor in floors:
        assert (floor.y0, floor.y1) == pytest.approx((value - 0.01, value + 0.01))
    assert "noise floor" in said(figure)
    without = precision_ladder(read(made), made.differences.assign(noise_floor=np.nan))
    assert "noise floor" not in said(without)


def test_the_largest_differences_come_first_with_their_verdicts() -> None:
    made, figures = case("4")
    chosen = made.differences.query("corpus == 'pooled' and measure == 'oracle/ncu'")
    chosen = chosen.reindex(chosen["difference"].abs().sort_values(ascending=False).index)
    figure = figures["differences"]
    assert row_labels(figure) == [
        f"{a}\n− {b}" for a, b in zip(chosen["a"], chosen["b"], strict=True)
    ]
    words = {"higher": "the first is higher", "lower": "the first is lower"}
    beside = told_beside(figure, 0)
    for told, row in zip(beside, chosen.itertuples(), strict=True):
        assert told.startswith(words.get(str(row.verdict), str(row.verdict)))
        assert told.endswith(f"n = {row.n}")
    served = case("6-bounded")[1]["differences"]
    assert told_beside(served, 0)[-1] == "not comparable\nn = 24"


def test_differences_beyond_the_thirtieth_are_counted() -> None:
    figure = case("50")[1]["differences"]
    assert [len(row_labels(figure, panel)) for panel in (0, 1)] == [30, 30]
    told = "the 30 largest; 1,195 smaller ones not shown"
    assert told in figure.axes[0].get_title(loc="left")


def test_the_margin_of_a_row_is_a_band_about_zero() -> None:
    made = case("4")[0]
    for named, margin in ((0.02, 0.02), (np.nan, MARGIN)):
        axes = differences(read(made), made.differences.assign(margin=named)).axes[0]
        bands = [c.get_datalim(axes.transData) for c in axes.collections]
        assert {(round(b.x0, 6), round(b.x1, 6)) for b in bands} == {(-margin, margin)}


def test_ranks_move_from_setting_to_setting_and_the_default_is_marked() -> None:
    made, figures = case("6-bounded")
    figure = figures["sensitivity"]
    ranks = made.sensitivity.query("family == 'tau'").pivot(
        index="system", columns="setting", values="rank"
    )
    ranks = ranks.dropna(how="all")
    axes = figure.axes[0]
    assert len(ranks) == 5  # the one that is bounded has none
    moved = int((ranks.nunique(axis=1) > 1).sum())
    assert axes.get_title(loc="left").endswith(f"by tau: {moved} of 5 systems change rank")
    ticks = [t.get_text() for t in axes.get_xticklabels()]
    assert ticks == ["tau\n0.01", "tau\n0.02", "tau\n0.05\n(default)", "tau\n0.1", "tau\n0.2"]
    lines = [line.get_ydata() for line in axes.lines if line.get_marker() == "o"]
    order = [s for s in made.systems["system"] if s in ranks.index]
    np.testing.assert_allclose(lines, ranks.loc[order])


def test_ties_share_a_rank_and_their_names_are_apart() -> None:
    made = case("4")[0]
    figure = sensitivity(read(made), made.sensitivity.assign(rank=2.5))
    assert_legible("ties", figure)
    assert said(figure).count("2.5") == 2 * 2 * 4  # both ends of the lines of two charts


def test_long_labels_keep_what_tells_them_apart() -> None:
    made_by = "made by an organisation/"
    labels = [f"{made_by}model-1 · bf16 · plain", f"{made_by}model-2 · nf4 · plain"]
    assert short_labels(["a", "b"], limit=16) == ["a", "b"]
    assert short_labels(labels, limit=20) == ["…model-1 · bf16…", "…model-2 · nf4…"]
    assert short_labels(["a very long label of one"], limit=16) == ["a very …l of one"]
    alike = [f"{'x' * 20}{middle}{'z' * 20}" for middle in "yw"]
    assert short_labels(alike, limit=16) == ["xxxxxxx…zzzzzzzz", "xxxxxxx…zzz…#2"]


def test_many_long_labels_stay_apart() -> None:
    made = short_labels(
        [f"{'an organisation/a model ' * 3}{k} as asked" for k in range(60)], limit=30
    )
    assert len(set(made)) == 60
    assert max(map(len, made)) <= 30
