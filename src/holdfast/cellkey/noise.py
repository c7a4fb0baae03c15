"""Noise on finitely many integers with certified probabilities, and how it becomes a table for keys of a given size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate

from flint import arb, ctx

from holdfast.cellkey.loss import Losses, Pair
from holdfast.cellkey.table import PerturbationTable, check_key_size
from holdfast.errors import PrecisionExhausted
from holdfast.exact.balls import Enclosure, Real, ball, enclose_until, enclosure, precision

_PRECISIONS = (128, 256, 1024, 4096)
_NARROW = Fraction(1, 1 << 60)
_GUARDS = (96, 1024)


class NoiseLaw:
    """P[Z = noise[k]] proportional to exp(exponents[k]).

    Given:       increasing noise values; exponents exact or computable. `count`: the smallest count this noise is for; by default the
                 smallest for which no result is negative. `tolerance`: how far cumulative probabilities may lie from those of the law
                 that is meant, where exponents were cut.
    Guarantees:  probabilities, moments and losses in certified enclosures.
    """

    def __init__(
        self, noise: Sequence[int], exponents: Sequence[Real], *, count: int | None = None, tolerance: Fraction = Fraction(0)
    ) -> None:
        self.tolerance = tolerance
        self.noise = tuple(noise)
        self.exponents = tuple(exponents)
        self.count = max(0, -self.noise[0]) if count is None else count
        self.probabilities: Mapping[int, Real] = {value: _Chance(self, place) for place, value in enumerate(self.noise)}
        self._known: dict[int, list[arb]] = {}

    def balls(self) -> list[arb]:
        """The probabilities at flint's current precision."""
        bits = ctx.prec
        if bits not in self._known:
            self._known[bits] = self._compute()
        return self._known[bits]

    def _compute(self) -> list[arb]:
        weights = [ball(exponent).exp() for exponent in self.exponents]
        total = _sum(weights)
        return [weight / total for weight in weights]

    def pmf_bounds(self, value: int) -> Enclosure:
        """P[Z = value]."""
        if value not in self.probabilities:
            return Enclosure(Fraction(0), Fraction(0))
        return narrow(lambda: ball(self.probabilities[value]))

    def pmf(self, value: int) -> float:
        """P[Z = value], to the nearest double or the one beside it."""
        return self.pmf_bounds(value).nearest()

    def mean_bounds(self) -> Enclosure:
        return narrow(lambda: self._moment(1))

    def variance_bounds(self) -> Enclosure:
        return narrow(lambda: self._moment(2) - self._moment(1) * self._moment(1))

    def mean(self) -> float:
        return self.mean_bounds().nearest()

    def variance(self) -> float:
        return self.variance_bounds().nearest()

    def epsilon_delta(self) -> Losses:
        """The losses of counts n and n + 1 under this noise, both at least `count`, before anything is rounded for keys."""
        here, above = ({n + value: chance for value, chance in self.probabilities.items()} for n in (self.count, self.count + 1))
        return Losses((Pair(self.count, here, above),))

    def upper_bounds(self, key_size: int) -> list[tuple[int, int]]:
        """(noise, ceil(P[Z <= noise] key_size)) [SC22, (39)], certified.

        A product that is an integer, or within 2^-900 of one, is taken as that integer: balls do not tell, and the table that is made is
        an exact law of its own, whose figures are computed from it and not from here. So is one that is above an integer by no more than
        `tolerance` explains: else a probability of exactly 1/4 whose exponent was cut would cost a key more.
        """
        size = check_key_size(key_size)
        for guard in _GUARDS:
            with precision(size.bit_length() + guard):
                found = [enclosure(size * (total - ball(self.tolerance))) for total in accumulate(self.balls()[:-1])]
            if all(math.floor(low) < low and math.ceil(low) == math.ceil(high) for low, high in found):
                break
        return list(zip(self.noise, [*map(_ceiling, found), size], strict=True))

    def quantised(self, key_size: int, *, allow_lost: bool = False) -> PerturbationTable:
        """The table for keys 0 to key_size - 1, counts from `count` on. Refused where it would lose a noise value, unless allow_lost."""
        bounds = {self.count: self.upper_bounds(key_size)}
        return PerturbationTable.from_upper_bounds(bounds, key_size, allow_lost=allow_lost)

    def _moment(self, power: int) -> arb:
        return _sum(value**power * chance for value, chance in zip(self.noise, self.balls(), strict=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(noise {self.noise[0]} to {self.noise[-1]}; counts of at least {self.count})"

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_known": {}}  # balls do not pickle


class _Chance:
    """One probability of a law, as a computable real."""

    def __init__(self, law: NoiseLaw, place: int) -> None:
        self.law, self.place = law, place

    def ball(self) -> arb:
        return self.law.balls()[self.place]


def narrow(value: Callable[[], arb]) -> Enclosure:
    """A number enclosed to 60 bits of itself, or of 1 where it may be zero."""

    def is_narrow(bounds: Enclosure) -> bool:
        size = max(min(abs(bounds.lower), abs(bounds.upper)), _NARROW)
        return bounds.upper - bounds.lower <= _NARROW * size

    found, _ = enclose_until(value, _PRECISIONS, is_narrow)
    if found is None:
        raise PrecisionExhausted("A probability could not be enclosed at the precision tried. Use parameters of a more ordinary size.")
    return found


def _ceiling(bounds: Enclosure) -> int:
    return max(math.ceil(bounds.lower), 1)  # the integer itself, where one is inside or at the lower end; nothing has no key at all


def _sum(balls: Sequence[arb] | Iterator[arb]) -> arb:
    total = arb(0)
    for term in balls:
        total += term
    return total
