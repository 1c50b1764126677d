"""The benchmark of a finished sweep: it runs one, and sees when a repeat differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import repeat
from tests.runs import TINY


def test_a_tiny_sweep_is_repeated(tiny_model_dir: Path, tmp_path: Path) -> None:
    tiny = [option for option in TINY if not option.startswith("cache.dir")]
    overrides = [*tiny, f"model.name={tiny_model_dir}", "dataset.limit=3", "prompt=plain,grounded"]
    assert repeat.main(["--repeats", "1", "--docs", str(tmp_path), *overrides]) == 0
    record = json.loads((tmp_path / "repeat.json").read_text("utf-8"))
    assert record["jobs"] == 2
    assert len(set(record["tables_sha256"])) == 2
    assert record["first_s"] > 0
    assert len(record["repeats_s"]) == 1
    assert "2 jobs" in (tmp_path / "repeat.md").read_text("utf-8")


def test_another_table_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = iter([[], ["a"], ["a"], ["b"]])
    monkeypatch.setattr(repeat, "_run", lambda *args: (1.0, next(tables)))
    assert repeat.main(["--docs", str(tmp_path)]) == 1
    assert "the tables of repeat 1 are not those of the first time" in capsys.readouterr().err


def test_a_run_that_fails_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert repeat.main(["--docs", str(tmp_path), "model=unknown"]) == 1
    assert "unknown" in capsys.readouterr().err


def test_the_ratio_is_that_of_the_median() -> None:
    record = {"overrides": ["a=b"], "jobs": 1, "first_s": 60.0, "repeats_s": [3.0, 2.0, 9.0]}
    told = repeat.render(record)
    assert "| ratio | 20.0 |" in told
    assert "(median of 3; 2.0 to 9.0) | 3.0 |" in told
