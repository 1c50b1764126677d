"""A disk that is full: told by the place that has no room, and not as an error number."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from ncu_exp.errors import DiskFullError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NEXT_TO_NOTHING = 65_536  # bytes


def is_full(error: BaseException, folder: Path) -> bool:
    """Whether an error says that a disk is full, or came of it: there is no room in the folder."""
    if getattr(error, "errno", None) in _NO_ROOM:
        return True
    try:
        return shutil.disk_usage(folder).free < _NEXT_TO_NOTHING
    except OSError:
        return False


def probe(folder: Path) -> None:
    """Make the folder, and write a little there that goes again: DiskFullError if there is no room.

    What cannot be written for another reason is left to whoever writes there.
    """
    with room_in(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=folder) as file:
                file.write(bytes(_NEXT_TO_NOTHING))
                file.flush()
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise


@contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """While files are written there: a full disk is a DiskFullError that names the folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise DiskFullError(
            f"{folder} cannot be written, the disk is full ({error.strerror or error}). Make room "
            "there, or name another folder with hydra.run.dir= (hydra.sweep.dir= of a sweep), and "
            "start the same command again: what was scored is in the store, and not scored twice."
        ) from error
