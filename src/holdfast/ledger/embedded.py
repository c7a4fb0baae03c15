"""The ledger that the command line keeps beside a run file where nothing else is said: it records every release and sets no limit.

It is made when the first release is reserved, and not before: what is refused leaves nothing behind.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import LedgerProblem
from holdfast.ledger.account import Account
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.store import place_of
from holdfast.ledger.values import name_of
from holdfast.ledger.witness import Witness

if TYPE_CHECKING:
    from holdfast.ledger.values import Charge, Reservation

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

    def check(self, dataset: str, release_id: str, charge: Charge, facts: Mapping[str, Any]) -> None:
        self.check_witness()
        found = self.open_found()
        if found is not None:
            found.check(dataset, release_id, charge, facts)
        elif (problem := Account(dataset).check_disjoint(charge, facts)) is not None:
            raise problem  # it names releases, and there are none yet

    def make(self) -> Ledger:
        """Another process may have been faster: then its ledger is opened, and `reserve` finds what it recorded."""
        if self.read_only:
            raise LedgerProblem("The ledger of this release was looked for, and is not made. Nothing was written.")
        return Ledger.open(self.place, create=True, needs_grants=False, witness=self.witness)

    def open_found(self) -> Ledger | None:
        """The ledger, if it is there by now. A file that a crash left empty is finished, or for a plan counts as none."""
        if not self.place.exists():
            return None
        if not self.read_only:
            return self.make()
        return Ledger.open(self.place, witness=self.witness, read_only=True) if self.place.stat().st_size else None


def ledger_in(folder: Path, witness: Path | None = None, *, read_only: bool = False) -> Ledger | NewLedger:
    """The ledger in this folder, or the one to be made there. Refused where it could not be written: before anything is read or drawn.
    With `read_only`, for a plan, nothing is written.
    """
    place = folder / DEFAULT_NAME
    if not os.access(folder, os.W_OK | os.X_OK) or (place.exists() and not os.access(place, os.R_OK | os.W_OK)):
        raise LedgerProblem(
            f"Every release is recorded, by default in {DEFAULT_NAME} beside the run file, and that cannot be written. Keep the ledger "
            'elsewhere: make it with `holdfast ledger create --ledger FILE` and write ledger = "FILE" under [release]. To release '
            f'without a record, write ledger = "{NO_LEDGER}".'
        )
    made = NewLedger(place, witness, read_only)
    if not os.path.lexists(place):
        return made
    return made.open_found() or made if read_only else made.make()  # which finishes a file that a crash left empty
