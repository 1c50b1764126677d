"""A frozen set: the perturbed contexts of an earlier run, or of somebody else, read and checked."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncu_exp.errors import PerturbationError
from ncu_exp.perturb.inventors import answers_to_hide
from ncu_exp.perturb.mentions import find_lookalikes
from ncu_exp.perturb.reasons import excluded
from ncu_exp.perturb.substitute import apply_edits
from ncu_exp.perturb.table import (
    PERTURBATION_COLUMNS,
    VERSIONS_KEY,
    perturbation_of,
    spans_of,
)
from ncu_exp.perturb.tagger import draw_versions
from ncu_exp.records import AnswerType, Item, Perturbation, render_passages, sha256_text

if TYPE_CHECKING:
    import pyarrow.parquet as pq

log = logging.getLogger(__name__)


class FrozenSet:
    """`tables/perturbations.parquet` of a run, as a source of audit rows.

    Every row is checked when it is opened: that it is whole, that its spans make the perturbed
    context out of the original one, and that its hash is that of the context. Raises
    PerturbationError for a file that is no such table, and for a row that does not hold together.
    """

    def __init__(self, path: Path, *, spacy_model: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path = path
        try:
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
        except (OSError, pa.ArrowInvalid) as error:
            raise self._unreadable(error) from None
        missing = set(PERTURBATION_COLUMNS) - set(self._file.schema_arrow.names)
        if missing:
            raise PerturbationError(
                f"perturb.path={path} is no table of perturbations: it lacks the columns "
                f"{', '.join(sorted(missing))}. A run leaves one in tables/perturbations.parquet."
            )
        self._place: dict[str, tuple[int, int]] = {}  # row group, row
        for group in range(self._file.num_row_groups):
            for number, row in enumerate(self._read_group(group)):
                if row["item_id"] in self._place:
                    raise self._broken(row, "stands there twice")
                self._check(row)
                self._place[row["item_id"]] = group, number
        self._group = lru_cache(maxsize=2)(self._read_group)
        _say_other_versions(self._file.schema_arrow.metadata or {}, spacy_model)

    def _check(self, row: Mapping[str, Any]) -> None:
        """Whether a row holds together."""
        if not row["ok"]:
            return
        if not row["fabricated"] or row["perturbed"] is None:
            raise self._broken(row, "is ok, and has no fabricated answer or no perturbed context")
        edits = [(s.start, s.end, s.replacement) for s in spans_of(row)]
        made, spans = apply_edits(row["original"], edits)
        if made != row["perturbed"] or spans != spans_of(row):
            raise self._broken(row, "has spans that do not make its perturbed context")
        if sha256_text(made) != row["context_sha256"]:
            raise self._broken(row, "has a context_sha256 that is not that of its context")

    def _broken(self, row: Mapping[str, Any], what: str) -> PerturbationError:
        return PerturbationError(f"perturb.path={self._path}: item '{row['item_id']}' {what}.")

    def _unreadable(self, error: Exception) -> PerturbationError:
        return PerturbationError(f"perturb.path={self._path} cannot be read: {error}")

    def _read_group(self, group: int) -> list[dict[str, Any]]:
        import pyarrow as pa

        try:
            return list(_rows(self._file, group))
        except (OSError, pa.ArrowInvalid) as error:
            raise self._unreadable(error) from None

    def perturb(self, item: Item) -> Perturbation:
        """The frozen row of an item, or one that says that the set lacks it.

        Raises PerturbationError where it was made for another answer or another gold context, or
        where an answer of the item is left in it.
        """
        context = render_passages(item.gold_passages)
        if item.item_id not in self._place:
            return excluded(item, "not_in_frozen_set", kind=AnswerType.other, policy="", seed=0)
        group, number = self._place[item.item_id]
        row = self._group(group)[number]
        if row["original"] != context:
            raise self._broken(row, "was perturbed in another gold context than the data set's")
        if row["answer"] != item.answer:
            raise self._broken(row, f"has the answer '{row['answer']}', not '{item.answer}'")
        if row["ok"] and find_lookalikes(row["perturbed"], answers_to_hide(item)):
            raise self._broken(row, "still has an answer in its perturbed context")
        return perturbation_of(row)


def _rows(file: pq.ParquetFile, group: int) -> Iterator[dict[str, Any]]:
    yield from file.read_row_group(group, columns=list(PERTURBATION_COLUMNS)).to_pylist()


def _say_other_versions(metadata: Mapping[bytes, bytes], spacy_model: str) -> None:
    """Say where the set was drawn with other versions: drawn anew, it might be another one."""
    known = json.loads(metadata.get(VERSIONS_KEY, b"{}"))
    here = draw_versions(spacy_model)
    other = {name: known[name] for name in here if name in known and known[name] != here[name]}
    if other:
        log.warning(
            "the frozen set was drawn with %s; here are %s. It is used as it stands.",
            ", ".join(f"{name} {version}" for name, version in other.items()),
            ", ".join(f"{name} {here[name]}" for name in other),
        )
