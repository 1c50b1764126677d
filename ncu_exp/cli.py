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
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from hydra.types import RunMode

from ncu_exp.config import EngineName, Preflight, conf_dir, from_dictconfig, register
from ncu_exp.errors import UserError
from ncu_exp.provenance import without_credentials
from ncu_exp.scoring.holder import EngineHolder

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """What frames a run or a sweep: endpoints are asked ahead, and failed jobs named at the end.

    The exit code says whether one failed.
    """

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Ask each endpoint of a sweep what it can do, before a job of it costs anything."""
        for told in _ask_ahead(config):
            print(told, file=sys.stderr, flush=True)  # noqa: T201

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        _end(Path(config.hydra.run.dir), config)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        _end(Path(config.hydra.sweep.dir), config)


def _ask_ahead(config: DictConfig) -> Iterator[str]:
    """A line of each endpoint among the sweep's models; of one that fails, why."""
    from hydra.errors import HydraException
    from omegaconf import open_dict
    from omegaconf.errors import OmegaConfBaseException

    asked: set[str] = set()
    for overrides in model_overrides(config):
        try:
            cfg = GlobalHydra.instance().config_loader().load_sweep_config(config, overrides)
            HydraConfig.instance().set_config(cfg)  # values may refer to it; a job sets its own
            with open_dict(cfg):
                del cfg["hydra"]
            job = from_dictconfig(cfg)
        except (HydraException, OmegaConfBaseException, UserError):
            continue  # its own job says so
        key = repr((job.model, job.estimator))
        is_local = job.model.engine is EngineName.transformers
        if is_local or key in asked or job.preflight is Preflight.only:
            continue
        asked.add(key)
        yield f"{job.model.label}: {_preflight_told(job)}"


def _preflight_told(config: Config) -> str:
    from ncu_exp.experiment import preflight

    engines = EngineHolder()
    try:
        return preflight(config, engines=engines)
    except UserError as error:
        return without_credentials(f"its jobs will fail. {type(error).__name__}: {error}")
    finally:
        engines.close()


def model_overrides(config: DictConfig) -> list[list[str]]:
    """The overrides of a sweep's jobs, one for each combination that asks another model.

    Of what is swept otherwise the first value stands for all.
    """
    given = [*config.hydra.overrides.task]
    swept = config.hydra.sweeper.get("params") or {}
    given += [f"{key}={value}" for key, value in swept.items()]
    choices: list[list[str]] = []
    for override in OverridesParser.create().parse_overrides(given):
        key = override.get_key_element()
        if override.is_discrete_sweep():
            values = [f"{key}={value}" for value in override.sweep_string_iterator()]
            asks_another = key.partition(".")[0] in ("model", "estimator", "experiment")
            choices.append(values if asks_another else values[:1])
        elif not override.is_sweep_override():
            choices.append([override.input_line or ""])
    return [list(combination) for combination in product(*choices)]


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
