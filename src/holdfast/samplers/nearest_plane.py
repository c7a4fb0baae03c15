"""Rounded projection on any lattice: randomised nearest plane ([theory R10] (a)).

Legend (lattices/gram_schmidt.py): the projection u of integers e on the span of the basis has coefficient <e, b*_i> / |b*_i|^2 = E_i /
D_{i+1} along b*_i, with the integer E_i = <e, D_i b*_i>. From the last direction to the first, the coefficient of what is left,

    c_i = (E_i - sum_{j > i} lambda_ji v_j) / D_{i+1},

is rounded to v_i = ceil(c_i - U), up with probability its fractional part; U uniform on [0, 1), a word and its extra bits.

Large bases have an enclosed Gram-Schmidt form (lattices/enclosed_gram_schmidt.py), y = B^T W e: the same draws from the same words. There

    c_i = ((L^-1 y)_i - sum_{j > i} <b_j, b*_i> v_j) / |b*_i|^2.

With P = N y the first numerator is P_i to within z sum_{k < i} |P_k|, the second sum_j Y_ji v_j to within z sum_j |v_j| sum_k |Y_jk|. Where
the interval of c_i - U holds an integer, more bits of U and more digits of c_i are taken. That ends with probability one, also where c_i is
an integer: then any U > 0 decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.exact.predicates import extra_integer
from holdfast.lattices import algebra
from holdfast.lattices.enclosed_gram_schmidt import FIRST_BITS, EnclosedGramSchmidt, GramEnclosure, error_of, orthogonalise
from holdfast.lattices.gram_schmidt import GramSchmidt, gram_schmidt
from holdfast.randomness.words import EXTRA_WORDS, Words
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
    Reference:   [theory R10]; Babai's nearest plane with randomised rounding.
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


def nearest_plane(basis: algebra.Matrix, epsilon: Exact, weights: Sequence[int] | None = None) -> NearestPlane | EnclosedNearestPlane:
    """Exact for small bases, enclosed for large ones; both give the same draws from the same words."""
    orthogonal = orthogonalise(basis, weights)
    if isinstance(orthogonal, GramSchmidt):
        return NearestPlane(basis, epsilon, weights)
    return EnclosedNearestPlane(orthogonal, epsilon)


class EnclosedNearestPlane(RoundedSampler):
    """Discrete Laplace noise on every cell, projected on the span of a lattice and rounded to it without bias.

    Law, guarantees: those of NearestPlane, whose `round_one` is the oracle. Exact over uniform words, one for each column.
    Reference:   [theory R10].
    """

    def __init__(self, orthogonal: EnclosedGramSchmidt, epsilon: Exact) -> None:
        super().__init__(orthogonal.cells, epsilon)
        self.orthogonal = orthogonal

    @property
    def dimension(self) -> int:
        """Columns of the basis."""
        return int(self.orthogonal.dimension)

    def round(self, noise: Ints, words: Words) -> Ints:
        return np.array([self._round(row, words) for row in noise], dtype=np.int64).reshape(noise.shape)

    def _round(self, noise: Ints, words: Words) -> list[int]:
        m, base = self.dimension, words.position
        taken = [int(word) for word in words.take(m)]
        y = self.orthogonal.weighted_basis @ noise.astype(object)
        v = np.zeros(m, dtype=object)
        walk = _Walk(self.orthogonal.at(FIRST_BITS), y, v)
        for i in reversed(range(m)):
            word, bits, depth, digits = taken[m - 1 - i], 32, 0, FIRST_BITS
            while (value := walk.ceiling_at(i, word, bits)) is None:
                word = (word << (32 * EXTRA_WORDS)) | extra_integer(words, base + m - 1 - i, depth)
                bits, depth = bits + 32 * EXTRA_WORDS, depth + 1
                if bits + 32 > digits:
                    digits = 2 * digits
                    walk = _Walk(self.orthogonal.at(digits), y, v)
            v[i] = value
            walk.known_coefficient(i)
        return [int(entry) for entry in self.orthogonal.basis @ v]

    @cached_property
    def exact(self) -> NearestPlane:
        """The oracle. Slow to prepare: its numbers have as many bits as the Gram determinant."""
        return NearestPlane(self.orthogonal.basis, self.epsilon, self.orthogonal.weights)

    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        return self.exact.round_one(noise, coin)

    def fits(self, largest: int) -> bool:
        return True  # integers of any size

    def round_fast(self, noise: Ints, words: Words) -> Ints:
        return self.round(noise, words)


class _Walk:
    """The numerators of all c_i, less what the coefficients known so far take off them."""

    def __init__(self, known: GramEnclosure, y: np.ndarray, v: np.ndarray) -> None:
        self.known, self.v = known, v
        first = known.inverse @ y
        self.numerators = first - v @ known.products
        before = np.concatenate([[0], np.cumsum(np.abs(first))[:-1]])
        self.before, self.later = before, int(known.reach @ np.abs(v))

    def known_coefficient(self, i: int) -> None:
        """v_i is settled."""
        self.numerators[:i] -= self.known.products[i, :i] * self.v[i]
        self.later += int(self.known.reach[i]) * abs(self.v[i])

    def ceiling_at(self, i: int, word: int, bits: int) -> int | None:
        """ceil(c_i - U) for every U in [word, word + 1) / 2^bits; None where they are not one number."""
        error = error_of(self.known.z, int(self.before[i]) + self.later)
        low, high = self.known.quotient(i, int(self.numerators[i]), error)
        # U is below its upper end: the least c - U stays above `least`, so that an integer there is not reached.
        least, most = low - Fraction(word + 1, 1 << bits), high - Fraction(word, 1 << bits)
        down, up = least.numerator // least.denominator + 1, -(-most.numerator // most.denominator)
        return down if down == up else None
