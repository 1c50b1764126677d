"""A job that is killed twenty times goes on each time, and finds what it would have found."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd

from ncu_exp.contents import PERTURBATIONS, SCORES
from ncu_exp.store import main as store_command
from ncu_exp.upload import main as upload_command
from tests.faults.process import ONE_THREAD, Job, Warm, arguments_for, kept, start
from tests.runs import ncu_exp

ITEMS = 150
SEED = 7
TABLES = ("items.parquet", "perturbations.parquet", "items_preview.json")
OTHERS = 1  # entries of a model's store that are no scores: the way that it takes

Moment = Callable[[Job], Callable[[], bool]]


def after(seconds: float) -> Moment:
    """So long after the start: imports, the tracking store, the data."""

    def of(job: Job) -> Callable[[], bool]:
        end = time.monotonic() + seconds
        return lambda: time.monotonic() > end

    return of


def stored(more: int, name: str = SCORES) -> Moment:
    """When so many more entries are in a store than at the start."""

    def of(job: Job) -> Callable[[], bool]:
        before = kept(job.folder / "cache", name)
        return lambda: kept(job.folder / "cache", name) >= before + more

    return of


def there(pattern: str) -> Moment:
    """When one more file than at the start has such a name."""

    def of(job: Job) -> Callable[[], bool]:
        before = sum(1 for _ in job.folder.glob(pattern))
        return lambda: sum(1 for _ in job.folder.glob(pattern)) > before

    return of


def moments_while_starting(draw: random.Random, seconds: float) -> list[Moment]:
    """Of a new process: it imports, opens the tracking store, reads data, opens the stores."""
    return [*(after(draw.uniform(0.0, 0.25 * seconds)) for _ in range(2)), there("cache/*.sqlite")]


def moments_at_work(draw: random.Random) -> list[Moment]:
    """It begins, perturbs, scores, writes and uploads; the imports were done."""
    results = "multirun/*/*/results"
    return [
        there("multirun/*/*/ncu_exp.log"),
        stored(1, PERTURBATIONS),
        *(stored(OTHERS + draw.randint(1, 45)) for _ in range(9)),
        *(after(draw.uniform(0.0, 5.0)) for _ in range(1)),
        there(f"{results}/tables/items.parquet.part"),
        there(f"{results}/tables/items.parquet"),
        there(f"{results}/figures/*.png"),
        there(f"{results}/report.html"),
        there("mlruns/artifacts/*/*/tables/*.parquet"),
    ]


def test_twenty_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    arguments = arguments_for(tmp_path, items=ITEMS)
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    folder.mkdir()
    began = time.monotonic()
    undisturbed = ncu_exp(whole, *arguments, **ONE_THREAD)
    seconds = time.monotonic() - began
    assert undisturbed.code == 0, undisturbed.err

    draw = random.Random(SEED)
    scores = [0]

    def kill(job: Job, moment: Moment) -> None:
        assert job.reached(moment(job)), f"it ended before it could be killed: {job.wait()[1]}"
        time.sleep(draw.uniform(0.0, 0.1))
        code, told = job.send(signal.SIGKILL)
        assert code == -signal.SIGKILL, told
        scores.append(kept(folder / "cache"))

    for moment in moments_while_starting(draw, seconds):
        kill(start(folder, *arguments), moment)
    with Warm() as warm:
        for moment in moments_at_work(draw):
            kill(warm.start(folder, *arguments), moment)
    assert len(scores) == 1 + 20
    assert scores == sorted(scores)
    all_scores = kept(whole / "cache")
    assert len({count for count in scores if 0 < count < all_scores}) >= 5, scores

    again = ncu_exp(folder, *arguments, **ONE_THREAD)
    assert again.code == 0, again.err
    assert kept(folder / "cache") == all_scores
    assert kept(folder / "cache", PERTURBATIONS) == kept(whole / "cache", PERTURBATIONS)
    assert store_command(["--dir", str(folder / "cache"), "verify"]) == 0
    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    (one,) = undisturbed.runs
    last = max(again.runs, key=lambda run: run.info.start_time)
    table = again.table(last)
    rows = ["item_id", "condition", "continuation"]
    assert not table.duplicated(rows).any()
    pd.testing.assert_frame_equal(table[rows], undisturbed.table(one)[rows])
    assert last.data.metrics["store/hit_rate"] == 1.0  # the last kills came after the last score
    for name in TABLES:
        assert result(folder, name) == result(whole, name), f"{name} differs"

    # What the kills left open is ended by hand: as KILLED, but for a run that had told its end.
    for _ in range(2):
        assert upload_command([str(folder / "multirun")]) == 0
        ends = [run.info.status for run in again.all_runs]
        assert len(ends) == len(list(folder.glob("multirun/*/*/tracking.jsonl")))
        assert 1 <= ends.count("FINISHED") == len(ends) - ends.count("KILLED") <= 3
    for run in again.runs:
        if run.info.status == "FINISHED":
            assert measured(run.data.metrics) == measured(one.data.metrics)


def result(folder: Path, name: str) -> bytes:
    """The table of the last job that ran in a folder."""
    return max(folder.glob(f"multirun/*/*/results/tables/{name}")).read_bytes()


def measured(metrics: dict[str, float]) -> dict[str, float]:
    """All but what took time or memory, and what was found in the store."""
    costs = ("latency/", "throughput/", "memory/", "progress/", "store/", "numerics/")
    return {name: value for name, value in metrics.items() if not name.startswith(costs)}
