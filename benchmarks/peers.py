"""Scorers of other projects, each in an environment of its own, made once and kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ncu_exp.errors import NetworkError

STAMP = "requirements.txt"


def peer_python(folder: Path, requirements: Sequence[str]) -> Path:
    """The Python of an environment that has `requirements`, made by pip where there is none.

    The stamp is written last and names the requirements: a change, or an installation that was
    cut off, makes the environment anew. Raises NetworkError where pip fails.
    """
    from filelock import FileLock

    python, stamp = folder / "bin" / "python", folder / STAMP
    wanted = "".join(f"{r}\n" for r in requirements)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (python.is_file() and stamp.is_file() and stamp.read_text("utf-8") == wanted):
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            _install(python, requirements)
            stamp.write_text(wanted, "utf-8")
    return python


def _install(python: Path, requirements: Sequence[str]) -> None:
    # pip, whose own configuration may offer a CPU build of torch: other installers do not read it.
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", *requirements],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        reason = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise NetworkError(
            f"{', '.join(requirements)} could not be installed into {python.parents[1]}. An "
            f"environment that was made elsewhere can stand there instead, with these lines in "
            f"its {STAMP}. pip said:\n{reason}"
        )
