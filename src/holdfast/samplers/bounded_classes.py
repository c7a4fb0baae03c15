"""The double geometric law given kept sums and bounds, where cells fall into few classes of equal columns: exact, cell by cell.

Legend: x is the confidential table, z = y - x, a = exp(-epsilon). Cells with equal columns in the kept sums and in the inequalities are a
class; T_c is the sum of z over class c. Kept sums and inequalities see the class totals only.

Law of a draw.  The weight of z is the product of a^|z_i| over cells within their bounds. Let W_p(s) be the weight of all ways in which the
cells of p's class, up to p, add up to s: a convolution, cell by cell. Then
    class totals T       have weight product over classes of W_last(T_c), for T that the kept sums and inequalities allow;
    cell p given that it and those before it in its class add up to s
                         changes by k with weight a^|k| W_(p-1)(s - k); the first cell of a class takes what is left.
Each of these is drawn as the smallest place of a fixed order with U < F(place), from one word: class totals by their largest entry, cells
in the order 0, 1, -1, 2, -2, ... The order makes no difference to the law; it makes searches short.

How doubles decide.  All numbers are sums of products of positive numbers, so relative errors stay small: `relative` covers them. Partial
sums beyond a window are left out; all of them together weigh at most 2^-TAIL_BITS, against a total that is at least 1: `absolute` covers
that, also for numbers too small for doubles. A word is settled where both bounds agree; a draw with a word left open is made again in
integers, with windows as wide as the word asks for (bounded_exact.py). So windows and errors change the running time and nothing else.

Errors, with u = 2^-53 and a window of L places: `windowed` multiplies or adds at most 3 L + 8 times on the way from an entry to a sum it is
part of, for each of d cells; the weights of P points of class totals are products of at most d of them and P additions; a search adds 2 L
times. All of that is below (d + 2) (4 L + 16) u + P u, and twice that covers products of (1 + u).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import NoExactSampler
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.compiled import loops_for
from holdfast.lattices import algebra
from holdfast.randomness import Words
from holdfast.samplers.bounded_block import BoundedBlock, Room
from holdfast.samplers.bounded_classes_points import MOST_DIMENSIONS, ClassPoints
from holdfast.samplers.bounded_exact import ExactBlock, log2_mass, reach_for
from holdfast.samplers.protocol import Ints

TAIL_BITS = 64
MOST_MASS_BITS = 800
"""log2 of the weight of all tables without bounds; above, doubles could not hold both ends."""
MOST_ENTRIES = 1 << 24
"""Cells times places of the window: 128 MiB."""
MOST_POINTS = 1 << 20
CHUNK_WORDS = 1 << 17
COLD_CELLS = 1 << 13
"""Cells in one call that justify loading Numba in a process that has not yet."""
COLD_PRODUCTS = 1 << 27
"""Products of the NumPy twin, the places of the window squared for each cell of each table, that justify it too: many are of tiny numbers,
which processors multiply slowly."""

_MODULE = "holdfast.samplers._bounded_classes_compiled"

Floats = NDArray[np.float64]


class BoundedClasses:
    """The double geometric law of a block given its kept sums and bounds.

    Law:         P[y] proportional to exp(-epsilon |y - x|_1) over integer tables y with the kept sums of x and within the bounds.
    Given:       x within the bounds; class totals of at most two free dimensions (else NoExactSampler).
    Guarantees:  exact over uniform words. The number of words depends on public facts alone. The running time depends on the counts where
                 a word is left open, less often than once in a million draws of ordinary blocks; and on how many equal tables follow each
                 other.
    Reference:   [theory T65], [theory R19]; the slow form is ExactBlock.draw.
    """

    name = "class totals by convolution, then cells"
    expected_tries = 1.0

    def __init__(self, block: BoundedBlock, epsilon: Fraction, *, relative: float | None = None) -> None:
        """`relative` wider than the proven error changes the running time and nothing else: for tests."""
        self.block, self.epsilon = block, epsilon
        columns = np.concatenate([block.kept, block.cuts])
        classes, of_cell = np.unique(columns, axis=1, return_inverse=True)
        self.order = np.argsort(of_cell.reshape(-1), kind="stable")
        sizes = np.bincount(of_cell.reshape(-1))
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        kept, self.cuts = np.split(classes, [len(block.kept)])
        self.points = ClassPoints(_class_moves(kept), len(sizes))
        self.reach = reach_for(block.cells, epsilon, TAIL_BITS)
        self._check_size()
        width = 2 * self.reach + 1
        self.listed = len(self.points.within(self.reach))
        """Class totals inside the window."""
        proven = 2 * ((block.cells + 2) * (4 * width + 16) + self.listed) * 2.0**-53
        assert relative is None or relative >= proven
        self.margins = _margins(relative or proven, 2.0**-TAIL_BITS)
        self.words_per_draw = block.cells - len(sizes) + self.takes_totals

    @property
    def takes_totals(self) -> bool:
        """Whether a word decides the class totals: also where the window lists no other than zero, as wider windows do."""
        return self.points.dimension > 0

    def _check_size(self) -> None:
        cells = self.block.cells
        if self.points.dimension > MOST_DIMENSIONS or self.points.count_bound(self.reach) > MOST_POINTS:
            raise NoExactSampler(f"The totals of its classes of cells have {self.points.dimension} free dimensions, too many to list.")
        if cells * log2_mass(self.epsilon) > MOST_MASS_BITS or cells * (2 * self.reach + 1) > MOST_ENTRIES:
            raise NoExactSampler(f"A block of {cells} cells with bounds is too large to be drawn by convolution at this epsilon.")

    @property
    def cells(self) -> int:
        return self.block.cells

    @cached_property
    def powers(self) -> Floats:
        """exp(-epsilon k), correct to one unit in the last place, or to 2^-1074 where that is more."""
        with precision(128):
            return np.array([enclosure((-ball(self.epsilon * k)).exp()).nearest() for k in range(2 * self.reach + 2)])

    def publish(self, counts: Ints, cell_keys: Ints | None, words: Words) -> Ints:
        """One draw for each row of counts. CONFIDENTIAL input."""
        return counts + self.changes(counts, words)

    def changes(self, counts: Ints, words: Words) -> Ints:
        """What is added to each row of counts. CONFIDENTIAL."""
        out = np.empty((len(counts), self.cells), dtype=np.int64)
        rows = max(1, CHUNK_WORDS // max(self.words_per_draw, 1))
        is_heavy = out.size * (2 * self.reach + 1) ** 2 > COLD_PRODUCTS
        compiled = loops_for(_MODULE, max(out.size, COLD_CELLS) if is_heavy else out.size, COLD_CELLS)
        for begin in range(0, len(counts), rows):
            out[begin : begin + rows] = self._changes(counts[begin : begin + rows], words, compiled is not None)
        return out

    def _changes(self, counts: Ints, words: Words, compiled: bool) -> Ints:
        base = words.position
        taken = words.take(len(counts) * self.words_per_draw).reshape(len(counts), self.words_per_draw)
        is_new = np.concatenate([[True], (counts[1:] != counts[:-1]).any(axis=1)])
        table_of, room = np.cumsum(is_new) - 1, self._room(counts[is_new])
        run = self._run_compiled if compiled else self._run_numpy
        changes, is_open = run(taken, table_of, room)
        for row in np.flatnonzero(is_open):
            changes[row] = self._exact(room, table_of[row]).draw(taken[row].tolist(), base + int(row) * self.words_per_draw, words)
        out = np.empty_like(changes)
        out[:, self.order] = changes
        return out

    def _room(self, counts: Ints) -> Room:
        """What tables leave, their cells in the order of classes."""
        least, most, slack = self.block.room(counts)
        return Room(np.ascontiguousarray(least[:, self.order]), np.ascontiguousarray(most[:, self.order]), slack)

    def exact(self, counts: Ints) -> ExactBlock:
        """The block of one table, a single row, in integers, its cells in the order of classes."""
        return self._exact(self._room(counts), 0)

    def _exact(self, room: Room, row: int) -> ExactBlock:
        """One table's block in integers, its cells in the order of classes."""
        least, most, slack = (part[row].tolist() for part in room)
        return ExactBlock(self.epsilon, self.starts.tolist(), self.points, least, most, self.cuts, slack)

    def draw_slowly(self, counts: Ints, words: Words) -> Ints:
        """`publish` with every word decided in integers: the oracle."""
        room = self._room(counts)
        out = counts.copy()
        for row in range(len(counts)):
            place = words.position
            out[row, self.order] += self._exact(room, row).draw(words.take(self.words_per_draw).tolist(), place, words)
        return out

    def _run_compiled(self, words: NDArray[np.uint32], table_of: Ints, room: Room) -> tuple[Ints, NDArray[np.bool_]]:
        from holdfast.samplers import _bounded_classes_compiled

        width, points = 2 * self.reach + 1, self.points.within(self.reach)
        sums, scratch, cumulated = np.empty((self.cells, width)), np.empty((4, width)), np.empty(len(points))
        out, is_open = np.empty((len(words), self.cells), dtype=np.int64), np.zeros(len(words), dtype=np.bool_)
        _bounded_classes_compiled.run(
            words, *room, table_of, self.starts, points, self.takes_totals, self.cuts, float(self.powers[1]), self.powers, self.margins,
            sums, scratch, cumulated, out, is_open,
        )  # fmt: skip
        return out, is_open

    def _run_numpy(self, words: NDArray[np.uint32], table_of: Ints, room: Room) -> tuple[Ints, NDArray[np.bool_]]:
        """NumPy twin of the compiled loop."""
        out, is_open = np.zeros((len(words), self.cells), dtype=np.int64), np.zeros(len(words), dtype=np.bool_)
        prepared = -1
        for row, table in enumerate(table_of.tolist()):
            if table != prepared:
                twin, prepared = _Twin(self, room.least[table], room.most[table], room.slack[table]), table
            found = twin.draw(words[row].tolist())
            is_open[row] = found is None
            out[row] = 0 if found is None else found
        return out, is_open

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "powers"}


def _margins(relative: float, absolute: float) -> tuple[float, float, float, float]:
    """What turns a word and a total into two bounds: a sum is certainly not above the word's share of the true total up to word total m0 -
    m1, and certainly above from (word + 1) (total m2 + m3) on, true sums and totals being within (1 +- relative) and `absolute` above.
    """
    down, up = 1.0 - relative, 1.0 + relative
    return down / up * 2.0**-32, absolute / up, up / down * 2.0**-32, absolute / down * 2.0**-32


def _class_moves(kept: Ints) -> tuple[tuple[int, ...], ...]:
    """A reduced basis of the class totals that keep the sums, as rows."""
    if not len(kept):
        return tuple(tuple(row) for row in np.eye(kept.shape[1], dtype=np.int64).tolist())
    if algebra.rank(kept) == kept.shape[1]:
        return ()
    columns = algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis(kept)))
    return tuple(tuple(int(v) for v in column) for column in columns.T)


class _Twin:
    """One table, prepared and drawn in NumPy: the same outputs as the compiled loop."""

    def __init__(self, sampler: BoundedClasses, least: Ints, most: Ints, slack: Ints) -> None:
        self.sampler, self.least, self.most = sampler, least, most
        reach, powers, starts = sampler.reach, sampler.powers, sampler.starts
        self.sums = np.zeros((sampler.cells, 2 * reach + 1))
        for p in range(sampler.cells):
            if p in starts:
                before = np.zeros(2 * reach + 1)
                before[reach] = 1.0
            first, last = max(int(least[p]), -2 * reach), min(int(most[p]), 2 * reach)
            made = np.convolve(before, powers[abs(np.arange(first, last + 1))])[-first:][: 2 * reach + 1]
            self.sums[p, : len(made)] = made
            before = self.sums[p]
        self.points = sampler.points.within(reach)
        allowed = (self.points @ sampler.cuts.T >= slack).all(axis=1)
        weights = self.sums[starts[1:] - 1, reach + self.points].prod(axis=1)
        self.cumulated = np.cumsum(np.where(allowed, weights, 0.0))
        self.order = np.array([0, *(sign * k for k in range(1, 2 * reach + 1) for sign in (1, -1))])
        self.steps = powers[abs(self.order)]

    def draw(self, words: list[int]) -> Ints | None:
        """One draw, in the order of classes; None where doubles leave a word open."""
        reach, starts = self.sampler.reach, self.sampler.starts
        out = np.zeros(self.sampler.cells, dtype=np.int64)
        taken = iter(words)
        index = self._place(next(taken), self.cumulated, float(self.cumulated[-1])) if self.sampler.takes_totals else 0
        if index < 0:
            return None
        for group in range(len(starts) - 1):
            left = int(self.points[index, group])
            for p in range(starts[group + 1] - 1, starts[group], -1):
                rest = reach + left - self.order
                inside = (rest >= 0) & (rest <= 2 * reach) & (self.order >= self.least[p]) & (self.order <= self.most[p])
                weights = np.where(inside, self.steps * self.sums[p - 1, np.clip(rest, 0, 2 * reach)], 0.0)
                at = self._place(next(taken), np.cumsum(weights), float(self.sums[p, reach + left]))
                if at < 0:
                    return None
                out[p] = self.order[at]
                left -= int(out[p])
            out[starts[group]] = left
        return out

    def _place(self, word: int, cumulated: Floats, total: float) -> int:
        """Twin of `place` and of the search in `cell_given`."""
        down, shift, up, rise = self.sampler.margins
        index = int(np.searchsorted(cumulated, word * total * down - shift, side="right"))
        return -1 if index == len(cumulated) or cumulated[index] < (word + 1.0) * (total * up + rise) else index
