"""What can still be read of a damaged store: checks of the file, and the entries that are whole.

SQLite finds damage to the structure of its file when it comes upon it, and the check sum of an
entry damage to the value. The keys are hashes, and so spread evenly: asked for range by range, from
both ends of each, the entries come back but for those on the damaged pages themselves.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

FILES = ("-wal", "")  # of a store that is moved: what it has written last goes first
FAILURES = (sqlite3.Error, UnicodeDecodeError)  # the latter where a message has damaged text
# The store's own statements never fail but where its file, or the schema in it, is damaged.
_DAMAGE = (
    sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_FORMAT,
)  # fmt: skip
_RANGES = 4096
_COLUMNS = "key, origin, written, check_sum, value"

Row = tuple[bytes, str, float, int, bytes]


def is_damage(error: Exception) -> bool:
    """Whether an error says that the file is not what SQLite wrote."""
    if isinstance(error, UnicodeDecodeError):
        return True
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _DAMAGE


def is_whole(value: Any, check_sum: Any) -> bool:
    """Whether a value is what was written, its type as well."""
    return isinstance(value, bytes) and zlib.crc32(value) == check_sum


def open_file(path: Path, *, patience_s: float = 10.0) -> sqlite3.Connection:
    """A connection, for any thread, to a store whose texts may be damaged too."""
    db = sqlite3.connect(path, timeout=patience_s, check_same_thread=False)
    db.text_factory = lambda raw: raw.decode(errors="replace")
    return db


def structural_damage(path: Path) -> list[str]:
    """What SQLite finds wrong with the file of a store; nothing is changed."""
    try:
        with closing(open_file(path)) as db:
            told = [str(line) for (line,) in db.execute("PRAGMA integrity_check(20)")]
    except FAILURES as error:
        if not is_damage(error):
            raise
        return [str(error)]
    return [] if told == ["ok"] else told


def readable_entries(path: Path) -> Iterator[Row]:
    """The entries of a store that can be read and are whole, each of them once."""
    with closing(open_file(path)) as db:
        with suppress(*FAILURES):
            db.execute("PRAGMA writable_schema=ON")  # or a file that was cut is not read at all
        for number in range(_RANGES):
            yield from _of_range(db, number)


def _of_range(db: sqlite3.Connection, number: int) -> Iterator[Row]:
    """Those whose key begins with the 12 bits of the number."""
    low = (number << 4).to_bytes(2, "big")
    high = ((number + 1) << 4).to_bytes(3, "big")[1:] if number + 1 < _RANGES else b"\xff" * 33
    seen: set[bytes] = set()
    for order in ("ASC", "DESC"):
        query = f"SELECT {_COLUMNS} FROM contents WHERE key >= ? AND key < ? ORDER BY key {order}"  # noqa: S608
        with suppress(*FAILURES):
            for row in db.execute(query, (low, high)):
                if row[0] not in seen and is_whole(row[4], row[3]):
                    seen.add(row[0])
                    yield row
            break


def set_aside(path: Path, name: str) -> Path:
    """Give a store, all of its files, another name in its folder; what is there is replaced."""
    aside = path.with_name(name)
    for suffix in FILES:
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").replace(f"{aside}{suffix}")
    Path(f"{path}-shm").unlink(missing_ok=True)
    return aside
