"""The K-norm mechanism: noise shaped as the hull of all changes, with a pure promise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from holdfast.errors import InvalidParameter, NoExactSampler
from holdfast.exact.parameters import Exact
from holdfast.privacy.parameters import budget
from holdfast.research.subspace.additive import Additive
from holdfast.research.subspace.bodies import Body, Fan, HitAndRun, Independent
from holdfast.research.subspace.changes import Changes
from holdfast.research.subspace.correlated import split
from holdfast.research.subspace.noise import LawStatus
from holdfast.research.subspace.query import Query
from holdfast.subspace.spaces import Floats

Sampler: TypeAlias = Literal["auto", "independent", "facets", "hit-and-run"]
SAMPLERS: tuple[Sampler, ...] = ("auto", "independent", "facets", "hit-and-run")


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
        bodies = tuple(self._body(changes.projected(block)) for block in blocks)
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
