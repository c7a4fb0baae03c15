"""The K-norm mechanism: noise shaped as the hull of all changes, with a pure promise.

K is the convex hull of all changes and their negatives, and the noise has density proportional to exp(-epsilon |z|_K) on its span.

K = {P h : |h|_1 <= 1}, or with pairs {P h : |h|_1 <= 2, the entries of h have sum 0}: P has the columns of `Changes`. |z|_K is the least t
with z in t K. The noise is r u: r = |z|_K has the law Gamma(m) / epsilon, and u on the surface of K has the law of the end of a ray through
a uniform point of K (cone measure), independent of r ([theory T104]).

    body          when                              u                                        |z|_K
    Independent   the columns of P are independent  P times a point of a known polytope       |h|_1 of the one h there is
                  (with pairs: differ so)
    Fan           few corners                       facets by their share of K, uniform there  the largest facet functional
    HitAndRun     any                               a Markov chain: estimated                  a linear program
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from holdfast.errors import InvalidParameter, NoExactSampler, PrecisionExhausted
from holdfast.exact.parameters import Exact
from holdfast.privacy.parameters import budget
from holdfast.research.subspace.additive import Additive
from holdfast.research.subspace.correlated import split
from holdfast.research.subspace.noise import LawStatus
from holdfast.research.subspace.query import Changes, Query
from holdfast.research.subspace.spaces import Floats

MAX_FAN = 10_000_000
"""Corners to the power m // 2, up to which the facets of a hull are listed: they can be about so many."""

BATCH = 128
"""Chains whose chords are found by one linear program: calling one costs more than a small one itself."""
INSIDE = 1 - 1e-7
"""Points of a chain are moved towards 0 by this factor; the linear programs allow as much."""

Sampler: TypeAlias = Literal["auto", "independent", "facets", "hit-and-run"]
SAMPLERS: tuple[Sampler, ...] = ("auto", "independent", "facets", "hit-and-run")


class Body(Protocol):
    """K with a way to draw from it."""

    name: ClassVar[str]
    status: ClassVar[LawStatus]
    changes: Changes

    def gauge(self, z: Floats) -> Floats:
        """|z|_K of each row."""

    def draw(self, count: int, random: np.random.Generator) -> Floats:
        """count x m: noise at epsilon = 1."""

    @property
    def covariance(self) -> Floats | None:
        """Covariance of that noise, m x m; None if it is not known."""


class Independent:
    """Columns without a linear relation: K is the image of a cross-polytope, or with pairs of the hull of all e_z - e_y.

    With pairs, the surface points of the latter with k entries above 0 are a product of two simplices: their share of the cone measure is
    proportional to binom(d, k) / ((k - 1)! (d - k - 1)!).
    """

    name: ClassVar[str] = "independent columns"
    status: ClassVar[LawStatus] = "law"

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        if changes.columns.shape[1] - changes.pairs != changes.dimension:
            raise NoExactSampler("The columns of this query depend on each other. Use another sampler.")

    @cached_property
    def _solve(self) -> Floats:
        return np.asarray(
            np.linalg.pinv(self.changes.columns), dtype=np.float64
        )  # with pairs its columns have sum 0, as the rows of the other have

    def gauge(self, z: Floats) -> Floats:
        return np.asarray(np.abs(z @ self._solve.T).sum(axis=1) / (2 if self.changes.pairs else 1))

    @cached_property
    def positives(self) -> Floats:
        """With pairs: P[k entries above 0], k = 1, ..., d - 1."""
        d = self.changes.columns.shape[1]
        logs = [-math.lgamma(k + 1) - math.lgamma(d - k + 1) - math.lgamma(k) - math.lgamma(d - k) for k in range(1, d)]
        weights = np.exp(np.array(logs) - max(logs))
        return np.asarray(weights / weights.sum())

    def draw(self, count: int, random: np.random.Generator) -> Floats:
        d, m = self.changes.columns.shape[1], self.changes.dimension
        if not self.changes.pairs:
            return np.asarray(random.laplace(size=(count, d)) @ self.changes.columns.T)
        parts = random.exponential(size=(count, d))
        above = np.arange(d) < random.choice(np.arange(1, d), size=count, p=self.positives)[:, None]
        up, down = (np.where(side, parts, 0.0) for side in (above, ~above))
        h = random.permuted(up / up.sum(axis=1, keepdims=True) - down / down.sum(axis=1, keepdims=True), axis=1)
        return np.asarray(random.gamma(m, size=(count, 1)) * (h @ self.changes.columns.T))

    @property
    def covariance(self) -> Floats:
        d, m = self.changes.columns.shape[1], self.changes.dimension
        if not self.changes.pairs:
            return 2 * np.asarray(self.changes.columns @ self.changes.columns.T)
        k = np.arange(1, d)
        square = m * (m + 1) * float(self.positives @ (2 / (k + 1) + 2 / (d - k + 1)))  # E |h|_2^2; h is exchangeable, of sum 0
        return np.asarray(square / (d - 1) * self.changes.columns @ self.changes.columns.T)


class Fan:
    """K as a fan of simplices from 0 to the facets, which Qhull lists."""

    name: ClassVar[str] = "facets"
    status: ClassVar[LawStatus] = "law"

    def __init__(self, changes: Changes) -> None:
        from scipy.spatial import ConvexHull

        self.changes = changes
        m, corners = changes.dimension, np.hstack([changes.vectors(), -changes.vectors()]).T
        if len(corners) ** (m // 2) > MAX_FAN:
            raise NoExactSampler(f"The hull of {len(corners)} changes in {m} dimensions may have too many facets. Use another sampler.")
        if m == 1:
            end = np.abs(corners).max()
            self.facets, self._functionals = np.array([[[end]], [[-end]]]), np.array([[1 / end], [-1 / end]])
        else:
            hull = ConvexHull(corners)
            self.facets = corners[hull.simplices]  # facet, corner, coordinate
            self._functionals = -hull.equations[:, :-1] / hull.equations[:, -1:]
        volumes = np.abs(np.linalg.det(self.facets))
        self.shares = np.asarray(volumes / volumes.sum())
        self.volume = float(volumes.sum()) / math.factorial(m)

    def gauge(self, z: Floats) -> Floats:
        return np.asarray((z @ self._functionals.T).max(axis=1))

    def draw(self, count: int, random: np.random.Generator) -> Floats:
        m = self.changes.dimension
        chosen = self.facets[random.choice(len(self.shares), size=count, p=self.shares)]
        # A uniform point of a simplex times an independent Gamma(m) is m independent exponentials on the corners.
        return np.asarray(np.einsum("nc,ncj->nj", random.exponential(size=(count, m)), chosen))

    @property
    def covariance(self) -> Floats:
        sums = self.facets.sum(axis=1)
        squares = np.einsum("f,fcj,fck->jk", self.shares, self.facets, self.facets, optimize=True)
        return np.asarray(squares + np.einsum("f,fj,fk->jk", self.shares, sums, sums))


class HitAndRun:
    """A chain on K: a uniform direction through the point, a uniform point of the chord; both ends of the chord by linear programs.

    Guarantees:  none: how near the law is after so many steps is not known here, which is what the status says. Each draw starts at 0.
    """

    name: ClassVar[str] = "hit-and-run"
    status: ClassVar[LawStatus] = "estimated"

    def __init__(self, changes: Changes, steps: int | None = None) -> None:
        self.changes = changes
        self.steps = 10 * changes.dimension**2 if steps is None else steps
        if self.steps < 1:
            raise InvalidParameter(f"A chain takes at least one step. Got {steps}.")

    @property
    def covariance(self) -> None:
        return None

    def gauge(self, z: Floats) -> Floats:
        made = np.zeros(len(z))
        moved = z.any(axis=1)
        made[moved] = 1 / self._ends(np.zeros((int(moved.sum()), z.shape[1])), z[moved])
        return made

    def draw(self, count: int, random: np.random.Generator) -> Floats:
        m = self.changes.dimension
        points = np.zeros((count, m))
        for _ in range(self.steps):
            directions = random.standard_normal((count, m))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
            low, high = -self._ends(points, -directions), self._ends(points, directions)
            # A point on the surface could be outside by a rounding error, and its linear program without a solution.
            points = INSIDE * (points + (low + random.uniform(size=count) * (high - low))[:, None] * directions)
        return np.asarray(random.gamma(m + 1, size=(count, 1)) * points)

    def _ends(self, points: Floats, directions: Floats) -> Floats:
        """The largest t with point + t direction in K, for each row."""
        return np.concatenate([self._solve_program(points[i : i + BATCH], directions[i : i + BATCH]) for i in range(0, len(points), BATCH)])

    def _solve_program(self, points: Floats, directions: Floats) -> Floats:
        """One linear program for all rows, whose parts have nothing in common: the largest sum of t over h = h+ - h- and t."""
        from scipy import sparse
        from scipy.optimize import linprog

        rows, columns, most = len(points), self.changes.columns, 1.0
        if self.changes.pairs:  # a row for the sum of h
            columns, most = np.vstack([columns, np.ones(columns.shape[1])]), 2.0
            points, directions = (np.column_stack([part, np.zeros(rows)]) for part in (points, directions))
        d = 2 * columns.shape[1]
        every = sparse.identity(rows)
        equal = sparse.hstack([sparse.kron(every, np.hstack([columns, -columns])), -sparse.block_diag([v[:, None] for v in directions])])
        sizes = sparse.hstack([sparse.kron(every, np.ones((1, d))), sparse.csr_array((rows, rows))])
        gain = np.concatenate([np.zeros(rows * d), -np.ones(rows)])
        found = linprog(gain, A_ub=sizes.tocsr(), b_ub=np.full(rows, most), A_eq=equal.tocsr(), b_eq=points.ravel(), method="highs")
        if not found.success:
            raise PrecisionExhausted(f"A linear program of the chain could not be solved: {found.message}")
        return np.asarray(np.maximum(found.x[rows * d :], 0.0))


@dataclass(frozen=True, eq=False)
class KNormNoise:
    """Law:  density proportional to exp(-rate |z|_K) for each body K, the bodies independent and side by side."""

    bodies: tuple[Body, ...]
    rate: float
    name: ClassVar[str] = "k-norm"

    @property
    def dimension(self) -> int:
        return sum(body.changes.dimension for body in self.bodies)

    @property
    def status(self) -> LawStatus:
        return "estimated" if any(body.status == "estimated" for body in self.bodies) else "law"

    @property
    def covariance(self) -> Floats | None:
        made, at = np.zeros((self.dimension, self.dimension)), 0
        for body in self.bodies:
            if body.covariance is None:
                return None
            end = at + body.changes.dimension
            made[at:end, at:end] = body.covariance / self.rate**2
            at = end
        return made

    def draw(self, count: int, random: np.random.Generator) -> Floats:
        return np.hstack([body.draw(count, random) / self.rate for body in self.bodies])


@dataclass(frozen=True, init=False)
class KNorm:
    """Noise of density proportional to exp(-epsilon |z|_K) in the free part, K the hull of all that one neighbour can change.

    Given:       epsilon for one neighbour. `split`: K-norm noise for each block of correlated.py with an equal part of epsilon.
                 `sampler`: "independent" where the counts follow from the answers, "facets" in few dimensions, "hit-and-run" for any
                 query; "auto" takes the first that fits, and a chain only with allow_estimated=True. `steps`: of that chain.
    Guarantees:  pure, in real numbers; computed in floating point, so for research only. By hit-and-run the status is "estimated". No
                 near-optimality is claimed.
    Reference:   [HT10]; [GGY22] Section 3.4; [theory T104].
    """

    epsilon: Fraction
    split: bool
    sampler: Sampler
    allow_estimated: bool
    steps: int | None
    name: ClassVar[str] = "k-norm"
    norm: ClassVar[str] = "l1"

    def __init__(
        self, epsilon: Exact, *, split: bool = False, sampler: Sampler = "auto", allow_estimated: bool = False, steps: int | None = None
    ) -> None:
        if sampler not in SAMPLERS:
            raise InvalidParameter(f"sampler is one of {', '.join(SAMPLERS)}. Got {sampler!r}.", field="sampler")
        rate = budget(epsilon, "epsilon")
        given = {"epsilon": rate, "split": split, "sampler": sampler, "allow_estimated": allow_estimated, "steps": steps}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def floating(self, query: Query) -> Additive:
        """The mechanism for this linear query."""
        changes = Changes.of(query)
        blocks = split(changes) if self.split else [np.eye(changes.dimension)]
        bodies = tuple(self._body(changes.project(block)) for block in blocks)
        noise = KNormNoise(bodies, float(self.epsilon) / len(bodies))
        promise = query.promise(self.epsilon)
        if noise.status == "estimated":
            promise = replace(promise, status="estimated")
        return Additive(self.name, query, promise, noise, changes.basis @ np.hstack(blocks))

    def _body(self, changes: Changes) -> Body:
        if self.sampler == "independent":
            return Independent(changes)
        if self.sampler == "facets":
            return Fan(changes)
        if self.sampler == "auto":
            for made in (Independent, Fan):
                try:
                    return made(changes)
                except NoExactSampler:
                    continue
            if not self.allow_estimated:
                raise NoExactSampler(
                    f"No sampler with the exact law fits {changes.columns.shape[1]} kinds of records in {changes.dimension} dimensions. "
                    "With allow_estimated=True a Markov chain draws, and the promise is estimated; or ask fewer queries at once."
                )
        return HitAndRun(changes, self.steps)
