"""A disk that fills up in the middle of a job: told by its place, and nothing is lost.

The disk is a real one, of memory (tmpfs), which only root may mount.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from ncu_exp import tracking
from ncu_exp.config import Config
from ncu_exp.contents import SCORES
from ncu_exp.errors import StoreError, UserError
from ncu_exp.store import main as store_command
from ncu_exp.upload import main as upload_command
from tests.faults.jobs import config_of, run
from tests.faults.process import arguments_for, kept
from tests.runs import ncu_exp

ITEMS = 40
ITEMS_TABLE = "results/tables/items.parquet"


@dataclass(frozen=True)
class Disk:
    """A small disk, and the file of somebody else that fills it."""

    place: Path

    @property
    def _ballast(self) -> Path:
        return self.place / "ballast"

    def leave(self, kilobytes: int) -> None:
        """Fill it but for so much."""
        with self._ballast.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)) == 4096:
                pass
        with self._ballast.open("r+b") as file:
            file.truncate(self._ballast.stat().st_size - 1024 * kilobytes)

    def make_room(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a small disk can be mounted by root only: {done.stderr.strip()}")
    yield Disk(place)
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return arguments_for(tmp_path_factory.mktemp("asked"), items=ITEMS)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, arguments: list[str]) -> bytes:
    """The table of a job with room enough."""
    place = tmp_path_factory.mktemp("undisturbed")
    run(config_of(place, arguments), place / "job")
    return (place / "job" / ITEMS_TABLE).read_bytes()


def runs(config: Config) -> list[Any]:
    """Those in the tracking store, the last one first."""
    client = MlflowClient(tracking_uri=config.tracking.uri)
    found = client.get_experiment_by_name(config.tracking.experiment)
    assert found is not None
    return list(client.search_runs([found.experiment_id]))


@pytest.mark.parametrize("kilobytes", [8, 400])  # for the journal, for tables and report
def test_results(
    tmp_path: Path, arguments: list[str], undisturbed: bytes, disk: Disk, kilobytes: int
) -> None:
    config = config_of(tmp_path, arguments)
    disk.leave(kilobytes)
    with pytest.raises(UserError) as told:
        run(config, disk.place / "job")
    assert str(disk.place / "job") in str(told.value)
    assert "disk is full" in str(told.value) or "No space left" in str(told.value)
    if (tmp_path / "mlflow.db").exists():
        assert [r.info.status for r in runs(config)] == ["FAILED"]

    disk.make_room()
    run(config, disk.place / "again")
    assert (disk.place / "again" / ITEMS_TABLE).read_bytes() == undisturbed
    assert runs(config)[0].info.status == "FINISHED"


@pytest.mark.parametrize("several", [[], ["-m"]])
def test_a_command_without_any_room_ends_at_once(
    tmp_path: Path, arguments: list[str], disk: Disk, several: list[str]
) -> None:
    disk.leave(8)
    folders = [f"hydra.run.dir={disk.place}/job", f"hydra.sweep.dir={disk.place}/jobs"]
    done = ncu_exp(tmp_path, *several, *arguments, *folders)
    assert done.code == 1
    assert f"DiskFullError: {disk.place}/job" in done.err
    assert "the disk is full" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("kilobytes", [0, 200])  # no store can be made; it is full half-way
def test_store(
    tmp_path: Path, arguments: list[str], undisturbed: bytes, disk: Disk, kilobytes: int
) -> None:
    cache = disk.place / "cache"
    config = config_of(tmp_path, arguments, cache=cache)
    disk.leave(kilobytes)
    with pytest.raises(StoreError, match=rf"{cache}.* the disk is full. Make room in {cache}"):
        run(config, tmp_path / "job")
    assert [r.info.status for r in runs(config)] == ["FAILED"]
    stored = kept(cache)
    if kilobytes:
        assert stored > 1

    disk.make_room()
    if kilobytes:
        assert store_command(["--dir", str(cache), "verify"]) == 0
    run(config, tmp_path / "again")
    assert (tmp_path / "again" / ITEMS_TABLE).read_bytes() == undisturbed
    assert runs(config)[0].data.metrics["store/hit_rate"] * kept(cache) >= stored - 1
    assert store_command(["--dir", str(cache), "verify"]) == 0
    assert (cache / SCORES).is_file()


@pytest.mark.parametrize("kilobytes", [0, 100])  # no run can be made; no artifacts fit
def test_tracking_store(
    tmp_path: Path, arguments: list[str], undisturbed: bytes, disk: Disk, kilobytes: int
) -> None:
    config = config_of(disk.place, arguments, cache=tmp_path / "cache")
    tracking.start_run(config.tracking, name="first", tags={}, params={}).finish()
    disk.leave(kilobytes)
    folder = tmp_path / "job"
    run(config, folder)
    assert tracking.is_pending(folder)
    assert (folder / ITEMS_TABLE).read_bytes() == undisturbed
    assert upload_command([str(folder)]) == 1

    disk.make_room()
    assert upload_command([str(folder)]) == 0
    assert not tracking.is_pending(folder)
    assert upload_command([str(folder)]) == 0
    (found,) = [r for r in runs(config) if r.info.run_name != "first"]
    assert found.info.status == "FINISHED"
    assert "adversarial/prior_dominance" in found.data.metrics
    table = MlflowClient(tracking_uri=config.tracking.uri).download_artifacts(
        found.info.run_id, "tables/items.parquet", str(tmp_path)
    )
    assert Path(table).read_bytes() == undisturbed
