"""A release: the table with noise, and everything that may be said about it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.card.card import Card
from holdfast.channels import Law
from holdfast.display import shorten
from holdfast.exposure import Exposure
from holdfast.privacy import Guarantee
from holdfast.publication.booking import Booking
from holdfast.publication.card_content import card_of
from holdfast.publication.folder import Output
from holdfast.publication.maps import check_folder_map, map_request
from holdfast.publication.order import KeptRow, Order
from holdfast.publication.plan import Plan
from holdfast.publication.publishing import publish
from holdfast.publication.reading import Readable
from holdfast.publication.released import ReleasedTable
from holdfast.tables.formulas import Formulas


@dataclass(frozen=True, eq=False, repr=False)
class Release(Readable):
    """A drawn release; it is never changed. It holds no true count and no noise; what it holds is public once it is published, except
    `booking`: the account it is charged to and the secret that seals its key.
    """

    plan: Plan
    table: ReleasedTable
    totals: tuple[NDArray[np.int64], ...]
    """The published totals, one array for each entry of the plan's kept rows."""
    exposure: Exposure
    """What the totals give away, by their structure and by their values."""
    order: Order
    private: bool
    """False where a test key was used: anyone can then recompute the noise."""
    booking: Booking = field(repr=False)

    @property
    def id(self) -> str:
        return self.order.release_id

    @property
    def entry(self) -> str | None:
        """The entry of the ledger under which it was charged; None where no ledger was used."""
        return self.booking.entry

    @property
    def law(self) -> Law:
        return self.plan.law

    @property
    def guarantee(self) -> Guarantee:
        return self.plan.guarantee

    @cached_property
    def kept_rows(self) -> list[KeptRow]:
        """(constraint, name, total) of every kept total: they equal the true ones."""
        return [
            (rows.constraint, rows.name(row), int(total))
            for rows, totals in zip(self.plan.facts.kept.rows, self.totals, strict=True)
            if rows.kind == "kept"
            for row, total in enumerate(totals)
        ]

    @property
    def card(self) -> dict[str, Any]:
        """The card as plain values, without checksums of files; `save` writes it with them."""
        return self.card_model.to_dict()

    @cached_property
    def card_model(self) -> Card:
        """The card, built once."""
        return card_of(self)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        formats: Iterable[str] = ("parquet", "csv"),
        sign: str | os.PathLike[str] | None = None,
        force: bool = False,
        formulas: Formulas = "warn",
        view_base: int | None = None,
        map: str | os.PathLike[str] | None = None,
        map_code: str | None = None,
        map_level: str | None = None,
    ) -> Path:
        """Write the output folder, whole or not at all; an existing one is refused. `sign` is an Ed25519 private key in PEM. Codes that a
        spreadsheet would run are written as they are, with a warning, or with formulas="mark" after an apostrophe. `view_base` adds a
        publication view to this base, in files of their own. `map`: a GeoJSON file whose property `map_code` holds the codes of a level,
        for the report.
        """
        areas = map_request(map, map_code, map_level)
        check_folder_map(self.plan, areas)
        signing = None if sign is None else Path(sign)
        return publish(self, Output(Path(folder), tuple(formats), signing, force, formulas, view_base, areas))

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies, which hold what is public. One charged to a ledger is refused."""
        self.booking.check_copy()
        return self.__dict__

    def __repr__(self) -> str:
        recorded = "not recorded in a ledger" if self.entry is None else "recorded in a ledger"
        private = "" if self.private else ", NOT PRIVATE"
        mechanism = shorten(repr(self.plan.mechanism), 110)
        return f"Release({shorten(self.id)!r}, {len(self.table)} cells, {mechanism}, {recorded}{private})"
