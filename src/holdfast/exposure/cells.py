"""What the kept totals give away, whatever the budget: as a table a legal department can read.

Two parts. The structural part needs no values: cells that the kept rows fix. The other part needs the totals as published: with counts
known to be zero or more, further cells may be pinned or nearly so (a kept total of 0 pins every cell under it). It depends on the published
totals and on nothing else. Rows that hold for every data set (identities) restrict the noise and expose nothing.

Bounds of cells come from the rows by propagation: a cell is at most its row's total minus what the others hold at least, and at least its
row's total minus what the others hold at most. For two-way margins the first round gives Frechet's bounds. The intervals are certain but
may be wider than the best possible ones: every cell called pinned is pinned; in general blocks some pinned cells may be missed.

Pinned cells are then looked for block by block: what the kept rows say one by one can miss what they say together. Tables with the same
kept totals differ by moves, which are a direct sum over blocks ([theory R1]), and counts are bounded below one by one: by 0, or by 1 where
the cells are those that occur. So a cell is pinned where its own block leaves it one value. Some shapes have sharp bounds
(`Shape.bounds_given`). Of the others we know what the kept rows say one by one: certain, perhaps not all.

Cells under a kept total of 0 (`Zeros`) are 0 in every table with these totals, since counts are not negative, and need no noise. Noise is
drawn on the moves that leave these cells alone ([theory R21]). Which cells they are follows from the kept rows and the published totals, by
integers: a wrong cell would be an infinite loss, one that is missed costs nothing. Blocks are products for most tables, and a
product without whole slices is a product again; single cells would make holes, and keep their noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import ContradictingTotals, InvalidParameter, NoTableWithin
from holdfast.exposure.facts import ExposedAlone
from holdfast.invariants.rows import Kept, LinearRows, RowFamily
from holdfast.lattices.blocks import Blocks
from holdfast.lattices.bounded_blocks import Inequalities
from holdfast.lattices.lattice import Lattice

if TYPE_CHECKING:
    from holdfast.tables.universe import Universe

Ints = NDArray[np.int64]

Bools: TypeAlias = NDArray[np.bool_]

RULE = 1
"""Version of the rule. It is part of what labels streams: a change of which cells are left out needs a new one."""


@dataclass(frozen=True, eq=False)
class Zeros:
    """Cells that are 0 by the kept totals and take no noise.

    Given:       cells in order, each under a row of `kept` without negative coefficients whose published total is 0.
    """

    kept: Kept
    cells: Ints

    @cached_property
    def moves(self) -> Lattice:
        """The moves that keep the totals and leave these cells alone."""
        return Lattice.from_kept(self.kept, self.cells)

    @cached_property
    def digest(self) -> str:
        """Digest of the numbers of the cells in the table's order."""
        return sha256(np.ascontiguousarray(self.cells, dtype="<i8").tobytes()).hexdigest()


def zero_cells(kept: Kept, totals: Sequence[Ints]) -> Bools:
    """Which cells lie under a row with coefficients of one sign whose total is 0.

    Given:       the published totals, one array for each entry of `kept.rows`.
    Guarantees:  depends on the rows and totals alone; every such cell is 0 in every table of counts with these totals.
    """
    zero = np.zeros(len(kept.universe), dtype=np.bool_)
    for rows, given in zip(kept.rows, totals, strict=True):
        nothing = np.asarray(given) == 0
        if not nothing.any():
            continue
        if isinstance(rows, RowFamily):
            zero |= np.append(nothing, False)[rows.group]  # -1, no row, takes the last entry
            continue
        for row in np.flatnonzero(nothing):
            begin, end = rows.matrix.indptr[row], rows.matrix.indptr[row + 1]
            coefficients = rows.matrix.data[begin:end]
            if (coefficients > 0).all() or (coefficients < 0).all():
                zero[rows.matrix.indices[begin:end]] = True
    return zero


def left_out(lattice: Lattice, kept: Kept, zero: Bools) -> Iterator[Zeros]:
    """What may be left out of the draw, most cells first; nothing where the kept rows fix these cells anyway.

    Guarantees:  depends on the lattice and `zero` alone. Of a block of a known shape whole slices are taken out, so that it keeps one; if
                 it does not, nothing is. Of other blocks all cells in `zero` are, and then none of them.
    """
    moving = np.ones(len(zero), dtype=np.bool_)
    moving[lattice.exposed_cells] = False
    was_general = _is_general(lattice.blocks)
    chosen = (zero & was_general) | _whole_slices(lattice.blocks, zero)
    if not (chosen & moving).any():
        return
    found = Zeros(kept, np.flatnonzero(chosen))
    block_of = lattice.blocks.block_of()
    spoiled = np.unique(block_of[_is_general(found.moves.blocks) & ~was_general])
    if len(spoiled):
        chosen &= ~np.isin(block_of, spoiled)
        found = Zeros(kept, np.flatnonzero(chosen))
    if (chosen & moving).any():
        yield found
    if (chosen & was_general).any() and (chosen & ~was_general & moving).any():
        yield Zeros(kept, np.flatnonzero(chosen & ~was_general))


def _is_general(blocks: Blocks) -> Bools:
    """Which cells are in a block without a known shape."""
    out = np.zeros(len(blocks.order), dtype=np.bool_)
    for number, shape, _ in blocks.used_shapes():
        if shape.dense_dimension or not shape.is_listed:
            out[blocks.cells_of(number)] = True
    return out


def _whole_slices(blocks: Blocks, zero: Bools) -> Bools:
    """The cells whose slice of their block, along some axis of its shape, is zero throughout."""
    out = np.zeros(len(zero), dtype=np.bool_)
    for number, shape, count in blocks.used_shapes():
        cells = blocks.cells_of(number)
        if not zero[cells].any():
            continue
        table = zero[cells].reshape(count, *shape.axes)
        found = np.zeros_like(table)
        for axis in range(1, table.ndim):
            others = tuple(k for k in range(1, table.ndim) if k != axis)
            found |= table.all(axis=others, keepdims=True)
        out[cells] = found.reshape(cells.shape)
    return out


MAX_ROUNDS = 50
_UNBOUNDED = 2**62


@dataclass(frozen=True, eq=False)
class Exposure:
    """What is published exactly."""

    universe: Universe
    fixed: Ints
    """Cells fixed by the kept rows themselves, whatever the values."""
    lower: Ints | None
    upper: Ints | None
    """Certain bounds of every cell, where the totals were given as published."""
    known: Ints
    """Cells fixed by identities alone, or 0 by them since counts are not negative: known of every data set, and so exposed by nothing."""
    complete: bool
    """False where the kept totals link too many cells to look for all that they fix."""
    values_open: bool = False
    """Whether totals are kept whose values are not known yet: which cells they pin is then still open."""
    bounded: bool = False
    """Whether public bounds pin cells that are not pinned by counts being known not to be negative."""

    @property
    def cells(self) -> Ints:
        """All cells whose counts follow from the published totals, in the order of the table."""
        return np.union1d(self.fixed, self.cells_exposed_by_totals)

    @property
    def cells_exposed_by_totals(self) -> Ints:
        """Cells that the published totals fix although the kept rows alone do not."""
        if self.lower is None or self.upper is None:
            return np.zeros(0, dtype=np.int64)
        return self._not_yet_told(self.lower == self.upper)

    def _not_yet_told(self, mask: NDArray[np.bool_]) -> Ints:
        return np.setdiff1d(np.flatnonzero(mask), np.concatenate([self.fixed, self.known]))

    def facts(self) -> ExposedAlone:
        """How many cells are published exactly, and why."""
        return ExposedAlone(
            len(self.fixed),
            len(self.cells_exposed_by_totals),
            self.complete,
            self.universe.support == "observed",
            not self.values_open,
            self.bounded,
        )


def exposure(
    lattice: Lattice,
    kept: Kept,
    totals: Sequence[Ints] | None = None,
    *,
    bounds: Inequalities | None = None,
) -> Exposure:
    """What these kept rows expose; with `totals` (as published, one array for each entry of `kept.rows`) also what the values pin.

    Given:       `bounds`: bounds of cells and inequalities of sums that are known of every data set. Where they leave a cell
                 one value it is no secret, and exposed by nothing.

    Guarantees:  depends on the kept rows and the published totals only. No cell is called exposed that is not.
    """
    _, known = known_by_identities(kept)
    if bounds is not None:
        alone = _bounds(Kept(kept.universe, (), ()), (), bounds, least=0)
        known = np.union1d(known, np.flatnonzero(alone[0] == alone[1]))
    fixed, complete = np.setdiff1d(lattice.exposed_cells, known), lattice.blocks.finest
    if totals is None:
        values_open = any(rows.kind == "kept" for rows in kept.rows)
        return Exposure(kept.universe, fixed, None, None, known, complete, values_open)
    if len(totals) != len(kept.rows) or any(len(t) != rows.count for t, rows in zip(totals, kept.rows, strict=False)):
        raise InvalidParameter("Published totals must be given for every constraint (every entry of kept.rows), one for each of its rows.")
    if any(np.asarray(given).dtype.kind not in "iu" for given in totals):
        raise InvalidParameter("Published totals must be integers. Got other numbers.")
    known = np.union1d(known, known_by_identities(kept, totals)[1])
    lower, upper = _bounds(kept, totals)
    found = Exposure(kept.universe, fixed, lower, upper, known, complete)
    if bounds is None:
        return found
    lower, upper = _bounds(kept, totals, bounds)
    within = replace(found, lower=lower, upper=upper)
    return replace(within, bounded=not np.array_equal(within.cells_exposed_by_totals, found.cells_exposed_by_totals))


def known_by_identities(kept: Kept | None, totals: Sequence[Ints] | None = None) -> tuple[int, Ints]:
    """(number of independent sums, cells) that identities alone fix: true of every data set, so that they expose nothing.

    With `totals`, one array for each entry of `kept.rows`, also the cells that an identity of 0 makes 0, and what follows from these.
    """
    chosen = [] if kept is None else [place for place, rows in enumerate(kept.rows) if rows.kind == "identity"]
    if kept is None or not chosen:
        return 0, np.zeros(0, dtype=np.int64)
    own = Kept(kept.universe, tuple(kept.rows[i] for i in chosen), tuple(kept.constraint_of[i] for i in chosen))
    identities = Lattice.from_kept(own)
    cells = identities.exposed_cells
    if totals is not None:
        zero = np.flatnonzero(zero_cells(own, [totals[i] for i in chosen]))
        if len(np.setdiff1d(zero, cells)):
            cells = Lattice.from_kept(own, zero).exposed_cells
    return identities.rank, cells


def least_count(universe: Universe) -> int:
    """What everyone knows a cell to hold at least: 1 where the list of cells is that of the cells that occur."""
    return 1 if universe.support == "observed" else 0


def _bounds(kept: Kept, totals: Sequence[Ints], known: Inequalities | None = None, least: int | None = None) -> tuple[Ints, Ints]:
    """Propagate bounds through all rows with coefficients of one sign, and all inequalities, until nothing changes. Cells that were
    observed hold at least 1, unless `least` says something else.
    """
    lower = np.full(len(kept.universe), least_count(kept.universe) if least is None else least, dtype=np.int64)
    upper = np.full(len(kept.universe), _UNBOUNDED, dtype=np.int64)
    if known is not None:
        lower, upper = np.maximum(lower, known.lower), np.minimum(upper, known.upper)
    families = [(rows, np.asarray(t, dtype=np.int64)) for rows, t in zip(kept.rows, totals, strict=True) if isinstance(rows, RowFamily)]
    for rows, given in families:
        inside = rows.group >= 0
        upper[inside] = np.minimum(upper[inside], given[rows.group[inside]])
    linear = [(rows, t) for rows, t in zip(kept.rows, totals, strict=True) if isinstance(rows, LinearRows)]
    for _ in range(MAX_ROUNDS):
        changed = False
        for rows, given in families:
            changed |= _tighten(rows, given, lower, upper)
        for sparse, given in linear:
            for row in range(sparse.count):
                changed |= _tighten_row(sparse, row, int(given[row]), lower, upper)
        for inequality in () if known is None else known.rows:
            changed |= _tighten_inequality(inequality, lower, upper)
        if not changed:
            break
    return lower, upper


def _tighten(rows: RowFamily, given: Ints, lower: Ints, upper: Ints) -> bool:
    inside = np.flatnonzero(rows.group >= 0)
    group = rows.group[inside]
    least, most = _saturated_sums(group, lower[inside], rows.count), _saturated_sums(group, upper[inside], rows.count)
    wrong = np.flatnonzero((least > given) | (most < given))
    wrong = wrong[np.isin(wrong, group)]
    if len(wrong):
        raise ContradictingTotals(
            f"The published totals cannot belong to a table of counts: {rows.name(int(wrong[0]))} disagrees with the others. Correct them."
        )
    # what the other cells of the row hold at least, at most
    new_upper = np.minimum(upper[inside], given[group] - (least[group] - lower[inside]))
    rest = np.where(most[group] >= _UNBOUNDED, _UNBOUNDED, most[group] - upper[inside])
    new_lower = np.maximum(lower[inside], given[group] - rest)
    changed = bool((new_upper < upper[inside]).any() or (new_lower > lower[inside]).any())
    upper[inside], lower[inside] = new_upper, new_lower
    return changed


def _tighten_row(rows: LinearRows, row: int, given: int, lower: Ints, upper: Ints) -> bool:
    """The same for one row with coefficients of one sign, in Python's integers: coefficients may be large."""
    begin, end = rows.matrix.indptr[row], rows.matrix.indptr[row + 1]
    cells, coefficients = rows.matrix.indices[begin:end], rows.matrix.data[begin:end].tolist()
    if coefficients[0] < 0:
        coefficients, given = [-c for c in coefficients], -given
    if min(coefficients) < 0:
        return False
    low, high = lower[cells].tolist(), upper[cells].tolist()
    least = sum(c * x for c, x in zip(coefficients, low, strict=True))
    most = sum(c * x for c, x in zip(coefficients, high, strict=True))
    if not least <= given <= most:
        raise ContradictingTotals(
            f"The published totals cannot belong to a table of counts: {rows.name(row)} disagrees with the others. Correct them."
        )
    new_high = [min(h, (given - least + c * x) // c) for c, x, h in zip(coefficients, low, high, strict=True)]
    new_low = [max(x, -((most - c * h - given) // c)) for c, x, h in zip(coefficients, low, high, strict=True)]
    lower[cells], upper[cells] = new_low, new_high
    return bool(new_low != low or new_high != high)


def _tighten_inequality(inequality: tuple[Ints, Ints, int], lower: Ints, upper: Ints) -> bool:
    """What the other cells of an inequality cannot make up for, a cell must. One cell without an upper bound can make up for anything."""
    cells, coefficients, least = inequality[0], inequality[1].tolist(), inequality[2]
    low, high = lower[cells].tolist(), upper[cells].tolist()
    gains = [c * (h if c > 0 else x) for c, x, h in zip(coefficients, low, high, strict=True)]
    endless = [place for place, (c, h) in enumerate(zip(coefficients, high, strict=True)) if c > 0 and h >= _UNBOUNDED]
    if len(endless) > 1:
        return False
    whole, changed = sum(gains), False
    for place in endless or range(len(gains)):
        c, missing = coefficients[place], least - (whole - gains[place])
        if c > 0 and -(-missing // c) > low[place]:
            low[place], changed = -(-missing // c), True
        elif c < 0 and missing // c < high[place]:
            high[place], changed = missing // c, True
    if any(x > h for x, h in zip(low, high, strict=True)):
        raise NoTableWithin("The kept totals and the bounds leave no table together. Correct the totals, or the bounds.")
    lower[cells], upper[cells] = low, high
    return changed


def _saturated_sums(group: Ints, values: Ints, count: int) -> Ints:
    """Group sums, cut off at 2^62: halves are summed apart, so that nothing overflows."""
    low, high = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.add.at(low, group, values & 0x7FFFFFFF)
    np.add.at(high, group, values >> 31)
    high += low >> 31
    return np.where(high >= 2**31, _UNBOUNDED, (np.minimum(high, 2**31 - 1) << 31) + (low & 0x7FFFFFFF))


def with_pinned(found: Exposure, lattice: Lattice, table: Ints) -> Exposure:
    """The exposure with every cell that blocks of a simple shape show to be pinned.

    Given:       what the kept rows say one by one; any integer table with the published totals, such as the released one.
    Guarantees:  depends on the published totals only: within a block, sums and margins are the same for all such tables. `complete` is
                 True only where all pinned cells are found.
    """
    assert found.lower is not None
    assert found.upper is not None
    least = least_count(found.universe)
    lower, upper, complete = found.lower.copy(), found.upper.copy(), found.complete
    blocks = lattice.blocks
    for number, shape, _ in blocks.used_shapes():
        if shape.is_free or shape.is_pinned:  # nothing is said of the first, and the others are listed as fixed
            continue
        cells = blocks.cells_of(number)
        bounds = shape.bounds_given(table[cells], least)
        if bounds is None:
            complete = False
            continue
        lower[cells], upper[cells] = np.maximum(lower[cells], bounds[0]), np.minimum(upper[cells], bounds[1])
    return replace(found, lower=lower, upper=upper, complete=complete)


def rows_say_all(lattice: Lattice, kept: Kept) -> bool:
    """Whether the kept rows one by one pin all that they pin together, where no table is at hand: one constraint, or rows and columns."""
    if lattice.universe is not None and lattice.universe.support == "observed":
        return False
    simple = all(shape.is_two_way or shape.is_free or shape.is_pinned for _, shape, _ in lattice.blocks.used_shapes())
    return len(kept.rows) <= 1 or (len(kept.rows) == 2 and simple)
