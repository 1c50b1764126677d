"""Why an item has no context under a condition: a code, and what it means."""

from __future__ import annotations

from ncu_exp.records import AnswerType, Item, Perturbation, render_passages

REASONS = {
    "no_context": "the item has no gold passage",
    "yes_no_answer": "the answer is yes or no: nothing to put in its place",
    "answer_has_no_word_character": "the answer holds no letter and no digit to search for",
    "answer_not_in_context": "neither the answer nor an alias stands in the gold passages",
    "substring_only": "the answer stands in the gold passages inside longer words only",
    "lookalike_only": "the answer stands in the gold passages in another case only",
    "only_other_kind_in_context": "the gold passages hold only an alias of another kind",
    "answer_in_question": "what would be replaced stands in the question too",
    "no_fabricated_answer": "every drawn answer collides with the item or has no words to change",
    "no_answer_to_borrow": "no other item has an answer of the kind that collides with nothing",
    "answer_left_in_context": "an answer would be left: it looks like another word there",
    "not_in_frozen_set": "the frozen set has no row for the item",
    "no_distractor_passages": "the corpus gives the item no other passages",
    "no_filler": "every sentence of the filler mentions something of the item",
}


def reason(code: str) -> str:
    """The reason as it stands in tables: the code and its meaning."""
    return f"{code}: {REASONS[code]}"


def excluded(item: Item, code: str, *, kind: AnswerType, policy: str, seed: int) -> Perturbation:
    """The audit row of an item that has no adversarial context."""
    return Perturbation(
        item_id=item.item_id,
        policy=policy,
        seed=seed,
        entity_type=kind,
        answer=item.answer,
        fabricated=None,
        spans=(),
        residue=(),
        original=render_passages(item.gold_passages),
        perturbed=None,
        ok=False,
        reason=reason(code),
    )
