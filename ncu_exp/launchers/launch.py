"""Hands the jobs of a sweep to an engine, awaits all of them, and settles those that were lost."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, configure_log, setup_globals
from omegaconf import DictConfig, OmegaConf, open_dict

from ncu_exp import tracking
from ncu_exp.config import Config, from_composed
from ncu_exp.errors import UserError
from ncu_exp.launchers.engine import one_line
from ncu_exp.launchers.grain import Job, grouped
from ncu_exp.launchers.worker import Worker
from ncu_exp.outcomes import OUTCOME, Outcome, asked_sha256, finished_before, write_outcome
from ncu_exp.provenance import without_credentials

if TYPE_CHECKING:
    from hydra.types import TaskFunction

    from ncu_exp.launchers.engine import Engine

log = logging.getLogger(__name__)

_SHOWN_S = 60.0


@dataclass(frozen=True, slots=True)
class Sweep:
    """What Hydra gives a launcher."""

    config: DictConfig
    loader: ConfigLoader
    task: TaskFunction

    @property
    def folder(self) -> Path:
        return Path(str(self.config.hydra.sweep.dir)).absolute()

    def compose(self, job_overrides: Sequence[Sequence[str]], first: int) -> list[Job]:
        """The jobs, the number of the first one given, as Hydra's own launcher composes them."""
        setup_globals()
        _ = self.folder  # asks the clock once: what the name holds of it travels with each job
        jobs = []
        for num, overrides in enumerate(job_overrides, start=first):
            config = self.loader.load_sweep_config(self.config, list(overrides))
            with open_dict(config):
                config.hydra.job.id = config.hydra.job.num = num
            jobs.append(Job(num, config))
        return jobs


def launch(sweep: Sweep, jobs: Sequence[Job], *, engine: Engine) -> list[JobReturn]:
    """Run the jobs; afterwards each has an `outcome.json`, whatever became of its worker."""
    configure_log(sweep.config.hydra.hydra_logging, sweep.config.hydra.verbose)
    sweep.folder.mkdir(parents=True, exist_ok=True)
    left = [job for job in jobs if not _is_done(job)]
    if len(left) < len(jobs):
        log.info("%d of %d jobs finished before.", len(jobs) - len(left), len(jobs))
    open_workers: dict[int, Worker] = {}
    try:
        groups = grouped(left, engine.grain)
        workers = [Worker(str(Path.cwd()), sweep.task, group) for group in groups]
        open_workers |= enumerate(workers)
        log.info("Launching %d jobs in %d workers", len(left), len(workers))
        if workers:
            with closing(engine.run(workers, sweep.folder)) as endings:
                for ended in endings:
                    worker = open_workers.pop(ended.index)
                    log.info("%s ended%s", worker, f": {ended.error}" if ended.error else "")
                    if not ended.error:
                        _await_outcomes(worker.jobs)
                    _settle(worker.jobs, f"its worker died. {ended.error}".strip())
    except Exception as error:
        if not isinstance(error, UserError):
            log.exception("The engine failed.")
        rest = [job for worker in open_workers.values() for job in worker.jobs]
        _settle(rest or left, f"{type(error).__name__}: {one_line(error)}")
    except BaseException:
        for worker in open_workers.values():
            _settle(worker.jobs, "the sweep was interrupted", status="KILLED")
        raise
    return [_returned(job) for job in jobs]


def _await_outcomes(jobs: Sequence[Job]) -> None:
    """Those of a worker that returned are written; a shared file system may show them later."""
    deadline = time.monotonic() + _SHOWN_S
    paths = [_folder(job) / OUTCOME for job in jobs]
    while not all(path.is_file() for path in paths) and time.monotonic() < deadline:
        time.sleep(0.5)


def _settle(jobs: Sequence[Job], error: str, *, status: str = "FAILED") -> None:
    """Give each job that left no outcome one with `error`, and end its run if it has one."""
    error = without_credentials(error)
    for job in jobs:
        folder = _folder(job)
        if (folder / OUTCOME).is_file():
            continue
        config = _typed(job)
        run_id = ""
        if config is not None:
            run_id = tracking.end_lost(folder, config.tracking, error, status=status)
        overrides = [without_credentials(o) for o in job.config.hydra.overrides.task]
        pending = tracking.is_pending(folder)
        write_outcome(folder, Outcome(job.num, overrides, run_id, error, pending))


def _is_done(job: Job) -> bool:
    """Whether it finished in this folder before; an outcome that is not this job's is removed."""
    path = _folder(job) / OUTCOME
    if not path.is_file():
        return False
    config = _typed(job)
    if config is not None and finished_before(path.parent, asked_sha256(config)):
        return True
    path.unlink()
    return False


def _folder(job: Job) -> Path:
    """Where the job's results lie, as `run_job` of Hydra works it out."""
    HydraConfig.instance().set_config(job.config)
    place = Path(str(OmegaConf.select(job.config, "hydra.sweep.dir")))
    return place.absolute() / str(OmegaConf.select(job.config, "hydra.sweep.subdir"))


def _typed(job: Job) -> Config | None:
    """None of a configuration that its job refuses."""
    from omegaconf.errors import OmegaConfBaseException

    try:
        return from_composed(copy.deepcopy(job.config))
    except (UserError, OmegaConfBaseException):
        return None


def _returned(job: Job) -> JobReturn:
    """What Hydra is told of a job: how it ended stands in its folder."""
    overrides = list(job.config.hydra.overrides.task)
    returned = JobReturn(overrides=overrides, status=JobStatus.COMPLETED)
    returned.return_value = None
    return returned
