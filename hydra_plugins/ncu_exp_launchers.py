"""The launchers as Hydra finds them: it accepts plugins from this namespace alone.

Hydra imports this at every start, so nothing heavy is imported here; what they do is in
`ncu_exp.launchers`. There is no `__init__.py` beside it: other packages' plugins share the folder.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hydra.plugins.launcher import Launcher

from ncu_exp.launchers.options import JoblibOptions, RayOptions, SlurmOptions, register

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn
    from hydra.types import HydraContext, TaskFunction
    from omegaconf import DictConfig

    from ncu_exp.launchers.engine import Engine

register()


class _Launcher(Launcher):
    """Hydra's side of a launcher; the engine is what the three differ in."""

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self._given = (config, hydra_context.config_loader, task_function)

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        from ncu_exp.launchers.launch import Sweep, launch

        sweep = Sweep(*self._given)
        return launch(sweep, sweep.compose(job_overrides, initial_job_idx), engine=self._engine())

    @abstractmethod
    def _engine(self) -> Engine: ...


class SlurmLauncher(_Launcher):
    """`hydra/launcher=slurm`"""

    def __init__(self, **options: Any) -> None:
        self._options = SlurmOptions(**options)

    def _engine(self) -> Engine:
        from ncu_exp.launchers.slurm import SlurmEngine

        return SlurmEngine(self._options)


class RayLauncher(_Launcher):
    """`hydra/launcher=ray`"""

    def __init__(self, **options: Any) -> None:
        self._options = RayOptions(**options)

    def _engine(self) -> Engine:
        from ncu_exp.launchers.ray import RayEngine

        return RayEngine(self._options)


class JoblibLauncher(_Launcher):
    """`hydra/launcher=joblib`"""

    def __init__(self, **options: Any) -> None:
        self._options = JoblibOptions(**options)

    def _engine(self) -> Engine:
        from ncu_exp.launchers.joblib import JoblibEngine

        return JoblibEngine(self._options)
