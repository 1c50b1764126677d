"""Pages that hold one text wherever data can stand, and the tags that a parser finds in a page."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from math import nan
from typing import Any

from ncu_exp.explorer import ItemRow, PageTable
from ncu_exp.metrics import aggregate, losses
from ncu_exp.records import AuditCounts, Condition, Passage, Score, Span
from ncu_exp.report import Examples, Piece, render_items, render_report
from ncu_exp.stats import Metric
from ncu_exp.tables import items_table
from tests.frames import frames
from tests.synthetic import SETTINGS, Run, arm, item, perturbation, score
from tests.test_explorer import detail, page

_HARMLESS = str.maketrans(dict.fromkeys("<>&\"'{}%`=/\\$\u2028\u2029\x00\r", "x"))
_FROM_DATA = {"aria-label", "alt"}  # attributes whose values data may fill
MADE = frames(2, n_items=2)

Tag = tuple[str, tuple[tuple[str, str | None], ...]]


def harmless(text: str) -> str:
    """A text of the same length and words, without a character that any syntax knows."""
    return text.translate(_HARMLESS)


class Tags(HTMLParser):
    """The tags of a page with their attributes, what data may fill left out; and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[Tag] = []
        self.ends: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = ((name, None if name in _FROM_DATA else value) for name, value in attrs)
        self.found.append((tag, tuple(told)))

    def handle_endtag(self, tag: str) -> None:
        self.ends.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", ((data, None),)))

    def handle_decl(self, decl: str) -> None:
        self.found.append(("declaration", ((decl, None),)))

    def unknown_decl(self, data: str) -> None:
        self.found.append(("unknown", ((data, None),)))

    def handle_pi(self, data: str) -> None:
        self.found.append(("instruction", ((data, None),)))


def report_with(text: str) -> str:
    made = _run(text)
    table = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    counts = AuditCounts()
    counts.add(made.perturbations)
    missing = Metric("oracle/ncu", nan, nan, nan, n=0, n_total=1, reason=text)
    return render_report(
        losses=losses(table),
        audit=counts,
        examples=Examples(made.items, table, made.perturbations),
        item_count=1,
        metrics=[*aggregate(table, settings=SETTINGS), missing],
        figures={text: b"png"},
        header={"Model": text, f"a{text}": text},
        settings=SETTINGS,
    )


def items_with(text: str) -> str:
    made = _run(text)
    table = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    return render_items(Examples(made.items, table, made.perturbations), title=text)


def comparison_with(text: str) -> str:
    systems = dict(zip(MADE.systems["system"], (f"a{text}", f"b{text}"), strict=True))
    items = MADE.items.assign(
        system=MADE.items["system"].map(systems), corpus=f"c{text}", item_id=MADE.items["item_id"]
    )
    told = [_detail(f"i{k:04}", text, systems) for k in range(2)]
    table = PageTable(text, ("System", text), ((text, text),), note=text)
    more: dict[str, Any] = {
        "title": text,
        "sentences": [text, text],
        "notes": [text],
        "facts": {f"a{text}": text},
        "tables": [table],
        "figures": {text: b"png"},
    }
    return page(replace(MADE, items=items), told, **more)


def _detail(item_id: str, text: str, systems: dict[str, str]) -> Any:
    of = detail(MADE, "sample", item_id)
    return replace(
        of,
        corpus=f"c{text}",
        **dict.fromkeys(("question", "answer", "fabricated"), text),
        aliases=(text,),
        original=(Piece(text, marked=False), Piece(text, marked=True)),
        perturbed=(Piece(text, marked=True),),
        rows=tuple(_row(row, text, systems) for row in of.rows),
    )


def _row(row: ItemRow, text: str, systems: dict[str, str]) -> ItemRow:
    return replace(row, system=systems[row.system], text=text, greedy_text=text, reason=text)


def _run(text: str) -> Run:
    it = replace(
        item("a", answer=f"a{text}", aliases=(text,)),
        item_id=f"i{text}",
        question=text,
        passages=(Passage(text, f"{text} a{text} {text}"),),
    )
    audit = replace(
        perturbation(replace(it, item_id="a")),
        item_id=it.item_id,
        **dict.fromkeys(("fabricated", "policy"), text),
        residue=(text,),
        spans=(Span(0, 1, text, text),),
    )
    arms = [arm(it.item_id, c) for c in (Condition.zero, Condition.oracle)]
    scores = [
        replace(
            score("a", Condition.zero, [-1.0], greedy=f"g{text}", answer=f"a{text}"),
            item_id=it.item_id,
        ),
        Score(it.item_id, Condition.oracle, reason=f"r{text}"),
    ]
    return Run([it], arms, scores, [audit], [])


PAGES = {"report": report_with, "items": items_with, "comparison": comparison_with}
