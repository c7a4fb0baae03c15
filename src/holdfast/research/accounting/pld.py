"""Privacy loss distributions, by Google's dp-accounting: the sharpest bound for sequences of unlike promises.

What may enter is what has a proved worst case, a pair of laws that dominates every mechanism with the promise:

    (epsilon, delta)     the loss is infinite with probability delta, else +epsilon or -epsilon (Kairouz, Oh and Viswanath); pure: delta = 0
    discrete Gaussian    N_Z(0, sigma_squared) against the same law moved by the sensitivity: the law is log-concave, so a smaller move is
                         dominated by a larger one ([CKS20] Theorem 6)

rho-zCDP alone has no such pair, and is never turned into one here.

dp-accounting rounds losses up to a grid, so its estimate is pessimistic, but it computes in floating point with Fourier transforms: this is
the one bound in privacy/ that balls do not certify, and rounding does make it a little too small. That is met by asking for a smaller
delta (ALLOWANCE; measured, not proved), and a delta too small for that gets no bound. sigma is the square root rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from holdfast.exact.balls import float_up
from holdfast.privacy.conversions import clamp_to_float, zcdp_epsilon

ALLOWANCE = (1e-12, 1e-15)
"""Taken off the delta that is asked for: so much, and so much for each promise. Against exact values dp-accounting's delta was seen too
small by 2.3e-13 for 5000 promises, and by less than 1e-13 for a thousand."""
SHARE = 10
"""The allowance must be at most one part in so many of delta, else there is no bound."""
FINE = 20_000
"""Grid points within the range of the composed loss, at the least."""
MOST_POINTS = 2_000_000
SHARP = 0.001
"""What rounding every loss up to the grid may add to epsilon, relative to it, where MOST_POINTS allow it."""


class EqualPromises(NamedTuple):
    """`times` equal promises of (epsilon, delta)."""

    epsilon: Fraction
    delta: Fraction
    times: int = 1


class EqualGaussians(NamedTuple):
    """`times` equal discrete Gaussians on whole numbers."""

    sigma_squared: Fraction
    sensitivity: int
    times: int = 1

    @property
    def rho(self) -> Fraction:
        return Fraction(self.sensitivity**2) / (2 * self.sigma_squared)


def allowance(count: int) -> float:
    """What is taken off delta for the rounding errors of `count` promises."""
    return ALLOWANCE[0] + ALLOWANCE[1] * count


def is_installed() -> bool:
    """Whether dp-accounting can be imported (the extra `accounting`)."""
    import importlib.util

    return importlib.util.find_spec("dp_accounting") is not None


def pld_epsilon(pairs: Sequence[EqualPromises], gaussians: Sequence[EqualGaussians], delta: Fraction, *, pessimistic: bool = True) -> float:
    """epsilon at this delta for the composition of all of them, by dp-accounting; infinite where it finds none.

    Given:       delta of SHARE allowances or more.
    Guarantees:  with `pessimistic`, an upper bound up to dp-accounting's rounding errors, for which an allowance is made. Without,
                 dp-accounting's estimate from below (discrete Gaussians only, and delta as it is): for tests.
    """
    from dp_accounting.pld import common, privacy_loss_distribution

    interval = _interval(pairs, gaussians, delta)
    total = None
    for epsilon, chance, count in pairs:
        parameters = common.DifferentialPrivacyParameters(float_up(epsilon), float_up(chance))
        single = privacy_loss_distribution.from_privacy_parameters(parameters, value_discretization_interval=interval)
        part = single.self_compose(count) if count > 1 else single
        total = part if total is None else total.compose(part)
    for gaussian in gaussians:
        single = privacy_loss_distribution.from_discrete_gaussian_mechanism(
            _root_down(gaussian.sigma_squared),
            gaussian.sensitivity,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=interval,
            use_connect_dots=pessimistic,
        )
        part = single.self_compose(gaussian.times) if gaussian.times > 1 else single
        total = part if total is None else total.compose(part)
    if total is None:
        return 0.0
    count = sum(pair.times for pair in pairs) + sum(gaussian.times for gaussian in gaussians)
    found = float(total.get_epsilon_for_delta(float(delta) - (allowance(count) if pessimistic else 0.0)))
    return math.nextafter(found, math.inf)


def _interval(pairs: Sequence[EqualPromises], gaussians: Sequence[EqualGaussians], delta: Fraction) -> float:
    """Width of the grid: fine against the range of the composed loss, and against what rounding each pure loss up may add."""
    pure_range = sum(clamp_to_float(epsilon) * count for epsilon, _, count in pairs if epsilon)
    rho = sum((gaussian.rho * gaussian.times for gaussian in gaussians), Fraction(0))
    rho_all = rho + sum((epsilon**2 / 2 * count for epsilon, _, count in pairs), Fraction(0))
    reach = pure_range + (clamp_to_float(rho) + 12 * math.sqrt(2 * clamp_to_float(rho)) if rho else 0.0)
    if reach == 0:
        return 1e-4
    guess = min(zcdp_epsilon(short_up(rho_all), delta), reach) if rho_all else reach
    rounded = sum(pair.times for pair in pairs)
    fine = min(reach / FINE, SHARP * max(guess, reach / 1000) / rounded if rounded else math.inf)
    return max(fine, reach / MOST_POINTS)


def _root_down(value: Fraction) -> float:
    found = math.sqrt(clamp_to_float(value))
    while Fraction(found) ** 2 > value:
        found = math.nextafter(found, 0.0)
    return found


def short_up(value: Fraction) -> Fraction:
    """The number itself, or one of 256 bits at or above it where its denominator is long.

    Sums of many rationals grow longer than what `exact_fraction` lets a user write.
    """
    if value.denominator.bit_length() <= 1000:
        return value
    places = max(0, value.denominator.bit_length() - value.numerator.bit_length() + 256)
    return Fraction(math.ceil(value * 2**places), 2**places)
