"""The Hydra entry point: DictConfig to typed Config to `experiment.run_job`, and the exit code.

A job that fails does not raise into Hydra, which would print only the first failure of a sweep and
lose the log of it: each job leaves `outcome.json` in its folder, and the end of the sweep reads
them all. This works under every launcher, since the folder is what jobs share.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode

from ncu_exp.config import Preflight, conf_dir, from_dictconfig, register
from ncu_exp.errors import UserError
from ncu_exp.provenance import without_credentials
from ncu_exp.scoring.engine import EngineHolder

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ncu_exp.config import Config
    from ncu_exp.description import JobContext

log = logging.getLogger(__name__)

OUTCOME = "outcome.json"

# The basic launcher runs the jobs of a sweep in one process: they share the model in memory.
_engines = EngineHolder()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: `error` is empty for one that finished."""

    job_num: int
    overrides: list[str]
    run_id: str = ""
    error: str = ""


class Summary(Callback):
    """At the end of a run or a sweep: name each job that failed, and set the exit code."""

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        _end(Path(config.hydra.run.dir), config)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        _end(Path(config.hydra.sweep.dir), config)


def main() -> None:
    """Compose the configuration from the command line and run the jobs."""
    register()
    _entry()


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")
def _entry(cfg: DictConfig) -> None:
    job = _job_context()
    outcome = _run_one(cfg, job)
    (job.output_dir / OUTCOME).write_text(json.dumps(asdict(outcome), indent=1), encoding="utf-8")


def _run_one(cfg: DictConfig, job: JobContext) -> Outcome:
    from omegaconf.errors import OmegaConfBaseException

    overrides = [without_credentials(o) for o in HydraConfig.get().overrides.task]
    try:
        config = from_dictconfig(cfg)
        return Outcome(job.job_num, overrides, run_id=_run(config, job))
    except (UserError, OmegaConfBaseException) as error:
        told = message = f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001  the other jobs of the sweep go on
        message = f"{type(error).__name__}: {error}"
        told = traceback.format_exc()
    log.error("%s", without_credentials(told))
    return Outcome(job.job_num, overrides, error=without_credentials(message))


def _run(config: Config, job: JobContext) -> str:
    from rich.console import Console

    from ncu_exp.description import run_name
    from ncu_exp.experiment import preflight, run_job
    from ncu_exp.terminal import left_out, metrics_table
    from ncu_exp.tracking import ui_command

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


def sweep_id(folder: Path) -> str:
    """A name for a sweep, equal in all its jobs: its time, and a hash of where its folder lies."""
    place = folder.absolute()
    digest = sha256(str(place).encode()).hexdigest()[:6]
    return f"{place.parent.name}_{place.name}-{digest}"


def read_outcomes(folder: Path) -> list[Outcome]:
    """The outcomes below a run's or a sweep's folder, by job number."""
    found = [
        Outcome(**json.loads(path.read_text(encoding="utf-8")))
        for path in (*folder.glob(OUTCOME), *folder.glob(f"*/{OUTCOME}"))
    ]
    return sorted(found, key=lambda o: o.job_num)


def _end(folder: Path, config: DictConfig) -> None:
    outcomes = read_outcomes(folder)
    failed = [o for o in outcomes if o.error]
    if not failed:
        return
    print(f"\n{len(failed)} of {len(outcomes)} jobs failed:", file=sys.stderr)  # noqa: T201
    for outcome in failed:
        what = " ".join(outcome.overrides) or "defaults"
        print(f"  job {outcome.job_num} ({what}): {outcome.error}", file=sys.stderr)  # noqa: T201
    sys.exit(1)
