"""The options of the `dataset` group: where each corpus comes from, and its items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

from ncu_exp.config import Corpus, DatasetConfig, GoldContext, OnError, parse_shard
from ncu_exp.data import schemas
from ncu_exp.data.hub import read_hub, read_web_file
from ncu_exp.data.local import local_schema
from ncu_exp.data.readers import read_file
from ncu_exp.data.rows import Row, RowProblem, in_one_line
from ncu_exp.data.sampling import draw
from ncu_exp.data.schemas import Schema
from ncu_exp.data.spool import SpooledItems
from ncu_exp.errors import DataError
from ncu_exp.records import Item


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A row left out under `dataset.on_error=skip`; `row` counts from 1.

    `field` is "" where the row could not be read at all.
    """

    row: int
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class LoadedItems:
    """The items of a job and where they came from.

    The items are on disk where they are many. `total` counts the rows of the source, those left
    out and those not drawn included. `drawn` are the items of all shards, and `sha256` is over
    their content, in their order: it is the same in every shard.
    """

    items: Sequence[Item] = field(compare=False)  # `sha256` and the shard speak for them
    drawn: Sequence[Item] = field(compare=False)
    skipped: tuple[SkippedRow, ...]
    total: int
    sha256: str
    source: str


def load_items(config: DatasetConfig) -> LoadedItems:
    """The items that a dataset configuration names, drawn down to `limit`, in file order.

    Of a shard, every so many'th of them: strata and lengths are spread over the shards.

    Every row of the source is checked, drawn or not. Raises DataError for a source that cannot be
    read, for a row that gives no item (with `on_error=fail`) and where no row does; NetworkError
    where the source is on the network and does not answer, and where the shard has no item.
    """
    schema = _schema(config)
    source, rows = _source(config)
    collected = _collect(schema.rows(rows), _item_maker(config, schema), on_error=config.on_error)
    _check(collected, schema, source)
    drawn = items = collected.items
    if config.limit is not None:
        drawn = items = drawn.subset(draw(drawn, config.limit, seed=config.seed))
    if config.shard is not None:
        part, parts = parse_shard(config.shard)
        items = drawn.subset(range(part, len(drawn), parts))
        if not items:
            raise DataError(
                f"dataset.shard={config.shard} has no item: there are {len(drawn)} to share out."
            )
    return LoadedItems(
        items=items,
        drawn=drawn,
        skipped=tuple(collected.skipped),
        total=collected.total,
        sha256=content_sha256(drawn),
        source=source,
    )


def content_sha256(items: Iterable[Item]) -> str:
    """Hex sha256 of the items as canonical JSON, one per line."""
    digest = hashlib.sha256()
    for item in items:
        line = json.dumps(asdict(item), sort_keys=True, separators=(",", ":"))
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def _schema(config: DatasetConfig) -> Schema:
    if config.name is Corpus.local:
        return local_schema(config.columns)
    return {
        Corpus.sample: schemas.SAMPLE,
        Corpus.nq: schemas.NQ,
        Corpus.triviaqa: schemas.TRIVIAQA,
        Corpus.hotpotqa: schemas.HOTPOTQA,
        Corpus.squad: schemas.SQUAD,
    }[config.name]


def _source(config: DatasetConfig) -> tuple[str, Iterator[Row]]:
    """A name for the source, and its rows: the user's file, the bundled one, the web, the hub."""
    if config.path is not None:
        return config.path, read_file(Path(config.path).expanduser())
    if config.name is Corpus.sample:
        return "bundled sample", _bundled_rows()
    if config.hub_file is not None and config.context is GoldContext.gold:
        return config.hub_file, read_web_file(config.hub_file)
    if config.hub_id is not None:
        parts = (config.hub_id, config.hub_config, config.split, config.revision)
        return "hub:" + ":".join(part for part in parts if part), read_hub(config)
    raise DataError(
        f"dataset={config.name.value} has no source: set dataset.path=FILE "
        "(JSONL, JSON, CSV or Parquet) or dataset.hub_id=ID."
    )


def _bundled_rows() -> Iterator[Row]:
    folder = files("ncu_exp.data") / "sample"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".jsonl"))
    for name in names:
        with as_file(folder / name) as path:
            yield from read_file(path)


def _item_maker(config: DatasetConfig, schema: Schema) -> Callable[[Row], Item]:
    if config.context is GoldContext.template:
        return partial(schemas.template_item, schema)
    return partial(schemas.corpus_item, schema)


@dataclass(slots=True)
class _Collected:
    items: SpooledItems = field(default_factory=SpooledItems)
    skipped: list[SkippedRow] = field(default_factory=list)
    total: int = 0
    columns: set[str] = field(default_factory=set)


def _collect(rows: Iterator[Row], make: Callable[[Row], Item], *, on_error: OnError) -> _Collected:
    """Rows to items; the one place where a row's problem becomes an error or a skipped row."""
    collected = _Collected()
    row_of_id: dict[str, int] = {}
    for row in rows:
        collected.total += 1
        collected.columns.update(row.fields)
        try:
            item = _make_distinct(row, make, row_of_id=row_of_id)
        except RowProblem as problem:
            if on_error is OnError.fail:
                raise DataError(
                    f"{row.place}, row {row.number}, {problem}. Mend the row, or leave such rows "
                    "out (they are counted and listed) with dataset.on_error=skip."
                ) from None
            collected.skipped.append(SkippedRow(row.number, problem.field, problem.reason))
        else:
            collected.items.append(item)
    return collected


def _make_distinct(row: Row, make: Callable[[Row], Item], *, row_of_id: dict[str, int]) -> Item:
    """The item of a row; results are kept per item id, so that an id must not come twice."""
    if row.malformed:
        raise RowProblem("", row.malformed)
    item = make(row)
    if item.item_id in row_of_id:
        first = row_of_id[item.item_id]
        raise RowProblem("id", f"'{item.item_id}' is the id of row {first} already")
    row_of_id[item.item_id] = row.number
    return item


def _check(collected: _Collected, schema: Schema, source: str) -> None:
    if collected.total == 0:
        raise DataError(f"{source} holds no rows.")
    for key, column in schema.some_row_has:
        if column not in collected.columns:
            columns = in_one_line(", ".join(sorted(collected.columns)))
            raise DataError(f"{source}: no row has {key}={column}; the columns are: {columns}.")
    if not collected.items:
        first = collected.skipped[0]
        raise DataError(
            f"{source}: none of the {collected.total} rows gives an item. "
            f"Row {first.row}, {RowProblem(first.field, first.reason)}."
        )
