"""The optimal composition of k equal promises (Kairouz, Oh and Viswanath), in balls, rounded up.

k mechanisms, each (epsilon, delta)-differentially private, together are (epsilon', delta') exactly when ([CKS20] section 3.1)

    D(E') <= T,   T = 1 - (1 - delta') / (1 - delta)^k,   E' = e^epsilon',
    D(E') = (1 + e^epsilon)^-k  sum over l of C(k, l) max(0, e^(l epsilon) - E' e^((k - l) epsilon)).

A term is positive from some l on, so the sum is the largest of its tails: D(E') = max over m of A_m - E' B_m, with A_m and B_m the sums of
C(k, l) e^(l epsilon) and C(k, l) e^((k - l) epsilon) over l >= m, over (1 + e^epsilon)^k. Nothing has to be decided then:

    the smallest E' is the largest of (A_m - T) / B_m over 0 <= m <= k,   and epsilon' = max(0, log E').

Both sums hold positive terms only, and are taken from l = k down: no digits are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from flint import arb

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import Enclosure, ball, enclosure, precision
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import Exact, exact_fraction
from holdfast.privacy.parameters import at_least_one, not_negative, probability

MAX_PARTS = 100_000
"""Promises that are composed one by one in the sums; more would take minutes."""
BITS = 320


def optimal_composition(epsilon: Exact, delta: Exact, k: int, delta_total: Exact) -> float:
    """The smallest epsilon' such that k promises of (epsilon, delta) together give (epsilon', delta_total), rounded up.

    Given:       epsilon >= 0; 0 <= delta < 1; k >= 1; delta_total < 1 with 1 - (1 - delta)^k <= delta_total. Exact. k adaptive choices are
                 covered too.
    Guarantees:  valid for any k mechanisms with the promise, for each pair of tables by itself; no smaller number is valid for all.
    Reference:   [KOV17], [CKS20] section 3.1; module docstring.
    """
    return optimal_composition_bounds(epsilon, delta, k, delta_total).up() + 0.0


def optimal_composition_bounds(epsilon: Exact, delta: Exact, k: int, delta_total: Exact) -> Enclosure:
    """Encloses the smallest epsilon'; the upper end is valid."""
    epsilon, delta, k = _read(epsilon, delta, k)
    delta_total = exact_fraction(delta_total, "delta_total")
    if not 0 <= delta_total < 1:
        raise InvalidParameter(f"delta_total must be zero or more and below 1. Got {format_exact(delta_total)}.")
    with precision(BITS):
        allowed = _enclose_allowance(delta, k, delta_total)
        low, high = arb(0), arb(0)  # of log E', at least 0
        for a, b in _tails(epsilon, k):
            gap = a - allowed
            if not gap > 0:
                high = _larger(high, gap.upper() / b) if gap.upper() > 0 else high
                continue
            low, high = _larger(low, gap / b), _larger(high, gap / b)
        one = arb(1)
        lower = enclosure(_larger(low, one).log()).lower
        upper = enclosure(_larger(high, one).log()).upper
    return Enclosure(max(lower, Fraction(0)), min(max(upper, Fraction(0)), k * epsilon))


def optimal_composition_delta(epsilon: Exact, delta: Exact, k: int, epsilon_total: Exact) -> float:
    """The smallest delta' such that k promises of (epsilon, delta) together give (epsilon_total, delta'), rounded up."""
    return min(optimal_composition_delta_bounds(epsilon, delta, k, epsilon_total).up(), 1.0) + 0.0  # never -0.0


def optimal_composition_delta_bounds(epsilon: Exact, delta: Exact, k: int, epsilon_total: Exact) -> Enclosure:
    """Encloses 1 - (1 - delta)^k (1 - D(e^epsilon_total))."""
    epsilon, delta, k = _read(epsilon, delta, k)
    epsilon_total = not_negative(epsilon_total, "epsilon_total")
    with precision(BITS):
        if epsilon_total >= k * epsilon:
            excess = arb(0)
        else:
            factor, excess = ball(epsilon_total).exp(), arb(0)
            for a, b in _tails(epsilon, k):
                excess = _larger(excess, a - factor * b)
        kept = (ball(1 - delta).log() * k).exp()
        lower, upper = enclosure(1 - kept + kept * excess if delta else excess)
    return Enclosure(max(lower, Fraction(0)), min(max(upper, Fraction(0)), Fraction(1)))


def _read(epsilon: Exact, delta: Exact, k: int) -> tuple[Fraction, Fraction, int]:
    epsilon = not_negative(epsilon, "epsilon")
    delta = Fraction(0) if exact_fraction(delta, "delta") == 0 else probability(delta, "delta")
    k = at_least_one(k, "k")
    if k > MAX_PARTS:
        raise RequestTooLarge(f"The optimal composition of {k} promises would take very long. Compose at most {MAX_PARTS}, or use zCDP.")
    return epsilon, delta, k


def _enclose_allowance(delta: Fraction, k: int, delta_total: Fraction) -> arb:
    """A ball of T; refuses where T is not proved to be zero or more."""
    if delta == 0:
        return ball(delta_total)
    if k == 1 and delta == delta_total:
        return arb(0)
    allowed = 1 - ball(1 - delta_total) * (-k * ball(1 - delta).log()).exp()
    if not allowed >= 0:
        raise InvalidParameter(
            f"{k} promises with delta = {format_exact(delta)} have a delta of 1 - (1 - {format_exact(delta)})^{k} together at the least. "
            f"delta_total = {format_exact(delta_total)} is below that. Write a larger one."
        )
    return allowed


def _tails(epsilon: Fraction, k: int) -> Iterator[tuple[arb, arb]]:
    """(A_m, B_m) for m = k, k - 1, ..., 0."""
    grow, shrink = ball(epsilon).exp(), (-ball(epsilon)).exp()
    up = (-k * shrink.log1p()).exp()  # C(k, l) e^(l epsilon) / (1 + e^epsilon)^k at l = k
    down = (-k * (grow + 1).log()).exp()  # C(k, l) e^((k - l) epsilon) / (1 + e^epsilon)^k there
    a, b = up, down
    yield a, b
    for l in range(k, 0, -1):  # from l to l - 1
        up, down = up * l * shrink / (k - l + 1), down * l * grow / (k - l + 1)
        a, b = a + up, b + down
        yield a, b


def _larger(x: arb, y: arb) -> arb:
    """A ball of the larger of the two numbers."""
    return x.max(y)
