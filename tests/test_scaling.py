"""Memory does not grow with the items: a whole job, in a process of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.scaling import Size, made_up_items, main, render, run_size

CONTEXT_WORDS = 8_000  # about 50 kB: 1,000 items that were all in memory would be seen


def test_a_job_needs_no_more_memory_for_more_items(tmp_path: Path) -> None:
    options = ["--words", str(CONTEXT_WORDS), "--docs", str(tmp_path), "condition=zero"]
    assert main(["--items", "300", "1500", *options]) == 0
    written = json.loads((tmp_path / "scaling.json").read_text())
    few, many = written["sizes"]
    assert (few["items"], many["items"]) == (300, 1500)
    assert few["peak_mb"] > 0
    assert many["peak_mb"] - few["peak_mb"] < 30  # the contexts alone are 60 MB more


def test_a_failing_job_is_an_error_that_tells_its_end(tmp_path: Path) -> None:
    items = [{"id": "a", "question": "", "answer": "x", "context": "x"}]
    with pytest.raises(subprocess.CalledProcessError) as raised:
        run_size(items, 1, tmp_path, model=tmp_path, overrides=[])
    assert "question" in str(raised.value.stderr)


def test_the_table_tells_what_an_item_more_costs() -> None:
    rows = render([Size(100, 10.0, 700.0), Size(1100, 12.0, 710.4)]).splitlines()
    assert rows[2:] == ["| 100 | 10.0 |  | 700 |", "| 1,100 | 12.0 | 2.0 | 710 |"]


def test_made_up_items_hold_their_answers() -> None:
    for item in made_up_items(5, words=60):
        assert item["answer"] in item["context"]
        assert 55 <= len(item["context"].split()) <= 75
