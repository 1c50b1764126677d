"""What runs in a worker's process: its jobs in turn, as Hydra's own launcher runs them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_exp.launchers.grain import Job

if TYPE_CHECKING:
    from hydra.types import TaskFunction


@dataclass(frozen=True, slots=True)
class Worker:
    """Jobs that share a process, and so the model in its memory.

    It travels to another process: it holds what the jobs are, and nothing that is open.
    """

    folder: str  # where the sweep was started
    task: TaskFunction
    jobs: tuple[Job, ...]

    def __call__(self) -> list[int]:
        """Run the jobs; their numbers. A job that fails says so in its folder, and raises not."""
        from hydra import version
        from hydra._internal.callbacks import Callbacks
        from hydra._internal.config_loader_impl import ConfigLoaderImpl
        from hydra._internal.config_search_path_impl import ConfigSearchPathImpl
        from hydra.core.utils import JobRuntime, run_job, setup_globals
        from hydra.types import HydraContext

        os.chdir(self.folder)
        version.setbase("1.3")
        setup_globals()
        for job in self.jobs:
            JobRuntime.instance().set("name", job.config.hydra.job.name)
            # The job's callbacks are made anew; the loader is asked for nothing: all is composed.
            loader = ConfigLoaderImpl(ConfigSearchPathImpl())
            run_job(
                task_function=self.task,
                config=job.config,
                job_dir_key="hydra.sweep.dir",
                job_subdir_key="hydra.sweep.subdir",
                hydra_context=HydraContext(loader, Callbacks(job.config)),
            )
        return [job.num for job in self.jobs]

    def checkpoint(self) -> Any:
        """For submitit: what is queued again is the same; finished jobs are not repeated."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)

    def __str__(self) -> str:
        numbers = ", ".join(str(job.num) for job in self.jobs)
        return f"job{'s' if len(self.jobs) > 1 else ''} {numbers}"
