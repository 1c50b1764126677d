"""Stores on disk, addressed by content: what was computed once is never computed again.

The key of a value is the sha256 of everything that the value depends on (of a score: weights,
precision, device, numerics, engine version, prompt ids, answer ids, generation length), so one
one model's score cannot be served to another, and a change of any of them is a miss. SQLite in
write-ahead mode: several processes may use it at once, and what was committed survives a kill.

A store that is damaged is set aside, and goes on in a new file with the entries that are whole. One
that cannot be written (a full disk) ends the job, which loses nothing: it goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ncu_exp.disk import is_full
from ncu_exp.errors import StoreError
from ncu_exp.salvage import (
    FAILURES,
    is_damage,
    is_whole,
    open_file,
    readable_entries,
    set_aside,
    structural_damage,
)

if TYPE_CHECKING:
    from filelock import BaseFileLock

log = logging.getLogger(__name__)

T = TypeVar("T")
SCORES, PERTURBATIONS = "scores.sqlite", "perturbations.sqlite"  # files in `cache.dir`
PATIENCE_S = 60.0  # for another process's write
_KEYS_PER_QUERY = 500

_INSERT = "INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?, ?)"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS contents (
  key BLOB PRIMARY KEY, origin TEXT NOT NULL, written REAL NOT NULL, check_sum INTEGER NOT NULL,
  value BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (
  path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, sha256 TEXT NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """What a store holds: entries and bytes in all, and entries by what they were made with."""

    entries: int
    size_bytes: int
    by_origin: Mapping[str, int]


class ContentStore:
    """An open store; every call is a transaction of its own.

    Raises StoreError where the file cannot be used: no room, no permission, another's lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _lock(path):
                self._open()
        except (OSError, *FAILURES) as error:
            raise _refused(path, error) from error

    def close(self) -> None:
        self._db.close()

    def _open(self) -> None:
        """The caller holds the lock: nobody moves the file meanwhile."""
        try:
            self._db = _connect(self.path)
        except FAILURES as error:
            if not is_damage(error):
                raise
            self._renew(error)
        self._inode = os.stat(self.path).st_ino

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Work in a transaction; once more, if the file turned out to be damaged."""
        try:
            try:
                with self._db:
                    return work(self._db)
            except FAILURES as error:
                if not is_damage(error):
                    raise
                self._mend(error)
            with self._db:
                return work(self._db)
        except (OSError, *FAILURES) as error:
            raise _refused(self.path, error) from error

    def _mend(self, error: Exception) -> None:
        """Go on in a new file; where another process made one already, in that."""
        self._db.close()
        with _lock(self.path):
            if self.path.exists() and os.stat(self.path).st_ino == self._inode:
                self._renew(error)
                self._inode = os.stat(self.path).st_ino
            else:
                self._open()

    def _renew(self, error: Exception) -> None:
        """Set the file aside, and put a new one of the entries of it that are whole in its place.

        Where there is no room for that, the damaged file stays.
        """
        new = self.path.with_name(f"{self.path.name}.new")
        new.unlink(missing_ok=True)
        try:
            with closing(_connect(new)) as db, db:
                kept = db.executemany(_INSERT, readable_entries(self.path)).rowcount
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        name = f"{self.path.name}.damaged-{time.strftime('%Y%m%dT%H%M%S')}"
        aside = set_aside(self.path, name)
        new.replace(self.path)
        self._db = _connect(self.path)
        log.warning(
            "The store %s is damaged (%s). It was set aside as %s: %d of its entries are whole and "
            "were kept, the others are computed again when they are needed.",
            self.path, error, aside.name, max(kept, 0),
        )  # fmt: skip

    def read(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values of those keys that are there and whole; a damaged one counts as missing."""
        wanted = list(keys)
        found: dict[str, Any] = {}
        for first in range(0, len(wanted), _KEYS_PER_QUERY):
            some = [bytes.fromhex(key) for key in wanted[first : first + _KEYS_PER_QUERY]]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, check_sum, value FROM contents WHERE key IN ({marks})"  # noqa: S608  "?" alone
            for key, check_sum, value in self._rows(query, some):
                if is_whole(value, check_sum):
                    found[key.hex()] = json.loads(zlib.decompress(value))
        return found

    def _rows(self, query: str, values: Iterable[Any] = ()) -> list[Any]:
        return self._do(lambda db: db.execute(query, tuple(values)).fetchall())

    def write(self, values: Mapping[str, Any], *, origin: str) -> None:
        """Keep values (JSON types) by key, all or none; one that is there is replaced.

        `origin` names what they were made with (of a score: the weights), to be pruned by.
        """
        now = time.time()
        rows = []
        for key, value in values.items():
            packed = zlib.compress(json.dumps(value, separators=(",", ":")).encode())
            rows.append((bytes.fromhex(key), origin, now, zlib.crc32(packed), packed))
        self._do(lambda db: db.executemany(_INSERT, rows))

    def file_sha256(self, path: Path) -> str:
        """Hex sha256 of a file, remembered as long as its size and time of change stay."""
        place, stat = str(path.resolve()), path.stat()
        rows = self._rows("SELECT size, mtime_ns, sha256 FROM files WHERE path = ?", [place])
        if rows and rows[0][:2] == (stat.st_size, stat.st_mtime_ns):
            return str(rows[0][2])
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        row = (place, stat.st_size, stat.st_mtime_ns, digest)
        self._do(lambda db: db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row))
        return digest

    def summary(self) -> StoreSummary:
        rows = self._rows("SELECT origin, COUNT(*) FROM contents GROUP BY origin")
        by_origin = {str(origin): int(count) for origin, count in rows}
        size = sum(
            path.stat().st_size
            for suffix in ("", "-wal", "-shm")
            if (path := Path(f"{self.path}{suffix}")).exists()
        )
        return StoreSummary(sum(by_origin.values()), size, by_origin)

    def damaged(self) -> list[str]:
        """The keys whose values are not what was written."""
        return self._do(_damaged)

    def prune(self, *, origin: str | None = None, older_than_s: float | None = None) -> int:
        """Delete what is damaged, of the named origin, or older than that; how many went.

        A file whose structure is damaged is set aside first.
        """
        if told := structural_damage(self.path):
            self._mend(sqlite3.DatabaseError(told[0]))
        oldest = None if older_than_s is None else time.time() - older_than_s

        def delete(db: sqlite3.Connection) -> int:
            before = db.total_changes
            keys = [(bytes.fromhex(key),) for key in _damaged(db)]
            db.executemany("DELETE FROM contents WHERE key = ?", keys)
            db.execute("DELETE FROM contents WHERE origin = ?", (origin,))  # none is NULL
            db.execute("DELETE FROM contents WHERE written < ?", (oldest,))
            return db.total_changes - before

        gone = self._do(delete)
        self._do(lambda db: db.execute("VACUUM"))
        return gone


def _damaged(db: sqlite3.Connection) -> list[str]:
    rows = db.execute("SELECT key, check_sum, value FROM contents")
    return [key.hex() for key, check_sum, value in rows if not is_whole(value, check_sum)]


def _connect(path: Path) -> sqlite3.Connection:
    db = open_file(path, patience_s=PATIENCE_S)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.executescript(_SCHEMA)
    except FAILURES:
        db.close()
        raise
    return db


def _lock(path: Path) -> BaseFileLock:
    """Held while a store is opened or set aside: no process opens one that is being moved."""
    from filelock import FileLock

    return FileLock(f"{path}.lock")


def _refused(path: Path, error: Exception) -> StoreError:
    """What is wrong with a store that cannot be used, and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or is_full(error, path.parent):
        what = f"the disk is full. Make room in {path.parent}, or name another folder: cache.dir="
    elif code == sqlite3.SQLITE_BUSY:
        what = f"another process has held it for more than {PATIENCE_S:.0f} s"
    else:
        what = "see whether it may be written, or name another folder with cache.dir="
    return StoreError(
        f"The store {path} cannot be used ({error}): {what}. What it holds is safe, and the same "
        "command goes on from there. To keep nothing: cache.scores=false "
        "cache.perturbations=false."
    )


def content_key(*parts: Any) -> str:
    """Hex sha256 of JSON values, in order."""
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()
