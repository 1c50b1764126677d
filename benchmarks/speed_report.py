"""The table and the figure of a speed benchmark, made from its record and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.speed_scorers import LOOP, OURS, is_able

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEAD = "| scorer | dtype | work | median s | min-max s | ratio to ours | max diff nats | note |"
RULE = "|---|---|---|--:|--:|--:|--:|---|"
PACKAGES = {"lm-eval": "lm_eval", "lm-eval-8": "lm_eval", "minicons": "minicons"}
BATCHES = {"lm-eval": ", batch 1", "lm-eval-8": ", batch 8", "minicons": ", batch 8"}
COLORS = {OURS: "#2b6cb0", "right": "#a8b3c2", "wrong": "#e3b7b0", "limit": "#c05621"}


def write_report(record: Mapping[str, Any], path: Path) -> str:
    """Write the table and the figure beside the JSON file `path`; returns the table's text."""
    text = render(record, figure=path.with_suffix(".png").name)
    path.with_suffix(".md").write_text(text, "utf-8")
    make_figure(record).savefig(path.with_suffix(".png"), dpi=150)
    return text


# --- numbers ------------------------------------------------------------------------------------


def rate_gflops(record: Mapping[str, Any], run: Mapping[str, Any]) -> float:
    """The rate of the matrix product in the dtype of a run: the median of the rounds."""
    return float(median(record["rates_gflops"][run["dtype"]]))


def limit_s(record: Mapping[str, Any], run: Mapping[str, Any]) -> float:
    """Seconds that the operations of the distinct tokens take at the measured rate."""
    return float(record["operations"]) / (1e9 * rate_gflops(record, run))


def medians_s(run: Mapping[str, Any]) -> dict[str, float]:
    """The median seconds of every scorer that took part."""
    return {n: median(s["seconds"]) for n, s in run["scorers"].items() if s["seconds"]}


def best_peer(run: Mapping[str, Any]) -> str | None:
    """The fastest scorer but ours whose scores are right; the loop is one of them."""
    medians = medians_s(run)
    right = [n for n in medians if n != OURS and run["scorers"][n]["check"]["correct"]]
    return min(right, key=lambda name: medians[name], default=None)


# --- the table ----------------------------------------------------------------------------------


def render(record: Mapping[str, Any], *, figure: str) -> str:
    """The table in Markdown, with what was asked above it and what it stands on below."""
    distinct = record["distinct"]
    asked = (
        f"{record['items']} items of {record['dataset']}, {record['prompts']} prompts, "
        f"{record['answers']} answers: {record['tokens']:,} tokens for a loop over the answers, "
        f"{distinct['tokens']:,} of them distinct{_left_out(record)}. {record['model']}, "
        f"{record['threads']} threads, {record['cpu']}; interleaved rounds: {record['rounds']}. "
        f"`score`: the log-probabilities of all answers. `greedy`: the same, "
        f"and {record['greedy_tokens']} greedy tokens behind every prompt."
    )
    rows = [row for run in record["runs"] for row in _rows(run)]
    limits = [_summary(record, run) for run in record["runs"]]
    versions = f"Versions: {_versions(record)}."
    picture = f"![Seconds of each scorer, and the limit]({figure})"
    explained = (
        "The limit: the operations of the distinct tokens at the rate of this machine's matrix "
        "product, measured in every round; those of greedy tokens are not counted."
    )
    parts = [[asked], [HEAD, RULE, *rows], [explained], limits, [versions], [picture]]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _rows(run: Mapping[str, Any]) -> list[str]:
    medians = medians_s(run)
    ordered = sorted(run["scorers"], key=lambda name: medians.get(name, math.inf))
    return [_row(run, name, medians) for name in ordered]


def _row(run: Mapping[str, Any], name: str, medians: Mapping[str, float]) -> str:
    found = run["scorers"][name]
    cells = [label(run, name), run["dtype"], run["work"]]
    if name in medians:
        seconds = found["seconds"]
        ratio = f"{medians[name] / medians[OURS]:.2f}" if OURS in medians else "-"
        cells += [
            f"{medians[name]:.2f}",
            f"{min(seconds):.2f}-{max(seconds):.2f}",
            ratio,
            f"{found['check']['max_diff_nats']:.1e}",
        ]
    else:
        cells += ["-"] * 4
    return f"| {' | '.join([*cells, _note(run, name)])} |"


def label(run: Mapping[str, Any], name: str) -> str:
    """A scorer with its version and batch size."""
    if name == LOOP:
        return "naive loop"
    versions = run["scorers"][name]["versions"]
    version = f" {versions[PACKAGES[name]]}" if name in PACKAGES else ""
    return f"{name.removesuffix('-8')}{version}{BATCHES.get(name, '')}"


def _note(run: Mapping[str, Any], name: str) -> str:
    found = run["scorers"][name]
    notes = [found["note"]] if found["note"] else []
    if not is_able(name, run["work"]):
        notes.append("does not generate")
    if found["check"] is not None:
        if not found["check"]["correct"]:
            notes.append("WRONG, not compared with")
        if found["check"]["texts_differ"]:
            notes.append(f"{found['check']['texts_differ']} greedy answers differ")
    return "; ".join(notes)


def _summary(record: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    limit, medians = limit_s(record, run), medians_s(run)
    text = (
        f"- {run['dtype']}, {run['work']}: limit {limit:.2f} s "
        f"({record['operations'] / 1e9:,.0f} GFLOP at {rate_gflops(record, run):.0f} GFLOP/s)"
    )
    if OURS not in medians:
        return f"{text}."
    text += f"; ncu_exp {medians[OURS]:.2f} s, {100 * limit / medians[OURS]:.0f}% of the limit"
    peer = best_peer(run)
    if peer is None:
        return f"{text}; no other scorer was right."
    ratio = medians[peer] / medians[OURS]
    return f"{text}; best other scorer that is right: {label(run, peer)}, {ratio:.2f} times ours."


def _left_out(record: Mapping[str, Any]) -> str:
    count = record["left_out"]
    return f" ({count} prompts longer than the model's window are left out)" if count else ""


def _versions(record: Mapping[str, Any]) -> str:
    """Every package with its version, or with its versions where the scorers have several."""
    found: dict[str, set[str]] = {"python": {record["python"]}}
    for run in record["runs"]:
        for scorer in run["scorers"].values():
            for package, version in scorer["versions"].items():
                found.setdefault(package, set()).add(version)
    listed = [f"{package} {' and '.join(sorted(v))}" for package, v in sorted(found.items())]
    if record["commit"]:
        commit, _, dirty = record["commit"].partition("-")
        listed.append(f"commit {commit[:12]}{' with changes' if dirty else ''}")
    return ", ".join([*listed, *(f"`{o}`" for o in record["overrides"])])


# --- the figure ---------------------------------------------------------------------------------


def make_figure(record: Mapping[str, Any]) -> Figure:
    """A panel for each dtype (down) and work (across): medians, with whiskers from min to max."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    runs: Sequence[Mapping[str, Any]] = record["runs"]
    dtypes = list(dict.fromkeys(run["dtype"] for run in runs))
    works = list(dict.fromkeys(run["work"] for run in runs))
    names = list(runs[0]["scorers"])
    size = (2.2 + 4.2 * len(works), 0.7 + (0.8 + 0.34 * len(names)) * len(dtypes))
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(dtypes), len(works), squeeze=False, sharey=True)
    for run in runs:
        _draw(panels[dtypes.index(run["dtype"])][works.index(run["work"])], record, run)
    figure.supxlabel(
        f"seconds for {record['answers']} answers of {record['items']} items of "
        f"{record['dataset']}: median, min and max of the rounds ({record['rounds']})",
        fontsize=9,
    )
    return figure


def _draw(axes: Axes, record: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    medians, limit = medians_s(run), limit_s(record, run)
    names = list(run["scorers"])
    highest = max(s for found in run["scorers"].values() for s in found["seconds"])
    for y, name in enumerate(names):
        if name not in medians:
            axes.annotate("does not generate", (limit, y), **_beside(6), color="#718096")
            continue
        seconds, middle = run["scorers"][name]["seconds"], medians[name]
        right = run["scorers"][name]["check"]["correct"]
        color = COLORS[OURS] if name == OURS else COLORS["right" if right else "wrong"]
        whiskers = [[middle - min(seconds)], [max(seconds) - middle]]
        axes.barh(y, middle, xerr=whiskers, height=0.62, color=color, ecolor="#2d3748", capsize=2.5)
        told = f"{middle:.1f} s" if right else f"{middle:.1f} s, wrong scores"
        axes.annotate(told, (max(seconds), y), **_beside(6))
    axes.axvline(limit, color=COLORS["limit"], lw=1.3, ls="--")
    axes.set_title(f"{run['dtype']}, {run['work']} (dashed: limit, {limit:.1f} s)", fontsize=10)
    axes.set_yticks(range(len(names)), [label(run, name) for name in names], fontsize=9)
    axes.set_ylim(len(names) - 0.4, -0.6)  # the first at the top
    axes.set_xlim(0, 1.35 * max(highest, limit))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)


def _beside(points: float) -> dict[str, Any]:
    return {
        "xytext": (points, 0),
        "textcoords": "offset points",
        "va": "center",
        "fontsize": 8,
        "zorder": 5,
    }
