"""The worst privacy loss of a law that is drawn step by step, by enumeration: Renyi divergences between secrets, enclosed in balls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import Enclosure, ball, enclosure, precision

BITS = 128
TAIL = 75
"""What sums leave out has weights below exp(-TAIL), before bounds of what follows."""


@dataclass(frozen=True)
class SteppedLaw:
    """Integers z_1, z_2, ..., each drawn given those before it, from P[k] proportional to exp(-(k - c_i)^2 / (2 v_i)).

    variances: v_i. coefficients: for every i those of c_i = b_i + sum_(j < i) a_ij z_j. starts: b_i, all 0 if there are none.
    groups: how many steps in a row are drawn together, from the product of these weights; each alone if there are none.
    """

    variances: tuple[Fraction, ...]
    coefficients: tuple[tuple[Fraction, ...], ...]
    starts: tuple[Fraction, ...] = ()
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if [len(row) for row in self.coefficients] != list(range(len(self.variances))) or min(self.variances, default=1) <= 0:
            raise InvalidParameter("A stepped law has a positive variance for every step, and a coefficient for every step before it.")
        if self.groups and (sum(self.groups) != len(self.variances) or min(self.groups) < 1):
            raise InvalidParameter("The groups of a stepped law are positive numbers of steps that add up to all of them.")

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """For every step how many it begins, itself included; 0 inside a group."""
        return tuple(size if i == 0 else 0 for size in self.groups or (1,) * len(self.variances) for i in range(size))

    def innovations(self, secret: Sequence[Fraction | int]) -> list[Fraction]:
        """How far a secret moves the centre of every step beyond what the steps before it have published."""
        return [
            w - sum((a * u for a, u in zip(row, secret, strict=False)), Fraction(0))
            for w, row in zip(secret, self.coefficients, strict=True)
        ]

    def rho(self, secret: Sequence[Fraction | int]) -> Fraction:
        """Half the sum of d_i^2 / v_i, d_i the innovations: what Gaussian laws on real numbers would cost."""
        return sum((d * d / v for d, v in zip(self.innovations(secret), self.variances, strict=True)), Fraction(0)) / 2


@dataclass(frozen=True)
class WorstLoss:
    """The largest of several divergences in units of alpha rho: `ratio` encloses it; `secret` and `alpha` have it."""

    ratio: Enclosure
    secret: tuple[Fraction | int, ...]
    alpha: Fraction


def worst_loss(law: SteppedLaw, secrets: Iterable[Sequence[Fraction | int]], alphas: Sequence[Fraction]) -> WorstLoss:
    """Return the largest D_alpha(w + Z || Z) / (alpha rho(w)), Z drawn by the law, over these secrets w, not zero, and orders alpha > 1.

    For these secrets the law is (1 + kappa) rho-zCDP, at these orders, if and only if no ratio exceeds 1 + kappa. All sums are enclosed,
    their tails included. Coefficients of small denominators are enumerated quickly, as the future depends on fractions alone. A secret that
    is no integer moves the centres.
    """
    found: WorstLoss | None = None
    for secret in map(tuple, secrets):
        rho = law.rho(secret)
        for alpha in alphas:
            with precision(BITS):
                ratio = enclosure(1 + _Excess(law, secret, alpha).log_excess() / ball((alpha - 1) * alpha * rho))
            if found is None or ratio.upper > found.ratio.upper:
                found = WorstLoss(ratio, secret, alpha)
    if found is None:
        raise InvalidParameter("The worst loss is one of at least one secret and one order alpha.")
    return found


def renyi_divergence(law: SteppedLaw, secret: Sequence[Fraction | int], alpha: Fraction) -> Enclosure:
    """Return D_alpha(w + Z || Z) for the secret w."""
    with precision(BITS):
        return enclosure(ball(alpha * law.rho(secret)) + _Excess(law, secret, alpha).log_excess() / ball(alpha - 1))


class _Excess:
    """exp((alpha - 1) (D_alpha - alpha rho)), as a sum over all outputs y of the product of

        exp(-(y_i - m_i)^2 / (2 v_i)) / (theta(c_i + d_i)^alpha theta(c_i)^(1 - alpha)),   m_i = c_i + alpha d_i,

    c_i the centre of step i without the secret, c_i + d_i with it: complete the square. A group has one theta, the sum over its values.
    """

    def __init__(self, law: SteppedLaw, secret: Sequence[Fraction | int], alpha: Fraction) -> None:
        if alpha <= 1 or not any(secret):
            raise InvalidParameter("Divergences are of an order alpha above 1, and of a secret that is not zero.")
        self.law, self.alpha, self.moved = law, alpha, law.innovations(secret)
        self._known: dict[tuple[Fraction, ...], arb] = {}
        self._thetas: dict[tuple[Fraction, Fraction], arb] = {}
        self._groups: dict[tuple[int, tuple[Fraction, ...]], arb] = {}
        largest = [self.theta(v, Fraction(0)) for v in law.variances]
        spans = [(most / self.theta(v, Fraction(1, 2))) ** ball(alpha) for most, v in zip(largest, law.variances, strict=True)]
        ends = [i + size for i, size in enumerate(law.group_sizes) if size]
        self._most = [math.prod(spans[i:], start=arb(1)) for i in range(len(spans) + 1)]
        """No sum over all steps from i on exceeds this; inside a group its theta is not divided by."""
        for i in (i for i, size in enumerate(law.group_sizes) if not size):
            end = min(end for end in ends if end > i)
            self._most[i] = math.prod(largest[i:end], start=self._most[end])

    def log_excess(self) -> arb:
        """The logarithm of the sum."""
        return self._rest(0, self.law.starts or (Fraction(0),) * len(self.law.variances)).log()

    def theta(self, v: Fraction, c: Fraction) -> arb:
        """The sum of exp(-(k - c)^2 / (2 v)) over all integers k."""
        c -= math.floor(c)
        if (v, c) not in self._thetas:
            reach = _reach(v, TAIL)
            terms = ((-ball((k - c) ** 2 / (2 * v))).exp() for k in range(-reach, reach + 2))
            self._thetas[v, c] = sum(terms, arb(0)) + _tail(v, Fraction(reach))
        return self._thetas[v, c]

    def _rest(self, i: int, ahead: tuple[Fraction, ...]) -> arb:
        """The sum over all steps from i on; `ahead` has what the steps before contribute to their centres."""
        if not ahead:
            return arb(1)
        ahead = self._reduce(i, ahead)
        if ahead not in self._known:
            size, alpha = self.law.group_sizes[i], ball(self.alpha)
            moved = tuple(c + d for c, d in zip(ahead[:size], self.moved[i:], strict=False))
            weight = (-alpha * self._group(i, moved).log() - (1 - alpha) * self._group(i, ahead[:size]).log()).exp()
            self._known[ahead] = weight * self._sum(i, ahead, ahead[0] + self.alpha * self.moved[i], self._most[i + 1], self._rest)
        return self._known[ahead]

    def _group(self, i: int, ahead: tuple[Fraction, ...]) -> arb:
        """The theta of the steps from i on, as many as `ahead` has constants for."""
        if not ahead:
            return arb(1)
        ahead = self._reduce(i, ahead)
        if (i, ahead) not in self._groups:
            later = self.law.variances[i + 1 : i + len(ahead)]
            most = math.prod((self.theta(v, Fraction(0)) for v in later), start=arb(1))
            self._groups[i, ahead] = self._sum(i, ahead, ahead[0], most, self._group)
        return self._groups[i, ahead]

    def _sum(
        self, i: int, ahead: tuple[Fraction, ...], middle: Fraction, most: arb, after: Callable[[int, tuple[Fraction, ...]], arb]
    ) -> arb:
        """The sum over all values of step i of its weight about `middle` times what comes `after`, which is `most` at most."""
        v, later = self.law.variances[i], self.law.coefficients[i + 1 : i + len(ahead)]
        if not later:
            return self.theta(v, middle)
        reach = _reach(v, TAIL + math.ceil(float(most.log().upper())))
        total = arb(0).union(_tail(v, Fraction(reach)) * most)
        for k in range(math.floor(middle) - reach, math.floor(middle) + reach + 2):
            rest = after(i + 1, tuple(a + row[i] * k for a, row in zip(ahead[1:], later, strict=True)))
            total += (-ball((k - middle) ** 2 / (2 * v))).exp() * rest
        return total

    def _reduce(self, i: int, ahead: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        """Move every later output by an integer so that centres begin in [0, 1): sums over all integers do not feel it."""
        out = list(ahead)
        for place in range(len(out)):
            whole = math.floor(out[place])
            out[place] -= whole
            for after in range(place + 1, len(out)) if whole else ():
                out[after] += self.law.coefficients[i + after][i + place] * whole
        return tuple(out)


def _reach(v: Fraction, exponent: int) -> int:
    return math.isqrt(math.ceil(2 * v * exponent)) + 2


def _tail(v: Fraction, reach: Fraction) -> arb:
    """A ball of 0 and a bound of the sum of exp(-(k - c)^2 / (2 v)) over integers k at `reach` or more from c."""
    return arb(0).union(2 * (-ball(reach**2 / (2 * v))).exp() / (1 - (-ball(reach / v)).exp()))
