"""From found runs to a comparison in a folder and in the tracking store."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ncu_exp import tracking
from ncu_exp.compare.comparison import compare
from ncu_exp.compare.folder import PAGE, write_comparison
from ncu_exp.compare.loading import load_run
from ncu_exp.compare.render import to_markdown
from ncu_exp.compare.sentences import sentences
from ncu_exp.compare.texts import tables_of
from ncu_exp.errors import UserError

if TYPE_CHECKING:
    from ncu_exp.config import Config
    from ncu_exp.tracking import FoundRuns, PastRun

AXES = "axes"  # tag of a sweep's run: the keys that it sweeps, as a JSON list
COMPARISON = "comparison"  # the kind of a run that holds nothing else


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
    swept = json.loads(found.sweep.tags.get(AXES, "[]")) if found.sweep is not None else []
    settings = dataclasses.replace(config.compare, across=[*config.compare.across, *swept])
    comparison = compare(
        [load_run(run, config.tracking) for run in finished],
        settings=settings,
        metrics=config.metrics,
        recomputed=recomputed,
    )
    notes = (*_left_out(found.runs), *comparison.notes)
    comparison = dataclasses.replace(comparison, notes=notes)
    finding, texts = sentences(comparison), tables_of(comparison)
    write_comparison(comparison, folder, title=title, finding=finding, texts=texts)
    description = [*finding, *(f"*{note}*" for note in notes)]
    if "table1" in texts:
        description.append(to_markdown(texts["table1"]))
    description.append(f"More: the artifact `{PAGE}`.")
    run_id = _log(found, config, folder=folder, title=title, description="\n\n".join(description))
    return [
        *finding,
        *(f"Note: {note}" for note in notes),
        f"The comparison is on run {run_id} in experiment {config.tracking.experiment!r}, and in",
        f"  {folder / PAGE}",
    ]


def _left_out(runs: Sequence[PastRun]) -> list[str]:
    others = [run for run in runs if not run.is_finished]
    return [f"{run.name} is {run.status}, and not compared." for run in others]


def _log(found: FoundRuns, config: Config, *, folder: Path, title: str, description: str) -> str:
    """Upload the folder to the sweep's run, or to a new one; its id."""
    if found.sweep is not None:
        run = tracking.reopen_run(config.tracking, found.sweep.run_id)
    else:
        run_ids = ",".join(r.run_id for r in found.runs)
        tags = {"kind": COMPARISON, "compared_runs": run_ids}
        run = tracking.start_run(config.tracking, name=title, tags=tags, params={})
    run.log_folder(folder)
    run.describe(description)
    if found.sweep is None:
        run.finish()
    return run.run_id
