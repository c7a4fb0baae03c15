"""Files of a witness folder that several users may share: what they may be read and written by, and the lock that lets in one at a time.

A folder that its group may write to is shared: files made in it have its group and mode 0660, folders 2770. Elsewhere they are for their
owner only. Nothing is made or opened through a link: who may write to the folder could lead us elsewhere with one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.ledger.state import make_folder, sync_folder, write_whole

logger = logging.getLogger(__name__)

LOCK_SECONDS = 60.0
"""How long a process waits for another one before it gives up; a mark is written in milliseconds."""
_LOOK_AGAIN = 0.05
SAY_AFTER = 2.0
"""Seconds of waiting before a user hears of it: processes that take turns wait for less."""
WAITING = "Another process is using the state or witness folder: waiting for it, up to %g seconds."


def write_shared(folder: Path, path: Path, content: bytes) -> None:
    """A file of a witness folder, whole and on disk when this returns; or OSError and the file as it was."""
    write_whole(path, content, lambda handle: _share(handle, folder, 0o660))


def make_inside(folder: Path, name: str) -> Path:
    """A folder in a witness folder; OSError where a link or a file is in its place."""
    make_folder(folder)
    path = folder / name
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, f"a link or file is in the place of its folder {name!r}") from None
        return path
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _share(handle, folder, 0o2770)
    finally:
        os.close(handle)
    sync_folder(folder)
    return path


def _share(handle: int, folder: Path, mode: int) -> None:
    """Give what was just made to the folder's group, if that may write to the folder."""
    there = folder.stat()
    if there.st_mode & stat.S_IWGRP:
        with contextlib.suppress(PermissionError):  # of an owner who is not in the group: then for the owner only
            os.fchown(handle, -1, there.st_gid)
            os.fchmod(handle, mode)


@contextlib.contextmanager
def lock_folder(folder: Path, name: str) -> Iterator[None]:
    """One process at a time; OSError where another one does not end. On file systems without locks it is skipped."""
    make_folder(folder)
    handle = _open_lock(folder, folder / f"{name}.lock")
    try:
        wait_for(handle, WAITING)
        yield
    finally:
        os.close(handle)


def _open_lock(folder: Path, path: Path) -> int:
    with contextlib.suppress(FileExistsError):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _share(handle, folder, 0o660)
        return handle
    if not stat.S_ISREG(path.lstat().st_mode):
        raise OSError(errno.ELOOP, "a link or a folder is in the place of its lock")
    return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)


def wait_for(handle: int, waiting: str) -> None:
    """Lock a file for this process; OSError (EBUSY) where another one does not let it go. On file systems without locks it is skipped.

    `waiting`:  the message for who has to wait, with a place for the seconds.
    """
    begun, is_told = time.monotonic(), False
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        except OSError:  # no locks here
            return None
        waited = time.monotonic() - begun
        if waited >= LOCK_SECONDS:
            raise OSError(errno.EBUSY, f"another process held its lock for {LOCK_SECONDS:g} seconds")
        if waited >= min(SAY_AFTER, LOCK_SECONDS / 2) and not is_told:
            is_told = True
            logger.warning(waiting, LOCK_SECONDS)
        time.sleep(_LOOK_AGAIN)
