"""What the kept totals give away, whatever the budget: as a table a legal department can read.

Two parts. The structural part needs no values: cells that the kept rows fix. The other part needs the totals as published: with counts
known to be zero or more, further cells may be pinned or nearly so (a kept total of 0 pins every cell under it). It depends on the published
totals and on nothing else. Rows that hold for every data set (identities) restrict the noise and expose nothing.

Bounds of cells come from the rows by propagation: a cell is at most its row's total minus what the others hold at least, and at least its
row's total minus what the others hold at most. Which cells the totals pin together is then decided (pins.py), for the whole table where
that is one structure, else block by block: tables with the same kept totals differ by moves, which are a direct sum over blocks ([theory
R1]), and counts are bounded below one by one, by 0 or by 1 where the cells are those that occur. What cannot be decided within the stated
work is listed with its bounds.

Cells under a kept total of 0 (`Zeros`) are 0 in every table with these totals, since counts are not negative, and need no noise. Noise is
drawn on the moves that leave these cells alone ([theory R21]). Which cells they are follows from the kept rows and the published totals, by
integers: a wrong cell would be an infinite loss, one that is missed costs nothing. Blocks are products for most tables, and a
product without whole slices is a product again; single cells would make holes, and keep their noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import ContradictingTotals, InvalidParameter, NoTableWithin
from holdfast.exposure.facts import ExposedAlone, Together, Undecided
from holdfast.exposure.pins import Found, Sums, decide
from holdfast.exposure.programmes import NO_TABLE, Work
from holdfast.invariants.rows import Kept, LinearRows, RowFamily
from holdfast.lattices.blocks import Blocks
from holdfast.lattices.bounded_blocks import Inequalities, row_sum
from holdfast.lattices.lattice import Lattice
from holdfast.lattices.shapes import Free, OneSum
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.tables.columns import BATCH

if TYPE_CHECKING:
    from holdfast.tables.universe import Universe

Ints = NDArray[np.int64]

Bools: TypeAlias = NDArray[np.bool_]

_NO_CELLS: Ints = np.zeros(0, dtype=np.int64)

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
MOST_BLOCKS = 5_000
"""Blocks that are looked at one by one."""
MOST_BOUNDED = 400
"""Cells of a table with upper bounds or inequalities, up to which all of them are looked at together."""
MOST_CLASSES = 5
"""Classes of undecided cells that facts name."""
_UNBOUNDED = 2**62


@dataclass(frozen=True, eq=False)
class Exposure:
    """What is published exactly."""

    universe: Universe
    fixed: Ints
    """Cells fixed by the kept rows themselves, whatever the values."""
    pinned: Ints
    values: Ints
    """Cells that the published totals leave one value, in order, and these values; none where the totals are not given."""
    known: Ints
    """Cells fixed by identities alone, or 0 by them since counts are not negative: known of every data set, and so exposed by nothing."""
    undecided: Ints
    """Cells of which it is not decided whether the kept totals fix them, or pin them by their values."""
    limits: tuple[Ints, Ints] | None = None
    """Certain bounds of the undecided cells; None where the totals are not given."""
    values_open: bool = False
    """Whether totals are kept whose values are not known yet: which cells they pin is then still open."""
    bounded: bool = False
    """Whether public bounds pin cells that are not pinned by counts being known not to be negative."""

    together: Together | None = None
    """What earlier releases have to do with it; None: there are none."""

    @property
    def to_acknowledge(self) -> int:
        """How many true counts are published because kept totals fix them, alone or together with those of earlier releases."""
        return len(self.fixed) + (0 if self.together is None else self.together.facts.by_structure)

    @property
    def complete(self) -> bool:
        """Whether all cells are decided."""
        return not len(self.undecided)

    def open_classes(self) -> list[Undecided]:
        """The undecided cells by their bounds, most cells first."""
        if not len(self.undecided):
            return []
        none = [(None, None)] * len(self.undecided)
        bounds = none if self.limits is None else [_limits(*pair) for pair in zip(*(ends.tolist() for ends in self.limits), strict=True)]
        times = Counter(bounds)
        first = {found: cell for cell, found in reversed(list(zip(self.undecided.tolist(), bounds, strict=True)))}
        ordered = sorted(times, key=lambda found: (-times[found], first[found]))
        return [Undecided(times[found], *found, self.universe.cell_name(first[found])) for found in ordered]

    @property
    def cells(self) -> Ints:
        """All cells whose counts follow from the published totals, in the order of the table; with earlier releases or without."""
        jointly = () if self.together is None else (self.together.fixed, self.together.pinned)
        return np.unique(np.concatenate([self.fixed, self.cells_exposed_by_totals, *jointly]))

    @property
    def cells_exposed_by_totals(self) -> Ints:
        """Cells that the published totals fix although the kept rows alone do not."""
        return np.setdiff1d(self.pinned, np.concatenate([self.fixed, self.known]))

    def values_of(self, cells: Ints) -> Ints:
        """The counts of some of the pinned cells."""
        return self.values[np.searchsorted(self.pinned, cells)]

    def with_pinned(self, cells: Ints, values: Ints) -> Exposure:
        """The same where these cells, in order, have one value too."""
        pinned, first = np.unique(np.concatenate([cells, self.pinned]), return_index=True)
        left = ~np.isin(self.undecided, cells)
        limits = None if self.limits is None else (self.limits[0][left], self.limits[1][left])
        return replace(
            self, pinned=pinned, values=np.concatenate([values, self.values])[first], undecided=self.undecided[left], limits=limits
        )

    def facts(self) -> ExposedAlone:
        """How many cells are published exactly, and why."""
        return ExposedAlone(
            len(self.fixed),
            len(self.cells_exposed_by_totals),
            tuple(self.open_classes()[:MOST_CLASSES]),
            len(self.undecided),
            self.universe.support == "observed",
            not self.values_open,
            self.bounded,
        )


def _limits(lower: int, upper: int) -> tuple[int | None, int | None]:
    """What the totals reveal about a cell; None if no bound was found."""
    return (None, None) if upper >= _UNBOUNDED else (lower, upper)


def exposure(
    lattice: Lattice,
    kept: Kept,
    totals: Sequence[Ints] | None = None,
    *,
    table: Ints | None = None,
    bounds: Inequalities | None = None,
) -> Exposure:
    """What these kept rows expose; with `totals` (as published, one array for each entry of `kept.rows`) also what the values pin.

    Given:       `table`, any integers with these totals, such as the released counts: by them each block is looked at alone. `bounds`:
                 bounds of cells and inequalities of sums that are known of every data set. Where they leave a cell one value it is no
                 secret, and exposed by nothing.

    Guarantees:  depends on the kept rows and the published totals only. No cell is called exposed that is not.
    """
    _, known = known_by_identities(kept)
    if bounds is not None:
        alone = _bounds(Kept(kept.universe, (), ()), (), bounds, least=0)
        known = np.union1d(known, np.flatnonzero(alone[0] == alone[1]))
    fixed = np.setdiff1d(lattice.exposed_cells, known)
    if totals is None:
        values_open, none = any(rows.kind == "kept" for rows in kept.rows), np.zeros(0, dtype=np.int64)
        return Exposure(kept.universe, fixed, none, none, known, unsearched_cells(lattice), values_open=values_open)
    if len(totals) != len(kept.rows) or any(len(t) != rows.count for t, rows in zip(totals, kept.rows, strict=False)):
        raise InvalidParameter("Published totals must be given for every constraint (every entry of kept.rows), one for each of its rows.")
    if any(np.asarray(given).dtype.kind not in "iu" for given in totals):
        raise InvalidParameter("Published totals must be integers. Got other numbers.")
    known = np.union1d(known, known_by_identities(kept, totals)[1])
    told = np.union1d(fixed, known)
    found = Exposure(kept.universe, fixed, _NO_CELLS, _NO_CELLS, known, _NO_CELLS)
    sharp = None if table is None else _pinned_in_blocks(lattice.blocks, table, least_count(kept.universe))
    found = _pin(found, decided_bounds(kept, totals, lattice.blocks, table), told) if sharp is None else found.with_pinned(*sharp)
    if bounds is None or not bounds.any:
        return found
    within = _pin(found, decided_bounds(kept, totals, lattice.blocks, table, bounds), told)
    return replace(within, bounded=not np.array_equal(within.cells_exposed_by_totals, found.cells_exposed_by_totals))


def _pin(found: Exposure, bounds: Found, told: Ints) -> Exposure:
    """The same with these bounds of every cell; `told`: cells of which nothing is to be decided."""
    lower, upper, is_open = bounds
    pinned, undecided = np.flatnonzero(lower == upper), np.setdiff1d(np.flatnonzero(is_open), told)
    return replace(found, pinned=pinned, values=lower[pinned], undecided=undecided, limits=(lower[undecided], upper[undecided]))


def _pinned_in_blocks(blocks: Blocks, table: Ints, least: int) -> tuple[Ints, Ints] | None:
    """(the cells that the totals of this table leave one value, in order; these values), piece by piece, from the bounds that each block
    has by its shape; None where a shape has none that are sharp, or where no table of counts has these totals.
    """
    if not _are_sharp(blocks):
        return None
    pinned, values = [_NO_CELLS], [_NO_CELLS]
    for number, shape, count in blocks.used_shapes():
        cells = blocks.cells_of(number)
        together = max(1, BATCH // shape.size)
        for begin in range(0, count, together):
            own = cells[begin : begin + together]
            found = shape.bounds_given(table[own] - least, 0)
            assert found is not None
            if (found[0] < 0).any() or (found[0] > found[1]).any():
                return None
            single = found[0] == found[1]
            pinned.append(own[single])
            values.append(found[0][single] + least)
    order = np.argsort(every := np.concatenate(pinned), kind="stable")
    return every[order], np.concatenate(values)[order]


def unsearched_cells(lattice: Lattice) -> Ints:
    """Cells of blocks too large to look for all that the kept rows fix."""
    blocks = lattice.blocks
    large = [] if blocks.finest else [blocks.cells_of(n).ravel() for n, shape, _ in blocks.used_shapes() if not shape.is_listed]
    return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *large]))


def known_by_identities(kept: Kept | None, totals: Sequence[Ints] | None = None) -> tuple[int, Ints]:
    """(number of independent sums, cells) that identities alone fix: true of every data set, so that they expose nothing.

    With `totals`, one array for each entry of `kept.rows`, also the cells that these pin by their values.
    """
    chosen = [] if kept is None else [place for place, rows in enumerate(kept.rows) if rows.kind == "identity"]
    if kept is None or not chosen:
        return 0, np.zeros(0, dtype=np.int64)
    own = Kept(kept.universe, tuple(kept.rows[i] for i in chosen), tuple(kept.constraint_of[i] for i in chosen))
    identities = Lattice.from_kept(own)
    cells = identities.exposed_cells
    if totals is not None:
        lower, upper, _ = decided_bounds(own, [totals[i] for i in chosen], identities.blocks)
        cells = np.union1d(cells, np.flatnonzero(lower == upper))
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


# Which cells the totals pin together.


def decided_bounds(
    kept: Kept, totals: Sequence[Ints], blocks: Blocks | None = None, table: Ints | None = None, known: Inequalities | None = None
) -> Found:
    """(lower, upper, not decided) of every cell.

    Given:       the published totals; the blocks of the moves and any integer table with these totals, where the table is to be looked at
                 block by block if it is not of one structure; bounds that are known of every data set.
    Guarantees:  a function of rows and totals alone: within a block, sums are the same for all such tables.
    """
    lower, upper = _bounds(kept, totals, known)
    is_open = lower < upper
    floor, work = np.full(len(lower), least_count(kept.universe), dtype=np.int64), Work()
    floor = floor if known is None else np.maximum(floor, known.lower)
    above = [np.asarray(given) - rows.totals(floor) for rows, given in zip(kept.rows, totals, strict=True)]
    found: Iterable[tuple[Any, Found]] = ()
    if is_open.any():
        every = np.arange(len(lower))
        if known is not None and (known.rows or (known.upper < UNBOUNDED).any()):
            found = [(every, _decide_within(kept, above, floor, known, blocks, work))]
        elif blocks is not None and table is not None and _are_sharp(blocks):
            found = _decide_blocks(kept, blocks, table - floor, is_open, work)
        elif (whole := decide(Sums.of(len(lower), kept.rows, above), work if table is None else None)) is not None:
            found = [(every, whole)]
        elif blocks is not None and table is not None:
            found = _decide_blocks(kept, blocks, table - floor, is_open, work)
    for cells, (low, high, undecided) in found:
        lower[cells] = np.maximum(lower[cells], low + floor[cells])
        upper[cells] = np.minimum(upper[cells], np.minimum(high, _UNBOUNDED - floor[cells]) + floor[cells])
        is_open[cells] &= undecided
    if (lower > upper).any():
        raise ContradictingTotals(NO_TABLE)
    return lower, upper, is_open & (lower < upper)


def _are_sharp(blocks: Blocks) -> bool:
    """True if every block has a shape with sharp bounds: then nothing else is quicker."""
    return all(shape.bounds_given(np.zeros((1, shape.size), dtype=np.int64), 0) is not None for _, shape, _ in blocks.used_shapes())


def _decide_blocks(kept: Kept, blocks: Blocks, above: Ints, is_open: NDArray[np.bool_], work: Work) -> Iterator[tuple[Ints, Found]]:
    """Each block alone; those of a shape with sharp bounds all at once."""
    left = MOST_BLOCKS
    for number, shape, _ in blocks.used_shapes():
        cells = blocks.cells_of(number)
        if (bounds := shape.bounds_given(above[cells], 0)) is not None:
            yield cells, (*bounds, np.zeros(cells.shape, dtype=np.bool_))
            continue
        for own in cells[is_open[cells].any(axis=1)][:left]:
            left -= 1
            if (found := decide(Sums.within(kept.rows, above, own), work)) is not None:
                yield own, found


def _decide_within(kept: Kept, above: Sequence[Ints], floor: Ints, known: Inequalities, blocks: Blocks | None, work: Work) -> Found:
    """Decide with upper bounds and inequalities, each with a slack cell; a large table by single sums alone."""
    from scipy.sparse import csr_array, vstack

    cells = len(floor)
    nothing = np.zeros(cells, dtype=np.int64), np.full(cells, _UNBOUNDED, dtype=np.int64)
    if cells > MOST_BOUNDED:
        is_open = np.ones(cells, dtype=np.bool_)
        if blocks is None:
            return *nothing, is_open
        for number, shape, _ in blocks.used_shapes():
            is_open[blocks.cells_of(number)] = not (shape.is_pinned or isinstance(shape, Free | OneSum))
        if known.rows:
            block_of = blocks.block_of()
            is_open |= np.isin(block_of, block_of[np.concatenate([row[0] for row in known.rows])])
        return *nothing, is_open
    limited = np.flatnonzero(known.upper < UNBOUNDED)
    entries = [(np.array([cell]), np.array([1]), 1, int(known.upper[cell] - floor[cell])) for cell in limited.tolist()]
    entries += [(own, by, -1, least - row_sum(own, by, floor)) for own, by, least in known.rows]
    more = np.zeros((len(entries), cells + len(entries)), dtype=np.int64)
    for place, (own, by, sign, _) in enumerate(entries):
        more[place, own], more[place, cells + place] = by, sign
    rows = kept.matrix()
    wider = csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], more.shape[1]))
    values = np.concatenate([*above, np.array([least for *_, least in entries], dtype=np.int64)])
    found = decide(Sums(more.shape[1], (), csr_array(vstack([wider, csr_array(more)], format="csr")), values), work)
    assert found is not None
    return found[0][:cells], found[1][:cells], found[2][:cells]
