"""The store's command line."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ncu_exp.scoring.store import ScoreStore, content_key
from ncu_exp.store import main


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "scores.sqlite"
    with closing(ScoreStore(path)) as store:
        store.write({content_key(i): i for i in range(3)}, weights="one")
        store.write({content_key("x"): 0}, weights="other")
    return path


def test_show(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--path", str(path)]) == 0
    told = capsys.readouterr().out
    assert "4 entries" in told
    assert "3  one" in told


def test_verify(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--path", str(path), "verify"]) == 0
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE scores SET check_sum = check_sum + 1 WHERE weights = 'other'")
    assert main(["--path", str(path), "verify"]) == 1
    assert "1 damaged" in capsys.readouterr().out


def test_prune(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--path", str(path), "prune", "--weights", "one"]) == 0
    assert "3 entries deleted" in capsys.readouterr().out
    assert main(["--path", str(path), "prune", "--older-than-days", "1"]) == 0
    assert "0 entries deleted" in capsys.readouterr().out


def test_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--path", str(tmp_path / "none")]) == 1
    assert "no score store" in capsys.readouterr().err
