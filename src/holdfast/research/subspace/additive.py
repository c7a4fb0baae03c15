"""Answers with noise in the null space of the invariants: projection and extension, in floating point.

    projection   y = A(x) + Pi_N e,  e in R^n private noise for A                       ([GGY22] Corollaries 3.2, 3.5, 3.8)
    extension    y = A(x) + Q_N w,   w in R^(n - n_c) private noise for Q_N^T A         ([GGY22] Algorithm 1, Corollaries 3.6, 3.9)

Both keep C y = C A(x) up to rounding and are unbiased where the noise is. The error E|y - A(x)|^2 is the variance of a coordinate times
n - n_c in both; the second adds no more Gaussian noise than the first, as Delta_2(Q_N^T A) <= Delta_2(A) ([theory T93]).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.formatting import round_up
from holdfast.exact.parameters import Exact
from holdfast.privacy.parameters import at_least_one, budget
from holdfast.research.subspace.analytic_gaussian import analytic_sigma_squared, ggy_sigma_squared
from holdfast.research.subspace.guarantee import SubspaceGuarantee
from holdfast.research.subspace.noise import DoubleGeometricNoise, GaussianNoise, LaplaceNoise, Noise, StudentNoise
from holdfast.research.subspace.query import Query
from holdfast.subspace.spaces import Floats

Calibration: TypeAlias = Literal["analytic", "paper"]

CALIBRATIONS = {"analytic": analytic_sigma_squared, "paper": ggy_sigma_squared}
SCALE_BITS, SCALE_DIGITS = 128, 12
"""Precision of an irrational scale, and its significant digits."""


class Floating(Protocol):
    """What a mechanism does to one query, in floating point: made from public facts by `mechanism.floating(query)`."""

    @property
    def name(self) -> str: ...
    @property
    def query(self) -> Query: ...
    @property
    def guarantee(self) -> SubspaceGuarantee: ...
    @property
    def expected_squared_error(self) -> float | None:
        """E|y - A(x)|_2^2 where it does not depend on the data; None where it is not known."""

    def answers(self, values: Floats, count: int, random: np.random.Generator) -> Floats:
        """So many independent answers, one a row."""

    def covariance(self) -> Floats | None:
        """Covariance of the noise, n x n; None if it is not known or depends on the data."""


@dataclass(frozen=True, eq=False)
class Additive:
    """Law:         y = A(x) + T w, w drawn from `noise` whatever the data; T is Pi_N for spread = "project", else the matrix given.

    Given:       `guarantee` holds for it in real numbers (trusted). A matrix has n rows, one column for each coordinate of the noise, and
                 C T = 0.
    """

    name: str
    query: Query
    guarantee: SubspaceGuarantee
    noise: Noise
    spread: Floats | Literal["project"]
    whole_answers: bool = False
    """Whether the guarantee is for whole answers only, as with noise on the whole numbers."""

    def __post_init__(self) -> None:
        shape = (self.query.invariants.cells, self.noise.dimension)
        found = (shape[0], shape[0]) if isinstance(self.spread, str) else self.spread.shape
        if found != shape:
            raise InvalidParameter(f"Noise of {shape[1]} coordinates for {shape[0]} answers needs a matrix of shape {shape}. Got {found}.")

    def answers(self, values: Floats, count: int, random: np.random.Generator) -> Floats:
        if self.whole_answers and np.any(values != np.rint(values)):
            raise InvalidParameter(f"{self.name} is private for whole answers only. Use Laplace noise for others.")
        return np.asarray(values + self.moved(self.noise.draw(count, random)))

    def moved(self, draws: Floats) -> Floats:
        """T w for each row w."""
        return self.query.invariants.project(draws) if isinstance(self.spread, str) else np.asarray(draws @ self.spread.T)

    def covariance(self) -> Floats | None:
        each = self.noise.covariance
        if each is None:
            return None
        n, k = self.query.invariants.cells, self.noise.dimension
        T = self.query.invariants.project(np.eye(n)) if isinstance(self.spread, str) else self.spread
        return np.asarray(T @ (each * np.eye(k) if isinstance(each, float) else each) @ T.T)

    @property
    def expected_squared_error(self) -> float | None:
        each = self.noise.covariance
        if isinstance(each, float):
            return each * (self.query.invariants.free if isinstance(self.spread, str) else float((self.spread**2).sum()))
        found = self.covariance()
        return None if found is None else float(np.trace(found))


def projected_laplace(query: Query, epsilon: Exact) -> Additive:
    """Pi_N of Laplace noise of scale Delta_1(A) / epsilon in every answer: (epsilon, 0) ([GGY22] Corollary 3.8)."""
    epsilon = budget(epsilon, "epsilon")
    noise = LaplaceNoise(query.l1 / epsilon, query.invariants.cells)
    return Additive("projected-laplace", query, query.promise(epsilon), noise, "project")


def extended_laplace(query: Query, epsilon: Exact) -> Additive:
    """Q_N of Laplace noise of scale Delta_1(Q_N^T A) / epsilon: (epsilon, 0) ([GGY22] Corollary 3.9, as [theory T93] reads it)."""
    epsilon = budget(epsilon, "epsilon")
    noise = LaplaceNoise(query.projected_l1 / epsilon, query.invariants.free)
    return Additive("extended-laplace", query, query.promise(epsilon), noise, query.invariants.basis)


def projected_gaussian(query: Query, epsilon: Exact, delta: Exact, calibration: Calibration = "analytic") -> Additive:
    """Pi_N of Gaussian noise calibrated to Delta_2(A): (epsilon, delta) ([GGY22] Corollary 3.5)."""
    noise = GaussianNoise(CALIBRATIONS[calibration](epsilon, delta, query.l2_squared), query.invariants.cells)
    return Additive("projected-gaussian", query, query.promise(epsilon, delta), noise, "project")


def extended_gaussian(query: Query, epsilon: Exact, delta: Exact, calibration: Calibration = "analytic") -> Additive:
    """Q_N of Gaussian noise calibrated to Delta_2(Q_N^T A): (epsilon, delta) ([GGY22] Corollary 3.6)."""
    noise = GaussianNoise(CALIBRATIONS[calibration](epsilon, delta, query.projected_l2_squared), query.invariants.free)
    return Additive("extended-gaussian", query, query.promise(epsilon, delta), noise, query.invariants.basis)


@dataclass(frozen=True, init=False)
class ProjectedDoubleGeometric:
    """Law:         y = A(x) + Pi_N e, P[e_i = k] proportional to exp(-epsilon |k| / Delta_1(A)) on the whole numbers.

    Given:       whole answers (checked when one is given); what is published need not be whole.
    Guarantees:  (epsilon, 0) of Definition 2.6, in real numbers. Floating point only: on the grid use ProjectedLaplace.
    Reference:   [GGY22] Corollary 3.2.
    """

    epsilon: Fraction
    norm: ClassVar[Literal["l1"]] = "l1"

    def __init__(self, epsilon: Exact) -> None:
        object.__setattr__(self, "epsilon", budget(epsilon, "epsilon"))

    def floating(self, query: Query) -> Additive:
        noise = DoubleGeometricNoise(query.l1 / self.epsilon, query.invariants.cells)
        return Additive("projected-double-geometric", query, query.promise(self.epsilon), noise, "project", whole_answers=True)


@dataclass(frozen=True, init=False)
class ProjectedStudent:
    """Law:         y = A(x) + Pi_N e, e of independent t variables of so many degrees of freedom, times a scale: tails as heavy as a power.

    Given:       epsilon per neighbour; degrees, 3 or more for a finite error.
    Guarantees:  (epsilon, 0) of Definition 2.6, in real numbers: the scale is Delta_1(A) (k + 1) / (2 epsilon sqrt k), rounded up.
    Reference:   [theory T94].
    """

    epsilon: Fraction
    degrees: int
    norm: ClassVar[Literal["l1"]] = "l1"

    def __init__(self, epsilon: Exact, degrees: int = 4) -> None:
        object.__setattr__(self, "epsilon", budget(epsilon, "epsilon"))
        object.__setattr__(self, "degrees", at_least_one(degrees, "degrees"))

    def floating(self, query: Query) -> Additive:
        with precision(SCALE_BITS):
            root = enclosure(ball(self.degrees).sqrt()).lower
        scale = round_up(query.l1 * (self.degrees + 1) / (2 * self.epsilon * root), SCALE_DIGITS)
        noise = StudentNoise(scale, self.degrees, query.invariants.cells)
        return Additive("projected-student", query, query.promise(self.epsilon), noise, "project")
