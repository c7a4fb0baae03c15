"""Certified sums of weights over a range of a segment: normalisers, tails and moments.

Three ways, by the segment's shape: geometric series in closed form; term by term where few terms matter; Euler-Maclaurin with a certified
remainder where a Gaussian is so wide that term by term would be slow.

Legend: a sum over j >= begin is taken around `begin`: w(begin + i) = w(begin) v(i), v(i) = exp(-(slope i + curvature i (i - 1) / 2)), and
S_p = sum of i^p v(i), p = 0, 1, 2. On the reals v(x) = exp(-(tilt x + curvature x^2 / 2)) with tilt = slope - curvature / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial, perm

from flint import arb, arb_series, fmpq

from holdfast.exact.balls import ball
from holdfast.exact.segments import Segment

MAX_TERMS = 1 << 17
_NATS = 200
"""Terms beyond e^-200 of the first are left to a bound."""
_ORDER = 12
"""Euler-Maclaurin keeps derivatives up to this order; the remainder is then about (width of the law)^-12."""
_BERNOULLI = {
    2: Fraction(1, 6),
    4: Fraction(-1, 30),
    6: Fraction(1, 42),
    8: Fraction(-1, 30),
    10: Fraction(5, 66),
    12: Fraction(-691, 2730),
}

Moments = tuple[arb, arb, arb]


@dataclass(frozen=True)
class _Run:
    """v(0), v(1), ..., v(last): a stretch of weights relative to its first; last is None for an endless one."""

    slope: arb
    curvature: arb
    last: int | None
    flat: bool
    geometric: bool

    def exponent(self, i: int) -> arb:
        return self.slope * i + self.curvature * (i * (i - 1)) / 2


def moment_sums(segment: Segment, begin: int, end: int | None) -> Moments:
    """Balls of the sums of j^p w(j), p = 0, 1, 2, over begin <= j <= end (None: to the segment's end), at the current precision."""
    if segment.length is not None:
        end = segment.length - 1 if end is None else min(end, segment.length - 1)
    if end is not None and end < begin:
        return arb(0), arb(0), arb(0)
    run = _Run(
        segment.drop(begin, 1),
        ball(segment.curvature),
        None if end is None else end - begin,
        segment.slope == 0 and segment.curvature == 0,
        segment.curvature == 0,
    )
    zero, one, two = _local(run)
    first = segment.weight(begin)
    return first * zero, first * (begin * zero + one), first * (begin * begin * zero + 2 * begin * one + two)


def _local(run: _Run) -> Moments:
    if run.last == 0:
        return arb(1), arb(0), arb(0)
    if run.flat:
        assert run.last is not None
        n = run.last
        return arb(n + 1), arb(n * (n + 1) // 2), arb(n * (n + 1) * (2 * n + 1) // 6)
    if run.last is not None and run.last <= MAX_TERMS:
        return _term_by_term(run)
    if run.geometric:
        return _geometric(run)
    return _term_by_term(run) if run.exponent(MAX_TERMS) > _NATS else _euler_maclaurin(run)


def _geometric(run: _Run) -> Moments:
    ratio = (-run.slope).exp()
    gap = -(-run.slope).expm1()
    base = (1 / gap, ratio / gap**2, ratio * (1 + ratio) / gap**3)  # sums of i^p ratio^i over i >= 0
    if run.last is None:
        return base
    beyond, n = (-run.slope * (run.last + 1)).exp(), run.last + 1
    sums = [base[p] - beyond * sum((comb(p, i) * n ** (p - i) * base[i] for i in range(p + 1)), arb(0)) for p in range(3)]
    return sums[0], sums[1], sums[2]


def _term_by_term(run: _Run) -> Moments:
    """Recurrence in balls; stops when a geometric bound of the rest is far below the sum."""
    weight, ratio, shrink = arb(1), (-run.slope).exp(), (-run.curvature).exp()
    zero, one, two = arb(0), arb(0), arb(0)
    small = arb(2) ** -200
    i = 0
    while run.last is None or i <= run.last:
        zero += weight
        one += i * weight
        two += i * i * weight
        weight *= ratio
        ratio *= shrink
        i += 1
        if i % 16 == 0:
            # ((i + n) / i)^p <= (1 + 1/i)^(2n) for p <= 2, so the rest of S_p is below i^p times a geometric series of this ratio
            step = (1 + arb(fmpq(1, i))) ** 2 * ratio
            rest = weight / (1 - step)
            if step < 1 and i * i * rest < small * zero:
                return zero + _up_to(rest), one + _up_to(i * rest), two + _up_to(i * i * rest)
    return zero, one, two


def _up_to(bound: arb) -> arb:
    """A ball of the interval [0, bound]."""
    return arb(0).union(bound.upper())


def _power(value: arb, n: int) -> arb:
    """value^n by products: flint's power of a ball around zero is not a number."""
    result = arb(1)
    for _ in range(n):
        result *= value
    return result


def _euler_maclaurin(run: _Run) -> Moments:
    """sum f(i), a <= i <= b, = integral + (f(a) + f(b)) / 2 + sum over 2k <= m of B_2k / (2k)! (f^(2k-1)(b) - f^(2k-1)(a)) + R,

    |R| <= 2 zeta(m) / (2 pi)^m times the integral of |f^(m)|, m = _ORDER, for f(x) = x^p v(x). The first term, i = 0, is taken out, so that
    a = 1 and the exponent grows from there.
    """
    sums = [arb(1), arb(0), arb(0)]
    for p in range(3):
        total = _integral(run, p, 1, run.last)
        for place, sign in ((1, -1), (run.last, 1)):
            if place is None:
                continue
            taylor = _taylor(run, p, place)
            total += taylor[0] / 2
            for k in range(1, _ORDER // 2 + 1):
                # taylor[n] is the n-th derivative over n!, so B_2k / (2k)! (2k-1)! = B_2k / (2k)
                total += sign * ball(_BERNOULLI[2 * k] / (2 * k)) * taylor[2 * k - 1]
        remainder = 2 * arb(_ORDER).zeta() / _power(2 * arb.pi(), _ORDER) * _derivative_integral(run, p)
        sums[p] += total + (-remainder.upper()).union(remainder.upper())
    return sums[0], sums[1], sums[2]


def _integral(run: _Run, p: int, begin: int, end: int | None) -> arb:
    """Integral of x^p v(x) from begin to end, around the middle of the square, x = middle + y."""
    middle = arb(fmpq(1, 2)) - run.slope / run.curvature
    scale = (run.curvature * middle * middle / 2).exp()

    def beyond(place: int) -> list[arb]:  # integrals of y^i exp(-curvature y^2 / 2) from place to infinity, i = 0, 1, 2
        y = place - middle
        edge = (-run.curvature * y * y / 2).exp()
        # the upper incomplete gamma function keeps its digits where erfc has lost them
        zero = (run.curvature * y * y / 2).gamma_upper(fmpq(1, 2)) / (2 * run.curvature).sqrt()
        return [zero, edge / run.curvature, (y * edge + zero) / run.curvature]

    centred = beyond(begin)
    if end is not None:
        centred = [here - there for here, there in zip(centred, beyond(end), strict=True)]
    return scale * sum((comb(p, i) * _power(middle, p - i) * centred[i] for i in range(p + 1)), arb(0))


def _taylor(run: _Run, p: int, place: int) -> list[arb]:
    """Taylor coefficients of x^p v(x) at an integer."""
    shifted = arb_series([place, 1], _ORDER)
    exponent = shifted * (run.slope - run.curvature / 2) + shifted * shifted * (run.curvature / 2)
    series = shifted**p * (-exponent).exp()
    return [series[i] for i in range(_ORDER)]


def _derivative_integral(run: _Run, p: int) -> arb:
    """A bound of the integral of |d^m/dx^m (x^p v(x))| over x >= 1.

    Leibniz: at most the sum over i <= p of C(m, i) p!/(p-i)! x^(p-i) |v^(m-i)(x)|. With y = sqrt(curvature) x + tilt / sqrt(curvature),
    |v^(n)| = curvature^(n/2) |He_n(y)| v, and |He_n| is at most the polynomial of its coefficients' absolute values. For x >= 1 y is
    positive, since tilt >= -curvature / 2, and at most sqrt(curvature) x + |tilt| / sqrt(curvature).
    """
    root = run.curvature.sqrt()
    tilt = abs(run.slope - run.curvature / 2)
    total = arb(0)
    for i in range(p + 1):
        n = _ORDER - i
        for power, coefficient in _hermite(n):
            for a in range(power + 1):
                factor = comb(_ORDER, i) * perm(p, i) * coefficient * comb(power, a)
                # root^n * (root x)^a * (tilt / root)^(power - a): n - power is even and at least 0
                total += factor * _power(root, n - power + 2 * a) * _power(tilt, power - a) * _decaying_moment(run, p - i + a)
    return total


def _decaying_moment(run: _Run, n: int) -> arb:
    """A bound of the integral of x^n v(x) over x >= 1: drop one of the two factors of v there.

    tilt may be as low as -curvature / 2; v(x) <= exp(curvature / 8) exp(-curvature (x - 1/2)^2 / 2), and (x - 1/2) >= x / 2 for x >= 1.
    """
    tilt = run.slope - run.curvature / 2
    quarter = run.curvature / 4
    half = arb(fmpq(n + 1, 2))
    square = (run.curvature / 8).exp() * half.gamma() / 2 / (half * (quarter / 2).log()).exp()
    if not tilt > 0:
        return square
    linear = factorial(n) / _power(tilt, n + 1)
    return linear if linear < square else square


def _hermite(n: int) -> list[tuple[int, int]]:
    """(power, |coefficient|) of the probabilists' Hermite polynomial He_n."""
    return [(n - 2 * k, factorial(n) // (factorial(k) * factorial(n - 2 * k) * 2**k)) for k in range(n // 2 + 1)]
