"""python -m ncu_exp.upload FOLDER [FOLDER ...] [tracking.uri=...] [tracking.experiment=...]

Brings runs into the tracking store that was away when they ran. FOLDER is the folder of a job, of
a sweep, or multirun/ with all of them; each run comes in once, however often this is called. It
goes where its job was told to put it, or where tracking.uri= and tracking.experiment= say.

A run whose process was killed is uploaded as KILLED. One whose process may still be at work is left
alone: on another machine nobody can tell from here, so say ended=true once you know it is not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from ncu_exp import tracking
from ncu_exp.config import TrackingConfig
from ncu_exp.errors import UserError
from ncu_exp.outcomes import mark_delivered
from ncu_exp.provenance import without_credentials

_URI, _EXPERIMENT, _ENDED = "tracking.uri", "tracking.experiment", "ended"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed."""

    folders: tuple[Path, ...]
    uri: str | None = None
    experiment: str | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """A run that no store has yet, and where it belongs."""

    journal: tracking.Journal
    head: tracking.Head
    place: TrackingConfig


def main(arguments: Sequence[str] | None = None) -> int:
    """Upload what the command line names; 1 where anything could not be brought in."""
    typed = sys.argv[1:] if arguments is None else list(arguments)
    if not typed or {"-h", "--help"} & set(typed):
        print(str(__doc__).strip())  # noqa: T201
        return 0
    try:
        return _upload(parse(typed))
    except UserError as error:
        _complain(f"{type(error).__name__}: {error}")
        return 1


def parse(arguments: Sequence[str]) -> Asked:
    """Raises UserError for an argument that means nothing here."""
    folders: list[Path] = []
    given: dict[str, str] = {}
    for argument in arguments:
        key, is_given, value = argument.partition("=")
        if is_given and key in (_URI, _EXPERIMENT, _ENDED):
            given[key] = value
        elif Path(argument).is_dir():
            folders.append(Path(argument))
        else:
            raise UserError(
                f"{argument!r} is no folder, and none of {_URI}=, {_EXPERIMENT}=, {_ENDED}=true."
            )
    if not folders:
        raise UserError("Name a folder: that of a job, of a sweep, or multirun.")
    if given.get(_ENDED, "false") not in ("true", "false"):
        raise UserError(f"{_ENDED}={given[_ENDED]} is neither true nor false.")
    return Asked(
        tuple(folders), given.get(_URI), given.get(_EXPERIMENT), given.get(_ENDED) == "true"
    )


def _upload(asked: Asked) -> int:
    pending, failed = _find(asked)
    swept: dict[str, Pending] = {}
    delivered = 0
    for run in pending:
        try:
            run_id = tracking.deliver_safely(run.journal, run.place)
        except UserError as error:
            failed += 1
            _complain(f"{run.head.name} ({run.journal.folder}) was not uploaded. {error}")
            continue
        delivered += 1
        mark_delivered(run.journal.folder, run_id)
        print(f"{run.head.name}: run {run_id} ({run.journal.folder})")  # noqa: T201
        if run.head.is_sweep and not (run.journal.folder / "comparison").is_dir():
            swept[str(run.head.sweep)] = run
    if not pending and not failed:
        print("Nothing to do: no run waits there to be uploaded.")  # noqa: T201
    for sweep, run in swept.items():
        print(f"Sweep {sweep} was not compared yet. To compare it:\n  {_compare(run)}")  # noqa: T201
    if failed:
        _complain(f"{failed} could not be uploaded, {delivered} were.")
    return 1 if failed else 0


def _find(asked: Asked) -> tuple[list[Pending], int]:
    """What is to be uploaded, the runs of sweeps first, and how many journals cannot be read."""
    found: dict[Path, Pending] = {}
    damaged = 0
    for journal in _journals(asked.folders):
        try:
            entries = journal.read()
        except UserError as error:
            damaged += 1
            _complain(str(error))
            continue
        if entries.is_delivered:
            continue
        head = entries.head
        if not (entries.has_ended or asked.ended) and head.writer.may_live():
            where = f"process {head.writer.pid} on {head.writer.host}"
            print(  # noqa: T201
                f"{head.name} ({journal.folder}) is left alone: {where} may still be at work on it."
                f" Say {_ENDED}=true once it is not."
            )
            continue
        place = tracking.moved(tracking.place_of(head), uri=asked.uri, experiment=asked.experiment)
        found[journal.path.resolve()] = Pending(journal, head, place)
    ordered = sorted(found.values(), key=lambda p: (not p.head.is_sweep, p.head.started))
    return ordered, damaged


def _journals(folders: Sequence[Path]) -> Iterator[tracking.Journal]:
    for folder in folders:
        for journal in tracking.journals_below(folder.absolute()):
            if not journal.is_empty():
                yield journal


def _compare(run: Pending) -> str:
    place = [
        f"{_URI}={without_credentials(run.place.uri)}",
        f"{_EXPERIMENT}={run.place.experiment}",
    ]
    keys = " ".join(quote(key) for key in (f"sweep={run.head.sweep}", *place))
    return f"python -m ncu_exp.compare {keys}"


def _complain(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
