"""Asked to stop by a signal: as Ctrl-C, so that runs are marked KILLED and files are closed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# What Slurm, Docker, systemd and a closed terminal send. Ctrl-C is Python's own already.
_NAMES = ("SIGTERM", "SIGHUP")
_OF_CTRL_C = signal.SIGINT


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stoppable() -> Iterator[None]:
    """Meanwhile such a signal unwinds the process as Ctrl-C does; the second one ends it at once.

    A stopped process says what is kept, and exits with 128 + the number of the signal. Signals that
    are ignored (nohup) stay so.
    """
    before = {number: signal.getsignal(number) for number in _numbers()}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:
            signal.signal(number, _stop)
    try:
        yield
    except KeyboardInterrupt as stop:
        print("\nStopped. What was scored is kept: the same command goes on from there.",  # noqa: T201
              file=sys.stderr, flush=True)  # fmt: skip
        sys.exit(128 + (stop.number if isinstance(stop, Stopped) else _OF_CTRL_C))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _numbers() -> list[signal.Signals]:
    return [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]


def _stop(number: int, frame: Any) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise Stopped(number)
