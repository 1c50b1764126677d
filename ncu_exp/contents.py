"""Stores on disk, addressed by content: what was computed once is never computed again.

The key of a value is the sha256 of everything that the value depends on (of a score: weights,
precision, device, numerics, engine version, prompt ids, answer ids, generation length), so one
model's score cannot be served to another, and a change of any of them is a miss. SQLite in
write-ahead mode: several processes may use it at once, and what was committed survives a kill.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCORES, PERTURBATIONS = "scores.sqlite", "perturbations.sqlite"  # files in `cache.dir`
PATIENCE_S = 60.0  # for another process's write
_KEYS_PER_QUERY = 500

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
    """An open store; every call is a transaction of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, timeout=PATIENCE_S, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    def read(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values of those keys that are there and whole; a damaged one counts as missing."""
        wanted = list(keys)
        found: dict[str, Any] = {}
        for first in range(0, len(wanted), _KEYS_PER_QUERY):
            some = [bytes.fromhex(key) for key in wanted[first : first + _KEYS_PER_QUERY]]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, check_sum, value FROM contents WHERE key IN ({marks})"
            for key, check_sum, value in self._db.execute(query, some):
                if zlib.crc32(value) == check_sum:
                    found[key.hex()] = json.loads(zlib.decompress(value))
        return found

    def write(self, values: Mapping[str, Any], *, origin: str) -> None:
        """Keep values (JSON types) by key, all or none; one that is there is replaced.

        `origin` names what they were made with (of a score: the weights), to be pruned by.
        """
        now = time.time()
        rows = []
        for key, value in values.items():
            packed = zlib.compress(json.dumps(value, separators=(",", ":")).encode())
            rows.append((bytes.fromhex(key), origin, now, zlib.crc32(packed), packed))
        with self._db:
            self._db.executemany("INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?, ?)", rows)

    def file_sha256(self, path: Path) -> str:
        """Hex sha256 of a file, remembered as long as its size and time of change stay."""
        place, stat = str(path.resolve()), path.stat()
        row = self._db.execute(
            "SELECT size, mtime_ns, sha256 FROM files WHERE path = ?", (place,)
        ).fetchone()
        if row is not None and row[:2] == (stat.st_size, stat.st_mtime_ns):
            return str(row[2])
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        with self._db:
            self._db.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)",
                (place, stat.st_size, stat.st_mtime_ns, digest),
            )
        return digest

    def summary(self) -> StoreSummary:
        rows = self._db.execute("SELECT origin, COUNT(*) FROM contents GROUP BY origin").fetchall()
        by_origin = {str(origin): int(count) for origin, count in rows}
        size = sum(
            path.stat().st_size
            for suffix in ("", "-wal", "-shm")
            if (path := Path(f"{self.path}{suffix}")).exists()
        )
        return StoreSummary(sum(by_origin.values()), size, by_origin)

    def damaged(self) -> list[str]:
        """The keys whose values are not what was written."""
        rows = self._db.execute("SELECT key, check_sum, value FROM contents")
        return [key.hex() for key, check_sum, value in rows if zlib.crc32(value) != check_sum]

    def prune(self, *, origin: str | None = None, older_than_s: float | None = None) -> int:
        """Delete what is damaged, of the named origin, or older than that; how many went."""
        before = self._db.total_changes
        with self._db:
            self._db.executemany(
                "DELETE FROM contents WHERE key = ?", [(bytes.fromhex(k),) for k in self.damaged()]
            )
            if origin is not None:
                self._db.execute("DELETE FROM contents WHERE origin = ?", (origin,))
            if older_than_s is not None:
                self._db.execute(
                    "DELETE FROM contents WHERE written < ?", (time.time() - older_than_s,)
                )
        gone = self._db.total_changes - before
        with closing(self._db.cursor()) as cursor:
            cursor.execute("VACUUM")
        return gone


def content_key(*parts: Any) -> str:
    """Hex sha256 of JSON values, in order."""
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()
