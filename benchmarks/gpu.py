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
import gc
import importlib.metadata
import json
import math
import os
import platform
import random
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncu_exp.config import PrecisionName
from ncu_exp.records import Condition, Continuation, Prompt, ScoreRequest
from ncu_exp.scoring.batched import Outcome
from ncu_exp.scoring.encoding import EncodedContinuation, EncodedRequest
from ncu_exp.scoring.forward import NonFiniteError
from ncu_exp.scoring.local import free_device_memory, peak_memory_gb, reset_peak_memory
from ncu_exp.scoring.precision import PRECISIONS, Precision, resolve_device
from ncu_exp.scoring.reference import generate_greedy
from ncu_exp.scoring.tree import TokenTree, build_tree
from ncu_exp.scoring.ways import BATCHED, REFERENCE, TREE, Way

if TYPE_CHECKING:
    import torch

GREEDY_TOKENS = 5  # the default of score.max_new_tokens
PROBES = 12  # of latency
ROUNDS = 3
LARGEST_BUDGET = 16384
NF4_BYTES = 0.5 + 4 / 64  # per weight: four bits, and a float32 scale for every 64
PATH = re.compile(r"(?:/[^/\s:,;'\"]+){2,}")
PACKAGES = ("torch", "transformers", "triton", "bitsandbytes")

# Tokens of the prompts; all prompts share the system prompt, and the adversarial one shares its
# context with the oracle one up to the first replaced word. Lengths vary by a tenth.
HEAD = 36
ZERO = 60
CONTEXT = 270
CONTEXT_SHARED = 150
NOISE = 580


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model, and what a run of it asks for.

    `spread` is the standard deviation of the random weights. Of the items that are asked for, one
    in `divisor` is used. `least_s` is the time without which the shape is not started.
    """

    name: str
    precision: PrecisionName
    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_heads: int
    vocabulary: int
    tied: bool
    spread: float = 0.02
    divisor: int = 1
    least_s: float = 60.0

    @property
    def matrix_params(self) -> int:
        """Parameters of the matrices between the embedding and the head."""
        key_size = self.hidden // self.heads * self.key_heads
        attention = 2 * self.hidden * (self.hidden + key_size)
        return self.layers * (attention + 3 * self.hidden * self.intermediate)

    @property
    def embedding_params(self) -> int:
        return self.hidden * self.vocabulary * (1 if self.tied else 2)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("tiny", PrecisionName.fp32, 64, 128, 2, 4, 2, 512, tied=True, spread=0.2),
        Shape("tiny-nf4", PrecisionName.nf4, 64, 128, 2, 4, 2, 512, tied=False, spread=0.2),
        Shape("qwen2.5-1.5b", PrecisionName.bf16, 1536, 8960, 28, 12, 2, 151936, tied=True),
        Shape("qwen2.5-7b", PrecisionName.bf16, 3584, 18944, 28, 28, 4, 152064, tied=False),
        Shape(
            "qwen2.5-72b-nf4",
            PrecisionName.nf4,
            8192,
            29568,
            80,
            64,
            8,
            152064,
            tied=False,
            divisor=4,
            least_s=120.0,
        ),
    )
}
ON_CUDA = ("tiny", "qwen2.5-1.5b", "qwen2.5-7b", "qwen2.5-72b-nf4")


@dataclass(frozen=True, slots=True)
class Contender:
    """A way under a budget of tokens."""

    name: str
    way: Way
    budget: int

    def run(self, model: Any, requests: Sequence[EncodedRequest]) -> dict[int, Outcome]:
        """Every request's outcome, by its index; no token ends a greedy answer."""
        return {
            request.index: outcome
            for group in self.way.group(requests, self.budget)
            for request, outcome in zip(
                group, self.way.score(model, group, (), self.budget), strict=True
            )
        }


NAIVE = "naive loop"


def contenders() -> list[Contender]:
    """The ways that are compared, the naive loop (a forward pass for each answer) first."""
    return [
        Contender(NAIVE, REFERENCE, 1),
        Contender("batched 4096", BATCHED, 4096),
        Contender("tree 4096", TREE, 4096),
        Contender(f"tree {LARGEST_BUDGET}", TREE, LARGEST_BUDGET),
    ]


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


# --- requests -----------------------------------------------------------------------------------


def make_requests(n_items: int, vocabulary: int, *, seed: int = 0) -> list[EncodedRequest]:
    """Four requests per item with five answers in all, as the paper's four conditions ask them."""
    rng = random.Random(seed)

    def draw(length: int) -> tuple[int, ...]:
        return tuple(rng.randrange(vocabulary) for _ in range(length))

    def about(length: int) -> int:
        return round(length * rng.uniform(0.9, 1.1))

    head = draw(HEAD)
    requests: list[EncodedRequest] = []
    for item in range(n_items):
        true, fabricated = (draw(rng.randint(2, 6)) for _ in range(2))
        oracle = head + draw(about(CONTEXT) - HEAD)
        shared = oracle[: about(CONTEXT_SHARED)]
        prompts = {
            Condition.zero: head + draw(about(ZERO) - HEAD),
            Condition.oracle: oracle,
            Condition.adversarial: shared + draw(len(oracle) - len(shared)),
            Condition.noise: head + draw(about(NOISE) - HEAD),
        }
        for condition, prompt in prompts.items():
            answers = {Continuation.true: true}
            if condition is Condition.adversarial:
                answers[Continuation.fabricated] = fabricated
            requests.append(
                EncodedRequest(
                    len(requests),
                    ScoreRequest(f"item-{item}", condition, Prompt(), (), GREEDY_TOKENS),
                    prompt,
                    tuple(
                        EncodedContinuation(kind, "", ids, boundary_merged=False)
                        for kind, ids in answers.items()
                    ),
                )
            )
    return requests


def replace_new_tokens(encoded: EncodedRequest, count: int) -> EncodedRequest:
    """The same request with another number of greedy tokens."""
    return replace(encoded, request=replace(encoded.request, max_new_tokens=count))


@dataclass(frozen=True, slots=True)
class Work:
    """What scoring the answers takes: tokens, one by one and distinct, and operations.

    `operations` are those of the distinct tokens, if each is computed once, by whatever way.
    """

    items: int
    answers: int
    naive_tokens: int
    distinct_tokens: int
    operations: float

    @classmethod
    def of(cls, shape: Shape, requests: Sequence[EncodedRequest]) -> Work:
        answers = [(r.prompt_ids, c.ids) for r in requests for c in r.continuations]
        # The last token of an answer predicts nothing that is asked for.
        tree = build_tree([prompt + ids[:-1] for prompt, ids in answers])
        rows = {
            row
            for (prompt, _), path in zip(answers, tree.paths, strict=True)
            for row in path[len(prompt) - 1 :]
        }
        return cls(
            items=len({r.request.item_id for r in requests}),
            answers=len(answers),
            naive_tokens=sum(len(prompt) + len(ids) for prompt, ids in answers),
            distinct_tokens=len(tree.tokens),
            operations=operations(shape, tree, head_rows=len(rows)),
        )


def operations(shape: Shape, tree: TokenTree, *, head_rows: int) -> float:
    """Multiplications and additions of a pass over a tree.

    Two for each parameter of a matrix and row of the tree; in each layer's attention four for each
    pair of a row and itself or an ancestor, and unit of width; the head at `head_rows` rows.
    """
    pairs = sum(depth + 1 for depth in tree.depths)
    matrices = 2.0 * shape.matrix_params * len(tree.tokens)
    attention = 4.0 * shape.layers * shape.hidden * pairs
    return matrices + attention + 2.0 * shape.hidden * shape.vocabulary * head_rows


def compare(
    outcomes: Mapping[int, Outcome], reference: Mapping[int, Outcome]
) -> dict[str, float | None]:
    """The differences of the tokens' log-probabilities (nats; None if not finite), greedy answers.

    `greedy_equal` is the share of requests with the same greedy answer; it is not judged, since
    two tokens may be as likely as each other.
    """
    differences: list[float] = []
    greedy = 0
    for index, expected in reference.items():
        found = outcomes[index]
        if isinstance(expected, NonFiniteError) or isinstance(found, NonFiniteError):
            differences.append(math.nan)
            continue
        greedy += expected[1] == found[1]
        differences += [
            abs(a - b)
            for one, other in zip(expected[0], found[0], strict=True)
            for a, b in zip(one.token_logprobs, other.token_logprobs, strict=True)
        ]
    # NumPy's maximum of anything with NaN is NaN; Python's may hide it.
    largest, median = float(np.max(differences)), float(np.median(differences))
    return {
        "max_abs_diff_nats": largest if math.isfinite(largest) else None,
        "median_abs_diff_nats": median if math.isfinite(median) else None,
        "greedy_equal": greedy / len(reference),
    }


def control_nats(requests: Sequence[EncodedRequest], reference: Mapping[int, Outcome]) -> float:
    """The largest difference between a true answer's tokens behind two contexts of its item.

    The oracle and the adversarial prompt share their first half: what a way that lets a row see
    the wrong branch would get wrong is of this size.
    """
    by_item: dict[str, dict[Condition, tuple[float, ...]]] = {}
    for request in requests:
        outcome = reference[request.index]
        if not isinstance(outcome, NonFiniteError):
            found = by_item.setdefault(request.request.item_id, {})
            found[request.request.condition] = outcome[0][0].token_logprobs
    pairs = [
        zip(found[Condition.oracle], found[Condition.adversarial], strict=True)
        for found in by_item.values()
        if {Condition.oracle, Condition.adversarial} <= set(found)
    ]
    return max((abs(a - b) for pair in pairs for a, b in pair), default=0.0)


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


# --- models -------------------------------------------------------------------------------------


def build_model(shape: Shape, *, device: str, seed: int = 0) -> Any:
    """A random model, made on the device one module at a time.

    Nothing larger than the finished model and one matrix in 16 bits is ever held: an nf4 model of
    145 GB in 16 bits is made within the 41 GB that it takes.
    """
    import torch
    from transformers import AutoModelForCausalLM, Qwen2Config

    precision = PRECISIONS[shape.precision]
    dtype = getattr(torch, precision.dtype)
    config = Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        max_position_embeddings=32768,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        tie_word_embeddings=shape.tied,
        initializer_range=shape.spread,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    generator = torch.Generator(device).manual_seed(seed)

    def parameter(like: torch.Tensor, fill: Callable[[torch.Tensor], Any]) -> torch.nn.Parameter:
        made = torch.empty(like.shape, dtype=dtype, device=device)
        fill(made)
        return torch.nn.Parameter(made, requires_grad=False)

    def normal(made: torch.Tensor) -> None:
        made.normal_(0.0, shape.spread, generator=generator)

    for name, module in list(model.named_modules()):
        is_head, is_linear = name == "lm_head", isinstance(module, torch.nn.Linear)
        if "weight" not in module._parameters or (is_head and shape.tied):
            continue
        if getattr(module, "bias", None) is not None:
            module.bias = parameter(module.bias, torch.nn.init.zeros_)
        is_matrix = is_linear or isinstance(module, torch.nn.Embedding)
        weight = parameter(module.weight, normal if is_matrix else torch.nn.init.ones_)
        if is_linear and precision.quantized and not is_head:
            model.set_submodule(name, _nf4(module, weight))
        else:
            module.weight = weight
    if shape.tied:
        model.lm_head.weight = model.model.embed_tokens.weight
    rotary = model.model.rotary_emb
    model.model.rotary_emb = type(rotary)(config=config).to(device)
    assert not any(t.is_meta for t in (*model.parameters(), *model.buffers()))
    return model.eval()


def _nf4(linear: torch.nn.Linear, weight: torch.Tensor) -> Any:
    """What transformers makes of a linear layer under our configuration of nf4."""
    import bitsandbytes.nn

    bnb: Any = bitsandbytes.nn
    how = {"compress_statistics": False, "quant_type": "nf4"}
    sizes = (linear.in_features, linear.out_features)
    made = bnb.Linear4bit(*sizes, bias=False, compute_dtype=weight.dtype, device="meta", **how)
    made.bias = linear.bias
    made.weight = bnb.Params4bit(weight.data, requires_grad=False, module=made, **how)
    made.weight = made.weight.to(weight.device)  # quantises
    return made


def needed_bytes(shape: Shape) -> float:
    """About what a run takes: weights, one matrix, and the largest pass with its cache.

    The head's rows are at most a tenth of the tokens, in 16 and twice in 32 bits; the cache is
    held twice where it grows.
    """
    precision = PRECISIONS[shape.precision]
    width = 4 if precision.dtype == "float32" else 2
    matrix = NF4_BYTES if precision.quantized else width
    key_size = shape.hidden // shape.heads * shape.key_heads
    cache = 2 * (shape.layers + 1) * 2 * key_size * width
    states = (4 * shape.intermediate + 8 * shape.hidden) * width
    head = shape.vocabulary * (width + 8) / 10
    return (
        shape.matrix_params * matrix
        + shape.embedding_params * width
        + shape.hidden * shape.intermediate * width
        + LARGEST_BUDGET * (cache + states + head)
        + 3 * LARGEST_BUDGET**2  # the mask of flex attention, a byte for each pair
    )


# --- the device ---------------------------------------------------------------------------------


def measure_peak(device: str, dtype: str) -> float:
    """Operations per second of a square matrix product of random numbers: the best of several."""
    import torch

    size, tries = (8192, 30) if device == "cuda" else (512, 5)
    left, right = torch.randn(2, size, size, device=device, dtype=getattr(torch, dtype)).unbind()
    best = math.inf
    for turn in range(-5, tries):
        synchronise(device)
        start = time.perf_counter()
        left @ right
        synchronise(device)
        if turn >= 0:
            best = min(best, time.perf_counter() - start)
    return float(2 * size**3 / best)


def synchronise(device: str) -> None:
    """Wait for all that was given to the device."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def free_bytes(device: str) -> float:
    """Memory of the device that nobody holds."""
    import psutil
    import torch

    if device == "cuda":
        return float(torch.cuda.mem_get_info()[0])
    return float(psutil.virtual_memory().available)


def start_compiling_anew(device: str) -> None:
    """Forget compiled graphs, so that the limit on recompiling counts for each shape apart."""
    gc.collect()
    if device == "cuda":
        import torch._dynamo.utils

        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()


def compiled_graphs(device: str) -> int | None:
    """Graphs compiled for this shape so far; None where nothing is compiled."""
    if device != "cuda":
        return None
    import torch._dynamo.utils

    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


# --- the report ---------------------------------------------------------------------------------


def describe(device: str) -> dict[str, Any]:
    """The device and the versions, without anything that names the machine."""
    import torch

    versions = {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}
    if device != "cuda":
        return {"device": f"CPU ({platform.machine()})", "versions": versions}
    name, memory = torch.cuda.get_device_name(), torch.cuda.get_device_properties(0).total_memory
    versions["cuda"] = torch.version.cuda
    return {"device": name, "memory_gb": memory / 1e9, "versions": versions}


def version(package: str) -> str | None:
    """The version of a package, or None where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


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


if __name__ == "__main__":
    sys.exit(main())
