"""The store's command line."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ncu_exp.contents import PERTURBATIONS, SCORES, ContentStore, content_key
from ncu_exp.store import main


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / SCORES
    with closing(ContentStore(path)) as store:
        store.write({content_key(i): i for i in range(3)}, origin="one")
        store.write({content_key("x"): 0}, origin="other")
    with closing(ContentStore(tmp_path / PERTURBATIONS)) as store:
        store.write({content_key("y"): 0}, origin="drawn")
    return path


def test_show(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dir", str(path.parent)]) == 0
    told = capsys.readouterr().out
    assert "4 entries" in told
    assert "3  one" in told
    assert "1  drawn" in told


def test_verify(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dir", str(path.parent), "verify"]) == 0
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE contents SET check_sum = check_sum + 1 WHERE origin = 'other'")
    assert main(["--dir", str(path.parent), "verify"]) == 1
    assert "1 damaged" in capsys.readouterr().out


def test_prune(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dir", str(path.parent), "prune", "--origin", "one"]) == 0
    assert "3 entries deleted" in capsys.readouterr().out
    assert main(["--dir", str(path.parent), "prune", "--older-than-days", "1"]) == 0
    assert "0 entries deleted" in capsys.readouterr().out


def test_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dir", str(tmp_path)]) == 1
    assert "no store" in capsys.readouterr().err
