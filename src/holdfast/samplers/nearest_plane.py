"""Rounded projection on any lattice: randomised nearest plane.

Legend (lattices/gram_schmidt.py): the projection u of integers e on the span of the basis has coefficient <e, b*_i> / |b*_i|^2 = E_i /
D_{i+1} along b*_i, with the integer E_i = <e, D_i b*_i>. From the last direction to the first, the coefficient of what is left,

    (E_i - sum_{j > i} lambda_ji v_j) / D_{i+1},

is rounded to v_i, up with probability its fractional part. Adding a lattice vector B k to e moves v by k and leaves every fractional part.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.lattices import algebra
from holdfast.lattices.gram_schmidt import gram_schmidt
from holdfast.randomness.words import Words
from holdfast.samplers.rounded_projection import Coin, Ints, RoundedSampler, settle_coin

LARGEST_VECTORISED = 1 << 31
"""Denominators below this: a numerator times 2^32 stays inside 63 bits."""


class NearestPlane(RoundedSampler):
    """Discrete Laplace noise on every cell, projected on the span of a lattice and rounded to it without bias.

    Law:         e has independent discrete Laplace cells of scale 1/epsilon; z = B v, v by randomised nearest plane.
    Given:       the columns of `basis` are a Z-basis of the lattice; short ones (LLL) make the rounding error small.
    Guarantees:  E[z | e] is the projection of e; the rounding error is sum_i t_i b*_i with |t_i| < 1 uncorrelated of variance at most 1/4;
                 pure epsilon per unit of l1 distance. Exact over uniform words, one for each column.
                 `weights`: the projection is the nearest point in the norm sum w_i z_i^2.
    Reference:   [theory R1]0; Babai's nearest plane with randomised rounding.
    """

    def __init__(self, basis: algebra.Matrix, epsilon: Exact, weights: Sequence[int] | None = None) -> None:
        self.orthogonal = gram_schmidt(basis, weights)
        super().__init__(self.orthogonal.cells, epsilon)
        if self.dimension == 0:
            raise InvalidParameter("A basis has at least one column. Got none: the kept totals fix every cell of this block.")
        self._rows = [self._reduced_row(i) for i in range(self.dimension)]

    @property
    def dimension(self) -> int:
        """Columns of the basis."""
        return self.orthogonal.dimension

    def _reduced_row(self, i: int) -> tuple[NDArray[Any], NDArray[Any], int]:
        """(D_i b*_i, lambda_ji for j > i, D_{i+1}) divided by what they have in common."""
        cells, later = self.orthogonal.integral_vectors[i], self.orthogonal.lambdas[i + 1 :, i]
        denominator = self.orthogonal.determinants[i + 1]
        common = gcd(denominator, *cells.tolist(), *later.tolist())
        return cells // common, later // common, denominator // common

    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        target = np.array(noise, dtype=object)
        v = np.zeros(self.dimension, dtype=object)
        for i in reversed(range(self.dimension)):
            cells, later, denominator = self._rows[i]
            down, part = divmod(int(cells @ target) - int(later @ v[i + 1 :]), denominator)
            v[i] = down + coin(part, denominator)
        return [int(entry) for entry in self.orthogonal.basis @ v]

    def worth_compiling(self, cells: int) -> bool:
        return cells > 0  # NumPy suffices: nothing has to be loaded

    def fits(self, largest: int) -> bool:
        """Bounds from last to first: |v_i| <= (|row| |e| + |later| |v|) / D + 1."""
        bounds: list[int] = []
        for cells, later, denominator in reversed(self._rows):
            reach = sum(map(abs, cells.tolist())) * largest + sum(abs(a) * b for a, b in zip(later.tolist(), reversed(bounds), strict=True))
            if denominator >= LARGEST_VECTORISED or reach >= 2**62:
                return False
            bounds.append(reach // denominator + 2)
        return all(sum(abs(a) * b for a, b in zip(row, reversed(bounds), strict=True)) < 2**62 for row in self.orthogonal.basis.tolist())

    def round_fast(self, noise: Ints, words: Words) -> Ints:
        """All draws at once in NumPy's 64-bit integers."""
        base, m = words.position, self.dimension
        taken = words.take(len(noise) * m).reshape(-1, m).astype(np.int64)
        v = np.zeros((m, len(noise)), dtype=np.int64)
        for i in reversed(range(m)):
            cells, later, denominator = self._rows[i]
            numerator = noise @ cells.astype(np.int64) - later.astype(np.int64) @ v[i + 1 :]
            down = numerator // denominator
            scaled = (numerator - down * denominator) << 32
            threshold, word = scaled // denominator, taken[:, m - 1 - i]
            v[i] = down + (word < threshold)
            for k in np.flatnonzero(word == threshold):
                remainder = int(scaled[k] - threshold[k] * denominator)
                v[i, k] += settle_coin(remainder, denominator, words, base + int(k) * m + m - 1 - i)
        return v.T @ self.orthogonal.basis.astype(np.int64).T
