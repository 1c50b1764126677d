"""A configuration as the command line would compose it, in this process."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path

from ncu_exp.config import Config, conf_dir, from_dictconfig, register


def composed(*overrides: str, store: Path | None = None) -> Config:
    """The typed configuration, to be changed at will; runs go to `store`, a folder."""
    return deepcopy(_composed(overrides, store))


@cache
def _composed(overrides: tuple[str, ...], store: Path | None) -> Config:
    """Composed once, which takes most of a second; tests ask for the same ones again and again."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    register()
    # The default place of the store is known inside a Hydra job only.
    place = [
        f"tracking.uri=sqlite:///{store}/mlflow.db",
        f"tracking.artifact_location={store}/artifacts",
    ]
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return from_dictconfig(compose("config", overrides=[*place, *overrides]))
