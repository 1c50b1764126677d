"""A process that has imported all that a job imports, and forks itself into jobs: no job waits.

It reads a line of JSON for each job, its folder and its arguments, and answers with two lines: the
process id when it has begun, and the exit status when it has ended (negative: of a signal). What a
job says to its standard error lies in the file `told` of its folder.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

IMPORTED = (
    *("torch", "transformers", "accelerate", "mlflow", "sqlalchemy", "spacy", "faker"),
    *("pandas", "pyarrow.parquet", "matplotlib.pyplot", "scipy.stats", "rich.console", "jinja2"),
    *("ncu_exp.experiment", "ncu_exp.results", "ncu_exp.figures", "ncu_exp.scoring.local"),
)


def main() -> None:
    """Serve until the input ends."""
    for module in IMPORTED:
        importlib.import_module(module)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            run(Path(asked["folder"]), asked["arguments"])
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def run(folder: Path, arguments: list[str]) -> None:
    """The command in this process, as `python -m ncu_exp` begins it."""
    from ncu_exp.cli import main as command

    os.chdir(folder)
    told = os.open("told", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(told, stream.fileno())
    sys.argv = ["ncu_exp", *arguments]
    code = 0
    try:
        command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    os._exit(code)


if __name__ == "__main__":
    main()
