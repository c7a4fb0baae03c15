"""The user's state folder: what is kept outside a ledger, on this machine. Second secrets of open releases are here, and by default the
ledger's high-water mark (witness.py).

    HOLDFAST_STATE, else $XDG_STATE_HOME/holdfast, else ~/.local/state/holdfast

Folders are made for their owner only. A file appears whole or not at all: it is written under another name, synced, renamed, and its folder
synced.

A second secret is overwritten, synced and removed. That is all a program can do: a disk that writes elsewhere (flash memory, file systems
that copy on write or keep a journal), snapshots and backups may still hold the old bytes.

A witness folder may be shared by several users, and a lock lets in one at a time. A folder that its group may write to is shared: files
made in it have its group and mode 0660, folders 2770. Elsewhere they are for their owner only. Nothing is made or opened through a link:
who may write to the folder could lead us elsewhere with one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.errors import NoWitness
from holdfast.ledger.chain import LedgerId

logger = logging.getLogger(__name__)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk: from here on they outlast a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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


STATE = "HOLDFAST_STATE"
_SECRETS = "secrets"
MAX_BYTES = 2**28
"""The largest file that is read: a mark of a hundred thousand releases has less."""


def state_path() -> Path | None:
    """Where the state folder is or would be; None for an account without a home."""
    named = os.environ.get(STATE)
    if named is not None:
        if not os.path.isabs(named):
            raise NoWitness(f"{STATE} must be the full path of a folder. Got {named!r}. Write one that begins with /, or unset it.")
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(base):
        return Path(base, "holdfast")
    home = os.path.expanduser("~")
    return Path(home, ".local", "state", "holdfast") if os.path.isabs(home) and home != "/" and os.path.isdir(home) else None


def state_folder() -> Path | None:
    """The state folder, which may not have been made yet; None where it cannot be used. Refused where others may write to it."""
    path = state_path()
    if path is None:
        return None
    there = next(folder for folder in (path, *path.parents) if os.path.exists(folder))
    if there == path and path.stat().st_mode & 0o022:
        raise NoWitness("The state folder of Holdfast can be written by others, who could put back what it remembers. Use chmod 700 on it.")
    return path if is_usable(there) else None


def is_usable(folder: Path) -> bool:
    """Whether files can be read and made in a folder, by who we are now."""
    return folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)


def make_folder(folder: Path) -> None:
    """The folder, and those above it that are missing, for their owner only."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


def write_whole(path: Path, content: bytes, share: Callable[[int], None] = lambda handle: None) -> None:
    """The file with this content, for its owner only, whole and on disk when this returns; or OSError and the file as it was.

    `share`:  called with the handle of the new file, before it has its name, to give others rights.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            share(file.fileno())
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def read_plain(path: Path) -> bytes:
    """The content of a plain file; OSError for anything else, so that a pipe is never waited for, and for one too large for memory."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a plain file")
        if found.st_size > MAX_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return file.read(MAX_BYTES)


# Second secrets: one for each open release of a ledger, named by the event that reserved it.

_NAME = re.compile(r"([0-9a-f]{32})-([1-9][0-9]{0,17})(\.[0-9a-f]{16})?")
"""A secret, or one that a stop left half written."""


def keep_secret(ledger: LedgerId, seq: int, content: bytes) -> None:
    """Put the second secret of a release away; OSError where it cannot be. Called where there is a state folder."""
    folder = state_folder()
    if folder is None:
        raise FileNotFoundError
    make_folder(folder / _SECRETS)
    path = folder / _SECRETS / _name(ledger, seq)
    if path.exists():  # of a copy of the ledger that is gone
        destroy(path)
    write_whole(path, content)


def read_secret(ledger: LedgerId, seq: int) -> bytes | None:
    """The second secret of a release; None where it is not on this machine."""
    folder = state_path()
    try:
        return None if folder is None else read_plain(folder / _SECRETS / _name(ledger, seq))
    except OSError:
        return None


def kept_secrets(ledger: LedgerId) -> list[tuple[int, Path]]:
    """The second secrets of a ledger on this machine, each with the number of its release; 0 for one that a stop left half written."""
    folder = state_path()
    if folder is None or not (folder / _SECRETS).is_dir():
        return []
    matches = [match for name in sorted(os.listdir(folder / _SECRETS)) if (match := _NAME.fullmatch(name)) and match[1] == ledger]
    return [(0 if match[3] else int(match[2]), folder / _SECRETS / match[0]) for match in matches]


def destroy(path: Path) -> None:
    """Overwrite, sync, remove. A secret that cannot be overwritten is still removed, and one that cannot be removed is an error."""
    with contextlib.suppress(OSError), open(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK), "r+b") as file:
        file.write(secrets.token_bytes(os.fstat(file.fileno()).st_size))
        file.flush()
        os.fsync(file.fileno())
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def _name(ledger: LedgerId, seq: int) -> str:
    return f"{ledger}-{seq:d}"
