"""Correlated Gaussian noise for linear queries: the recursive split of the smallest ellipsoid, or the best covariance there is.

Split (after [NTZ13], as [GGY22] Section 3.4 extends it to answers with invariants): of the ellipsoid around the changes the shorter half of
the axes is one block of directions; the other half is treated again, until one axis is left. Block i gets spherical noise after its own
largest change r_i, all of them enlarged by sqrt(k) for k blocks. A change v then has squared size sum_i |U_i^T v|^2 / (k r_i^2) <= 1 under
any split into orthonormal blocks, so the ellipsoid decides the error and never the promise ([theory T103]).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.privacy.parameters import budget, probability
from holdfast.research.subspace.additive import Additive
from holdfast.research.subspace.analytic_gaussian import analytic_sigma_squared
from holdfast.research.subspace.changes import Changes
from holdfast.research.subspace.ellipsoid import EXCESS, enclosing_ellipsoid
from holdfast.research.subspace.noise import GaussianNoise
from holdfast.research.subspace.optimal_covariance import optimal_covariance
from holdfast.research.subspace.query import Query
from holdfast.subspace.spaces import Floats

Shape: TypeAlias = Literal["split", "optimal"]
SHAPES: tuple[Shape, ...] = ("split", "optimal")


def split(changes: Changes, *, excess: float = EXCESS) -> list[Floats]:
    """Blocks of orthonormal directions (m x m_i), m_1 + ... = m, at most 1 + log2 m of them; shortest axes first."""
    blocks, within = [], np.eye(changes.dimension)
    while within.shape[1] > 1:
        shape = enclosing_ellipsoid(changes.projected(within), excess=excess).matrix
        axes = np.linalg.eigh(shape)[1]  # shortest first
        short = within.shape[1] - within.shape[1] // 2
        blocks.append(within @ axes[:, :short])
        within = within @ axes[:, short:]
    return [*blocks, within]


def split_factor(changes: Changes, *, excess: float = EXCESS) -> Floats:
    """F with noise F w, w standard normal, for sensitivity 1: sqrt(k) r_i U_i side by side, as the papers have it."""
    blocks = split(changes, excess=excess)
    return np.hstack([math.sqrt(len(blocks) * changes.projected(u).largest_square(np.eye(u.shape[1]))) * u for u in blocks])


def tightened(changes: Changes, factor: Floats) -> Floats:
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
        factor = tightened(changes, split_factor(changes)) if self.covariance == "split" else optimal_covariance(changes).factor
        noise = GaussianNoise(analytic_sigma_squared(self.epsilon, self.delta, 1), changes.dimension)
        return Additive(self.name, query, query.promise(self.epsilon, self.delta), noise, changes.basis @ factor)
