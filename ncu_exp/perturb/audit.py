"""What was done to each item: the arms of every condition, and an audit row per substitution."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from ncu_exp.config import PerturbConfig
from ncu_exp.perturb.borrow import Pool
from ncu_exp.perturb.entities import answer_types, natural_core
from ncu_exp.perturb.fabricate import fabricate
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import answer_form
from ncu_exp.perturb.inventors import (
    Fabrication,
    answers_to_hide,
    is_numeric,
    searched_answers,
)
from ncu_exp.perturb.mentions import Mention, find_inside_words, find_lookalikes, find_mentions
from ncu_exp.perturb.reasons import excluded, reason
from ncu_exp.perturb.residue import telling_residue
from ncu_exp.perturb.substitute import agree, as_asked, substitute
from ncu_exp.perturb.surround import distractor_context, irrelevant_context, noise_context
from ncu_exp.records import (
    AnswerType,
    Arm,
    Condition,
    Item,
    Perturbation,
    render_passages,
)


def perturb_item(item: Item, config: PerturbConfig, *, pool: Pool | None = None) -> Perturbation:
    """The adversarial context of an item, or the reason why it has none.

    It depends on (item, policy, seed) alone, and where the policy borrows on the pool, which has to
    hold the item. Raises PerturbationError where the tagger is needed and not installed.
    """
    return perturb_items([item], config, pool=pool)[0]


def perturb_items(
    items: Sequence[Item], config: PerturbConfig, *, pool: Pool | None = None
) -> list[Perturbation]:
    """As `perturb_item`, for each of many items; the tagger reads them all at once."""
    if pool is None:
        kinds = answer_types(items, spacy_model=config.spacy_model)
    else:
        kinds = [pool.type_of(item) for item in items]
    return [
        _perturb(item, kind, config, pool=pool) for item, kind in zip(items, kinds, strict=True)
    ]


def _perturb(
    item: Item, kind: AnswerType, config: PerturbConfig, *, pool: Pool | None
) -> Perturbation:
    context = render_passages(item.gold_passages)
    mentions = find_mentions(context, searched_answers(item))
    found = {mention.matched_answer for mention in mentions}
    asked = {answer for answer in found if find_lookalikes(item.question, [answer])}
    code = _obstacle(item, context, kind, mentions, asked)
    mentions = [m for m in mentions if m.matched_answer not in asked]
    policy, seed = config.policy.value, config.seed
    if code:
        return excluded(item, code, kind=kind, policy=policy, seed=seed)
    fabrication = fabricate(item, kind, seed=seed, pool=pool)
    if fabrication is None:
        code = "no_answer_to_borrow" if pool else "no_fabricated_answer"
        return excluded(item, code, kind=kind, policy=policy, seed=seed)
    fabrication = as_asked(fabrication, mentions)
    perturbed, spans = substitute(context, mentions, fabrication, question=item.question)
    left = find_lookalikes(perturbed, answers_to_hide(item))
    return Perturbation(
        item_id=item.item_id,
        policy=policy,
        seed=seed,
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


def _obstacle(
    item: Item,
    context: str,
    kind: AnswerType,
    mentions: Sequence[Mention],
    asked: Collection[str],
) -> str:
    """The code of what stands in the way before anything is drawn, or an empty string.

    `asked` are those of the mentioned answers that the question names itself.
    """
    if not context.strip():
        return "no_context"
    if kind is AnswerType.yes_no:
        return "yes_no_answer"
    core = fold_text(answer_form(item.answer).core)
    if not core:
        return "answer_has_no_word_character"
    numeric = is_numeric(item, item.answer)
    if not mentions:
        return _why_not_mentioned(item, context)
    if not any(is_numeric(item, m.matched_answer) is numeric for m in mentions):
        return "only_other_kind_in_context"
    is_asked = any(fold_text(answer_form(answer).core) == core for answer in asked)
    nothing_else = all(mention.matched_answer in asked for mention in mentions)
    return "answer_in_question" if is_asked or nothing_else else ""


def _why_not_mentioned(item: Item, context: str) -> str:
    if find_lookalikes(context, item.answers):
        return "lookalike_only"
    return "substring_only" if find_inside_words(context, item.answers) else "answer_not_in_context"


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
        lead = " ".join([*words[:-1], agree(words[-1], fabrication.core)])
    return f"{lead} {core}".strip()


# --- arms ---------------------------------------------------------------------------------------


def build_arms(
    items: Sequence[Item],
    conditions: Sequence[Condition],
    config: PerturbConfig,
    *,
    perturb: Callable[[Sequence[Item]], list[Perturbation]] | None = None,
) -> tuple[list[Arm], list[Perturbation]]:
    """The arms of every item under every condition, item by item, and the audit rows.

    There are audit rows where `adversarial` is among the conditions: one per item, `ok` or not.
    `perturb` gives them, by default `perturb_items`.
    Raises PerturbationError where the tagger is needed and not installed.
    """
    perturbations: list[Perturbation] = []
    if Condition.adversarial in conditions:
        perturbations = (perturb or partial(perturb_items, config=config))(items)
    arms: list[Arm] = []
    for number, item in enumerate(items):
        for condition in conditions:
            if condition is Condition.adversarial:
                arms.append(_adversarial_arm(perturbations[number]))
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
