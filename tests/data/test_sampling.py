"""The stratified draw: its shares, and what it may depend on."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_exp.data.sampling import allocate
from ncu_exp.data.sampling import draw as draw_indices
from ncu_exp.records import AnswerType, Item

SIZES = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 40), min_size=1)


def make_items(sizes: dict[str, int]) -> list[Item]:
    """Items of the given kinds, mixed."""
    items = [
        Item(item_id=f"{kind}{n}", corpus="local", question="q?", answer="a", kind=kind)
        for kind, size in sizes.items()
        for n in range(size)
    ]
    random.Random(0).shuffle(items)
    return items


def draw(items: list[Item], limit: int, *, seed: int) -> list[Item]:
    return [items[index] for index in draw_indices(items, limit, seed=seed)]


def test_allocate_by_hand() -> None:
    # quotas of 10 from 6+5+2: 4.615, 3.846, 1.538
    assert allocate({"a": 6, "b": 5, "c": 2}, 10) == {"a": 5, "b": 4, "c": 1}
    # 6 from 36+15+12: 3.43, 1.43, 1.14 -> one place left; a and b tie, the name decides
    assert allocate({"b": 15, "c": 12, "a": 15}, 5) == {"a": 2, "b": 2, "c": 1}
    assert allocate({"b": 2, "a": 2}, 1) == {"a": 1, "b": 0}
    assert allocate({"a": 2}, 9) == {"a": 2}


@given(SIZES, st.integers(1, 250))
def test_every_share_is_its_quota_rounded(sizes: dict[str, int], limit: int) -> None:
    total = sum(sizes.values())
    shares = allocate(sizes, limit)
    assert sum(shares.values()) == min(limit, total)
    for name, size in sizes.items():
        assert abs(shares[name] - min(limit, total) * size / total) < 1
        assert shares[name] <= size


@given(SIZES, st.integers(1, 250), st.integers(0, 3))
def test_draw_has_the_shares_and_the_file_order(
    sizes: dict[str, int], limit: int, seed: int
) -> None:
    items = make_items(sizes)
    drawn = draw(items, limit, seed=seed)
    assert Counter(item.kind for item in drawn) == Counter(allocate(sizes, limit))
    positions = [items.index(item) for item in drawn]
    assert positions == sorted(positions)


@given(SIZES, st.integers(1, 100), st.randoms(use_true_random=False))
def test_draw_does_not_depend_on_the_order_of_rows(
    sizes: dict[str, int], limit: int, generator: random.Random
) -> None:
    items = make_items(sizes)
    shuffled = generator.sample(items, len(items))
    assert set(draw(items, limit, seed=1)) == set(draw(shuffled, limit, seed=1))


@given(SIZES, st.integers(1, 100))
def test_larger_limit_keeps_the_smaller_draw(sizes: dict[str, int], limit: int) -> None:
    items = make_items(sizes)
    small, large = draw(items, limit, seed=1), draw(items, limit + 1, seed=1)
    lost = Counter(item.kind for item in set(small) - set(large))
    before, after = allocate(sizes, limit), allocate(sizes, limit + 1)
    assert lost == Counter({k: before[k] - after[k] for k in sizes if after[k] < before[k]})
    if len(sizes) <= 2:
        assert not lost


def test_seed_changes_the_draw() -> None:
    items = make_items({"a": 30, "b": 30})
    draws = {frozenset(i.item_id for i in draw(items, 10, seed=seed)) for seed in range(5)}
    assert len(draws) == 5


def test_draw_is_the_same_in_every_process() -> None:
    """A frozen value: a change of it would change the items of every published run."""
    items = make_items({"a": 6, "b": 3})
    assert {item.item_id for item in draw(items, 3, seed=0)} == {"a1", "a2", "b1"}


@pytest.mark.parametrize("limit", [2, 4])
def test_answer_types_stratify_where_there_are_no_kinds(limit: int) -> None:
    types = [AnswerType.person] * 4 + [AnswerType.year] * 4
    items = [
        Item(item_id=str(n), corpus="local", question="q?", answer="a", answer_type=answer_type)
        for n, answer_type in enumerate(types)
    ]
    counts = Counter(item.answer_type for item in draw(items, limit, seed=0))
    assert counts == {AnswerType.person: limit // 2, AnswerType.year: limit // 2}
