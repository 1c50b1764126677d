"""The outcome of every hard case of the real samples, read by eye: what is replaced, or why not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from ncu_exp.config import PerturbConfig
from ncu_exp.data.corpora import LoadedItems, load_items
from ncu_exp.errors import UserError
from ncu_exp.perturb.audit import perturb_item
from ncu_exp.records import Perturbation
from tests.composing import composed

TRIVIAQA = "triviaqa/rc.wikipedia.excerpts.jsonl"
PAGES = "triviaqa/rc.wikipedia.full_pages.jsonl"
NQ = "nq_gold/nq-open-oracle.jsonl"
NQ_OPEN = "nq_open/validation.jsonl"
NO_ANSWERS = "nq_open/no_annotations.jsonl"
HOTPOTQA = "hotpotqa/distractor.validation.jsonl"
SQUAD = "squad/official_v2.fixture.json"

DATASETS: dict[str, tuple[str, ...]] = {
    TRIVIAQA: ("dataset=triviaqa",),
    PAGES: ("dataset=triviaqa",),
    NQ: ("dataset=nq",),
    NQ_OPEN: ("dataset=nq", "dataset.context=template"),  # it has no passages
    NO_ANSWERS: ("dataset=nq", "dataset.context=template"),
    HOTPOTQA: ("dataset=hotpotqa",),
    SQUAD: ("dataset=squad",),
}

# What a fabricated answer looks like.
WORD, NAME, CAPITALS = r"[a-z]+", r"[A-Z][\w'-]+", r"[A-Z]+"
FULL_NAME = rf"{NAME} {NAME}"
PLACE = rf"{NAME}(?: (?:and|of|the|{NAME}))*"


@dataclass(frozen=True)
class Swapped:
    """The pattern of the fabricated answer, how often what is replaced, and what still tells."""

    becomes: str
    replaced: Mapping[str, int]
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class Excluded:
    """The code of the reason why there is no adversarial context."""

    code: str


@dataclass(frozen=True)
class NoItem:
    """The field of the row that makes no item of it, and why."""

    field: str
    why: str


Outcome = Swapped | Excluded | NoItem

IN_QUESTION = Excluded("answer_in_question")
NOT_IN_CONTEXT = Excluded("answer_not_in_context")
INSIDE_WORDS = Excluded("substring_only")
YES_NO = Excluded("yes_no_answer")
NO_WORD = Excluded("answer_has_no_word_character")

EXPECTED: dict[tuple[str, str], Outcome] = {
    (TRIVIAQA, "tc_40"): NOT_IN_CONTEXT,
    (TRIVIAQA, "qz_1354"): NOT_IN_CONTEXT,
    (TRIVIAQA, "qz_5084"): INSIDE_WORDS,
    (TRIVIAQA, "qb_3065"): INSIDE_WORDS,
    (TRIVIAQA, "tc_1867"): Swapped(rf"{NAME} Sea", {"Red Sea": 1}),
    (TRIVIAQA, "sfq_9267"): Swapped(CAPITALS, {"Škoda": 2, "Škoda Auto": 1}),
    (TRIVIAQA, "sfq_22096"): Swapped(
        CAPITALS, {"Pokémon": 3, "Pocket Monsters": 1, "Gotta Catch 'Em All": 1}
    ),
    (TRIVIAQA, "qw_15255"): Swapped(r"(?!three)[a-z]+", {"three": 1}),
    (TRIVIAQA, "qf_1637"): INSIDE_WORDS,
    (TRIVIAQA, "tc_543"): NOT_IN_CONTEXT,
    (TRIVIAQA, "qf_1612"): NoItem("entity_pages.wiki_context", "holds no gold context"),
    # The question has the full name; what is short for it is the answer.
    (TRIVIAQA, "bb_3250"): Swapped(r"[A-Z]{3}", {"LSD": 1}, left=("Lysergic acid diethylamide",)),
    (TRIVIAQA, "jp_2057"): Swapped(r"[A-Z]{3}", {"NBA": 1, "National Basketball Association": 1}),
    # The question asks about the alias.
    (TRIVIAQA, "qb_6610"): Swapped(NAME, {"Tonga": 1}, left=("Friendly Islands",)),
    (TRIVIAQA, "bt_4011"): Swapped(FULL_NAME, {"Ruth Ellis": 1, "David Blakely": 1}),
    (TRIVIAQA, "qz_418"): NOT_IN_CONTEXT,
    (TRIVIAQA, "sfq_6611"): Swapped(CAPITALS, {"Quiver": 2}),
    (TRIVIAQA, "dpql_647"): Swapped(rf"(?!Chris){FULL_NAME}", {"Chris Martin": 1}),
    (TRIVIAQA, "sfq_735"): Swapped(rf"(?!Stephen){FULL_NAME}", {"Stephen King": 1}),
    (PAGES, "tc_8"): Swapped(PLACE, {"Portugal": 36}, left=("Portuguese",)),
    (PAGES, "tc_3"): Swapped(PLACE, {"York": 13}, left=("Yorkshire", "Yorkists", "Yorkist")),
    (PAGES, "tc_10"): Swapped(FULL_NAME, {"Chicago Bears": 2, "Bears": 35}, left=("Chicago",)),
    # The question says "series 7".
    (NQ, "row:1320"): IN_QUESTION,
    (NQ, "row:693"): Swapped(r"(?!six)[a-z]+", {"six": 1}),
    (NQ, "row:779"): Swapped(PLACE, {"Iran": 1}, left=("Iranian",)),
    (NQ, "row:578"): Swapped(PLACE, {"Haiti": 4}, left=("Haitian",)),
    (NQ, "row:1757"): Swapped(WORD, {"epinephrine": 1}, left=("norepinephrine",)),
    # The second gold answer is longer, and holds the first.
    (NQ, "row:1697"): Swapped(WORD, {"human hands and face": 1}, left=("surface",)),
    (NQ, "row:1383"): Swapped(NAME, {"Kiss": 3}, left=("Kissin",)),
    (NQ, "row:2421"): Swapped(rf"The {NAME}", {"Yankees": 2, "Houston Astros": 1}),
    (NQ, "row:1632"): Swapped(rf"{NAME}’s", {"Monk's Café": 2}),
    (NQ, "row:1983"): IN_QUESTION,
    (NQ, "row:179"): Swapped(FULL_NAME, {"Frank Zappa": 1, "Zappa": 2}),
    (NQ, "row:1335"): Swapped(r"UTC−(?!09|00)[01]\d:00", {"UTC−09:00": 1}),
    (NQ, "row:1257"): Swapped(
        r"[A-Z][a-z]+ \d{1,2}, (?!2017)\d{4}", {"March 10, 2017": 1}, left=("10",)
    ),
    (NQ, "row:1387"): Swapped(r"(?!Hydrogen)[A-Z][a-z]+", {"hydrogen": 1}),
    (NQ, "row:162"): Swapped(
        FULL_NAME,
        {"Giorgio Vasari and Federico Zuccari": 1, "Vasari": 1, "Federico Zuccari": 1},
    ),
    (NQ, "row:2282"): Swapped(PLACE, {"Russia": 3}, left=("Russian",)),
    (NQ, "row:132"): Swapped(rf"{NAME} {FULL_NAME}", {"John Ernest Crawford": 1, "Crawford": 3}),
    (NQ, "row:36"): Swapped(PLACE, {"Charles, Prince of Wales": 1}, left=("Wales",)),
    (NQ, "row:312"): Excluded("no_fabricated_answer"),
    (NQ, "row:544"): Swapped(
        r"[a-z]+ [a-z]+", {"Therefore sign": 1, "therefore sign": 1}, left=("therefore",)
    ),
    (NQ, "row:255"): Swapped(PLACE, {"Germany": 4, "Austria-Hungary": 1}, left=("German",)),
    (NQ_OPEN, "row:381"): Swapped(r"(?!2006)\d{4}–\d\d", {"2006–07": 1}),
    (NQ_OPEN, "row:2854"): IN_QUESTION,
    (NQ_OPEN, "row:38"): IN_QUESTION,
    (NQ_OPEN, "row:696"): Swapped(r"(?!1960)\d{4}", {"1960": 1}),
    (NQ_OPEN, "row:2401"): Swapped(NAME, {"Yes": 1}, left=("bingo",)),
    (NQ_OPEN, "row:22"): Swapped(r"(?!eight)[a-z]+", {"eight": 1}),
    (NQ_OPEN, "row:0"): Swapped(
        r"\d{1,2} [A-Z][a-z]+ (?!1972)\d{4} UTC", {"14 December 1972 UTC": 1}
    ),
    (NQ_OPEN, "row:537"): Swapped(r"(?!8,850)\d+,\d{3}\xa0km", {"8,850\xa0km": 1}),
    (NQ_OPEN, "row:1668"): Swapped(r"₹ (?!39)\d+\.\d\d lakh", {"₹ 39.97 lakh": 1}),
    (NQ_OPEN, "row:363"): NO_WORD,
    (NQ_OPEN, "row:290"): NO_WORD,
    (NQ_OPEN, "row:1879"): Swapped(WORD, {"ase": 1}),
    (NQ_OPEN, "row:44"): Swapped(r"(?!1976)\d{4}", {"1976": 1}),
    (NO_ANSWERS, "row:0"): NoItem("answer", "is missing; the row has: question"),
    (HOTPOTQA, "5a8b57f25542995d1e6f1371"): YES_NO,
    (HOTPOTQA, "5abc0a5d5542993f40c73c64"): YES_NO,
    (HOTPOTQA, "5a716ec85542994082a3e82d"): IN_QUESTION,
    (HOTPOTQA, "5a8e60ca5542995a26add4d9"): Swapped(
        r'"(?:[A-Z]\w+|of|the)(?: (?:[A-Z]\w+|of|the))*" \(2006\)',
        {'"Read It and Weep" (2006)': 1},
    ),
    (HOTPOTQA, "5ab7f97a5542991d322237ef"): Swapped(
        r"[a-z]+ [a-z]+ [a-z]+", {"super-regional shopping mall": 1}
    ),
    (HOTPOTQA, "5abd259d55429924427fcf1a"): YES_NO,
    (HOTPOTQA, "5ae2070a5542994d89d5b313"): IN_QUESTION,
    (HOTPOTQA, "5a7320565542991f9a20c61d"): IN_QUESTION,
    (SQUAD, "5733be284776f41900661182"): NoItem(
        "answers", "is empty: a question without an answer (SQuAD 2.0)"
    ),
}


def lines_of(corpora: Path) -> list[dict[str, str]]:
    text = (corpora / "hard_cases.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


@cache
def loaded_from(corpora: Path, file: str) -> tuple[LoadedItems, PerturbConfig]:
    config = composed(
        *DATASETS[file],
        f"dataset.path='{corpora / file}'",
        "dataset.on_error=skip",
        store=Path("unused"),
    )
    return load_items(config.dataset), config.perturb


def test_every_line_has_its_outcome(corpora: Path) -> None:
    lines = [(line["corpus"], line["id"]) for line in lines_of(corpora)]
    assert len(lines) == len(EXPECTED) == 66
    assert set(lines) == set(EXPECTED)


@pytest.mark.parametrize(("file", "case"), EXPECTED)
def test_outcome(file: str, case: str, corpora: Path) -> None:
    expected = EXPECTED[file, case]
    (question,) = (
        line["question"]
        for line in lines_of(corpora)
        if (line["corpus"], line["id"]) == (file, case)
    )
    if isinstance(expected, NoItem):
        assert why_no_item(corpora, file, question) == expected
        return
    loaded, config = loaded_from(corpora, file)
    item = next(item for item in loaded.items if item.question.strip() == question.strip())
    made = perturb_item(item, config)
    if isinstance(expected, Excluded):
        assert (made.reason.split(":")[0], made.ok, made.perturbed) == (expected.code, False, None)
        return
    assert made.ok, made.reason
    assert made.fabricated is not None
    assert re.fullmatch(expected.becomes, made.fabricated)
    assert Counter(span.original for span in made.spans) == expected.replaced
    assert made.residue == expected.left
    check_by_spans(made)


def why_no_item(corpora: Path, file: str, question: str) -> NoItem:
    if file == NO_ANSWERS:  # no row gives an item: loading fails, and says so of the first
        with pytest.raises(UserError) as error:
            loaded_from(corpora, file)
        found = re.search(r"field '(.+?)': (.+?)\.$", str(error.value))
        assert found, str(error.value)
        return NoItem(found[1], found[2])
    loaded, _ = loaded_from(corpora, file)
    assert question.strip() not in {item.question.strip() for item in loaded.items}
    (row,) = loaded.skipped
    return NoItem(row.field, row.reason)


def check_by_spans(made: Perturbation) -> None:
    """The perturbed text is the original with its spans replaced, and the rest byte for byte."""
    assert made.perturbed is not None
    rebuilt, done = "", 0
    for span in made.spans:
        assert made.original[span.start : span.end] == span.original
        rebuilt += made.original[done : span.start] + span.replacement
        done = span.end
    assert rebuilt + made.original[done:] == made.perturbed
