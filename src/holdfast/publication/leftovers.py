"""What a killed run leaves beside an output, and how a later one tells it from what another process is at work on: by its lock.

A lock file stands beside every unfinished folder, from before the folder is made until after it is gone, and is locked as long as the
process lives. A folder of a run without a ledger whose lock nobody holds belongs to nobody: it is removed, or named where it cannot be. A
folder of a run with a ledger belongs to its entry there, and is left alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import re
import shutil
from pathlib import Path

from holdfast.ledger.shared_files import wait_for
from holdfast.wording.endings import left_over_sentence, removed_sentence

logger = logging.getLogger(__name__)

TEMPORARY = ".holdfast-unfinished-"
BEFORE = "-before"
"""What the name of a folder that is being replaced ends in, where the system cannot exchange two folders at once."""
WAITING = "Another process is writing this release: waiting for it, up to %g seconds."

_WITHOUT_LEDGER = re.compile(re.escape(TEMPORARY) + "[0-9a-f]{16}")


def lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


class LockProblem(OSError):
    """A lock beside the output that cannot be had; `strerror` says why and what to do."""


def take_lock(path: Path) -> int:
    """Wait until nobody else holds this lock file, and return its handle. It ends with the process; where there are no locks it is skipped.

    Raise LockProblem if another process does not let it go, or if the file belongs to another user, who could hold it for ever.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            _check_owner(handle, path)
            wait_for(handle, WAITING)
            if _is_at(handle, path):
                return handle
        except BaseException as error:
            os.close(handle)
            if isinstance(error, OSError) and error.errno == errno.EBUSY:
                raise LockProblem(errno.EBUSY, f"{error.strerror}. Let that process end, and run the command again") from None
            raise
        os.close(handle)  # who held it was done and removed it


def _check_owner(handle: int, path: Path) -> None:
    if os.fstat(handle).st_uid != os.geteuid():
        raise LockProblem(errno.EACCES, f"its lock {path.name!r} belongs to another user. Remove that file, or write to another folder")


def drop_lock(path: Path, handle: int | None) -> None:
    """A lock file that cannot be removed does no harm: nobody holds it. Without a handle only for a name that no other process uses: a
    signal came after the file was made and before its handle was known here.
    """
    with contextlib.suppress(OSError):
        path.unlink()
    if handle is not None:
        os.close(handle)


def clear(folder: Path, handle: int | None) -> None:
    """Remove an unfinished folder whose name no other process uses, and its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    drop_lock(lock_of(folder), handle)


def remove_leftovers(parent: Path) -> None:
    """Remove what killed runs without a ledger left in this folder, and say so; name what stays."""
    try:
        found = sorted({name.removesuffix(".lock") for name in os.listdir(parent)})
    except OSError:
        return  # it may be written to, and not listed
    for name in found:
        if name.startswith(TEMPORARY) and name.endswith(BEFORE):
            logger.info("%s", left_over_sentence(name, replaced=True))
        elif _WITHOUT_LEDGER.fullmatch(name):
            _remove(parent / name)


def _remove(folder: Path) -> None:
    try:
        handle = os.open(lock_of(folder), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_at(handle, lock_of(folder)):
                return  # who held it is done
            if os.path.lexists(folder):
                if os.lstat(folder).st_uid != os.geteuid():
                    raise PermissionError
                shutil.rmtree(folder)
                logger.info("%s", removed_sentence(folder.name))
            os.unlink(lock_of(folder))
        finally:
            os.close(handle)
    except BlockingIOError:
        return  # another process is at work on it
    except OSError:
        logger.info("%s", left_over_sentence(folder.name, replaced=False))


def _is_at(handle: int, path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False
