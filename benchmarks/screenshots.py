"""The pictures of docs/ui: a sweep in the MLflow UI, in a real Chromium.

python -m benchmarks.screenshots mlruns/mlflow.db
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from playwright.sync_api import sync_playwright

from tests.chromium import CHROMIUM, FLAGS, PATIENCE_MS
from tests.explored import POINTS, lonely_item, point_of
from tests.test_browser import wait_for

DOCS = Path(__file__).resolve().parent.parent / "docs" / "ui"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database", type=Path)
    database = parser.parse_args().database.absolute()
    DOCS.mkdir(exist_ok=True)
    with served(database) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 850})
        page.set_default_timeout(PATIENCE_MS)
        take(page, address, MlflowClient(tracking_uri=f"sqlite:///{database}"))
        browser.close()


@contextmanager
def served(database: Path) -> Iterator[str]:
    """The address of a UI over the store."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "mlflow", "ui", "--host", "127.0.0.1", "--port", port),
            *("--workers", "1", "--backend-store-uri", f"sqlite:///{database}"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


def take(page: Any, address: str, client: MlflowClient) -> None:
    """The list, the sweep's run, an item in its page, two runs side by side."""
    known = client.get_experiment_by_name("ncu_exp")
    assert known is not None
    runs = client.search_runs([known.experiment_id], "tags.kind = 'sweep'")
    sweep = runs[0].info
    jobs = client.search_runs(
        [known.experiment_id], f"tags.`mlflow.parentRunId` = '{sweep.run_id}'"
    )

    page.goto(f"{address}/#/experiments/{known.experiment_id}/runs")
    cell = page.locator("[role=gridcell]").filter(has_text="sweep of").first
    cell.wait_for()
    close_assistant(page)
    cell.locator("button").first.click()
    page.get_by_text(str(jobs[0].info.run_name), exact=True).first.wait_for()
    shoot(page, "runs")

    page.goto(f"{address}/#/experiments/{known.experiment_id}/runs/{sweep.run_id}")
    page.get_by_text("The paper's table, for these runs").first.wait_for()
    shoot(page, "sweep")

    page.goto(f"{address}/#/experiments/{known.experiment_id}/runs/{sweep.run_id}/artifacts")
    page.get_by_text("comparison.html", exact=True).first.click()
    frame = page.frame_locator("iframe").first
    frame.locator(POINTS).first.wait_for()
    point = point_of(frame, lonely_item(frame))
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    frame.locator("#item").get_by_text("Log-probabilities of the tokens").first.wait_for()
    page.wait_for_timeout(2000)
    page.locator("iframe").first.screenshot(path=DOCS / "item.png")

    ids = ",".join(f'"{job.info.run_id}"' for job in jobs[:2])
    page.goto(f'{address}/#/compare-runs?runs=[{ids}]&experiments=["{known.experiment_id}"]')
    page.get_by_text("precision.name", exact=True).first.wait_for()
    shoot(page, "compare")


def close_assistant(page: Any) -> None:
    """The UI's assistant takes a quarter of the window until it is closed."""
    button = page.get_by_label("Close")
    if button.count():
        button.first.click()


def shoot(page: Any, name: str) -> None:
    page.wait_for_timeout(3000)
    page.screenshot(path=DOCS / f"{name}.png")


if __name__ == "__main__":
    main()
