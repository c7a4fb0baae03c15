"""The correction for summing a Gaussian over the integers instead of integrating it, and a convex function above it.

Legend: H(x) = log sum_n exp(-2 pi^2 n^2 / x), the logarithm of (sum over the integers) / (integral) of exp(-k^2 x / 2); x = 1 / s^2. In
theta.py's terms H(1 / s^2) = log(theta_s(0) / (s sqrt(2 pi))): normalised, unlike theta_s.

    majorant(x) = H(x) up to KNEE, then H(KNEE) + SLOPE (x - KNEE).

Increasing, convex and nowhere below H [theory T161]. `certify` proves by ball arithmetic what the proof leaves to computation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from holdfast.errors import InternalError
from holdfast.exact.balls import ball, enclosure, precision

KNEE = Fraction(83, 10)
"""H is convex up to here; its inflection is at 8.3889."""
SLOPE = Fraction(4497, 100_000)
"""Above the largest slope of H, .0449648."""
POISSON_FROM = Fraction(2)
"""Below this x the proof is by hand."""
LARGE = Fraction(12)
"""From here on H'(x) <= 1 / (2 x) < SLOPE."""
TABLE_BITS = 96
HALVINGS = 20


def log_theta(x: arb) -> arb:
    """H(x) for x > 0, as a ball at flint's current precision."""
    return _sum_over_integers(x) if x > 6 else _poisson_sum(x)


def majorant(x: arb) -> arb:
    """The convex majorant at x > 0, as a ball at flint's current precision."""
    knee = ball(KNEE)
    if x <= knee:
        return log_theta(x)
    line = log_theta(knee) + ball(SLOPE) * (x - knee)
    if x >= knee:
        return line
    return log_theta(x.lower()).union(line)  # both increase, and they meet at the knee


def majorant_doubles(arguments: Iterable[Fraction]) -> NDArray[np.float64]:
    """The majorant at rational points, each the double nearest to a ball of TABLE_BITS bits: relative error below 2^-52."""
    check_certified()
    with precision(TABLE_BITS):
        return np.array([enclosure(majorant(ball(x))).nearest() for x in arguments], dtype=np.float64)


def _poisson_sum(x: arb) -> arb:
    """H by its definition: good for x up to about 6."""
    step = 2 * arb.pi() ** 2 / x
    last = 1 + math.isqrt(int(ctx.prec / max(1.0, float(step.lower()))))
    terms = [(-(n * n) * step).exp() for n in range(1, last + 2)]
    rest = arb(0).union(2 * terms[-1])  # the ratio of terms falls from below 1/2 on
    return (2 * sum(terms[:-1], rest)).log1p()


def _sum_over_integers(x: arb) -> arb:
    """H by Poisson summation: log sqrt(x / 2 pi) + log sum_k exp(-k^2 x / 2)."""
    last = 1 + math.isqrt(int(ctx.prec / max(1.0, float(x.lower()) / 2)))
    terms = [(-(k * k) * x / 2).exp() for k in range(1, last + 2)]
    rest = arb(0).union(2 * terms[-1])
    return (x / (2 * arb.pi())).log() / 2 + (2 * sum(terms[:-1], rest)).log1p()


@cache
def certify() -> bool:
    """Prove parts (ii) and (iii) of [theory T161] by ball arithmetic: H'' > 0 on [2, KNEE], H' < SLOPE on [KNEE, LARGE]."""
    with precision(64):
        slope = ball(SLOPE)
        bent = _holds(lambda x: _derivatives(x)[1] > 0, POISSON_FROM, KNEE)
        return bent and _holds(lambda x: _derivatives(x)[0] < slope, KNEE, LARGE)


def check_certified() -> None:
    """Before a table is made of the majorant: the proof by computation, once in a process (30 ms)."""
    if not certify():
        raise InternalError("The correction was not proved convex and steep enough: nothing is drawn.")


def _holds(test: Callable[[arb], bool], begin: Fraction, end: Fraction, halvings: int = HALVINGS) -> bool:
    """Whether balls that together hold [begin, end] all pass the test; a ball that does not is halved, a few times."""
    if test(ball(begin).union(ball(end))):
        return True
    middle = (begin + end) / 2
    return halvings > 0 and all(_holds(test, *half, halvings - 1) for half in ((begin, middle), (middle, end)))


def _derivatives(x: arb) -> tuple[arb, arb]:
    """H' and H'' on a ball, from the terms n = 1, ..., 8 of the definition; x <= 12, so that the others are below 10^-50."""
    theta, first, second = arb(1), arb(0), arb(0)
    for n in range(1, 9):
        u = n * n * 2 * arb.pi() ** 2 / x
        term = 2 * (-u).exp()
        theta += term
        first += term * u / x
        second += term * (u * u - 2 * u) / (x * x)
    left_out = arb(0, 1e-50)
    theta, first, second = theta + left_out, first + left_out, second + left_out
    slope = first / theta
    return slope, second / theta - slope * slope
