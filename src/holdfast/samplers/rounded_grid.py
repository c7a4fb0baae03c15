"""Rounded projection on a grid of any number of axes: nearest plane in the order of the cells, linear time.

Legend: cell i = (i_1, ..., i_K), counted from 0, has R_k = n_k - i_k slices left on axis k, its own among them. u is the target, z the
rounded table, w = z - u the errors so far. Given the errors of the cells before it, the point of the span of L nearest to u has at cell i

    u_i - N_K / (R_1 ... R_K),   N_0 = 0,   N_k = R_k N_{k-1} + E_k[i_{k+1}, ..., i_K],

where E_k holds, for the slice of the axes before k now being filled, the sums along axis k of (R_1 ... R_{k-1}) w + N_{k-1}, and starts
from zero with each such slice. For K = 1 this is the mean taken off what is left: u_i - (sum of earlier errors) / R_1. With one more axis
the table given its earlier slices is the same problem, on targets moved by -E_1 / R_1 in every slice; that is the recursion. On the last
slice of an axis the centre is an integer: the cell is forced.

Everything is held in units of 1 / (n_1 ... n_K). Sizes: an error is a sum of rounding errors below 1, that of cell j entering cell i with
the weight of its Gram-Schmidt vector, the product over the axes of 1 (where j_k = i_k) or 1 / (R_k(j) - 1). So |w|, and every partial sum
N_k / (R_1 ... R_k), is below H = prod_k (1 + 1 + 1/2 + ... + 1 / (n_k - 1)).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact, exact_integer
from holdfast.randomness.words import Words
from holdfast.samplers.rounded_projection import LARGEST_DENOMINATOR, Coin, Ints, RoundedSampler, run_with_coins


def grid_shape(shape: Sequence[int], least_axes: int = 1) -> tuple[int, ...]:
    """The sizes of a grid's axes, checked."""
    sizes = tuple(exact_integer(size, "an axis's size") for size in shape)
    if len(sizes) < least_axes or min(sizes) < 1:
        raise InvalidParameter(f"A grid has at least {least_axes} axes of at least one cell each. Got {sizes}.")
    return sizes


def project(noise: Ints, shape: tuple[int, ...]) -> Ints:
    """The projection of each row on tables whose sums along every axis are zero, in units of 1 / (cells)."""
    out = noise.reshape(-1, *shape)
    for axis, size in enumerate(shape, start=1):
        out = size * out - out.sum(axis=axis, keepdims=True)
    return np.ascontiguousarray(out)


class RoundedGrid(RoundedSampler):
    """Discrete Laplace noise on every cell of a grid, projected and rounded without bias.

    Law:         e has independent discrete Laplace cells of scale 1/epsilon; u is its projection on tables whose sums along each axis are
                 zero; cells are rounded in C order, each up with the fractional part of its centre given the errors before it.
    Given:       any number of axes, epsilon > 0.
    Guarantees:  sums along every axis are zero; E[z | e] = u; the rounding sees fractional parts only: pure epsilon per unit of l1
                 distance. Exact over uniform words, one for each cell.
    Reference:   [theory R1]0; the order of Gram-Schmidt vectors is that of [theory R7] on grids.
    """

    def __init__(self, shape: Sequence[int], epsilon: Exact) -> None:
        self.shape = grid_shape(shape)
        super().__init__(prod(self.shape), epsilon)

    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        targets = project(np.array(noise, dtype=object), self.shape).ravel().tolist()
        sums: list[dict[tuple[int, ...], Fraction]] = [{} for _ in self.shape]
        out = []
        for place, cell in enumerate(np.ndindex(*self.shape)):
            left = [size - i for size, i in zip(self.shape, cell, strict=True)]
            for k in range(1, len(cell)):
                if not any(cell[k:]):
                    sums[k].clear()
            N = [Fraction(0)]
            for k, R in enumerate(left):
                N.append(R * N[k] + sums[k].get(cell[k + 1 :], Fraction(0)))
            target = Fraction(targets[place], self.cells)
            centre = target - N[-1] / prod(left)
            down = centre.numerator // centre.denominator
            scale = self.cells * prod(left)
            out.append(down + coin(int((centre - down) * scale), scale))
            error = out[-1] - target
            for k in range(len(cell)):
                rest = cell[k + 1 :]
                sums[k][rest] = sums[k].get(rest, Fraction(0)) + prod(left[:k]) * error + N[k]
        return out

    def fits(self, largest: int) -> bool:
        harmonic = prod(1 + size.bit_length() for size in self.shape)  # 1 + 1/2 + ... + 1 / (n - 1) is at most n's number of bits
        # target R_1 ... R_K, and N_k, E_k = N_k - R_k N_{k-1} and the sum that becomes the next E_k.
        reach = self.cells**2 * (2 ** len(self.shape) * largest + 4 * (harmonic + 1))
        return reach < 2**62 and self.cells**2 < LARGEST_DENOMINATOR

    def round_fast(self, noise: Ints, words: Words) -> Ints:
        out = np.empty_like(noise)
        targets = project(noise, self.shape).reshape(noise.shape)
        taken = words.take(noise.size)
        run_with_coins("grid", (targets, np.array(self.shape, dtype=np.int64), out), taken, words)
        return out
