"""Rounded projection on a two-way table by controlled rounding: error below 1 in every cell.

The fractional parts of a table with integer row and column sums are rounded to 0 or 1 keeping those sums. A row or column with one
fractional cell has two, so walking along fractional cells, alternately in a row and in a column, comes back to where it has been: a
cycle. Moving its cells up and down in turn keeps all sums. The largest such move one way (by `up`) and the other way (by `down`) each
make a cell whole; taking the first with probability down / (up + down) leaves every mean as it was. At most one such step for each cell,
and then all are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.randomness.words import Words
from holdfast.samplers.rounded_grid import grid_shape, project
from holdfast.samplers.rounded_projection import LARGEST_DENOMINATOR, Coin, Ints, RoundedSampler, run_with_coins

Parts = list[list[int]]

MOST_MOVED = np.int64(1 << 20)
"""Cells moved at a time by the compiled loop: some tenths of a second."""


class RoundedGrid2(RoundedSampler):
    """Discrete Laplace noise on every cell of a two-way table, projected and rounded without bias.

    Law:         e has independent discrete Laplace cells of scale 1/epsilon; u is its projection on tables with zero row and column sums;
                 the fractional parts of u are rounded by cycles.
    Given:       two axes, epsilon > 0.
    Guarantees:  row and column sums are zero; E[z | e] = u; |z - u| < 1 in every cell. Cycles are chosen by the fractional parts alone:
                 pure epsilon per unit of l1 distance. Exact over uniform words, one for each cycle.
    Reference:   [theory R1]0; L. H. Cox, A constructive procedure for unbiased controlled rounding, JASA 82 (1987).
    """

    def __init__(self, shape: Sequence[int], epsilon: Exact) -> None:
        self.shape = grid_shape(shape)
        if len(self.shape) != 2:
            raise InvalidParameter(f"Controlled rounding takes a two-way table. Got {len(self.shape)} axes. Use RoundedGrid.")
        super().__init__(prod(self.shape), epsilon)

    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        targets = project(np.array(noise, dtype=object), self.shape)[0].tolist()
        parts = [[value % self.cells for value in row] for row in targets]
        round_parts(parts, self.cells, coin)
        return [
            (value - value % self.cells + part) // self.cells
            for row, kept in zip(targets, parts, strict=True)
            for value, part in zip(row, kept, strict=True)
        ]

    def fits(self, largest: int) -> bool:
        return 4 * self.cells * (largest + 1) < 2**62 and 2 * self.cells < LARGEST_DENOMINATOR

    def round_fast(self, noise: Ints, words: Words) -> Ints:
        targets = project(noise, self.shape)
        out = np.empty_like(targets)
        taken = words.take(noise.size)
        rows, columns = self.shape
        kept = [np.empty(shape, dtype=np.int64) for shape in (self.shape, (2, rows), (2, columns))]
        state = np.array([0, -1, 0], dtype=np.int64)
        while state[0] < len(targets):  # a signal is answered in between
            run_with_coins("controlled_tables", (targets, np.int64(self.cells), out, *kept, state, MOST_MOVED), taken, words)
        words.give_back(len(taken) - int(state[2]))
        return out.reshape(noise.shape)


def round_parts(parts: Parts, whole: int, coin: Coin) -> None:
    """Round a table of integers in [0, whole], line sums multiples of whole, to 0 and whole in place, without bias, keeping line sums."""
    for start in range(len(parts)):
        while any(0 < part < whole for part in parts[start]):
            cycle = find_cycle(parts, whole, start)
            signed = [(i, j, 1 - 2 * (t % 2)) for t, (i, j) in enumerate(cycle)]
            up = min(whole - parts[i][j] if sign > 0 else parts[i][j] for i, j, sign in signed)
            down = min(parts[i][j] if sign > 0 else whole - parts[i][j] for i, j, sign in signed)
            move = up if coin(down, up + down) else -down
            for i, j, sign in signed:
                parts[i][j] += sign * move


def find_cycle(parts: Parts, whole: int, start: int) -> list[tuple[int, int]]:
    """Cells of a cycle met when walking from a row: to its first fractional cell but the one just used, down or up that column likewise."""
    path: list[tuple[int, int]] = []  # cells in order; odd steps leave a row, even ones a column
    seen = [("row", start)]
    i, j, arrived = start, -1, -1
    while True:
        j = next(k for k, part in enumerate(parts[i]) if k != arrived and 0 < part < whole)
        path.append((i, j))
        if ("column", j) in seen:
            return path[seen.index(("column", j)) :]
        seen.append(("column", j))
        i = next(k for k, row in enumerate(parts) if k != i and 0 < row[j] < whole)
        path.append((i, j))
        if ("row", i) in seen:
            return path[seen.index(("row", i)) :]
        seen.append(("row", i))
        arrived = j
