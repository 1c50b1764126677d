"""How fast are the tree, the batched way and the naive loop on a GPU, and do they agree there?

    python -m benchmarks.gpu [--shapes NAME ...] [--device auto|cpu|cuda] [--out FILE.json]
                             [--items N] [--seconds S]

Needs no network: the models have the shapes of Qwen2.5 and random weights, made on the device, and
the requests are random token ids whose lengths and shared prefixes are those of the bundled sample
(four prompts and five answers per item). Per shape, first of all, every way is compared with the
reference over all requests. A way that is off by more than the bound of the precision is not timed.
Random weights give flat distributions, on which that bound alone could pass a wrong tree; so a way
must also stay below a quarter of the control, which is what another context does to a score.
Then: latency at batch size 1, throughput of scoring alone and of scoring with greedy answers, the
share of the peak that this device reaches in a matrix product, memory, and the time of compiling.

Rounds interleave the ways; a number is the median of its rounds. A shape that the left time or
memory does not allow is skipped, with the reason. The JSON is written after every shape.

Exit code 0: every way equals the reference. 1: one does not, or broke, or nothing was measured.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu_device import (
    compiled_graphs,
    describe,
    free_bytes,
    measure_peak,
    start_compiling_anew,
    synchronise,
    version,
)
from benchmarks.gpu_report import compile_s, in_one_line, render, render_equality, results, write
from benchmarks.gpu_requests import GREEDY_TOKENS, Work, make_requests, replace_new_tokens
from benchmarks.gpu_shapes import ON_CUDA, SHAPES, Shape, build_model, needed_bytes
from benchmarks.gpu_ways import Contender, compare, contenders, control_nats
from ncu_exp.records import Condition
from ncu_exp.scoring.encoding import EncodedRequest
from ncu_exp.scoring.local import free_device_memory, peak_memory_gb, reset_peak_memory
from ncu_exp.scoring.precision import PRECISIONS, Precision, resolve_device
from ncu_exp.scoring.reference import generate_greedy

PROBES = 12  # of latency
ROUNDS = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the shapes, print the tables and write them down; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, help="default: all, or tiny on CPU")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--out", type=Path, help="file for the numbers, as JSON")
    parser.add_argument("--items", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=420.0, help="of the whole run")
    args = parser.parse_args(argv)
    started = time.perf_counter()
    device = resolve_device(args.device)
    names = args.shapes or (ON_CUDA if device == "cuda" else ("tiny",))
    bench = Bench(device, args.items, args.rounds, ends=started + args.seconds)
    report: dict[str, Any] = {**describe(device), "seconds": args.seconds, "shapes": []}
    for name in names:
        report["shapes"].append(bench.run(SHAPES[name]))
        report["peak_tflops"] = {k: v / 1e12 for k, v in bench.peaks.items()}
        report["took_s"] = time.perf_counter() - started
        write(report, args.out)
        print(render(report["shapes"][-1:]), flush=True)
    if len(names) > 1:
        print("\n" + render(report["shapes"]))
    problems = [p for row in report["shapes"] for p in row.get("problems", [])]
    for problem in problems:
        print(problem, file=sys.stderr)
    measured = any(row.get("throughput") for row in report["shapes"])
    return 0 if measured and not problems else 1


@dataclass(slots=True)
class Bench:
    """One run on one device, until about `ends` (of time.perf_counter).

    `peaks` are the operations per second of a matrix product, by dtype.
    """

    device: str
    items: int
    rounds: int
    ends: float
    peaks: dict[str, float] = field(default_factory=dict)

    def left_s(self) -> float:
        return self.ends - time.perf_counter()

    def run(self, shape: Shape) -> dict[str, Any]:
        """What was measured of a shape: a row of the report, whatever breaks."""
        precision = PRECISIONS[shape.precision]
        row: dict[str, Any] = {"shape": shape.name, "precision": precision.name.value}
        if reason := self.why_not(shape):
            return row | {"skipped": reason}
        row["problems"] = []
        start_compiling_anew(self.device)
        try:
            with warnings.catch_warnings():
                # What flex attention says when it gave up compiling and computes every pair.
                warnings.filterwarnings("error", message="flex_attention called without")
                self._measure(shape, precision, row)
        except Exception as error:  # noqa: BLE001 -- one run on a lent device: say what broke, go on
            row["problems"].append(f"{shape.name}: {in_one_line(error)}")
        row["peak_memory_gb"] = peak_memory_gb()
        free_device_memory()
        return row

    def why_not(self, shape: Shape) -> str:
        """Why a shape cannot be run now, or nothing."""
        if self.left_s() < shape.least_s:
            return f"{self.left_s():.0f} s are left, and it may need {shape.least_s:.0f} s or more"
        needed, free = needed_bytes(shape), free_bytes(self.device)
        if needed > free:
            return f"needs about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"
        if PRECISIONS[shape.precision].quantized and version("bitsandbytes") is None:
            return "bitsandbytes is not installed"
        return ""

    def _measure(self, shape: Shape, precision: Precision, row: dict[str, Any]) -> None:
        if precision.dtype not in self.peaks:
            self.peaks[precision.dtype] = measure_peak(self.device, precision.dtype)
        reset_peak_memory()
        build = functools.partial(build_model, shape, device=self.device)
        model, row["build_s"] = self._timed(build)
        row["weights_gb"] = sum(t.nbytes for t in (*model.parameters(), *model.buffers())) / 1e9
        n_items = max(1, self.items // shape.divisor)
        requests = make_requests(n_items, shape.vocabulary)
        row |= {"items": n_items, "answers": sum(len(r.continuations) for r in requests)}
        equal = self._compare(model, requests, precision, row)
        row["latency"] = self._latency(model, requests)
        row["compile_s"] = compile_s(row["equality"]) if self.device == "cuda" else None
        work, peak = Work.of(shape, requests), self.peaks[precision.dtype]
        row |= {"naive_tokens": work.naive_tokens, "distinct_tokens": work.distinct_tokens}
        row["graphs"], row["throughput"] = compiled_graphs(self.device), []
        for new_tokens in (0, GREEDY_TOKENS):
            asked = [replace_new_tokens(request, new_tokens) for request in requests]
            seconds = self._race(model, asked, equal)
            row["throughput"] += results(seconds, work, new_tokens=new_tokens, peak=peak)
        if compiled_graphs(self.device) != row["graphs"]:
            row["problems"].append(f"{shape.name}: a graph was compiled while the ways were timed")

    def _compare(
        self,
        model: Any,
        requests: Sequence[EncodedRequest],
        precision: Precision,
        row: dict[str, Any],
    ) -> list[Contender]:
        """The ways that are within the bound of the reference; this warms all of them up too."""
        naive, *others = contenders()
        reference = naive.run(model, requests)
        control = control_nats(requests, reference)
        within, row["equality"], row["control_nats"] = [naive], [], control
        for contender in others:
            found: dict[str, Any] = {"way": contender.name, "bound_nats": precision.bound_nats}
            row["equality"].append(found)
            run = functools.partial(contender.run, model, requests)
            try:
                outcomes, found["first_call_s"] = self._timed(run)
                _, found["second_call_s"] = self._timed(run)
            except Exception as error:  # noqa: BLE001 -- the other ways are still worth measuring
                found["error"] = in_one_line(error)
                row["problems"].append(f"{row['shape']}, {contender.name}: {found['error']}")
                continue
            found |= compare(outcomes, reference) | {"graphs": compiled_graphs(self.device)}
            largest = found["max_abs_diff_nats"]
            if largest is not None and largest <= precision.bound_nats:
                within.append(contender)
            if largest is None or not largest <= min(precision.bound_nats, control / 4):
                row["problems"].append(
                    f"{row['shape']}, {contender.name}: {largest} nats off the reference; the "
                    f"bound is {precision.bound_nats}, and another context moves {control:.3f}"
                )
        print(render_equality(row), flush=True)
        return within

    def _latency(self, model: Any, requests: Sequence[EncodedRequest]) -> dict[str, Any]:
        """Seconds of an oracle prompt and five greedy tokens, one at a time."""
        prompts = [r.prompt_ids for r in requests if r.request.condition is Condition.oracle]
        seconds = []
        for turn in range(-2, PROBES):
            prompt = prompts[turn % len(prompts)]
            generate = functools.partial(
                generate_greedy, model, prompt, max_new_tokens=GREEDY_TOKENS, stop_ids=()
            )
            _, took = self._timed(generate)
            if turn >= 0:
                seconds.append(took)
        p50, p95 = np.percentile(seconds, (50, 95))
        return {"seconds": seconds, "p50_s": float(p50), "p95_s": float(p95)}

    def _race(
        self, model: Any, requests: Sequence[EncodedRequest], ways: Sequence[Contender]
    ) -> dict[str, list[float]]:
        """Seconds of each way in each round; the second round and later ones only if time is."""
        seconds: dict[str, list[float]] = {way.name: [] for way in ways}
        for done in range(self.rounds):
            if done and self.left_s() < 1.5 * sum(s[-1] for s in seconds.values()):
                break
            for way in ways:
                _, took = self._timed(functools.partial(way.run, model, requests))
                seconds[way.name].append(took)
        return seconds

    def _timed(self, call: Callable[[], Any]) -> tuple[Any, float]:
        synchronise(self.device)
        start = time.perf_counter()
        result = call()
        synchronise(self.device)
        return result, time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
