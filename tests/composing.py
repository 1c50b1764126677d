"""A configuration as the command line would compose it, in this process."""

from __future__ import annotations

from pathlib import Path

from ncu_exp.config import Config, conf_dir, from_dictconfig, register


def composed(*overrides: str, store: Path | None = None) -> Config:
    """The typed configuration; runs go to `store`, a folder."""
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
