"""The unfinished folder of a release that a ledger records: its name, whether it holds that release, and how it is removed.

The name is that of the ledger's entry, and nothing else decides it. Before the folder gets its final name, its card must be the one that
was staged and name this very release and entry, and its files must be those that the card lists. So whoever writes steps into a ledger has
no other folder removed, and no other one published.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.card.card import Card
from holdfast.card.tables import TableSet
from holdfast.ledger.chain import read_head
from holdfast.publication.folder import TEMPORARY
from holdfast.publication.given_files import MAX_JSON_BYTES, TABLES, Unfit, check_json, main_file, read_plain
from holdfast.publication.public_files import file_problems, set_problems

if TYPE_CHECKING:
    from holdfast.ledger.releases import Reservation


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
    """Whether a card names this release and its entry, and what was drawn for it from a secret key."""
    own = card.release
    is_drawn = own.private and identity in (None, card.mechanism.identity)
    return is_drawn and (own.id, own.ledger) == (reservation.release_id, reservation.head)


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished folder of an entry, as far as possible: only a plain folder of this user, never what a link leads to."""
    try:
        found = os.lstat(folder)
    except OSError:
        return
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
        shutil.rmtree(folder, ignore_errors=True)
