"""The double geometric law of a small block given kept sums and bounds of any kind: free cells drawn within bounds, the rest solved.

Legend: as in pivot_laplace.py, z = y - x. Free cells are drawn as two-sided geometric values within their bounds; pivot cells follow from
the kept sums. A try whose pivots are no integers, or break a bound or an inequality, fails; else it is accepted with exp(-epsilon |z_P|_1).

Tries, for every table: the free cells have weight product of M_i, M_i <= M = (1 + a) / (1 - a) the sum of a^|k| within the bounds of cell
i; what is accepted has the weight of the whole fibre, which is at least 1, that of z = 0. So a try is accepted with probability at least
M^-m for m free cells: a public number. Bounds that follow from kept sums and other bounds (a cell is at most its margin) are used too: they
change no law, and spare tries where counts are small.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import inf

import numpy as np

from holdfast.errors import NoExactSampler
from holdfast.exact import Geometric
from holdfast.exact.law import Sampler
from holdfast.lattices.algebra import as_matrix, independent_rows, take_rows
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.randomness import Words
from holdfast.samplers.arms import draw_arms
from holdfast.samplers.bounded_block import BoundedBlock, Room
from holdfast.samplers.pilot import safe_exp
from holdfast.samplers.pivot_laplace import Pivots, pivot_choices
from holdfast.samplers.protocol import Ints
from holdfast.samplers.rejection import INT64_SUMS, check_l1_reach

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
        matrix = as_matrix(block.kept) if len(block.kept) else None
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
        return float(mass) ** len(self.pivots.free)

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

    def publish(self, counts: Ints, cell_keys: Ints | None, words: Words) -> Ints:
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
