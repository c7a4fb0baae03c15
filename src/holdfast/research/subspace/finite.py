"""Mechanisms with finitely many outcomes, in fractions: the slow and obvious way to see what a promise about a subspace says.

Used to check, by going through all outcomes, what guarantee.py and [theory T91], [theory T93] claim; and for small examples of research.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from holdfast.subspace.spaces import Subspace

Point: TypeAlias = tuple[Fraction, ...]
Query: TypeAlias = Callable[[Any], Point]
"""The true answers of a data set, exact."""


@dataclass(frozen=True)
class FiniteMechanism:
    """For every data set a law on finitely many points.

    Given:       probabilities as fractions that add up to 1 for each data set (trusted).
    """

    laws: Mapping[Any, Mapping[Point, Fraction]]

    def mapped(self, change: Callable[[Any, Point], Point]) -> FiniteMechanism:
        """The mechanism that publishes change(x, y) in place of y."""
        made: dict[Hashable, dict[Point, Fraction]] = {}
        for x, law in self.laws.items():
            out: dict[Point, Fraction] = defaultdict(Fraction)
            for y, p in law.items():
                out[change(x, y)] += p
            made[x] = dict(out)
        return FiniteMechanism(made)

    def delta(self, factor: Fraction, neighbours: Iterable[tuple[Hashable, Hashable]], space: Subspace | None = None) -> Fraction:
        """The smallest delta with P[Pi_V M(x) in S] <= factor P[Pi_V M(x') in S] + delta for all these pairs, both ways, and all S.

        Law:  the largest sum over outcomes of (P - factor P')_+. Without a space V is everything: the ordinary promise.
        """
        seen = self if space is None else self.mapped(lambda _, y: space.projected(y))
        return max(max(_excess(seen.laws[a], seen.laws[b], factor), _excess(seen.laws[b], seen.laws[a], factor)) for a, b in neighbours)

    def projected(self, space: Subspace, query: Query) -> FiniteMechanism:
        """A + Pi_V (M - A)."""
        return self.mapped(lambda x, y: _sum(query(x), space.projected(_sum(y, query(x), -1))))

    def extended(self, space: Subspace, query: Query) -> FiniteMechanism:
        """M + Pi_R A, R at a right angle to V, for M with values in V."""
        return self.mapped(lambda x, y: _sum(y, space.complement().projected(query(x))))

    def beside(self, other: FiniteMechanism) -> FiniteMechanism:
        """Both, drawn independently."""
        return FiniteMechanism(
            {x: {y + z: p * q for y, p in law.items() for z, q in other.laws[x].items()} for x, law in self.laws.items()}
        )

    def mixed(self, other: FiniteMechanism, weight: Fraction) -> FiniteMechanism:
        """This one with probability `weight`, else the other."""
        made: dict[Hashable, dict[Point, Fraction]] = {}
        for x in self.laws:
            out: dict[Point, Fraction] = defaultdict(Fraction)
            for law, part in ((self.laws[x], weight), (other.laws[x], 1 - weight)):
                for y, p in law.items():
                    out[y] += part * p
            made[x] = dict(out)
        return FiniteMechanism(made)

    def mean(self, x: Hashable) -> Point:
        """E M(x)."""
        law = self.laws[x]
        return tuple(sum((p * y[i] for y, p in law.items()), Fraction(0)) for i in range(len(next(iter(law)))))

    def squared_error(self, x: Hashable, answers: Point) -> Fraction:
        """E |M(x) - answers|_2^2."""
        return sum(
            (p * sum(((a - b) ** 2 for a, b in zip(y, answers, strict=True)), Fraction(0)) for y, p in self.laws[x].items()), Fraction(0)
        )


def _excess(first: Mapping[Point, Fraction], second: Mapping[Point, Fraction], factor: Fraction) -> Fraction:
    return sum((max(p - factor * second.get(y, Fraction(0)), Fraction(0)) for y, p in first.items()), Fraction(0))


def _sum(first: Point, second: Point, sign: int = 1) -> Point:
    return tuple(a + sign * b for a, b in zip(first, second, strict=True))
