"""From found runs to a comparison in a folder and in the tracking store."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ncu_exp import tracking
from ncu_exp.compare.comparison import Comparison, compare
from ncu_exp.compare.folder import PAGE, write_comparison
from ncu_exp.compare.loading import load_run
from ncu_exp.compare.render import to_markdown
from ncu_exp.compare.sentences import sentences
from ncu_exp.compare.texts import tables_of
from ncu_exp.errors import UserError

if TYPE_CHECKING:
    from ncu_exp.config import Config
    from ncu_exp.tracking import FoundRuns, PastRun, Run

log = logging.getLogger(__name__)

AXES = "axes"  # tag of a sweep's run: the keys that it sweeps, as a JSON list
COMPARISON = "comparison"  # the artifact folder, and the kind of a run that holds nothing else


def compare_found(
    found: FoundRuns,
    config: Config,
    *,
    folder: Path,
    title: str,
    recomputed: Mapping[str, float] | None = None,
) -> list[str]:
    """Compare the finished ones of the runs, write `folder`, log it; what to tell the user.

    It is logged on the sweep's run, or on a run of its own. Raises UserError where the runs cannot
    be compared.
    """
    finished = [run for run in found.runs if run.is_finished]
    if not finished:
        raise UserError("None of these runs is finished.")
    parent = _sweep_tags(found, config)
    across = [*config.compare.across, *json.loads(parent.get(AXES, "[]"))]
    settings = dataclasses.replace(config.compare, across=across)
    comparison = compare(
        [load_run(run, config.tracking) for run in finished],
        settings=settings,
        metrics=config.metrics,
        recomputed=recomputed,
    )
    left_out = _left_out(found.runs)
    comparison = dataclasses.replace(comparison, notes=(*left_out, *comparison.notes))
    write_comparison(comparison, folder, title=title)
    run_id = _log(comparison, found, config, folder=folder, title=title)
    return [
        *sentences(comparison),
        *(f"Note: {note}" for note in comparison.notes),
        f"The comparison is on run {run_id} in experiment {config.tracking.experiment!r}, and in",
        f"  {folder / PAGE}",
    ]


def _sweep_tags(found: FoundRuns, config: Config) -> Mapping[str, str]:
    if found.sweep_run_id is None:
        return {}
    runs = tracking.find_runs(config.tracking, run_ids=[found.sweep_run_id]).runs
    return runs[0].tags


def _left_out(runs: Sequence[PastRun]) -> list[str]:
    others = [run for run in runs if not run.is_finished]
    return [f"{run.name} is {run.status}, and not compared." for run in others]


def _log(
    comparison: Comparison, found: FoundRuns, config: Config, *, folder: Path, title: str
) -> str:
    if found.sweep_run_id is not None:
        run = tracking.reopen_run(config.tracking, found.sweep_run_id)
        _log_to(run, comparison, folder)
        return run.run_id
    run = tracking.start_run(config.tracking, name=title, tags={"kind": COMPARISON}, params={})
    run.set_tags({"compared_runs": ",".join(r.run_id for r in found.runs)})
    _log_to(run, comparison, folder)
    run.finish()
    return run.run_id


def _log_to(run: Run, comparison: Comparison, folder: Path) -> None:
    run.log_folder(folder)
    told = [*sentences(comparison), *(f"*{note}*" for note in comparison.notes)]
    table = to_markdown(tables_of(comparison)["table1"]) if comparison.summary.size else ""
    run.describe("\n\n".join([*told, table, f"More: the artifact `{PAGE}`."]))
