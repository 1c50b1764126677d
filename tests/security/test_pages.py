"""No element and no attribute of a page comes from data, whatever the data are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings

from ncu_exp.compare.render import to_latex, to_markdown
from ncu_exp.explorer import PageTable
from tests.chromium import PATIENCE_MS

from .hostile import SNIPPETS, texts
from .pages import PAGES, Tags, harmless

ALL = " ".join(SNIPPETS)


@pytest.mark.parametrize("kind", PAGES)
@settings(max_examples=15, deadline=None)
@given(text=texts)
@example(text=ALL)
@example(text=" [</small><script>]")
def test_the_tags_are_those_of_a_harmless_text(kind: str, text: str) -> None:
    hostile, plain = Tags(PAGES[kind](text)), Tags(PAGES[kind](harmless(text)))
    assert hostile.found == plain.found
    assert hostile.ends == plain.ends


@pytest.mark.parametrize("kind", PAGES)
def test_the_text_is_shown_as_it_is(kind: str) -> None:
    html = PAGES[kind](ALL)
    html.encode("utf-8")
    assert Tags(html).text.count(ALL) > 5


def test_the_data_of_the_script_are_whole() -> None:
    html = PAGES["comparison"](ALL)
    [block] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    told = json.loads(block)
    assert [detail["question"] for detail in told["details"]] == [ALL, ALL]


TREE = """[...document.querySelectorAll("*")].map(
  (of) => [of.tagName, ...[...of.attributes].map((a) => a.name).sort()].join(" "))"""


@pytest.mark.browser
@pytest.mark.parametrize("kind", PAGES)
def test_a_browser_sees_the_same_tree_and_does_nothing(
    browser: Any, tmp_path: Path, kind: str
) -> None:
    trees = []
    for name, text in (("hostile", ALL), ("plain", harmless(ALL))):
        path = tmp_path / f"{name}.html"
        path.write_text(PAGES[kind](text), encoding="utf-8")
        trees.append(seen(browser, path))
    assert len(trees[0]) > 50
    assert trees[0] == trees[1]


def seen(browser: Any, path: Path) -> list[str]:
    """The tree of a page after everything in it was opened; fails where the page did anything."""
    tab = browser.new_page()
    tab.set_default_timeout(PATIENCE_MS)
    did: list[str] = []
    tab.on("console", lambda message: did.append(message.text))
    tab.on("pageerror", lambda error: did.append(str(error)))
    tab.on("dialog", lambda dialog: (did.append("a dialog"), dialog.dismiss()))
    tab.on("request", lambda request: did.append(request.url))
    tab.goto(path.as_uri())
    if tab.locator("#list li").count():
        tab.locator("#list li").first.click()
        tab.locator("#item table").first.wait_for()
        tab.evaluate("document.getElementById('plot').remove()")  # its labels are drawn, not HTML
    tab.evaluate("document.querySelectorAll('details').forEach((of) => { of.open = true; })")
    tab.wait_for_timeout(200)
    found: list[str] = tab.evaluate(TREE)
    tab.close()
    assert [what for what in did if not what.startswith(("data:", path.as_uri()))] == []
    return found


@given(text=texts)
@example(text=ALL)
@settings(max_examples=40, deadline=None)
def test_tables_of_a_comparison_stay_tables(text: str) -> None:
    table = PageTable(text, ("System", text), ((text, text),), note=text)
    told = to_markdown(table)
    assert not re.search(r"<[A-Za-z/!?]", told)
    assert sum(line.startswith("| ") for line in told.split("\n")) == 3
    in_latex = to_latex(table)
    commands = set(re.findall(r"\\([a-zA-Z]+)", in_latex))
    assert not commands & {"input", "write", "frac", "def", "include"}
    assert in_latex.count("\\begin") == in_latex.count("\\end") == 2
