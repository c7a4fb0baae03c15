"""A first run file for a table: from its column names and codes, and a few choices.

Counts are looked at by `hidden_totals` alone, which warns the office of rows that add up others: the file and its release do not depend
on it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.card.parts import MAX_IDENTIFIER
from holdfast.display import names_in, nearest, split_names
from holdfast.errors import (
    EmptyTable,
    HoldfastError,
    InvalidParameter,
    InvalidRun,
    InvalidTable,
    OutputExists,
    RequestTooLarge,
    UnknownColumn,
)
from holdfast.runfiles.runfile import load_run
from holdfast.runfiles.schema import BESIDE, FIRST_LINE, schema_text
from holdfast.tables.cells import rank_rows
from holdfast.tables.columns import CountColumn
from holdfast.tables.databases import is_url
from holdfast.tables.readers import open_source, read_codes, read_table
from holdfast.tables.totals import total_names
from holdfast.wording.starting import run_file_text

MOST_CODES = 1_000
"""Codes of a column that a run file lists."""
COUNTS = (
    "count",
    "counts",
    "n",
    "population",
    "people",
    "persons",
    "households",
    "number",
    "total",
    "freq",
    "frequency",
    "value",
    "obs_value",
)
"""Names that columns of counts usually have."""
TOTAL = "total"


@dataclass(frozen=True)
class Choices:
    """What an office decides. `keep`: columns of each kept margin, joined by ":", or "total"."""

    cells: tuple[str, ...]
    count: str | None
    keep: tuple[str, ...] = (TOTAL,)
    protect: str = "person"
    public: bool = False
    epsilon: str | None = "1"
    rho: str | None = None
    per: str | None = None
    """What the budget is for; None for what is protected."""
    release_id: str | None = None


def column_names(source: str | os.PathLike[str]) -> list[str]:
    """The columns of a file; no row is looked at but those that tell its format."""
    if is_url(os.fspath(source)):
        raise InvalidParameter("init reads a file. For a database write source and query into the run file: docs/run-files.md.")
    with open_source(os.fspath(source)) as opened:
        return list(opened.names)


def likely_count(names: Sequence[str]) -> str | None:
    """The column that is called as columns of counts are; None where none is, or two are."""
    found = [name for name in names if name.lower() in COUNTS]
    return found[0] if len(found) == 1 else None


def likely_cells(names: Sequence[str], count: str | None) -> list[str]:
    """The other columns, but those that are called as counts are."""
    return [name for name in names if name != count and name.lower() not in COUNTS]


def likely_id(source: str | os.PathLike[str]) -> str:
    """An identifier for the first release of a file."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(source).name.split(".")[0]).strip("-._")
    return f"{stem[: MAX_IDENTIFIER - 3] or 'release'}-v1"


def start(source: str | os.PathLike[str], chosen: Choices, output: str | os.PathLike[str], *, schema: bool = True) -> bool:
    """Write a run file that `load_run` takes, and the schema beside it unless one is there; whether the schema was written.

    Guarantees:  the columns of codes are read and no other; an existing run file is not touched; what does not load is not left behind.
    """
    path, beside = Path(output), Path(output).with_name(BESIDE)
    text = _text(source, chosen, path)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OutputExists(f"{path.name!r} exists already. Name another file with --output.") from None
    refusal: HoldfastError | None = None
    try:
        load_run(path)
    except HoldfastError as error:
        path.unlink()
        refusal, option = error, (error.field or "").rpartition(".")[2]
        if isinstance(error, InvalidRun) and option in ("epsilon", "rho", "per", "id", "protect"):
            refusal = InvalidParameter(f"--{option}: {error.text}", field=option)
    if refusal is not None:
        raise refusal
    if not schema or beside.exists():
        return False
    beside.write_text(schema_text(), encoding="utf-8")
    return True


def _text(source: str | os.PathLike[str], chosen: Choices, path: Path) -> str:
    names = column_names(source)
    for option, column in (*(("cells", one) for one in chosen.cells), *([] if chosen.count is None else [("count", chosen.count)])):
        if column not in names:
            several = [f"--{option} {name}" for name in names_in(column, names)]
            near = f"Write {' '.join(several)}. " if several else nearest(column, names, "{!r}")
            raise UnknownColumn(f"--{option}: there is no column {column!r}. {near}Columns: {', '.join(map(repr, names))}.", field=option)
    kept = [name for text in chosen.keep if text != TOTAL for name in split_names(text)]
    if (unknown := next((name for name in kept if name not in chosen.cells), None)) is not None:
        several = names_in(unknown, chosen.cells)
        near = f"Write --keep {':'.join(several)}. " if several else nearest(unknown, chosen.cells, "{!r}")
        raise UnknownColumn(
            f"--keep: no column of cells is called {unknown!r}. {near}Columns: {', '.join(map(repr, chosen.cells))}.", field="keep"
        )
    if not chosen.cells:
        raise InvalidParameter("A table needs at least one column of codes.", field="cells")
    gaussian = chosen.rho is not None
    totals = named_totals(source, chosen.cells)
    budget = {"rho": chosen.rho} if chosen.rho is not None else {"epsilon": chosen.epsilon or "1"}
    return run_file_text(
        schema_line=FIRST_LINE,
        source=Path(os.path.relpath(source, path.absolute().parent)).as_posix(),
        cells=chosen.cells,
        count=chosen.count,
        codes={
            column: [code for code in listed if chosen.count is None or code not in totals.get(column, ())]
            for column, listed in _codes(source, chosen).items()
        },
        totals=totals,
        protect=chosen.protect,
        public=chosen.public,
        total=TOTAL in chosen.keep,
        margins=[split_names(kept) for kept in chosen.keep if kept != TOTAL],
        release_id=chosen.release_id or likely_id(source),
        mechanism="generalized-gaussian" if gaussian else "generalized-laplace",
        budget=budget,
        per=chosen.per or chosen.protect,
    )


def named_totals(source: str | os.PathLike[str], cells: Sequence[str]) -> dict[str, list[str]]:
    """The codes that are named like totals, by column. No count is read."""
    with open_source(os.fspath(source), only=cells) as opened:
        codes, _ = read_codes(opened, cells)
    return {column: found for column, array in zip(cells, codes, strict=True) if (found := total_names(array))}


def hidden_totals(source: str | os.PathLike[str], chosen: Choices) -> list[tuple[str, str]]:
    """Columns and codes whose every count is the sum of those of the other codes, totals by name left out. CONFIDENTIAL: it is so of the
    counts.
    """
    if chosen.count is None:
        return []
    try:
        with open_source(os.fspath(source)) as opened:
            (codes, indices), (counts,) = read_table(opened, chosen.cells, [(chosen.count, CountColumn)])
    except InvalidTable:
        return []  # `release` says which count is wrong
    named = named_totals(source, chosen.cells)
    cell = np.ones(len(counts), dtype=np.bool_)
    for column, array, given in zip(chosen.cells, codes, indices, strict=True):
        cell &= ~np.isin(array.to_pylist(), named.get(column, []))[given]
    counts, indices = counts[cell], tuple(given[cell] for given in indices)
    found = []
    for place, (column, array) in enumerate(zip(chosen.cells, codes, strict=True)):
        others = [(given, len(known)) for at, (given, known) in enumerate(zip(indices, codes, strict=True)) if at != place]
        groups, number = rank_rows([given for given, _ in others], [size for _, size in others], len(counts))
        sums = np.zeros(number, dtype=np.int64)
        np.add.at(sums, groups, counts)
        half = 2 * counts == sums[groups]
        for index in np.unique(indices[place]) if len(np.unique(indices[place])) > 2 else ():
            rows = indices[place] == index
            if half[rows].all() and 2 * int(counts[rows].sum()) == int(counts.sum()) > 0:
                found.append((column, str(array[int(index)].as_py())))
    return found


def _codes(source: str | os.PathLike[str], chosen: Choices) -> dict[str, list[str]]:
    """The distinct codes of each column; of records few enough for a run file. Sorted: the order of rows may tell something."""
    with open_source(os.fspath(source), only=chosen.cells) as opened:
        codes, rows = read_codes(opened, chosen.cells)
        if not len(rows[0]):
            raise EmptyTable(f"There are no rows in {opened.label}, and so no codes to list. Check the file.")
    found = {column: sorted(array.to_pylist()) for column, array in zip(chosen.cells, codes, strict=True)}
    long = next((column for column, listed in found.items() if len(listed) > MOST_CODES), None)
    if chosen.count is None and long is not None:
        raise RequestTooLarge(
            f"Column {long!r} has more than {MOST_CODES:,} codes, too many to list in a run file. Leave it out with --cells, and add it by "
            f"hand with a file of its codes."
        )
    return found
