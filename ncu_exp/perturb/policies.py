"""Where the audit rows of a run come from: drawn, borrowed, kept, or read from a frozen set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

from ncu_exp.config import PerturbConfig, Policy
from ncu_exp.contents import ContentStore
from ncu_exp.perturb.audit import perturb_items
from ncu_exp.perturb.borrow import Pool
from ncu_exp.perturb.digests import SetDigest
from ncu_exp.perturb.entities import answer_types
from ncu_exp.perturb.frozen import FrozenSet
from ncu_exp.perturb.kept import Kept, Perturb, item_content
from ncu_exp.records import AnswerType, Item, Perturbation

Watch = Callable[[Iterable[Item]], Iterable[Item]]
_BLOCK = 256  # items whose answers are typed at once


def make_perturb(
    items: Sequence[Item],
    config: PerturbConfig,
    *,
    store: ContentStore | None = None,
    watch: Watch = iter,
) -> Perturb:
    """What gives the audit rows of any of the items, in their order.

    Under `policy=corpus` they depend on the set of items, since these borrow from each other; the
    set is read once more, through `watch`, when the first row is drawn. Rows that the store knows
    are not drawn. Raises PerturbationError where the tagger is needed and not installed, or `path`
    holds no such set.
    """
    if config.path is not None:
        frozen = FrozenSet(Path(config.path).expanduser(), spacy_model=config.spacy_model)
        return lambda asked: [frozen.perturb(item) for item in asked]
    if config.policy is not Policy.corpus:
        perturb: Perturb = partial(perturb_items, config=config)
        return perturb if store is None else Kept(perturb, store, config)

    @cache
    def pool() -> Pool:
        return Pool(_typed(watch(items), config.spacy_model))

    def borrow(asked: Sequence[Item]) -> list[Perturbation]:
        return perturb_items(asked, config, pool=pool())

    return borrow if store is None else Kept(borrow, store, config, pool=_digest(items))


def _typed(items: Iterable[Item], spacy_model: str) -> Iterator[tuple[Item, AnswerType]]:
    block: list[Item] = []
    for item in items:
        block.append(item)
        if len(block) == _BLOCK:
            yield from zip(block, answer_types(block, spacy_model=spacy_model), strict=True)
            block = []
    yield from zip(block, answer_types(block, spacy_model=spacy_model), strict=True)


def _digest(items: Iterable[Item]) -> str:
    digest = SetDigest()
    for item in items:
        digest.add(item_content(item))
    return digest.hexdigest()
