"""The report: well-formed, self-contained, safe against hostile text, and true to the numbers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_exp.figures import all_figures, to_png
from ncu_exp.metrics import aggregate, latency_metrics, losses
from ncu_exp.records import AnswerType, AuditCounts, Condition, Passage, Perturbation, Score, Span
from ncu_exp.report import (
    SHOWN_ITEMS,
    Examples,
    chosen_examples,
    pieces_of,
    render_items,
    render_report,
)
from ncu_exp.tables import items_table
from tests.synthetic import FOUR, SETTINGS, Run, arm, item, perturbation, run, score

HEADER = {"Model": "SmolLM2-135M", "Dataset": "sample, 96 items", "Precision": "fp32"}
VOID = {"meta", "img", "br"}
HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\"&"


class Page(HTMLParser):
    """The tags of a page, refused where they are not balanced."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.marked: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data
        if "mark" in self.open:
            self.marked.append(data)


def report(
    made: Run, *, header: dict[str, str] = HEADER, pictures: bool = False, **more: Any
) -> str:
    table = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    metrics = aggregate(table, settings=SETTINGS) + latency_metrics(made.probes)
    figures = {}
    if pictures:
        drawn = all_figures(table, metrics, probes=made.probes, settings=SETTINGS)
        figures = {name: to_png(figure) for name, figure in drawn.items()}
    shown = chosen_examples(item.item_id for item in made.items)
    counts = AuditCounts()
    counts.add(made.perturbations)
    return render_report(
        losses=losses(table),
        audit=counts,
        examples=Examples(
            [item for item in made.items if item.item_id in shown],
            table[table["item_id"].isin(shown)],
            [p for p in made.perturbations if p.item_id in shown],
        ),
        item_count=len(made.items),
        metrics=metrics,
        figures=figures,
        header=header,
        settings=SETTINGS,
        **more,
    )


def one_item(made_item=None, scores: Sequence[Score] = (), **changes) -> Run:
    it = made_item or item("a")
    arms = [arm("a", c) for c in (Condition.zero, Condition.oracle)]
    return replace(Run([it], arms, list(scores), [perturbation(it)], []), **changes)


@pytest.fixture(scope="module")
def full() -> str:
    return report(run(24), pictures=True)


def test_the_page_is_well_formed_and_needs_nothing_from_outside(full: str) -> None:
    page = Page(full)
    assert page.tags[0] == "html"
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    sources = [value for name, value in page.attributes if name in ("src", "href")]
    assert len(sources) == 4
    assert all(source and source.startswith("data:image/png;base64,iVBOR") for source in sources)
    assert not re.search(r"url\(|@import|https?://", full)
    assert all(value for name, value in page.attributes if name == "alt")


def test_the_same_run_gives_the_same_page(full: str) -> None:
    assert report(run(24), pictures=True) == full


def test_the_headline_is_in_words() -> None:
    # S_prior 2, S_post 0.5 and S_prior 2, S_post 3: NCU 0.75 and 0, mean 37%; hurt 1 of 2.
    arms = [arm(i, c) for i in "abc" for c in (Condition.zero, Condition.oracle)]
    scores = [score(i, Condition.zero, [-2.0]) for i in "abc"] + [
        score("a", Condition.oracle, [-0.5]),
        score("b", Condition.oracle, [-3.0]),
        Score("c", Condition.oracle, reason="out of memory"),
    ]
    page = Page(report(Run([item(i) for i in "abc"], arms, scores, [], [])))
    assert (
        "The gold context removed on average 37% [0, 75] of the model's uncertainty about the "
        "answer, over 2 of 3 items; it made the answer less likely for 50% [0, 100] of them."
    ) in page.text


def test_a_mean_that_blew_up_is_written_whole() -> None:
    # S_prior 0.0001, S_post 1: raw NCU -0.9999 / 0.00011 = -9090.
    scores = [score("a", Condition.zero, [-1e-4]), score("a", Condition.oracle, [-1.0])]
    assert "<td>-9,090</td>" in report(one_item(scores=scores))


def test_the_headline_of_a_conflict_and_of_zero_alone() -> None:
    false = [score("a", Condition.adversarial, [-1.0], false=[-2.0])]
    conflict = Run([item("a")], [arm("a", Condition.adversarial)], false, [], [])
    assert "probability above 0.05 for 100% of items (n = 1 of 1)" in Page(report(conflict)).text
    zero = [score("a", Condition.zero, [-9.0])]
    alone = Run([item("a")], [arm("a", Condition.zero)], zero, [], [])
    text = Page(report(alone)).text
    assert "Without a context the model gave the answer a probability above 0.05 for 0%" in text


def test_a_run_without_any_score_says_so_and_why() -> None:
    text = Page(report(one_item())).text
    assert "No item was scored: the reasons are listed below." in text
    assert "no oracle row is ok: 1 error (not scored)" in text
    assert Page(report(Run([], [], [], [], []))).text.count("No condition was asked.") == 1


def test_facts_measures_and_explanations_are_there(full: str) -> None:
    text = Page(full).text
    for expected in [
        *HEADER.values(),
        *FOUR,
        *["24 of 24", "21 of 24", "Prior dominance, contrastive", "latency/oracle_p95_s"],
        *["above τ = 0.05", "(S_prior − S_post) / (S_prior + 1e-05)", "95% bootstrap intervals"],
    ]:
        assert str(expected) in text, expected


def test_lost_rows_are_counted_by_reason(full: str) -> None:
    row = r"adversarial</td><td>excluded</td>\s*<td[^>]*>the answer is not in the context</td>\s*"
    assert re.search(row + r"<td>3</td>", full)


def test_nothing_lost_is_said() -> None:
    scores = [score("a", c, [-1.0]) for c in (Condition.zero, Condition.oracle)]
    assert "Nothing: every item was scored" in Page(report(one_item(scores=scores))).text


def test_hostile_text_is_shown_and_not_run() -> None:
    it = replace(
        item("a", answer=HOSTILE, aliases=(HOSTILE + "2",)),
        question=HOSTILE,
        passages=(Passage(HOSTILE, HOSTILE),),
    )
    audit = replace(perturbation(it), fabricated=HOSTILE, residue=(HOSTILE,), policy=HOSTILE)
    assert audit.spans
    scores = [
        score("a", Condition.zero, [-1.0], greedy=HOSTILE, answer=HOSTILE),
        Score("a", Condition.oracle, reason=HOSTILE),
    ]
    made = one_item(it, scores, perturbations=[audit])
    html = report(made, header={HOSTILE: HOSTILE})
    page = Page(html)
    assert not {"script", "img"} & set(page.tags)
    assert all(not name.startswith("on") for name, _ in page.attributes)
    assert page.text.count("<script>alert('x')</script>") >= 10


def test_replaced_words_are_marked_in_both_contexts() -> None:
    page = Page(report(one_item()))
    assert page.marked == ["Paris", "Paris", "Zedville", "Zedville"]
    assert "A city\nZedville lies on a river. Every year Zedville is visited" in page.text


def test_an_item_without_adversarial_context_says_why() -> None:
    made = one_item(perturbations=[perturbation(item("a"), ok=False)])
    page = Page(report(made))
    assert "No adversarial context: the answer is not in the context." in page.text
    assert page.marked == []
    plain = Page(report(one_item(perturbations=[])))
    assert "Paris lies on a river" in plain.text
    assert "Adversarial context" not in plain.text


def test_token_log_probabilities_of_each_score_are_listed() -> None:
    html = report(one_item(scores=[score("a", Condition.zero, [-0.25, -2.0])]))
    assert '<span title="token 0">-0.25</span> <span title="token 1">-2.00</span>' in html
    assert "<td>0.32</td><td>1.12</td>" in html  # exp(-1.125), 1.125 nats


def test_of_many_items_the_same_ones_are_shown_for_every_model() -> None:
    shown = []
    for seed in (0, 1):
        text = Page(report(run(SHOWN_ITEMS + 40, conditions=FOUR[:2], seed=seed))).text
        assert "200 of 240 items, chosen by a hash of their id" in text
        shown.append(re.findall(r"Which city is number (i\d{4})\?", text))
    ids = [f"i{k:04}" for k in range(SHOWN_ITEMS + 40)]
    by_hash = sorted(ids, key=lambda item_id: hashlib.sha256(item_id.encode()).digest())
    assert shown[0] == shown[1] == sorted(by_hash[:SHOWN_ITEMS])


def test_a_page_of_items_shows_them_as_the_report_does(full: str) -> None:
    made = run(24)
    table = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    html = render_items(Examples(made.items, table, made.perturbations), title="Items 1 to 24")
    page = Page(html)
    assert page.tags[0] == "html"
    assert "Items 1 to 24" in page.text
    assert ("href", "../report.html") in page.attributes
    assert page.marked == Page(full).marked
    start, end = html.index("<details>"), html.rindex("</details>")
    assert html[start:end] in full


def test_the_report_names_the_pages_of_items() -> None:
    pages = ["items/00001-00002.html", "items/00003-00004.html"]
    one = Page(report(run(4), pages=pages, paged_items=4))
    assert [("href", page) in one.attributes for page in pages] == [True, True]
    assert "All items, in pages beside this one: 00001-00002 · 00003-00004" in one.text
    some = Page(report(run(9), pages=pages, paged_items=4))
    assert "The first 4 items, in pages beside this one (the rest" in some.text


def test_long_contexts_are_cut_between_the_marks() -> None:
    filler = "Nothing of note happened there. " * 4000
    it = replace(item("a"), passages=(Passage("T", f"{filler}Paris is here.{filler}"),))
    html = report(one_item(it))
    assert len(html) < 30_000
    page = Page(html)
    assert page.marked == ["Paris", "Zedville"]
    assert page.text.count("happened there. Zedville is here.") == 1
    assert re.search(r"\[…\d{3},\d{3} characters…\]", page.text)


words = st.text(alphabet="abc <&\n", min_size=0, max_size=5)


@given(st.lists(st.tuples(words, words.filter(bool), words), max_size=6), words)
def test_pieces_put_together_are_the_two_contexts(
    parts: list[tuple[str, str, str]], tail: str
) -> None:
    original, perturbed, spans = "", "", []
    for between, replaced, replacement in parts:
        start = len(original) + len(between)
        spans.append(Span(start, start + len(replaced), replaced, replacement))
        original += between + replaced
        perturbed += between + replacement
    audit = Perturbation(
        item_id="a",
        policy="faker",
        seed=0,
        entity_type=AnswerType.other,
        answer="x",
        fabricated="y",
        spans=tuple(reversed(spans)),
        residue=(),
        original=original + tail,
        perturbed=perturbed + tail,
        ok=True,
    )
    before, after = pieces_of(audit)
    assert "".join(piece.text for piece in before) == audit.original
    assert "".join(piece.text for piece in after) == audit.perturbed
    assert [piece.text for piece in before if piece.marked] == [span.original for span in spans]
