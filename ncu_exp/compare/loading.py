"""A past run as a comparison needs it: what it was asked, and its table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncu_exp import tracking
from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from ncu_exp.records import Perturbation
    from ncu_exp.tracking import PastRun

CONFIG, TABLES = "config.yaml", "tables"


@dataclass(frozen=True)
class AskedRun:
    """A run of one job: its record, its configuration as nested dicts, its table."""

    run: PastRun
    config: Mapping[str, Any]
    table: pd.DataFrame  # `tables.read_compared`
    folder: Path  # of its tables

    @property
    def corpus(self) -> str:
        return str(self.config["dataset"]["name"])

    @property
    def draw(self) -> int:
        """The seed of its contexts: the same items drawn with another are a repetition."""
        return int(self.config["perturb"]["seed"])

    def read_whole(self, item_ids: Collection[str]) -> tuple[pd.DataFrame, list[Perturbation]]:
        """The whole rows of some items, and what was done to their contexts."""
        from ncu_exp.perturb.table import read_perturbations
        from ncu_exp.tablefile import read_rows

        with _readable(self.run):
            rows = read_rows(self.folder / "items.parquet", item_ids)
            return rows, read_perturbations(self.folder / "perturbations.parquet", item_ids)


def load_run(run: PastRun, config: TrackingConfig) -> AskedRun:
    """Read a finished run back from the store; raises UserError where it left no tables."""
    import yaml

    from ncu_exp.tablefile import read_compared

    if not run.is_finished:
        raise UserError(f"Run {run.name} ({run.run_id}) is {run.status}: it has no results.")
    with _readable(run):
        folder = tracking.artifact_folder(config, run, TABLES)
        text = tracking.artifact_folder(config, run, CONFIG).read_text(encoding="utf-8")
        asked = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
        if not isinstance(asked, dict):
            raise ValueError(f"{CONFIG} is no configuration")
        return AskedRun(run, asked, read_compared(folder / "items.parquet"), folder)


@contextmanager
def _readable(run: PastRun) -> Iterator[None]:
    """A file that is missing or damaged is a UserError that names the run."""
    import yaml

    try:
        yield
    except (OSError, KeyError, ValueError, yaml.YAMLError) as error:  # Arrow's are among them
        told = " ".join(str(error).split())
        raise UserError(
            f"Run {run.name} ({run.run_id}) cannot be read: a file of its results is missing or "
            f"damaged ({told}). Run the job again (its scores are in the store), or compare the "
            "others: runs=[...]."
        ) from error
