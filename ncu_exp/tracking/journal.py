"""A run's journal: all that a run was told, in a file of its folder, before MLflow hears of it.

One JSON object on a line: the head, then the operations in order, then a mark once the tracking
store has them all. A job that starts again in the same folder writes a journal of its own.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncu_exp.errors import UserError
from ncu_exp.tracking.operations import Kind, Operation

FIRST = "tracking.jsonl"
_PATTERN = "tracking*.jsonl"
_HEAD, _DELIVERED = "head", "delivered"
_CLOCK_S = 5.0  # by which two readings of a process's start may differ


@dataclass(frozen=True, slots=True)
class Writer:
    """The process that writes a journal: its host, its number, when it started (s since 1970)."""

    host: str
    pid: int
    started: float

    def may_live(self) -> bool:
        """Whether it may still run: unknown, hence true, of another host."""
        import psutil

        if self.host != socket.gethostname():
            return True
        try:
            return abs(psutil.Process(self.pid).create_time() - self.started) < _CLOCK_S
        except psutil.NoSuchProcess:
            return False


@dataclass(frozen=True, slots=True)
class Head:
    """What a run needs to be made: its key is the tag by which it is found again.

    `uri` has no credentials in it; `started` counts milliseconds since 1970.
    """

    key: str
    name: str
    started: int
    uri: str
    experiment: str
    artifact_location: str | None
    sweep: str | None
    is_sweep: bool
    writer: Writer


@dataclass(frozen=True, slots=True)
class Entries:
    """A journal as read: `run_id` is empty until the tracking store has all of it."""

    head: Head
    operations: tuple[Operation, ...]
    run_id: str

    @property
    def is_delivered(self) -> bool:
        return bool(self.run_id)

    @property
    def has_ended(self) -> bool:
        return any(operation.kind is Kind.end for operation in self.operations)


@dataclass(frozen=True, slots=True)
class Journal:
    """A journal by its path; opened for each line, so that none is left open."""

    path: Path

    @property
    def folder(self) -> Path:
        return self.path.parent

    def add(self, operation: Operation) -> None:
        """Raises UserError where it cannot be written."""
        self._write({"op": operation.kind.value, "body": operation.body})

    def mark_delivered(self, run_id: str, uri: str) -> None:
        """`uri` without credentials."""
        self._write({"op": _DELIVERED, "body": {"run_id": run_id, "uri": uri}})

    def read(self) -> Entries:
        """Raises UserError naming the line that cannot be read; one cut short at the end is left.

        A process that was killed while it wrote leaves such a line.
        """
        lines = self.path.read_bytes().split(b"\n")
        parsed = [self._parse(number, line) for number, line in enumerate(lines[:-1], start=1)]
        if not parsed or parsed[0].get("op") != _HEAD:
            raise UserError(f"{self.path} has no head: it is no journal of a run.")
        told = [(line["op"], line["body"]) for line in parsed[1:]]
        return Entries(
            _head(parsed[0]["body"]),
            tuple(Operation(Kind(kind), body) for kind, body in told if kind != _DELIVERED),
            next((body["run_id"] for kind, body in told if kind == _DELIVERED), ""),
        )

    def is_empty(self) -> bool:
        """Whether its process was killed before it had written anything."""
        return b"\n" not in self.path.read_bytes()

    def is_superseded(self) -> bool:
        """Whether a later try of the same job wrote a journal beside it."""
        return any(_number(p) > _number(self.path) for p in self.folder.glob(_PATTERN))

    def _parse(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or not {"op", "body"} <= found.keys():
            raise UserError(f"{self.path}, line {number}, is damaged: it holds no operation.")
        return found

    def _write(self, body: Mapping[str, Any]) -> None:
        line = json.dumps(body, ensure_ascii=False).encode(errors="replace") + b"\n"
        try:
            _append(self.path, line)
        except OSError as error:
            raise UserError(
                f"The journal of the run cannot be written: {self.path}: {error.strerror}. Make "
                "room there, or name another place with hydra.run.dir= (hydra.sweep.dir=)."
            ) from error


def begin(folder: Path, head: Head) -> Journal:
    """A new journal in `folder`, which is made where there is none."""
    head_line = {"op": _HEAD, "body": dataclasses.asdict(head)}
    for number in range(1, 1000):
        journal = Journal(folder / (FIRST if number == 1 else f"tracking-{number}.jsonl"))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            journal.path.touch(exist_ok=False)
        except FileExistsError:
            continue
        except OSError as error:
            raise UserError(f"{folder} cannot be written: {error.strerror}.") from error
        journal._write(head_line)
        return journal
    raise UserError(f"{folder} holds 999 journals of runs: start the job in another folder.")


def journals(folder: Path) -> list[Journal]:
    """Those right in a folder, in the order of their tries."""
    return [Journal(path) for path in sorted(folder.glob(_PATTERN), key=_number)]


def journals_below(folder: Path) -> Iterator[Journal]:
    """Those of a job's folder, a sweep's, or everything below."""
    for path in sorted(folder.rglob(_PATTERN)):
        yield Journal(path)


def this_process() -> Writer:
    import psutil

    own = psutil.Process()
    return Writer(socket.gethostname(), own.pid, own.create_time())


def _append(path: Path, line: bytes) -> None:
    """All of the line or nothing: half a line would swallow the next one.

    A line that a killed process left unfinished is cut off first.
    """
    descriptor = os.open(path, os.O_RDWR)
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        size = _end_of_lines(descriptor, size)
        try:
            written = os.pwrite(descriptor, line, size)
            if written < len(line):  # a full disk may take a part
                os.pwrite(descriptor, line[written:], size + written)
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def _end_of_lines(descriptor: int, size: int) -> int:
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    whole = os.pread(descriptor, size, 0).rfind(b"\n") + 1
    os.ftruncate(descriptor, whole)
    return whole


def _head(body: Mapping[str, Any]) -> Head:
    return Head(**{**body, "writer": Writer(**body["writer"])})


def _number(path: Path) -> int:
    _, _, number = path.stem.partition("-")
    return int(number) if number.isdigit() else 1
