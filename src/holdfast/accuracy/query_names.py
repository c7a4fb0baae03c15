"""What a sum that is asked for is called: by the query itself, and by the labels of its codes where the table has some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.queries import Query
from holdfast.display import named_codes
from holdfast.invariants.levels import groupings
from holdfast.tables import Universe
from holdfast.wording.intervals import ALL_CELLS, either, name_of

Ints = NDArray[np.int64]

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
