"""Randomised nearest plane on large bases, from an enclosed Gram-Schmidt form: the same draws from the same words as the exact one.

Legend (lattices/enclosed_gram_schmidt.py): e are integers, y = B^T W e. The coefficient that is rounded to v_i is

    c_i = ((L^-1 y)_i - sum_{j > i} <b_j, b*_i> v_j) / |b*_i|^2,   up with probability its fractional part: v_i = ceil(c_i - U)

with U uniform on [0, 1), a word and its extra bits. With P = N y the first numerator is P_i to within z sum_{k < i} |P_k|, the second
sum_j Y_ji v_j to within z sum_j |v_j| sum_k |Y_jk|. Where the interval of c_i - U holds an integer, more bits of U and more digits of c_i
are taken. That ends with probability one, also where c_i is an integer: then any U > 0 decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from holdfast.exact.parameters import Exact
from holdfast.exact.predicates import extra_integer
from holdfast.lattices import algebra
from holdfast.lattices.enclosed_gram_schmidt import FIRST_BITS, EnclosedGramSchmidt, GramEnclosure, error_of, orthogonalise
from holdfast.lattices.gram_schmidt import GramSchmidt
from holdfast.randomness.words import EXTRA_WORDS, Words
from holdfast.samplers.nearest_plane import NearestPlane
from holdfast.samplers.rounded_projection import Coin, Ints, RoundedSampler


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
