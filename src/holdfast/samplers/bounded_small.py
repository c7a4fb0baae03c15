"""The double geometric law of a small block given kept sums and bounds of any kind: free cells drawn within bounds, the rest solved.

Legend: as in laplace_rejection.py, z = y - x. Law and tries: [theory T66]; a try is accepted with probability at least M^-m for m free
cells, a public number. Bounds that follow from kept sums and other bounds (a cell is at most its margin) are used too: they change no law,
and spare tries where counts are small.

Grids with bounds and axes of length two are folded: what stands at one end of such an axis is minus what stands at the other [theory T65].

Gaussian noise between bounds is drawn by rejection from the Laplace law between the same bounds. With s^2 = sigma_squared, r a rate near
1/s,

    exp(-z^2 / (2 s^2)) = exp(r^2 s^2 / 2) exp(-r |z|) exp(-(|z| - r s^2)^2 / (2 s^2)).

So a table drawn from the Laplace law of rate r around x, within the bounds, and accepted with the product of the last factor over its cells
has the Gaussian law: the step of [CKS20] Algorithm 3, on the tables of a block. A cell lowers the chance of a try to about 3/4, at most to
exp(-1/2) where its bounds leave it one value: small blocks only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import inf, isqrt
from typing import TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeySums
from holdfast.errors import NoExactSampler
from holdfast.exact import Geometric
from holdfast.exact.balls import ball
from holdfast.exact.law import Sampler
from holdfast.exact.predicates import BAND, is_below, settle_exp
from holdfast.lattices.algebra import as_matrix, independent_rows, take_rows
from holdfast.lattices.shapes import Bounded, Free, Grid, OneSum
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.randomness import Words
from holdfast.samplers.bounded_block import BoundedBlock, Room
from holdfast.samplers.bounded_classes import BoundedClasses
from holdfast.samplers.bounded_one_sum import draw_arms
from holdfast.samplers.laplace_rejection import Pivots, pivot_choices
from holdfast.samplers.protocol import InputSampler, Ints, cell_draws
from holdfast.samplers.rejection import INT64_SUMS, check_l1_reach, safe_exp

FIRST_TRIES, MOST_TRIES = 64, 1 << 14
"""A batch of tries; every batch that accepts none doubles the next."""
ROUNDS = 50
"""In which bounds are drawn tighter, at most."""


class BoundedSmall:
    """The double geometric law of a block given its kept sums and bounds.

    Law:         P[y] proportional to exp(-epsilon |y - x|_1) over integer tables y with the kept sums of x and within the bounds.
    Given:       x within the bounds.
    Guarantees:  exact; `expected_tries` bounds the tries of a draw for every table. There is no cap, so nothing can fail. How many tries
                 a draw takes, and with them the words, depends on the counts.
    Reference:   [theory T66].
    """

    name = "free cells within bounds, pivot cells solved"

    def __init__(self, block: BoundedBlock, epsilon: Fraction) -> None:
        self.block, self.epsilon = block, epsilon
        matrix = as_matrix(block.kept_matrix) if len(block.kept_matrix) else None
        if matrix is None:
            self.pivots = Pivots((), tuple(range(block.cells)), (), ())
        else:
            self.pivots = min(pivot_choices(take_rows(matrix, independent_rows(matrix))), key=lambda choice: choice.log_tries)
        if (self.pivots.growth + 1) * check_l1_reach(block.cells, epsilon) >= INT64_SUMS:
            raise NoExactSampler("Its pivot cells could leave 64-bit integers with probability above 2^-200. Use a larger epsilon.")

    @property
    def cells(self) -> int:
        return self.block.cells

    @property
    def expected_tries(self) -> float:
        a = safe_exp(-float(self.epsilon))
        mass = (1 + a) / (1 - a) if a < 1 else inf
        return safe_exp(len(self.pivots.free) * math.log(mass)) if self.pivots.free else 1.0

    @cached_property
    def _coin(self) -> Sampler:
        return Geometric.of_rate(self.epsilon).sampler()

    @cached_property
    def _arrays(self) -> tuple[Ints, Ints, Ints, Ints]:
        pivots = self.pivots
        shape = (len(pivots.columns), len(pivots.free))
        numerators = np.array([v for row in pivots.numerators for v in row], dtype=np.int64).reshape(shape)
        return (
            np.array(pivots.free, dtype=np.int64),
            np.array(pivots.columns, dtype=np.int64),
            numerators,
            np.array(pivots.denominators, dtype=np.int64),
        )

    def publish(self, counts: Ints, cell_keys: CellKeySums | None, words: Words) -> Ints:
        """One draw for each row of counts. CONFIDENTIAL input."""
        return counts + self.changes(counts, words)

    def changes(self, counts: Ints, words: Words) -> Ints:
        """What is added to each row of counts. CONFIDENTIAL."""
        rooms = self.block.room(counts)
        return np.array([self._one(Room(*(part[i] for part in rooms)), words) for i in range(len(counts))], dtype=np.int64)

    def _one(self, room: Room, words: Words) -> Ints:
        left, right = tighten_bounds(self.block, room)
        free = self._arrays[0]
        if not (left[free] | right[free]).any():
            return np.zeros(self.cells, dtype=np.int64)
        tries = FIRST_TRIES
        while True:
            found = self._accept(tries, left, right, room.slack, words)
            if len(found):
                first: Ints = found[0]
                return first
            tries = min(2 * tries, MOST_TRIES)

    def _accept(self, tries: int, left: Ints, right: Ints, slack: Ints, words: Words) -> Ints:
        """The accepted ones of so many tries, in order."""
        free, columns, numerators, denominators = self._arrays
        z = np.zeros((tries, self.cells), dtype=np.int64)
        z[:, free] = draw_arms((self.epsilon, self.epsilon), left[free], right[free], words, times=tries)
        coins = self._coin.draw(tries, words)
        sums = -(z[:, free] @ numerators.T)
        z[:, columns] = sums // denominators
        kept = (sums % denominators == 0).all(axis=1) & (z >= -left).all(axis=1) & (z <= right).all(axis=1)
        kept &= (z @ self.block.cuts.T >= slack).all(axis=1) & (coins >= abs(z[:, columns]).sum(axis=1))
        accepted: Ints = z[kept]
        return accepted


def tighten_bounds(block: BoundedBlock, room: Room) -> tuple[Ints, Ints]:
    """How far each cell may fall and rise, from its bounds and from every row of the block, again and again while something changes."""
    left = [-int(v) if v > -UNBOUNDED else None for v in room.least]
    right = [int(v) if v < UNBOUNDED else None for v in room.most]
    rows = [(row, 0) for row in block.equalities] + [(tuple(-v for v in row), 0) for row in block.equalities]
    rows += list(zip(block.inequalities, room.slack.tolist(), strict=True))
    for _ in range(ROUNDS):
        if not sum(_tighten(row, floor, left, right) for row, floor in rows):  # not any(): every row has its turn
            break
    return tuple(np.array([UNBOUNDED if v is None else v for v in side], dtype=np.int64) for side in (left, right))  # type: ignore[return-value]


def _tighten(row: tuple[int, ...], floor: int, left: list[int | None], right: list[int | None]) -> bool:
    """Bounds of each cell in row z >= floor, given those of the others; whether one became tighter."""
    gains = [(c * r if r is not None else None) if c > 0 else (-c * f if f is not None else None) if c else 0
             for c, f, r in zip(row, left, right, strict=True)]  # fmt: skip
    unknown = [i for i, gain in enumerate(gains) if gain is None]
    if len(unknown) > 1:
        return False
    total = sum(gain for gain in gains if gain is not None)
    changed = False
    for i in unknown or range(len(row)):
        if not row[i]:
            continue
        own = gains[i]
        most = (total - (own or 0) - floor) // abs(row[i])  # the cell may lose so much: the others can make up for it
        side = left if row[i] > 0 else right
        before = side[i]
        if before is None or most < before:
            side[i], changed = most, True
    return changed


Beneath: TypeAlias = BoundedClasses | BoundedSmall


@dataclass(frozen=True)
class FoldedBlock(BoundedBlock):
    """The changes of one end of every axis of length two; its room is that of the whole table."""

    whole: BoundedBlock | None = None
    axes: tuple[int, ...] = ()

    @classmethod
    def of_grid(cls, shape: Bounded) -> FoldedBlock:
        """Given:  a grid with an axis of length two, and no inequalities among cells."""
        axes = shape.axes
        others = tuple(length for length in axes if length != 2)
        beneath = Free(1) if not others else OneSum(others[0]) if len(others) == 1 else Grid(others)
        folded = BoundedBlock.of(Bounded(beneath, None, None))
        return cls(folded.equalities, folded.lower, folded.upper, (), (), BoundedBlock.of(shape), axes)

    def room(self, counts: Ints) -> Room:
        """CONFIDENTIAL."""
        assert self.whole is not None
        least, most, slack = self.whole.room(counts)
        least, most = (part.reshape(-1, *self.axes) for part in (least, most))
        for axis, length in enumerate(self.axes, 1):
            if length == 2:
                (low, low_mirrored), (high, high_mirrored) = (np.split(part, 2, axis=axis) for part in (least, most))
                least, most = np.maximum(low, -high_mirrored), np.minimum(high, -low_mirrored)
        return Room(least.reshape(len(counts), -1), most.reshape(len(counts), -1), slack)


@dataclass(frozen=True, eq=False)
class BoundedMirrored:
    """The double geometric law of a grid with axes of length two, given its kept sums and bounds.

    Law:         P[y] proportional to exp(-rate |y - x|_1) over integer tables y with the sums of x along every axis and within the bounds.
    Given:       `beneath` draws the folded block at 2^k times the rate.
    Guarantees:  exact, as `beneath` is.
    Reference:   [theory T65].
    """

    beneath: Beneath
    axes: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.beneath.name}, mirrored"

    @property
    def cells(self) -> int:
        return math.prod(self.axes)

    @property
    def expected_tries(self) -> float:
        return self.beneath.expected_tries

    def publish(self, counts: Ints, cell_keys: CellKeySums | None, words: Words) -> Ints:
        """One draw for each row of counts. CONFIDENTIAL input."""
        z = self.beneath.changes(counts, words).reshape(len(counts), *(1 if length == 2 else length for length in self.axes))
        for axis, length in enumerate(self.axes, 1):
            if length == 2:
                z = np.concatenate([z, -z], axis=axis)
        published: Ints = counts + z.reshape(counts.shape)
        return published


def fold_block(shape: Bounded, beneath: Callable[[BoundedBlock, int], Beneath]) -> BoundedMirrored:
    """`beneath(block, times)` makes the sampler of the folded block at `times` the rate."""
    return BoundedMirrored(beneath(FoldedBlock.of_grid(shape), 2 ** sum(length == 2 for length in shape.axes)), shape.axes)


MOST_GAUSSIAN_TRIES = 1 << 12
"""Tries of one block that are made at once, at most."""


def laplace_rate(sigma_squared: Fraction) -> Fraction:
    """A short rational near 1/sigma: the rate of the proposals."""
    scale = 1
    while scale * scale * sigma_squared.denominator < 10**4 * sigma_squared.numerator:
        scale *= 2
    return Fraction(isqrt(scale * scale * sigma_squared.denominator // sigma_squared.numerator), scale)


@dataclass(frozen=True)
class BoundedGaussian:
    """Law:         P[y] proportional to exp(-|y - x|_2^2 / (2 sigma_squared)) over the tables that `proposal` draws.
    Given:       a sampler of the Laplace law of rate `laplace_rate(sigma_squared)` on the same block.
    Guarantees:  exact. There is no cap on tries; how many it takes depends on the counts.
    Reference:   [CKS20] Algorithm 3.
    """

    proposal: InputSampler
    sigma_squared: Fraction

    expected_tries = None

    @property
    def name(self) -> str:
        return f"rejection from Laplace draws: {self.proposal.name}"

    @property
    def cells(self) -> int:
        return self.proposal.cells

    @property
    def try_cost(self) -> float:
        """Cell draws of one proposal."""
        return cell_draws(self.proposal)

    @cached_property
    def _middle(self) -> Fraction:
        return laplace_rate(self.sigma_squared) * self.sigma_squared

    def publish(self, counts: Ints, cell_keys: CellKeySums | None, words: Words, band: float = BAND) -> Ints:
        out = counts.copy()
        pending = np.arange(len(counts))
        while len(pending):
            tries = max(1, min(MOST_GAUSSIAN_TRIES, 1 << self.cells // 2) // len(pending))
            tried = self.proposal.publish(np.repeat(counts[pending], tries, axis=0), None, words)
            taken = self._accept(tried - np.repeat(counts[pending], tries, axis=0), words, band).reshape(len(pending), tries)
            first = taken.argmax(axis=1)
            found = taken.any(axis=1)
            out[pending[found]] = tried.reshape(len(pending), tries, -1)[found, first[found]]
            pending = pending[~found]
        return out

    def _accept(self, changes: Ints, words: Words, band: float) -> NDArray[np.bool_]:
        """The accept step of each try. In doubles an exponent below 40 is off by less than 2^-44: its square roots have one sign."""
        taken, start = words.take(len(changes)), words.position - len(changes)
        off = np.abs(changes) - float(self._middle)
        verdict = settle_exp(taken.astype(np.float64), 32, (off * off).sum(axis=1) / (2 * float(self.sigma_squared)), band)
        for i in np.flatnonzero(verdict == 0).tolist():
            verdict[i] = 1 if is_below(int(taken[i]), 32, partial(self._chance, changes[i].tolist()), words, start + i) else -1
        return verdict > 0

    def _chance(self, changes: list[int]) -> arb:
        return ball(-sum(((abs(z) - self._middle) ** 2 for z in changes), Fraction(0)) / (2 * self.sigma_squared)).exp()
