"""Audit rows that were drawn once: read again for the same items, and for no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ncu_exp.config import PerturbConfig, Policy
from ncu_exp.contents import ContentStore
from ncu_exp.perturb import kept, policies
from ncu_exp.perturb.audit import perturb_items
from ncu_exp.perturb.policies import make_perturb
from ncu_exp.records import AnswerType, Item, Perturbation

MakeItem = Callable[..., Item]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ContentStore]:
    with closing(ContentStore(tmp_path / "perturbations.sqlite")) as store:
        yield store


@pytest.fixture
def items(make_item: MakeItem) -> list[Item]:
    """One that is perturbed, and one for each place where a reason may be found."""
    return [
        make_item("Ada Lovelace’s notes. A note by Lovelace.", "Ada Lovelace", item_id="ok"),
        make_item("Mary Somerville knew her.", "Mary Somerville", item_id="other"),
        make_item("It rained.", "Tonga", item_id="nowhere"),
        make_item("Kiss sang of a kiss.", "Kiss", question="who sings it", item_id="left"),
    ]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the items whose rows are drawn, in order."""
    ids: list[str] = []

    def counted(items: Sequence[Item], *args: object, **kwargs: object) -> list[Perturbation]:
        ids.extend(item.item_id for item in items)
        return perturb_items(items, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(policies, "perturb_items", counted)
    return ids


@pytest.mark.parametrize("policy", list(Policy))
def test_what_was_drawn_once_is_read(
    policy: Policy,
    items: list[Item],
    config: PerturbConfig,
    store: ContentStore,
    drawn: list[str],
) -> None:
    config = replace(config, policy=policy)
    plain = make_perturb(items, config)(items)
    assert {p.ok for p in plain} == {True, False}
    drawn.clear()
    assert make_perturb(items, config, store=store)(items[:2]) == plain[:2]
    assert make_perturb(items[::-1], config, store=store)(items) == plain
    assert drawn == [item.item_id for item in items]  # each once, the first two the first time
    assert make_perturb(items, config, store=store)(items[::-1]) == plain[::-1]
    assert len(drawn) == len(items)


def test_a_row_is_read_for_nothing_else(
    items: list[Item],
    config: PerturbConfig,
    store: ContentStore,
    drawn: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def draws(item: Item, config: PerturbConfig, among: Sequence[Item] = items) -> bool:
        drawn.clear()
        make_perturb(among, config, store=store)([item])
        return bool(drawn)

    borrowing = replace(config, policy=Policy.corpus)
    item = items[0]
    assert draws(item, config)
    assert not draws(item, config)
    assert not draws(item, config, among=items[:1])  # an invented answer knows no set
    assert draws(item, replace(config, seed=1))
    assert draws(replace(item, question="Who?"), config)
    assert draws(replace(item, aliases=("Ada",)), config)
    assert draws(replace(item, answer_type=AnswerType.person), config)
    assert draws(item, borrowing)
    assert not draws(item, borrowing)
    assert draws(item, borrowing, among=items[:2])
    monkeypatch.setattr(kept, "code_sha256", lambda *_: "another rule")
    assert draws(item, config)
    monkeypatch.setattr(kept, "draw_versions", lambda model: {"faker": "0"})
    assert draws(item, config)
