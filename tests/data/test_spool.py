"""Items on disk behave as a sequence of the items themselves."""

from __future__ import annotations

import pytest

from ncu_exp.data import spool
from ncu_exp.data.spool import SpooledItems
from ncu_exp.records import AnswerType, Item, Passage


def make_items(n: int) -> list[Item]:
    return [
        Item(
            item_id=f"i{k}",
            corpus="local",
            question="q?",
            answer="a",
            aliases=("b",),
            passages=(Passage("title", "text \u2028 \ud800" * k),),
            answer_type=AnswerType.person,
        )
        for k in range(n)
    ]


@pytest.mark.parametrize("in_memory", [1, 2**20])
def test_items_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY_BYTES", in_memory)
    items, spooled = make_items(20), SpooledItems()
    for item in items:
        spooled.append(item)
    assert len(spooled) == 20
    assert list(spooled) == items
    assert spooled[3] == items[3]
    assert spooled[-1] == items[-1]
    assert spooled[5:9] == items[5:9]
    some = spooled.subset([7, 2])
    assert list(some) == [items[7], items[2]]
    del spooled
    assert some[0] == items[7]
    with pytest.raises(IndexError):
        some[2]


def test_two_readers_do_not_disturb_each_other() -> None:
    items, spooled = make_items(6), SpooledItems()
    for item in items:
        spooled.append(item)
    assert list(zip(spooled, spooled.subset(range(6)), strict=True)) == list(
        zip(items, items, strict=True)
    )
    reader = iter(spooled)
    next(reader)
    spooled.append(items[0])
    assert next(reader) == items[1]
