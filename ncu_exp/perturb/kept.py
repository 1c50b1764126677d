"""Audit rows that were drawn once are read from a store, by the content of what they depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ncu_exp import records
from ncu_exp.config import PerturbConfig
from ncu_exp.contents import ContentStore, content_key
from ncu_exp.perturb.substitute import apply_edits
from ncu_exp.perturb.tagger import draw_versions
from ncu_exp.provenance import code_sha256
from ncu_exp.records import AnswerType, Item, Perturbation, render_passages

Perturb = Callable[[Sequence[Item]], list[Perturbation]]


def item_content(item: Item) -> list[Any]:
    """All of an item that its perturbation depends on, as JSON types."""
    passages = [[p.title, p.text, p.is_gold] for p in item.passages]
    answers = [item.answer, *item.aliases]
    return [item.item_id, item.question, answers, passages, item.answer_type]


class Kept:
    """A way to perturb that looks into a store first, and keeps there what it had to draw.

    A row depends on the item, on the policy and its seed, on the tagger, on the versions of the
    libraries and of this package's code, and on `pool`, the digest of the set that is borrowed
    from.
    """

    def __init__(
        self, perturb: Perturb, store: ContentStore, config: PerturbConfig, *, pool: str = ""
    ) -> None:
        self._perturb, self._store = perturb, store
        self._policy, self._seed = config.policy.value, config.seed
        versions = draw_versions(config.spacy_model)
        self._origin = ", ".join(f"{name} {version}" for name, version in versions.items())
        code = code_sha256(Path(__file__).parent, Path(records.__file__))
        self._scope = [code, versions, self._policy, self._seed, pool]

    def __call__(self, items: Sequence[Item]) -> list[Perturbation]:
        keys = [content_key(self._scope, item_content(item)) for item in items]
        values = self._store.read(keys)
        unknown = [item for item, key in zip(items, keys, strict=True) if key not in values]
        drawn = {made.item_id: _value(made) for made in self._perturb(unknown)} if unknown else {}
        new = {
            key: drawn[item.item_id]
            for item, key in zip(items, keys, strict=True)
            if key not in values
        }
        if new:
            self._store.write(new, origin=self._origin)
        values |= new
        return [self._row(item, values[key]) for item, key in zip(items, keys, strict=True)]

    def _row(self, item: Item, value: dict[str, Any]) -> Perturbation:
        original = render_passages(item.gold_passages)
        perturbed, spans = apply_edits(original, value["edits"])
        return Perturbation(
            item_id=item.item_id,
            policy=self._policy,
            seed=self._seed,
            entity_type=AnswerType(value["type"]),
            answer=item.answer,
            fabricated=value["fabricated"],
            spans=spans,
            residue=tuple(value["residue"]),
            original=original,
            perturbed=None if value["reason"] else perturbed,
            ok=not value["reason"],
            reason=value["reason"],
        )


def _value(made: Perturbation) -> dict[str, Any]:
    """What cannot be read off the item."""
    return {
        "type": made.entity_type.value,
        "fabricated": made.fabricated,
        "edits": [[span.start, span.end, span.replacement] for span in made.spans],
        "residue": list(made.residue),
        "reason": made.reason,
    }
