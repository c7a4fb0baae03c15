"""Laws on the integers that no release draws: from a list of weights or from computable ones, coins, and the uniform law."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property

from flint import arb

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import Enclosure, ball, fixed_point, precision
from holdfast.exact.law import PRECISIONS, RELATIVE_WIDTH, IntegerLaw, Sampler
from holdfast.exact.parameters import Exact, exact_fraction, exact_integer
from holdfast.exact.table import TableSampler
from holdfast.exact.uniform import UniformSampler
from holdfast.exact.weights import FixedWeights, ListedSource, WeightSource

MAX_LISTED = 1 << 20
"""Largest span of a law given point by point."""


class BallSource:
    """Computable weights on finitely many consecutive integers: `weight(k)` returns a ball at flint's current precision."""

    def __init__(self, first: int, last: int, weight: Callable[[int], arb]) -> None:
        self._points = range(first, last + 1)
        self._weight = weight

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        working = bits + guard + 64
        with precision(working + 64):
            pairs = [fixed_point(self._weight(k), working) for k in self._points]
        return FixedWeights(self._points[0], [low for low, _ in pairs], [high for _, high in pairs], (0, 0), (0, 0))


class TableLaw(IntegerLaw):
    """A law on finitely many points, given by a source of certified weights."""

    def __init__(self, source: WeightSource, **parameters: object) -> None:
        super().__init__(**parameters)
        self._source = source

    def _prepare(self) -> Sampler:
        return TableSampler(self._source)

    def pmf_bounds(self, k: int) -> Enclosure:
        weights = self._weights
        place = exact_integer(k, "k") - weights.first
        if not 0 <= place < len(weights.lows):
            return Enclosure(Fraction(0), Fraction(0))
        return self._chance(weights.lows[place], weights.highs[place])

    def tail_bounds(self, k: int) -> Enclosure:
        place = max(exact_integer(k, "k") - self._weights.first, 0)
        return self._chance(sum(self._weights.lows[place:]), sum(self._weights.highs[place:]))

    def mean_bounds(self) -> Enclosure:
        lower, upper = self._moment(1)
        return Enclosure(self._weights.first + lower, self._weights.first + upper)

    def variance_bounds(self) -> Enclosure:
        first, second = self._moment(1), self._moment(2)
        return Enclosure(max(second.lower - first.upper**2, Fraction(0)), second.upper - first.lower**2)

    @cached_property
    def _weights(self) -> FixedWeights:
        """Weights with every one known to a relative 2^-60, or zero, or given up at the largest precision as hardly above zero."""
        for bits in PRECISIONS:
            weights = self._source.fixed_weights(bits, 0)
            if all((high - low) * RELATIVE_WIDTH.denominator <= high for low, high in zip(weights.lows, weights.highs, strict=True)):
                break
        return weights

    def _chance(self, low: int, high: int) -> Enclosure:
        return Enclosure(Fraction(low, sum(self._weights.highs)), min(Fraction(high, max(sum(self._weights.lows), 1)), Fraction(1)))

    def _moment(self, power: int) -> Enclosure:
        """Enclosure of E (X - first)^power."""
        low = sum(i**power * weight for i, weight in enumerate(self._weights.lows))
        high = sum(i**power * weight for i, weight in enumerate(self._weights.highs))
        return Enclosure(Fraction(low, sum(self._weights.highs)), Fraction(high, max(sum(self._weights.lows), 1)))


class Weighted(TableLaw):
    """A law from explicit rational weights.

    Law:         P[X = k] = weight of k / sum of weights; points not named have weight 0.
    Given:       weights >= 0, not all zero, on a span of at most 2^20.
    Guarantees:  exact draws; all thresholds are exact rationals.
    """

    def __init__(self, weights: Mapping[int, Exact]) -> None:
        listed = {exact_integer(k, "a point"): exact_fraction(weight, f"the weight of {k}") for k, weight in weights.items()}
        if not listed or not any(listed.values()):
            raise InvalidParameter("The weights must not all be zero. Give at least one positive weight.")
        negative = [k for k, weight in listed.items() if weight < 0]
        if negative:
            raise InvalidParameter(f"Weights must be zero or more. The weight of {negative[0]} is negative.")
        points = sorted(k for k, weight in listed.items() if weight > 0)
        first, last = points[0], points[-1]
        if last - first >= MAX_LISTED:
            raise InvalidParameter(f"The points span more than {MAX_LISTED} integers. Draw an index into your list of points instead.")
        source = ListedSource(first, [listed.get(k, Fraction(0)) for k in range(first, last + 1)])
        super().__init__(source, weights=tuple((k, listed[k]) for k in points))


class Computable(TableLaw):
    """A law from computable weights on finitely many integers.

    Law:         P[X = k] = weight(k) / sum of weights, first <= k <= last.
    Given:       `weight(k)` returns a ball (flint.arb) of a number >= 0 that shrinks as flint's precision grows; `name` is the
                 stream's label.
    Guarantees:  exact draws.
    """

    def __init__(self, name: str, first: int, last: int, weight: Callable[[int], arb]) -> None:
        first, last = exact_integer(first, "first"), exact_integer(last, "last")
        if not 0 <= last - first < MAX_LISTED:
            raise InvalidParameter(f"last must be at least first and at most {MAX_LISTED - 1} above it.")
        super().__init__(BallSource(first, last, weight), name=name, first=first, last=last)

    # Two functions cannot be compared: a law of this kind equals only itself, whatever its name, so that samplers are never mixed up.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class Bernoulli(TableLaw):
    """A coin.

    Law:         P[X = 1] = probability, P[X = 0] = 1 - probability.
    Given:       0 <= probability <= 1, exact.
    Guarantees:  exact draws.
    """

    def __init__(self, probability: Exact) -> None:
        self.probability = exact_fraction(probability, "probability")
        if not 0 <= self.probability <= 1:
            raise InvalidParameter(f"probability must lie between 0 and 1. Got {self.probability}.")
        super().__init__(ListedSource(0, [1 - self.probability, self.probability]), probability=self.probability)


class BernoulliExp(TableLaw):
    """A coin that falls with an exponential probability.

    Law:         P[X = 1] = exp(-gamma), P[X = 0] = 1 - exp(-gamma).
    Given:       gamma >= 0, exact.
    Guarantees:  exact draws.
    Reference:   [CKS20] Algorithm 2 is the slow oracle.
    """

    def __init__(self, gamma: Exact) -> None:
        self.gamma = exact_fraction(gamma, "gamma")
        if self.gamma < 0:
            raise InvalidParameter(f"gamma must be zero or more. Got {self.gamma}.")

        def weight(k: int) -> arb:
            return (-ball(self.gamma)).exp() if k == 1 else -(-ball(self.gamma)).expm1()

        super().__init__(BallSource(0, 1, weight), gamma=self.gamma)


class UniformInteger(IntegerLaw):
    """A uniform integer.

    Law:         P[X = k] = 1 / (upper - lower + 1), lower <= k <= upper.
    Guarantees:  exact: a word in the incomplete last round of the range is thrown away.
    """

    def __init__(self, lower: int, upper: int) -> None:
        self.lower, self.upper = exact_integer(lower, "lower"), exact_integer(upper, "upper")
        if self.lower > self.upper:
            raise InvalidParameter(f"lower must not exceed upper. Got lower={self.lower}, upper={self.upper}.")
        self.size = self.upper - self.lower + 1
        super().__init__(lower=self.lower, upper=self.upper)

    def _prepare(self) -> Sampler:
        return UniformSampler(self.lower, self.size)

    def pmf_bounds(self, k: int) -> Enclosure:
        inside = self.lower <= exact_integer(k, "k") <= self.upper
        chance = Fraction(1, self.size) if inside else Fraction(0)
        return Enclosure(chance, chance)

    def tail_bounds(self, k: int) -> Enclosure:
        chance = Fraction(min(max(self.upper - exact_integer(k, "k") + 1, 0), self.size), self.size)
        return Enclosure(chance, chance)

    def mean_bounds(self) -> Enclosure:
        mean = Fraction(self.lower + self.upper, 2)
        return Enclosure(mean, mean)

    def variance_bounds(self) -> Enclosure:
        variance = Fraction(self.size**2 - 1, 12)
        return Enclosure(variance, variance)
