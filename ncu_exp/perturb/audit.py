"""What was done to each item: the arms of every condition, and an audit row per substitution."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ncu_exp.config import PerturbConfig
from ncu_exp.perturb.entities import answer_type, natural_core
from ncu_exp.perturb.fabricate import fabricate, is_clause
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import answer_form
from ncu_exp.perturb.inventors import Fabrication, is_numeric, searched_answers
from ncu_exp.perturb.mentions import Mention, find_inside_words, find_lookalikes, find_mentions
from ncu_exp.perturb.residue import telling_residue
from ncu_exp.perturb.substitute import agree, as_asked, substitute
from ncu_exp.perturb.surround import distractor_context, irrelevant_context, noise_context
from ncu_exp.records import (
    AnswerType,
    Arm,
    Condition,
    Item,
    Perturbation,
    Span,
    render_passages,
)

if TYPE_CHECKING:
    import pyarrow as pa

# Why an item has no context under a condition: a code, and what it means.
REASONS = {
    "no_context": "the item has no gold passage",
    "yes_no_answer": "the answer is yes or no: nothing to put in its place",
    "answer_has_no_word_character": "the answer holds no letter and no digit to search for",
    "answer_not_in_context": "neither the answer nor an alias stands in the gold passages",
    "substring_only": "the answer stands in the gold passages inside longer words only",
    "lookalike_only": "the answer stands in the gold passages in another case only",
    "only_other_kind_in_context": "the gold passages hold only an alias of another kind",
    "answer_is_a_clause": "the answer is a clause: no name, number or term to be replaced",
    "answer_in_question": "what would be replaced stands in the question too",
    "no_fabricated_answer": "every drawn answer collides with the item or has no words to change",
    "answer_left_in_context": "an answer would be left: it looks like another word there",
    "no_distractor_passages": "the corpus gives the item no other passages",
    "no_filler": "every sentence of the filler mentions something of the item",
}


def reason(code: str) -> str:
    """The reason as it stands in tables: the code and its meaning."""
    return f"{code}: {REASONS[code]}"


def perturb_item(item: Item, config: PerturbConfig) -> Perturbation:
    """The adversarial context of an item, or the reason why it has none.

    It depends on (item, policy, seed) alone. Raises PerturbationError where the tagger is needed
    and not installed.
    """
    context = render_passages(item.gold_passages)
    kind = answer_type(item, spacy_model=config.spacy_model)
    mentions = find_mentions(context, searched_answers(item))
    code = _obstacle(item, context, kind, mentions)
    if code:
        return _excluded(item, config, kind, context, code)
    fabrication = fabricate(item, kind, seed=config.seed)
    if fabrication is None:
        return _excluded(item, config, kind, context, "no_fabricated_answer")
    fabrication = as_asked(fabrication, mentions)
    perturbed, spans = substitute(context, mentions, fabrication, question=item.question)
    left = find_lookalikes(perturbed, item.answers)
    return Perturbation(
        item_id=item.item_id,
        policy=config.policy.value,
        seed=config.seed,
        entity_type=kind,
        answer=item.answer,
        fabricated=fabricated_answer(item, fabrication),
        spans=spans,
        residue=telling_residue(perturbed, item, fabrication, kind),
        original=context,
        perturbed=None if left else perturbed,
        ok=not left,
        reason=reason("answer_left_in_context") if left else "",
    )


def _obstacle(item: Item, context: str, kind: AnswerType, mentions: Sequence[Mention]) -> str:
    """The code of what stands in the way before anything is drawn, or an empty string."""
    if not context.strip():
        return "no_context"
    if kind is AnswerType.yes_no:
        return "yes_no_answer"
    if not answer_form(item.answer).core:
        return "answer_has_no_word_character"
    numeric = is_numeric(item, item.answer)
    if not mentions:
        return _why_not_mentioned(item, context)
    if not any(is_numeric(item, m.matched_answer) is numeric for m in mentions):
        return "only_other_kind_in_context"
    if is_clause(item, kind):
        return "answer_is_a_clause"
    replaced = list(dict.fromkeys(mention.matched_answer for mention in mentions))
    return "answer_in_question" if find_lookalikes(item.question, replaced) else ""


def _why_not_mentioned(item: Item, context: str) -> str:
    if find_lookalikes(context, item.answers):
        return "lookalike_only"
    return "substring_only" if find_inside_words(context, item.answers) else "answer_not_in_context"


def _excluded(
    item: Item, config: PerturbConfig, kind: AnswerType, context: str, code: str
) -> Perturbation:
    return Perturbation(
        item_id=item.item_id,
        policy=config.policy.value,
        seed=config.seed,
        entity_type=kind,
        answer=item.answer,
        fabricated=None,
        spans=(),
        residue=(),
        original=context,
        perturbed=None,
        ok=False,
        reason=reason(code),
    )


def fabricated_answer(item: Item, fabrication: Fabrication) -> str:
    """The fabricated answer as it is scored: with the true answer's article and capitals.

    The two answers differ in what they name and in nothing else.
    """
    form = answer_form(item.answer)
    core = fabrication.core
    if (
        form.core.isupper() and not natural_core(item).isupper()
    ):  # the corpus writes its answers in capitals
        core = core.upper()
    lead = form.lead
    words = lead.split()
    if words and fold_text(words[-1]) in ("a", "an"):
        lead = " ".join([*words[:-1], agree(words[-1], core)])
    return f"{lead} {core}".strip()


# --- arms ---------------------------------------------------------------------------------------


def build_arms(
    items: Sequence[Item], conditions: Sequence[Condition], config: PerturbConfig
) -> tuple[list[Arm], list[Perturbation]]:
    """The arms of every item under every condition, item by item, and the audit rows.

    There are audit rows where `adversarial` is among the conditions: one per item, `ok` or not.
    Raises PerturbationError where the tagger is needed and not installed.
    """
    arms: list[Arm] = []
    perturbations: list[Perturbation] = []
    for item in items:
        for condition in conditions:
            if condition is Condition.adversarial:
                perturbation = perturb_item(item, config)
                perturbations.append(perturbation)
                arms.append(_adversarial_arm(perturbation))
            else:
                arms.append(_plain_arm(item, condition, config))
    return arms, perturbations


def _adversarial_arm(perturbation: Perturbation) -> Arm:
    return Arm(
        item_id=perturbation.item_id,
        condition=Condition.adversarial,
        context=perturbation.perturbed,
        fabricated=perturbation.fabricated if perturbation.ok else None,
        ok=perturbation.ok,
        reason=perturbation.reason,
    )


def _plain_arm(item: Item, condition: Condition, config: PerturbConfig) -> Arm:
    if condition is Condition.zero:
        return Arm(item.item_id, condition, context=None)
    gold = render_passages(item.gold_passages)
    if not gold.strip():
        return Arm(item.item_id, condition, None, ok=False, reason=reason("no_context"))
    context: str | None
    why = "no_filler"
    if condition is Condition.oracle:
        context = gold
    elif condition is Condition.noise:
        context = noise_context(item, config.noise, seed=config.seed)
    elif condition is Condition.irrelevant:
        context = irrelevant_context(item, seed=config.seed)
    else:
        context, why = distractor_context(item, config.distractor), "no_distractor_passages"
    if context is None:
        return Arm(item.item_id, condition, None, ok=False, reason=reason(why))
    return Arm(item.item_id, condition, context)


# --- the set as a table -------------------------------------------------------------------------


PERTURBATION_COLUMNS = (
    "item_id",
    "policy",
    "seed",
    "entity_type",
    "answer",
    "fabricated",
    "spans",
    "context_sha256",
    "residue",
    "ok",
    "reason",
    "original",
    "perturbed",
)


def perturbation_schema() -> pa.Schema:
    """The Arrow schema of `tables/perturbations.parquet`."""
    import pyarrow as pa

    types = {"seed": pa.int64(), "ok": pa.bool_()}
    return pa.schema([(name, types.get(name, pa.string())) for name in PERTURBATION_COLUMNS])


def perturbation_rows(perturbations: Iterable[Perturbation]) -> list[dict[str, object]]:
    """The audit as rows of `tables/perturbations.parquet`; spans and residue are JSON texts."""
    return [
        {
            "item_id": p.item_id,
            "policy": p.policy,
            "seed": p.seed,
            "entity_type": p.entity_type.value,
            "answer": p.answer,
            "fabricated": p.fabricated,
            "spans": _json([_span_row(span) for span in p.spans]),
            "context_sha256": p.context_sha256,
            "residue": _json(list(p.residue)),
            "ok": p.ok,
            "reason": p.reason,
            "original": p.original,
            "perturbed": p.perturbed,
        }
        for p in perturbations
    ]


def _span_row(span: Span) -> dict[str, object]:
    return {
        "start": span.start,
        "end": span.end,
        "original": span.original,
        "replacement": span.replacement,
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
