"""How much Gaussian noise an (epsilon, delta) promise needs: sigma_squared, rounded up, the promise proved for what is returned.

The law: exp(-|z|_2^2 / (2 sigma_squared)) on any lattice of moves, in any dimension. Two tables at l2 distance r are then
r^2 / (2 sigma_squared)-zCDP apart ([theory R7]), so Proposition 7 of [CKS20] applies to each pair. The promise is that of [DGGY22]
Definition 2: for every pair with the same kept totals, at distance r,

    P[M(x) in E] <= e^(epsilon r) P[M(x') in E] + delta h(r),   h(r) = (e^(epsilon r) - 1) / (e^epsilon - 1).

Legend: t = alpha - 1 > 0 as in conversions.py; s2 = sigma_squared; L = log(1/delta); lambda the l2 length of the smallest secret.
What has to be shown is that for every r >= lambda with r^2 whole there is a t with

    F_t(r) = t ((1 + t) r^2 / (2 s2) - epsilon r) - t log(1 + 1/t) - log(1 + t) - log h(r) + L <= 0.

(1) For fixed t, F_t is convex in r: a parabola opening upwards, minus log h, which is concave. So F_t <= 0 at both ends of an
    interval proves it on all of it: a few intervals cover everything, each by two evaluations in balls at its ends.
(2) Where delta h(r) >= 1 there is nothing to show; h increases, so this ends the list.
(3) The smallest r are taken one by one, each with its own t: an interval that begins at lambda would ask for more than pairs need.
(4) F_t falls as s2 grows, so the valid s2 are all those above some number; the search for it is in floats, the proof is in balls.

The closed form `simple`: log delta <= -(epsilon r - rho)^2 / (4 rho) with rho = r^2 / (2 s2), and h(r) >= e^(epsilon (r - 1)) for
r >= 1, turn the condition into epsilon^2 s2 + epsilon r + r^2 / (4 s2) - 2 epsilon >= 2 L. The left side increases in r, and the
condition holds at r = 1 for s2 = (2 L + epsilon) / epsilon^2. (The bound on delta needs r <= 2 epsilon s2; beyond, log(delta h(r)) is at
least 2 epsilon^2 s2 - epsilon - L = 3 L + epsilon > 0.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from flint import arb

from holdfast.errors import InvalidParameter, PrecisionExhausted
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.formatting import format_exact, round_up, unit_in_last_place
from holdfast.exact.parameters import Exact, positive_fraction
from holdfast.privacy.conversions import clamp_to_float, log_of, root
from holdfast.privacy.parameters import at_least_one, budget, probability

DIGITS = 5
"""Significant digits of a sigma_squared that is returned."""
ONE_BY_ONE = 8
"""Values of r^2 looked at singly before intervals take over."""
STEPS = tuple(1 + Fraction(2) ** -k for k in range(-2, 16))
"""Factors b/a of an interval [a, b] that are tried, widest first."""
MAX_INTERVALS = 5000
"""Intervals after which a proof is given up; a slightly larger sigma_squared needs far fewer."""
LARGEST = 10**36
"""Beyond this no law can be drawn, so no sharper number is looked for."""
BITS = 256


def simple_sigma_squared(epsilon: Exact, delta: Exact) -> Fraction:
    """(2 log(1/delta) + epsilon) / epsilon^2, rounded up to a short decimal.

    Given:       epsilon > 0, 0 < delta < 1, exact, in the sense of [DGGY22] Definition 2 for each unit of l2 distance.
    Guarantees:  Gaussian noise of this sigma_squared on any lattice keeps the promise.
    Reference:   module docstring.
    """
    epsilon, delta = budget(epsilon, "epsilon"), probability(delta, "delta")
    with precision(BITS):
        return round_up(enclosure((-2 * ball(delta).log() + ball(epsilon)) / ball(epsilon) ** 2).upper, DIGITS)


def tight_sigma_squared(epsilon: Exact, delta: Exact, smallest_squared: int = 1) -> Fraction:
    """The smallest sigma_squared, to five digits and rounded up, for which Proposition 7 proves the promise at every distance.

    Given:       epsilon > 0, 0 < delta < 1, exact, in the sense of [DGGY22] Definition 2 for each unit of l2 distance;
                 smallest_squared >= 1: the squared l2 length of the lattice's shortest move, or a whole number proved to be below it.
    Guarantees:  Gaussian noise of this sigma_squared on any such lattice keeps the promise, proved for every r in balls. It never
                 exceeds what `simple_sigma_squared` gives.
    Reference:   [CKS20] Proposition 7; module docstring.
    """
    epsilon, delta = budget(epsilon, "epsilon"), probability(delta, "delta")
    smallest_squared = at_least_one(smallest_squared, "smallest_squared")
    check_says_something(epsilon, delta, smallest_squared)
    simple = simple_sigma_squared(epsilon, delta)
    if simple > LARGEST:
        return simple
    found = max(_needed_variance(epsilon, delta, r) for r in _starting_points(epsilon, delta, smallest_squared))
    for candidate in _candidates(found) if 0 < found < math.inf else ():
        if candidate >= simple:
            break
        if is_enough(candidate, epsilon, delta, smallest_squared):
            return candidate
    return simple


def check_says_something(epsilon: Exact, delta: Exact, smallest_squared: int) -> None:
    """Refuse a promise that allows a delta of 1 at every distance that two tables can have, however it is calibrated."""
    epsilon, delta = budget(epsilon, "epsilon"), probability(delta, "delta")
    with precision(BITS):
        if _Condition(Fraction(1), epsilon, delta).is_trivial(ball(smallest_squared).sqrt()):
            raise InvalidParameter(
                f"With delta = {format_exact(delta)} nothing is promised: every secret is at a squared l2 distance of {smallest_squared} "
                "or more, and there Definition 2 allows a delta of 1. Write a smaller delta."
            )


def pair_sigma_squared(epsilon: Exact, delta: Exact, distance_squared: Exact) -> Fraction:
    """The smallest sigma_squared, to five digits and rounded up, that makes one pair (epsilon, delta) by Proposition 7.

    Given:       epsilon > 0, 0 < delta < 1: the promise for two tables at this squared l2 distance > 0 (2: one person changes cell). Exact.
    Guarantees:  zcdp_delta(distance_squared / (2 sigma_squared), epsilon) <= delta, proved in balls. Nearer pairs have it too.
    Reference:   [CKS20] Proposition 7.
    """
    epsilon, delta = budget(epsilon, "epsilon"), probability(delta, "delta")
    distance_squared = positive_fraction(distance_squared, "distance_squared")
    rate, t = _largest_rho(clamp_to_float(epsilon), log_of(delta))
    start = clamp_to_float(distance_squared) / (2 * rate) if rate > 0 else math.inf
    for candidate in _candidates(start) if 0 < start < math.inf else ():
        with precision(BITS):
            if _log_delta(t, distance_squared / (2 * candidate), ball(epsilon)) <= ball(delta).log():
                return candidate
    raise PrecisionExhausted("No sigma_squared could be proved for this promise. Use parameters of a more ordinary size.")


def paper_sigma_squared(epsilon: Exact, delta: Exact, dimension: int, log_gram_determinant: float | Fraction | arb) -> Fraction:
    """A constant of the paper's order, which grows with the dimension; kept to show what the dimension-free theorem saves.

    Law:         2 u / epsilon^2 with u the largest solution of u = L + max(0, log K) + m log(2 u / epsilon), where
                 K = 4 2^m V_m / sqrt(det(B^T B)), V_m is the volume of the unit ball and B a basis of the lattice.
    Given:       epsilon > 0, 0 < delta < 1, exact; dimension m >= 1; the natural logarithm of det(B^T B). A float will do for it.
    Guarantees:  never below `simple_sigma_squared`, on which the promise rests; rounded up.
    Reference:   [DGGY22] Definition 13 and Theorem 14, whose own constant is in an appendix that was not at hand (a reconstruction).
    """
    epsilon, delta = budget(epsilon, "epsilon"), probability(delta, "delta")
    dimension = at_least_one(dimension, "dimension")
    with precision(BITS):
        log_determinant = log_gram_determinant if isinstance(log_gram_determinant, arb) else ball(Fraction(log_gram_determinant))
        m = ball(dimension)
        log_volume = m / 2 * arb.pi().log() - (m / 2 + 1).lgamma()
        log_k = (m + 2) * ball(2).log() + log_volume - log_determinant / 2
        fixed = -ball(delta).log() + log_k.max(arb(0))
        u = fixed + m * (m + 2 / ball(epsilon) + fixed)  # above every solution: the iteration comes down to the largest
        for _ in range(2000):
            below = fixed + m * (2 * u / ball(epsilon)).log()
            if not below > 0 or abs(u - below) <= u / 10**9:  # none at all where epsilon is very large
                break
            u = ball(enclosure(below).upper)
        return max(round_up(enclosure(2 * u / ball(epsilon) ** 2).upper, DIGITS), simple_sigma_squared(epsilon, delta))


def is_enough(sigma_squared: Exact, epsilon: Exact, delta: Exact, smallest_squared: int = 1) -> bool:
    """Whether balls prove the promise of Definition 2 for this sigma_squared at every r >= sqrt(smallest_squared) with r^2 whole.

    True is a proof. False is the lack of one: the number may be too small, or so near the smallest that intervals do not show it.
    """
    sigma_squared, smallest_squared = positive_fraction(sigma_squared, "sigma_squared"), at_least_one(smallest_squared, "smallest_squared")
    epsilon, delta = budget(epsilon, "epsilon"), probability(delta, "delta")
    check = _Condition(sigma_squared, epsilon, delta)
    with precision(BITS):
        for square in range(smallest_squared, smallest_squared + ONE_BY_ONE):
            r = ball(square).sqrt()
            if check.is_trivial(r):
                return True
            if not check.holds(r, check.best_order(math.sqrt(square))):
                return False
        a = Fraction(math.isqrt((smallest_squared + ONE_BY_ONE) << 80), 1 << 40)  # rounded down
        step = 0
        for _ in range(MAX_INTERVALS):
            if check.is_trivial(ball(a)):
                return True
            step = check.widest(a, max(step - 1, 0))
            if step == len(STEPS):
                return False
            a = Fraction(math.floor(a * STEPS[step] * 2**40), 2**40)  # short, and rounded down: the next interval overlaps this one
    return False


class _Condition:
    """F_t(r) <= 0 of the module docstring, for one sigma_squared; precision is set by the caller."""

    def __init__(self, sigma_squared: Fraction, epsilon: Fraction, delta: Fraction) -> None:
        self.sigma_squared, self.epsilon = sigma_squared, epsilon
        with precision(BITS):
            self.epsilon_ball = ball(epsilon)
            self.offset = ball(delta).log() - _ball_log_expm1(self.epsilon_ball)

    def log_allowed(self, r: arb) -> arb:
        return self.offset + _ball_log_expm1(self.epsilon_ball * r)

    def is_trivial(self, r: arb) -> bool:
        return bool(self.log_allowed(r) >= 0)

    def holds(self, r: arb, t: float) -> bool:
        return bool(_log_delta(t, r * r / (2 * ball(self.sigma_squared)), self.epsilon_ball * r) <= self.log_allowed(r))

    def best_order(self, r: float) -> float:
        rho, cost = r * r / (2 * clamp_to_float(self.sigma_squared)), clamp_to_float(self.epsilon) * r
        return root(lambda t: (1 + 2 * t) * rho - cost - math.log1p(1 / t))[1]

    def widest(self, a: Fraction, begin: int) -> int:
        """The first of STEPS, from place `begin` on, whose interval [a, a step] one t is proved to cover; len(STEPS) if there is none."""
        start = ball(a)
        for place in range(begin, len(STEPS)):
            t = self.best_order(clamp_to_float(a) * math.sqrt(STEPS[place]))
            if self.holds(start, t) and self.holds(ball(a * STEPS[place]), t):
                return place
        return len(STEPS)


def _log_delta(t: float, rho: Fraction | arb, epsilon: arb) -> arb:
    """g(t) of conversions.py, for parameters that are balls."""
    order = ball(Fraction(t))
    rate = ball(rho) if isinstance(rho, Fraction) else rho
    return order * ((1 + order) * rate - epsilon) - order * (1 / order).log1p() - order.log1p()


def _largest_rho(epsilon: float, log_delta: float) -> tuple[float, float]:
    """(rho, t): in floats, the largest rho with g(t) = log delta for some t, and that t.

    rho(t) = (epsilon + log(1 + 1/t) + (log delta + log(1 + t)) / t) / (1 + t). At its largest g'(t) = 0, that is
    (1 + 2 t) rho(t) = epsilon + log(1 + 1/t), and this is where the left side first passes the right.
    """

    def rho(t: float) -> float:
        return (epsilon + math.log1p(1 / t) + (log_delta + math.log1p(t)) / t) / (1 + t)

    t = root(lambda t: (1 + 2 * t) * rho(t) - epsilon - math.log1p(1 / t))[1]
    return rho(t), t


def _needed_variance(epsilon: Fraction, delta: Fraction, r: float) -> float:
    """In floats: the sigma_squared that a pair at distance r needs."""
    cost = clamp_to_float(epsilon) * r
    return r * r / (2 * _largest_rho(cost, _log_allowance(epsilon, delta, r))[0])


def _log_allowance(epsilon: Fraction, delta: Fraction, r: float) -> float:
    return log_of(delta) + _log_expm1(clamp_to_float(epsilon) * r) - _log_expm1(clamp_to_float(epsilon))


def _ball_log_expm1(x: arb) -> arb:
    return x + (-(-x).expm1()).log()  # this way round nothing overflows


def _log_expm1(x: float) -> float:
    return math.log(math.expm1(x)) if x < 30 else x + math.log1p(-math.exp(-x))


def _starting_points(epsilon: Fraction, delta: Fraction, smallest_squared: int) -> Iterator[float]:
    """Distances at which the need for noise is worth looking at: the first ones, then a few further out."""
    yield math.sqrt(smallest_squared)
    squares = [smallest_squared + k for k in range(1, 2 * ONE_BY_ONE)]
    squares += [math.ceil(smallest_squared * 1.5**k) for k in range(1, 60)]
    for square in squares:
        r = math.sqrt(square)
        if _log_allowance(epsilon, delta, r) > -1e-9:
            return
        yield r


def _candidates(start: float) -> Iterator[Fraction]:
    """Numbers of five digits from the first at or above `start`, one unit apart at first, then further."""
    value = round_up(Fraction(start), DIGITS)
    step = unit_in_last_place(value, DIGITS)
    yield value
    for k in range(24):
        value = round_up(value + step * 2 ** max(k - 4, 0), DIGITS)
        yield value
