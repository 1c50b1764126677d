"""The page of a comparison in a real Chromium: opened, clicked, searched, and shown in a frame."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncu_exp.explorer import PageTable
from ncu_exp.report import Piece
from tests.chromium import PATIENCE_MS
from tests.explored import POINTS, lonely_item, point_of
from tests.frames import Frames, frames
from tests.test_explorer import HOSTILE, detail, page

pytestmark = pytest.mark.browser

OPENED = 12  # of 20 items in each of two corpora
CHOICES = ("#system", "#corpus", "#scale")


@pytest.fixture(scope="module")
def made() -> Frames:
    return frames(3, n_items=20, corpora=("sample", "squad"))


@pytest.fixture(scope="module")
def file(made: Frames, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with hostile text in the first item, in a folder."""
    details = [
        detail(made, corpus, f"i{k:04}", number=k)
        for corpus in ("sample", "squad")
        for k in range(OPENED)
    ]
    details[0] = replace(
        details[0],
        **dict.fromkeys(("question", "answer", "fabricated"), HOSTILE),
        aliases=(HOSTILE,),
        original=(Piece(HOSTILE, marked=False), Piece(HOSTILE, marked=True)),
        rows=tuple(replace(r, text=HOSTILE, greedy_text=HOSTILE) for r in details[0].rows),
    )
    table = PageTable(HOSTILE, ("System", HOSTILE), ((HOSTILE, HOSTILE),), note=HOSTILE)
    html = page(made, details, tables=[table], notes=[HOSTILE], figures={"a": b""})
    path = tmp_path_factory.mktemp("comparison") / "comparison.html"
    path.write_text(html, encoding="utf-8")
    return path


@contextmanager
def watched(browser: Any, file: Path) -> Iterator[tuple[Any, list[str]]]:
    """An empty page, and what it logged, threw, asked or wrote: nothing, or it complains."""
    context = browser.new_context(viewport={"width": 1500, "height": 1000})
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE_MS)
    said: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", lambda dialog: (said.append("a dialog"), dialog.dismiss()))
    tab.on("popup", lambda popup: said.append("a new window"))
    tab.on("request", lambda request: asked.append(request.url))
    yield tab, said
    context.close()
    assert said == []
    assert [
        url for url in asked if not re.match(r"data:|blob:", url) and url != file.as_uri()
    ] == []


@pytest.fixture
def tab(browser: Any, file: Path) -> Iterator[Any]:
    with watched(browser, file) as (tab, _):
        yield tab


@pytest.fixture(scope="module")
def shown(browser: Any, file: Path) -> Iterator[tuple[Any, list[str], dict[str, str]]]:
    """The page of the items, opened once; what it said, and what is chosen in it at first."""
    with watched(browser, file) as (tab, said):
        tab.goto(file.as_uri())
        tab.locator(POINTS).first.wait_for()
        at_first = {each: tab.locator(each).input_value() for each in CHOICES}
        yield tab, said, at_first


@pytest.fixture
def opened(shown: tuple[Any, list[str], dict[str, str]]) -> Iterator[Any]:
    """The page of the items with everything chosen as it is at first."""
    tab, said, at_first = shown
    for each, value in at_first.items():
        tab.locator(each).select_option(value)
    tab.locator("#search").fill("")
    tab.evaluate("scrollTo(0, 0)")
    yield tab
    assert said == []


def middle(point: Any) -> tuple[float, float]:
    box = point.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_click_on_a_point_shows_its_item(opened: Any, made: Frames) -> None:
    number = lonely_item(opened)
    corpus, item_id = "sample" if number < OPENED else "squad", f"i{number % OPENED:04}"
    point = point_of(opened, number)
    point.scroll_into_view_if_needed()
    opened.mouse.move(*middle(point))
    hover = opened.locator("#plot .hoverlayer")
    assert f"item {item_id}" in hover.text_content()
    opened.mouse.click(*middle(point))
    item = opened.locator("#item")
    item.get_by_role("heading", name=f"the item {item_id}").wait_for()
    assert f"{corpus} · {item_id}" in item.inner_text()
    assert f"Ålesund {number % OPENED}" in item.inner_text()
    assert item.locator("mark").all_inner_texts() == [f"Ålesund {number % OPENED}", "Trondheim"]
    assert item.locator("details").count() == 3
    of = made.items
    row = of[(of["corpus"] == corpus) & (of["item_id"] == item_id)].iloc[0]
    zero = item.locator("details").first.locator("tbody tr").first
    assert zero.locator(".token").first.inner_text() == f"{-0.25 * row['s_prior']:.2f}"
    assert zero.locator(".token").first.get_attribute("title") == "token 4917"
    shown = [float(cell) for cell in zero.locator("td").all_inner_texts()[1:3]]
    assert shown == pytest.approx([math.exp(-row["s_prior"]), row["s_prior"]], rel=5e-3)
    assert "no mention of the answer" in item.inner_text()


def test_another_system_moves_the_points_and_stands_first(opened: Any, made: Frames) -> None:
    name = made.systems["system"][2]
    before = middle(point_of(opened, 3))
    opened.locator("#list li").nth(3).click()
    opened.locator("#system").select_option(label=name)
    assert name in opened.locator("#drawn").inner_text()
    assert opened.locator("#item summary strong").first.inner_text() == name
    opened.wait_for_timeout(300)
    assert middle(point_of(opened, 3)) != before


def test_one_corpus_can_be_looked_at(opened: Any) -> None:
    assert opened.locator("#list li").count() == 2 * OPENED
    opened.locator("#corpus").select_option(label="squad")
    assert opened.locator("#list li").count() == OPENED
    assert "20 items drawn" in opened.locator("#drawn").inner_text()


def test_the_logarithmic_axis_draws_every_point(opened: Any) -> None:
    drawn = opened.locator(POINTS).count()
    opened.locator("#scale").select_option("log")
    assert opened.locator(POINTS).count() == drawn
    assert drawn in (40, 41)  # and a ring about an item that is open
    assert "10" in opened.locator("#plot .xtick").first.text_content()


def test_items_are_found_and_opened_by_keyboard_alone(opened: Any) -> None:
    search = opened.locator("#search")
    search.focus()
    opened.keyboard.type("alesund 7")  # typed without its ring
    assert opened.locator("#list li").count() == 2
    assert "2 items found" in opened.locator("#found").inner_text()
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("Enter")
    assert "squad · i0007" in opened.locator("#item").inner_text()
    assert opened.locator("#list li[aria-selected=true]").count() == 1
    opened.keyboard.press("Home")
    opened.keyboard.press("Enter")
    assert "sample · i0007" in opened.locator("#item").inner_text()
    search.fill("nothing has these words")
    assert opened.locator("#list li").count() == 0
    search.press("Enter")


def test_hostile_text_shows_as_text(opened: Any) -> None:
    opened.locator("#list li").first.click()
    item = opened.locator("#item")
    assert item.get_by_role("heading").first.text_content() == HOSTILE
    assert item.text_content().count(HOSTILE) > 10
    assert opened.locator("#item img, #item script, #item a").count() == 0
    point = point_of(opened, 0)
    point.scroll_into_view_if_needed()
    opened.mouse.move(*middle(point))
    opened.locator("#plot .hoverlayer text").first.wait_for()
    hover = opened.locator("#plot .hoverlayer").text_content()
    assert hover.startswith("</script><script>alert(1)</script><img src=x")
    assert "onerror=alert(1)>&amp;{{ 7*7 }}" in hover


def test_no_button_of_the_plot_leads_elsewhere(opened: Any) -> None:
    opened.locator("#plot").hover()
    buttons = opened.locator("#plot .modebar-btn")
    names = [button.get_attribute("data-title") for button in buttons.all()]
    assert names == ["Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"]
    for button in buttons.all():
        button.click()


@pytest.mark.parametrize("inside", ["srcdoc", "blob"])
def test_it_works_in_a_sandboxed_frame(tab: Any, file: Path, inside: str) -> None:
    """As MLflow's artifact viewer shows it: scripts may run, nothing else may."""
    tab.set_content('<iframe sandbox="allow-scripts" width="1400" height="950"></iframe>')
    tab.evaluate(
        """([html, inside]) => {
          const frame = document.querySelector("iframe");
          if (inside === "srcdoc") frame.srcdoc = html;
          else frame.src = URL.createObjectURL(new Blob([html], { type: "text/html" }));
        }""",
        [file.read_text(encoding="utf-8"), inside],
    )
    frame = tab.frame_locator("iframe")
    frame.locator(POINTS).first.wait_for()
    number = lonely_item(frame)
    point = point_of(frame, number)
    point.scroll_into_view_if_needed()
    tab.mouse.move(*middle(point))
    tab.mouse.click(*middle(point))
    frame.get_by_role("heading", name=f"the item i{number % OPENED:04}").wait_for()


@pytest.mark.parametrize("systems", [1, 50])
def test_no_page_is_wider_than_its_window(tab: Any, systems: int) -> None:
    many = frames(systems, n_items=8, long_labels=True)
    html = page(many, [detail(many, "sample", f"i{k:04}") for k in range(8)])
    tab.set_viewport_size({"width": 420, "height": 900})
    tab.set_content(html)
    tab.locator(POINTS).first.wait_for()
    tab.locator("#list li").first.click()
    tab.locator("#item table").first.wait_for()
    for width in (420, 1500):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.wait_for_function(f"innerWidth === {width}")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.locator("#item details").count() == systems
    assert tab.locator("#item details[open]").count() == 1


@pytest.mark.parametrize("systems", [0, 2])
def test_a_page_without_details_is_quiet(tab: Any, systems: int) -> None:
    tab.set_content(page(frames(systems, n_items=8)))
    tab.locator("#plot .main-svg").first.wait_for()
    assert f"{8 if systems else 0} items drawn" in tab.locator("#drawn").inner_text()
    assert tab.locator("#list li").count() == 0


def test_it_follows_the_readers_dark_mode(opened: Any) -> None:
    ink = "getComputedStyle(document.querySelector('#plot .ytitle')).fill"
    assert opened.evaluate(ink) == "rgb(28, 28, 28)"
    opened.emulate_media(color_scheme="dark")
    opened.wait_for_function(f"{ink} === 'rgb(232, 232, 230)'")
