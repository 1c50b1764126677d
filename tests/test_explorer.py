"""The page of a comparison: self-contained, true to the frames, and safe against hostile text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plotly.offline import get_plotlyjs

from ncu_exp.explorer import (
    DRAWN_ITEMS,
    FOLDED_ROWS,
    ItemDetail,
    ItemRow,
    PageTable,
    _script_json,
    item_row,
    render_comparison,
)
from ncu_exp.report import Piece
from ncu_exp.tablefile import parquet_schema
from ncu_exp.tables import items_table
from tests.frames import Frames, frames
from tests.synthetic import SETTINGS, run

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>&amp;{{ 7*7 }}\u2028"
VOID = {"meta", "img", "br", "input"}
CONDITIONS = ("zero", "oracle", "noise", "adversarial")
WORDS = "The tower in the harbour town was finished in the year that the old bridge fell. "


def detail(made: Frames, corpus: str, item_id: str, *, number: int = 0) -> ItemDetail:
    """An item of the frames with texts, and rows of every system."""
    of = made.items
    rows = [
        row
        for record in of[(of["corpus"] == corpus) & (of["item_id"] == item_id)].to_dict("records")
        for row in item_rows(record)
    ]
    answer, false = f"Ålesund {number}", "Trondheim"
    before = Piece(WORDS * 12, marked=False)
    after = Piece(f" was where it stood, and {WORDS}", marked=False)
    return ItemDetail(
        corpus=corpus,
        item_id=item_id,
        question=f"In which harbour does the tower of the item {item_id} stand, number {number}?",
        answer=answer,
        aliases=("Aalesund",),
        original=(before, Piece(answer, marked=True), after),
        perturbed=(before, Piece(false, marked=True), after),
        fabricated=false,
        rows=tuple(rows),
    )


def item_rows(record: dict[Any, Any]) -> list[ItemRow]:
    """Four rows that were scored and one that does not exist."""
    rows = []
    for condition in CONDITIONS:
        s = {"zero": record["s_prior"], "adversarial": record["s_adversarial"]}
        surprisal = float(s.get(condition, record["s_post"]))
        logprobs = tuple(-surprisal * share for share in (0.25, 1.0, 1.75))
        rows.append(
            ItemRow(
                system=record["system"],
                condition=condition,
                continuation="true",
                text="Ålesund",
                status="ok",
                surprisal_nats=surprisal,
                ncu=math.nan if condition == "zero" else record["ncu"],
                em=record["em"],
                greedy_text=f"{'Ålesund' if record['em'] else 'Bergen'} is the town",
                token_ids=(4917, 82, 10633),
                token_logprobs=logprobs,
            )
        )
    reason = "no mention of the answer in the passages"
    false = ItemRow(record["system"], "adversarial", "fabricated", "Trondheim", "excluded", reason)
    return [*rows, false]


def page(made: Frames, details: Sequence[ItemDetail] = (), **more: Any) -> str:
    given: dict[str, Any] = {
        "title": "Does the model read the context, or recite its memory?",
        "sentences": ["The larger model reads more.", "The rest is undecided."],
        "notes": ["Runs differ in the precision."],
        "facts": {"Items": "96", "Seed": "0"},
        "tables": [],
        "figures": {},
    }
    return render_comparison(items=made.items, details=details, **(given | more))


def payload(html: str) -> dict[str, Any]:
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert len(found) == 1
    told: dict[str, Any] = json.loads(found[0])
    return told


class Tags(HTMLParser):
    """The tags of a page, refused where they are not balanced; the text without scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.text += data

    def count(self, tag: str) -> int:
        return sum(tag == name for name, _ in self.tags)


@pytest.fixture(scope="module")
def three() -> Frames:
    return frames(3, n_items=20, corpora=("sample", "squad"))


@pytest.fixture(scope="module")
def three_details(three: Frames) -> list[ItemDetail]:
    return [detail(three, "sample", f"i{k:04}", number=k) for k in range(5)]


def test_the_page_is_whole_and_tells_the_finding(three: Frames) -> None:
    table = PageTable("Table 1", ("System", "NCU"), (("a", "0.50 [0.40, 0.60]"),), note="A note.")
    more: dict[str, Any] = {"figures": {"ncu_rates": b"png", "b": b""}, "alternatives": {"b": "B"}}
    tags = Tags(page(three, tables=[table], **more))
    for told in ("larger model reads", "differ in the precision", "Table 1", "A note.", "Seed"):
        assert told in tags.text
    assert "[0.40, 0.60]" in tags.text
    pictures = [attributes for tag, attributes in tags.tags if tag == "img"]
    assert pictures[0] == {"src": "data:image/png;base64,cG5n", "alt": "ncu rates"}
    assert pictures[1]["alt"] == "B"


def test_nothing_is_loaded_from_elsewhere(three: Frames, three_details: list[ItemDetail]) -> None:
    tags = Tags(page(three, three_details, figures={"a": b"png"}))
    for tag, attributes in tags.tags:
        assert tag not in {"link", "iframe", "object", "embed"}
        for name in ("src", "href", "srcset", "action"):
            assert (attributes.get(name) or "data:").startswith("data:")
    assert "@import" not in "".join(page(three).split(get_plotlyjs()))


def test_plotly_can_stand_in_a_script_block() -> None:
    assert not re.search(r"</script|<!--|\r", get_plotlyjs(), re.I)


@pytest.mark.parametrize(("rows", "folded"), [(FOLDED_ROWS, 0), (FOLDED_ROWS + 1, 1)])
def test_long_tables_are_folded(three: Frames, rows: int, folded: int) -> None:
    table = PageTable("Differences", ("Pair", "p"), tuple((f"{k}", "0.5") for k in range(rows)))
    tags = Tags(page(three, tables=[table]))
    assert tags.count("details") == folded
    assert tags.count("tr") == rows + 1


def test_hostile_text_stays_text(three: Frames, three_details: list[ItemDetail]) -> None:
    bad = replace(
        three_details[0],
        **dict.fromkeys(("question", "answer", "fabricated"), HOSTILE),
        aliases=(HOSTILE,),
        original=(Piece(HOSTILE, marked=True),),
        rows=(replace(three_details[0].rows[0], text=HOSTILE, greedy_text=HOSTILE),),
    )
    table, facts = PageTable(HOSTILE, (HOSTILE,), ((HOSTILE,),), HOSTILE), {HOSTILE: HOSTILE}
    html = page(three, [bad], sentences=[HOSTILE], notes=[HOSTILE], tables=[table], facts=facts)
    tags = Tags(html)
    assert tags.count("script") == 3
    assert tags.count("img") == 0
    assert tags.text.count(HOSTILE) == 8
    told = payload(html)
    assert told["details"][0]["question"] == HOSTILE
    assert HOSTILE in told["texts"]


@given(st.text(st.characters(codec=None), max_size=40))
@settings(max_examples=200)
def test_any_text_survives_the_script_block(text: str) -> None:
    told = _script_json({"text": text})
    assert not set(told) & set("<>&\u2028\u2029")
    told.encode("utf-8")
    assert json.loads(told) == {"text": text}


def test_the_points_are_those_of_the_frame(three: Frames) -> None:
    told = payload(page(three, default_system=three.systems["system"][1]))
    assert told["systems"] == list(three.systems["system"])
    assert told["chosen"] == 1
    assert {len(column) for name in ("prior", "ncu", "em") for column in told[name]} == {40}
    first = three.items.iloc[0]
    order = sorted(zip(told["prior"][0], told["ncu"][0], strict=True))
    of = three.items[three.items["system"] == first["system"]]
    expected = sorted(zip(np.exp(-of["s_prior"]), of["ncu"], strict=True))
    np.testing.assert_allclose(order, expected, rtol=5e-4)


def test_bounded_and_missing_numbers_are_told_as_such() -> None:
    items = pd.DataFrame(
        [
            ("a", "c", "1", 0.0, math.nan, 0.25, 0.5, 1.0),
            ("a", "c", "2", math.nan, 0.5, math.nan, math.nan, math.nan),
            ("a", "c", "3", math.log(2), 1 / 3, math.nan, math.nan, 0.0),
        ],
        columns=["system", "corpus", "item_id", "s_prior", "ncu", "ncu_lower", "ncu_upper", "em"],
    )
    rows = (
        ItemRow(
            *("a", "oracle", "true", "x", "ok"),
            surprisal_lower=0.5,
            surprisal_upper=math.inf,
            token_logprobs=(-0.25, math.nan),
            token_logprobs_upper=(-0.25, -0.75),
        ),
    )
    items_told = [
        ItemDetail("c", name, "q", "a", (Piece("p", marked=False),), None, None, rows)
        for name in ("1", "2", "3")
    ]
    told = payload(page(Frames(items, items, items, items, items), items_told))
    assert told["prior"] == [[1, None, 0.5]]
    assert told["ncu"] == [[[0.25, 0.5], 0.5, 0.3333]]
    assert told["em"] == [[1, None, 0]]
    row = told["details"][0]["rows"][0]
    assert row[6:] == [None, [0, 0.6065], [0.5, None], None, None, [], [-0.25, [-0.75]]]
    assert [told["texts"][place] for place in row[1:6]] == ["oracle", "true", "ok", "", "x"]


def test_the_page_says_how_many_items_it_opens(
    three: Frames, three_details: list[ItemDetail]
) -> None:
    assert "5 of 40 items can be opened" in page(three, three_details)
    everything = [
        detail(three, corpus, f"i{k:04}") for corpus in ("sample", "squad") for k in range(20)
    ]
    assert "All 40 items can be opened" in page(three, everything)


def test_of_many_items_a_part_is_drawn_and_said_to_be() -> None:
    many = frames(1, n_items=DRAWN_ITEMS + 10)
    html = page(many, [detail(many, "sample", "i0003")])
    assert "1 of 3,010 items can be opened" in html
    assert "3,000 items are drawn" in html
    assert len(payload(html)["corpus"]) == DRAWN_ITEMS


def test_an_unknown_system_is_refused_and_none_is_a_page(three: Frames) -> None:
    with pytest.raises(ValueError, match="none of the systems"):
        page(three, default_system="gpt-0")
    assert payload(page(frames(0)))["systems"] == []


def test_a_row_of_a_run_is_read_from_its_table(tmp_path: Path) -> None:
    made = run(60)
    table = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    table.to_parquet(tmp_path / "items.parquet", index=False, schema=parquet_schema())
    records = pd.read_parquet(tmp_path / "items.parquet").to_dict("records")
    rows = [item_row("a", record) for record in records]
    for row, record in zip(rows, records, strict=True):
        assert (row.condition, row.status) == (record["condition"], record["status"])
        if row.status == "ok":
            assert row.surprisal_nats == pytest.approx(-np.mean(row.token_logprobs))
            assert row.text
        else:
            assert (row.token_logprobs, row.greedy_text) == ((), None)
            assert row.reason
    assert {row.status for row in rows} == {"ok", "excluded", "error"}


def test_a_large_comparison_stays_below_12_mb() -> None:
    made = frames(4, n_items=500)
    details = [detail(made, "sample", f"i{k:04}", number=k) for k in range(500)]
    details = [
        replace(d, original=tuple(replace(p, text=f"{k}{p.text}") for p in d.original))
        for k, d in enumerate(details)
    ]
    assert len(page(made, details).encode()) < 12e6
