"""Where the audit rows of a run come from: drawn, borrowed, or read from a frozen set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from ncu_exp.config import PerturbConfig, Policy
from ncu_exp.perturb.audit import perturb_item
from ncu_exp.perturb.borrow import Pool
from ncu_exp.perturb.entities import answer_type
from ncu_exp.perturb.frozen import FrozenSet
from ncu_exp.records import Item, Perturbation

Perturb = Callable[[Item], Perturbation]


def make_perturb(items: Iterable[Item], config: PerturbConfig) -> Perturb:
    """What gives each of the items its audit row.

    Under `policy=corpus` it depends on the set of items, since they borrow from each other. Raises
    PerturbationError where the tagger is needed and not installed, or `path` holds no such set.
    """
    if config.path is not None:
        path = Path(config.path).expanduser()
        return FrozenSet(path, spacy_model=config.spacy_model).perturb
    if config.policy is Policy.corpus:
        typed = ((item, answer_type(item, spacy_model=config.spacy_model)) for item in items)
        return partial(perturb_item, config=config, pool=Pool(typed))
    return partial(perturb_item, config=config)
