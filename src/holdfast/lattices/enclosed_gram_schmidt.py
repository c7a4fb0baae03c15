"""Gram-Schmidt of large bases, every number between two dyadic ones: as many digits as were asked for, more on demand.

The exact form (gram_schmidt.py) has integers of as many bits as the Gram determinant, tens of thousands for uneven weights; decisions look
at some hundred of them.

Legend: G = B^T W B = L d L^T, L unit lower triangular with entries mu_ji = <b_j, b*_i> / |b*_i|^2, d_i = |b*_i|^2. N is any unit lower
triangular matrix of dyadic numbers, meant to be near L^-1; Y = G N^T, S = N Y, both computed exactly in integers; epsilon = the largest
|S_ij|, i != j; d_min the least S_ii.

What is proved. If 6 m epsilon <= d_min, then with z = 3 epsilon / d_min:

    G is positive definite;   S_ii - m epsilon z <= d_i <= S_ii;   L^-1 = (I + Z) N with |Z_ik| <= z for k < i, 0 elsewhere;

hence <b_j, b*_i> = Y_ji + sum_{k < i} Z_ik Y_jk, since d L^T = (I + Z) N G. Proof: eliminate in S. Let a bound the entries off the diagonal
of all its Schur complements so far, and e the pivots so far from below. If a <= 3/2 epsilon and e >= 3/4 d_min, one more complement
has entries at most epsilon + m a^2 / e <= epsilon (1 + 3 m epsilon / d_min) <= 3/2 epsilon off the diagonal, and on it S_ii less at most
m a^2 / e <= 3 m epsilon^2 / d_min = m epsilon z <= d_min / 12. So S = (I + X) d (I + X)^T with |X_ij| <= a / e <= x = 2 epsilon / d_min,
m x <= 1/3, and (I + X)^-1 = I + Z with |Z_ij| <= x + m x^2 + m^2 x^3 + ... <= 3/2 x = z. N^-1 (I + X) is unit lower triangular and takes d
to G: it is L.

How N is found: from a Cholesky factor in doubles, then by Newton's step N <- (I - tril(S) / diag(S)) N, which doubles the digits. Doubles
decide about speed alone: what is proved is proved for the N at hand. [theory R7]
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray

from holdfast.lattices import algebra
from holdfast.lattices.gram_schmidt import GramSchmidt, gram_schmidt, weighted_gram

logger = logging.getLogger("holdfast")
Objects: TypeAlias = NDArray[Any]

EXACT_DIMENSION, EXACT_WEIGHTED = 150, 50
"""Columns up to which Gram-Schmidt is exact, without weights and with them. Constants: which words give which draw depends on them."""
TOLD_DIMENSION = 200
"""Columns from which it is said how far this has come."""
FIRST_BITS = 192
"""Digits of the first enclosure: a decision that needs more is rarer than one in 2^100."""


class TooIllConditioned(ArithmeticError):
    """Doubles are no start for this basis: it has to be orthogonalised exactly."""


@dataclass(frozen=True, eq=False)
class GramEnclosure:
    """N, Y and S over powers of two; see the module's text."""

    bits: int
    """F: N and Y are in units of 2^-F, squares in units of 4^-F."""
    inverse: Objects
    """N, lower triangular."""
    products: Objects
    """Y_ji for j > i; zero elsewhere."""
    squares: tuple[int, ...]
    """S_ii: at or above |b*_i|^2."""
    reach: Objects
    """sum_k |Y_jk| for each j."""
    z: Fraction
    slack: int
    """m epsilon z, rounded up, in units of 4^-F: how far |b*_i|^2 can be below S_ii."""

    def squared_length(self, i: int) -> tuple[Fraction, Fraction]:
        """Two numbers with |b*_i|^2 between them."""
        unit = 1 << (2 * self.bits)
        return Fraction(self.squares[i] - self.slack, unit), Fraction(self.squares[i], unit)

    def quotient(self, i: int, value: int, error: int) -> tuple[Fraction, Fraction]:
        """Enclose t / |b*_i|^2 for t between value - error and value + error, in units of 2^-F."""
        ends = [
            Fraction(t << self.bits, square)
            for t in (value - error, value + error)
            for square in (self.squares[i], self.squares[i] - self.slack)
        ]
        return min(ends), max(ends)

    def combination(self, i: int, later: Sequence[int]) -> tuple[Fraction, Fraction]:
        """Enclose sum_{j > i} mu_ji v_j, where `later` has v_{i+1}, v_{i+2}, ..."""
        v = np.array([int(entry) for entry in later], dtype=object)
        value, reached = int(self.products[i + 1 :, i] @ v), int(self.reach[i + 1 :] @ np.abs(v))
        return self.quotient(i, value, error_of(self.z, reached))

    def rounded_mu(self, i: int, bits: int) -> Objects | None:
        """mu_ji 2^bits for j > i rounded to integers, halves up; None where an enclosure leaves one open."""
        column = self.products[i + 1 :, i]
        if not len(column):
            return column
        error, square, shift = error_of(self.z, int(self.reach.max())), self.squares[i], self.bits + bits + 1
        # mu lies between (Y - error) / (S - slack) and (Y + error) / (S - slack), each with the nearer end of S where it is negative.
        low = np.minimum((column - error) << shift, ((column - error) << shift) * square // (square - self.slack))
        high = np.maximum((column + error) << shift, ((column + error) << shift) * square // (square - self.slack) + 1)
        down, up = (low // square + 1) >> 1, (high // square + 1) >> 1
        return down if bool((down == up).all()) else None


def error_of(z: Fraction, reached: int) -> int:
    """z times a whole number, rounded up."""
    return -(-z.numerator * reached // z.denominator)


class EnclosedGramSchmidt:
    """The orthogonalisation of an integer basis, known to any number of digits.

    Given:       independent columns, positive whole weights or none; TooIllConditioned where doubles are no start.
    Guarantees:  every enclosure holds the true number, proved in integers. About ten products of m x m matrices.
    """

    def __init__(self, basis: algebra.Matrix, weights: Sequence[int] | None = None) -> None:
        matrix = algebra.as_matrix(basis, "the basis")
        self.basis = algebra.to_numpy(matrix).astype(object)
        self.weights = None if weights is None else tuple(weights)
        self.cells, self.dimension = self.basis.shape
        self._known = _improve(weighted_gram(matrix, self.weights), None, FIRST_BITS)

    def at(self, bits: int) -> GramEnclosure:
        """An enclosure with z <= 2^-bits."""
        if self._known.z > Fraction(1, 1 << bits):
            gram = weighted_gram(algebra.as_matrix(self.basis), self.weights)
            self._known = _improve(gram, self._known, bits)
        return self._known

    @cached_property
    def weighted_basis(self) -> Objects:
        """B^T W, whose product with a vector has its inner products with the basis."""
        columns = self.basis.T
        return columns if self.weights is None else columns * np.array(self.weights, dtype=object)


def orthogonalise(basis: algebra.Matrix, weights: Sequence[int] | None = None) -> GramSchmidt | EnclosedGramSchmidt:
    """Small bases exactly, large ones enclosed; those that doubles cannot start, exactly too."""
    matrix = algebra.as_matrix(basis, "the basis")
    if matrix.ncols() <= (EXACT_DIMENSION if weights is None else EXACT_WEIGHTED):
        return gram_schmidt(matrix, weights)
    entries = matrix.nrows(), matrix.ncols(), tuple(map(int, matrix.entries()))
    return _remember(entries, None if weights is None else tuple(weights))


@lru_cache(maxsize=4)
def _remember(entries: tuple[int, int, tuple[int, ...]], weights: tuple[int, ...] | None) -> GramSchmidt | EnclosedGramSchmidt:
    matrix = fmpz_mat(entries[0], entries[1], list(entries[2]))
    try:
        return EnclosedGramSchmidt(matrix, weights)
    except TooIllConditioned:
        return gram_schmidt(matrix, weights)


def _improve(gram: fmpz_mat, known: GramEnclosure | None, goal: int) -> GramEnclosure:
    """Newton's steps until z <= 2^-goal."""
    m = gram.nrows()
    (bits, inverse), before = _from_doubles(gram) if known is None else (known.bits, known.inverse), -1
    while True:
        products, square = _products(gram, inverse)
        diagonal = [int(square[i, i]) for i in range(m)]
        epsilon, least = int(np.abs(np.tril(square, -1)).max(initial=0)), min(diagonal)
        if least <= 0 or 6 * m * epsilon > least:
            raise TooIllConditioned
        z = Fraction(3 * epsilon, least)
        if z <= Fraction(1, 1 << goal):
            return _enclosure(bits, inverse, products, diagonal, z, error_of(z, m * epsilon))
        digits = z.denominator.bit_length() - z.numerator.bit_length()
        if m >= TOLD_DIMENSION:
            logger.info("Gram-Schmidt vectors: %s of %s digits.", digits, goal)
        if digits <= before:
            raise TooIllConditioned
        before = digits
        spread = int(np.abs(products).max()).bit_length() - (least >> bits).bit_length()
        wanted = min(2 * digits, goal) + max(0, spread) + 2 * m.bit_length() + 16
        inverse, bits = _newton(inverse, bits, square, diagonal, max(wanted, bits)), max(wanted, bits)


def _from_doubles(gram: fmpz_mat) -> tuple[int, Objects]:
    """L^-1 in units of 2^-64, from a Cholesky factor of the Gram matrix scaled to ones on its diagonal.

    Entries may be too long for a double: rows and columns are first taken over powers of two near the roots of the diagonal.
    """
    m = gram.nrows()
    halves = [int(gram[i, i]).bit_length() // 2 for i in range(m)]
    doubles = np.array([[int(gram[i, j]) / (1 << (halves[i] + halves[j])) for j in range(m)] for i in range(m)])
    roots = np.sqrt(np.diagonal(doubles))
    if not (roots > 0).all():
        raise TooIllConditioned
    try:
        factor = np.linalg.inv(np.linalg.cholesky(doubles / roots[:, None] / roots))
    except np.linalg.LinAlgError:
        raise TooIllConditioned from None
    with np.errstate(over="ignore"):  # what is infinite is refused below
        unit = np.ldexp(factor / np.diagonal(factor)[:, None] / roots * roots[:, None], np.subtract.outer(halves, halves))
    unit = np.tril(unit, -1)
    if not np.isfinite(unit).all() or np.abs(unit).max(initial=0.0) > 2.0**40:
        raise TooIllConditioned
    whole, part = np.floor(unit), unit - np.floor(unit)
    inverse = (whole.astype(np.int64).astype(object) << 64) + ((part * 2.0**52).astype(np.int64).astype(object) << 12)
    np.fill_diagonal(inverse, 1 << 64)
    return 64, inverse


def _products(gram: fmpz_mat, inverse: Objects) -> tuple[Objects, Objects]:
    """(Y, S), exactly."""
    lower = as_flint(inverse)
    products = gram * lower.transpose()
    return as_objects(products), as_objects(lower * products)


def _newton(inverse: Objects, bits: int, square: Objects, diagonal: Sequence[int], wanted: int) -> Objects:
    """(I - tril(S) / diag(S)) N in units of 2^-wanted, wanted >= bits. Rounded: any unit lower triangular matrix works."""
    correction = (np.tril(square, -1) << wanted) // np.array(diagonal, dtype=object)
    change = as_objects(as_flint(correction) * as_flint(inverse)) >> bits
    return (inverse << (wanted - bits)) - np.tril(change, -1)


def _enclosure(bits: int, inverse: Objects, products: Objects, diagonal: list[int], z: Fraction, slack: int) -> GramEnclosure:
    return GramEnclosure(bits, inverse, np.tril(products, -1), tuple(diagonal), np.abs(products).sum(axis=1), z, slack)


def as_flint(matrix: Objects) -> fmpz_mat:
    """The same integers for flint."""
    return fmpz_mat(matrix.shape[0], matrix.shape[1], matrix.ravel().tolist())


def as_objects(matrix: fmpz_mat) -> Objects:
    """The same integers, Python's."""
    return np.array([int(entry) for entry in matrix.entries()], dtype=object).reshape(matrix.nrows(), matrix.ncols())
