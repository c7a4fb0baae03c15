"""Correlated Gaussian noise for linear queries: in floating point, by the recursive split of the smallest ellipsoid or with the best
covariance there is; and on the grid, where plain Gaussian noise on a query with combinations of its answers beside them takes that shape.

Split (after [NTZ13], as [GGY22] Section 3.4 extends it to answers with invariants): of the ellipsoid around the changes the shorter half of
the axes is one block of directions; the other half is treated again, until one axis is left. Block i gets spherical noise after its own
largest change r_i, all of them enlarged by sqrt(k) for k blocks. A change v then has squared size sum_i |U_i^T v|^2 / (k r_i^2) <= 1 under
any split into orthonormal blocks, so the ellipsoid decides the error and never the promise ([theory T103]).

On the grid. Let W be a matrix of whole numbers, k x n. The moves (z, W z), C z = 0, are a lattice, and plain Gaussian noise on it has the
law

    P[z] proportional to exp(-(|z|^2 + |W z|^2) / (2 sigma_squared)),   C z = 0:

Gaussian noise of covariance sigma_squared (I + W^T W)^-1 in the free part, exact on the grid, with all that is known about plain Gaussian
noise ([theory T105]). The rows W y - (combinations) = 0 hold for every data set; what is published beside the answers follows from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from flint import fmpq_mat, fmpz_mat
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.invariants import identity, linear
from holdfast.invariants.constraints import Constraint
from holdfast.lattices import algebra
from holdfast.privacy.parameters import budget, probability
from holdfast.research.subspace.additive import Additive
from holdfast.research.subspace.analytic_gaussian import analytic_sigma_squared
from holdfast.research.subspace.design import EXCESS, enclosing_ellipsoid, optimal_covariance
from holdfast.research.subspace.noise import GaussianNoise
from holdfast.research.subspace.query import RANK_TOLERANCE, Changes, Query
from holdfast.research.subspace.spaces import Floats

Shape: TypeAlias = Literal["split", "optimal"]
SHAPES: tuple[Shape, ...] = ("split", "optimal")

RESOLUTION = 16
"""How fine the combinations are: their whole numbers are off from the best ones by about one in three times so many."""

STILL = 4
"""How much longer than all others the combination is that no record changes."""


def split(changes: Changes, *, excess: float = EXCESS) -> list[Floats]:
    """Blocks of orthonormal directions (m x m_i), m_1 + ... = m, at most 1 + log2 m of them; shortest axes first."""
    blocks, within = [], np.eye(changes.dimension)
    while within.shape[1] > 1:
        shape = enclosing_ellipsoid(changes.project(within), excess=excess).matrix
        axes = np.linalg.eigh(shape)[1]  # shortest first
        short = within.shape[1] - within.shape[1] // 2
        blocks.append(within @ axes[:, :short])
        within = within @ axes[:, short:]
    return [*blocks, within]


def split_factor(changes: Changes, *, excess: float = EXCESS) -> Floats:
    """F with noise F w, w standard normal, for sensitivity 1: sqrt(k) r_i U_i side by side, as the papers have it."""
    blocks = split(changes, excess=excess)
    return np.hstack([math.sqrt(len(blocks) * changes.project(u).largest_square(np.eye(u.shape[1]))) * u for u in blocks])


def tighten_factor(changes: Changes, factor: Floats) -> Floats:
    """The same shape of noise, scaled until the largest change has size 1: the promise is the same and the error no larger."""
    inverse = np.linalg.inv(factor)
    return math.sqrt(changes.largest_square(inverse.T @ inverse)) * factor


@dataclass(frozen=True, init=False)
class CorrelatedGaussian:
    """Gaussian noise in the free part, wide where one neighbour changes much and narrow where they change little.

    Given:       (epsilon, delta) for one neighbour. `covariance`: "split", the papers' recursive split, tightened; or "optimal", the least
                 total squared error that any covariance has, to one in a thousand.
    Guarantees:  (epsilon, delta), in real numbers, with the analytic calibration; computed in floating point, so for research only.
    Reference:   [NTZ13]; [GGY22] Theorem 3.11; [theory T101], [theory T103].
    """

    epsilon: Fraction
    delta: Fraction
    covariance: Shape
    name: ClassVar[str] = "correlated-gaussian"
    norm: ClassVar[str] = "l2"

    def __init__(self, epsilon: Exact, delta: Exact, *, covariance: Shape = "split") -> None:
        if covariance not in SHAPES:
            raise InvalidParameter(f"covariance is one of {', '.join(SHAPES)}. Got {covariance!r}.", field="covariance")
        given = {"epsilon": budget(epsilon, "epsilon"), "delta": probability(delta, "delta"), "covariance": covariance}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def floating(self, query: Query) -> Additive:
        """The mechanism for this linear query."""
        changes = Changes.of(query)
        factor = tighten_factor(changes, split_factor(changes)) if self.covariance == "split" else optimal_covariance(changes).factor
        noise = GaussianNoise(analytic_sigma_squared(self.epsilon, self.delta, 1), changes.dimension)
        return Additive(self.name, query, query.promise(self.epsilon, self.delta), noise, changes.basis @ factor)


@dataclass(frozen=True, eq=False)
class Shaped:
    """What `hf.answer` takes in place of the query: its answers first, then combinations of them.

    Guarantees:  exact numbers. Any whole `combinations` are private; how good they are decides about the error alone.
    """

    matrix: tuple[tuple[Fraction, ...], ...]
    kept: tuple[tuple[int, ...], ...]
    """The invariants of the query."""
    identities: tuple[tuple[int, ...], ...]
    """Rows over all answers that are 0 in every data set."""
    combinations: NDArray[np.int64]

    @property
    def invariants(self) -> list[Constraint]:
        """As `hf.answer` takes them: identities are kept too, and publish nothing."""
        return [*([linear(self.kept)] if self.kept else []), identity(linear(self.identities))]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all answers, as `hf.answer` takes them."""
        k, n = self.combinations.shape
        return (*(f"{i + 1}" for i in range(n)), *(f"combination {i + 1}" for i in range(k)))


def shaped_query(query: Query, *, resolution: int = RESOLUTION) -> Shaped:
    """The query with combinations that give its answers nearly the least total error of any Gaussian noise.

    Algorithm:   with X the inverse of the best covariance and s large, rows of W are the axes of s X - I, scaled and rounded. What no
                 record changes gets a row longer than all others, and next to no noise. Rows over the answers that are 0 in every data
                 set are kept.
    """
    if not isinstance(resolution, int) or not 1 <= resolution <= 1 << 12:
        raise InvalidParameter(f"resolution is a whole number from 1 to 4096. Got {resolution!r}.", field="resolution")
    changes = Changes.of(query)
    axes, sizes, _ = np.linalg.svd(optimal_covariance(changes).factor)  # the standard deviations along each axis, largest first
    scale = resolution * math.sqrt(changes.dimension) * float(sizes[0])
    lengths = np.sqrt(np.maximum((scale / sizes) ** 2 - 1, 0.0))
    rows = lengths[:, None] * (changes.basis @ axes).T
    still = _unchanged_direction(query, changes)
    return _beside(query, np.rint(np.vstack([rows, STILL * lengths[-1] * still])).astype(np.int64))


def _unchanged_direction(query: Query, changes: Changes) -> Floats:
    """The direction in which answers can differ, but not those of neighbours, as a row; none where there is none.

    Columns of the query differ by changes alone where records are replaced, so there is one at most.
    """
    column = query.invariants.project(query.columns[:, 0])
    rest = column - changes.basis @ (changes.basis.T @ column)
    size = float(np.linalg.norm(rest))
    return rest[None, :] / size if size > RANK_TOLERANCE * max(1.0, float(np.linalg.norm(column))) else np.zeros((0, len(column)))


def _beside(query: Query, rows: NDArray[np.int64]) -> Shaped:
    """(A, W A); over both C, the identities of A, and (W, -I)."""
    matrix, kept, (k, n) = query.matrix, query.invariants.rows, rows.shape
    assert matrix is not None
    products = fmpq_mat(fmpz_mat(k, n, rows.ravel().tolist())) * matrix
    answers = tuple(
        tuple(Fraction(int(part[i, j].p), int(part[i, j].q)) for j in range(matrix.ncols()))
        for part in (matrix, products)
        for i in range(part.nrows())
    )
    identities = algebra.kernel_basis(matrix.numer_denom()[0].transpose()).transpose()
    old, still = (tuple((*map(int, row), *(0,) * k) for row in part.tolist()) for part in (kept, identities))
    new = tuple((*map(int, row), *(-int(i == j) for j in range(k))) for i, row in enumerate(rows))
    return Shaped(answers, old, still + new, rows)
