"""The MLflow UI over a finished sweep, in a real Chromium, as a person would look."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chromium import PATIENCE_MS
from tests.explored import POINTS, lonely_item, point_of
from tests.runs import Done

pytestmark = pytest.mark.browser


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
def page(browser: Any) -> Any:
    page = browser.new_page(viewport={"width": 1500, "height": 1000})
    page.set_default_timeout(PATIENCE_MS)
    return page


def run_page(ui: str, sweep: Done, number: int) -> str:
    info = sweep.runs[number].info
    return f"{ui}/#/experiments/{info.experiment_id}/runs/{info.run_id}"


def test_the_list_shows_the_runs_of_the_sweep(page: Any, ui: str, sweep: Done) -> None:
    page.goto(f"{ui}/#/experiments/{sweep.runs[0].info.experiment_id}/runs")
    name = page.locator("[role=gridcell]").filter(has_text="sweep of condition × precision").first
    name.wait_for()
    assert page.get_by_text(sweep.runs[0].info.run_name, exact=True).count() == 0
    name.locator("button").first.click()  # its jobs stand below it
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


def test_two_runs_stand_side_by_side(page: Any, ui: str, sweep: Done) -> None:
    two = [sweep.runs[number].info for number in (2, 3)]
    ids = ",".join(f'"{info.run_id}"' for info in two)
    page.goto(f'{ui}/#/compare-runs?runs=[{ids}]&experiments=["{two[0].experiment_id}"]')
    for info in two:
        page.get_by_text(info.run_name, exact=True).first.wait_for()
    page.get_by_text("precision.name", exact=True).first.wait_for()
    metrics = page.get_by_text("Metrics", exact=True).last
    metrics.scroll_into_view_if_needed()
    metrics.hover()
    wanted = page.get_by_text("oracle/ncu", exact=True)  # rows are made as one scrolls to them
    for _ in range(60):
        if wanted.count():
            break
        page.mouse.wheel(0, 150)
        page.wait_for_timeout(200)
    wanted.first.wait_for()


def test_the_sweep_s_run_says_the_finding_and_opens_its_page(
    page: Any, ui: str, sweep: Done
) -> None:
    [parent] = [run.info for run in sweep.all_runs if run.data.tags.get("kind") == "sweep"]
    place = f"{ui}/#/experiments/{parent.experiment_id}/runs/{parent.run_id}"
    page.goto(place)
    page.get_by_text("The paper's table, for these runs").first.wait_for()
    page.goto(f"{place}/artifacts")
    page.get_by_text("comparison.html", exact=True).first.click()
    frame = page.frame_locator("iframe").first
    frame.locator(POINTS).first.wait_for()
    number = lonely_item(frame)
    point = point_of(frame, number)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    item = frame.locator("#item")
    item.get_by_text("Log-probabilities of the tokens").first.wait_for()
    asked = sweep.table(sweep.runs[2]).drop_duplicates("item_id")
    shown = item.inner_text()
    [row] = [row for row in asked.to_dict("records") if row["question"] in shown]
    assert row["answer"] in shown
    assert "tiny · bf16" in shown
