"""The exact delta of continuous Gaussian noise, and the least noise for an (epsilon, delta): proved in balls.

Legend: D is the l2 sensitivity, c = sigma / D. Two answers D apart are told apart by one normal variable of variance c^2 with mean 0 or 1:

    delta(epsilon) = Phi(1 / (2 c) - epsilon c) - e^epsilon Phi(-1 / (2 c) - epsilon c),

exactly, and answers that are nearer have no more ([theory T92]). delta falls as c grows: the searches use that, the proof of what is
returned does not.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from holdfast.errors import InvalidParameter, PrecisionExhausted
from holdfast.exact.balls import Enclosure, ball, enclose_until, enclosure, precision
from holdfast.exact.formatting import format_exact, format_up, round_up
from holdfast.exact.parameters import Exact, positive_fraction
from holdfast.privacy.parameters import budget, not_negative, probability

DIGITS = 5
"""Significant digits of a sigma_squared that is returned."""
PRECISIONS = (160, 640, 2560, 10240)
"""Bits tried in turn until a ball is narrow enough."""
NARROW = Fraction(1, 2**40)
"""Width of an enclosure, as a part of its upper end."""
DOUBLINGS = 1200
"""How often the first guess may be doubled or halved: budgets are between 1e-150 and 1e150."""


def gaussian_delta(sigma_squared: Exact, epsilon: Exact, sensitivity_squared: Exact = 1) -> float:
    """The delta of Gaussian noise at this epsilon, rounded up."""
    return gaussian_delta_bounds(sigma_squared, epsilon, sensitivity_squared).up()


def gaussian_delta_bounds(sigma_squared: Exact, epsilon: Exact, sensitivity_squared: Exact = 1) -> Enclosure:
    """Encloses the smallest delta for which independent N(0, sigma_squared) in every coordinate is (epsilon, delta)-private.

    Given:       sigma_squared > 0, epsilon >= 0 and the SQUARE of the l2 sensitivity > 0, exact.
    Guarantees:  true in every dimension, and attained by answers that differ by the sensitivity. In real numbers: draws in floating point
                 do not have it.
    Reference:   [BW18] Theorem 8; [theory T92].
    """
    ratio = positive_fraction(sigma_squared, "sigma_squared") / positive_fraction(sensitivity_squared, "sensitivity_squared")
    return _delta(ratio, not_negative(epsilon, "epsilon"))


def analytic_sigma_squared(epsilon: Exact, delta: Exact, sensitivity_squared: Exact = 1) -> Fraction:
    """The least sigma_squared, to five digits and rounded up, that makes continuous Gaussian noise (epsilon, delta)-private.

    Given:       epsilon > 0, 0 < delta < 1, and the SQUARE of the l2 sensitivity, exact.
    Guarantees:  gaussian_delta_bounds(result, epsilon, sensitivity_squared).upper <= delta, proved in balls.
    Reference:   [BW18]; [theory T92].
    """
    epsilon, delta = budget(epsilon, "epsilon"), probability(delta, "delta")
    square = positive_fraction(sensitivity_squared, "sensitivity_squared")
    enough = _first_enough(epsilon, delta)
    little = enough / 4
    for _ in range(DOUBLINGS):
        if not _is_enough(little, epsilon, delta):
            break
        enough, little = little, little / 4
    while enough - little > enough / 10 ** (DIGITS + 2):
        middle = (enough + little) / 2
        if _is_enough(middle, epsilon, delta):
            enough = middle
        else:
            little = middle
    found = round_up(enough * square, DIGITS)
    if not _is_enough(found / square, epsilon, delta):
        raise PrecisionExhausted("No sigma_squared could be proved for this promise. Use parameters of a more ordinary size.")
    return found


def ggy_sigma_squared(epsilon: Exact, delta: Exact, sensitivity_squared: Exact = 1) -> Fraction:
    """The constant of [GGY22] Lemma 3.4, ((1 + sqrt(1 + ln(1 / delta))) / epsilon)^2 times the squared sensitivity, if it is enough.

    Guarantees:  as `analytic_sigma_squared`: where the printed constant does not keep its promise, as for very small delta or large
                 epsilon, it is refused with the delta that it has ([theory T92]). Rounded up.
    Reference:   [GGY22] Lemma 3.4.
    """
    epsilon, delta = budget(epsilon, "epsilon"), probability(delta, "delta")
    square = positive_fraction(sensitivity_squared, "sensitivity_squared")
    with precision(PRECISIONS[1]):
        c = (1 + (1 - ball(delta).log()).sqrt()) / ball(epsilon)
        found = round_up(enclosure(c * c * ball(square)).upper, DIGITS)
    attained = _delta(found / square, epsilon)
    if attained.upper > delta:
        raise InvalidParameter(
            f"The constant of the paper does not keep epsilon = {format_exact(epsilon)} at delta = {format_exact(delta)}: its noise has "
            f"delta = {format_up(attained.upper, 3)}. Use calibration='analytic', which does.",
            field="calibration",
        )
    return found


def _first_enough(epsilon: Fraction, delta: Fraction) -> Fraction:
    found = 1 / epsilon**2
    for _ in range(DOUBLINGS):
        if _is_enough(found, epsilon, delta):
            return found
        found *= 4
    raise PrecisionExhausted("No sigma_squared could be proved for this promise. Use parameters of a more ordinary size.")


def _is_enough(ratio: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether balls prove delta(epsilon) <= delta; False also where they cannot tell."""
    found, _ = enclose_until(lambda: _delta_ball(ratio, epsilon), PRECISIONS, lambda e: e.upper <= delta or e.lower > delta)
    return found is not None and found.upper <= delta


def _delta(ratio: Fraction, epsilon: Fraction) -> Enclosure:
    found, _ = enclose_until(lambda: _delta_ball(ratio, epsilon), PRECISIONS, lambda e: e.upper - e.lower <= e.upper * NARROW)
    if found is None:
        raise PrecisionExhausted("The delta of this noise could not be enclosed. Use parameters of a more ordinary size.")
    return Enclosure(max(found.lower, Fraction(0)), min(found.upper, Fraction(1)))


def _delta_ball(ratio: Fraction, epsilon: Fraction) -> arb:
    """delta(epsilon) for c^2 = ratio, at the precision in use."""
    c, e = ball(ratio).sqrt(), ball(epsilon)
    return _normal_tail(e * c - 1 / (2 * c)) - e.exp() * _normal_tail(e * c + 1 / (2 * c))


def _normal_tail(x: arb) -> arb:
    """P[a standard normal variable is above x]."""
    return (x / arb(2).sqrt()).erfc() / 2
