"""A release of several tables by the cell key method: a folder with a folder for each, and tables.json, which lists them with the gaps
between them. It appears whole or not at all, and the ledger has it as one release.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from holdfast.card.parts import Gap, ListedTable, TableSet
from holdfast.cellkey.tabulate import ALL, TOTAL
from holdfast.display import count_of, shorten
from holdfast.errors import InvalidParameter
from holdfast.ledger.state import sync_folder
from holdfast.publication.booking import BookedTables, Booking
from holdfast.publication.folder import Output, card_digest, fill_folder, follow_umask, write_synced
from holdfast.publication.given_files import TABLES
from holdfast.publication.publication import Publication, PublishedTable, check_writable, complete
from holdfast.wording.cellkey import gap_sentence


class PartBooking(Booking):
    """The account of one table of several, which are saved together."""

    def __init__(self, whole: Booking) -> None:
        self.entry, self.grant, self.software = whole.entry, whole.grant, whole.software

    def exclusive_folder(self, output: Output) -> NoReturn:
        raise InvalidParameter("This table is one of a release of several. Save the release, which holds them all.")

    def check_unpublished(self) -> None:
        self.exclusive_folder(Output(Path()))


@dataclass(frozen=True, eq=False, repr=False)
class Publications(Mapping[str, Publication]):
    """The tables of one release by name. They need not add up; `gaps` says by how much they do not."""

    tables: Mapping[str, Publication]
    booking: Booking

    @cached_property
    def gaps(self) -> tuple[Gap, ...]:
        """One for each pair of tables of which one has all columns of the other and more."""
        return find_gaps({name: made.table for name, made in self.tables.items()})

    @property
    def entry(self) -> str | None:
        """The entry of the ledger under which they are recorded; None where no ledger was used."""
        return self.booking.entry

    @property
    def private(self) -> bool:
        """False where keys come from a test secret: anyone can then take the noise off."""
        return next(iter(self.tables.values())).private

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is said of the tables in place of a promise."""
        return tuple(dict.fromkeys(text for made in self.tables.values() for text in made.card.guarantee.sentences))

    def save(
        self, folder: str | os.PathLike[str], *, formats: Iterable[str] | None = None, sign: str | os.PathLike[str] | None = None
    ) -> Path:
        """Write the folder, whole or not at all; an existing one is refused. `sign` is an Ed25519 private key in PEM, for every card."""
        output = Output(Path(folder), None if formats is None else tuple(formats), None if sign is None else Path(sign))
        self.booking.check_unpublished()
        for made in () if self.booking.is_staged else self.tables.values():
            check_writable(output, made.plan, made.id)
        complete(self.booking, output, self)
        return output.folder

    def give_up(self) -> None:
        """Take the release back from the ledger, as long as nothing of it is complete."""
        if isinstance(self.booking, BookedTables):
            self.booking.give_up()

    def fill(self, temporary: Path, output: Output) -> None:
        """Write all files into an empty folder, each synced to disk; tables.json last."""
        digests = {}
        for name, made in self.tables.items():
            (temporary / name).mkdir(mode=0o700)
            fill_folder(made, temporary / name, output)
            digests[name] = str(card_digest(temporary / name))
        write_synced(temporary / TABLES, describe_tables(self.tables, digests, self.gaps).to_json().encode())
        follow_umask(temporary, TABLES)
        sync_folder(temporary)
        sync_folder(temporary.parent)

    def __getitem__(self, name: str) -> Publication:
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name!r} ({count_of(len(made.table), 'cell')})" for name, made in self.tables.items())
        return f"Publications({shorten(shown, 200)})"


def describe_tables(tables: Mapping[str, Publication], digests: Mapping[str, str], gaps: tuple[Gap, ...]) -> TableSet:
    """What tables.json says of these tables, whose cards have these digests."""
    about = next(iter(tables.values())).about
    listed = tuple(ListedTable(name=name, card=digests[name]) for name in tables)
    said = {"schema": "holdfast-tables/1", "release": about.id, "test_key": about.test_key, "ledger": about.ledger}
    return TableSet(**said, tables=listed, gaps=gaps)  # type: ignore[arg-type]  # "schema" is an alias


def find_gaps(tables: Mapping[str, PublishedTable]) -> tuple[Gap, ...]:
    """How far each published table is from adding up to each other one that has some of its columns."""
    columns = {name: _shared_columns(table) for name, table in tables.items()}
    pairs = [(fine, coarse) for fine in tables for coarse in tables if set(columns[coarse]) < set(columns[fine])]
    return tuple(_gap(fine, coarse, tables, columns[coarse]) for fine, coarse in pairs)


def _shared_columns(table: PublishedTable) -> tuple[str, ...]:
    """The columns that tell cells apart; none of a table that counts all records in one cell."""
    universe = table.universe
    return () if universe.columns == (TOTAL,) and tuple(universe.codes[TOTAL]) == (ALL,) else universe.columns


def _gap(fine: str, coarse: str, tables: Mapping[str, PublishedTable], shared: tuple[str, ...]) -> Gap:
    sums, told = (_sums(tables[name], shared) for name in (fine, coarse))
    differences = [abs(sums.get(cell, 0) - told.get(cell, 0)) for cell in sums.keys() | told.keys()]
    unequal, largest = sum(gap > 0 for gap in differences), max(differences)
    mean = Fraction(sum(differences), len(differences))
    text = gap_sentence(fine, coarse, len(differences), unequal, largest, mean)
    return Gap(fine=fine, coarse=coarse, cells=len(differences), unequal=unequal, largest=largest, mean=str(mean), text=text)


def _sums(table: PublishedTable, columns: tuple[str, ...]) -> dict[Any, int]:
    """Sums of published counts by the codes of some columns."""
    group, indices = table.universe.group(columns)
    codes = [table.universe.codes[column] for column in columns]
    names = [tuple(known[place] for known, place in zip(codes, row, strict=True)) for row in indices.tolist()]
    sums = [0] * len(names)
    for place, count in zip(group.tolist(), table.counts.tolist(), strict=True):
        sums[place] += count  # Python's integers: sums of weighted counts may leave 64 bits
    return dict(zip(names, sums, strict=True))
