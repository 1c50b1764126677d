"""What frames the jobs of a sweep: endpoints are asked ahead, a run holds it, and compares it."""

from __future__ import annotations

import atexit
import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback

from ncu_exp.config import EngineName, Preflight, from_composed
from ncu_exp.disk import probe
from ncu_exp.errors import DiskFullError, UserError
from ncu_exp.outcomes import read_outcomes, sweep_id
from ncu_exp.provenance import without_credentials
from ncu_exp.tracking import is_pending, upload_command

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn
    from omegaconf import DictConfig

    from ncu_exp.config import Config
    from ncu_exp.outcomes import Outcome
    from ncu_exp.tracking import Run

_ASKS_ANOTHER = ("model", "estimator", "experiment")  # groups whose options ask another model
_EVERYTHING = ("prompt", "perturb", "dataset", "score", "metrics")  # that an experiment may set


class Frame(Callback):
    """Before the first job and after the last; the exit code says whether one failed."""

    def __init__(self) -> None:
        self._open: tuple[Run, Config] | None = None  # the sweep's run, its first job

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Ask each endpoint what it can do before anything is spent, and open the sweep's run."""
        _probe(config.hydra.sweep.dir)
        for told in _ask_ahead(config):
            _say(told)
        first = next(_jobs(config, [_first_of_each(config)]), None)
        if first is None or first.preflight is Preflight.only:
            return
        try:
            self._open = _open_run(config, first), first
        except UserError as error:
            _say(f"The sweep has no run of its own. {error}")
            return
        atexit.register(self._interrupted)

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        """Let go of the job's configuration: a launcher keeps what all jobs return to the end."""
        job_return.cfg = job_return.hydra_cfg = None

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Hydra writes into the folder before the job can say that there is no room."""
        _probe(config.hydra.run.dir)

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        _end(read_outcomes(Path(config.hydra.run.dir)))

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Compare the jobs, end the sweep's run, name the jobs that failed."""
        folder = Path(config.hydra.sweep.dir)
        outcomes = read_outcomes(folder)
        if self._open is not None:
            run, first = self._open
            if run.is_away:  # what is compared must be in the store: this delivers the sweep's run
                self._close(run, outcomes)
            waits = any(o.pending for o in outcomes) or (run.is_away and is_pending(folder))
            try:
                if first.compare.after_sweep and not all(o.error for o in outcomes):
                    if waits:
                        _say("\nThis sweep can be compared once its runs are uploaded.")
                    else:
                        _compare(first, folder)
            finally:
                if self._open is not None:
                    self._close(run, outcomes)
        _tell_pending(folder, outcomes)
        _end(outcomes)

    def _close(self, run: Run, outcomes: list[Outcome]) -> None:
        self._open = None
        failed = sum(bool(o.error) for o in outcomes)
        run.log_metrics({"sweep/jobs": len(outcomes), "sweep/jobs_failed": failed})
        if failed:
            run.fail(f"{failed} of {len(outcomes)} jobs failed")
        else:
            run.finish()

    def _interrupted(self) -> None:
        """The process ends, and the sweep did not."""
        if self._open is not None:
            self._open[0].fail("interrupted", status="KILLED")


def _open_run(config: DictConfig, first: Config) -> Run:
    from ncu_exp import tracking
    from ncu_exp.compare.publish import AXES
    from ncu_exp.description import machine_tags

    values = swept(config)
    axes = list(values)
    name = f"sweep of {' × '.join(axes)}" if axes else "sweep of one job"
    if "experiment" in axes:
        axes += _EVERYTHING
    tags = {**machine_tags(), AXES: json.dumps(axes)}
    folder = Path(config.hydra.sweep.dir)
    run = tracking.start_sweep(
        first.tracking, sweep_id(folder), name=name, tags=tags, folder=folder
    )
    tracking.end_earlier(folder, first.tracking, run)
    told = {key: ", ".join(v.partition("=")[2] for v in of_key) for key, of_key in values.items()}
    run.log_params({key: without_credentials(value) for key, value in told.items()})
    return run


def _compare(config: Config, folder: Path) -> None:
    """The comparison of the sweep's jobs; why there is none is told, and no reason to fail."""
    from ncu_exp import tracking
    from ncu_exp.compare.publish import compare_found

    sweep = sweep_id(folder)
    try:
        found = tracking.find_runs(config.tracking, sweep=sweep)
        title = f"Comparison of sweep {sweep}"
        told = compare_found(found, config, folder=folder.absolute() / "comparison", title=title)
    except UserError as error:
        _say(f"\nThe jobs of this sweep were not compared. {error}")
        return
    print("\n" + "\n".join(told))  # noqa: T201


def _ask_ahead(config: DictConfig) -> Iterator[str]:
    """A line of each endpoint among the sweep's models; of one that fails, why."""
    asked: set[str] = set()
    for job in _jobs(config, model_overrides(config)):
        key = repr((job.model, job.estimator))
        is_local = job.model.engine is EngineName.transformers
        if is_local or key in asked or job.preflight is Preflight.only:
            continue
        asked.add(key)
        yield f"{job.model.label}: {_preflight_told(job)}"


def _jobs(config: DictConfig, overrides: list[list[str]]) -> Iterator[Config]:
    """The configurations of jobs of the sweep; one that cannot be composed says so in its job."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    for of_job in overrides:
        try:
            cfg = GlobalHydra.instance().config_loader().load_sweep_config(config, of_job)
            yield from_composed(cfg)
        except (HydraException, OmegaConfBaseException, UserError):
            continue


def _preflight_told(config: Config) -> str:
    from ncu_exp.experiment import preflight
    from ncu_exp.scoring.holder import EngineHolder

    engines = EngineHolder()
    try:
        return preflight(config, engines=engines)
    except UserError as error:
        return without_credentials(f"its jobs will fail. {type(error).__name__}: {error}")
    finally:
        engines.close()


def swept(config: DictConfig) -> dict[str, list[str]]:
    """What varies among the jobs: each key with its overrides, as typed or as an option sets it."""
    return {key: values for key, values in _overrides(config) if len(values) > 1}


def model_overrides(config: DictConfig) -> list[list[str]]:
    """The overrides of a sweep's jobs, one for each combination that asks another model.

    Of what is swept otherwise the first value stands for all.
    """
    choices = [
        values if key.partition(".")[0] in _ASKS_ANOTHER else values[:1]
        for key, values in _overrides(config)
    ]
    return [list(combination) for combination in product(*choices)]


def _first_of_each(config: DictConfig) -> list[str]:
    return [values[0] for _, values in _overrides(config)]


def _overrides(config: DictConfig) -> Iterator[tuple[str, list[str]]]:
    """Each override of the sweep by its key, a value at a time."""
    given = [*config.hydra.overrides.task]
    params = config.hydra.sweeper.get("params") or {}
    given += [f"{key}={value}" for key, value in params.items()]
    for override in OverridesParser.create().parse_overrides(given):
        key = override.get_key_element()
        if override.is_discrete_sweep():
            yield key, [f"{key}={value}" for value in override.sweep_string_iterator()]
        elif not override.is_sweep_override():
            yield key, [override.input_line or ""]


def _tell_pending(folder: Path, outcomes: list[Outcome]) -> None:
    """Which runs the tracking store has yet to get, and how it gets them."""
    pending = sum(o.pending for o in outcomes)
    if pending or is_pending(folder):
        _say(f"\nThe tracking store did not take {pending} of {len(outcomes)} runs of this sweep.")
        _say(f"Once it answers: {upload_command(folder.absolute())}")


def _end(outcomes: list[Outcome]) -> None:
    """Name the jobs that failed; the exit code says whether one did."""
    failed = [o for o in outcomes if o.error]
    if not failed:
        return
    _say(f"\n{len(failed)} of {len(outcomes)} jobs failed:")
    told: set[str] = set()
    for outcome in failed:
        what = " ".join(outcome.overrides) or "defaults"
        error = "the same" if outcome.error in told else outcome.error
        _say(f"  job {outcome.job_num} ({what}): {error}")
        told.add(outcome.error)
    sys.exit(1)


def _probe(folder: str) -> None:
    """End a command that could not write down even how it began."""
    try:
        probe(Path(folder))
    except DiskFullError as error:
        _say(f"{type(error).__name__}: {error}")
        sys.exit(1)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201
