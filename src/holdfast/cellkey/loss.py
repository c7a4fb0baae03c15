"""How well one published value tells two neighbouring counts apart: delta as a function of epsilon, by enumeration of all values.

For laws P and Q of the published value under counts n and n + 1,

    delta(epsilon) = max( sum_y max(0, P(y) - e^epsilon Q(y)),  sum_y max(0, Q(y) - e^epsilon P(y)) ),

the largest over all events and both directions [theory T80]. It falls with epsilon until it reaches the mass of the values that only one of
the two counts can give, and stays there: the plateau.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import arb

from holdfast.errors import PrecisionExhausted
from holdfast.exact.balls import Enclosure, Real, ball, narrowed
from holdfast.exact.parameters import Exact
from holdfast.privacy.parameters import not_negative, probability

Law = Mapping[int, Real]
"""Published value -> probability above zero, exact or computable."""

_PRECISIONS = (128, 256, 1024, 4096)
_NARROW = Fraction(1, 1 << 60)
_TINY = Fraction(1, 1 << 120)
_HALVINGS = 62


@dataclass(frozen=True)
class Pair:
    """The published value under `count` and under `count` + 1."""

    count: int
    lower: Law
    upper: Law

    @cached_property
    def directions(self) -> tuple[tuple[Law, Law], tuple[Law, Law]]:
        """(P, Q) both ways: first the lower count against the upper."""
        return (self.lower, self.upper), (self.upper, self.lower)

    def delta_bounds(self, epsilon: Fraction) -> Enclosure:
        """The smallest delta at this epsilon."""
        return _narrow(lambda: _larger(_excess(p, q, ball(epsilon).exp()) for p, q in self.directions))

    def plateau_bounds(self) -> Enclosure:
        """The mass of values that only one of the two counts can give; the larger of the two."""
        return _narrow(lambda: _larger(_sum(chance for y, chance in p.items() if y not in q) for p, q in self.directions))

    def log_ratio_bounds(self, *, upward: bool = True, downward: bool = True) -> Enclosure:
        """The log of the largest ratio of probabilities among values that both counts can give; 0 where none is above 1."""
        wanted = [both for both, is_wanted in zip(self.directions, (upward, downward), strict=True) if is_wanted]

        def log_ratio() -> arb:
            return _larger([arb(1), *(ball(p[y]) / ball(q[y]) for p, q in wanted for y in p.keys() & q.keys())]).log()

        return _narrow(log_ratio)


@dataclass(frozen=True)
class Losses:
    """(epsilon, delta) of one cell and one answer, over the draw of the keys, for every pair of neighbouring counts.

    Fields:      `pairs`: the pairs compared. `at_least`: both counts are at least this; nothing is said of smaller ones. `key_size`: set
                 where probabilities are multiples of 1 / key_size; a plateau above zero is then at least 1 / key_size. `queries`: how
                 many answers are looked at together; with more than one, "values" are those of all of them.
    Guarantees:  figures are enclosed by rational bounds; floats are rounded up, to the safe side.
    Not covered: several answers, differences of tables, and whoever knows a key. Figures of several cells do not compose.
    Reference:   [theory T80].
    """

    pairs: tuple[Pair, ...]
    at_least: int
    key_size: int | None = None
    queries: int = 1

    def delta(self, epsilon: Exact) -> float:
        """The smallest delta at this epsilon, rounded up."""
        return self.delta_bounds(epsilon).up()

    def delta_bounds(self, epsilon: Exact) -> Enclosure:
        """The smallest delta at this epsilon, enclosed."""
        value = not_negative(epsilon, "epsilon")
        return _largest(pair.delta_bounds(value) for pair in self._distinct)

    def worst_count(self, epsilon: Exact) -> int:
        """The smaller count of the pair that is told apart best at this epsilon (of several, the smallest)."""
        value = not_negative(epsilon, "epsilon")
        return -max((pair.delta_bounds(value).upper, -pair.count) for pair in self._distinct)[1]

    def curve(self, epsilons: Iterable[Exact]) -> list[tuple[float, float]]:
        """(epsilon, delta) for each epsilon, delta rounded up."""
        return [(float(not_negative(epsilon, "epsilon")), self.delta(epsilon)) for epsilon in epsilons]

    def epsilon(self, delta: Exact) -> float | None:
        """The smallest epsilon at which this delta holds, rounded up; None where delta is below the plateau: no epsilon is enough."""
        found = self.epsilon_bounds(delta)
        return None if found is None else found.up() + 0.0  # not -0.0

    def epsilon_bounds(self, delta: Exact) -> Enclosure | None:
        """The smallest epsilon at which this delta holds, enclosed; None where no epsilon is enough, or that cannot be ruled out."""
        wanted = probability(delta, "delta")
        if self.plateau_bounds.upper > wanted:
            return None
        found = Enclosure(Fraction(0), Fraction(0))
        for pair in self._distinct:
            if pair.delta_bounds(found.upper).upper > wanted:  # it needs more than all pairs before it
                found = self._halved(pair, wanted, found.lower)
        return found

    @cached_property
    def plateau_bounds(self) -> Enclosure:
        """The delta that no epsilon gets below."""
        return _largest(pair.plateau_bounds() for pair in self._distinct)

    @property
    def plateau(self) -> float:
        """The delta that no epsilon gets below, rounded up."""
        return self.plateau_bounds.up()

    @cached_property
    def plateau_epsilon_bounds(self) -> Enclosure:
        """The smallest epsilon from which on every pair is at its plateau: the largest log ratio, both ways."""
        return self._log_ratio(upward=True, downward=True)

    @property
    def floor(self) -> Fraction | None:
        """1 / key_size: no plateau other than zero is below it. None before anything is rounded for keys."""
        return None if self.key_size is None else Fraction(1, self.key_size)

    @property
    def plateau_epsilon(self) -> float:
        """The smallest epsilon from which on delta is at its plateau, rounded up."""
        return self.plateau_epsilon_bounds.up()

    @property
    def upward_epsilon_bounds(self) -> Enclosure:
        """The largest log ratio of the smaller count against the larger alone: what [SC22, (45)] takes."""
        return self._log_ratio(upward=True, downward=False)

    @property
    def zero_shown(self) -> Enclosure | None:
        """The probability that a count of one is published as what a count of zero never is; None where zeros do not stay zero."""
        first = self.pairs[0]
        keeps_zero = self.queries == 1 and first.count == 0 and list(first.lower) == [0]
        return None if not keeps_zero else _narrow(lambda: 1 - _sum([first.upper.get(0, Fraction(0))]))

    @cached_property
    def _distinct(self) -> tuple[Pair, ...]:
        """One pair of each shape: the same two laws, moved, tell as much."""
        seen: dict[object, Pair] = {}
        for pair in self.pairs:
            key = tuple(tuple((y - pair.count, _identity(chance)) for y, chance in law.items()) for law in (pair.lower, pair.upper))
            seen.setdefault(key, pair)
        return tuple(seen.values())

    def _log_ratio(self, *, upward: bool, downward: bool) -> Enclosure:
        return _largest(pair.log_ratio_bounds(upward=upward, downward=downward) for pair in self._distinct)

    def _halved(self, pair: Pair, delta: Fraction, low: Fraction) -> Enclosure:
        """The smallest epsilon for this pair and for those that need at least `low`; delta is not below the plateau."""
        high = self.plateau_epsilon_bounds.upper
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            found = pair.delta_bounds(middle)
            if found.upper <= delta:
                high = middle
            elif found.lower > delta:
                low = middle
            else:
                return _beside(pair, delta, middle, low, high)
        return Enclosure(low, high)

    def __repr__(self) -> str:
        size = "" if self.key_size is None else f"; key size {self.key_size}"
        return f"Losses(both counts at least {self.at_least}; plateau {self.plateau:.6g} from epsilon {self.plateau_epsilon:.6g}{size})"


def _beside(pair: Pair, delta: Fraction, middle: Fraction, low: Fraction, high: Fraction) -> Enclosure:
    """A short interval around `middle`, at which balls do not tell whether delta is reached: it is, just beside it or there."""
    for bits in (58, 50, 40, 30):
        distance = (1 + middle) / (1 << bits)
        left, right = max(middle - distance, low), min(middle + distance, high)
        if pair.delta_bounds(right).upper <= delta and (left == low or pair.delta_bounds(left).lower > delta):
            return Enclosure(left, right)
    return Enclosure(low, high)


def _excess(p: Law, q: Law, factor: arb) -> arb:
    zero, total = arb(0), arb(0)
    for y, chance in p.items():
        total += (ball(chance) - factor * ball(q[y])).max(zero) if y in q else ball(chance)
    return total


def _sum(chances: Iterable[Real]) -> arb:
    total = arb(0)
    for chance in chances:
        total += ball(chance)
    return total


def _larger(balls: Iterable[arb]) -> arb:
    largest, *others = balls
    for other in others:
        largest = largest.max(other)
    return largest


def _narrow(value: Callable[[], arb]) -> Enclosure:
    """A number of zero or more, enclosed to 60 bits, or shown to be below 2^-120."""
    found, _ = narrowed(value, _PRECISIONS, lambda bounds: bounds.upper - bounds.lower <= max(_NARROW * bounds.lower, _TINY))
    if found is None:
        raise PrecisionExhausted("A probability could not be enclosed at the precision tried. Use parameters of a more ordinary size.")
    return Enclosure(max(found.lower, Fraction(0)), max(found.upper, Fraction(0)))


def _largest(found: Iterable[Enclosure]) -> Enclosure:
    """The largest of several numbers, enclosed."""
    known = list(found)
    return Enclosure(max(bounds.lower for bounds in known), max(bounds.upper for bounds in known))


def _identity(chance: Real) -> object:
    return chance if isinstance(chance, Fraction) else id(chance)
