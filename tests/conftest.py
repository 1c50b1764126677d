"""Fixtures that more than one room of the tests needs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock

if TYPE_CHECKING:
    from tests.runs import Done


def pytest_configure() -> None:
    """One thread each where workers share the cores, for the jobs that they start as well.

    Threads of two workers wait for each other's cores, and count that as work: a job of a tiny
    model then costs half as much again. Read when torch is loaded, which is later than this.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("OMP_NUM_THREADS", "1")


# In this order: a worker that begins one of them last lets the others wait.
LONG_FILES = (
    "launchers",
    "tracking_server",
    "faults",
    "test_soak.py",
    "test_wheel.py",
    "test_llama_cpp.py",
    "test_jobs.py",
    "test_cli.py",
    "test_browser.py",
    "test_speed.py",
    "test_sweep.py",
    "test_scaling.py",
    "test_resume.py",
    "test_experiment.py",
    "test_comparison_figures.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take minutes come first, so that workers end at about the same time."""

    def place(item: pytest.Item) -> int:
        parts = item.path.parts
        return next((n for n, name in enumerate(LONG_FILES) if name in parts), len(LONG_FILES))

    items.sort(key=place)


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpus samples, or a skip: a user's clone has none."""
    place = os.environ.get("NCU_EXP_CORPORA")
    if not place:
        pytest.skip("NCU_EXP_CORPORA is not set: it names the folder of the real corpus samples")
    path = Path(place)
    if not path.is_dir():
        pytest.skip(f"NCU_EXP_CORPORA={place} is not a folder")
    return path


@pytest.fixture(scope="session")
def of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of the session share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def tiny_model_dir(of_all: Path) -> Path:
    """A directory that `model=hf model.name=<it>` loads in a second; one for all workers."""
    from tests.tiny import save_tiny_model

    folder = of_all / "tiny"
    with FileLock(of_all / "tiny.lock"):
        return folder if folder.exists() else save_tiny_model(folder)


@pytest.fixture(scope="session")
def sweep(of_all: Path, tiny_model_dir: Path) -> Done:
    """The four-run sweep of the README, with a tiny model; one for all workers of the session."""
    from tests.runs import TINY, Done, ncu_exp

    folder, said = of_all / "sweep", of_all / "sweep.json"
    with FileLock(of_all / "sweep.lock"):
        if said.exists():
            return Done(folder, **json.loads(said.read_text("utf-8")))
        folder.mkdir()
        done = ncu_exp(
            folder,
            "-m",
            *TINY,
            f"model.name={tiny_model_dir}",
            "condition=zero,oracle",
            "precision=fp32,bf16",
            "dataset.limit=12",
        )
        kept = {"code": done.code, "out": done.out, "err": done.err}
        said.write_text(json.dumps(kept), "utf-8")
        return done


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium, or a skip; of a module, since playwright's loop keeps others from theirs."""
    from tests.chromium import CHROMIUM, FLAGS

    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
