"""Which sum of a published table is asked about, and what it is called: by the query itself, and by the labels of its codes where the table
has some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.display import named_codes, names_in, nearest, nearest_code, shorten, split_names
from holdfast.errors import InvalidConstraint, InvalidParameter, RequestTooLarge
from holdfast.invariants.conditions import cells_meeting
from holdfast.invariants.constraints import groupings, named_levels, unit_of
from holdfast.tables import Universe
from holdfast.wording.intervals import ALL_CELLS, either, name_of

Ints = NDArray[np.int64]
Query = int | str | Mapping[str, str | Iterable[str]] | Any
"""A cell's number; codes of columns or of levels of hierarchies, such as {"state": "17"} or {"state": ["17", "18"]}, for the sum of all
cells with them; a condition such as "age >= 18 and sex = 'F'", for the sum of all cells that meet it; or whole numbers, one for each
cell."""
LARGEST_COEFFICIENT = 2**24
LEVEL = 0.95
"""Default level of an interval."""


def coefficients(query: Query, universe: Universe) -> Ints:
    """The query as one whole number for each cell."""
    cells = len(universe)
    if isinstance(query, Mapping):
        return _with_codes(query, universe)
    if isinstance(query, str):
        return _meeting(query, universe)
    if isinstance(query, int | np.integer) and not isinstance(query, bool):
        if not 0 <= query < cells:
            raise InvalidParameter(f"The table has the cells 0 to {cells - 1}. Got {query}.")
        out = np.zeros(cells, dtype=np.int64)
        out[query] = 1
        return out
    try:
        found = np.asarray(query)
    except ValueError:  # rows of different lengths
        found = np.zeros(0)
    if found.dtype.kind not in "iu" or found.shape != (cells,):
        raise InvalidParameter(
            f"A query is a cell's number, codes such as {{{universe.columns[0]!r}: ...}}, a condition on codes, or {cells} whole numbers, "
            "one for each cell."
        )
    if not found.any():
        raise InvalidParameter("All coefficients of this query are 0: it asks about no cell.")
    if max(int(found.max()), -int(found.min())) > LARGEST_COEFFICIENT:  # before 64 bits could wrap
        raise RequestTooLarge(f"Coefficients of a query are {LARGEST_COEFFICIENT:,} at most in size.")
    return found.astype(np.int64)


def _meeting(condition: str, universe: Universe) -> Ints:
    try:
        inside = cells_meeting(condition, universe, quoted_codes=True)
    except InvalidConstraint as error:  # what is asked is wrong, and no kept total
        raise InvalidParameter(str(error), field="query") from None
    if not inside.any():
        raise InvalidParameter(f"No cell meets the condition {shorten(condition)!r}.")
    return inside.astype(np.int64)


def _with_codes(query: Mapping[str, str | Iterable[str]], universe: Universe) -> Ints:
    inside = np.ones(len(universe), dtype=np.bool_)
    for column, wanted in query.items():
        codes, of_cell = _codes_of(column, universe)
        asked = list(wanted) if isinstance(wanted, Iterable) and not isinstance(wanted, str) else [wanted]
        for code in asked:
            if not isinstance(code, str):
                first = shorten(next(iter(codes)))
                raise InvalidParameter(f"Codes of {column!r} are texts, in quotes, such as {first!r}. Got {shorten(repr(code))}.")
        unknown = [code for code in asked if code not in codes]
        if unknown:
            if label := universe.labels.taken_for_code(column, unknown[0], codes):
                raise InvalidParameter(f"{label}. Write the code.")
            near = nearest_code(unknown[0], codes)
            raise InvalidParameter(f"{shorten(unknown[0])!r} is not a code of the column {column!r}. {near}")
        inside &= np.isin(of_cell, [codes[code] for code in asked])
    if not inside.any():
        raise InvalidParameter("No cell has these codes.")
    return inside.astype(np.int64)


def _codes_of(name: str, universe: Universe) -> tuple[Mapping[str, int], Ints]:
    """(the number of each code, the number of each cell) of a column, or of a level of a hierarchy."""
    if name in universe.columns:
        return universe.codes.places(name), universe.code_indices(name).astype(np.int64)
    try:
        (level,) = groupings(universe, [str(name)], "query")
    except InvalidConstraint as error:
        levels = [level for tree in universe.hierarchies.values() for level in named_levels(tree)]
        known = [*universe.columns, *levels]
        several = names_in(str(name), known)
        near = f"Write {':'.join(several)}. " if several else nearest(str(name), known, "{!r}")
        raise InvalidParameter(f"There is no column {name!r}. {near}The table has the columns {', '.join(universe.columns)}.") from error
    return {unit: number for number, (unit, _) in enumerate(level.units)}, unit_of(universe, level)


def margin_cells(names: Sequence[str], universe: Universe) -> tuple[Ints, dict[str, tuple[str, ...]]]:
    """(the number of the sum that each cell goes into; by name the code of each sum) of the margin by columns or levels of hierarchies:
    one for each name, or several in one text, county:sex.
    """
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidParameter("A margin has one column or more, each by its name, such as by=['state', 'sex'].", field="by")
    names = [name for text in names for name in ([text] if text in universe.columns else split_names(text))]
    number = np.zeros(len(universe), dtype=np.int64)
    codes: dict[str, tuple[str, ...]] = {}
    for name in names:
        places, of_cell = _codes_of(name, universe)
        written = list(places)
        present, number = np.unique(number * len(written) + of_cell, return_inverse=True)
        above, own = np.divmod(present, len(written))
        codes = {known: tuple(row[k] for k in above.tolist()) for known, row in codes.items()}
        codes[name] = tuple(written[k] for k in own.tolist())
    return number.astype(np.int64), codes


MOST_NAMED = 3
"""Codes of one column up to which a sum is called by their labels."""


def query_name(query: Query, universe: Universe) -> str | None:
    """A condition as it is written, codes as "county 17031, sex F", those of a cell for its number; None for other coefficients."""
    if isinstance(query, str):
        return query
    if isinstance(query, Mapping):
        asked = {column: [codes] if isinstance(codes, str) else list(codes) for column, codes in query.items()}
        return name_of((str(column), either(codes)) for column, codes in asked.items()) or ALL_CELLS
    return name_of(universe.cell(int(query)).items()) if isinstance(query, int | np.integer) else None


def query_label(wanted: Ints, universe: Universe) -> str | None:
    """The labels of the codes that all cells of a sum have and no other cell has: "Cook County, women". None where there are no labels of
    them, where codes do not say which cells they are, or where there are too many.
    """
    if not universe.labels.columns or not np.isin(wanted, (0, 1)).all():
        return None
    inside = wanted == 1
    present = {column: np.unique(universe.code_indices(column)[inside]) for column in universe.columns}
    chosen = [column for column in universe.columns if len(present[column]) < universe.code_count(column)]
    if not _are(chosen, present, universe, inside):
        return None
    # Those that others determine are left out, unless labels go by them; first those of many codes: a region, not all of its districts.
    for column in sorted(chosen, key=lambda column: -len(present[column])):
        others = [other for other in chosen if other != column]
        named = any(column in universe.labels.by(other) for other in others)
        if others and not named and _are(others, present, universe, inside):
            chosen = others
    codes = {column: _unit(column, [universe.codes[column][place] for place in present[column].tolist()], universe) for column in present}
    if not chosen or max(len(codes[column]) for column in chosen) > MOST_NAMED:
        return None
    single = {column: own[0] for column, own in codes.items() if len(own) == 1}
    return _join_labels([[{**single, column: code} for code in codes[column]] for column in chosen], chosen, universe)


def _unit(column: str, codes: list[str], universe: Universe) -> list[str]:
    """The unit of the column's hierarchy that consists of these codes, where it has a label; else the codes."""
    tree = universe.hierarchies.get(column)
    node = None if tree is None or len(codes) < 2 else tree.parent(codes[0])
    while tree is not None and node is not None:
        if sorted(tree.leaves(node)) == sorted(codes) and universe.labels.code(column, {column: node}) is not None:
            return [node]
        node = tree.parent(node)
    return codes


def _are(columns: Sequence[str], present: Mapping[str, Ints], universe: Universe, inside: NDArray[np.bool_]) -> bool:
    """Whether the cells with these codes are those inside."""
    having = np.ones(len(inside), dtype=np.bool_)
    for column in columns:
        having &= np.isin(universe.code_indices(column), present[column])
    return bool((having == inside).all())


def margin_labels(codes: Mapping[str, Sequence[str]], universe: Universe) -> tuple[str | None, ...] | None:
    """The labels of each sum of a margin, whose codes are given by column or level; None where the table has no labels."""
    if not universe.labels.columns:
        return None
    homes = {level.level: level.column for level in groupings(universe, list(codes), "margin")}
    columns = [homes.get(name, name) for name in codes]
    made = []
    for row in zip(*codes.values(), strict=True):
        plain = {name: code for name, code in zip(codes, row, strict=True) if name not in homes}
        made.append(_join_labels([[{**plain, column: code}] for column, code in zip(columns, row, strict=True)], columns, universe))
    return tuple(made)


def _join_labels(given: Sequence[Sequence[Mapping[str, str]]], columns: Sequence[str], universe: Universe) -> str | None:
    """For each column the codes it may have, with those of other columns that a label may need; None where no code has a label."""
    labels = universe.labels
    found = [[labels.code(column, codes) for codes in own] for column, own in zip(columns, given, strict=True)]
    if not any(label is not None for own in found for label in own):
        return None
    return ", ".join(
        either([label or named_codes([(labels.column(column), codes[column])]) for label, codes in zip(own, rows, strict=True)])
        for column, own, rows in zip(columns, found, given, strict=True)
    )
