"""What several releases of one data set expose together: kept totals that fix nothing alone may fix a cell jointly.

Legend: every table is a sum over a common refinement, whose cells are small enough that each table cell is a set of them. The kept rows of
all releases, read as rows over the refinement, span a space S over the rationals. A table cell is fixed jointly iff the indicator row of
its set lies in S ([theory R2]; membership.py). Where there is no common refinement nothing is computed, and that is said: the answer is
never "none" then.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import ContradictingTotals, InvalidParameter
from holdfast.exposure.cells import MOST_BOUNDED, _saturated_sums, decided_bounds, least_count
from holdfast.exposure.facts import JointFacts, LearnedTotals, NewCells
from holdfast.exposure.membership import RowSet, fixed_sums
from holdfast.exposure.pins import Found, Sums, decide
from holdfast.exposure.programmes import Work
from holdfast.exposure.refinement import NamedTable, NotComputed, link_tables, refine
from holdfast.invariants.constraints import Constraint
from holdfast.invariants.rows import Kept, LinearRows, RowFamily, Rows, compile_rows
from holdfast.tables.cells import rank_rows
from holdfast.tables.universe import Universe

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]

__all__ = ["ExposedCells", "JointExposure", "LearnedTotals", "PublishedTotals", "joint_exposure"]

MAX_NAMES = 3
"""New cells that are named; the others are counted."""
_TOO_LARGE = 2**62


@dataclass(frozen=True, eq=False)
class PublishedTotals:
    """What one release keeps exactly."""

    name: str
    """The release's id."""
    universe: Universe
    constraints: tuple[Constraint, ...]
    values: tuple[int, ...] | None = None
    """The kept totals as published, where known: one for each row of kind "kept", in the order of the constraints (or for every row,
    identities included)."""


@dataclass(frozen=True, eq=False)
class ExposedCells:
    """Cells of one release's table."""

    release: str
    universe: Universe
    old: Ints
    """Exposed by this release alone."""
    new: Ints
    """Exposed by all releases together, and not known to be by this one alone (where the search was cut, it may be)."""
    undecided: Ints
    """Not decided within the stated work: they may be exposed."""
    bounds: tuple[Ints, Ints] | None = None
    """Bounds of every cell of the table from the published values; None where none are known."""

    def names(self) -> Iterator[str]:
        """The new cells, as a person names them."""
        return (self.universe.cell_name(int(cell)) for cell in self.new)


@dataclass(frozen=True, eq=False)
class JointExposure:
    """What releases expose together; nothing is known of it where `computed` is False."""

    facts: JointFacts
    """The same in short, as values that can be stored: counts and a few names."""
    refinement: Universe | None = None
    kept: Kept | None = None
    """All rows over the refinement, in the order of the releases."""
    fixed: tuple[ExposedCells, ...] | None = None
    """Per release the cells fixed by the rows themselves, whatever the values; what identities fix is left out. None: not computed."""
    pinned: tuple[ExposedCells, ...] | None = None
    """Per release the further cells that the published values pin, counts being zero or more. None: no values are known."""

    @property
    def is_computed(self) -> bool:
        return self.facts.why_not is None

    @property
    def complete(self) -> bool:
        """Whether every cell that is fixed is listed. False where the search was cut, and where nothing was computed."""
        return self.facts.complete


@dataclass(frozen=True, eq=False)
class _Side:
    """One release, compiled, with the table cell of each refined cell (-1: none)."""

    release: PublishedTotals
    kept: Kept
    table: NamedTable
    place: Ints

    @property
    def cells(self) -> int:
        return len(self.release.universe)


# What callers use.


def joint_exposure(releases: Sequence[PublishedTotals], *, same_coding: bool = False) -> JointExposure:
    """What the kept totals of these releases of one data set fix together.

    Given:       tables of the same records. With the same columns, a cell that stands in two tables counts the same records in both; with
                 different columns, every table counts every record. `same_coding`: the caller vouches that different codes of one column
                 never hold the same record, also where they stand in different tables (ages 0-4 in one and 0-9 in the other do).
    Guarantees:  exact arithmetic. No cell is called fixed or pinned that is not. All fixed cells are listed where `complete`.
                 Nothing is claimed where the tables have no common refinement: `facts.why_not` says what is in the way.
    """
    if not releases or len({release.name for release in releases}) < len(releases):
        raise InvalidParameter("joint_exposure() takes one release or more, each with a name of its own.")
    compiled = [compile_rows(release.universe, release.constraints) for release in releases]
    try:
        tables = link_tables([(release.name, release.universe) for release in releases])
        refinement, places = refine(tables, same_coding)
    except NotComputed as reason:
        return JointExposure(JointFacts(tuple(release.name for release in releases), reason.why_not))
    sides = [_Side(*given) for given in zip(releases, compiled, tables, places, strict=True)]
    sizes = {c: refinement.code_count(c) for c in refinement.columns} if refinement.is_product else None
    every = _row_set([(side, side.place) for side in sides], len(refinement), sizes)
    identities = _row_set([(side, side.place) for side in sides], len(refinement), sizes, only="identity")
    fixed = tuple(_fixed_cells(side, every, identities) for side in sides)
    values = [_values(side.release, side.kept) for side in sides]
    pinned, contradicting = _find_agreeing(sides, values, refinement, fixed)
    facts = JointFacts(
        releases=tuple(release.name for release in releases),
        fixed=_new_cells(sides, fixed),
        complete=not any(len(cells.undecided) for cells in fixed),
        learned=tuple(found for side in sides for found in _learned_totals(side, sides, every)),
        pinned=None if pinned is None else _new_cells(sides, pinned),
        open=0 if pinned is None else sum(len(cells.undecided) for cells in pinned),
        values_missing=_missing(sides, values),
        contradicting=contradicting,
        crossed=_own_columns(sides),
    )
    return JointExposure(facts, refinement, _joint_kept(sides, refinement), fixed, pinned)


# Rows over the refinement, and which sums of cells they fix.


def _joint_kept(sides: Sequence[_Side], refinement: Universe) -> Kept:
    """All rows over the refinement, each named with its release."""
    rows: list[Rows] = []
    numbers: list[int] = []
    for side in sides:
        first = max(numbers, default=0)
        rows += [_lift(side, given) for given in side.kept.rows]
        numbers += [first + number for number in side.kept.constraint_of]
    return Kept(refinement, tuple(rows), tuple(numbers))


def _lift(side: _Side, rows: Rows) -> Rows:
    constraint = f"{side.release.name}: {rows.constraint}"
    if isinstance(rows, LinearRows):
        names = tuple(f"{side.release.name}: {name}" for name in rows.names)
        return LinearRows(constraint, rows.kind, _spread_columns(rows.matrix, side.place), names, rows.values)
    group = _spread(rows.group, side.place)
    if all(side.table.name_of[column] == column for column in rows.columns):
        return replace(rows, constraint=constraint, group=group, form="other")
    # A column with coarser codes has another name in the refinement: such rows are no margin of it.
    listed = tuple(rows.name(row) for row in range(rows.count))
    none = np.zeros((rows.count, 0), dtype=np.int32)
    return RowFamily(constraint, rows.kind, group, rows.count, (), none, rows.universe, listed, np.arange(rows.count, dtype=np.int32))


def _spread(numbers: Ints, place: Ints) -> Ints:
    """A number for each refined cell: that of its table cell, -1 outside the table."""
    return np.where(place >= 0, numbers[place].astype(np.int64), -1)


def _spread_columns(matrix: csr_array, place: Ints) -> csr_array:
    from scipy.sparse import csr_array, hstack

    wider = csr_array(hstack([matrix, csr_array((matrix.shape[0], 1), dtype=np.int64)], format="csc"))
    return csr_array(wider.tocsc()[:, np.where(place >= 0, place, matrix.shape[1])])


def _row_set(parts: Sequence[tuple[_Side, Ints | None]], cells: int, sizes: dict[str, int] | None, *, only: str | None = None) -> RowSet:
    """The rows of several releases over the same cells; with no place, over the release's own cells."""
    from scipy.sparse import csr_array, vstack

    families, counts, axes, linear = [], [], [], []
    for side, place in parts:
        for rows in side.kept.rows:
            if only is not None and rows.kind != only:
                continue
            if isinstance(rows, LinearRows):
                linear.append(rows.matrix if place is None else _spread_columns(rows.matrix, place))
                continue
            group = rows.group.astype(np.int64) if place is None else _spread(rows.group, place)
            families.append(group)
            counts.append(rows.count)
            covers = rows.part_of is None and not bool((group < 0).any())
            axes.append(frozenset(side.table.name_of[column] for column in rows.columns) if covers else None)
    stacked = csr_array(vstack(linear, format="csr", dtype=np.int64)) if linear else None
    return RowSet(cells, families, counts, axes, stacked, sizes)


def _own_rows(side: _Side, *, only: str | None = None) -> RowSet:
    universe = side.release.universe
    sizes = {side.table.name_of[c]: universe.code_count(c) for c in universe.columns} if universe.is_product else None
    return _row_set([(side, None)], side.cells, sizes, only=only)


def _fixed_cells(side: _Side, every: RowSet, identities: RowSet) -> ExposedCells:
    axes = frozenset(side.table.name_of.values())
    own_cells = np.arange(side.cells)
    joint, unsure = fixed_sums(every, side.place, side.cells, axes)
    known, known_unsure = fixed_sums(identities, side.place, side.cells, axes)
    own, own_unsure = fixed_sums(_own_rows(side), own_cells, side.cells, axes)
    own_known, own_known_unsure = fixed_sums(_own_rows(side, only="identity"), own_cells, side.cells, axes)
    old = own & ~own_known & ~own_known_unsure
    new = joint & ~own & ~known & ~known_unsure
    # What identities may fix alone is not called exposed before that is decided.
    open_jointly = ~known & (unsure | (joint & known_unsure))
    undecided = np.where(own, own_known_unsure, open_jointly | (own_unsure & (joint | unsure) & ~new))
    return ExposedCells(side.release.name, side.release.universe, np.flatnonzero(old), np.flatnonzero(new), np.flatnonzero(undecided))


def _learned_totals(side: _Side, sides: Sequence[_Side], every: RowSet) -> list[LearnedTotals]:
    """Margins of other releases, as far as this table has their columns, that its own rows do not fix; the largest of them only."""
    found: dict[frozenset[str], LearnedTotals] = {}
    for other in (given for given in sides if given is not side):
        for rows in other.kept.families:
            named = _with_coarser(other, rows.columns)
            columns = frozenset(name for name in named if name in side.table.columns)
            if rows.kind != "kept" or not rows.is_margin or columns in found:
                continue
            chosen = [side.table.columns[name].astype(np.int32) for name in sorted(columns)]
            labels, count = rank_rows(chosen, [int(given.max()) + 1 for given in chosen], side.cells)
            own, _ = fixed_sums(_own_rows(side), labels, count, columns)
            if own.all():
                continue
            # Where both tables hold all records, sums of the other's rows are the sums over this table; else it must be looked into.
            whole = bool((side.place >= 0).all() and (other.place >= 0).all())
            if whole or fixed_sums(every, _spread(labels, side.place), count, None)[0].all():
                found[columns] = LearnedTotals(side.release.name, tuple(name for name in named if name in columns), other.release.name)
    return [total for columns, total in found.items() if not any(columns < larger for larger in found)]


def _with_coarser(side: _Side, columns: Sequence[str]) -> list[str]:
    """The columns as the refinement names them, and the coarser ones that hierarchies derive from them: county totals tell states."""
    named = [side.table.name_of[column] for column in columns]
    given = [side.table.columns[name].astype(np.int32) for name in named]
    radices = [int(codes.max()) + 1 for codes in given]
    count = rank_rows(given, radices, side.cells)[1]
    for name in sorted(side.table.columns.keys() - side.table.name_of.values()):
        coarse = side.table.columns[name].astype(np.int32)
        if rank_rows([*given, coarse], [*radices, int(coarse.max()) + 1], side.cells)[1] == count:
            named.append(name)
    return named


# What the published values pin, counts being zero or more.


def _missing(sides: Sequence[_Side], values: Sequence[Sequence[Ints | None]]) -> tuple[str, ...]:
    """Releases whose kept totals are not all known."""
    return tuple(
        side.release.name
        for side, given in zip(sides, values, strict=True)
        if any(total is None and rows.kind == "kept" for rows, total in zip(side.kept.rows, given, strict=True))
    )


def _find_agreeing(
    sides: Sequence[_Side], values: Sequence[Sequence[Ints | None]], refinement: Universe, fixed: Sequence[ExposedCells]
) -> tuple[tuple[ExposedCells, ...] | None, tuple[str, ...]]:
    """Per release the cells pinned, and the releases left out because their values contradict those of others. The last one counts first;
    then those before it in the order, late or early ones first, that leaves fewer out or else pins more cells.
    """
    try:
        return _find_pinned(sides, values, refinement, fixed), ()
    except ContradictingTotals:
        pass
    last, tried = len(sides) - 1, []
    for order in (range(last, -1, -1), (last, *range(last))):
        pinned: tuple[ExposedCells, ...] | None = None
        agreeing: list[Sequence[Ints | None]] = [[None] * len(given) for given in values]
        left_out = []
        for place in order:
            more = [*agreeing[:place], values[place], *agreeing[place + 1 :]]
            try:
                pinned, agreeing = _find_pinned(sides, more, refinement, fixed), more
            except ContradictingTotals:
                left_out.append(sides[place].release.name)
        tried.append((pinned, tuple(left_out)))
    return min(tried, key=lambda one: (len(one[1]), -sum(len(cells.new) for cells in one[0] or ())))


def _find_pinned(
    sides: Sequence[_Side], values: Sequence[Sequence[Ints | None]], refinement: Universe, fixed: Sequence[ExposedCells]
) -> tuple[ExposedCells, ...] | None:
    """Per release the cells pinned; None where no value is known. Raise ContradictingTotals where no table has these values."""
    if all(total is None for given in values for total in given):
        return None
    alone = [_valued_bounds(side.release.universe, side.kept.rows, given) for side, given in zip(sides, values, strict=True)]
    lifted = _joint_kept(sides, refinement).rows
    together = _valued_bounds(refinement, lifted, [total for given in values for total in given])
    joint = [_cell_bounds(side, together, sides, values) for side in sides]
    out = []
    for side, own, all_bounds, cells in zip(sides, alone, joint, fixed, strict=True):
        told = np.union1d(cells.old, cells.new)
        old = np.setdiff1d(np.flatnonzero(own[0] == own[1]), cells.old)
        pinned = np.setdiff1d(np.flatnonzero(all_bounds[0] == all_bounds[1]), told)
        known = _known_by_identities(side, sides)
        new = np.setdiff1d(pinned, np.union1d(old, known))
        is_open = np.setdiff1d(np.flatnonzero(all_bounds[2]), np.union1d(told, known))
        out.append(ExposedCells(side.release.name, side.release.universe, np.setdiff1d(old, known), new, is_open, all_bounds[:2]))
    return tuple(out)


def _known_by_identities(side: _Side, sides: Sequence[_Side]) -> Ints:
    identities = _row_set([(given, given.place) for given in sides], len(side.place), None, only="identity")
    return np.flatnonzero(fixed_sums(identities, side.place, side.cells, None)[0])


def _values(release: PublishedTotals, kept: Kept) -> list[Ints | None]:
    """Per entry of kept.rows its totals, where they are known: as given, else as declared."""
    declared = [(rows.values,) * rows.count if isinstance(rows.values, int) else rows.values for rows in kept.rows]
    if release.values is None:
        return [None if given is None else _whole(given) for given in declared]
    published = sum(rows.count for rows in kept.rows if rows.kind == "kept")
    if len(release.values) not in (published, len(kept)):
        raise InvalidParameter(
            f"Release {release.name!r} has {published} kept totals, but {len(release.values)} values are given. Give one for each."
        )
    out: list[Ints | None] = []
    begin = 0
    for rows, given in zip(kept.rows, declared, strict=True):
        if rows.kind != "kept" and len(release.values) < len(kept):
            out.append(None if given is None else _whole(given))
            continue
        out.append(_whole(release.values[begin : begin + rows.count]))
        begin += rows.count
    return out


def _whole(values: Sequence[int]) -> Ints:
    if not all(isinstance(value, numbers.Integral) and not isinstance(value, bool) for value in values):
        raise InvalidParameter("Published totals must be integers. Got other numbers.")
    if any(abs(int(value)) >= _TOO_LARGE for value in values):
        raise InvalidParameter("A published total reaches 2^62. Holdfast sums in 64-bit integers.")
    return np.array([int(value) for value in values], dtype=np.int64)


def _valued_bounds(universe: Universe, rows: Sequence[Rows], totals: Sequence[Ints | None]) -> Found:
    """(lower, upper, not decided) of every cell from the rows whose totals are known."""
    known = [(given, total) for given, total in zip(rows, totals, strict=True) if total is not None]
    kept = Kept(universe, tuple(given for given, _ in known), tuple(range(1, len(known) + 1)))
    return decided_bounds(kept, [total for _, total in known])


def _cell_bounds(side: _Side, refined: Found, sides: Sequence[_Side], values: Sequence[Sequence[Ints | None]]) -> Found:
    """Bounds of the table's cells: from the refined cells in each, and from all totals that are sums of whole table cells."""
    inside = side.place >= 0
    lower, upper = (_saturated_sums(side.place[inside], given[inside], side.cells) for given in refined[:2])
    if np.bincount(side.place[inside], minlength=side.cells).max() == 1:  # the table's cells are refined cells
        is_open = np.zeros(side.cells, dtype=np.bool_)
        is_open[side.place[inside]] = refined[2][inside]
        return lower, upper, is_open
    rows: list[Rows] = []
    totals: list[Ints | None] = []
    for other, given in zip(sides, values, strict=True):
        for own, total in zip(other.kept.rows, given, strict=True):
            if other is side:
                rows.append(own)
                totals.append(total)
            elif total is not None and isinstance(own, RowFamily):
                carried = _carry_totals(side, own, _spread(own.group, other.place), total)
                rows += [part for part, _ in carried]
                totals += [part for _, part in carried]
    at_least, at_most, _ = _valued_bounds(side.release.universe, rows, totals)
    lower, upper = np.maximum(lower, at_least), np.minimum(upper, at_most)
    size = len(side.place) + side.cells
    if size > MOST_BOUNDED or any(least_count(one.release.universe) for one in sides):
        return lower, upper, lower < upper
    sharp = decide(_with_sums(side, sides, values), Work())
    assert sharp is not None
    tables = np.arange(len(side.place), size)
    lower, upper = np.maximum(lower, sharp[0][tables]), np.minimum(upper, sharp[1][tables])
    return lower, upper, sharp[2][tables] & (lower < upper)


def _with_sums(side: _Side, sides: Sequence[_Side], values: Sequence[Sequence[Ints | None]]) -> Sums:
    """All known totals over the refined cells, and beside these the table's own cells, each less the refined cells in it."""
    from scipy.sparse import csr_array, hstack, vstack

    refined, inside = len(side.place), np.flatnonzero(side.place >= 0)
    known = [
        (_lift(one, rows), total)
        for one, given in zip(sides, values, strict=True)
        for rows, total in zip(one.kept.rows, given, strict=True)
    ]
    chosen = [(rows, total) for rows, total in known if total is not None]
    kept = Kept(side.release.universe, tuple(rows for rows, _ in chosen), tuple(range(1, len(chosen) + 1)))
    parts = csr_array((-np.ones(len(inside), dtype=np.int64), (side.place[inside], inside)), shape=(side.cells, refined))
    own = hstack([parts, csr_array(np.eye(side.cells, dtype=np.int64))])
    rows = hstack([kept.matrix(), csr_array((len(kept), side.cells), dtype=np.int64)])
    matrix = csr_array(vstack([rows, own], format="csr", dtype=np.int64))
    totals = np.concatenate([*(total for _, total in chosen), np.zeros(side.cells, dtype=np.int64)])
    return Sums(refined + side.cells, (), matrix, totals)


def _carry_totals(side: _Side, rows: RowFamily, group: Ints, total: Ints) -> list[tuple[RowFamily, Ints]]:
    """The sums of another release's rows that are sums of whole cells of this table.

    Rows and table cells that share a refined cell are linked. In a component without refined cells outside the rows, the rows together and
    the table cells together are the same set. A margin over columns F becomes the margin over the columns of F that this table has.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    outside = rows.count
    row_of = np.where(group >= 0, group, outside)
    size = rows.count + 1 + side.cells
    graph = coo_array((np.ones(len(row_of), dtype=np.int8), (row_of, rows.count + 1 + side.place)), shape=(size, size))
    graph.sum_duplicates()
    graph.data[:] = 1  # sums of ones may have wrapped to zero
    number, component = connected_components(graph, directed=False)
    if int(np.abs(total).max()) * rows.count >= _TOO_LARGE:
        return []
    sums = np.zeros(number, dtype=np.int64)
    np.add.at(sums, component[: rows.count], total)
    of_cell = component[rows.count + 1 :].astype(np.int64)
    usable = of_cell != component[outside]
    present, compact = np.unique(of_cell[usable], return_inverse=True)
    if not len(present):
        return []
    own = np.full(side.cells, -1, dtype=np.int64)
    own[usable] = compact
    none = np.zeros((len(present), 0), dtype=np.int32)
    return [(RowFamily(rows.constraint, rows.kind, own, len(present), (), none, side.release.universe), sums[present])]


# In short.


def _new_cells(sides: Sequence[_Side], exposed: Sequence[ExposedCells]) -> tuple[NewCells, ...]:
    """Which cells are new: of all tables at once where their cells are the same, else table by table."""
    if all(np.bincount(side.place[side.place >= 0]).max() == 1 for side in sides):
        cells = [np.flatnonzero(np.isin(side.place, given.new)) for side, given in zip(sides, exposed, strict=True)]
        alone = [np.flatnonzero(np.isin(side.place, given.old)) for side, given in zip(sides, exposed, strict=True)]
        left = np.setdiff1d(np.concatenate(cells), np.concatenate(alone))
        names = tuple(_cell_name(sides, int(cell)) for cell in left[:MAX_NAMES])
        return (NewCells(None, len(left), names),) if len(left) else ()
    return tuple(NewCells(given.release, len(given.new), tuple(islice(given.names(), MAX_NAMES))) for given in exposed if len(given.new))


def _cell_name(sides: Sequence[_Side], cell: int) -> str:
    side = next(side for side in sides if side.place[cell] >= 0)
    return side.release.universe.cell_name(int(side.place[cell]))


def _own_columns(sides: Sequence[_Side]) -> tuple[tuple[str, ...], ...]:
    """Columns of one table only, where several tables have such columns."""
    apart = [sorted(set(side.table.columns) - set().union(*(o.table.columns for o in sides if o is not side))) for side in sides]
    found = tuple(tuple(columns) for columns in apart if columns)
    return found if len(found) > 1 else ()
