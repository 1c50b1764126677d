"""Jobs in this process."""

from __future__ import annotations

from pathlib import Path

from ncu_exp.config import Config
from ncu_exp.description import JobContext
from ncu_exp.experiment import run_job
from ncu_exp.scoring.holder import EngineHolder
from tests.composing import composed


def config_of(place: Path, arguments: list[str], *, cache: Path | None = None) -> Config:
    overrides = ["latency.items=0", f"cache.dir={cache or place / 'cache'}"]
    return composed(*arguments, *overrides, store=place)


def run(config: Config, folder: Path) -> None:
    """One job, in this process."""
    engines = EngineHolder()
    try:
        run_job(config, JobContext(folder, choices={}), engines=engines)
    finally:
        engines.close()
