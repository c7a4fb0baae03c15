"""`load(folder)`: a publication as a reader has it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.display import shorten
from holdfast.exposure import Exposure
from holdfast.privacy import Guarantee
from holdfast.publication.given_files import read_plain
from holdfast.publication.map_files import MAP_FILE
from holdfast.publication.order import KeptRow
from holdfast.publication.plan import Plan
from holdfast.publication.reading import Readable
from holdfast.publication.released import ReleasedTable
from holdfast.verification.verify import read_verified


@dataclass(frozen=True, eq=False, repr=False)
class Loaded(Readable):
    """A published folder that was verified, with the law of its noise made again from the card. Nothing confidential.

    `table` exports Arrow, so that polars and DuckDB read it as it is; it has to_pandas(), to_polars() and to_arrow().
    """

    card: dict[str, Any]
    """What card.json says, as plain values."""
    table: ReleasedTable
    plan: Plan = field(repr=False)
    exposure: Exposure = field(repr=False)
    """What the published totals give away, by their structure, and by their values where a table with these totals is known."""
    kept_rows: Sequence[KeptRow] = field(repr=False)
    """(constraint, name, total) of every kept total: they equal the true ones."""
    area_map: bytes | None = field(default=None, repr=False)
    """What map.geojson holds, where the folder has a map."""

    @property
    def id(self) -> str:
        return str(self.card["release"]["id"])

    @property
    def private(self) -> bool:
        """False where a test key was used: anyone can then recompute the noise."""
        return bool(self.card["release"]["private"])

    @property
    def language(self) -> str:
        return str(self.card["release"]["language"])

    @property
    def guarantee(self) -> Guarantee:
        return self.plan.guarantee

    def __repr__(self) -> str:
        private = "" if self.private else ", NOT PRIVATE"
        return f"Loaded({shorten(self.id)!r}, {len(self.table)} cells, {shorten(repr(self.plan.mechanism), 110)}{private})"


def load(folder: str | os.PathLike[str], *, signer: str | os.PathLike[str] | None = None) -> Loaded:
    """A published folder, read and verified as `verify` does: VerificationFailed, with every difference found, where it is not what its
    card says. `signer`: a public key in PEM that must have signed the card; without it the folder may be anyone's.
    """
    again = read_verified(folder, signer=signer)
    listed = again.card.files.get(MAP_FILE)
    area_map = None if listed is None else read_plain(Path(folder) / MAP_FILE, listed.bytes)
    return Loaded(again.card.to_dict(), again.table, again.plan, again.exposure, again.kept_rows, area_map)
