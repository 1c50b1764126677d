"""The table and the figure of a speed benchmark, made from its record and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

OURS = "ncu_exp"
LABELS = {
    "ncu_exp": "ncu_exp",
    "naive": "naive loop",
    "lm-eval": "lm-eval, batch 1",
    "lm-eval-8": "lm-eval, batch 8",
    "minicons": "minicons, batch 8",
}
WORKS = {"score": "scoring alone", "greedy": "scoring + {} greedy tokens"}


def limit_s(record: Mapping[str, Any], run: Mapping[str, Any]) -> float:
    """Seconds that the operations of the distinct tokens take at the measured rate."""
    return float(record["operations"] / (1e9 * median(run["gflops"])))


def best_peer(run: Mapping[str, Any]) -> str | None:
    """The fastest scorer but ours whose scores are right."""
    peers = [name for name in run["seconds"] if name != OURS and run["checks"][name]["correct"]]
    return min(peers, key=lambda name: median(run["seconds"][name]), default=None)


def write_report(record: Mapping[str, Any], place: Path) -> str:
    """Write `place`.md and `place`.png, and return the text of the first."""
    text = render(record, figure=f"{place.name}.png")
    place.with_suffix(".md").write_text(text, "utf-8")
    draw(record, place.with_suffix(".png"))
    return text


def render(record: Mapping[str, Any], *, figure: str) -> str:
    """The table in Markdown, with what it stands on."""
    lines = [
        f"{record['items']} items of {record['dataset']}, {record['prompts']} prompts, "
        f"{record['answers']} answers: {record['tokens']:,} tokens for a loop over the answers, "
        f"of which {record['distinct_tokens']:,} are distinct. {record['model']}, "
        f"{record['threads']} threads of an {record['processor']}.",
        "",
        "| dtype | work | scorer | median, s | min to max, s | times ours | off by, nats |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    for run in record["runs"]:
        ours = median(run["seconds"][OURS]) if run["seconds"].get(OURS) else float("nan")
        for name in sorted(run["seconds"], key=lambda name: median(run["seconds"][name])):
            seconds, found = run["seconds"][name], run["checks"][name]
            off = f"{found['max_diff_nats']:.0e}" if name != "naive" else ""
            if found["greedy_differ"]:
                off += f", {found['greedy_differ']} texts"
            lines.append(
                f"| {run['dtype']} | {_work(record, run)} | {LABELS[name]} "
                f"| {median(seconds):.1f} | {min(seconds):.1f} to {max(seconds):.1f} "
                f"| {median(seconds) / ours:.2f} | {off}{'' if found['correct'] else ' (wrong)'} |"
            )
    lines.append("")
    lines += [_summary(record, run) for run in record["runs"]]
    rounds = len(record["runs"][0]["gflops"])
    lines += [
        "",
        f"Medians of {rounds} interleaved rounds. Versions: {_versions(record)}.",
        "",
        f"![Seconds of each scorer, and the limit]({figure})",
    ]
    return "\n".join(lines) + "\n"


def _summary(record: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    rate, limit = median(run["gflops"]), limit_s(record, run)
    text = (
        f"- {run['dtype']}, {_work(record, run)}: the limit is {limit:.1f} s "
        f"({record['operations'] / 1e9:,.0f} GFLOP at {rate:.0f} GFLOP/s)"
    )
    if OURS in run["seconds"]:
        ours = median(run["seconds"][OURS])
        text += f"; ours takes {ours:.1f} s, which is {100 * limit / ours:.0f}% of the limit's rate"
        peer = best_peer(run)
        if peer is not None:
            ratio = median(run["seconds"][peer]) / ours
            text += f", and {ratio:.2f} times as fast as the best peer ({LABELS[peer]})"
    return f"{text}."


def _work(record: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    return WORKS[run["work"]].format(record["greedy_tokens"])


def _versions(record: Mapping[str, Any]) -> str:
    found: dict[str, set[str]] = {}
    for versions in record["versions"].values():
        for package, version in versions.items():
            found.setdefault(package, set()).add(version)
    return ", ".join(f"{package} {'/'.join(sorted(v))}" for package, v in sorted(found.items()))


def draw(record: Mapping[str, Any], path: Path) -> None:
    """A panel per run: medians as bars, each round as a dot, the limit as a line."""
    from matplotlib.figure import Figure

    runs: Sequence[Mapping[str, Any]] = record["runs"]
    rows = [len(run["seconds"]) for run in runs]
    figure = Figure(figsize=(8, 1.1 * len(runs) + 0.34 * sum(rows)), layout="constrained")
    panels = figure.subplots(len(runs), 1, squeeze=False, height_ratios=rows)[:, 0]
    for axes, run in zip(panels, runs, strict=True):
        names = sorted(run["seconds"], key=lambda name: -median(run["seconds"][name]))
        for y, name in enumerate(names):
            seconds = run["seconds"][name]
            axes.barh(
                y, median(seconds), height=0.6, color="#2b6cb0" if name == OURS else "#c3cbd6"
            )
            axes.plot(seconds, [y] * len(seconds), "o", ms=2.5, color="#1a202c", alpha=0.6)
            axes.annotate(
                f"{median(seconds):.1f} s",
                (max(seconds), y),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.set_yticks(range(len(names)), [LABELS[name] for name in names], fontsize=9)
        axes.set_xlim(0, 1.12 * max(max(s) for s in run["seconds"].values()))
        axes.axvline(limit_s(record, run), color="#c05621", lw=1.2, ls="--")
        axes.set_title(
            f"{run['dtype']}, {_work(record, run)} (dashed: the machine's limit)",
            loc="left",
            fontsize=10,
        )
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(length=0, labelsize=8)
    panels[-1].set_xlabel(f"seconds for {record['answers']} answers, median of the rounds (dots)")
    figure.savefig(path, dpi=150)
