"""Anyone's check of a published folder, from its files alone: card, checksums, signature, every kept total added up again, and all that the
card, the table and the pages say made again from the part that it follows from (recompute.py).
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from holdfast.display import shorten
from holdfast.errors import HoldfastError, VerificationFailed
from holdfast.invariants.declared import broken_identities
from holdfast.invariants.definitions import statement_of
from holdfast.invariants.rows import Kept, RowFamily, Rows, compile_rows
from holdfast.lattices import Lattice
from holdfast.mechanisms import MECHANISMS
from holdfast.publication.card import Card, other_version, problems
from holdfast.publication.folder import CARD
from holdfast.publication.listings import EXPOSED_FILE, KEPT_FILE, KeptLine, kept_lines, number_column, read_kept
from holdfast.publication.official import compare_with
from holdfast.publication.order import KeptRow
from holdfast.publication.recompute import ONLY_SIGNED, Recomputed, recompute
from holdfast.publication.released import value_columns
from holdfast.publication.signing import load_public_key, signature_holds
from holdfast.tables import Table, Universe
from holdfast.tables.formats import FORMATS
from holdfast.tables.grid import Grid
from holdfast.tables.listing import read_listed
from holdfast.tables.readers import open_source

Array: TypeAlias = np.ndarray[Any, Any]

UNREADABLE = (HoldfastError, OSError, ValueError, LookupError, TypeError, ArithmeticError, NotImplementedError, StopIteration, csv.Error)
"""What a file that is not what the card says can raise."""
MAX_SHOWN = 10
"""Differences listed in a message; the rest is counted."""


@dataclass(frozen=True)
class Verified:
    """What was checked and found in order."""

    release_id: str
    cells: int
    totals: int
    files: int
    private: bool
    signed_by: str | None
    official_totals: int | None
    suppressed: bool
    recomputed: tuple[str, ...]
    """What was made again and found equal."""
    left: tuple[str, ...]
    """What could not be, and why."""
    only_signed: tuple[str, ...] = ONLY_SIGNED
    """Fields of the card that follow from nothing else: only a signature protects them."""

    def __str__(self) -> str:
        lines = [
            f"Release {self.release_id}: {self.files} files as the card says, {self.totals:,} kept totals "
            + ("listed." if self.suppressed else f"add up over {self.cells:,} cells.")
        ]
        lines.append(f"Recomputed and equal: {', '.join(self.recomputed)}.")
        lines += [f"Not compared: {text}." for text in self.left]
        if self.official_totals is not None:
            lines.append(f"{self.official_totals:,} official totals agree.")
        lines.append(
            f"Signed by {self.signed_by}."
            if self.signed_by
            else "Not signed. Fields that cannot be recomputed, such as name, date and ledger entry, could have been changed: only a "
            "signature protects them."
        )
        if not self.private:
            lines.append("NOT PRIVATE: the noise came from a test key.")
        return "\n".join(lines)


def verify(
    folder: str | os.PathLike[str], against: Table | str | os.PathLike[str] | None = None, *, signer: str | os.PathLike[str] | None = None
) -> Verified:
    """Check a published folder.

    Given:       `against`: official totals, as a Table or a file: columns of codes and one of counts (a margin that the release keeps, or
                 the whole table, of which only the kept totals are compared), or a list with statement, name, total, such as kept.csv.
                 `signer`: a public key in PEM that must have signed the card.
    Guarantees:  VerificationFailed, with every difference found, unless card, checksums, signature, tables and totals all agree, and
                 guarantee, exposure, standard deviations, sentences and pages are those that follow from the rest. Pages and sentences are
                 compared where this version of Holdfast made them. What follows from nothing (ONLY_SIGNED) a signature alone protects.
    """
    again, made, lines = _checked(Path(folder), signer)
    card = again.card
    number = None
    if against is not None:
        number, differences = compare_with(against, card, made, _plain(lines))
        if differences:
            raise VerificationFailed(f"The release does not agree with the official totals: {_shown(differences)}.")
    signer_key = None if card.signature is None else card.signature.public_key
    return Verified(
        release_id=card.release.id,
        cells=card.table.cells,
        totals=len(lines),
        files=len(card.files),
        private=card.release.private,
        signed_by=signer_key,
        official_totals=number,
        suppressed=_is_suppressed(card),
        recomputed=tuple(_made_again(again)),
        left=tuple(_left(again)),
    )


def read_verified(folder: str | os.PathLike[str]) -> Recomputed:
    """A published folder that was checked as `verify` does, for who goes on working with it."""
    return _checked(Path(folder), None)[0]


def _checked(place: Path, signer: str | os.PathLike[str] | None) -> tuple[Recomputed, tuple[Kept, Array], list[KeptLine]]:
    """(what the folder holds, made again; its statements and counts; its kept totals). VerificationFailed unless all agrees."""
    card = _read_card(place)
    found = [*_file_problems(place, card), *_signature_problems(card, signer)]
    if found:
        _fail(found)
    try:
        frames = {made.name: made.read(place / f"table{made.suffix}") for made in FORMATS.values() if f"table{made.suffix}" in card.files}
        lines, made, published = read_kept(place / KEPT_FILE, card.table.columns, _grid(card)), *_columns(card, frames)
        found = list(_table_problems(card, frames, lines, made, published))
    except UNREADABLE as error:
        found = [f"the table cannot be read as the card says ({type(error).__name__})"]
    if found:
        _fail(found)
    again = _recomputed(card, made, published, lines)
    try:
        found = list(_recomputed_problems(place, again, frames))
    except UNREADABLE as error:
        found = [f"the table cannot be read as the card says ({type(error).__name__})"]
    if found:
        _fail(found)
    return again, made, lines


def _recomputed(card: Card, made: tuple[Kept, Array], published: Array, lines: list[KeptLine]) -> Recomputed:
    try:
        return recompute(card, made[0].universe, made[1], published, _plain(lines))
    except UNREADABLE as error:
        said = str(error) if isinstance(error, HoldfastError) else type(error).__name__
    if card.mechanism.name not in MECHANISMS:
        said = f"the mechanism {shorten(card.mechanism.name)!r} is not known here; load the package that registers it"
    raise VerificationFailed(f"The promise of the card cannot be made again from its fields: {said}")


def _recomputed_problems(place: Path, again: Recomputed, frames: dict[str, Any]) -> Iterator[str]:
    yield from again.card_problems()
    yield from again.bounds_problems()
    for frame in frames.values():
        yield from again.table_problems(frame)
    yield from again.exposed_problems((place / EXPOSED_FILE).read_bytes())
    if again.same_version:
        yield from again.page_problems({name: (place / name).read_bytes() for name in ("statement.html", "report.html")})


def _made_again(again: Recomputed) -> Iterator[str]:
    yield "promise"
    if again.totals is not None:
        yield "exposure"
    yield from ("samplers", "standard deviations", *(("sentences", "pages") if again.same_version else ()))


def _left(again: Recomputed) -> Iterator[str]:
    if not again.same_version:
        yield f"sentences and pages, which version {again.card.software['holdfast']} of Holdfast made"
    if again.totals is None:
        yield "exposure, because counts of a large table are left out"
    if again.card.sampler.status == "estimated":
        yield "how the coupled chains met, which would take as long as before the draw"


def _fail(found: list[str]) -> None:
    raise VerificationFailed(
        f"The folder is not what its card says: {_shown(found)}. Do not use it; ask its publisher for a complete copy."
    )


def _shown(found: list[str]) -> str:
    more = f"; and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    return f"{'; '.join(found[:MAX_SHOWN])}{more}"


def _read_card(place: Path) -> Card:
    try:
        text = (place / CARD).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise VerificationFailed(
            f"{place.name!r} has no readable {CARD}. Give the complete folder that `holdfast release` wrote."
        ) from None
    wrong = problems(text)
    if wrong and (version := other_version(text)) is not None:
        raise VerificationFailed(
            f"The card has schema version {version!r}, which this version of Holdfast does not read. Verify with the version named under "
            "software in the card."
        )
    if wrong:
        _fail([f"{CARD}: {line.rstrip('.')}" for line in wrong])
    return Card.from_json(text)


def _file_problems(place: Path, card: Card) -> Iterator[str]:
    needed = {KEPT_FILE, EXPOSED_FILE, "statement.html", "report.html"}
    for name in sorted(needed - card.files.keys()):
        yield f"the card does not list {name}"
    if not any(f"table{made.suffix}" in card.files for made in FORMATS.values()):
        yield "the card lists no table"
    present = {path.name for path in place.iterdir()}
    for name in sorted(present - card.files.keys() - {CARD}):
        yield f"{name} is there but not on the card"
    for name, info in card.files.items():
        path = place / name
        if not path.is_file():
            yield f"{name} is missing"
            continue
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if path.stat().st_size != info.bytes:
            yield f"{name} has {path.stat().st_size} bytes instead of {info.bytes}"
        elif digest != info.sha256:
            yield f"{name} was changed (its checksum differs)"


def _signature_problems(card: Card, signer: str | os.PathLike[str] | None) -> Iterator[str]:
    expected = None if signer is None else load_public_key(Path(signer))
    if card.signature is None:
        if expected is not None or card.release.signer is not None:
            yield "the card is not signed" + ("" if card.release.signer is None else ", although it names a signer")
        return
    if card.signature.public_key != card.release.signer:
        yield "the card is signed by another key than the signer it names"
    elif not signature_holds(card):
        yield "the signature does not fit the card"
    elif expected is not None and card.signature.public_key != expected:
        yield "the card is signed by another key than the one given"


def published_rows(folder: str | os.PathLike[str]) -> tuple[str, list[KeptRow]]:
    """(identifier, kept rows) of a published folder, after its files were checked against its card."""
    place = Path(folder)
    card = _read_card(place)
    if found := list(_file_problems(place, card)):
        _fail(found)
    return card.release.id, _plain(read_kept(place / KEPT_FILE, card.table.columns, _grid(card)))


def _plain(lines: list[KeptLine]) -> list[KeptRow]:
    return [(line.statement, line.name, line.total) for line in lines]


def _columns(card: Card, frames: dict[str, Any]) -> tuple[tuple[Kept, Array], Array]:
    """(compiled statements, released counts), and which cells are published, from the first table file."""
    frame = next(iter(frames.values()))
    universe = replace(_listed(frame.select(list(card.table.columns)), card), support=card.table.universe)
    kept = compile_rows(universe, [statement_of(given) for given in card.kept.definitions])
    counts, published = _counts(frame, card.table.count, _grid(card))
    return (kept, counts), published


def _listed(frame: Any, card: Card) -> Universe:
    """The cells in the order of the rows. Where the list was not declared, codes are in the order of their texts, as when it was read."""
    listed = Universe.listed(frame, allow_similar_codes=True)
    if card.table.universe == "declared":
        return listed
    with open_source(frame) as source:
        found, _ = read_listed(source, listed.columns, (), None, public=False, allow_similar_codes=True)
    return listed if found.rows_moved else found


def _grid(card: Card) -> Grid | None:
    return None if card.table.grid is None else card.table.grid.grid()


def _counts(frame: Any, name: str, grid: Grid | None) -> tuple[Array, Array]:
    import pyarrow as pa

    column = frame.column(name).cast(pa.int64()) if grid is None else grid.read_column(frame.column(name))
    published = ~np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    return column.fill_null(0).to_numpy(), published


def _table_problems(
    card: Card,
    frames: dict[str, Any],
    lines: list[KeptLine],
    made: tuple[Kept, Array],
    published: Array,
) -> Iterator[str]:
    kept, counts = made
    grid = _grid(card)
    if len(counts) != card.table.cells:
        yield f"the table has {len(counts)} cells instead of {card.table.cells}"
    elif f"sha256:{kept.universe.digest()}" != card.table.universe_digest:
        yield "the table has other cells, or another order of cells, than the card says"
    first = next(iter(frames))
    for name, frame in frames.items():
        if frame.column_names != [*card.table.columns, *value_columns(card.table.columns, card.table.count)]:
            yield f"table.{name} has other columns than codes, count, standard deviation and exposed"
        elif name != first and not _same(frame, frames[first], grid):
            yield f"table.{name} and table.{first} differ"
    yield from _published_problems(card, kept, published)
    yield from broken_identities(kept, counts, published)
    families = [rows for rows in kept.rows if rows.kind == "kept"]
    if kept_lines(kept) != [line[:3] for line in lines] or len(lines) != card.kept.totals:
        yield "kept.csv does not list the totals that the card states"
        return
    totals = [(int(total), whole) for rows in families for total, whole in zip(rows.totals(counts), _whole(rows, published), strict=True)]
    for line, (total, whole) in zip(lines, totals, strict=True):
        if whole and line.total != total:
            here, there = (value if grid is None else grid.text(value) for value in (total, line.total))
            yield f"{line.name}: the table adds up to {here}, kept.csv says {there}"


def _published_problems(card: Card, kept: Kept, published: Array) -> Iterator[str]:
    """Suppression publishes the cells that the kept totals fix, every other mechanism all of them."""
    expected = np.ones(len(published), dtype=np.bool_)
    if _is_suppressed(card):
        expected[:] = False
        expected[Lattice.from_kept(kept).exposed_cells] = True
    if missing := int((expected & ~published).sum()):
        yield f"{missing} counts are missing in the table"
    if surplus := int((published & ~expected).sum()):
        yield f"{surplus} counts are in the table that suppression leaves out"


def _is_suppressed(card: Card) -> bool:
    made = MECHANISMS.get(card.mechanism.name)
    return made is not None and not made.publishes_cells


def _whole(rows: Rows, published: Array) -> Array:
    """Which sums are over published cells only: the others add up to nothing."""
    if isinstance(rows, RowFamily):
        return np.asarray(rows.totals((~published).astype(np.int64)) == 0)
    return np.asarray(abs(rows.matrix) @ (~published).astype(np.int64) == 0)


def _same(frame: Any, other: Any, grid: Grid | None) -> bool:
    """Whether two tables hold the same codes, counts, standard deviations and marks; a CSV holds them as text."""
    import pyarrow as pa

    if frame.column_names != other.column_names:
        return False
    number = number_column(np.zeros(0, dtype=np.int64), grid).type
    kinds = [*[pa.string()] * (len(frame.column_names) - 3), number, pa.float64(), pa.bool_()]
    return all(frame.column(i).cast(kind).equals(other.column(i).cast(kind)) for i, kind in enumerate(kinds))
