"""Certified sums of weights over a range of a segment: normalisers, tails and moments.

Three ways, by the segment's shape: geometric series in closed form; term by term where few terms matter; Euler-Maclaurin with a certified
remainder where a Gaussian is so wide that term by term would be slow.

Legend: S_p = sum over a <= j <= b of j^p w(j), p = 0, 1, 2.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial

from flint import arb, arb_series, fmpq

from holdfast.exact.balls import ball
from holdfast.exact.segments import Segment

MAX_TERMS = 1 << 17
_ORDER = 8
"""Euler-Maclaurin keeps derivatives below this order; the remainder is then about (width of the law)^-8."""


def moment_sums(segment: Segment, begin: int, end: int | None) -> tuple[arb, arb, arb]:
    """Balls of S_0, S_1, S_2 over begin <= j <= end (None: to the segment's end), at the current precision."""
    if segment.length is not None:
        end = segment.length - 1 if end is None else min(end, segment.length - 1)
    if end is not None and end < begin:
        return arb(0), arb(0), arb(0)
    if segment.curvature == 0:
        return _geometric(segment, begin, end)
    if segment.reach(800) - begin > MAX_TERMS and (end is None or end - begin > MAX_TERMS):
        return _euler_maclaurin(segment, begin, end)
    return _term_by_term(segment, begin, end)


def _geometric(segment: Segment, begin: int, end: int | None) -> tuple[arb, arb, arb]:
    if segment.slope == 0:
        assert end is not None
        scale = (-ball(segment.offset)).exp()

        def power_sum(p: int, n: int) -> int:  # sum of j^p for 0 <= j <= n
            return (n + 1, n * (n + 1) // 2, n * (n + 1) * (2 * n + 1) // 6)[p]

        zero, one, two = (scale * (power_sum(p, end) - power_sum(p, begin - 1)) for p in range(3))
        return zero, one, two
    ratio = (-ball(segment.slope)).exp()
    gap = -(-ball(segment.slope)).expm1()
    base = (1 / gap, ratio / gap**2, ratio * (1 + ratio) / gap**3)  # sums of i^p ratio^i over i >= 0

    def from_place(n: int) -> list[arb]:  # sums of j^p w(j) over j >= n
        first = segment.weight(n)
        return [first * sum((comb(p, i) * n ** (p - i) * base[i] for i in range(p + 1)), arb(0)) for p in range(3)]

    sums = from_place(begin)
    if end is not None:
        sums = [here - beyond for here, beyond in zip(sums, from_place(end + 1), strict=True)]
    return sums[0], sums[1], sums[2]


def _term_by_term(segment: Segment, begin: int, end: int | None) -> tuple[arb, arb, arb]:
    """Recurrence in balls; stops when a geometric bound of the rest is far below the sum."""
    weight = segment.weight(begin)
    ratio = (-segment.drop(begin, 1)).exp()
    shrink = (-ball(segment.curvature)).exp()
    zero, one, two = arb(0), arb(0), arb(0)
    small = arb(2) ** -200
    j = begin
    while end is None or j <= end:
        zero += weight
        one += j * weight
        two += j * j * weight
        weight *= ratio
        ratio *= shrink
        j += 1
        if (j - begin) % 16 == 0:
            # ((j + i) / j)^p <= (1 + 1/j)^(2i) for p <= 2, so the rest of S_p is below j^p times a geometric series of this ratio
            step = (1 + arb(fmpq(1, j))) ** 2 * ratio
            rest = weight / (1 - step)
            if step < 1 and j * j * rest < small * zero:
                return zero + _up_to(rest), one + _up_to(j * rest), two + _up_to(j * j * rest)
    return zero, one, two


def _up_to(bound: arb) -> arb:
    """A ball of the interval [0, bound]."""
    return arb(0).union(bound.upper())


def _euler_maclaurin(segment: Segment, begin: int, end: int | None) -> tuple[arb, arb, arb]:
    """sum f(j) = integral + (f(a) + f(b)) / 2 + sum B_2i / (2i)! (f^(2i-1)(b) - f^(2i-1)(a)) + R,

    |R| <= 2 zeta(m) / (2 pi)^m times the integral of |f^(m)|, m = _ORDER, for f(x) = x^p w(x).
    """
    sums = []
    for p in range(3):
        total = _integral(segment, p, begin, end)
        for place, sign in ((begin, -1), (end, 1)):
            if place is None:
                continue
            taylor = _taylor(segment, p, place)
            total += taylor[0] / 2
            for i in range(1, _ORDER // 2):
                # taylor[n] is the n-th derivative over n!, so B_2i / (2i)! (2i-1)! = B_2i / (2i)
                total += sign * ball(_BERNOULLI[2 * i] / (2 * i)) * taylor[2 * i - 1]
        remainder = 2 * arb(_ORDER).zeta() / (2 * arb.pi()) ** _ORDER * _derivative_integral(segment, p, begin)
        sums.append(total + (-remainder.upper()).union(remainder.upper()))
    return sums[0], sums[1], sums[2]


def _power(value: arb, n: int) -> arb:
    """value^n by products: flint's power of a ball around zero is not a number."""
    result = arb(1)
    for _ in range(n):
        result *= value
    return result


def _square(segment: Segment) -> tuple[arb, arb, arb]:
    """(middle, curvature, scale) with w(x) = scale * exp(-curvature (x - middle)^2 / 2)."""
    curvature = ball(segment.curvature)
    middle = arb(fmpq(1, 2)) - ball(segment.slope) / curvature
    scale = (curvature * middle * middle / 2 - ball(segment.offset)).exp()
    return middle, curvature, scale


def _integral(segment: Segment, p: int, begin: int, end: int | None) -> arb:
    """Integral of x^p w(x) from begin to end, by complementary error functions: no cancellation far out."""
    middle, curvature, scale = _square(segment)

    def beyond(place: int) -> list[arb]:  # integrals of (x - middle)^i exp(...) from place to infinity, i = 0, 1, 2
        x = place - middle
        edge = (-curvature * x * x / 2).exp()
        zero = (arb.pi() / (2 * curvature)).sqrt() * (x * (curvature / 2).sqrt()).erfc()
        return [zero, edge / curvature, (x * edge + zero) / curvature]

    centred = beyond(begin)
    if end is not None:
        centred = [here - there for here, there in zip(centred, beyond(end), strict=True)]
    return scale * sum((comb(p, i) * _power(middle, p - i) * centred[i] for i in range(p + 1)), arb(0))


def _taylor(segment: Segment, p: int, place: int) -> list[arb]:
    """Taylor coefficients of x^p w(x) at an integer."""
    middle, curvature, scale = _square(segment)
    shifted = arb_series([place - middle, 1], _ORDER)
    series = arb_series([place, 1], _ORDER) ** p * (shifted * shifted * (-curvature / 2)).exp() * scale
    return [series[i] for i in range(_ORDER)]


def _derivative_integral(segment: Segment, p: int, begin: int) -> arb:
    """A bound of the integral of |d^m/dx^m (x^p w(x))| over x >= begin.

    With y = sqrt(curvature) (x - middle), x^p is a polynomial in y; written in Hermite polynomials, d^m/dy^m (He_i e^(-y^2/2)) is
    +-He_(i+m) e^(-y^2/2). Bound |He_n| by its coefficients' absolute values and integrate by incomplete gamma functions.
    """
    middle, curvature, scale = _square(segment)
    root = curvature.sqrt()
    edge = (begin - middle) * root
    # begin >= 0 and the middle is at most 1/2, so the edge is hardly negative; then the whole line bounds the half line
    whole_line = not edge > 0
    coefficients = [comb(p, i) * _power(middle, p - i) / _power(root, i) for i in range(p + 1)]  # x^p = sum c_i y^i
    in_hermite = [abs(coefficients[0]) + (abs(coefficients[2]) if p == 2 else 0), *[abs(c) for c in coefficients[1:]]]
    total = arb(0)
    for i, weight in enumerate(in_hermite):
        for power, coefficient in _hermite(i + _ORDER):
            half = arb(fmpq(power + 1, 2))
            moment = arb(2) ** (half - 1) * (half.gamma() * 2 if whole_line else (edge * edge / 2).gamma_upper(half))
            total += weight * coefficient * moment
    return total * abs(scale) * _power(root, _ORDER - 1)


def _hermite(n: int) -> list[tuple[int, int]]:
    """(power, |coefficient|) of the probabilists' Hermite polynomial He_n."""
    return [(n - 2 * k, factorial(n) // (factorial(k) * factorial(n - 2 * k) * 2**k)) for k in range(n // 2 + 1)]


_BERNOULLI = {2: Fraction(1, 6), 4: Fraction(-1, 30), 6: Fraction(1, 42)}
