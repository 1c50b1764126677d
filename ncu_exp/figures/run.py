"""The figures of a run: success rates, the spread of NCU, surprisal before and after, latency.

Each function returns a matplotlib Figure built directly, without pyplot and without touching its
global state, and has a picture for the case that there is nothing to show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ncu_exp.figures.marks import band, histogram, rate
from ncu_exp.figures.style import (
    COLOURS,
    FAINT,
    INK,
    NOT_COMPARABLE,
    add_title_line,
    empty,
    items_told,
    new_figure,
    one_axes,
    plain,
    tell,
    tell_beside,
)
from ncu_exp.records import Condition, Continuation, LatencyProbe, Status

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ncu_exp.config import MetricsConfig
    from ncu_exp.stats import Metric

_REGION: dict[str, Any] = {"fontsize": 8.5, "fontstyle": "italic", "color": FAINT, "zorder": 2}
_SURPRISAL_TICKS = (0, 0.5, 2, 5, 10, 20, 35, 60, 100)  # nats per token, apart on a root scale


def all_figures(
    table: pd.DataFrame,
    metrics: Sequence[Metric],
    *,
    probes: Sequence[LatencyProbe],
    settings: MetricsConfig,
) -> dict[str, Figure]:
    """Every figure of a run by file name (without suffix), empty ones included."""
    figures = {
        "success_rates": success_rates(metrics, settings=settings),
        "ncu_distribution": ncu_distribution(table, metrics),
        "surprisal": surprisal_before_after(table, settings=settings),
    }
    for estimator in NOT_COMPARABLE.keys() & set(table["estimator"].dropna().unique()):
        for figure in figures.values():
            add_title_line(figure, NOT_COMPARABLE[estimator])
    return {**figures, "latency": latency(probes)}


def success_rates(metrics: Sequence[Metric], *, settings: MetricsConfig) -> Figure:
    """The share of items whose answer is likelier than tau, per condition, with intervals.

    The adversarial condition has two rows: the true answer (prior dominance) and the fabricated
    one (adherence).
    """
    by_name = {metric.name: metric for metric in metrics}
    rows: list[tuple[str, Condition, str, Metric]] = []
    for condition in Condition:
        accuracy = by_name.get(f"{condition}/accuracy")
        adherence = by_name.get(f"{condition}/adherence")
        if accuracy is not None:
            told = "\ntrue answer (prior dominance)" if adherence is not None else ""
            rows.append((f"{condition}{told}", condition, "o", accuracy))
        if adherence is not None:
            told = f"{condition}\nfabricated answer (adherence)"
            rows.append((told, condition, "D", adherence))
    asked = max((metric.n_total for *_, metric in rows), default=0)
    title = f"How often the answer has a probability above {settings.tau:g}, {items_told(asked)}"
    if not any(metric.n for *_, metric in rows):
        return empty(title, "No item was scored.")

    figure, axes = one_axes(title, height=1.3 + 0.5 * len(rows))
    for y, (_, condition, marker, metric) in enumerate(rows):
        rate(axes, y, metric=metric, colour=COLOURS[condition], marker=marker)
    bounded = any(metric.is_bounded for *_, metric in rows)
    axes.set_yticks(range(len(rows)), [label for label, *_ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(-2, 102)
    axes.set_xlabel(
        "Items (%) with exp(mean log-probability per answer token) above the threshold.\n"
        f"Bars: {settings.confidence:.0%} bootstrap intervals over items."
        + ("\nOpen marks: the API bounds the share from both sides." if bounded else "")
    )
    return figure


def ncu_distribution(table: pd.DataFrame, metrics: Sequence[Metric]) -> Figure:
    """How bounded NCU spreads over the items of each condition: a histogram per condition.

    Items with NCU of exactly 0, where the context did not help, are a bar of their own.
    """
    groups = [
        (condition, rows.loc[rows["ncu_lower"].notna() | rows["ncu"].notna()])
        for condition, rows in _true_rows(table)
    ]
    groups = [(condition, rows) for condition, rows in groups if len(rows)]
    asked = items_told(table["item_id"].nunique())
    title = f"Share of the uncertainty that the context removed (NCU), {asked}"
    if not groups:
        return empty(title, "No item is scored both without and with a context.")

    figure = new_figure(title, height=1.2 + 1.15 * len(groups))
    panels = figure.subplots(len(groups), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    by_name = {metric.name: metric for metric in metrics}
    bounded = any(rows["ncu"].isna().any() for _, rows in groups)
    for axes, (condition, rows) in zip(panels, groups, strict=True):
        plain(axes, grid="y")
        (band if bounded else histogram)(axes, rows, colour=COLOURS[condition])
        tell(axes, _ncu_summary(condition, len(rows), mean=by_name.get(f"{condition}/ncu")))
    zero = 0 if bounded else -0.06  # where a histogram has the bar of exactly 0
    panels[-1].set_xticks([zero, 0.2, 0.4, 0.6, 0.8, 1], ["0", "0.2", "0.4", "0.6", "0.8", "1"])
    panels[-1].set_xlabel(
        "NCU of an item (0: the context did not help or made it worse, 1: no uncertainty is left)"
    )
    told = "Items with at least this NCU (%)\nwithin the band" if bounded else "Items (%)"
    figure.supylabel(told, fontsize=9, color=INK)
    return figure


def surprisal_before_after(table: pd.DataFrame, *, settings: MetricsConfig) -> Figure:
    """Surprisal without and with the context, a point per item, a panel per condition."""
    groups = [
        (condition, rows.dropna(subset="cus"))
        for condition, rows in _true_rows(table)
        if rows["cus"].notna().any()
    ]
    asked = items_told(table["item_id"].nunique())
    hidden = sum(
        int((rows["cus"].isna() & rows["ncu_lower"].notna()).sum()) for _, rows in _true_rows(table)
    )
    title = f"Surprisal of the true answer without and with the context, {asked}"
    if hidden:
        title += f"\n{hidden:,} pairs are only bounded, and not shown"
    if not groups:
        known = "known exactly" if hidden else "scored"
        return empty(title, f"No item is {known} both without and with a context.")

    columns = min(3, len(groups))
    lines = math.ceil(len(groups) / columns)
    side = 2.25 if columns > 1 else 3.4  # inches
    figure = new_figure(title, height=0.75 + lines * (side + 0.6))
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    highest = max(float((rows["surprisal_nats"] + rows["cus"].clip(0)).max()) for _, rows in groups)
    for axes, (condition, rows) in zip(grid.flat, groups, strict=False):
        s_post = rows["surprisal_nats"].to_numpy(dtype="float64")
        s_prior = s_post + rows["cus"].to_numpy(dtype="float64")
        _square_root_axes(axes, highest=max(1.0, highest * 1.1), tau=settings.tau)
        _before_after(axes, s_prior, s_post=s_post, condition=condition)
    for axes in grid.flat[len(groups) - columns : len(groups)]:  # the lowest of each column
        axes.tick_params(labelbottom=True)
    for axes in grid.flat[len(groups) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel("With context (nats per token)", fontsize=9, color=INK)
    figure.supxlabel(
        "Without context (nats per token). A point is an item; square-root scales; dotted: "
        f"probability {settings.tau:g} per token.",
        fontsize=9,
        color=INK,
    )
    return figure


def latency(probes: Sequence[LatencyProbe]) -> Figure:
    """Seconds of each batch-1 request per condition, with median and 95th percentile."""
    import numpy as np

    groups = [
        (condition, np.array([p.latency_s for p in probes if p.condition is condition]))
        for condition in Condition
    ]
    groups = [(condition, seconds) for condition, seconds in groups if seconds.size]
    asked = items_told(len({probe.item_id for probe in probes}))
    title = f"Time of one request (prompt and greedy tokens, batch size 1), {asked}"
    if not groups:
        return empty(title, "Latency was not measured (latency.items=0).")

    figure, axes = one_axes(title, height=1.3 + 0.6 * len(groups))
    for y, (condition, seconds) in enumerate(groups):
        _strip(axes, y, seconds=seconds, colour=COLOURS[condition])
    axes.set_yticks(range(len(groups)), [str(condition) for condition, _ in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlim(0, max(float(seconds.max()) for _, seconds in groups) * 1.05)
    axes.set_xlabel("Seconds. A point is an item; long bar: median (p50), short bar: p95.")
    return figure


def _true_rows(table: pd.DataFrame) -> list[tuple[Condition, pd.DataFrame]]:
    scored = (table["continuation"] == Continuation.true.value) & (
        table["status"] == Status.ok.value
    )
    rows = table[scored]
    return [(condition, rows[rows["condition"] == condition.value]) for condition in Condition]


def _ncu_summary(condition: Condition, n: int, *, mean: Metric | None) -> str:
    told = f"{condition}\nn = {n:,}"
    if mean is not None and mean.is_bounded:
        return f"{told} of {mean.n_total:,}\nmean {mean.lower:.2f}…{mean.upper:.2f}"
    if mean is None or math.isnan(mean.value):
        return told
    interval = "" if math.isnan(mean.lo) else f"\n[{mean.lo:.2f}, {mean.hi:.2f}]"
    return f"{told} of {mean.n_total:,}\nmean {mean.value:.2f}{interval}"


def _square_root_axes(axes: Axes, *, highest: float, tau: float) -> None:
    """Both axes from 0 to `highest` nats: room for the many small surprisals, and a place for 0."""
    import numpy as np

    plain(axes, grid="both")
    scale: Mapping[str, Any] = {"functions": (lambda x: np.sqrt(np.maximum(x, 0)), np.square)}
    ticks = [tick for tick in _SURPRISAL_TICKS if tick <= highest]
    for set_scale, set_limits, set_ticks in (
        (axes.set_xscale, axes.set_xlim, axes.set_xticks),
        (axes.set_yscale, axes.set_ylim, axes.set_yticks),
    ):
        set_scale("function", **scale)
        set_limits(0, highest)
        set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_box_aspect(1)
    axes.plot([0, highest], [0, highest], color=INK, linewidth=1)
    threshold = -math.log(tau)
    for line in (axes.axvline, axes.axhline):
        line(threshold, color=FAINT, linewidth=0.9, linestyle=(0, (1, 2)))


def _before_after(axes: Axes, s_prior: Any, *, s_post: Any, condition: Condition) -> None:
    n = s_prior.size
    helped, hurt = (s_post < s_prior).mean(), (s_post > s_prior).mean()
    axes.scatter(
        s_prior,
        s_post,
        s=60 / (1 + math.log10(n)) ** 1.5,
        color=COLOURS[condition],
        alpha=max(0.25, min(0.9, 12 / math.sqrt(n))),
        linewidths=0,
        clip_on=False,
        zorder=3,
    )
    told = f"{condition}, n = {n:,}\nhelped {helped:.0%}, hurt {hurt:.0%}"
    axes.set_title(told, loc="left", fontsize=9, color=INK)
    # Beneath the points, in the corners farthest from the line.
    axes.text(0.03, 0.97, "context hurt", transform=axes.transAxes, va="top", **_REGION)
    axes.text(0.97, 0.03, "context helped", transform=axes.transAxes, ha="right", **_REGION)


def _strip(axes: Axes, y: int, *, seconds: Any, colour: str) -> None:
    import numpy as np

    offsets = 0.16 * np.sin(2.4 * np.arange(seconds.size))  # spread, without a random draw
    axes.scatter(seconds, y + offsets, s=22, color=colour, alpha=0.55, linewidths=0)
    p50, p95 = np.percentile(seconds, [50, 95])
    for x, half in ((p50, 0.32), (p95, 0.18)):
        axes.plot([x, x], [y - half, y + half], color=INK, linewidth=2)
    tell_beside(axes, y, text=f"p50 {p50:.3g} s, p95 {p95:.3g} s\nn = {seconds.size:,}")
