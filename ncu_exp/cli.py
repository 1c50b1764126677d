"""The Hydra entry point: DictConfig to typed Config to `experiment.run_job`, and the exit code.

A job that fails does not raise into Hydra, which would print only the first failure of a sweep and
lose the log of it: each job leaves `outcome.json` in its folder, and the end of the sweep reads
them all. This works under every launcher, since the folder is what jobs share.
"""

from __future__ import annotations

import logging
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode

from ncu_exp.config import Preflight, conf_dir, from_dictconfig, register
from ncu_exp.disk import room_in
from ncu_exp.errors import UserError
from ncu_exp.outcomes import (
    OUTCOME,
    Outcome,
    asked_sha256,
    finished_before,
    sweep_id,
    write_outcome,
)
from ncu_exp.provenance import without_credentials
from ncu_exp.scoring.holder import EngineHolder
from ncu_exp.stopping import stoppable
from ncu_exp.tracking import is_pending, ui_command, upload_command

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ncu_exp.config import Config
    from ncu_exp.description import JobContext

log = logging.getLogger(__name__)

# The basic launcher runs the jobs of a sweep in one process: they share the model in memory.
_engines = EngineHolder()


def main() -> None:
    """Compose the configuration from the command line and run the jobs."""
    register()
    logging.raiseExceptions = False  # a log on a full disk is lost, without a traceback a line
    with stoppable():
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")(
            run_task
        )()


def run_task(cfg: DictConfig) -> None:
    """One job, in whatever process Hydra's launcher runs it; other processes find it by its name.

    It does not raise: how it ended stands in `outcome.json`. A job of a sweep that finished in this
    folder before, and was asked the same, is not repeated: whatever killed the rest of the sweep,
    the next start goes on after it.
    """
    job = _job_context()
    outcome = _run_one(cfg, job)
    with room_in(job.output_dir):
        write_outcome(job.output_dir, replace(outcome, pending=is_pending(job.output_dir)))


def _run_one(cfg: DictConfig, job: JobContext) -> Outcome:
    from omegaconf.errors import OmegaConfBaseException

    overrides = [without_credentials(o) for o in HydraConfig.get().overrides.task]
    asked = ""
    try:
        config = from_dictconfig(cfg)
        asked = asked_sha256(config)
        before = finished_before(job.output_dir, asked) if job.sweep_id else None
        if before is not None:
            path = job.output_dir / OUTCOME
            log.info("This job finished before. To repeat it, delete %s", path)
            return before
        return Outcome(job.job_num, overrides, run_id=_run(config, job), asked_sha256=asked)
    except (UserError, OmegaConfBaseException) as error:
        told = message = f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001  the other jobs of the sweep go on
        message = f"{type(error).__name__}: {error}"
        told = traceback.format_exc()
    log.error("%s", without_credentials(told))
    error_told = without_credentials(message)
    return Outcome(job.job_num, overrides, error=error_told, asked_sha256=asked)


def _run(config: Config, job: JobContext) -> str:
    from rich.console import Console

    from ncu_exp.description import run_name
    from ncu_exp.experiment import preflight, run_job
    from ncu_exp.terminal import left_out, metrics_table

    # Without a terminal (a pipe, a log) there is no width to respect.
    console = Console(width=None if sys.stdout.isatty() else 120)
    if config.preflight is Preflight.only:
        told = f"{config.model.label}: {preflight(config, engines=_engines)}"
        console.print(told, highlight=False, markup=False, soft_wrap=True)
        return ""
    result = run_job(config, job, engines=_engines)
    found = result.findings
    console.print(metrics_table(found.metrics, title=run_name(config)))
    for line in left_out(found.losses, found.audit):
        console.print(line, highlight=False, markup=False)
    if is_pending(job.output_dir):
        console.print("The tracking store did not take this run. Once it answers:")
        console.print(f"  {upload_command(job.output_dir)}", soft_wrap=True)
    else:
        console.print(
            f"Run {result.run_id} is in experiment {config.tracking.experiment!r}. To see it:"
        )
        console.print(f"  {ui_command(config.tracking)}", soft_wrap=True)
    console.print(f"Everything it holds also lies in {job.output_dir / 'results'}", soft_wrap=True)
    return result.run_id


def _job_context() -> JobContext:
    from ncu_exp.description import JobContext

    hydra_config = HydraConfig.get()
    swept = hydra_config.mode is RunMode.MULTIRUN
    return JobContext(
        output_dir=Path(hydra_config.runtime.output_dir),
        choices={str(k): str(v) for k, v in hydra_config.runtime.choices.items() if v is not None},
        sweep_id=sweep_id(Path(hydra_config.sweep.dir)) if swept else None,
        job_num=int(hydra_config.job.num) if swept else 0,
    )
