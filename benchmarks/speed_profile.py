"""Where does the time of our engine go, beside the machine's limit?

    python -m benchmarks.speed_profile [--dataset hotpotqa] [--items FILE] [--n-items 4]
                                       [--threads 2] [--docs FOLDER] [--name NAME]

The workload of `benchmarks.speed` in fp32, run once to warm up and once under torch's profiler:
what each kind of operation took by itself, for the log-probabilities alone and with five greedy
tokens behind every prompt. The profiler's own cost is in the times.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed import DATASETS, GREEDY_TOKENS, workload_overrides
from benchmarks.speed_limit import matrix_rate, model_shape, operations
from benchmarks.speed_scorers import ROOT
from benchmarks.workload import OurEngine, count_distinct, make_workload, write_workload

REST = "all else: Python, views, allocation"
KINDS = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm"),
    "attention": ("aten::_scaled_dot_product_flash_attention_for_cpu",),
    "passes over arrays": (
        *("aten::mul", "aten::mul_", "aten::add", "aten::add_", "aten::sub_", "aten::div_"),
        *("aten::silu_", "aten::silu", "aten::gelu", "aten::pow", "aten::sum", "aten::lerp"),
        *("aten::_fused_rms_norm", "aten::rms_norm", "aten::_log_softmax", "aten::sigmoid"),
    ),
    "copies": ("aten::copy_", "aten::cat", "aten::index", "aten::index_put_", "aten::fill_"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Profile both works, print the table and write it down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dataset", choices=DATASETS, default="hotpotqa")
    parser.add_argument("--items", type=Path, help="a file of the corpus")
    parser.add_argument("--n-items", type=int, default=4, help="items (default 4)")
    parser.add_argument("--threads", type=int, default=2, help="(default 2)")
    parser.add_argument("--override", nargs="+", default=[], help="more of the configuration")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    parser.add_argument("--name", default="profile", help="of the file written")
    args = parser.parse_args(argv)
    import torch

    torch.set_num_threads(args.threads)
    workload = make_workload(workload_overrides(args))
    distinct = count_distinct(workload.answered)
    with tempfile.TemporaryDirectory() as folder:
        path = write_workload(workload, Path(folder), greedy_tokens=GREEDY_TOKENS)
        asked = json.loads(path.read_text("utf-8"))["ours"]
    engine = OurEngine(asked, precision="fp32")
    found = {
        "score": profiled(lambda: engine.run(0)),
        "greedy": profiled(lambda: engine.run(GREEDY_TOKENS)),
    }
    shape = model_shape(workload.model)
    rate = matrix_rate(shape, "fp32", threads=args.threads)
    limit = operations(shape, distinct) / (rate * 1e9)
    text = render(found, limit=limit, tokens=distinct.tokens, name=workload.config.model.label)
    place = args.docs / "speed" / f"{args.name}.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, "utf-8")
    print(text)
    return 0


def profiled(work: Callable[[], object]) -> dict[str, float]:
    """Seconds that each kind of operation took by itself, in a second run of the work."""
    from torch.profiler import ProfilerActivity, profile

    work()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        work()
    events: Any = profiler.key_averages()
    return by_kind({event.key: event.self_cpu_time_total / 1e6 for event in events})


def by_kind(seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds by kind of operation, from those by the operation's name."""
    kind_of = {name: kind for kind, names in KINDS.items() for name in names}
    found: dict[str, float] = defaultdict(float)
    for name, spent in seconds.items():
        found[kind_of.get(name, REST)] += spent
    return {kind: found[kind] for kind in (*KINDS, REST)}


def render(
    found: Mapping[str, Mapping[str, float]], *, limit: float, tokens: int, name: str
) -> str:
    """The table that stands in the docs."""
    totals = {work: sum(seconds.values()) for work, seconds in found.items()}
    lines = [
        f"{name}, fp32, {tokens:,} distinct tokens; limit of the machine {limit:.2f} s "
        "(their operations at the rate of its matrix product).",
        "",
        "| " + " | ".join(["", *(f"{work} s | share" for work in found)]) + " |",
        "|---|" + "--:|" * (2 * len(found)),
    ]
    for kind in (*KINDS, REST):
        cells = [
            f"{seconds[kind]:.2f} | {seconds[kind] / totals[work]:.0%}"
            for work, seconds in found.items()
        ]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    lines.append("| all | " + " | ".join(f"{totals[work]:.2f} | 100%" for work in found) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
