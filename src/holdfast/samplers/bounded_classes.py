"""The double geometric law given kept sums and bounds, where cells fall into few classes of equal columns: exact, cell by cell.

Legend: x is the confidential table, z = y - x, a = exp(-epsilon). Cells with equal columns in the kept sums and in the inequalities are a
class; T_c is the sum of z over class c. S_1, S_2, ... are the partial sums of a class, cell by cell; a window H keeps every |S_j| <= H.
Weights of class totals and of cells given the rest are convolutions W_p(s) [theory T65]. `ClassPoints` lists the class totals, in an order
that a wider window only continues. `ExactBlock` has certified weights, two integers each in units of 2^-working, rounded down and up at
every step: they decide where doubles do not, and are the oracle.

Each class total and each cell is drawn as the smallest place of a fixed order with U < F(place), from one word: class totals by their
largest entry, cells in the order 0, 1, -1, 2, -2, ... The order makes no difference to the law; it makes searches short.

How doubles decide.  All numbers are sums of products of positive numbers, so relative errors stay small: `relative` covers them. Partial
sums beyond a window are left out; all of them together weigh at most 2^-TAIL_BITS, against a total that is at least 1: `absolute` covers
that, also for numbers too small for doubles. A word is settled where both bounds agree; a draw with a word left open is made again in
integers, with windows as wide as the word asks for. So windows and errors change the running time and nothing else.

Errors, with u = 2^-53 and a window of L places: `sum_windows` multiplies or adds at most 3 L + 8 times on the way from an entry to a sum it
is part of, for each of d cells; the weights of P points of class totals are products of at most d of them and P additions; a search adds 2
L times. All of that is below (d + 2) (4 L + 16) u + P u, and twice that covers products of (1 + u).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from flint import fmpz_poly
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeySums
from holdfast.errors import NoExactSampler
from holdfast.exact.balls import ball, enclosure, fixed_point, precision
from holdfast.exact.compiled import loops_for
from holdfast.exact.table import TableSampler
from holdfast.exact.weights import FixedWeights, WeightSource
from holdfast.lattices import algebra
from holdfast.randomness import Words
from holdfast.samplers.bounded_block import BoundedBlock, Room
from holdfast.samplers.protocol import Ints

MOST_DIMENSIONS = 2


@dataclass(frozen=True)
class ClassPoints:
    """Integer combinations of the rows of `moves`, sorted by their largest entry in size, then entry by entry: a value.

    Given:  rows that are linearly independent, MOST_DIMENSIONS at most.
    """

    moves: tuple[tuple[int, ...], ...]
    classes: int

    @property
    def dimension(self) -> int:
        return len(self.moves)

    def within(self, reach: int) -> Ints:
        """All points whose entries are at most `reach` in size."""
        return _within(self, reach)

    def at(self, index: int) -> tuple[int, ...]:
        """The point at this place of the order."""
        reach = 1
        while len(self.within(reach)) <= index:
            reach *= 2
        return tuple(self.within(reach)[index].tolist())

    def count_bound(self, reach: int) -> float:
        """A bound of how many points `within` lists."""
        return float(np.prod([2 * span + 1 for span in self._spans(reach)], dtype=np.float64))

    def _spans(self, reach: int) -> list[int]:
        """For each move the largest multiple that a listed point can have: Cramer's rule on the best choice of entries."""
        basis: NDArray[Any] = np.array(self.moves, dtype=object).reshape(self.dimension, self.classes)
        if self.dimension == 0:
            return []
        if self.dimension == 1:
            return [reach // max(abs(int(v)) for v in basis[0])]
        best: list[int] = []
        for i, j in combinations(range(self.classes), 2):
            (a, b), (c, d) = ((int(basis[0, k]), int(basis[1, k])) for k in (i, j))
            determinant = abs(a * d - b * c)
            if determinant:
                spans = [(abs(b) + abs(d)) * reach // determinant, (abs(a) + abs(c)) * reach // determinant]
                best = min(best or spans, spans, key=lambda s: s[0] * s[1])
        return best


@lru_cache(maxsize=64)
def _within(points: ClassPoints, reach: int) -> Ints:
    axes = [np.arange(-span, span + 1, dtype=np.int64) for span in points._spans(reach)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, points.dimension) if axes else np.zeros((1, 0), dtype=np.int64)
    listed = grid @ np.array(points.moves, dtype=np.int64).reshape(points.dimension, points.classes)
    size = abs(listed).max(axis=1, initial=0)
    kept = listed[size <= reach]
    order = np.lexsort((*kept.T[::-1], size[size <= reach]))
    out: Ints = np.ascontiguousarray(kept[order])
    out.flags.writeable = False
    return out


LOG2_E = Fraction(3, 2)
"""Above log2(e)."""


@lru_cache(maxsize=1024)
def log2_mass(epsilon: Fraction) -> Fraction:
    """An upper bound, in sixteenths, of log2 of the sum of a^|k| e^(epsilon k / 2) over all k, which is above the sum of a^|k|."""
    with precision(64):
        half, more = (-ball(epsilon / 2)).exp(), (-ball(epsilon * 3 / 2)).exp()
        mass = 1 / (1 - half) + more / (1 - more)
        return Fraction(math.ceil(16 * enclosure(mass.log() / ball(2).log()).upper), 16)


@lru_cache(maxsize=4096)
def reach_for(cells: int, epsilon: Fraction, bits: int) -> int:
    """A window H beyond which all tables z together weigh at most 2^-bits, bounds or none ([theory T65] (c), M <= 2^log2_mass)."""
    wanted = bits + 1 + cells.bit_length() + cells * log2_mass(epsilon)
    return math.ceil(2 * Fraction(7, 10) * wanted / epsilon)  # ln 2 < 7/10


def log2_ceiling(epsilon: Fraction, distance: int) -> int:
    """b with exp(-epsilon distance) >= 2^-b."""
    return math.ceil(epsilon * distance * LOG2_E)


@dataclass(eq=False)
class ExactBlock:
    """One table's block, its cells in the order of classes: certified weights of class totals and of cells given the rest.

    Given:  least <= 0 <= most for each cell (FAR for none), slack <= 0 for each cut of the class totals. CONFIDENTIAL.
    """

    epsilon: Fraction
    starts: Sequence[int]
    points: ClassPoints
    least: Sequence[int]
    most: Sequence[int]
    cuts: Ints
    slack: Sequence[int]
    _known: dict[tuple[int, int, int], list[tuple[list[int], list[int]]]] = field(default_factory=dict)

    @property
    def cells(self) -> int:
        return len(self.least)

    def powers(self, working: int, reach: int) -> list[tuple[int, int]]:
        return _powers(self.epsilon, working, 2 * reach + 1)

    def sums(self, group: int, working: int, reach: int) -> list[tuple[list[int], list[int]]]:
        """For each cell of the class (lows, highs) of the weights of the partial sums -reach .. reach that end with it."""
        key = (group, working, reach)
        if key not in self._known:
            start, end = self.starts[group], self.starts[group + 1]
            powers, size = self.powers(working, reach), 2 * reach + 1
            out: list[tuple[list[int], list[int]]] = []
            for p in range(start, end):
                first, last = max(self.least[p], -2 * reach), min(self.most[p], 2 * reach)
                lows, highs = ([power[side] for power in map(powers.__getitem__, map(abs, range(first, last + 1)))] for side in (0, 1))
                before = out[-1] if out else ([0] * reach + [1 << working], [0] * reach + [1 << working])
                out.append((_convolve(before[0], lows, -first, size, working), _convolve(before[1], highs, -first, size, working, up=True)))
            self._known[key] = out
        return self._known[key]

    def working(self, bits: int) -> int:
        """Bits of working precision that leave `bits` after all sums and products."""
        return bits + 64 + math.ceil(self.cells * (log2_mass(self.epsilon) + 1))

    def draw(self, values: Sequence[int], place: int, words: Words) -> list[int]:
        """One draw from these words, the first of which has index `place` in its stream: every one decided in integers."""
        taken = iter(zip(values, range(place, place + len(values)), strict=True))
        totals = (0,) * (len(self.starts) - 1)
        if self.points.dimension:
            totals = self.points.at(_settle(TotalsSource(self), *next(taken), words))
        out = [0] * self.cells
        for group, left in enumerate(totals):
            for p in range(self.starts[group + 1] - 1, self.starts[group], -1):
                out[p] = zigzag(_settle(CellSource(self, group, p, left), *next(taken), words))
                left -= out[p]
            out[self.starts[group]] = left
        return out


@dataclass(frozen=True, eq=False)
class TotalsSource:
    """Weights of the class totals in the order of the points."""

    block: ExactBlock

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        block = self.block
        wanted = bits + guard + 2
        reach, working = reach_for(block.cells, block.epsilon, wanted), block.working(wanted)
        sums = [block.sums(group, working, reach)[-1] for group in range(len(block.starts) - 1)]
        points = block.points.within(reach)
        lows, highs = [0] * len(points), [0] * len(points)
        for i in np.flatnonzero((points @ block.cuts.T >= np.array(block.slack, dtype=np.int64)).all(axis=1)).tolist():
            low = high = 1 << working
            for side, total in zip(sums, points[i].tolist(), strict=True):
                if high == 0:
                    break
                low = (low * side[0][reach + total]) >> working
                high = -(-high * side[1][reach + total] >> working)
            lows[i], highs[i] = low, high
        return _with_what_is_left_out(lows, highs, working - wanted)  # the total is at least 1, the weight of z = 0


@dataclass(frozen=True, eq=False)
class CellSource:
    """Weights of the change of cell p, in the order 0, 1, -1, 2, -2, ..., given what it and the cells before it add up to."""

    block: ExactBlock
    group: int
    p: int
    left: int

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        block = self.block
        wanted = bits + guard + 2 + log2_ceiling(block.epsilon, abs(self.left))  # the total is at least a^|left|: all moves one way
        reach, working = max(reach_for(block.cells, block.epsilon, wanted), abs(self.left)), block.working(wanted)
        before = block.sums(self.group, working, reach)[self.p - 1 - block.starts[self.group]]
        powers = block.powers(working, reach)
        lows, highs = [], []
        for index in range(4 * reach + 1):
            k = zigzag(index)
            rest = reach + self.left - k
            if block.least[self.p] <= k <= block.most[self.p] and 0 <= rest <= 2 * reach:
                lows.append((powers[abs(k)][0] * before[0][rest]) >> working)
                highs.append(-(-powers[abs(k)][1] * before[1][rest] >> working))
            else:
                lows.append(0)
                highs.append(0)
        return _with_what_is_left_out(lows, highs, working - wanted)


def _with_what_is_left_out(lows: list[int], highs: list[int], shift: int) -> FixedWeights:
    """The listed weights and the 2^shift that the window leaves out, which may belong to any of them: a listed total can be reached by
    partial sums beyond the window. Added to the first, it is in every cumulated upper bound; thresholds are made of nothing else.
    """
    return FixedWeights(0, lows, [highs[0] + (1 << shift), *highs[1:]], (0, 0), (0, 0))


def _convolve(f: list[int], kernel: list[int], first: int, size: int, working: int, up: bool = False) -> list[int]:
    """Entries first .. first + size - 1 of the product of two sequences, in units of 2^-working, rounded one way."""
    made = [int(value) for value in (fmpz_poly(f) * fmpz_poly(kernel)).coeffs()[first : first + size]]
    made += [0] * (size - len(made))
    return [-(-value >> working) for value in made] if up else [value >> working for value in made]


def zigzag(index: int) -> int:
    """0, 1, -1, 2, -2, ..."""
    return (index + 1) // 2 if index % 2 else -(index // 2)


def _settle(source: WeightSource, word: int, place: int, words: Words) -> int:
    """The smallest index with U < F(index), U the uniform that begins with this word."""
    sampler = TableSampler(source)
    return int(sampler.first + sampler.index(np.array([word], dtype=np.uint32), np.array([place], dtype=np.int64), words)[0])


@lru_cache(maxsize=8)
def _powers(epsilon: Fraction, working: int, count: int) -> list[tuple[int, int]]:
    """(floor, ceiling) of exp(-epsilon k) 2^working for k < count, by products rounded both ways."""
    with precision(working + 64):
        low, high = fixed_point((-ball(epsilon)).exp(), working)
    out = [(1 << working, 1 << working)]
    for _ in range(count - 1):
        out.append(((out[-1][0] * low) >> working, -(-out[-1][1] * high >> working)))
    return out


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
        columns = np.concatenate([block.kept_matrix, block.cuts])
        classes, of_cell = np.unique(columns, axis=1, return_inverse=True)
        self.order = np.argsort(of_cell.reshape(-1), kind="stable")
        sizes = np.bincount(of_cell.reshape(-1))
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        kept, self.cuts = np.split(classes, [len(block.kept_matrix)])
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

    def publish(self, counts: Ints, cell_keys: CellKeySums | None, words: Words) -> Ints:
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
