from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.perturbations import count
from ncu_exp.config import PerturbConfig
from ncu_exp.perturb.audit import build_arms, perturb_item, perturb_items
from ncu_exp.perturb.digests import ContextDigests
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import answer_form
from ncu_exp.perturb.mentions import find_lookalikes
from ncu_exp.perturb.people import plural
from ncu_exp.perturb.reasons import REASONS
from ncu_exp.perturb.table import PERTURBATION_COLUMNS, perturbation_rows, perturbation_schema
from ncu_exp.perturb.terms import other_number
from ncu_exp.records import AnswerType, Condition, Item, Perturbation, render_passages

MakeItem = Callable[..., Item]
ALL = list(Condition)


def code(perturbation: Perturbation) -> str:
    return perturbation.reason.split(":")[0]


# --- single items -------------------------------------------------------------------------------


def test_an_adversarial_context_by_hand(make_item: MakeItem, config: PerturbConfig) -> None:
    item = make_item(
        "Darwin's book made Charles Darwin a famous Darwinist.",
        "Charles Darwin",
        title="Charles Darwin",
        question="Who wrote it?",
        answer_type=AnswerType.person,
    )
    made = perturb_item(item, config)
    assert made.ok
    assert made.reason == ""
    assert made.fabricated is not None
    given, family = made.fabricated.split()
    assert made.perturbed == (
        f"{given} {family}\n{family}'s book made {given} {family} a famous Darwinist."
    )
    assert made.original == render_passages(item.gold_passages)
    assert made.residue == ()
    assert (made.policy, made.seed, made.entity_type) == ("faker", 0, AnswerType.person)


@pytest.mark.parametrize(
    ("text", "answers", "question", "expected"),
    [
        ("", ("x",), "q", "no_context"),
        ("Both are Greek.", ("yes",), "Are both Greek?", "yes_no_answer"),
        ("a ) here", (")",), "q", "answer_has_no_word_character"),
        ("It rained.", ("Tonga",), "q", "answer_not_in_context"),
        ("Croatian law", ("Croatia",), "where is it", "substring_only"),
        ("in 2017", ("7",), "how many", "substring_only"),
        ("one kiss", ("Kiss",), "who sings", "lookalike_only"),
        ("It was in Peru.", ("1958", "Peru"), "when or where", "only_other_kind_in_context"),
        (
            "You're Next came out.",
            ("You're Next",),
            "The Guest or You're Next?",
            "answer_in_question",
        ),
        ("東京です", ("東京",), "which", "no_fabricated_answer"),
        ("Kiss sang of a kiss.", ("Kiss",), "who sings it", "answer_left_in_context"),
    ],
)
def test_reasons(
    text: str,
    answers: tuple[str, ...],
    question: str,
    expected: str,
    make_item: MakeItem,
    config: PerturbConfig,
) -> None:
    made = perturb_item(make_item(text, *answers, question=question), config)
    assert code(made) == expected
    assert made.reason == f"{expected}: {REASONS[expected]}"
    assert not made.ok
    assert made.perturbed is None


def test_an_alias_in_the_question_alone_excludes_nothing(
    make_item: MakeItem, config: PerturbConfig
) -> None:
    question = "Which islands became known as The Friendly Islands?"
    tonga = make_item("Tonga is far away.", "Tonga", "Friendly Islands", question=question)
    assert perturb_item(tonga, config).ok
    both = make_item("Tonga, the Friendly Islands.", "Tonga", "Friendly Islands", question=question)
    made = perturb_item(both, config)
    assert (
        made.perturbed == f"{made.fabricated}, the Friendly Islands."
    )  # what is asked about stays
    assert made.residue == ("Friendly Islands",)
    alone = make_item("The Friendly Islands.", "Tonga", "Friendly Islands", question=question)
    assert code(perturb_item(alone, config)) == "answer_in_question"


def test_the_scored_answer_has_the_true_answers_article_and_capitals(
    make_item: MakeItem, config: PerturbConfig
) -> None:
    jobs = perturb_item(make_item("by Steve Jobs.", "STEVE JOBS", question="who made it"), config)
    assert jobs.fabricated is not None
    assert jobs.perturbed is not None
    assert jobs.fabricated.isupper()
    assert jobs.fabricated.title() in jobs.perturbed
    swan = perturb_item(make_item("A swan.", "A SWAN", question="what is it"), config)
    assert swan.fabricated is not None
    lead, bird = swan.fabricated.split()
    assert lead == ("An" if bird[0] in "EO" else "A")  # not as of an acronym: an M.
    ballad = perturb_item(make_item("It is an owl song.", "an owl song", question="what"), config)
    assert ballad.fabricated is not None
    assert ballad.perturbed == f"It is {ballad.fabricated}."


def test_a_family_goes_with_its_member(make_item: MakeItem, config: PerturbConfig) -> None:
    item = make_item(
        "Atticus Finch had two children. The Finches read.", "Atticus Finch", question="who read"
    )
    made = perturb_item(item, config)
    assert made.fabricated is not None
    family = made.fabricated.split()[-1]
    assert made.perturbed == f"{made.fabricated} had two children. The {plural(family)} read."


@pytest.mark.parametrize("answer", ["laser", "lasers"])
def test_singular_and_plural_change_together(
    answer: str, make_item: MakeItem, config: PerturbConfig
) -> None:
    item = make_item("A laser cuts. Lasers’ beams.", answer, question="what cuts")
    made = perturb_item(item, config)
    assert made.fabricated is not None
    one, many = sorted((made.fabricated, other_number(made.fabricated)), key=len)
    article = "An" if one[0] in "aeio" else "A"
    assert made.perturbed == f"{article} {one} cuts. {many.capitalize()}’ beams."
    assert made.residue == ()


def test_what_is_left_is_said(make_item: MakeItem, config: PerturbConfig) -> None:
    item = make_item("Iran has Iranian goats.", "Iran", question="where is it")
    made = perturb_item(item, config)
    assert made.ok
    assert made.residue == ("Iranian",)


# --- sets ---------------------------------------------------------------------------------------


@pytest.fixture
def items(make_item: MakeItem) -> list[Item]:
    plato = ("Plato taught him.", "Plato")
    return [
        make_item(*plato, question="who taught him", others=("Socrates too.",), item_id="a"),
        make_item("In 1958 it rained.", "1958", question="when did it rain", item_id="b"),
        make_item("Both are.", "yes", question="Are both so?", item_id="c"),
    ]


def test_arms_come_item_by_item_in_the_order_of_the_conditions(
    items: list[Item], config: PerturbConfig
) -> None:
    arms, perturbations = build_arms(items, ALL, config)
    assert [(a.item_id, a.condition) for a in arms] == [(i.item_id, c) for i in items for c in ALL]
    assert [p.item_id for p in perturbations] == ["a", "b", "c"]
    by_key = {(a.item_id, a.condition): a for a in arms}
    assert by_key["a", Condition.zero].context is None
    assert by_key["a", Condition.zero].ok
    assert by_key["a", Condition.oracle].context == "Plato taught him."
    adversarial = by_key["a", Condition.adversarial]
    assert adversarial.context == f"{adversarial.fabricated} taught him."
    assert by_key["a", Condition.distractor].context == "Plato taught him.\n\nSocrates too."
    assert by_key["b", Condition.distractor].reason.startswith("no_distractor_passages: ")
    assert "In 1958 it rained." in (by_key["b", Condition.noise].context or "")
    assert by_key["c", Condition.adversarial].reason.startswith("yes_no_answer: ")
    assert by_key["c", Condition.adversarial].fabricated is None
    assert all((arm.context is None) == (not arm.ok) for arm in arms if arm.condition != "zero")
    assert all(bool(arm.reason) == (not arm.ok) for arm in arms)


def test_audit_rows_only_where_the_condition_is_asked(
    items: list[Item], config: PerturbConfig
) -> None:
    arms, perturbations = build_arms(items, [Condition.zero, Condition.oracle], config)
    assert len(arms) == 6
    assert perturbations == []


def test_an_item_without_a_context_has_the_zero_condition_only(config: PerturbConfig) -> None:
    arms, _ = build_arms([Item("a", "nq", "who?", "Plato")], ALL, config)
    assert [arm.condition for arm in arms if arm.ok] == [Condition.zero]
    assert {arm.reason.split(":")[0] for arm in arms if not arm.ok} == {"no_context"}


def digest_of(made: list[Perturbation]) -> str | None:
    digests = ContextDigests()
    for perturbation in made:  # in blocks of one
        digests.add([], [perturbation])
    return digests.perturbations


def test_the_hash_knows_the_contexts_and_not_their_order(
    items: list[Item], config: PerturbConfig
) -> None:
    _, made = build_arms(items, [Condition.adversarial], config)
    digest = digest_of(made)
    assert digest == digest_of(made[::-1])
    changed = dataclasses.replace(made[0], perturbed=f"{made[0].perturbed} ")
    assert digest != digest_of([changed, *made[1:]])
    assert digest != digest_of(made[1:])
    other_seed = dataclasses.replace(config, seed=1)
    assert digest != digest_of(build_arms(items, [Condition.adversarial], other_seed)[1])
    assert digest_of([]) is None


def test_each_condition_has_a_digest_of_its_own(items: list[Item], config: PerturbConfig) -> None:
    arms, _ = build_arms(items, ALL, config)
    digests, others = ContextDigests(), ContextDigests()
    digests.add(arms, [])
    noise = next(a for a in arms if a.condition is Condition.noise)
    others.add([a for a in arms if a is not noise], [])
    differing = {c for c in ALL if digests.contexts[c] != others.contexts[c]}
    assert differing == {Condition.noise}
    assert all(re.fullmatch("[0-9a-f]{64}", found) for found in digests.contexts.values())


def test_rows_go_into_parquet_and_come_back(
    items: list[Item], config: PerturbConfig, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    _, made = build_arms(items, [Condition.adversarial], config)
    rows = perturbation_rows(made)
    table = pa.Table.from_pylist(rows, schema=perturbation_schema(spacy_model=config.spacy_model))
    pq.write_table(table, tmp_path / "perturbations.parquet")
    back = pq.read_table(tmp_path / "perturbations.parquet").to_pylist()
    assert back == rows
    assert tuple(back[0]) == PERTURBATION_COLUMNS
    span = json.loads(back[0]["spans"])[0]
    assert back[0]["original"][span["start"] : span["end"]] == span["original"] == "Plato"


SCRIPT = """
import sys
from ncu_exp.config import *
from ncu_exp.perturb.audit import build_arms
from ncu_exp.perturb.digests import ContextDigests
from ncu_exp.records import *
names = [("Ada Lovelace", "who"), ("1843", "when"), ("eight", "how many"), ("erosion", "what")]
items = [
    Item(f"i{n}", "local", f"{ask} was it", answer, (), (Passage("", f"In Rome it was {answer}."),))
    for n, (answer, ask) in enumerate(names)
]
config = PerturbConfig(
    Policy.faker,
    0,
    "en_core_web_sm",
    NoiseConfig(2.0, Position.centre),
    DistractorConfig(Position.start),
)
order = -1 if sys.argv[1] == "back" else 1
arms, made = build_arms(items[::order], list(Condition), config)
digests = ContextDigests()
digests.add(arms, made)
print(digests.perturbations, digests.contexts)
for arm in sorted(arms, key=lambda a: (a.item_id, a.condition)):
    print(arm)
"""


def test_another_process_another_hash_seed_and_another_order_give_the_same_bytes() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, order],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed, order in (("1", "on"), ("2", "back"))
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"Arm(") == 24


def test_nothing_heavy_is_loaded_before_it_is_used() -> None:
    heavy = "spacy faker numpy pandas pyarrow torch hydra omegaconf"
    script = (
        f"import ncu_exp.perturb.audit, sys; print(*sys.modules.keys() & set('{heavy}'.split()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == ""


# --- the real samples ---------------------------------------------------------------------------


def check(item: Item, made: Perturbation) -> None:
    """Either a context free of the answer and with the fabricated one, or a reason."""
    assert bool(made.reason) == (not made.ok)
    if not made.ok:
        assert code(made) in REASONS
        assert made.perturbed is None
        return
    assert made.perturbed is not None
    assert made.fabricated is not None
    for found in find_lookalikes(made.perturbed, item.answers):  # what the question names itself
        assert find_lookalikes(item.question, [found.matched_answer])
        assert made.perturbed[found.start : found.end] in made.residue
    assert fold_text(answer_form(made.fabricated).core) in fold_text(made.perturbed)
    said = " ".join(made.residue)
    assert all(word in said for word in whole_words(made.perturbed, item.answers))
    kept, position = "", 0
    for span in made.spans:
        assert not is_inside_word(made.original, span.start)
        assert not is_inside_word(made.original, span.end)
        kept += made.original[position : span.start] + span.replacement
        position = span.end
    assert kept + made.original[position:] == made.perturbed


def whole_words(text: str, answers: tuple[str, ...]) -> set[str]:
    """The answers that plainly stand in the text, found without any of the package's rules."""
    words = [a for a in answers if len(a) > 2 and a[0].isalpha() and a[-1].isalpha()]
    return {a for a in words if re.search(rf"(?<![\w-]){re.escape(a)}(?![\w-])", text)}


def is_inside_word(text: str, place: int) -> bool:
    """Whether Latin letters or digits stand on both sides of a place in a text."""
    return re.search(r"[^\W_][^\W_]", text[max(0, place - 1) : place + 1], re.ASCII) is not None


@pytest.mark.parametrize(
    ("corpus", "share_ok"),
    [
        ("Natural Questions", 0.96),
        ("TriviaQA, excerpts", 0.99),
        ("TriviaQA, web", 1.0),
        ("TriviaQA, whole pages", 1.0),
        ("HotpotQA", 0.93),  # one question in sixteen names both of its answers
        ("SQuAD", 0.99),
    ],
)
def test_every_real_item_is_ok_or_has_a_reason(
    corpus: str, share_ok: float, real_items: dict[str, list[Item]], config: PerturbConfig
) -> None:
    items = real_items[corpus]
    made = perturb_items(items, config)
    for item, perturbation in zip(items, made, strict=True):
        check(item, perturbation)
    counts = count(corpus, items, made)
    assert counts.verbatim_ok >= share_ok * counts.verbatim, counts
