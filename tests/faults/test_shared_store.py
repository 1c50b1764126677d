"""Two sweeps over one store at once: each finishes, and finds the same."""

from __future__ import annotations

from pathlib import Path

from ncu_exp.store import main as store_command
from tests.faults.process import arguments_for, start
from tests.runs import Done

ITEMS = 60


def test_two_sweeps_over_one_store(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    arguments = [
        "-m",
        *arguments_for(tmp_path, items=ITEMS),
        *("prompt=directive,grounded", f"cache.dir={cache}"),
    ]
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    sweeps = [start(folder, *arguments) for folder in folders]
    for sweep in sweeps:
        code, told = sweep.wait()
        assert code == 0, told

    one, other = (Done(folder, 0, "", "") for folder in folders)
    for done in (one, other):
        assert {run.info.status for run in done.all_runs} == {"FINISHED"}
        assert len(done.runs) == 2
    for number in range(2):
        first, second = tables(one.folder, number), tables(other.folder, number)
        assert first.keys() == {"items.parquet", "items_preview.json", "perturbations.parquet"}
        assert first == second
    assert store_command(["--dir", str(cache), "verify"]) == 0


def tables(folder: Path, number: int) -> dict[str, bytes]:
    """Those of a job of the sweep that ran in a folder."""
    return {
        path.name: path.read_bytes()
        for path in folder.glob(f"multirun/*/*/{number}/results/tables/*")
    }
