"""How well one published value tells two neighbouring counts apart: delta as a function of epsilon, by enumeration of all values.

For laws P and Q of the published value under counts n and n + 1,

    delta(epsilon) = max( sum_y max(0, P(y) - e^epsilon Q(y)),  sum_y max(0, Q(y) - e^epsilon P(y)) ),

the largest over all events and both directions [theory T80]. It falls with epsilon until it reaches the mass of the values that only one of
the two counts can give, and stays there: the plateau.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from flint import arb

from holdfast.errors import PrecisionExhausted
from holdfast.exact.balls import Enclosure, Real, ball, enclose_until
from holdfast.exact.parameters import Exact
from holdfast.privacy.parameters import not_negative, probability

Law = Mapping[int, Real]
"""Published value -> probability above zero, exact or computable."""

_PRECISIONS = (128, 256, 1024, 4096)
_NARROW = Fraction(1, 1 << 60)
_TINY = Fraction(1, 1 << 120)


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

    @cached_property
    def is_exact(self) -> bool:
        """All probabilities are fractions."""
        return all(isinstance(chance, Fraction) for law in (self.lower, self.upper) for chance in law.values())

    @cached_property
    def plateau_bounds(self) -> Enclosure:
        """The mass of values that only one of the two counts can give; the larger of the two. Exact where probabilities are."""
        if self.is_exact:
            mass = max(_exact_mass(p, q) for p, q in self.directions)
            return Enclosure(mass, mass)
        return _narrow(self.plateau_ball)

    def plateau_ball(self) -> arb:
        """The same, at flint's current precision."""
        return _larger(_mass(p, q) for p, q in self.directions)

    def factor(self, delta: Fraction) -> Fraction:
        """e^epsilon for the smallest epsilon at which this delta holds, where all is exact; delta is not below the plateau."""
        return max(_exact_factor(p, q, delta - _exact_mass(p, q)) for p, q in self.directions)

    def factor_ball(self, delta: arb) -> arb:
        """The same for any probabilities, at flint's current precision."""
        return _larger(_smallest_factor(p, q, (delta - _mass(p, q)).max(arb(0))) for p, q in self.directions)


@dataclass(frozen=True)
class Losses:
    """(epsilon, delta) of one cell and one answer, over the draw of the keys, for every pair of neighbouring counts.

    Fields:      `pairs`: the pairs compared, by increasing count; nothing is said of others. `is_open`: the pairs stand for all larger
                 counts too. `key_size`: set where probabilities are multiples of 1 / key_size; a plateau above zero is then at least
                 1 / key_size. `queries`: how many answers are looked at together; with more than one, "values" are those of all of them,
                 and `count` says nothing.
    Guarantees:  figures are enclosed by rational bounds; floats are rounded up, to the safe side.
    Not covered: several answers, differences of tables, and whoever knows a key. Figures of several cells do not compose.
    Reference:   [theory T80].
    """

    pairs: tuple[Pair, ...]
    is_open: bool = True
    key_size: int | None = None
    queries: int = 1

    @property
    def at_least(self) -> int:
        """The smallest count compared."""
        return self.pairs[0].count

    @property
    def runs(self) -> tuple[tuple[int, int | None], ...]:
        """Which counts were compared with their neighbours: (first, last) of each unbroken run, last None where it does not end."""
        starts = [pair.count for before, pair in zip((None, *self.pairs), self.pairs, strict=False) if not _is_next(before, pair)]
        ends = [pair.count + 1 for pair, after in zip(self.pairs, (*self.pairs[1:], None), strict=True) if not _is_next(pair, after)]
        return tuple(zip(starts, [*ends[:-1], None if self.is_open else ends[-1]], strict=True))

    def delta(self, epsilon: Exact) -> float:
        """The smallest delta at this epsilon, rounded up."""
        return self.delta_bounds(epsilon).up()

    def delta_bounds(self, epsilon: Exact) -> Enclosure:
        """The smallest delta at this epsilon, enclosed."""
        value = not_negative(epsilon, "epsilon")
        return _largest(pair.delta_bounds(value) for pair in self._distinct)

    def worst_count(self, epsilon: Exact) -> int:
        """The smaller count of the pair that is easiest to tell apart at this epsilon (of several, the smallest)."""
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
        """The smallest epsilon at which this delta holds, enclosed; None where no epsilon is enough, or that cannot be ruled out.

        delta = 0 is allowed: an epsilon holds with it where both counts can give the same values.
        """
        wanted = not_negative(delta, "delta")
        if wanted:
            wanted = probability(wanted, "delta")
        if self.plateau_bounds.upper > wanted:
            return None
        return self._least_epsilon(wanted)

    @cached_property
    def plateau_bounds(self) -> Enclosure:
        """The delta that no epsilon gets below."""
        return _largest(pair.plateau_bounds for pair in self._distinct)

    @property
    def plateau(self) -> float:
        """The delta that no epsilon gets below, rounded up."""
        return self.plateau_bounds.up()

    @cached_property
    def plateau_epsilon_bounds(self) -> Enclosure:
        """The smallest epsilon from which on delta is at its plateau. Pairs with a lower plateau of their own may still fall there."""
        low, high = self.plateau_bounds
        return self._least_epsilon(low if low == high else None)

    @property
    def floor(self) -> Fraction | None:
        """1 / key_size: no plateau other than zero is below it. None before anything is rounded for keys."""
        return None if self.key_size is None else Fraction(1, self.key_size)

    @property
    def plateau_epsilon(self) -> float:
        """The smallest epsilon from which on delta is at its plateau, rounded up."""
        return self.plateau_epsilon_bounds.up() + 0.0  # not -0.0

    @cached_property
    def worst(self) -> Losses:
        """The pair with the highest plateau alone; of several the one that reaches it last, and then the smallest counts."""
        plateau = max(pair.plateau_bounds.upper for pair in self._distinct)
        worst = [replace(self, pairs=(pair,)) for pair in self._distinct if pair.plateau_bounds.upper == plateau]
        return max(worst, key=lambda alone: (alone.plateau_epsilon_bounds.upper, -alone.at_least))

    @cached_property
    def above_zero(self) -> Losses | None:
        """The other pairs, where zeros stay zero: counts from 1 on; None where there are no others, or counts 0 and 1 are not compared."""
        return None if self.zero_shown is None or len(self.pairs) == 1 else replace(self, pairs=self.pairs[1:])

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

    def _least_epsilon(self, delta: Fraction | None) -> Enclosure:
        """The smallest epsilon at which this delta, not below the plateau, or the plateau itself holds for all pairs."""
        pairs = self._distinct
        if delta is not None and all(pair.is_exact for pair in pairs):
            factor = max(pair.factor(delta) for pair in pairs)
            return _narrow(lambda: ball(factor).log())

        def epsilon() -> arb:
            wanted = _larger(pair.plateau_ball() for pair in pairs) if delta is None else ball(delta)
            return _larger(pair.factor_ball(wanted) for pair in pairs).log()

        return _narrow(epsilon)

    def __repr__(self) -> str:
        size = "" if self.key_size is None else f"; key size {self.key_size}"
        compared = ", ".join(f"from {first} on" if last is None else f"{first} to {last}" for first, last in self.runs)
        scope = f"counts {compared}" if self.queries == 1 else f"{self.queries} answers"
        return f"Losses({scope}; plateau {self.plateau:.6g} from epsilon {self.plateau_epsilon:.6g}{size})"


def _is_next(pair: Pair | None, after: Pair | None) -> bool:
    return pair is not None and after is not None and after.count == pair.count + 1


def _excess(p: Law, q: Law, factor: arb) -> arb:
    zero, total = arb(0), arb(0)
    for y, chance in p.items():
        total += (ball(chance) - factor * ball(q[y])).max(zero) if y in q else ball(chance)
    return total


def _mass(p: Law, q: Law) -> arb:
    """The probability under p of the values that q excludes."""
    return _sum(chance for y, chance in p.items() if y not in q)


def _exact_mass(p: Law, q: Law) -> Fraction:
    return sum((_exact(chance) for y, chance in p.items() if y not in q), Fraction(0))


def _exact_factor(p: Law, q: Law, allowed: Fraction) -> Fraction:
    """The smallest t >= 1 with sum of max(0, p(y) - t q(y)) <= allowed over the values y that both can give; allowed is zero or more.

    t is the largest (P(S) - allowed) / Q(S) over sets S of values, and sets of the largest ratios p / q are enough [theory T80].
    """
    common = [(_exact(p[y]), _exact(q[y])) for y in p.keys() & q.keys()]
    factor, above, below = Fraction(1), Fraction(0), Fraction(0)
    for p_y, q_y in sorted(common, key=lambda both: both[0] / both[1], reverse=True):
        above, below = above + p_y, below + q_y
        factor = max(factor, (above - allowed) / below)
    return factor


def _exact(chance: Real) -> Fraction:
    assert isinstance(chance, Fraction)
    return chance


def _smallest_factor(p: Law, q: Law, allowed: arb) -> arb:
    """The same by balls. Where they leave the order of ratios open, their widths bound what the wrong order misses."""
    ratios = sorted(((ball(p[y]) / ball(q[y]), y) for y in p.keys() & q.keys()), key=lambda found: found[0].mid(), reverse=True)
    factor, above, below, widest = arb(0), arb(0), arb(0), arb(0)
    for ratio, y in ratios:
        above += ball(p[y])
        below += ball(q[y])
        factor = factor.max((above - allowed) / below)
        widest = widest.max(ratio.rad())
    return factor.union(factor + 2 * widest).max(arb(1))


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
    found, _ = enclose_until(value, _PRECISIONS, lambda bounds: bounds.upper - bounds.lower <= max(_NARROW * bounds.lower, _TINY))
    if found is None:
        raise PrecisionExhausted("A probability could not be enclosed at the precision tried. Use parameters of a more ordinary size.")
    return Enclosure(max(found.lower, Fraction(0)), max(found.upper, Fraction(0)))


def _largest(found: Iterable[Enclosure]) -> Enclosure:
    """The largest of several numbers, enclosed."""
    known = list(found)
    return Enclosure(max(bounds.lower for bounds in known), max(bounds.upper for bounds in known))


def _identity(chance: Real) -> object:
    return chance if isinstance(chance, Fraction) else id(chance)
