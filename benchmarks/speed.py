"""How fast is our engine beside the tools that people use, and beside the machine's limit?

    python -m benchmarks.speed [--dataset hotpotqa|nq|triviaqa|squad|sample] [--items FILE]
                               [--n-items 8] [--rounds 5] [--dtype fp32 bf16] [--threads 2]
                               [--work score greedy] [--scorers NAME ...] [--peers FOLDER]
                               [--docs FOLDER] [--name NAME] [--override hydra=override ...]
    python -m benchmarks.speed --render FILE.json

Items of a corpus under this project's default conditions are scored by the loop that everybody
writes first, by lm-evaluation-harness (batch 1 and 8), by minicons and by this project: the same
weights, tokens, dtype and number of threads. Each scorer is a process of its own, with the
environment that it needs (made on first use: minutes, about 2 GB each), and keeps its model; only
one works at a time. The work is `score`, the log-probabilities of all answers, and `greedy`, the
same and five greedy tokens behind every prompt.

First everything is run once, untimed, and compared with the loop: where ours is wrong, nothing is
timed; a peer that is wrong is timed and shown, and is not what we compare with. Then each round
runs every scorer once, in an order that rotates, and measures the rate of the machine's matrix
product. The limit is the time that the operations of the distinct tokens take at that rate, without
those of greedy tokens. The table and the figure in FOLDER/speed are made from the JSON beside them.

Exit code 0: measured. 1: our scores are wrong. 2: it could not be run.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.agreement import PEERS_VARIABLE, timed
from benchmarks.pairs import from_file
from benchmarks.speed_check import Check, check
from benchmarks.speed_limit import ModelShape, matrix_rate, model_shape, operations
from benchmarks.speed_report import write_report
from benchmarks.speed_scorers import (
    LOOP,
    NAMES,
    OURS,
    ROOT,
    Scorer,
    is_able,
    scorer_python,
    started,
)
from benchmarks.speed_worker import DTYPES
from benchmarks.workload import Workload, count_distinct, make_workload, write_workload
from ncu_exp.errors import UserError
from ncu_exp.provenance import git_commit

DATASETS = ("hotpotqa", "nq", "triviaqa", "squad", "sample")
WORKS = ("score", "greedy")
GREEDY_TOKENS = 5

Task = tuple[str, str]  # a dtype and a work
Scorers = Mapping[str, Mapping[str, Scorer]]  # by dtype and name


class WrongScoresError(Exception):
    """Our own scores are not those of the loop."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark, or render what one has written; returns the exit code."""
    args = _parser().parse_args(argv)
    if args.render:
        print(write_report(json.loads(args.render.read_text("utf-8")), args.render))
        return 0
    try:
        record = measure(args)
    except WrongScoresError as error:
        print(error, file=sys.stderr)
        return 1
    except UserError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    path = args.docs / "speed" / f"{args.name or args.dataset}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(f"\n{write_report(record, path)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--dataset", choices=DATASETS, default="hotpotqa")
    add("--items", type=Path, help="a file of the corpus, in any format that it comes in")
    add("--n-items", type=_positive, default=8, help="items (default 8)")
    add("--rounds", type=_positive, default=5, help="(default 5)")
    add("--dtype", nargs="+", choices=tuple(DTYPES), default=list(DTYPES))
    add("--threads", type=_positive, default=2, help="of each scorer (default 2)")
    add("--work", nargs="+", choices=WORKS, default=list(WORKS))
    add("--scorers", nargs="+", choices=NAMES, default=list(NAMES), help="the loop is always run")
    add("--peers", type=Path, help=f"environments (or set {PEERS_VARIABLE})")
    add("--docs", type=Path, default=ROOT / "docs", help="folder that `speed` stands in")
    add("--name", help="of the files written (default: that of the dataset)")
    add("--override", nargs="+", default=[], help="more of the configuration, as for ncu_exp")
    add("--render", type=Path, help="only make table and figure of this file again, beside it")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """All runs, as the record that the report is made of.

    Raises WrongScoresError before anything is timed, and UserError.
    """
    with timed("workload"):
        workload = make_workload(workload_overrides(args))
    shape = model_shape(workload.model)
    names = [name for name in NAMES if name in (*args.scorers, LOOP)]
    cache_dir = Path(workload.config.cache.dir).expanduser()
    with timed("environments"):
        pythons = {n: scorer_python(n, cache_dir=cache_dir, peers=args.peers) for n in names}
    tasks = [(dtype, work) for dtype in args.dtype for work in args.work]
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        path = write_workload(workload, Path(scratch), greedy_tokens=GREEDY_TOKENS)
        given = {"model": workload.model, "workload": path, "threads": args.threads}
        scorers: Scorers = {
            dtype: {
                name: stack.enter_context(started(name, python, precision=dtype, **given))
                for name, python in pythons.items()
            }
            for dtype in args.dtype
        }
        with timed("models"):
            for scorer in (s for of_dtype in scorers.values() for s in of_dtype.values()):
                scorer.wait_until_loaded()
        checks = {task: _check(scorers, task, workload) for task in tasks}
        _refuse_ours_wrong(checks)
        seconds, rates = _rounds(scorers, tasks, shape, rounds=args.rounds, threads=args.threads)
        runs = [_run(scorers, task, checks[task], seconds[task]) for task in tasks]
    return _described(args, workload, shape) | {"rates_gflops": rates, "runs": runs}


def _check(scorers: Scorers, task: Task, workload: Workload) -> dict[str, Check]:
    """One untimed run of every scorer, compared with the loop's."""
    dtype, work = task
    with timed(f"{dtype}, {work}: untimed, to be compared"):
        found = {n: s.ask(work)["results"] for n, s in _able(scorers, task).items()}
    return {
        name: check(
            name,
            results,
            found[LOOP],
            precision=dtype,
            lengths=[len(answer) for _, answer in workload.answered],
            as_text=lambda ids: workload.tokenizer.decode(ids, skip_special_tokens=True),
            stop_ids=workload.stop_ids,
        )
        for name, results in found.items()
    }


def _refuse_ours_wrong(checks: Mapping[Task, Mapping[str, Check]]) -> None:
    for (dtype, work), of_task in checks.items():
        ours = of_task.get(OURS)
        if ours is not None and not ours.correct:
            raise WrongScoresError(f"OUR SCORES ARE WRONG ({dtype}, {work}), nothing timed: {ours}")


def _rounds(
    scorers: Scorers, tasks: Sequence[Task], shape: ModelShape, *, rounds: int, threads: int
) -> tuple[dict[Task, dict[str, list[float]]], dict[str, list[float]]]:
    """Seconds by task and scorer, and the rate of the matrix product by dtype, round by round."""
    seconds: dict[Task, dict[str, list[float]]] = {
        task: {name: [] for name in _able(scorers, task)} for task in tasks
    }
    rates: dict[str, list[float]] = {dtype: [] for dtype in scorers}
    for turn in range(rounds):
        for dtype, found in rates.items():
            found.append(matrix_rate(shape, dtype, threads=threads))
        for task in tasks:
            able = _able(scorers, task)
            for name in rotated(list(able), turn):
                seconds[task][name].append(able[name].ask(task[1])["seconds"])
            told = ", ".join(f"{name} {found[-1]:.1f} s" for name, found in seconds[task].items())
            print(f"round {turn + 1}, {task[0]} {task[1]}: {told}", flush=True)
    return seconds, rates


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """The names in their order, another one first from turn to turn."""
    first = turn % len(names)
    return [*names[first:], *names[:first]]


def _able(scorers: Scorers, task: Task) -> dict[str, Scorer]:
    dtype, work = task
    return {name: s for name, s in scorers[dtype].items() if is_able(name, work)}


def _run(
    scorers: Scorers, task: Task, checks: Mapping[str, Check], seconds: Mapping[str, list[float]]
) -> dict[str, Any]:
    """One dtype and work as it stands in the record; a scorer that cannot do it has no seconds."""
    dtype, work = task
    found = {
        name: {
            "seconds": seconds.get(name, []),
            "check": asdict(checks[name]) if name in checks else None,
            "note": scorer.note,
            "versions": scorer.versions,
        }
        for name, scorer in scorers[dtype].items()
    }
    return {"dtype": dtype, "work": work, "scorers": found}


def _described(args: argparse.Namespace, workload: Workload, shape: ModelShape) -> dict[str, Any]:
    """What was asked, of what, and where; no names of folders or of the machine."""
    distinct = count_distinct(workload.answered)
    return {
        "dataset": args.dataset,
        "overrides": [_without_folder(o) for o in args.override],
        "items": len({request.item_id for request in workload.requests}),
        "prompts": len(workload.requests),
        "answers": len(workload.answered),
        "left_out": workload.left_out,
        "tokens": workload.tokens,
        "distinct": asdict(distinct),
        "greedy_tokens": GREEDY_TOKENS,
        "model": workload.config.model.label,
        "shape": asdict(shape),
        "operations": operations(shape, distinct),
        "rounds": args.rounds,
        "threads": args.threads,
        "cpu": _cpu(),
        "python": platform.python_version(),
        "commit": git_commit(),
    }


def workload_overrides(args: argparse.Namespace) -> list[str]:
    """The items that are asked for on the command line, as Hydra overrides."""
    overrides = [f"dataset={args.dataset}", f"dataset.limit={args.n_items}"]
    if args.items:
        overrides += [from_file(args.items), "dataset.on_error=skip"]
    return [*overrides, *args.override]


def _without_folder(override: str) -> str:
    key, equals, value = override.partition("=")
    return key + equals + value.rpartition("/")[2]


def _cpu() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    sys.exit(main())
