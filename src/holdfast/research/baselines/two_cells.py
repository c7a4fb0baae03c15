"""Two cells under one kept total, in exact numbers: the laws of conditioning and of corrections, and the budget they attain.

Independent noise u_1, u_2 with density (epsilon / 4) exp(-epsilon |u| / 2) on both cells costs epsilon when one person changes cell. Three
ways to keep the total; the first cell then has noise

    conditioned on u_1 + u_2 = 0     exp(-epsilon |u|) epsilon / 2
    l2                               (u_1 - u_2) / 2
    l1 with weight beta              beta u_1 - (1 - beta) u_2, which has the law of beta u_1 + (1 - beta) u_2; l2 is beta = 1/2

and the second cell the opposite. All are sums of terms |u|^p exp(-rate |u|) with rational numbers, so that masses, variances and the
conditions of [GM20] Theorem A.1 are decided without rounding ([theory T61]).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from holdfast.errors import InvalidParameter, PrecisionExhausted
from holdfast.exact.parameters import Exact, exact_fraction
from holdfast.privacy.parameters import budget


class Term(NamedTuple):
    """weight |u|^power exp(-rate |u|)."""

    weight: Fraction
    power: int
    rate: Fraction


@dataclass(frozen=True)
class ExponentialSum:
    """Law:         a density on the reals, f(u) = sum over terms of weight |u|^power exp(-rate |u|); even.
    Given:       rates above 0; that f is nowhere negative and has mass 1 is checked by `attained_epsilon` and `mass`.
    """

    terms: tuple[Term, ...]

    @property
    def mass(self) -> Fraction:
        """The integral over all reals."""
        return self._moment(0)

    @property
    def variance(self) -> Fraction:
        return self._moment(2)

    def _moment(self, k: int) -> Fraction:
        return sum((2 * w * math.factorial(p + k) / r ** (p + k + 1) for w, p, r in self.terms), Fraction(0))

    def density(self, u: float) -> float:
        """f(u), rounded."""
        return math.fsum(float(w) * abs(u) ** p * math.exp(-float(r) * abs(u)) for w, p, r in self.terms)

    def tail(self, t: float) -> float:
        """P[|u| > t] for t >= 0, rounded: 2 w p! / r^(p+1) exp(-r t) sum over j <= p of (r t)^j / j! for every term."""
        parts = [
            2 * float(w * math.factorial(p) / r ** (p + 1)) * math.exp(-float(r) * t) * (float(r) * t) ** j / math.factorial(j)
            for w, p, r in self.terms
            for j in range(p + 1)
        ]
        return math.fsum(parts)

    @property
    def attained_epsilon(self) -> Fraction:
        """The smallest budget for each unit by which the true number changes: the supremum of ln f(x - a)/f(x - b) over |a - b|.

        Guarantees:  decided in rational numbers. With alpha the smallest rate, f decreases in |u| and f(u) exp(alpha |u|) increases: alpha
                     is enough; far out the ratio tends to exp(alpha |a - b|), so that less is not. PrecisionExhausted where the two
                     conditions fail or the rule of signs does not decide them.
        Reference:   [GM20] Theorem A.1 and (A.4); [theory T61].
        """
        alpha = min(term.rate for term in self.terms)
        if not (never_negative(self._slope(Fraction(0), -1)) and never_negative(self._slope(alpha, 1))):
            raise PrecisionExhausted("The conditions of the theorem do not hold for this law, or the rule of signs does not decide them.")
        return alpha

    def _slope(self, alpha: Fraction, sign: int) -> list[Term]:
        """sign times exp(-alpha u) d/du [f(u) exp(alpha u)], u > 0: the terms of f' + alpha f."""
        own = [Term(sign * w * (alpha - r), p, r) for w, p, r in self.terms]
        lowered = [Term(sign * w * p, p - 1, r) for w, p, r in self.terms if p]
        return [*own, *lowered]


def never_negative(terms: Iterable[Term]) -> bool:
    """Whether a sum of terms is zero or more for every u > 0, by the rule of signs; False also where the rule does not decide.

    One rate: a polynomial, decided by coefficients of zero or more. No powers: with the terms in the order of their rates, one change of
    sign means one zero at most, so the signs far out (the smallest rate) and at 0 (the sum of weights) decide.
    """
    together: dict[tuple[Fraction, int], Fraction] = {}
    for weight, power, rate in terms:
        together[rate, power] = together.get((rate, power), Fraction(0)) + weight
    found = [(key, weight) for key, weight in sorted(together.items()) if weight]
    weights = [weight for _, weight in found]
    if all(weight > 0 for weight in weights):
        return True
    if any(power for (_, power), _ in found):
        return False
    changes = sum((a > 0) != (b > 0) for a, b in pairwise(weights))
    return changes == 1 and weights[0] > 0 and sum(weights) >= 0


def conditional_noise(epsilon: Exact) -> ExponentialSum:
    """The noise of the first cell where both are conditioned on their total: Laplace, of variance 2 / epsilon^2."""
    rate = budget(epsilon, "epsilon")
    return ExponentialSum((Term(rate / 2, 0, rate),))


def combined_noise(epsilon: Exact, beta: Exact) -> ExponentialSum:
    """The noise beta u_1 + (1 - beta) u_2 of the l1 correction, 0 <= beta <= 1; beta = 1/2 is the l2 correction.

    Law:         [GM20] (A.1), (A.2); variance 8 (beta^2 + (1 - beta)^2) / epsilon^2.
    """
    e, b = budget(epsilon, "epsilon"), exact_fraction(beta, "beta")
    if not 0 <= b <= 1:
        raise InvalidParameter(f"beta is a weight between 0 and 1. Got {b}.")
    if b in (0, 1):
        return ExponentialSum((Term(e / 4, 0, e / 2),))
    if 2 * b == 1:
        return ExponentialSum((Term(e / 4, 0, e), Term(e**2 / 4, 1, e)))
    share = e / (4 * (2 * b - 1))
    return ExponentialSum((Term(share * b, 0, e / (2 * b)), Term(-share * (1 - b), 0, e / (2 * (1 - b)))))
