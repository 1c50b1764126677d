"""Workers as Slurm jobs, one array for the sweep, submitted with submitit.

submitit learns how a job ended from Slurm's accounting (`sacct`), which not every cluster has, so
the queue is asked here: `squeue` knows a job until some minutes after its end.
"""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncu_exp.errors import UserError
from ncu_exp.launchers.engine import Ended, not_installed, one_line
from ncu_exp.launchers.options import SlurmOptions
from ncu_exp.launchers.queue import LOST, Queue
from ncu_exp.launchers.worker import Worker

if TYPE_CHECKING:
    from submitit import SlurmExecutor

log = logging.getLogger(__name__)

_LOOKS = 2  # at which a job must be over and without a result: its files may come late
_CANCEL_S = 20.0
_LOG_LINES = 3
_RULE = "-" * 22


class SlurmEngine:
    """Submits workers, and awaits them in the queue."""

    def __init__(self, options: SlurmOptions) -> None:
        self._options = options

    @property
    def grain(self) -> Sequence[str]:
        return self._options.grain

    def run(self, workers: Sequence[Worker], folder: Path) -> Generator[Ended]:
        jobs = self._submit(workers, folder / ".submitit")
        queue = Queue(jobs[0].job_id.partition("_")[0])
        running = dict(enumerate(jobs))
        over: dict[int, int] = {}  # looks at which a job was over without a result
        try:
            while running:
                states = queue.states()
                for index, job in list(running.items()):
                    if job.paths.result_pickle.exists():
                        del running[index]
                        yield Ended(index, _raised(job))
                    elif states is not None and (state := states.get(job.job_id, LOST)).is_over:
                        over[index] = over.get(index, 0) + 1
                        if over[index] >= _LOOKS:
                            del running[index]
                            yield Ended(index, f"Slurm job {job.job_id}: {state}.{_log_of(job)}")
                    else:
                        over.pop(index, None)
                if running:
                    time.sleep(self._options.poll_s)
        finally:
            if running:
                _cancel(queue, [job.job_id for job in running.values()])

    def _submit(self, workers: Sequence[Worker], folder: Path) -> list[Any]:
        try:
            from submitit.core.utils import FailedJobError
        except ImportError:
            raise not_installed("slurm", "submitit") from None
        try:
            executor = self._executor(folder)
            with executor.batch():
                jobs = [executor.submit(worker) for worker in workers]
        except (FailedJobError, subprocess.CalledProcessError) as error:
            raise UserError(f"Slurm refused the sweep: {one_line(error)}") from error
        log.info("Slurm job %s; logs in %s", jobs[0].job_id.partition("_")[0], folder)
        return jobs

    def _executor(self, folder: Path) -> SlurmExecutor:
        from submitit import SlurmExecutor

        try:
            executor = SlurmExecutor(folder, max_num_timeout=self._options.max_timeouts)
        except RuntimeError as error:
            raise UserError(
                "hydra/launcher=slurm: there is no Slurm on this machine (no srun). Start the "
                "sweep where `sinfo` answers."
            ) from error
        executor.update_parameters(**self._parameters())
        return executor

    def _parameters(self) -> dict[str, Any]:
        o = self._options
        further: dict[str, Any] = {"requeue" if o.requeue else "no-requeue": True}
        if o.gpus_per_job:
            kind = f":{o.gpu_type}" if o.gpu_type else ""
            further["gres"] = f"gpu{kind}:{o.gpus_per_job}"
        named = {
            "partition": o.partition,
            "account": o.account,
            "qos": o.qos,
            "constraint": o.constraint,
        }
        return {
            **{key: value for key, value in named.items() if value is not None},
            "job_name": "ncu_exp",
            "cpus_per_task": o.cpus_per_job,
            # Since Slurm 22.05 a step does not inherit it.
            "srun_args": [f"--cpus-per-task={o.cpus_per_job}"],
            "mem": f"{round(o.mem_gb * 1024)}MB",
            "time": o.timeout_min,
            "array_parallelism": o.array_parallelism,
            "setup": o.setup,
            "additional_parameters": further | o.parameters,
        }


def _raised(job: Any) -> str:
    """What a worker raised, in a line; empty for one that returned."""
    error = job.exception()
    if error is None:
        return ""
    # submitit gives the trace between two rules; the message follows its last indented line.
    trace = str(error).partition(_RULE)[2].partition(_RULE)[0]
    message = trace.rpartition("\n  ")[2].partition("\n")[2]
    return f"Slurm job {job.job_id}: {one_line(message) or one_line(error)}"


def _log_of(job: Any) -> str:
    """The end of what its process wrote as errors."""
    with suppress(OSError):
        lines = job.paths.stderr.read_text("utf-8", errors="replace").strip().splitlines()
        if lines:
            return f" {one_line(' '.join(lines[-_LOG_LINES:]))} ({job.paths.stderr})"
    return ""


def _cancel(queue: Queue, jobs: Iterable[str]) -> None:
    """End jobs, and wait until they are: what they wrote last is complete then."""
    ids = list(jobs)
    subprocess.run(["scancel", "--signal=KILL", "--full", *ids], capture_output=True, check=False)
    subprocess.run(["scancel", *ids], capture_output=True, check=False)
    deadline = time.monotonic() + _CANCEL_S
    while time.monotonic() < deadline:
        states = queue.states()
        if states is not None and all(states.get(job, LOST).is_over for job in ids):
            return
        time.sleep(0.5)
