"""A job that is killed goes on where it stopped, and finds what it would have found."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.scaling import made_up_items
from ncu_exp.contents import SCORES
from tests.runs import TINY, ncu_exp
from tests.tiny import save_tiny_model

ITEMS = 150
PATIENCE_S = 120.0
OTHERS = 1  # entries of a model's store that are no scores: the way that it takes
CLOSE: dict[str, Any] = {"check_exact": False, "rtol": 0, "atol": 1e-4, "check_dtype": False}


def kept(cache: Path) -> int:
    """The entries in the store of a cache; none where there is no store yet."""
    path = cache / SCORES
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path, timeout=10)) as db:
        tables = db.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'contents'")
        is_made = tables.fetchone()[0] == 1
        return int(db.execute("SELECT COUNT(*) FROM contents").fetchone()[0]) if is_made else 0


def kill_halfway(folder: Path, arguments: list[str]) -> int:
    """Start a job and kill -9 it when the first scores are in the store; how many are there."""
    command = [sys.executable, "-m", "ncu_exp", *arguments]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + PATIENCE_S
    while kept(folder / "cache") <= OTHERS:
        assert process.poll() is None, "the job ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    return kept(folder / "cache") - OTHERS


def test_a_killed_job_goes_on_where_it_stopped(tmp_path: Path) -> None:
    model = save_tiny_model(tmp_path / "model")
    data = tmp_path / "items.jsonl"
    data.write_text("".join(json.dumps(i) + "\n" for i in made_up_items(ITEMS, words=30)), "utf-8")
    arguments = [
        *(*TINY, f"model.name={model}", "dataset=local", f"dataset.path={data}"),
        *("precision=fp32", "score.batch_tokens=512", "condition=oracle"),
    ]
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    folder.mkdir()
    whole.mkdir()
    with ThreadPoolExecutor(1) as beside:
        undisturbed = beside.submit(ncu_exp, whole, *arguments)
        stored = kill_halfway(folder, arguments)
        again = ncu_exp(folder, *arguments)
        at_once = undisturbed.result()
    assert again.code == 0, again.err
    killed, finished = sorted(again.runs, key=lambda run: run.info.start_time)
    assert (killed.info.status, finished.info.status) == ("RUNNING", "FINISHED")

    table = again.table(finished)
    scored = table[table["status"] == "ok"].groupby(["item_id", "condition"]).ngroups
    assert 0 < stored < scored
    used = finished.data.metrics["store/hit_rate"] * scored
    assert used == pytest.approx(stored)

    assert at_once.code == 0, at_once.err
    other = at_once.table(at_once.runs[0])
    # A score depends on its neighbours in the batch by rounding alone.
    for name in ("token_logprobs", "token_ids"):
        pd.testing.assert_series_equal(table[name].explode(), other[name].explode(), **CLOSE)
    rest = table.columns.difference(["token_logprobs", "token_ids"])
    pd.testing.assert_frame_equal(table[rest], other[rest], **CLOSE)
