"""kept.csv and exposed.csv: every kept total and every exposed cell, with the columns of the table, so that they join with it.

kept.csv     kept (the constraint), name, then the table's columns, then total. A total has codes in the columns that its constraint
             goes by, and nothing in the others: margin(state) fills `state`, a subset by county fills `county`, a linear row none.
exposed.csv  the table's columns, the count, why it is known, and with which earlier releases, if it takes these: "structure" where the kept
             totals fix the cell whatever they are, "values" where they pin it because of what they are. The count is the true one; the
             released table has noise there, unless the kept totals of this release fix the cell or a kept total of 0 covers it. It is
             left out where it takes values of an earlier release that were not at hand.

The table's columns keep their names. A column of ours that has the name of one of them gets a prefix.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.exposure import Exposure
from holdfast.exposure.facts import Together, TogetherFacts
from holdfast.invariants.rows import Kept, LinearRows, Rows
from holdfast.publication.order import KeptRow
from holdfast.tables import Universe
from holdfast.tables.columns import arrow_numbers, free_name
from holdfast.tables.formats import mark, marked_column, unmark, write_csv
from holdfast.tables.measure import COUNTS, Measure

KEPT_FILE, EXPOSED_FILE = "kept.csv", "exposed.csv"
STRUCTURE, VALUES = "structure", "values"
"""Why a cell is exposed."""


class KeptLine(NamedTuple):
    """A row of kept.csv. A code is "" where the total does not go by that column. A total of answers is in steps of their grid."""

    constraint: str
    name: str
    codes: tuple[str, ...]
    total: int


def name_totals(kept: Kept, totals: Sequence[NDArray[np.int64]]) -> list[KeptRow]:
    """(constraint, name, total) of every kept total, from one array for each entry of `kept.rows`."""
    return [
        (rows.constraint, rows.name(row), int(total))
        for rows, values in zip(kept.rows, totals, strict=True)
        if rows.kind == "kept"
        for row, total in enumerate(values)
    ]


def kept_header(columns: Sequence[str]) -> list[str]:
    """The columns of kept.csv for a table with these columns of codes."""
    constraint, name, total = (free_name(wanted, columns, "kept") for wanted in ("kept", "name", "total"))
    return [constraint, name, *columns, total]


def exposed_header(columns: Sequence[str], count: str) -> list[str]:
    """The columns of exposed.csv."""
    why = free_name("why", (*columns, count), "exposed")
    return [*columns, count, why, free_name("with", (*columns, count, why), "exposed")]


def shown_rows(rows: Sequence[KeptRow], kept: Kept, measure: Measure) -> list[tuple[str, str, int | str]]:
    """Kept totals as a page shows them: with labels, and those of answers as exact decimals."""
    labels = kept.universe.labels
    names: Iterable[str] = (name for _, name, _ in rows)
    if labels.columns:
        names = (family.name(row, labels) for family in kept.rows if family.kind == "kept" for row in range(family.count))
    shown = zip(rows, names, strict=True)
    return [(constraint, name, total if measure.whole else measure.text(total)) for (constraint, _, total), name in shown]


def kept_csv(kept: Kept, totals: Sequence[NDArray[np.int64]], measure: Measure = COUNTS, *, marked: bool = False) -> bytes:
    """kept.csv, from published totals: one array for each entry of `kept.rows`; `marked`: with formulas marked."""
    import pyarrow as pa

    columns = kept.universe.columns
    chosen = [(rows, values) for rows, values in zip(kept.rows, totals, strict=True) if rows.kind == "kept"]
    parts = []
    for rows, values in chosen:
        names = [rows.name(row) for row in range(rows.count)]
        codes = [_code_column(rows, column) for column in columns]
        texts = [pa.array([rows.constraint] * rows.count, pa.string()), pa.array(names, pa.string())]
        parts.append([*texts, *codes, measure.column(values)])
    types = [pa.string()] * (len(columns) + 2) + [measure.column(np.zeros(0, dtype=np.int64)).type]
    joined = [pa.chunked_array([part[place] for part in parts], type=kind) for place, kind in enumerate(types)]
    return _csv(kept_header(columns), joined, marked)


def _code_column(rows: Rows, column: str) -> Any:
    """The code of each total in one column of the table, as text; none where the constraint does not go by it."""
    import pyarrow as pa

    if isinstance(rows, LinearRows) or column not in rows.columns:
        return pa.nulls(rows.count, pa.string())
    indices = np.ascontiguousarray(rows.codes[:, rows.columns.index(column)])
    return rows.universe.code_array(column).take(arrow_numbers(indices)).cast(pa.string())


def kept_lines(kept: Kept) -> list[tuple[str, str, tuple[str, ...]]]:
    """(constraint, name, codes) of every kept total, as kept.csv has them."""
    return [
        (rows.constraint, rows.name(row), codes)
        for rows in kept.rows
        if rows.kind == "kept"
        for row, codes in enumerate(_codes_of(rows, kept.universe))
    ]


def _codes_of(rows: Rows, universe: Universe) -> Iterable[tuple[str, ...]]:
    columns = [_code_column(rows, column).fill_null("").to_pylist() for column in universe.columns]
    return zip(*columns, strict=True)


def read_kept(path: Path, columns: Sequence[str], measure: Measure = COUNTS, *, marked: bool = False) -> list[KeptLine]:
    """Return the rows of a kept.csv of a table with these columns. Raise ValueError if it is not one."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = [list(map(unmark, row)) for row in csv.reader(file)] if marked else list(csv.reader(file))
    if not rows or rows[0] != kept_header(columns) or any(len(row) != len(rows[0]) for row in rows):
        raise ValueError
    return [KeptLine(constraint, name, tuple(codes), measure.steps(total)) for constraint, name, *codes, total in rows[1:]]


def exposed_csv(
    exposure: Exposure, counts: NDArray[np.int64], count_name: str, measure: Measure = COUNTS, *, marked: bool = False
) -> bytes:
    """exposed.csv, in the order of the table.

    Given:       what is exposed; any table with the published totals, of which only cells that the totals fix are read.
    Guarantees:  depends on the kept totals and their published values alone.
    """
    import pyarrow as pa

    fixed, pinned, none = exposure.fixed, exposure.cells_exposed_by_totals, np.zeros(0, dtype=np.int64)
    together = exposure.together or Together(TogetherFacts((), 0, 0, ""), none, none)
    cells = np.concatenate([fixed, pinned, together.fixed, together.pinned])
    jointly = np.array([value or 0 for value in together.values], dtype=np.int64)
    values = np.concatenate([counts[fixed], exposure.values_of(pinned), jointly])
    known = np.array([True] * (len(fixed) + len(pinned)) + [value is not None for value in together.values], dtype=np.bool_)
    why = np.repeat([STRUCTURE, VALUES] * 2, [len(fixed), len(pinned), len(together.fixed), len(together.pinned)])
    others = np.where(np.arange(len(cells)) < len(fixed) + len(pinned), "", ", ".join(together.facts.releases))
    order = np.argsort(cells, kind="stable")
    codes = _codes_at(exposure.universe, cells[order])
    header = exposed_header(exposure.universe.columns, count_name)
    texts = [pa.array(column[order].tolist(), pa.string()) for column in (why, others)]
    return _csv(header, [*codes, measure.column(values[order], known[order]), *texts], marked)


def read_together(said: bytes, universe: Universe, facts: TogetherFacts, *, marked: bool = False) -> Together:
    """The cells of an exposed.csv that are exposed together with earlier releases. Raise ValueError if a row names no cell."""
    rows = [list(map(unmark, row)) if marked else row for row in csv.reader(io.StringIO(said.decode(), newline=""))]
    chosen = [row for row in rows[1:] if row[-1:] != [""]]
    columns = [column.to_pylist() for column in universe.frame().columns] if chosen else []
    number = {codes: cell for cell, codes in enumerate(zip(*columns, strict=True))}
    if not all(tuple(row[:-3]) in number for row in chosen):
        raise ValueError
    found = [(number[tuple(codes)], value, why) for *codes, value, why, _ in chosen]
    found.sort(key=lambda row: row[2] != STRUCTURE)  # in the order of the table otherwise
    fixed, pinned = ([cell for cell, _, given in found if given == why] for why in (STRUCTURE, VALUES))
    values = tuple(int(value) if value else None for _, value, _ in found)
    return Together(facts, np.array(fixed, dtype=np.int64), np.array(pinned, dtype=np.int64), values)


def fixed_csv(exposure: Exposure, *, marked: bool = False) -> bytes:
    """The cells that the kept totals fix, alone or with earlier releases, by their codes, before anything is published: without counts."""
    cells = exposure.fixed if exposure.together is None else np.union1d(exposure.fixed, exposure.together.fixed)
    return _csv(exposure.universe.columns, _codes_at(exposure.universe, cells), marked)


def _codes_at(universe: Universe, cells: NDArray[np.int64]) -> list[Any]:
    """The codes of these cells, column by column."""
    return [universe.code_array(column).take(arrow_numbers(universe.code_indices(column)[cells])) for column in universe.columns]


def _csv(header: Sequence[str], columns: Sequence[Any], marked: bool = False) -> bytes:
    """A CSV file of Arrow columns. Any column name can be written: the header is ours, since Arrow's cannot be read with some."""
    import pyarrow as pa

    if marked:
        header, columns = list(map(mark, header)), list(map(marked_column, columns))
    file, first = io.BytesIO(), io.StringIO()
    csv.writer(first, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(header)
    file.write(first.getvalue().encode())
    write_csv([pa.Table.from_arrays(list(columns), names=[str(place) for place in range(len(columns))])], file, header=False)
    return file.getvalue()
