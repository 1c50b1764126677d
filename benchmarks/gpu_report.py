"""The numbers of the GPU benchmark: what follows from the seconds, as JSON and as tables."""

from __future__ import annotations

import json
import os
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu_requests import Work
from benchmarks.gpu_ways import NAIVE

PATH = re.compile(r"(?:/[^/\s:,;'\"]+){2,}")


def results(
    rounds: Mapping[str, Sequence[float]], work: Work, *, new_tokens: int, peak: float
) -> list[dict[str, Any]]:
    """What follows from the seconds of each way's rounds; `peak` in operations per second.

    Tokens and the share of the peak are of scoring alone: greedy answers add to the time, and are
    not counted.
    """
    medians = {way: statistics.median(seconds) for way, seconds in rounds.items()}
    found = []
    for way, median in medians.items():
        race: dict[str, Any] = {
            "way": way,
            "new_tokens": new_tokens,
            "rounds_s": list(rounds[way]),
            "median_s": median,
            "items_per_s": work.items / median,
            "answers_per_s": work.answers / median,
            "times_naive": medians[NAIVE] / median,
        }
        if not new_tokens:
            race["naive_tokens_per_s"] = work.naive_tokens / median
            race["distinct_tokens_per_s"] = work.distinct_tokens / median
            race["share_of_peak"] = work.operations / median / peak
        found.append(race)
    return found


def compile_s(equality: Sequence[Mapping[str, Any]]) -> float:
    """What the first calls took beyond the second ones: compiling, by far the most of it."""
    calls = [found for found in equality if "second_call_s" in found]
    return float(sum(found["first_call_s"] - found["second_call_s"] for found in calls))


def in_one_line(error: BaseException) -> str:
    """The kind of an error and its first line, without paths of this machine."""
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {PATH.sub('...', first)}"[:400]


def write(report: Mapping[str, Any], out: Path | None) -> None:
    """Write the report in one step, so that a kill leaves the one before."""
    if out is None:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    beside = out.with_name(out.name + ".part")
    beside.write_text(json.dumps(report, indent=1, allow_nan=False) + "\n", "utf-8")
    os.replace(beside, out)


def render(rows: Sequence[Mapping[str, Any]]) -> str:
    """The shapes, and their races, as two tables in Markdown."""
    lines = [
        "| shape | build s | weights GB | peak GB | latency p50, p95 ms | compile s | graphs |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [_shape_line(row) for row in rows]
    lines += [
        "",
        "| shape | way | greedy tokens | items/s | answers/s | tokens/s, naive | distinct "
        "| × naive | of peak | rounds |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [_race_line(row["shape"], race) for row in rows for race in row.get("throughput", [])]
    return "\n".join(lines)


def render_equality(row: Mapping[str, Any]) -> str:
    """What the comparison with the reference found, a line for each way."""
    lines = [f"{row['shape']}: another context moves a token by {row['control_nats']:.3f} nats"]
    for found in row["equality"]:
        if "error" in found:
            lines.append(f"  {found['way']}: {found['error']}")
            continue
        lines.append(
            f"  {found['way']}: at most {found['max_abs_diff_nats']} nats off the reference (bound "
            f"{found['bound_nats']}), {found['greedy_equal']:.0%} of greedy answers equal; "
            f"first call {found['first_call_s']:.2f} s, second {found['second_call_s']:.2f} s"
        )
    return "\n".join(lines)


def _shape_line(row: Mapping[str, Any]) -> str:
    if "throughput" not in row:
        why = f"skipped: {row['skipped']}" if "skipped" in row else "; ".join(row["problems"])
        return f"| {row['shape']} | {why} | | | | | |"
    p50, p95 = (1e3 * row["latency"][key] for key in ("p50_s", "p95_s"))
    compiled = "– | –" if row["graphs"] is None else f"{row['compile_s']:.1f} | {row['graphs']}"
    return (
        f"| {row['shape']} | {row['build_s']:.1f} | {row['weights_gb']:.1f} "
        f"| {row['peak_memory_gb']:.1f} | {p50:.1f}, {p95:.1f} | {compiled} |"
    )


def _race_line(shape: str, race: Mapping[str, Any]) -> str:
    scored = ("naive_tokens_per_s", "distinct_tokens_per_s")
    tokens = [f"{race[key]:,.0f}" if key in race else "–" for key in scored]
    share = f"{race['share_of_peak']:.1%}" if "share_of_peak" in race else "–"
    return (
        f"| {shape} | {race['way']} | {race['new_tokens']} | {race['items_per_s']:.2f} "
        f"| {race['answers_per_s']:.1f} | {' | '.join(tokens)} | {race['times_naive']:.2f} "
        f"| {share} | {len(race['rounds_s'])} |"
    )
