"""The published table in the files of a folder: read and compared piece by piece, so that no file is ever held as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.card.card import Card
from holdfast.publication.given_files import most_bytes
from holdfast.publication.publication import value_columns
from holdfast.tables import Universe
from holdfast.tables.columns import CodeColumn, numpy_values
from holdfast.tables.counting import read_listed
from holdfast.tables.formats import FORMATS, mark, unmark_frame
from holdfast.tables.measure import Measure
from holdfast.tables.readers import open_source
from holdfast.tables.totals import ALLOW_ALL
from holdfast.verification.inert import csv_digest
from holdfast.verification.refusals import fail, read_guarded

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class TableFile:
    """The table in the file of one format. What it gives has the rows, columns and types that the card says; else VerificationFailed."""

    folder: Path
    card: Card
    kind: str
    measure: Measure

    @property
    def name(self) -> str:
        return f"table.{self.kind}"

    @property
    def columns(self) -> list[str]:
        """The names of its columns: codes, then count, standard deviation, exposed."""
        return [*self.card.table.columns, *value_columns(self.card.table.columns, self.card.table.count)]

    def pieces(self, *, codes: bool = True) -> Iterator[Any]:
        """Tables that follow one another, with codes as text; counts, or steps of the grid of answers, as whole numbers; then standard
        deviations and marks. Without `codes` only these two. Rows are counted before they are read, where the file says how many it has.
        """
        wanted = self.columns if codes else self.columns[-2:]
        if len(set(self.columns)) < len(self.columns):
            fail([f"{self.name} has two columns of one name"])
        said = read_guarded(self.name, lambda: FORMATS[self.kind].rows(self.folder / self.name))
        if said not in (None, self.card.table.cells):
            fail([f"{self.name} has {said} rows instead of {self.card.table.cells}"])
        pieces, rows = self._typed_pieces(wanted, None if codes else wanted), 0
        while (piece := read_guarded(self.name, partial(next, pieces, None))) is not None:
            rows += piece.num_rows
            if rows <= self.card.table.cells:  # what is too much is only counted
                yield piece
        if rows != self.card.table.cells:
            fail([f"{self.name} has {rows} rows instead of {self.card.table.cells}"])

    def _typed_pieces(self, wanted: list[str], only: list[str] | None) -> Iterator[Any]:
        """The same without looking at the number of rows; ValueError where columns are of other types."""
        is_marked = self.card.marks_formulas and self.kind == "csv"
        codes = len(wanted) - 3 if only is None else 0
        texts = TextSizes(codes, most_bytes(self.card.table.cells, len(self.columns)))
        chosen = only if only is None or not is_marked else list(map(mark, only))
        for frame in FORMATS[self.kind].pieces(self.folder / self.name, chosen):
            piece = unmark_frame(frame, codes) if is_marked else frame
            if piece.column_names != wanted:
                fail([f"{self.name} has other columns than codes, count, standard deviation and exposed"])
            texts.add(piece)
            yield self._with_types(piece, codes)

    def _with_types(self, piece: Any, codes: int) -> Any:
        import pyarrow as pa

        *counts, deviation, exposed = piece.columns[codes:]
        read = [*map(self.measure.read_column, counts), deviation.cast(pa.float64()), exposed.cast(pa.bool_())]
        return pa.Table.from_arrays([*piece.columns[:codes], *read], names=piece.column_names)

    def as_released(self, piece: Any) -> Any:
        """A piece as a release writes it: numbers of steps as the values that they stand for."""
        place = len(self.columns) - 3
        counts, published = counts_of(piece.column(place))
        column = self.measure.column(counts, None if published.all() else published)
        return piece.set_column(place, self.columns[place], column)


class TextSizes:
    """The bytes that the first columns of pieces of a table would fill as texts; ValueError if they are not texts, or more than `most`: one
    long text may be in many rows.
    """

    def __init__(self, codes: int, most: int) -> None:
        self._sizes, self._most = [0] * codes, most

    def add(self, piece: Any) -> None:
        """The next piece."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for place in range(len(self._sizes)):
            column = piece.column(place)
            kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise ValueError("codes are text")
            if pa.types.is_dictionary(column.type):
                sizes = (pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0 for chunk in column.chunks)
                self._sizes[place] += sum(sizes)
            if self._sizes[place] > self._most:
                raise ValueError("codes are too long")


@dataclass(frozen=True)
class TableRows:
    """What the first file of a table holds."""

    universe: Universe
    counts: Ints
    """Released counts, or steps of the grid of answers; 0 in cells that are not published."""
    published: Bools
    csv: str | None
    """The checksum of the CSV file that a release would write of these rows; None where the folder has none."""


def read_rows(file: TableFile) -> TableRows:
    """The cells, in the order of the rows, and their numbers."""
    names = file.card.table.columns
    codes = [CodeColumn(name, file.name) for name in names]
    counts, published = np.empty(file.card.table.cells, dtype=np.int64), np.ones(file.card.table.cells, dtype=np.bool_)

    def collect() -> Iterator[Any]:
        row = 0
        for piece in file.pieces():
            for column, given in zip(codes, piece.columns, strict=False):
                for chunk in given.chunks:
                    column.add(chunk)
            end = row + piece.num_rows
            counts[row:end], published[row:end] = counts_of(piece.column(len(names)))
            row = end
            yield piece

    digest = csv_digest(map(file.as_released, collect()), marked=file.card.marks_formulas) if "table.csv" in file.card.files else None
    if digest is None:
        for _ in collect():
            pass
    arrays, indices = zip(*(column.finish() for column in codes), strict=True)
    listed = Universe.from_indices(names, arrays, indices, "declared", file.name)
    return TableRows(_in_order(listed, file.card), counts, published, digest)


def _in_order(listed: Universe, card: Card) -> Universe:
    """The cells in the order of the rows. Where the list was not declared, codes are in the order of their texts, as when it was read."""
    if card.table.universe == "declared":
        return listed
    with open_source(listed.frame()) as source:
        found, _ = read_listed(source, listed.columns, (), None, public=False, allow=ALLOW_ALL)
    return listed if found.rows_moved else found


def counts_of(column: Any) -> tuple[Ints, Bools]:
    """Numbers of a column, with 0 where one is missing, and which are there."""
    missing = column.combine_chunks().is_null()
    return numpy_values(column.fill_null(0).combine_chunks()), ~numpy_values(missing)


def have_same_rows(one: TableFile, other: TableFile) -> bool:
    """Whether two files hold the same codes, counts, standard deviations and marks; codes may be stored in two ways."""
    return all(_same(*pair) for pair in _side_by_side(one.pieces(), other.pieces()))


def _side_by_side(one: Iterator[Any], other: Iterator[Any]) -> Iterator[Sequence[Any]]:
    """Pieces of two tables of equal length, cut in the same places."""
    left: list[Any] = [None, None]
    while True:
        for place, pieces in enumerate((one, other)):
            while left[place] is None or not left[place].num_rows:
                left[place] = next(pieces, None)
                if left[place] is None:
                    for _ in other:  # to its end, where rows are counted
                        pass
                    return
        rows = min(piece.num_rows for piece in left)
        yield [piece.slice(0, rows) for piece in left]
        left = [piece.slice(rows) for piece in left]


def _same(one: Any, other: Any) -> bool:
    import pyarrow as pa

    pairs = list(zip(one.columns, other.columns, strict=True))
    codes = all(here.cast(pa.string()).equals(there.cast(pa.string())) for here, there in pairs[:-3])
    return codes and all(here.equals(there) for here, there in pairs[-3:])
