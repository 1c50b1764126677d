"""What each engine offers: workers in, and a word on each as it ends."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ncu_exp.errors import UserError
from ncu_exp.launchers.worker import Worker


@dataclass(frozen=True, slots=True)
class Ended:
    """A worker, by its index, that ended; `error` is what the engine says of one that died."""

    index: int
    error: str = ""


class Engine(Protocol):
    """Runs workers, each in a process of its own."""

    @property
    def grain(self) -> Sequence[str]:
        """The keys in which the jobs of a worker agree."""
        ...

    def run(self, workers: Sequence[Worker], folder: Path) -> Generator[Ended]:
        """Start all, and yield each as it ends; one that dies does not end the others.

        `folder` is the sweep's. Closed before its end, it ends the workers that are left. Raises
        UserError where the engine is not there or refuses what it is asked.
        """
        ...


def not_installed(engine: str, package: str) -> UserError:
    return UserError(
        f"hydra/launcher={engine} needs {package}, which is not installed: "
        f"pip install 'ncu_exp[{engine}]'"
    )


def one_line(told: object) -> str:
    """A message without its line breaks."""
    return " ".join(str(told).split())
