"""A user's own mechanism under invariants: the whole of it is projected or extended, whether it adds noise or not. Floating point only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.privacy.parameters import budget, not_negative
from holdfast.research.subspace.guarantee import SubspaceGuarantee
from holdfast.research.subspace.query import Query
from holdfast.subspace.spaces import Floats

Run: TypeAlias = Callable[[Floats, np.random.Generator], Any]


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
                 the guarantee says "declared"). Q_N is Invariants.basis.
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
