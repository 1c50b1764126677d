"""What was done to each item: the arms of every condition, and an audit row per substitution."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from ncu_exp.config import PerturbConfig
from ncu_exp.perturb.entities import NUMERIC_TYPES, answer_type
from ncu_exp.perturb.fabricate import Fabrication, fabricate, searched_answers
from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.forms import answer_form, natural_core
from ncu_exp.perturb.mentions import Mention, find_inside_words, find_lookalikes, find_mentions
from ncu_exp.perturb.residue import telling_residue
from ncu_exp.perturb.substitute import agree, anchor, substitute
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

# Why an item has no adversarial context: a code, and what it means. A reason is "code: meaning".
REASONS = {
    "no_context": "the item has no gold passage",
    "yes_no_answer": "the answer is yes or no: nothing to put in its place",
    "answer_has_no_word_character": "the answer holds no letter and no digit to search for",
    "answer_not_in_context": "neither the answer nor an alias stands in the gold passages",
    "substring_only": "the answer stands in the gold passages inside longer words only",
    "lookalike_only": "the answer stands in the gold passages in another case only",
    "answer_in_question": "what would be replaced stands in the question too",
    "no_fabricated_answer": "every drawn answer collides with the item or has no words to change",
    "answer_left_in_context": "an answer would be left: it looks like another word there",
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
    is_numeric = kind in NUMERIC_TYPES
    fabrication = anchor(fabrication, mentions, is_numeric=is_numeric)
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
