"""A seeded draw of items, in proportion to what the corpus offers to stratify by (pure)."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from ncu_exp.records import Item


def draw(items: Iterable[Item], limit: int, *, seed: int) -> list[int]:
    """The indices of `limit` of the items, ascending; of all where there are no more.

    Strata are the items' kinds, else their answer types, else one. Each item has a rank in its
    stratum from (seed, item id) alone, and each stratum gives its first: the draw does not depend
    on the order of the rows. A larger limit keeps the smaller draw, always with one or two strata;
    with more, largest remainders can take one place from a stratum (the Alabama paradox).
    """
    strata = _strata(items, seed)
    shares = allocate({name: len(members) for name, members in strata.items()}, limit)
    return sorted(
        index
        for name, members in strata.items()
        for _, index in heapq.nsmallest(shares[name], members)
    )


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


def _strata(items: Iterable[Item], seed: int) -> dict[str, list[tuple[bytes, int]]]:
    """(rank, index) of every item, by stratum."""
    by_kind: dict[str, list[tuple[bytes, int]]] = defaultdict(list)
    by_type: dict[str, list[tuple[bytes, int]]] = defaultdict(list)
    for index, item in enumerate(items):
        ranked = (hashlib.sha256(f"{seed}\n{item.item_id}".encode()).digest(), index)
        by_kind[item.kind].append(ranked)
        by_type[item.answer_type or ""].append(ranked)
    return by_kind if set(by_kind) - {""} else by_type
