"""Answers that differ from the true ones in the null space of the invariants alone: projection and extension, in floating point.

    projection   y = A(x) + Pi_N e,  e in R^n private noise for A                       ([GGY22] Corollaries 3.2, 3.5, 3.8)
    extension    y = A(x) + Q_N w,   w in R^(n - n_c) private noise for Q_N^T A         ([GGY22] Algorithm 1, Corollaries 3.6, 3.9)

Both keep C y = C A(x) up to rounding and are unbiased where the noise is. The error E|y - A(x)|^2 is the variance of a coordinate times
n - n_c in both; the second adds no more Gaussian noise than the first, as Delta_2(Q_N^T A) <= Delta_2(A) ([theory T93]).

A user's own mechanism, whether it adds noise or not, is projected or extended as a whole (`Projected`, `Extended`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.formatting import round_up
from holdfast.exact.parameters import Exact
from holdfast.privacy.parameters import at_least_one, budget, not_negative
from holdfast.research.subspace.analytic_gaussian import analytic_sigma_squared, ggy_sigma_squared
from holdfast.research.subspace.guarantee import SubspaceGuarantee
from holdfast.research.subspace.noise import DoubleGeometricNoise, GaussianNoise, LaplaceNoise, Noise, StudentNoise
from holdfast.research.subspace.query import Query
from holdfast.research.subspace.spaces import Floats

Calibration: TypeAlias = Literal["analytic", "paper"]

CALIBRATIONS = {"analytic": analytic_sigma_squared, "paper": ggy_sigma_squared}
SCALE_BITS, SCALE_DIGITS = 128, 12
"""Precision of an irrational scale, and its significant digits."""

Run: TypeAlias = Callable[[Floats, np.random.Generator], Any]


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
        return np.asarray(values + self.transform(self.noise.draw(count, random)))

    def transform(self, draws: Floats) -> Floats:
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


@dataclass(frozen=True, init=False)
class _Own:
    """What both share: a function that publishes, and what its author says of it."""

    run: Run
    epsilon: Fraction
    delta: Fraction
    name: str
    norm: ClassVar[Literal["l2"]] = "l2"
    """In which one number for the sensitivity would be read; the function has its own, and needs none."""

    def __init__(self, run: Run, epsilon: Exact, delta: Exact = 0, *, name: str | None = None) -> None:
        if not callable(run):
            raise InvalidParameter(
                f"{type(self).__name__} takes a function of the answers and a NumPy generator. Got {type(run).__name__}."
            )
        chance = not_negative(delta, "delta")
        if chance >= 1:
            raise InvalidParameter("delta must lie between 0 and 1: a delta of 1 promises nothing. Write a small number such as '1e-10'.")
        self.__dict__.update(run=run, epsilon=budget(epsilon, "epsilon"), delta=chance)
        self.__dict__.update(name=name if name is not None else f"{type(self).__name__.lower()}-own")


class Projected(_Own):
    """Law:         y = A(x) + Pi_N (M(x) - A(x)) for a mechanism M of the user's own, additive or not.

    Given:       run(answers, random) returns n numbers and is (epsilon, delta)-private for neighbours of the query, in the ordinary sense:
                 that is taken on trust, and the guarantee says "declared".
    Guarantees:  Definition 2.6 with the same numbers, in real numbers. Unbiased where M is.
    Reference:   [GGY22] Theorem 3.1; [theory T93].
    """

    def floating(self, query: Query) -> OwnFloating:
        return OwnFloating(self, query, query.promise(self.epsilon, self.delta, declared=True))

    def once(self, query: Query, values: Floats, random: np.random.Generator) -> Floats:
        published = _numbers(self.run(values.copy(), random), query.invariants.cells)
        return np.asarray(values + query.invariants.project(published - values))


class Extended(_Own):
    """Law:         y = Q_N M(Q_N^T A(x)) + Pi_R A(x) for a mechanism M of the user's own for the query Q_N^T A.

    Given:       run(Q_N^T answers, random) returns n - n_c numbers and is (epsilon, delta)-private for Q_N^T A on neighbours (trusted;
                 the guarantee says "declared"). Q_N is InvariantSpace.basis.
    Guarantees:  Definition 2.6 with the same numbers, in real numbers. Its error is that of M for Q_N^T A.
    Reference:   [GGY22] Theorem 3.3 and Corollary 3.10; [theory T93].
    """

    def floating(self, query: Query) -> OwnFloating:
        return OwnFloating(self, query, query.promise(self.epsilon, self.delta, declared=True))

    def once(self, query: Query, values: Floats, random: np.random.Generator) -> Floats:
        Q = query.invariants.basis
        published = _numbers(self.run(values @ Q, random), query.invariants.free)
        return np.asarray(values + (published - values @ Q) @ Q.T)


@dataclass(frozen=True, eq=False)
class OwnFloating:
    """A mechanism of the user's own, bound to a query: what it does to the data is known to its author only."""

    mechanism: Projected | Extended
    query: Query
    guarantee: SubspaceGuarantee
    expected_squared_error: ClassVar[None] = None

    @property
    def name(self) -> str:
        return self.mechanism.name

    def answers(self, values: Floats, count: int, random: np.random.Generator) -> Floats:
        """Runs the user's function once for each answer."""
        made = [self.mechanism.once(self.query, values, random) for _ in range(count)]
        return np.array(made).reshape(count, self.query.invariants.cells)

    def covariance(self) -> None:
        return None


def _numbers(published: Any, length: int) -> Floats:
    try:
        found = np.asarray(published, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.full(0, np.nan)
    if found.shape != (length,) or not np.isfinite(found).all():
        raise InvalidParameter(f"The function must return {length} finite numbers. What it returned has the shape {found.shape}.")
    return found
