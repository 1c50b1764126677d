"""A run's table on disk: written by row groups, read by columns or by items, shown in part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncu_exp.tables import DTYPES

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

MEASURED = (
    "item_id",
    "condition",
    "continuation",
    "status",
    "reason",
    "estimator",
    "n_tokens",
    "n_censored",
    "mean_logprob_lower",
    "mean_logprob_upper",
    "mean_logprob",
    "surprisal_nats",
    "em",
    "f1",
    "cus",
    "ncu",
    "ncu_lower",
    "ncu_upper",
)

# What tells that two runs asked the same of an item.
ASKED = ("question", "answer", "text", "context_sha256")

PREVIEW_COLUMNS = (
    "item_id",
    "condition",
    "continuation",
    "question",
    "text",
    "greedy_text",
    "surprisal_nats",
    "ncu",
    "ncu_lower",
    "ncu_upper",
    "em",
    "f1",
    "status",
    "reason",
)
PREVIEW_ROWS = 200
_PREVIEW_CHARACTERS = 300  # of a cell: 200 rows stay below 0.5 MB, MLflow's page fails above 2 MB


def parquet_schema() -> pa.Schema:
    """The Arrow schema of `DTYPES`: `table.to_parquet(path, index=False, schema=...)`.

    Without it a table with no scored row has its list columns written with the null type.
    """
    import pyarrow as pa

    arrow = {
        "string": pa.string(),
        "Int64": pa.int64(),
        "float64": pa.float64(),
        "boolean": pa.bool_(),
    }
    floats = ("token_logprobs", "token_logprobs_lower", "token_logprobs_upper")
    lists = {"token_ids": pa.list_(pa.int64()), **dict.fromkeys(floats, pa.list_(pa.float64()))}
    return pa.schema([(name, lists.get(name) or arrow[dtype]) for name, dtype in DTYPES.items()])


class ParquetAppender:
    """A Parquet file that grows by row groups; under its own name only when it is whole."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._part = path, path.with_name(f"{path.name}.part")
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None

    def append(self, frame: pd.DataFrame) -> None:
        import pyarrow as pa

        self._write(pa.Table.from_pandas(frame, schema=self._schema, preserve_index=False))

    def _write(self, rows: pa.Table) -> None:
        import pyarrow.parquet as pq

        if self._writer is None:
            # The first rows bring the types of pandas with them.
            # With check sums, so that a damaged table is an error and never other numbers.
            self._writer = pq.ParquetWriter(self._part, rows.schema, write_page_checksum=True)
        self._writer.write_table(rows)

    def close(self) -> None:
        """The file is whole."""
        if self._writer is None:
            self._write(self._schema.empty_table())
        assert self._writer is not None
        self._writer.close()
        self._part.replace(self._path)

    def discard(self) -> None:
        """The file will not be whole."""
        if self._writer is not None:
            with suppress(OSError):  # a disk that is full has no room for its last bytes either
                self._writer.close()
            self._part.unlink(missing_ok=True)


def read_measured(path: Path) -> pd.DataFrame:
    """What metrics and figures need of a run's table: a few dozen bytes for each row.

    Texts that repeat are categories; there are no token lists, questions or answers.
    """
    return _read_columns(path, MEASURED)


def read_compared(path: Path) -> pd.DataFrame:
    """What a comparison needs of a run's table: its measures, and what was asked of each item.

    Raises KeyError of a table that an older version wrote.
    """
    return _read_columns(path, (*MEASURED, *ASKED))


def _read_columns(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    import pyarrow.parquet as pq

    missing = set(columns) - set(pq.read_schema(path).names)
    if missing:
        raise KeyError(f"{path.name} has no column {', '.join(sorted(missing))}")
    texts = [name for name in columns if DTYPES[name] == "string"]
    rows = pq.read_table(
        path, columns=list(columns), read_dictionary=texts, page_checksum_verification=True
    )
    table: pd.DataFrame = rows.to_pandas(ignore_metadata=True, self_destruct=True)
    return table


def read_rows(path: Path, item_ids: Collection[str]) -> pd.DataFrame:
    """The rows of some items, whole."""
    import pandas as pd

    chosen: pd.DataFrame = pd.read_parquet(
        path, filters=[("item_id", "in", list(item_ids))], page_checksum_verification=True
    )
    return chosen


def read_first_rows(path: Path, rows: int = PREVIEW_ROWS) -> pd.DataFrame:
    """The first rows of a run's table, whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        batch = next(file.iter_batches(batch_size=rows), None)
        found = pa.Table.from_batches([batch] if batch else [], schema=file.schema_arrow)
    table: pd.DataFrame = found.to_pandas()
    return table


def preview(table: pd.DataFrame, rows: int = PREVIEW_ROWS) -> dict[str, list[Any]]:
    """The first rows and the readable columns, JSON-safe, in MLflow's table format.

    Missing values are None; long texts are cut, with an ellipsis.
    """
    shown = table.loc[:, list(PREVIEW_COLUMNS)].head(rows)
    data = [[_cell(value) for value in row] for row in shown.itertuples(index=False)]
    return {"columns": list(PREVIEW_COLUMNS), "data": data}


def _cell(value: Any) -> Any:
    import pandas as pd

    if pd.isna(value):
        return None
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, str) and len(value) > _PREVIEW_CHARACTERS:
        return value[:_PREVIEW_CHARACTERS] + "…"
    return value
