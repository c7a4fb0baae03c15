"""Constraints compiled to integer rows over the cells of a universe, each with a name a person recognises.

Rows with coefficients 0 and 1 and disjoint supports (a margin, a subset by columns) are kept as one group number per cell, never as a
matrix: tables of millions of cells stay one array a constraint. Other rows are sparse.

Sums may have declared values: identities, and kept rows whose totals were declared. Whether a table has them is decided here, as integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.display import count_of, nearest_code
from holdfast.errors import InvalidConstraint, RequestTooLarge
from holdfast.invariants.conditions import cells_meeting
from holdfast.invariants.constraints import (
    Areas,
    Constraint,
    Grouping,
    Kind,
    Linear,
    Margin,
    Subset,
    combine,
    groupings,
    integer_matrix,
    no_column,
)
from holdfast.tables.columns import BATCH, Indices, exact_total, index_type
from holdfast.tables.labels import NO_LABELS, Labels
from holdfast.tables.machine import check_memory
from holdfast.tables.universe import Universe

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]

BYTES_A_CELL, BYTES_A_FAMILY = 40, 16
"""Memory that a plan takes at least: for every cell, and for every cell and constraint."""


Form = Literal["margin", "subset", "other"]


@dataclass(frozen=True, eq=False)
class RowFamily:
    """Rows with coefficients 0 and 1 whose supports are disjoint: row number of each cell, -1 where it is in none."""

    constraint: str
    kind: Kind
    group: Indices
    """In integers as small as they may be, whatever they were given in."""
    count: int
    columns: tuple[str, ...]
    codes: NDArray[np.int32]
    universe: Universe
    parts: tuple[str, ...] = ()
    part_of: NDArray[np.int32] | None = None
    """For named areas packed into one family, their names and the area of each row; for a margin at levels of hierarchies, their units."""
    values: tuple[int, ...] | int | None = None
    """What the sums are declared to be: one number for each row, or one for all."""
    levels: tuple[str, ...] = ()
    """The levels of hierarchies that the rows go by beside `columns`."""
    form: Form = "other"
    """Which constraint they come from, as far as it decides how they are named."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", self.group.astype(index_type(self.count), copy=False))

    @property
    def is_margin(self) -> bool:
        """Whether the rows are one sum for every combination of codes of `columns`, over all cells."""
        return self.part_of is None and not bool((self.group < 0).any())

    def name(self, row: int, labels: Labels = NO_LABELS) -> str:
        """For example "state=17", "subset(age >= 18) by county: county=031" or "area Springfield"; with labels for a page "Illinois"."""
        by = labels.name_cell({c: self.universe.codes[c][k] for c, k in zip(self.columns, self.codes[row], strict=True)})
        part = None if self.part_of is None else self.parts[self.part_of[row]]
        if part is not None and self.form == "other":
            return f"area {part}: {by}" if by else f"area {part}"
        said = ", ".join(text for text in (part, by) if text)
        if self.form == "margin":
            return said or self.constraint
        return f"{self.constraint}: {said}" if said else self.constraint

    def totals(self, counts: Ints) -> Ints:
        """The row sums, exactly; RequestTooLarge if one leaves 64-bit integers."""
        if exact_total(counts) >= 2**62:
            raise RequestTooLarge("The total of the table reaches 2^62. Holdfast sums in 64-bit integers.")
        sums = np.zeros(self.count + 1, dtype=np.int64)  # the last for cells in no row
        for low in range(0, len(counts), BATCH):
            group = self.group[low : low + BATCH]
            starts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))  # tables are mostly in order: neighbours share a row
            np.add.at(sums, group[starts], np.add.reduceat(counts[low : low + BATCH], starts))
        return sums[:-1]


@dataclass(frozen=True, eq=False)
class LinearRows:
    """Any integer rows."""

    constraint: str
    kind: Kind
    matrix: csr_array
    names: tuple[str, ...]
    values: tuple[int, ...] | int | None

    @property
    def count(self) -> int:
        return len(self.names)

    def name(self, row: int, labels: Labels = NO_LABELS) -> str:
        return self.names[row]

    def totals(self, counts: Ints) -> Ints:
        """The row sums, exactly; RequestTooLarge if one leaves 62 bits."""
        largest = int(np.abs(counts).max(initial=0))
        sums = np.asarray(self.matrix @ counts, dtype=np.int64)
        # Where coefficients and counts are so large that 64 bits might have wrapped around, Python's integers decide.
        for row in np.flatnonzero(_coefficient_sums(self.matrix) >= 2.0**61 / max(largest, 1)):
            begin, end = self.matrix.indptr[row], self.matrix.indptr[row + 1]
            pairs = zip(self.matrix.data[begin:end].tolist(), counts[self.matrix.indices[begin:end]].tolist(), strict=True)
            exact = sum(coefficient * count for coefficient, count in pairs)
            if abs(exact) >= 2**62:
                raise RequestTooLarge("A kept sum reaches 2^62. Holdfast sums in 64-bit integers: use smaller coefficients.")
            sums[row] = exact
        return sums


Rows = RowFamily | LinearRows


@dataclass(frozen=True, eq=False, repr=False)
class Kept:
    """All rows of a list of constraints, in its order. A constraint gives one entry of `rows`; areas that overlap give several."""

    universe: Universe
    rows: tuple[Rows, ...]
    constraint_of: tuple[int, ...]
    """For each entry of `rows` the number of its constraint, from 1."""

    def __len__(self) -> int:
        return sum(rows.count for rows in self.rows)

    def __repr__(self) -> str:
        return f"Kept({len(self)} sums from {len(set(self.constraint_of))} constraints over {len(self.universe)} cells)"

    @property
    def families(self) -> tuple[RowFamily, ...]:
        return tuple(rows for rows in self.rows if isinstance(rows, RowFamily))

    @property
    def linear(self) -> tuple[LinearRows, ...]:
        return tuple(rows for rows in self.rows if isinstance(rows, LinearRows))

    def names(self) -> Iterator[str]:
        """A name for every row."""
        for rows in self.rows:
            for row in range(rows.count):
                yield rows.name(row)

    def kinds(self) -> list[Kind]:
        """Kept (published) or identity, for every row."""
        return [rows.kind for rows in self.rows for _ in range(rows.count)]

    def matrix(self) -> csr_array:
        """All rows as one sparse integer matrix, one column for each cell."""
        from scipy.sparse import csr_array, vstack

        parts = [_family_matrix(rows) if isinstance(rows, RowFamily) else rows.matrix for rows in self.rows]
        if not parts:
            return csr_array((0, len(self.universe)), dtype=np.int64)
        return csr_array(vstack(parts, format="csr", dtype=np.int64))


def compile_rows(universe: Universe, constraints: Iterable[Constraint]) -> Kept:
    """Compile constraints against a universe; refuses what names nothing or does not fit."""
    if isinstance(constraints, Margin | Subset | Areas | Linear):
        raise InvalidConstraint(f"Kept totals come as a list. Got one constraint alone. Write [{constraints}].")
    _check_memory(universe, 0)
    rows: list[Rows] = []
    constraint_of: list[int] = []
    made: dict[Constraint, list[Rows]] = {}  # what is stated again has the same rows, which are kept once
    for number, constraint in enumerate(constraints, 1):
        if not isinstance(constraint, Constraint):
            near = f" Write margin({constraint!r})." if isinstance(constraint, str) and constraint.isidentifier() else ""
            raise InvalidConstraint(
                f"A kept total must be made by total(), margin(), subset(), areas() or linear(). Got {type(constraint).__name__}.{near}"
            )
        if constraint not in made:
            if len(made) & (len(made) - 1) == 0:  # at 0, 1, 2, 4, 8, ... constraints, for the next ones
                _check_memory(universe, max(1, 2 * len(made)))
            made[constraint] = _with_values(_compile_rows(universe, constraint), constraint)
        rows += made[constraint]
        constraint_of += [number] * (len(rows) - len(constraint_of))
    return Kept(universe, tuple(rows), tuple(constraint_of))


def _check_memory(universe: Universe, constraints: int) -> None:
    needed = len(universe) * (BYTES_A_CELL + constraints * BYTES_A_FAMILY)
    what = f"A table of {len(universe):,} cells with {count_of(constraints, 'kept constraint')}"
    check_memory(needed, what, "Declare fewer cells, list those that can occur, or use a machine with more.")


def _with_values(made: list[Rows], constraint: Constraint) -> list[Rows]:
    """Declared values beside their rows; one for each row in the order of the rows, or one for all."""
    values = constraint.values
    if values is None:
        return made
    number = sum(rows.count for rows in made)
    if isinstance(values, tuple) and len(values) != number:
        raise InvalidConstraint(f"{constraint}: {len(values)} values for {number} rows. Give one for each row.")
    starts = np.cumsum([0, *(rows.count for rows in made)]).tolist()
    own = [values[start : start + rows.count] if isinstance(values, tuple) else values for start, rows in zip(starts, made, strict=False)]
    return [replace(rows, values=part) for rows, part in zip(made, own, strict=True)]


def _compile_rows(universe: Universe, constraint: Constraint) -> list[Rows]:
    if isinstance(constraint, Margin):
        return [_margin(universe, constraint)]
    if isinstance(constraint, Subset):
        return [_subset(universe, constraint)]
    if isinstance(constraint, Areas):
        return list(_areas(universe, constraint))
    return [_linear(universe, constraint)]


def _margin(universe: Universe, constraint: Margin) -> RowFamily:
    levels = groupings(universe, constraint.columns, str(constraint), constraint.groupings)
    whole = np.ones(len(universe), dtype=np.bool_)
    return _by(universe, constraint, whole, constraint.columns, levels)


def _by(
    universe: Universe, constraint: Margin | Subset, mask: NDArray[np.bool_], by: Sequence[str], levels: Sequence[Grouping]
) -> RowFamily:
    """One sum over the cells of the mask for every combination of codes of columns and of units of levels."""
    name, kind = str(constraint), constraint.kind
    form: Form = "margin" if isinstance(constraint, Margin) else "subset"
    columns = tuple(column for column in by if column in universe.codes)
    if not columns and not levels:
        group = np.full(len(universe), -1, dtype=np.int64)
        group[np.flatnonzero(mask)] = 0  # where they are few, faster than to choose for every cell
        return RowFamily(name, kind, group, 1, (), np.zeros((1, 0), dtype=np.int32), universe, form=form)
    group, codes = universe.group(columns)
    parts: tuple[str, ...] = ()
    part_of = None
    if levels:
        unit, parts = combine(universe, levels)
        present, group = np.unique(unit * len(codes) + group, return_inverse=True)
        codes, part_of, group = codes[present % len(codes)], (present // len(codes)).astype(np.int32), group.astype(np.int64)
    if not mask.all():
        present, compact = np.unique(group[mask], return_inverse=True)
        group = np.full(len(universe), -1, dtype=np.int64)
        group[mask] = compact
        codes, part_of = codes[present], None if part_of is None else part_of[present]
    named = tuple(one.level for one in levels)
    return RowFamily(name, kind, group, len(codes), columns, codes, universe, parts, part_of, levels=named, form=form)


def _subset(universe: Universe, constraint: Subset) -> RowFamily:
    if constraint.condition is not None:
        mask = cells_meeting(constraint.condition, universe)
    else:
        assert constraint.column is not None
        _check_columns(universe, (constraint.column,), str(constraint))
        codes = constraint.codes if constraint.codes is not None else _under(universe, constraint)
        mask = _having(universe, constraint.column, codes, str(constraint))
    levels = groupings(universe, constraint.by, str(constraint), constraint.groupings)
    if not mask.any():
        raise InvalidConstraint(f"{constraint} selects no cell. Check the codes against the table's.")
    return _by(universe, constraint, mask, constraint.by, levels)


def _areas(universe: Universe, constraint: Areas) -> Iterator[RowFamily]:
    """Neighbours in the list without a code in common share one family: thousands of places cost one array, not thousands."""
    _check_columns(universe, (constraint.column, *constraint.by), str(constraint))
    declared = universe.codes.places(constraint.column)
    packs: list[tuple[set[str], list[tuple[str, tuple[str, ...]]]]] = []
    for name, codes in constraint.sets:
        _check_known(constraint.column, codes, declared, f"area {name!r}")
        if not codes:
            raise InvalidConstraint(f"area {name} selects no cell. Check the codes against the table's.")
        if packs and packs[-1][0].isdisjoint(codes):  # only the last pack, so that rows stay in the order stated
            packs[-1][0].update(codes)
            packs[-1][1].append((name, codes))
        else:
            packs.append((set(codes), [(name, codes)]))
    for _, areas in packs:
        yield _pack_areas(universe, constraint, areas)


def _pack_areas(universe: Universe, constraint: Areas, areas: list[tuple[str, tuple[str, ...]]]) -> RowFamily:
    area_of = {code: place for place, (_, codes) in enumerate(areas) for code in codes}
    of_code = np.array([area_of.get(code, -1) for code in universe.codes[constraint.column]], dtype=np.int64)
    area = of_code[universe.code_indices(constraint.column)]
    by, codes = universe.group(constraint.by)
    keys = np.where(area >= 0, area * len(codes) + by, -1)
    present, group = np.unique(keys, return_inverse=True)
    group = group.astype(np.int64)
    if present[0] < 0:
        present, group = present[1:], group - 1
    parts = (present // len(codes)).astype(np.int32)
    names = tuple(name for name, _ in areas)
    own = codes[present % len(codes)]
    return RowFamily(str(constraint), constraint.kind, group, len(present), constraint.by, own, universe, names, parts)


def _under(universe: Universe, constraint: Subset) -> tuple[str, ...]:
    assert constraint.column is not None
    assert constraint.node is not None
    hierarchy = universe.hierarchies.get(constraint.column)
    if hierarchy is None:
        raise InvalidConstraint(f"{constraint}: column {constraint.column!r} has no hierarchy. Declare one, or list the codes.")
    if constraint.node not in hierarchy.nodes:
        raise InvalidConstraint(
            f"{constraint}: the hierarchy of {constraint.column!r} has no node {constraint.node!r}. Check its spelling."
        )
    return hierarchy.leaves(constraint.node)


def _having(universe: Universe, column: str, codes: Sequence[str], what: str) -> NDArray[np.bool_]:
    declared = universe.codes.places(column)
    _check_known(column, codes, declared, what)
    chosen = np.zeros(len(declared), dtype=np.bool_)
    chosen[[declared[code] for code in codes]] = True
    return universe.cells_having(column, chosen)


def _check_known(column: str, codes: Sequence[str], declared: Mapping[str, int], what: str) -> None:
    unknown = [code for code in codes if code not in declared]
    if unknown:
        more = f" ({len(unknown)} unknown in all)" if len(unknown) > 1 else ""
        raise InvalidConstraint(f"{what}: column {column!r} has no code {unknown[0]!r}{more}. {nearest_code(unknown[0], declared)}")


def _linear(universe: Universe, constraint: Linear) -> LinearRows:
    matrix = integer_matrix(constraint.matrix)
    if universe.rows_moved:
        raise InvalidConstraint(
            "linear(): a matrix has one column for each cell in the table's order, and the rows of the source stood in another: they were "
            "put in the order of their codes, since nobody declared them public. Sort the source by its codes, or declare the list of "
            "cells public (public = true)."
        )
    if matrix.shape[0] == 0:
        raise InvalidConstraint("linear(): the matrix has no rows. Leave the constraint out, or give at least one row.")
    if matrix.shape[1] != len(universe):
        raise InvalidConstraint(
            f"linear(): the matrix has {matrix.shape[1]} columns, but the table has {len(universe)} cells. Give one column for each cell."
        )
    names = constraint.names if constraint.names is not None else tuple(f"row {i + 1}" for i in range(matrix.shape[0]))
    if len(names) != matrix.shape[0]:
        raise InvalidConstraint(f"linear(): {len(names)} names for {matrix.shape[0]} rows. Give one for each row.")
    empty = np.flatnonzero(np.diff(matrix.indptr) == 0)
    if len(empty):
        raise InvalidConstraint(f"linear(): row {names[int(empty[0])]!r} selects no cell. Remove it.")
    return LinearRows(str(constraint), constraint.kind, matrix, names, None)


def _coefficient_sums(matrix: csr_array) -> NDArray[np.float64]:
    """Sums of absolute coefficients, row by row, as doubles: they only decide where to look again."""
    return np.asarray(abs(matrix).astype(np.float64).sum(axis=1)).ravel()


def _family_matrix(family: RowFamily) -> csr_array:
    from scipy.sparse import csr_array

    cells = np.flatnonzero(family.group >= 0)
    ones = np.ones(len(cells), dtype=np.int64)
    return csr_array((ones, (family.group[cells], cells)), shape=(family.count, len(family.group)))


def _check_columns(universe: Universe, columns: Sequence[str], what: str) -> None:
    for column in columns:
        if column not in universe.codes:
            raise no_column(universe, column, what)


def broken_constraints(kept: Kept, counts: Ints) -> Iterator[tuple[int, Rows]]:
    """Return the constraints, by number from 1, whose declared values differ from the counts. Which sums differ, and by how much, is not
    said: it would reveal counts.
    """
    found: set[int] = set()
    for number, rows in zip(kept.constraint_of, kept.rows, strict=True):
        if rows.values is not None and number not in found and _differs(rows, counts).any():
            found.add(number)
            yield number, rows


def broken_identities(kept: Kept, counts: Ints, published: NDArray[np.bool_]) -> Iterator[str]:
    """What a released table breaks, by name: sums of published cells that are not what an identity says they are in every data set."""
    for rows in kept.rows:
        if rows.kind == "identity" and rows.values is not None:
            wrong = _differs(rows, counts) & (_cells_in(rows, ~published) == 0)
            yield from (
                f"{rows.name(row)}: the table does not have the value that the identity declares" for row in np.flatnonzero(wrong).tolist()
            )


def _differs(rows: Rows, counts: Ints) -> NDArray[np.bool_]:
    """Which sums are not as declared. Sums stay below 2^62, so that a larger value may as well be the largest there is."""
    given = rows.values if isinstance(rows.values, tuple) else [rows.values or 0]
    declared = np.array([min(max(value, -(2**63) + 1), 2**63 - 1) for value in given], dtype=np.int64)
    return np.asarray(rows.totals(counts) != declared)


def _cells_in(rows: Rows, mask: NDArray[np.bool_]) -> Ints:
    """How many cells of the mask each sum is over."""
    if isinstance(rows, RowFamily):
        return rows.totals(mask.astype(np.int64))
    return np.asarray((rows.matrix != 0).astype(np.int64) @ mask, dtype=np.int64)
