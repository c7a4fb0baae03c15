"""A release against totals from elsewhere: an official file, or the office's own table.

Counts are compared as whole numbers, totals of real-valued answers as exact numbers, however they are written. A whole table of answers is
brought to the grid of the release first, as the release was ([theory T120]): its kept totals are then equal, rounded ones too.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from holdfast.card.card import Card
from holdfast.display import named_codes
from holdfast.errors import InvalidParameter, UnreadableInput
from holdfast.exact.formatting import format_exact
from holdfast.invariants.constraints import Margin, constraint_of
from holdfast.invariants.rows import Kept
from holdfast.lattices import Lattice
from holdfast.lattices.grid_rounding import to_grid
from holdfast.publication.listings import kept_header
from holdfast.publication.publication import Publication
from holdfast.tables import Table, Universe
from holdfast.tables.answers import read_answers
from holdfast.tables.measure import Measure, Number
from holdfast.tables.readers import find_columns, open_source
from holdfast.tables.text_files import Reading

PLAIN_HEADER = ["kept", "name", "total"]
TotalRow: TypeAlias = tuple[str, str, Number]
"""Constraint, name, total."""
Numbers: TypeAlias = np.ndarray[Any, Any]


def compare_with(against: Table | str | os.PathLike[str], own: Publication) -> tuple[int, list[str]]:
    """(how many official totals were compared, differences)."""
    card, kept, measure = own.card, own.plan.facts.kept, own.table.measure
    totals = [(constraint, name, measure.value(total)) for constraint, name, total in own.kept_rows]
    header, rows = ([], None) if isinstance(against, Table) else _read_official(Path(against), kept_header(card.table.columns), measure)
    if rows is None:
        universe, numbers = _of_table(against, measure) if isinstance(against, Table) else _of_file(Path(against), header, card, measure)
        if set(universe.columns) != set(card.table.columns):
            return _margin(universe, numbers, card, kept, totals, measure)
        rows = _kept_totals(_in_order(universe, numbers, kept.universe), own.plan.facts.lattice, kept, measure)
    return _differences(_number_totals(totals), _number_totals(rows), lambda key: key[1], measure)


def _of_table(table: Table, measure: Measure) -> tuple[Universe, Numbers]:
    """Its cells, and the number of each."""
    if type(table.measure) is not type(measure):
        raise InvalidParameter(
            "A release of real-valued answers is compared with answers, and one of counts with counts. For answers give a file: columns of "
            "codes and one of values, or kept, name, total, as kept.csv has them."
        )
    if measure.whole:
        return table.universe, table.counts
    return table.universe, np.array([table.measure.value(steps) for steps in table.counts.tolist()], dtype=object)


def _read_official(path: Path, full: list[str], measure: Measure) -> tuple[list[str], list[TotalRow] | None]:
    """The columns of a file; and its rows, if it is a list of kept, name, total, alone or with the columns of kept.csv."""
    import pyarrow as pa

    if path.suffix.lower() == ".csv" and path.is_file() and (rows := _own_list(path, full, measure)) is not None:
        return full, rows
    with open_source(path) as source:
        header = list(source.names)
        if header not in (PLAIN_HEADER, full):
            return header, None
        with closing(source.batches(find_columns(source, _three(header)))) as batches:
            columns = [[array.cast(pa.string()).to_pylist() for array in arrays] for arrays in batches]
    return header, _kept_rows(path, (row for arrays in columns for row in zip(*arrays, strict=True)), measure)


def _own_list(path: Path, full: list[str], measure: Measure) -> list[TotalRow] | None:
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
        raise _bad_row(path, measure)
    return _kept_rows(path, ([line[place] for place in places] for line in lines), measure)


def _three(header: list[str]) -> list[str]:
    return [header[0], header[1], header[-1]]


def _kept_rows(path: Path, rows: Iterable[Sequence[str]], measure: Measure) -> list[TotalRow]:
    try:
        return [(constraint, name, measure.number(total)) for constraint, name, total in rows]
    except (TypeError, ValueError):
        raise _bad_row(path, measure) from None


def _bad_row(path: Path, measure: Measure) -> UnreadableInput:
    return UnreadableInput(f"{path.name!r} has a row without a constraint, a name or a {measure.number_phrase} as total. Correct that row.")


def _of_file(path: Path, header: list[str], card: Card, measure: Measure) -> tuple[Universe, Numbers]:
    """The cells of a file, and the number of each."""
    codes = [name for name in header if name in card.table.columns]
    others = [name for name in header if name not in card.table.columns]
    if card.table.count in others:
        others = [card.table.count]
    if not codes or len(others) != 1:
        raise InvalidParameter(
            f"{path.name!r} should have columns of codes ({', '.join(card.table.columns)}) and one of numbers, or "
            "kept, name, total, alone or with the columns of kept.csv. "
            f"Found {', '.join(header) or 'nothing'}. Rename its columns, or leave others out."
        )
    if measure.whole:
        table = Table.from_counts(path, cells=codes, count=others[0], allow_similar_codes=True)
        return table.universe, table.counts
    plain: dict[str, Any] = {"universe": None, "public": False, "hierarchies": None, "allow_similar_codes": True, "query": None}
    universe, values = read_answers(path, codes, others[0], reading=Reading(), on_grid=measure.on_grid, **plain)
    return universe, np.array(values, dtype=object)


def _number_totals(rows: Iterable[TotalRow]) -> dict[tuple[str, str, int], Number]:
    """Totals by constraint and name; where two share both, by their number among these too, so that none is lost."""
    seen: Counter[tuple[str, str]] = Counter()
    out = {}
    for constraint, name, total in rows:
        seen[constraint, name] += 1
        out[constraint, name, seen[constraint, name]] = total
    return out


def _kept_totals(numbers: Numbers, moves: Lattice, kept: Kept, measure: Measure) -> list[TotalRow]:
    """The kept totals of another table of the same cells: only totals are looked at, so a confidential table may be given."""
    families = [rows for rows in kept.rows if rows.kind == "kept"]
    steps = numbers if measure.whole else to_grid(moves, numbers.tolist(), measure.places).integers
    totals = ((rows, place, int(total)) for rows in families for place, total in enumerate(rows.totals(steps)))
    return [(rows.constraint, rows.name(place), measure.value(total)) for rows, place, total in totals]


def _in_order(own: Universe, numbers: Numbers, universe: Universe) -> Numbers:
    """The numbers of a table in the order of another universe of the same cells."""
    if own == universe:
        return numbers
    indices = []
    for column in universe.columns:
        place = {code: i for i, code in enumerate(universe.codes[column])}
        of_code = np.array([place.get(code, -1) for code in own.codes[column]], dtype=np.int32)
        indices.append(of_code[own.code_indices(column)])
    known = np.all([given >= 0 for given in indices], axis=0)
    cells = universe.find(indices) if known.all() else np.full(len(known), -1)
    if len(cells) != len(universe) or (cells < 0).any():
        raise InvalidParameter(
            f"The table to compare with has other cells than the release ({len(cells)} and {len(universe)} rows). "
            "Give one row for each cell, or totals by the columns of a kept margin."
        )
    out = np.zeros(len(universe), dtype=numbers.dtype)
    out[cells] = numbers
    return out


def _margin(
    universe: Universe, numbers: Numbers, card: Card, kept: Kept, listed: Sequence[TotalRow], measure: Measure
) -> tuple[int, list[str]]:
    """Official totals by some of the columns: the release must keep that margin."""
    columns = universe.columns
    stated = [constraint_of(given) for given in card.kept.definitions]
    wanted = [s for s in stated if isinstance(s, Margin) and s.kind == "kept" and not s.groupings and set(s.columns) >= set(columns)]
    if not wanted:
        raise InvalidParameter(
            f"The release does not keep totals by {', '.join(columns)}: they need not agree. It keeps {', '.join(card.kept.constraints)}."
        )
    constraint = min(wanted, key=lambda s: len(s.columns))
    totals = iter(listed)
    mine: dict[Any, Number] = {}
    for rows in kept.rows:
        if rows.kind != "kept":
            continue
        values = [next(totals)[2] for _ in range(rows.count)]
        if rows.constraint == str(constraint):
            for codes, value in zip(rows.codes, values, strict=True):  # type: ignore[union-attr]
                named = {c: kept.universe.codes[c][k] for c, k in zip(constraint.columns, codes, strict=True)}
                key = tuple(named[c] for c in columns)
                mine[key] = mine.get(key, 0) + value
            break
    cells = (universe.cell(i) for i in range(len(universe)))
    official = {tuple(cell[c] for c in columns): n for cell, n in zip(cells, numbers.tolist(), strict=True)}
    return _differences(mine, official, lambda key: named_codes(zip(columns, key, strict=True)), measure)


def _differences(mine: Mapping[Any, Number], official: Mapping[Any, Number], name: Any, measure: Measure) -> tuple[int, list[str]]:
    both = [key for key in mine if key in official]
    shown = partial(_show_total, measure=measure)
    out = [f"{name(key)}: released {shown(mine[key])}, official {shown(official[key])}" for key in both if mine[key] != official[key]]
    out += [f"{name(key)}: not among the official totals" for key in mine if key not in official]
    out += [f"{name(key)}: not among the released totals" for key in official if key not in mine]
    return len(official), out


def _show_total(number: Number, measure: Measure) -> str:
    """A total as kept.csv writes it; what no multiples of the step have as it is, with what would be compared instead."""
    if (steps := Fraction(number) / measure.step).denominator == 1:
        return measure.text(int(steps))
    advice = f"no multiple of {measure.step_text}: compare the whole table of answers, which is rounded alike"
    return f"{format_exact(Fraction(number))} ({advice})"
