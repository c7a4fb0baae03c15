"""A release against totals from elsewhere: an official file, or the office's own table."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.display import named_codes
from holdfast.errors import InvalidParameter, UnreadableInput
from holdfast.invariants.definitions import statement_of
from holdfast.invariants.rows import Kept
from holdfast.invariants.statements import Margin
from holdfast.publication.card import Card
from holdfast.publication.listings import kept_header
from holdfast.publication.order import KeptRow
from holdfast.tables import Table, Universe
from holdfast.tables.grid import Grid
from holdfast.tables.readers import find_columns, open_source

PLAIN_HEADER = ["statement", "name", "total"]


def compare_with(
    against: Table | str | os.PathLike[str], card: Card, made: tuple[Kept, np.ndarray[Any, Any]], listed: list[KeptRow]
) -> tuple[int, list[str]]:
    """(how many official totals were compared, differences)."""
    grid = None if card.table.grid is None else card.table.grid.grid()
    if not isinstance(against, Table):
        header, rows = _opened(Path(against), kept_header(card.table.columns), grid)
        if rows is not None:
            return _differences(_numbered(listed), _numbered(rows), lambda key: key[1], grid)
    if grid is not None:
        raise InvalidParameter("Real-valued answers are compared with a list of invariants: statement, name, total, as kept.csv has them.")
    if not isinstance(against, Table):
        against = _as_table(Path(against), header, card)
    columns = tuple(against.universe.columns)
    if set(columns) == set(card.table.columns):
        return _whole(against, made[0], listed)
    return _margin(against, card, made, listed)


def _opened(path: Path, full: list[str], grid: Grid | None) -> tuple[list[str], list[KeptRow] | None]:
    """The columns of a file; and its rows, if it is a list of statement, name, total, alone or with the columns of kept.csv."""
    import pyarrow as pa

    if path.suffix.lower() == ".csv" and path.is_file() and (rows := _own_list(path, full, grid)) is not None:
        return full, rows
    with open_source(path) as source:
        header = list(source.names)
        if header not in (PLAIN_HEADER, full):
            return header, None
        with closing(source.batches(find_columns(source, _three(header)))) as batches:
            columns = [[array.cast(pa.string()).to_pylist() for array in arrays] for arrays in batches]
    return header, _kept_rows(path, (row for arrays in columns for row in zip(*arrays, strict=True)), grid)


def _own_list(path: Path, full: list[str], grid: Grid | None) -> list[KeptRow] | None:
    """The rows of a list with commas in UTF-8, such as a kept.csv, whatever its codes hold; None for other files."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            header, *lines = csv.reader(file)
    except (OSError, ValueError, csv.Error):  # open_source says what is wrong
        return None
    if header not in (PLAIN_HEADER, full):
        return None
    places = [header.index(name) for name in _three(header)]
    if any(len(line) != len(header) for line in lines):
        raise _bad_row(path, grid)
    return _kept_rows(path, ([line[place] for place in places] for line in lines), grid)


def _three(header: list[str]) -> list[str]:
    return [header[0], header[1], header[-1]]


def _kept_rows(path: Path, rows: Iterable[Sequence[str]], grid: Grid | None) -> list[KeptRow]:
    read = int if grid is None else grid.steps
    try:
        return [(statement, name, read(total)) for statement, name, total in rows]
    except (TypeError, ValueError):
        raise _bad_row(path, grid) from None


def _bad_row(path: Path, grid: Grid | None) -> UnreadableInput:
    number = "whole number" if grid is None else f"multiple of {grid.step_text} with {grid.places} places"
    return UnreadableInput(f"{path.name!r} has a row without a statement, a name or a {number} as total. Correct that row.")


def _as_table(path: Path, header: list[str], card: Card) -> Table:
    codes = [name for name in header if name in card.table.columns]
    others = [name for name in header if name not in card.table.columns]
    if card.table.count in others:
        others = [card.table.count]
    if not codes or len(others) != 1:
        raise InvalidParameter(
            f"{path.name!r} should have columns of codes ({', '.join(card.table.columns)}) and one of counts, or "
            "statement, name, total, alone or with the columns of kept.csv. "
            f"Found {', '.join(header) or 'nothing'}. Rename its columns, or leave others out."
        )
    return Table.from_counts(path, cells=codes, count=others[0], allow_similar_codes=True)


def _numbered(rows: Iterable[KeptRow]) -> dict[tuple[str, str, int], int]:
    """Totals by statement and name; where two share both, by their number among these too, so that none is lost."""
    seen: Counter[tuple[str, str]] = Counter()
    out = {}
    for statement, name, total in rows:
        seen[statement, name] += 1
        out[statement, name, seen[statement, name]] = total
    return out


def _whole(table: Table, kept: Kept, listed: list[KeptRow]) -> tuple[int, list[str]]:
    """The kept totals of another table of the same cells: only totals are looked at, so a confidential table may be given."""
    counts = _in_order(table, kept.universe)
    families = [rows for rows in kept.rows if rows.kind == "kept"]
    official = [(rows.statement, rows.name(i), int(total)) for rows in families for i, total in enumerate(rows.totals(counts))]
    return _differences(_numbered(listed), _numbered(official), lambda key: key[1])


def _in_order(table: Table, universe: Universe) -> np.ndarray[Any, Any]:
    """The counts of a table in the order of another universe of the same cells."""
    if table.universe == universe:
        return table.counts
    indices = []
    for column in universe.columns:
        place = {code: i for i, code in enumerate(universe.codes[column])}
        of_code = np.array([place.get(code, -1) for code in table.universe.codes[column]], dtype=np.int32)
        indices.append(of_code[table.universe.code_indices(column)])
    known = np.all([given >= 0 for given in indices], axis=0)
    cells = universe.find(indices) if known.all() else np.full(len(known), -1)
    if len(cells) != len(universe) or (cells < 0).any():
        raise InvalidParameter(
            f"The table to compare with has other cells than the release ({len(cells)} and {len(universe)} rows). "
            "Give one row for each cell, or totals by the columns of a kept margin."
        )
    counts = np.zeros(len(universe), dtype=np.int64)
    counts[cells] = table.counts
    return counts


def _margin(table: Table, card: Card, made: tuple[Kept, np.ndarray[Any, Any]], listed: list[KeptRow]) -> tuple[int, list[str]]:
    """Official totals by some of the columns: the release must keep that margin."""
    kept, _ = made
    columns = table.universe.columns
    stated = [statement_of(given) for given in card.kept.definitions]
    wanted = [s for s in stated if isinstance(s, Margin) and s.kind == "kept" and not s.groupings and set(s.columns) >= set(columns)]
    if not wanted:
        raise InvalidParameter(
            f"The release does not keep totals by {', '.join(columns)}: they need not agree. It keeps {', '.join(card.kept.statements)}."
        )
    statement = min(wanted, key=lambda s: len(s.columns))
    totals = iter(listed)
    mine: dict[Any, int] = {}
    for rows in kept.rows:
        if rows.kind != "kept":
            continue
        values = [next(totals)[2] for _ in range(rows.count)]
        if rows.statement == str(statement):
            for codes, value in zip(rows.codes, values, strict=True):  # type: ignore[union-attr]
                named = {c: kept.universe.codes[c][k] for c, k in zip(statement.columns, codes, strict=True)}
                key = tuple(named[c] for c in columns)
                mine[key] = mine.get(key, 0) + value
            break
    cells = (table.universe.cell(i) for i in range(len(table.universe)))
    official = {tuple(cell[c] for c in columns): int(n) for cell, n in zip(cells, table.counts, strict=True)}
    return _differences(mine, official, lambda key: named_codes(zip(columns, key, strict=True)))


def _differences(mine: dict[Any, int], official: dict[Any, int], name: Any, grid: Grid | None = None) -> tuple[int, list[str]]:
    both = [key for key in mine if key in official]
    shown = str if grid is None else grid.text
    out = [f"{name(key)}: released {shown(mine[key])}, official {shown(official[key])}" for key in both if mine[key] != official[key]]
    out += [f"{name(key)}: not among the official totals" for key in mine if key not in official]
    out += [f"{name(key)}: not among the released totals" for key in official if key not in mine]
    return len(official), out
