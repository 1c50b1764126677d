"""The Makefile and the documents: what a newcomer meets first."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_a_python_that_is_too_old_is_named(tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("no make on this machine")
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\ncase "$1" in --version) echo Python 3.9.1;; *) exit 1;; esac\n')
    old.chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    done = subprocess.run(
        ["make", "demo", f"PYTHON={old}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "ncu_exp needs Python 3.11 or newer" in done.stdout
    assert "Python 3.9.1" in done.stdout
    assert not (tmp_path / ".venv").exists()


def test_every_path_and_link_of_the_documents_exists() -> None:
    import re

    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
