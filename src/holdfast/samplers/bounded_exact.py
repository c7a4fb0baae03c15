"""Certified weights of cells and class totals under bounds, in integers: what decides where doubles do not, and the oracle.

Legend: a = exp(-epsilon). A cell's change k has weight a^|k| within its bounds. S_1, S_2, ... are the partial sums of a class, cell by
cell. A window H keeps every |S_j| <= H. Weights are kept as two integers each, in units of 2^-working, rounded down and up at every step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import fmpz_poly

from holdfast.exact.balls import ball, enclosure, fixed_point, precision
from holdfast.exact.table import TableSampler
from holdfast.exact.weights import FixedWeights, WeightSource
from holdfast.randomness import Words
from holdfast.samplers.bounded_classes_points import ClassPoints
from holdfast.samplers.protocol import Ints

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
    """A window H beyond which all tables z together weigh at most 2^-bits, bounds or none.

    Proof:  the sum of a^|k| e^(+-epsilon k / 2) over all k is at most M = 2^log2_mass. Tables with S_j > H weigh at most
            e^(-epsilon H / 2) M^cells in all, by Markov's inequality for e^(epsilon S_j / 2), and so do those with S_j < -H; there are at
            most `cells` partial sums. Bounds only take tables away.
    """
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
