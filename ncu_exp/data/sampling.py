"""A seeded draw of items, in proportion to what the corpus offers to stratify by (pure)."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from ncu_exp.records import Item


def draw(items: Sequence[Item], limit: int, *, seed: int) -> tuple[Item, ...]:
    """`limit` of the items, in their order; all of them where there are no more.

    Strata are the items' kinds, else their answer types, else one. Each item has a rank in its
    stratum from (seed, item id) alone, and each stratum gives its first: the draw does not depend
    on the order of the rows. A larger limit keeps the smaller draw, always with one or two strata;
    with more, largest remainders can take one place from a stratum (the Alabama paradox).
    """
    strata = _strata(items)
    shares = allocate({name: len(members) for name, members in strata.items()}, limit)
    chosen = {
        item.item_id
        for name, members in strata.items()
        for item in sorted(members, key=lambda item: _rank(item, seed))[: shares[name]]
    }
    return tuple(item for item in items if item.item_id in chosen)


def allocate(sizes: Mapping[str, int], limit: int) -> dict[str, int]:
    """`limit` places in proportion to the sizes, by largest remainder (ties by name).

    Whole numbers throughout: each share is the exact quota rounded down or up. Where the limit is
    no less than the sum of the sizes, each share is its size.
    """
    total = sum(sizes.values())
    if limit >= total:
        return dict(sizes)
    shares = {name: limit * size // total for name, size in sizes.items()}
    left = limit - sum(shares.values())
    by_remainder = sorted(sizes, key=lambda name: (-(limit * sizes[name] % total), name))
    rounded_up = Counter(by_remainder[:left])
    return {name: share + rounded_up[name] for name, share in shares.items()}


def _strata(items: Sequence[Item]) -> dict[str, list[Item]]:
    by_kind = any(item.kind for item in items)
    strata: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        strata[item.kind if by_kind else item.answer_type or ""].append(item)
    return strata


def _rank(item: Item, seed: int) -> tuple[bytes, str]:
    key = f"{seed}\n{item.item_id}".encode()
    return hashlib.sha256(key).digest(), item.item_id
