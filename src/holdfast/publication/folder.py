"""The output folder: written beside its final place, complete and synced, then renamed. Nothing partial ever has the final name."""

from __future__ import annotations

import contextlib
import csv
import ctypes
import errno
import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import HoldfastError, IdenticalRelease, InvalidParameter, OutputExists, OutputProblem
from holdfast.publication.card import Card
from holdfast.publication.noise import noise_charts
from holdfast.publication.signing import load_signing_key, signed
from holdfast.report.report import report_html
from holdfast.report.statement import statement_html
from holdfast.tables.formats import FORMATS
from holdfast.tables.saving import save_frame

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from holdfast.publication.release import Release

CARD = "card.json"
TEMPORARY = ".holdfast-unfinished-"
_HERE, _RENAME_EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux's renameat2."""


def write_folder(release: Release, folder: Path, formats: tuple[str, ...], sign: Path | None, force: bool) -> Path:
    """Write all files of a release to a new folder.

    Guarantees:  under the final name stands a complete folder or what was there before. `force` replaces another release, never an
                 identical one: that would publish a second noisy copy.
    """
    check_formats(formats)
    check_output(folder, release.card, force)
    signing_key = None if sign is None else load_signing_key(sign)
    with _unfinished(folder) as temporary:
        fill_folder(release, temporary, formats, signing_key)
        put_in_place(temporary, folder, force)
    return folder


def fill_folder(release: Release, temporary: Path, formats: tuple[str, ...], signing_key: Ed25519PrivateKey | None) -> None:
    """Write all files of a release into an empty folder, each synced to disk; the card last."""
    for name in formats:
        save_frame(release.table.frame, temporary / f"table{FORMATS[name].suffix}")
    _write(temporary / "kept.csv", _kept_csv(release))
    card = release.card_with({})
    _write(temporary / "statement.html", statement_html(card).encode())
    _write(temporary / "report.html", report_html(card, release.kept_rows(), noise_charts(release.law)).encode())
    files = {path.name: _checksum(path) for path in sorted(temporary.iterdir())}
    made = Card.model_validate(release.card_with(files))
    _write(temporary / CARD, (made if signing_key is None else signed(made, signing_key)).to_json().encode())
    for path in temporary.iterdir():
        path.chmod(0o644)
    temporary.chmod(0o755)
    _sync(temporary)


def check_output(folder: Path, card: dict[str, Any], force: bool, sign: Path | None = None) -> None:
    """Refuse what could not be written, before anything is drawn: a folder that is there (with `force` only one that holds this very
    release, or is no release), a place that is none, a signing key that is none.
    """
    if any("\0" in name for name in (*card["table"]["columns"], card["table"]["count"])):
        raise OutputProblem("A column name with a NUL character cannot be written to a file that others read. Rename the column.")
    if sign is not None:
        load_signing_key(sign)
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise OutputProblem(f"The folder that should hold {folder.name!r} is not there. Create it first.")
    if os.path.lexists(folder):
        _check_replaced(folder, card, force)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise in_words(PermissionError(errno.EACCES, ""), folder)


def _check_replaced(folder: Path, card: dict[str, Any], force: bool) -> None:
    if not force:
        raise OutputExists(f"{folder.name!r} is there already. Choose another name, or force=True (--force) to replace another release.")
    if folder.is_symlink():
        raise OutputExists(f"{folder.name!r} is a link, which is not replaced. Name the folder itself.")
    try:
        before = Card.from_json((folder / CARD).read_text(encoding="utf-8")).to_dict()
    except (OSError, ValueError):
        raise OutputExists(f"{folder.name!r} is there already and holds no release that could be replaced. Choose another name.") from None
    if _identity(before) == _identity(card):
        raise IdenticalRelease(
            f"{folder.name!r} already holds the release {before['release']['id']!r} with the same law, kept totals and cells. Drawing it "
            "again would publish a second noisy copy and spend the budget twice. Use the folder as it is, or give the release a new id."
        )


def _identity(card: dict[str, Any]) -> tuple[Any, ...]:
    return (
        card["release"]["id"],
        card["mechanism"]["name"],
        card["mechanism"]["parameters"],
        card["guarantee"]["parameters"],
        card["kept"]["definitions"],
        card["table"]["universe_digest"],
    )


def check_formats(formats: tuple[str, ...]) -> None:
    """Refuse a format that is not written."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        raise InvalidParameter(f"Tables are written as {' and '.join(FORMATS)}. Got {', '.join(map(repr, unknown)) or 'no format'}.")


@contextlib.contextmanager
def _unfinished(folder: Path) -> Iterator[Path]:
    """A folder on the same file system that is gone afterwards, whatever happens (unless it was renamed)."""
    parent = folder.absolute().parent
    try:
        temporary = Path(tempfile.mkdtemp(dir=parent, prefix=TEMPORARY))
    except OSError as error:
        raise in_words(error, folder) from None
    try:
        yield temporary
    except OSError as error:
        raise in_words(error, folder) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def in_words(error: OSError, folder: Path) -> HoldfastError:
    """An error of the system as one of ours."""
    reasons = {
        errno.ENOSPC: "the disk is full. Make room, or write to another disk",
        errno.EDQUOT: "your quota is used up. Make room, or write elsewhere",
        errno.EACCES: "permission is missing. Choose a folder you may write to",
        errno.EPERM: "permission is missing. Choose a folder you may write to",
        errno.EROFS: "the disk can only be read. Choose another",
    }
    reason = reasons.get(error.errno or 0, f"the system says: {os.strerror(error.errno) if error.errno else type(error).__name__}")
    return OutputProblem(f"{folder.name!r} could not be written: {reason}. Nothing was left behind.")


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _kept_csv(release: Release) -> bytes:
    text, rows = io.StringIO(), release.kept_rows()
    # Python before 3.13 leaves a lone carriage return unquoted, and readers take it for the end of a row.
    returns = any("\r" in statement or "\r" in name for statement, name, _ in rows)
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL)
    writer.writerow(["statement", "name", "total"])
    writer.writerows(rows)
    return text.getvalue().encode()


def _checksum(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}


def put_in_place(temporary: Path, folder: Path, force: bool) -> None:
    """Give the complete folder its name. A rename onto a folder that has files fails, so nothing is replaced unseen."""
    if force and os.path.lexists(folder):
        _exchange(temporary, folder.absolute())
    else:
        try:
            os.rename(temporary, folder)
        except OSError:
            if os.path.lexists(folder):
                raise OutputExists(f"{folder.name!r} appeared in the meantime and is left as it is. Choose another name.") from None
            raise
    with contextlib.suppress(OSError):  # the folder has its name; a parent that cannot be synced does not undo that
        _sync(folder.absolute().parent)


def _exchange(temporary: Path, folder: Path) -> None:
    """Swap two folders at once where the system can; else one after the other, with the way back. What was there goes with `temporary`."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    if swap is not None and swap(_HERE, os.fsencode(temporary), _HERE, os.fsencode(folder), _RENAME_EXCHANGE) == 0:
        return
    aside = temporary.with_name(f"{temporary.name}-before")
    os.rename(folder, aside)
    try:
        os.rename(temporary, folder)
    except BaseException:
        os.rename(aside, folder)
        raise
    os.rename(aside, temporary)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
