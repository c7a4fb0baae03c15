"""The output folder: written beside its final place, complete and synced, then renamed. Nothing partial ever has the final name.

A killed run leaves an unfinished folder beside the output; a later one tells it by its lock from what another process is at work on. A
lock file stands beside every unfinished folder, from before the folder is made until after it is gone, and is locked as long as the
process lives. A folder of a run without a ledger whose lock nobody holds belongs to nobody: it is removed, or named where it cannot be. A
folder of a run with a ledger belongs to its entry there, and is left alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import logging
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.card.card import Card, FileInfo
from holdfast.card.parts import TableSet
from holdfast.card.problems import other_version
from holdfast.display import printable, step
from holdfast.errors import HoldfastError, IdenticalRelease, InvalidParameter, OutputExists, OutputProblem
from holdfast.ledger.chain import read_head
from holdfast.ledger.state import sync_folder, wait_for
from holdfast.publication.given_files import (
    CARD,
    MAX_JSON_BYTES,
    TABLES,
    Unfit,
    check_json,
    main_file,
    read_json_text,
    read_plain,
)
from holdfast.publication.listings import EXPOSED_FILE, KEPT_FILE, exposed_csv, kept_csv, shown_rows
from holdfast.publication.map_files import MAP_FILE
from holdfast.publication.maps import MapRequest, folder_areas
from holdfast.publication.public_files import file_problems, set_problems
from holdfast.publication.report_facts import report_facts
from holdfast.publication.signing import load_signing_key, public_key_of, sign_card
from holdfast.publication.view import VIEW, VIEW_FILE, check_base
from holdfast.report.report import report_html
from holdfast.report.statement import statement_html
from holdfast.tables import Universe
from holdfast.tables.formats import FORMATS, FORMULAS, formula_columns, is_formula, mark_frame, save_pieces
from holdfast.wording.endings import left_over_sentence, removed_sentence

if TYPE_CHECKING:
    from holdfast.ledger.releases import Reservation
    from holdfast.publication.publication import Publication

logger = logging.getLogger(__name__)

TEMPORARY = ".holdfast-unfinished-"
BEFORE = "-before"
"""What the name of a folder that is being replaced ends in, where the system cannot exchange two folders at once."""
WAITING = "Another process is writing this release: waiting for it, up to %g seconds."
_WITHOUT_LEDGER = re.compile(re.escape(TEMPORARY) + "[0-9a-f]{16}")
TRIAL_BYTES = 1 << 16
MOST_CSV_CELLS = 10_000_000
"""Cells up to which a table is written as CSV where no formats are named: dozens of bytes a cell, where Parquet has two."""
SHOWN = 10
"""Things in the way of a folder that a message lists; the rest is counted."""
BYTES_A_ROW = 4
"""Least bytes of a table on disk for each cell: a digit, a comma, a code and an end of line."""
_HERE, _RENAME_EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux's renameat2."""


@dataclass(frozen=True)
class Output:
    """Where a release goes, and what is written. `force` replaces another release, never an identical one: that would publish a second
    noisy copy. What it replaces is an intact publication and nothing more.
    """

    folder: Path
    formats: tuple[str, ...] | None = None
    """What the table is written as; None for what `formats_of` says."""
    sign: Path | None = None
    """An Ed25519 private key in PEM."""
    force: bool = False
    formulas: str = "warn"
    """Texts that a spreadsheet would run: "warn" writes them into CSV files as they are, "mark" with an apostrophe before them."""
    view_base: int | None = None
    """Write a publication view to this base too; None for no view."""
    map: MapRequest | None = None
    """Draw the numbers on this map in the report; its areas are published with it."""

    def check(self) -> None:
        """Refuse formats and keys that cannot be used."""
        asked = FORMATS if self.formats is None else self.formats
        unknown = [name for name in asked if name not in FORMATS]
        if unknown or not asked:
            raise InvalidParameter(f"Tables are written as {' and '.join(FORMATS)}. Got {', '.join(map(repr, unknown)) or 'no format'}.")
        if self.formulas not in FORMULAS:
            raise InvalidParameter(f"formulas is one of {', '.join(map(repr, FORMULAS))}. Got {self.formulas!r}.", field="formulas")
        if self.view_base is not None:
            check_base(self.view_base)
        if self.sign is not None:
            load_signing_key(self.sign)

    def formats_of(self, cells: int) -> tuple[str, ...]:
        """The formats of a table with so many cells: those asked for; else all, without CSV above MOST_CSV_CELLS."""
        return tuple(name for name in FORMATS if name != "csv" or cells <= MOST_CSV_CELLS) if self.formats is None else self.formats


def fill_folder(release: Publication, temporary: Path, output: Output) -> None:
    """Write all files of a release into an empty folder, each synced to disk; the card last."""
    formats = output.formats_of(len(release.table))
    logger.debug("Writing the files of %r: %s and what goes with them", output.folder.name, ", ".join(formats))
    marked = output.formulas == "mark" and has_formulas(release.table.universe, release.table.count_name, release.kept_rows)
    view = None if output.view_base is None else release.view(base=output.view_base)
    with step("Writing the table"):
        for name in formats:
            for stem, pieces in (("table", release.table.pieces()), *(() if view is None else ((VIEW, [view.frame]),))):
                written = map(mark_frame, pieces) if marked and name == "csv" else pieces
                save_pieces(written, temporary / f"{stem}{FORMATS[name].suffix}")
    if view is not None:
        write_synced(temporary / VIEW_FILE, view.info.to_json().encode())
    beside = None if view is None else view.info
    write_synced(temporary / KEPT_FILE, kept_csv(release.plan.facts.kept, release.totals, release.table.measure, marked=marked))
    exposed = exposed_csv(release.exposure, release.table.counts, release.table.count_name, release.table.measure, marked=marked)
    write_synced(temporary / EXPOSED_FILE, exposed)
    key = None if output.sign is None else load_signing_key(output.sign)
    card = release.card.to_be_signed_by(None if key is None else public_key_of(key))
    card = card.with_marked_formulas() if marked else card
    write_synced(temporary / "statement.html", statement_html(card, beside).encode())
    kept_rows = shown_rows(release.kept_rows, release.plan.facts.kept, release.table.measure)
    areas = None
    if output.map is not None:
        write_synced(temporary / MAP_FILE, output.map.public())
        areas = folder_areas((temporary / MAP_FILE).read_bytes(), release.plan, release.table)
    with step("Writing the pages"):
        facts = report_facts(release.plan, release.table, areas, beside)
        write_synced(temporary / "report.html", report_html(card, kept_rows, facts).encode())
    made = card.with_files({path.name: _checksum(path) for path in sorted(temporary.iterdir())})
    if key is not None:
        made = sign_card(made, key)
    write_synced(temporary / CARD, made.to_json().encode())
    follow_umask(temporary, CARD)
    sync_folder(temporary)
    sync_folder(temporary.parent)  # the ledger will say that the folder is there: it must be, after a power loss too


def has_formulas(universe: Universe, count: str, rows: Iterable[tuple[str, str, Any]]) -> bool:
    """Whether a CSV file of the release holds a text that a spreadsheet would run."""
    return bool(formula_columns(universe, (count,))) or any(is_formula(text) for row in rows for text in row[:2])


def follow_umask(folder: Path, plain: str) -> None:
    """Give a finished folder and its files the rights that new ones get here; the file `plain` was simply made, and has them."""
    mode = (folder / plain).stat().st_mode & 0o777
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(mode)
    folder.chmod(mode | (mode & 0o444) >> 2)


def check_output(output: Output, columns: Iterable[str], release_id: str, identity: str) -> None:
    """Refuse what could not be written, before anything is drawn: a folder that exists and is not empty (with `force`: one that holds this
    very release, or none), a place that does not exist, an unusable signing key.
    """
    output.check()
    folder = output.folder
    if any("\0" in name for name in columns):
        raise OutputProblem("A column name with a NUL character cannot be written to a file that others read. Rename the column.")
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise OutputProblem(f"The folder that should hold {folder.name!r} does not exist. Create it first.")
    if (parent / CARD).exists() and (parent / KEPT_FILE).exists():
        raise OutputProblem(
            f"{folder.name!r} would be inside the published folder {parent.name!r}, which holds what its card lists and no more. Choose a "
            "place outside of it."
        )
    if os.path.lexists(folder):
        _check_replaced(output, release_id, identity)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise output_problem(PermissionError(errno.EACCES, ""), folder)


def try_to_write(folder: Path, cells: int) -> None:
    """Make a folder with a file beside the final place, and remove both: rights alone do not show quotas and full disks. Refuse a disk
    that has no room for so many cells.
    """
    parent = folder.absolute().parent
    trial = parent / f"{TEMPORARY}{secrets.token_hex(8)}"
    lock = None
    try:
        try:
            lock = take_lock(lock_of(trial))  # so that it is not taken for what a killed run left
            os.mkdir(trial, mode=0o700)
            with open(trial / CARD, "wb") as file:
                file.write(bytes(TRIAL_BYTES))
        finally:
            try:
                clear(trial, lock)
            except BaseException:  # a signal: once more, and to the end
                clear(trial, None)
                raise
        left = shutil.disk_usage(parent).free
    except OSError as error:
        raise output_problem(error, folder) from None
    needed = BYTES_A_ROW * cells
    if needed > left:
        raise OutputProblem(
            f"{folder.name!r} would need {needed / 1e6:,.0f} MB of the disk or more, and {left / 1e6:,.0f} MB are left. Make room, or "
            "write to another disk. Nothing was left behind."
        )


def _check_replaced(output: Output, release_id: str, identity: str) -> None:
    """Refuse a name that is taken. `force` is offered only where it would be followed."""
    name = output.folder.absolute().name
    if is_free_folder(output.folder):
        return
    if output.folder.is_symlink():
        raise OutputExists(f"{name!r} is a link, which is not replaced. Name the folder itself.")
    before = _card_in(output.folder, name)
    if (before.release.id, before.mechanism.identity) == (release_id, identity):
        raise IdenticalRelease(
            f"{name!r} already holds the release {release_id!r} with the same law, kept totals and cells. Drawing it "
            "again would publish a second noisy copy and spend the budget twice. Use the folder as it is, or give the release a new id."
        )
    _check_nothing_more(output.folder, name, before)
    if not output.force:
        raise OutputExists(
            f"{name!r} already exists and holds the release {before.release.id!r}. Choose another name, or add --force to replace it."
        )


def is_free_folder(folder: Path) -> bool:
    """Whether a release can be put in the place of this folder by a rename alone: it is empty, our own, no link and no mounted disk."""
    try:
        own = os.lstat(folder).st_uid == os.geteuid()
        return own and folder.is_dir() and not (folder.is_symlink() or os.path.ismount(folder) or os.listdir(folder))
    except OSError:
        return False


def release_in(folder: Path) -> str | None:
    """The id of the release that a folder holds; None if it holds none that this version can read."""
    try:
        return _card_in(folder, folder.name).release.id
    except OutputExists:
        return None


def _card_in(folder: Path, name: str) -> Card:
    """The card of a folder that holds a release; OutputExists where it holds none that could be replaced."""
    text = ""
    try:
        text = read_json_text(folder / CARD)
        return Card.from_json(text)
    except ValueError:
        old = other_version(text)
    what = "no release" if old is None else f"a release of another version of Holdfast (card {old}), which is not one"
    raise OutputExists(f"{name!r} already exists and holds {what} that could be replaced. Choose another name.")


def _check_nothing_more(folder: Path, name: str, card: Card) -> None:
    """Refuse to replace a folder that is not the publication of its card alone: what else is in it would be lost."""
    if found := list(file_problems(folder, card)):
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise OutputExists(
            f"{name!r} is not replaced: it holds more than a publication, or one that was changed. In the way: "
            f"{printable('; '.join(found[:SHOWN]))}{more}. Move that away, or choose another name."
        )


def output_problem(error: OSError, folder: Path, left: str = "Nothing was left behind.") -> HoldfastError:
    """An error of the system as one of ours. `left` says what the disk and the ledger hold now."""
    reasons = {
        errno.ENOSPC: "the disk is full. Make room, or write to another disk",
        errno.EDQUOT: "your quota is used up. Make room, or write elsewhere",
        errno.EACCES: "permission is missing. Choose a folder you may write to",
        errno.EPERM: "permission is missing. Choose a folder you may write to",
        errno.EROFS: "the disk can only be read. Choose another",
    }
    said = f"the system says: {os.strerror(error.errno) if error.errno else type(error).__name__}"
    reason = error.strerror if isinstance(error, LockProblem) else reasons.get(error.errno or 0, said)
    return OutputProblem(f"{folder.name!r} could not be written: {reason}. {left}")


def write_synced(path: Path, content: bytes) -> None:
    """A file whose content is on disk when this returns."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _checksum(path: Path) -> FileInfo:
    with open(path, "rb") as file:
        return FileInfo(sha256=hashlib.file_digest(file, "sha256").hexdigest(), bytes=path.stat().st_size)


def put_in_place(temporary: Path, output: Output) -> None:
    """Give the complete folder its name. A rename onto a folder that has files fails, so nothing is replaced unseen; an empty one goes.

    With `force`, what is replaced is looked at again now, and once more after the exchange: anything but another release is put back.
    """
    folder = output.folder
    if output.force and os.path.lexists(folder) and not is_free_folder(folder):
        made = _card_in(temporary, temporary.name)
        _check_replaced(output, made.release.id, made.mechanism.identity)
        _exchange(temporary, folder.absolute())
        try:
            _check_nothing_more(temporary, folder.name, _card_in(temporary, folder.name))
        except OutputExists:
            _exchange(temporary, folder.absolute())
            raise
    else:
        try:
            os.rename(temporary, folder)
        except OSError:
            if os.path.lexists(folder):
                raise OutputExists(f"{folder.name!r} appeared in the meantime and is left as it is. Choose another name.") from None
            raise
    with contextlib.suppress(OSError):  # the folder has its name; a parent that cannot be synced does not undo that
        sync_folder(folder.absolute().parent)


def _exchange(temporary: Path, folder: Path) -> None:
    """Swap two folders at once where the system can; else one after the other, with the way back. What was there goes with `temporary`."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    if swap is not None and swap(_HERE, os.fsencode(temporary), _HERE, os.fsencode(folder), _RENAME_EXCHANGE) == 0:
        return
    aside = temporary.with_name(f"{temporary.name}{BEFORE}")
    os.rename(folder, aside)
    try:
        os.rename(temporary, folder)
    except BaseException:
        os.rename(aside, folder)
        raise
    os.rename(aside, temporary)


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


def unfinished_name(entry: str) -> str:
    """The name of the folder in which the release of this entry of a ledger is made ready."""
    ledger, seq, digest = read_head(entry)
    return f"{TEMPORARY}{ledger}-{seq}-{digest}"


def card_digest(folder: Path) -> str | None:
    """The checksum of the card, or of the list of tables, which holds those of all other files; None where there is no plain one."""
    try:
        return hashlib.sha256(read_plain(folder / main_file(folder), MAX_JSON_BYTES)).hexdigest()
    except Unfit:
        return None


def holds_release(folder: Path, reservation: Reservation, identity: str | None = None) -> bool:
    """True if this plain folder holds the release of a reservation, whole and as it was staged.

    Given:  identity: that of what is drawn, by the plan of the release; None where no plan is at hand.
    """
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return False
        name = main_file(folder)
        data = read_plain(folder / name, MAX_JSON_BYTES)
        if hashlib.sha256(data).hexdigest() != reservation.checksum:
            return False
        check_json(data)
        if name == TABLES:
            listed = TableSet.model_validate_json(data)
            is_own = (listed.release, listed.ledger) == (reservation.release_id, reservation.head)
            return is_own and next(set_problems(folder, listed, whole=True), None) is None
        card = Card.from_json(data.decode())
        return _names(card, reservation, identity) and next(file_problems(folder, card), None) is None
    except (OSError, ValueError):  # Unfit and pydantic's errors among them
        return False


def _names(card: Card, reservation: Reservation, identity: str | None) -> bool:
    """Whether a card names this release and its entry, and what was drawn for it from a secret key, or by keys of records."""
    own = card.release
    is_drawn = (not own.test_key or card.guarantee.keyed is not None) and identity in (None, card.mechanism.identity)
    return is_drawn and (own.id, own.ledger) == (reservation.release_id, reservation.head)


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished folder of an entry, as far as possible: only a plain folder of this user, never what a link leads to."""
    try:
        found = os.lstat(folder)
    except OSError:
        return
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
        shutil.rmtree(folder, ignore_errors=True)
