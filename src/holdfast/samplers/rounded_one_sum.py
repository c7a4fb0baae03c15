"""Rounded projection where one sum is kept: linear time."""

from __future__ import annotations

import numpy as np

from holdfast.exact.parameters import Exact
from holdfast.randomness.words import Words
from holdfast.samplers.rounded_projection import LARGEST_DENOMINATOR, Coin, Ints, RoundedSampler, run_with_coins


class RoundedOneSum(RoundedSampler):
    """Discrete Laplace noise on every cell, its mean taken off, rounded without bias.

    Law:         e has independent discrete Laplace cells of scale 1/epsilon, total T = q cells + r with 0 <= r < cells; z = e - q, and one
                 less on a uniform set of r cells.
    Given:       cells >= 1, epsilon > 0.
    Guarantees:  z adds up to zero; E[z | e] = e - T / cells; error below 1 in each cell. The set depends on r alone, which shifts of sum
                 zero do not change: pure epsilon per unit of l1 distance. Exact over uniform words, one for each cell.
    Reference:   [theory R1]0. The set is drawn by selection: a cell is taken with probability (still to take) / (cells left).
    """

    def __init__(self, cells: int, epsilon: Exact) -> None:
        super().__init__(cells, epsilon)

    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        quotient, left = divmod(sum(noise), self.cells)
        out = []
        for i, value in enumerate(noise):
            lowered = coin(left, self.cells - i)
            left -= lowered
            out.append(value - quotient - lowered)
        return out

    def fits(self, largest: int) -> bool:
        return self.cells * largest < 2**62 and self.cells < LARGEST_DENOMINATOR

    def round_fast(self, noise: Ints, words: Words) -> Ints:
        out = np.empty_like(noise)
        taken = words.take(noise.size)
        run_with_coins("one_sum", (noise, out), taken, words)
        return out
