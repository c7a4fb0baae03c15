"""The ledger of a release where none is named: beside the run file, and in Python in the working directory. It records every release and
sets no limit.

It is made when the first release is reserved, and not before: what is refused leaves nothing behind.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import LedgerProblem
from holdfast.ledger.account import Account
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.store import place_of
from holdfast.ledger.values import name_of
from holdfast.ledger.witness import Witness

if TYPE_CHECKING:
    from holdfast.ledger.releases import ReleaseFacts, Reservation
    from holdfast.ledger.values import Charge

DEFAULT_NAME = "holdfast-ledger.sqlite"
NO_LEDGER = "none"
"""What a run file writes, and HOLDFAST_LEDGER says, to release without a ledger; a file of this name is "./none"."""


@dataclass(frozen=True)
class NewLedger:
    """A ledger that will be made here. Until then it has no releases; it answers the questions
    put to a ledger before a release is reserved, and after that from its entries.
    """

    place: Path
    witness: Path | None = None
    read_only: bool = False
    """For a plan: nothing is made or written, whatever is asked."""

    def check_witness(self) -> None:
        """Refuse what could not be remembered outside the ledger, and a new ledger where one was."""
        found = self.open_found()
        if found is not None:
            found.check_witness()
        else:
            seen = Witness.of(self.witness, place_of(self.place))
            seen.folders(strict=True)
            seen.check_new()

    def reservation(self, dataset: str, release_id: str) -> Reservation | None:
        found = self.open_found()
        return None if found is None else found.reservation(dataset, release_id)

    def account(self, dataset: str) -> Account:
        name, found = name_of(dataset, "dataset"), self.open_found()
        return Account(name) if found is None else found.account(name)

    def check(self, dataset: str, release_id: str, charge: Charge, facts: ReleaseFacts) -> None:
        self.check_witness()
        found = self.open_found()
        if found is not None:
            found.check(dataset, release_id, charge, facts)
        else:
            Account(dataset).check_disjoint(charge, facts)  # it may name releases, and there are none yet

    def make(self) -> Ledger:
        """Another process may have been faster: then its ledger is opened, and `reserve` finds what it recorded."""
        if self.read_only:
            raise LedgerProblem("The ledger of this release was looked for, and is not made. Nothing was written.")
        return Ledger.open(self.place, create=True, witness=self.witness)

    def open_found(self) -> Ledger | None:
        """The ledger, if it is there by now. A file that a crash left empty is finished, or for a plan counts as none."""
        if not self.place.exists():
            return None
        if not self.read_only:
            return self.make()
        return Ledger.open(self.place, witness=self.witness, read_only=True) if self.place.stat().st_size else None


def find_ledger(place: str | None, folder: Path, witness: Path | None = None, *, read_only: bool = False) -> Ledger | NewLedger | None:
    """The ledger of a release: the one named, else that of HOLDFAST_LEDGER, else the one in this folder, which is made when the release is
    reserved. None only if someone wrote "none". With `read_only`, for a plan, nothing is written.
    """
    named = place if place is not None else ledger_of_environment()
    if named == NO_LEDGER:
        return None
    if named is not None:
        return Ledger.open(checked_place(named), witness=witness, read_only=read_only)
    if not (folder / DEFAULT_NAME).exists() and Path(DEFAULT_NAME).exists():
        raise LedgerProblem(
            "There is a ledger in the current folder, and none beside the run file or the data. Say which is meant: "
            f"--ledger {DEFAULT_NAME} for the one here, or ledger = ... in the run file."
        )
    return ledger_in(folder, witness, read_only=read_only)


def ledger_of_environment() -> str | None:
    """What HOLDFAST_LEDGER says; None where it is not set."""
    found = os.environ.get("HOLDFAST_LEDGER")
    if found is not None and not found.strip():
        raise LedgerProblem("HOLDFAST_LEDGER is set, and empty. Unset it, or name a file or a URL.")
    return found


def checked_place(place: str) -> str:
    """The place of a ledger as it was given; an empty text is refused."""
    if not place.strip():
        raise LedgerProblem("--ledger is empty. Name a file or a URL. To release without a ledger, say --no-ledger.")
    return place


def ledger_in(folder: Path, witness: Path | None = None, *, read_only: bool = False) -> Ledger | NewLedger:
    """The ledger in this folder, or the one to be made there. Refused where it could not be written: before anything is read or drawn.
    With `read_only`, for a plan, nothing is written.
    """
    place = folder / DEFAULT_NAME
    if not os.access(folder, os.W_OK | os.X_OK) or (place.exists() and not os.access(place, os.R_OK | os.W_OK)):
        raise LedgerProblem(
            f"Every release is recorded, by default in {DEFAULT_NAME} beside the run file (in Python: in the working directory), and that "
            'cannot be written. Keep the ledger elsewhere: make it with `holdfast ledger create --ledger FILE` and write ledger = "FILE" '
            f'under [release]. To release without a record, write ledger = "{NO_LEDGER}" (in Python ledger=None).'
        )
    made = NewLedger(place, witness, read_only)
    if not os.path.lexists(place):
        return made
    return made.open_found() or made if read_only else made.make()  # which finishes a file that a crash left empty
