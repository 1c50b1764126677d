"""The command: which runs, how to compare them, where the result goes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ncu_exp.errors import UserError

if TYPE_CHECKING:
    from ncu_exp.config import Config

_SELECTORS = ("sweep", "experiment", "runs")
_RECOMPUTED = ("tau", "epsilon")
_FOLLOWING = ("compare.", "metrics.", "tracking", "hydra.")


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed: the runs, and the rest as overrides of the configuration."""

    sweep: str | None
    experiment: str | None
    run_ids: tuple[str, ...]
    overrides: tuple[str, ...]


def main() -> None:
    """Compare the runs that the command line names."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    arguments = sys.argv[1:]
    if not arguments or {"-h", "--help"} & set(arguments):
        from ncu_exp.compare import __main__ as entry

        print(str(entry.__doc__).strip())  # noqa: T201
        return
    try:
        for line in run(parse(arguments)):
            print(line)  # noqa: T201
    except UserError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(1)


def parse(arguments: Sequence[str]) -> Asked:
    """Raises UserError for an argument that means nothing here."""
    found: dict[str, str] = {}
    overrides: list[str] = []
    for argument in arguments:
        key, is_given, value = argument.partition("=")
        if key in _SELECTORS and is_given:
            found[key] = value
        elif key.startswith(_FOLLOWING):
            overrides.append(argument)
        else:
            raise UserError(
                f"{argument!r} means nothing here: name sweep=, experiment= or runs=[...], and "
                "keys of compare, metrics and tracking."
            )
    if len(found) != 1:
        raise UserError("Name one of sweep=<id>, experiment=<name>, runs=[<id>,<id>].")
    run_ids = [part.strip() for part in found.get("runs", "").strip("[] ").split(",")]
    return Asked(
        sweep=found.get("sweep"),
        experiment=found.get("experiment"),
        run_ids=tuple(filter(None, run_ids)),
        overrides=tuple(overrides),
    )


def compose_config(overrides: Sequence[str]) -> Config:
    """The configuration under overrides, as the main command composes it."""
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from ncu_exp.config import conf_dir, from_composed, register

    register()
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            cfg = compose("config", overrides=list(overrides), return_hydra_config=True)
            return from_composed(cfg)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(str(error).split("\n")[0]) from None


def recomputed(overrides: Sequence[str], config: Config) -> Mapping[str, float]:
    """tau and epsilon where they were given: for all runs then, whatever theirs were."""
    given = {o.partition("=")[0].lstrip("+") for o in overrides}
    return {k: getattr(config.metrics, k) for k in _RECOMPUTED if f"metrics.{k}" in given}


def run(asked: Asked) -> list[str]:
    """Compare, write and log; what to print."""
    from ncu_exp import tracking
    from ncu_exp.compare.publish import compare_found

    config = compose_config(asked.overrides)
    found = tracking.find_runs(
        config.tracking, sweep=asked.sweep, experiment=asked.experiment, run_ids=asked.run_ids
    )
    folder = Path("multirun") / datetime.now().strftime("%Y-%m-%d/%H-%M-%S") / "comparison"
    what = asked.sweep or asked.experiment or f"{len(asked.run_ids)} runs"
    return compare_found(
        found,
        config,
        folder=folder.absolute(),
        title=f"Comparison of {what}",
        recomputed=recomputed(asked.overrides, config),
    )
