"""Frozen sets: read back as they were written, and refused where they do not hold together."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ncu_exp.config import PerturbConfig
from ncu_exp.errors import PerturbationError
from ncu_exp.perturb.audit import perturb_item
from ncu_exp.perturb.policies import make_perturb
from ncu_exp.perturb.table import perturbation_rows, perturbation_schema
from ncu_exp.records import Item

MakeItem = Callable[..., Item]


@pytest.fixture
def items(make_item: MakeItem) -> list[Item]:
    return [
        make_item("Plato wrote it; Plato's pupils copied it.", "Plato", item_id="a"),
        make_item("It was in 1966.", "1966", item_id="b"),
        make_item("Nothing of the kind.", "yes", question="Is it so?", item_id="c"),
    ]


def write(path: Path, rows: list[dict[str, Any]], config: PerturbConfig) -> PerturbConfig:
    """A table of these rows, in row groups of one, and the configuration that reads it."""
    schema = perturbation_schema(spacy_model=config.spacy_model)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=1)
    return replace(config, path=str(path))


def rows_of(items: list[Item], config: PerturbConfig) -> list[dict[str, Any]]:
    return perturbation_rows(perturb_item(item, config) for item in items)


def test_a_frozen_set_gives_what_it_was_made_of(
    items: list[Item], config: PerturbConfig, tmp_path: Path
) -> None:
    made = [perturb_item(item, config) for item in items]
    frozen = write(tmp_path / "set.parquet", perturbation_rows(made), config)
    perturb = make_perturb(items, replace(frozen, seed=7))  # the seed of the set counts
    assert perturb(items[::-1]) == made[::-1]


def test_what_the_set_lacks_is_left_out_with_the_reason(
    items: list[Item], config: PerturbConfig, tmp_path: Path
) -> None:
    frozen = write(tmp_path / "set.parquet", rows_of(items[1:], config), config)
    (made,) = make_perturb(items, frozen)(items[:1])
    assert not made.ok
    assert made.reason.startswith("not_in_frozen_set: ")


def changed(rows: list[dict[str, Any]], **values: Any) -> list[dict[str, Any]]:
    return [{**rows[0], **values}, *rows[1:]]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"perturbed": "Something else."}, "has spans that do not make its perturbed context"),
        ({"spans": "[]"}, "has spans that do not make its perturbed context"),
        ({"context_sha256": "0" * 64}, "has a context_sha256 that is not that of its context"),
        ({"fabricated": None}, "is ok, and has no fabricated answer or no perturbed context"),
        ({"item_id": "b"}, "stands there twice"),
    ],
)
def test_a_row_that_does_not_hold_together_is_refused(
    values: dict[str, Any], what: str, items: list[Item], config: PerturbConfig, tmp_path: Path
) -> None:
    rows = changed(rows_of(items, config), **values)
    frozen = write(tmp_path / "set.parquet", rows, config)
    with pytest.raises(PerturbationError, match=rf"item '\w' {what}"):
        make_perturb(items, frozen)


def test_a_set_of_another_data_set_is_refused(
    items: list[Item], config: PerturbConfig, make_item: MakeItem, tmp_path: Path
) -> None:
    frozen = write(tmp_path / "set.parquet", rows_of(items, config), config)
    perturb = make_perturb(items, frozen)
    other = make_item("Another text about Plato.", "Plato", item_id="a")
    with pytest.raises(PerturbationError, match="item 'a' was perturbed in another gold context"):
        perturb([other])
    with pytest.raises(PerturbationError, match="item 'a' has the answer 'Plato', not 'Socrates'"):
        perturb([replace(items[0], answer="Socrates")])
    fabricated = perturb(items[:1])[0].fabricated
    with pytest.raises(PerturbationError, match="item 'a' still has an answer"):
        perturb([replace(items[0], aliases=(str(fabricated),))])


def test_what_is_no_table_of_perturbations_is_refused(
    config: PerturbConfig, tmp_path: Path
) -> None:
    with pytest.raises(PerturbationError, match="cannot be read"):
        make_perturb([], replace(config, path=str(tmp_path / "missing.parquet")))
    (tmp_path / "text.parquet").write_text("no table")
    with pytest.raises(PerturbationError, match="cannot be read"):
        make_perturb([], replace(config, path=str(tmp_path / "text.parquet")))
    pq.write_table(pa.table({"item_id": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(PerturbationError, match="lacks the columns answer, context_sha256"):
        make_perturb([], replace(config, path=str(tmp_path / "other.parquet")))


def test_other_versions_are_said(
    items: list[Item],
    config: PerturbConfig,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ncu_exp.perturb import frozen, tagger

    path = write(tmp_path / "set.parquet", rows_of(items, config), config)
    make_perturb(items, path)
    assert caplog.text == ""
    here = tagger.draw_versions(config.spacy_model)
    monkeypatch.setattr(frozen, "draw_versions", lambda model: {**here, "faker": "99.0"})
    with caplog.at_level(logging.WARNING):
        make_perturb(items, path)
    assert f"drawn with faker {here['faker']}; here are faker 99.0" in caplog.text
