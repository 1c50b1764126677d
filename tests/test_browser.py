"""The MLflow UI over a finished sweep, in a real Chromium, as a person would look."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.runs import Done

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000


@pytest.fixture(scope="module")
def ui(sweep: Done) -> Iterator[str]:
    """The address of an MLflow UI over the sweep's store."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            sys.executable, "-m", "mlflow", "ui",
            "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
            "--backend-store-uri", f"sqlite:///{sweep.folder}/mlruns/mlflow.db",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=sweep.folder,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{address}/health")
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


def wait_for(address: str) -> None:
    for _ in range(240):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.5)
    pytest.fail(f"{address} did not answer within two minutes")


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1500, "height": 1000})
        page.set_default_timeout(PATIENCE_MS)
        yield page
        browser.close()


def run_page(ui: str, sweep: Done, number: int) -> str:
    info = sweep.runs[number].info
    return f"{ui}/#/experiments/{info.experiment_id}/runs/{info.run_id}"


def test_the_list_shows_the_runs_of_the_sweep(page: Any, ui: str, sweep: Done) -> None:
    page.goto(f"{ui}/#/experiments/{sweep.runs[0].info.experiment_id}/runs")
    for run in sweep.runs:
        page.get_by_text(run.info.run_name, exact=True).first.wait_for()


def test_a_run_shows_its_metrics(page: Any, ui: str, sweep: Done) -> None:
    page.goto(run_page(ui, sweep, 2))
    page.get_by_text("oracle/ncu", exact=True).first.wait_for()
    page.get_by_text("zero/accuracy", exact=True).first.wait_for()


def test_a_run_shows_a_figure(page: Any, ui: str, sweep: Done) -> None:
    page.goto(f"{run_page(ui, sweep, 2)}/artifacts/figures/success_rates.png")
    picture = page.locator("img[src^='blob:']")
    picture.first.wait_for()
    assert picture.first.evaluate("image => image.naturalWidth") > 500


def test_the_report_opens_in_the_artifact_viewer(page: Any, ui: str, sweep: Done) -> None:
    page.goto(f"{run_page(ui, sweep, 2)}/artifacts")
    page.get_by_text("report.html", exact=True).first.click()
    report = page.frame_locator("iframe").first
    report.get_by_text("tiny", exact=False).first.wait_for()
    assert report.locator("img").count() >= 4
