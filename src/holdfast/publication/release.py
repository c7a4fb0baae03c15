"""A release: the table with noise, and everything that may be said about it."""

from __future__ import annotations

import datetime
import os
import platform
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import InvalidParameter, LedgerProblem
from holdfast.invariants.statements import Statement
from holdfast.laws.law import LatticeLaw
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.privacy import Guarantee
from holdfast.publication.definitions import definition
from holdfast.publication.draw import Progress, bind
from holdfast.publication.plan import Plan, plan
from holdfast.publication.released import ReleasedTable
from holdfast.randomness import NoiseKey
from holdfast.randomness.keys import STREAM_VERSION
from holdfast.tables import Table

if TYPE_CHECKING:
    from holdfast.privacy.ledger import Ledger
    from holdfast.privacy.ledger.values import Reservation
    from holdfast.publication.booked import Booking

UNNAMED = "unnamed"
MAX_CHANGED = 100
"""Changed totals of a revision that are listed; all are counted."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Release:
    """A drawn release. It holds no true count and no noise; what it holds is public once it is published, except `booked`: the ledger it is
    charged to and the secret that seals its key.
    """

    def __init__(
        self,
        plan: Plan,
        table: ReleasedTable,
        release_id: str,
        date: str | None,
        private: bool,
        entry: str | None = None,
        versions: Mapping[str, Any] | None = None,
    ) -> None:
        self.plan = plan
        self.table = table
        self.id = release_id
        self.date = date
        self.private = private
        """False where a test key was used: anyone can then recompute the noise."""
        self.entry = entry
        """The entry of the ledger under which it was charged; None where no ledger was used."""
        self._versions = versions
        self.booked: tuple[Booking, Reservation] | None = None
        self.revises: tuple[str, list[tuple[str, str, int]]] | None = None
        """(id, kept rows) of the earlier release of the same population that this one revises."""

    @property
    def law(self) -> LatticeLaw:
        return self.plan.law

    @property
    def guarantee(self) -> Guarantee:
        return self.plan.guarantee

    def kept_rows(self) -> list[tuple[str, str, int]]:
        """(statement, name, total) of every kept total, added up from the released table: they equal the true ones."""
        out = []
        for place, rows in enumerate(self.plan.frame.kept.rows):
            if rows.kind == "kept":
                totals = rows.totals(self.table.counts) if self._totals is None else self._totals[place]
                out += [(rows.statement, rows.name(row), int(total)) for row, total in enumerate(totals)]
        return out

    _totals: list[Any] | None = None
    """Totals of every statement where the table alone does not show them (suppression)."""

    @property
    def card(self) -> dict[str, Any]:
        """The card without checksums of files; `save` writes it with them."""
        return self.card_with({})

    def card_with(self, files: dict[str, Any]) -> dict[str, Any]:
        """The card with these files and checksums."""
        return card_fields(
            self.plan, self.id, self.date, self.private, files, entry=self.entry, versions=self._versions, revision=self._revision()
        )

    def _revision(self) -> dict[str, Any] | None:
        """Kept totals that differ from those of the release that this one revises: both are published, so the differences are exposed."""
        if self.revises is None:
            return None
        earlier, rows = self.revises
        before = {(statement, name): total for statement, name, total in rows}
        changed = [(n, before[s, n], t) for s, n, t in self.kept_rows() if (s, n) in before and before[s, n] != t]
        return {
            "of": earlier,
            "changed": len(changed),
            "totals": [f"{n}: {old} before, {new} now" for n, old, new in changed[:MAX_CHANGED]],
        }

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        formats: Iterable[str] = ("parquet", "csv"),
        sign: str | os.PathLike[str] | None = None,
        force: bool = False,
    ) -> Path:
        """Write the output folder, whole or not at all; an existing one is refused. `sign` is an Ed25519 private key in PEM."""
        from holdfast.publication.folder import check_formats, check_output, write_folder

        place, chosen, signing = Path(folder), tuple(formats), None if sign is None else Path(sign)
        if self.booked is None:
            return write_folder(self, place, chosen, signing, force)
        from holdfast.publication.booked import Order, save_booked

        check_formats(chosen)
        check_output(place, self.card, force, signing)
        save_booked(self, Order(place, self.id, self.date, chosen, signing, force))
        return place

    def __getstate__(self) -> dict[str, Any]:
        """A pickle holds what is public. One charged to a ledger is refused: a copy could be saved without its spend being committed."""
        if self.booked is not None:
            raise LedgerProblem("A release that is charged to a ledger cannot be pickled or copied. Save it, and use the folder.")
        return self.__dict__

    def __repr__(self) -> str:
        return f"Release({self.id!r}, {len(self.table)} cells, {self.plan.mechanism.name}{'' if self.private else ', NOT PRIVATE'})"


def release(
    table: Table,
    keep: Iterable[Statement],
    mechanism: Mechanism,
    key: NoiseKey | None = None,
    ledger: Ledger | None = None,
    release_id: str | None = None,
    *,
    dataset: str | None = None,
    date: str | None = None,
    progress: Progress | None = None,
) -> Release:
    """Draw the noise and add it: y = x + z with every kept total of x, checked as integers.

    Given:       a table, the kept statements, a mechanism. `key=None` takes a fresh secret key and erases it; a test key marks the release
                 as not private. `release_id` names the release (letters, digits, . _ -); `date` is written on the card as given.
                 With a `ledger`, budget of `dataset` (by default the table's name) is reserved before anything is drawn, and `save`
                 commits it; the key is then always a fresh one.
    Guarantees:  what `release.guarantee` says, and that no noise or true count stays behind in the release.
    """
    if not isinstance(table, Table):
        raise InvalidParameter(f"A release needs a Table. Got {type(table).__name__}. Build one with Table.from_counts or from_records.")
    made = plan(table, keep, mechanism)
    if ledger is None:
        return release_from_plan(made, table, key, release_id, date=date, progress=progress)
    from holdfast.publication.booked import Booking, release_in_memory, secret_from_environment

    account = dataset or table.name
    if key is not None or release_id is None or account is None:
        raise InvalidParameter(
            "A release through a ledger needs release_id and dataset (or a table with a name), and draws a fresh key of its own. "
            "Leave key out."
        )
    _check_date(date)
    return release_in_memory(made, table, Booking(ledger, account, secret_from_environment()), release_id, date, progress)


def release_from_plan(
    plan: Plan,
    table: Table,
    key: NoiseKey | None = None,
    release_id: str | None = None,
    *,
    date: str | None = None,
    progress: Progress | None = None,
) -> Release:
    """`release` for a plan already made for this table."""
    name = check_identifier(release_id)
    _check_date(date)
    if key is not None and not isinstance(key, NoiseKey):
        raise InvalidParameter(f"key is a NoiseKey, or None for a fresh one. Got {type(key).__name__}.")
    if table.universe is not plan.frame.universe and table.universe != plan.frame.universe:
        raise InvalidParameter("The plan was made for another table: its universe differs. Make a plan for this table.")
    source = NoiseKey.generate() if key is None else key
    try:
        counts = bind(plan.frame, plan.law, table.counts, source, name).draw(progress)
        private = source.is_private
    finally:
        if key is None:
            source.close()
    return made_release(plan, counts, name, date, private)


def made_release(
    plan: Plan,
    counts: Any,
    name: str,
    date: str | None,
    private: bool,
    *,
    entry: str | None = None,
    versions: Mapping[str, Any] | None = None,
) -> Release:
    """The release with these counts. Its kept totals are public now: the cells that their values pin are exposed, and said to be."""
    plan = plan.with_totals([rows.totals(counts) for rows in plan.frame.kept.rows], counts)
    if not plan.law.publishes_cells:
        return _suppressed(plan, counts, name, date, entry, versions)
    table = ReleasedTable(plan.frame.universe, counts, plan.frame.count_name, plan.deviations, None)
    return Release(plan, table, name, date, private, entry, versions)


def _suppressed(plan: Plan, counts: Any, name: str, date: str | None, entry: str | None, versions: Mapping[str, Any] | None) -> Release:
    """Only cells that the kept totals fix keep their count; nothing is drawn, so no key matters."""
    shown = np.zeros(len(counts), dtype=np.bool_)
    shown[plan.frame.lattice.exposed_cells] = True
    totals = [rows.totals(counts) for rows in plan.frame.kept.rows]
    made = ReleasedTable(plan.frame.universe, np.where(shown, counts, 0), plan.frame.count_name, plan.deviations, shown)
    out = Release(plan, made, name, date, True, entry, versions)
    out._totals = totals
    return out


def check_identifier(release_id: str | None) -> str:
    """A release's name is a file-safe word."""
    if release_id is None:
        return UNNAMED
    if not isinstance(release_id, str) or not _IDENTIFIER.fullmatch(release_id):
        raise InvalidParameter(
            f"A release identifier is up to 100 letters, digits, '.', '_' or '-', and begins with a letter or digit. Got {release_id!r}."
        )
    return release_id


def _check_date(date: str | None) -> None:
    """Before anything is drawn: the card takes a day of the calendar."""
    if date is None:
        return
    if not isinstance(date, str) or not _DATE.fullmatch(date):
        raise InvalidParameter(f"date is a text such as '2030-04-01'. Got {date!r}.")
    try:
        datetime.date.fromisoformat(date)
    except ValueError:
        raise InvalidParameter(f"date must be a day of the calendar, such as '2030-04-01'. Got {date!r}.") from None


def card_fields(
    plan: Plan,
    release_id: str,
    date: str | None,
    private: bool,
    files: dict[str, Any],
    *,
    entry: str | None = None,
    versions: Mapping[str, Any] | None = None,
    revision: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """All fields of card.json: public facts, and the checksums of the files. Versions are those of the day the release was begun."""
    from holdfast.publication.card import SCHEMA_VERSION, Card

    fields = plan.to_fields()
    frame = plan.frame
    table = {
        "name": frame.name,
        "columns": list(frame.universe.columns),
        "count": frame.count_name,
        "cells": len(frame.universe),
        "universe": frame.universe.support,
        "universe_digest": f"sha256:{frame.universe.digest()}",
        "unit": frame.unit,
        "max_records": frame.max_records,
    }
    definitions = [definition(statement, frame.universe) for statement in frame.statements]
    made = {
        "schema_version": SCHEMA_VERSION,
        "release": {"id": release_id, "date": date, "private": private, "ledger": entry},
        "table": table,
        "kept": {**fields["kept"], "definitions": definitions, "revision": revision},
        **{name: fields[name] for name in ("exposed", "mechanism", "sampler", "expected_error")},
        "guarantee": _promise_fields(fields["guarantee"]),
        "software": dict(versions or software()),
        "files": files,
        "signature": None,
    }
    return Card.model_validate(made).to_dict()


def _promise_fields(guarantee: dict[str, Any]) -> dict[str, Any]:
    """The part of a guarantee's fields that a card has; distances stand with the promise made at them."""
    names = ("kind", "parameters", "distance", "unit", "relation", "relation_fields", "status", "status_note", "per_unit", "words")
    squared = "distance squared" if guarantee["distances_are_squared"] else "distance"
    secret, person = guarantee["smallest_secret"], guarantee["per_person"]
    return {
        **{name: guarantee[name] for name in names},
        "per_person": None if person is None else {squared: guarantee["person"]["distance"], **person},
        "smallest_secret": {squared: secret["distance"], "found": secret["status"], **guarantee["per_smallest_secret"]},
    }


def software() -> dict[str, str | int]:
    packages = ("numpy", "numba", "python-flint", "cryptography")
    return {
        "holdfast": version("holdfast"),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "stream_version": STREAM_VERSION,
    }
