"""How fast is our engine beside the tools that people use, and beside the machine's limit?

    python -m benchmarks.speed [--dataset NAME] [--items FILE] [--limit N] [--rounds N]
                               [--dtypes fp32 bf16] [--works score greedy] [--scorers ...]
                               [--threads N] [--peers FOLDER] [--docs FOLDER] [--name NAME]
    python -m benchmarks.speed --render FILE.json

Items of a corpus under this project's default conditions are scored by the loop that everybody
writes first, by lm-evaluation-harness (batch 1 and 8), by minicons and by this project: the same
weights, token ids, dtype and number of threads. Each scorer is a process of its own, with the
environment that it needs (made on first use), and keeps its model; only one works at a time.
The work is scoring alone, and scoring plus five greedy tokens behind every prompt.

A first round is for correctness and nothing is timed in it: our scores have to equal the loop's,
or nothing is timed at all; a peer whose scores do not is shown and is not compared with. Then each
round runs every scorer once, in a rotated order, and measures the matrix-product rate of the
machine. The limit is the time that the operations of the distinct tokens take at that rate; what
greedy tokens cost is not in it. A table and a figure go to `docs/speed`, made from the JSON there.

Exit code 0: measured. 1: our scores are wrong. 2: it could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.agreement import PEERS_VARIABLE, REQUIREMENTS
from benchmarks.peers import peer_python
from benchmarks.workload import DTYPES, Workload, make_workload, operations, write_workload
from ncu_exp.errors import ModelError, UserError

WORKER = Path(__file__).with_name("speed_worker.py")
ROOT = Path(__file__).parents[1]
OURS, LOOP = "ncu_exp", "naive"
# The environment of each peer, by its folder. The same torch and transformers for all.
ENVIRONMENTS = {
    "lm-eval": ("lm-eval", REQUIREMENTS),
    "lm-eval-8": ("lm-eval", REQUIREMENTS),
    "minicons": ("minicons", ("minicons==0.3.39", *REQUIREMENTS[1:])),
}
SCORERS = (OURS, LOOP, *ENVIRONMENTS)
WORKS = ("score", "greedy")
WITHOUT_GREEDY = {"minicons"}  # its scorers do not generate
GREEDY_TOKENS = 5
# Of the sum over an answer, nats: what padding and bfloat16 may move. Ours in fp32 has to be exact.
BOUNDS = {"fp32": 1e-2, "bf16": 1.5}
OUR_BOUNDS = {"fp32": 1e-3, "bf16": 1.5}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark, or render what one has written; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dataset", default="hotpotqa")
    parser.add_argument("--items", help="a file of the corpus, in any format that it comes in")
    parser.add_argument("--limit", type=int, default=8, help="items (default 8)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dtypes", nargs="+", choices=tuple(DTYPES), default=["fp32"])
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--scorers", nargs="+", choices=SCORERS, default=list(SCORERS))
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peers", type=Path, help=f"environments (or set {PEERS_VARIABLE})")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs/speed")
    parser.add_argument("--name", help="of the files written (default: the dataset)")
    parser.add_argument("--render", type=Path, help="only draw table and figure of this file again")
    parser.add_argument("overrides", nargs="*", help="more of the configuration, as for ncu_exp")
    args = parser.parse_args(argv)
    from benchmarks.speed_report import write_report

    if args.render:
        write_report(json.loads(args.render.read_text("utf-8")), args.render.with_suffix(""))
        return 0
    try:
        record = measure(args)
    except UserError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    wrong = [run for run in record["runs"] if not run["checks"][OURS]["correct"]]
    if wrong:
        print(f"Our scores are wrong: {[run['checks'][OURS] for run in wrong]}", file=sys.stderr)
        return 1
    args.docs.mkdir(parents=True, exist_ok=True)
    place = args.docs / (args.name or args.dataset)
    place.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(write_report(record, place))
    return 0


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """All runs, as the record that the report is made of. Raises UserError."""
    overrides = [f"dataset={args.dataset}", f"dataset.limit={args.limit}", *args.overrides]
    if args.items:
        overrides += [f"dataset.path={args.items}", "dataset.on_error=skip"]
    workload = make_workload(overrides)
    record: dict[str, Any] = {
        "dataset": args.dataset,
        "items": len({r.item_id for r in workload.requests}),
        "prompts": len(workload.requests),
        "answers": workload.answers,
        "tokens": workload.tokens,
        "distinct_tokens": workload.distinct_tokens,
        "greedy_tokens": GREEDY_TOKENS,
        "operations": operations(workload),
        "model": workload.config.model.label,
        "processor": _processor(),
        "threads": args.threads,
        "versions": {},
        "runs": [],
    }
    names = dict.fromkeys([*args.scorers, LOOP])  # the loop is what is right
    pythons = {name: _python(name, workload, args.peers) for name in names}
    for dtype in args.dtypes:
        with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
            path = write_workload(workload, Path(scratch), greedy_tokens=GREEDY_TOKENS)
            workers = {
                name: stack.enter_context(
                    Worker.started(name, python, workload, path, dtype, threads=args.threads)
                )
                for name, python in pythons.items()
            }
            record["versions"] = {name: worker.versions for name, worker in workers.items()}
            for work in args.works:
                able = {n: w for n, w in workers.items() if (n, work) not in _UNABLE}
                run = _run(able, dtype, work, rounds=args.rounds, threads=args.threads)
                record["runs"].append(run)
                if not run["checks"].get(OURS, {"correct": True})["correct"]:
                    return record
    return record


_UNABLE = {(name, "greedy") for name in WITHOUT_GREEDY}


def _run(
    workers: Mapping[str, Worker], dtype: str, work: str, *, rounds: int, threads: int
) -> dict[str, Any]:
    """One work in one dtype: the check, and then the rounds."""
    first = {name: worker.ask(work) for name, worker in workers.items()}
    checks = {name: check(name, found, first[LOOP], dtype) for name, found in first.items()}
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    rates = []
    names = list(workers)
    for turn in range(rounds if checks.get(OURS, {"correct": True})["correct"] else 0):
        rates.append(matrix_rate(dtype, threads=threads))
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            seconds[name].append(workers[name].ask(work)["seconds"])
        told = ", ".join(f"{name} {found[-1]:.1f} s" for name, found in seconds.items())
        print(f"{dtype} {work}, round {turn + 1}: {told}; {rates[-1]:.0f} GFLOP/s", flush=True)
    return {"dtype": dtype, "work": work, "checks": checks, "seconds": seconds, "gflops": rates}


def check(
    name: str, found: Mapping[str, Any], loop: Mapping[str, Any], dtype: str
) -> dict[str, Any]:
    """The largest difference from the loop (nats, sum over an answer), and unequal greedy texts."""
    pairs = [
        (a, b)
        for ours, theirs in zip(found["scores"], loop["scores"], strict=True)
        for a, b in zip(ours, theirs, strict=True)
    ]
    worst = max((abs(a - b) for a, b in pairs), default=float("nan"))
    bound = (OUR_BOUNDS if name == OURS else BOUNDS)[dtype]
    greedy = None
    if found["greedy"] is not None:
        # lm-eval gives no stop token and no more behind it: what both have is compared.
        greedy = sum(
            a[: min(len(a), len(b))] != b[: min(len(a), len(b))]
            for a, b in zip(found["greedy"], loop["greedy"], strict=True)
        )
    # bfloat16 rounds near ties either way; in float32 nothing may differ.
    fine = worst <= bound and (not greedy or dtype != "fp32")
    return {"max_diff_nats": worst, "greedy_differ": greedy, "correct": fine}


def matrix_rate(dtype: str, *, threads: int) -> float:
    """GFLOP/s of the machine's matrix product: the best of a large square and two tall ones."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    best = 0.0
    for rows, inner, columns in ((2048, 2048, 2048), (4096, 576, 1536), (4096, 1536, 576)):
        a = torch.randn(rows, inner).to(getattr(torch, DTYPES[dtype]))
        b = torch.randn(columns, inner).to(a.dtype)
        out = a @ b.T
        for _ in range(10):
            start = time.perf_counter()
            torch.mm(a, b.T, out=out)
            best = max(best, 2e-9 * rows * inner * columns / (time.perf_counter() - start))
    torch.set_num_threads(before)
    return best


class Worker:
    """A scorer in a process of its own, with its model loaded."""

    def __init__(self, name: str, process: subprocess.Popen[str], errors: Path) -> None:
        self._name, self._process, self._errors = name, process, errors
        self.versions: dict[str, str] = self._answer()["versions"]

    @classmethod
    @contextmanager
    def started(
        cls,
        name: str,
        python: Path,
        workload: Workload,
        path: Path,
        dtype: str,
        *,
        threads: int,
    ) -> Iterator[Worker]:
        alone = [] if python == Path(sys.executable) else ["-I"]
        errors = path.with_name(f"{name}.log")
        command = [str(python), *alone, str(WORKER), name]
        command += [str(workload.model_folder), str(path), DTYPES[dtype], str(threads)]
        with errors.open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env={
                    **os.environ,
                    "HF_HUB_OFFLINE": "1",
                    "OMP_NUM_THREADS": str(threads),
                    "PYTHONPATH": str(ROOT),
                },
            )
        try:
            yield cls(name, process, errors)
        finally:
            process.kill()
            process.communicate()

    def ask(self, work: str) -> dict[str, Any]:
        """Its answer, after it has worked. Raises ModelError where it has died."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{work}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its answer says so
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            tail = self._errors.read_text("utf-8", errors="replace").strip()[-2000:]
            raise ModelError(f"the scorer {self._name} ended:\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _python(name: str, workload: Workload, peers: Path | None) -> Path:
    if name not in ENVIRONMENTS:
        return Path(sys.executable)
    cache_dir = Path(workload.config.cache.dir).expanduser()
    kept = peers or Path(os.environ.get(PEERS_VARIABLE) or cache_dir / "peers")
    folder, requirements = ENVIRONMENTS[name]
    return peer_python(kept.expanduser().resolve() / folder, requirements)


def _processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    sys.exit(main())
