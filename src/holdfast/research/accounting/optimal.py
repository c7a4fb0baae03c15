"""From concentrated to approximate differential privacy by the optimal conversion of each order; certified, rounded up.

Asoodeh, Liao, Calmon, Kosut and Sankar ([CKS20] section 2.3): what a Renyi divergence of order alpha of at most gamma allows is

    delta = sup of p - E q over 0 <= p, q <= 1 with p^alpha q^(1 - alpha) + (1 - p)^alpha (1 - q)^(1 - alpha) <= c,

E = e^epsilon, c = e^((alpha - 1) gamma), and rho-zCDP is gamma = alpha rho for every alpha at once. The printed form of the supremum loses
all its digits where delta is small. Its dual does not. Legend: t = alpha - 1 > 0.

x^alpha y^(1 - alpha) is jointly convex, so it lies above its tangents: at least alpha u^t x - t u^alpha y for every u > 0. With slopes
u for (p, q) and w for (1 - p, 1 - q), 0 <= w < u, the condition gives

    alpha (u^t - w^t) p - t (u^alpha - w^alpha) q <= N,    N = c - alpha w^t + t w^alpha.

N >= c - 1 > 0. Divided by alpha (u^t - w^t), and because q >= 0: for every t, w and u

    delta <= N / (alpha (u^t - w^t))    wherever    S(u, w) = t (u^alpha - w^alpha) / (alpha (u^t - w^t)) <= E.                        (*)

For w = 0, S = t u / alpha, and u = alpha E / t gives Proposition 7 of [CKS20] to the letter: it is one point of this family. The problem
is convex with an inner point, so for each alpha the best w and u give the supremum itself. At a given delta there is nothing to solve:
u = (w^t + N / (alpha delta))^(1/t), and epsilon = log S(u, w), or 0 where that is negative.

Every t, w and u that satisfies (*) proves its bound. Floats look for good ones; what is returned is evaluated in balls, with t and
z = -log w, the floats found, taken as the rationals they are.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.exact.balls import ball, enclosure, float_up, precision
from holdfast.exact.parameters import Exact
from holdfast.privacy.conversions import PRECISIONS, clamp_to_float, log_of, narrow, zcdp_delta_bounds, zcdp_epsilon_bounds
from holdfast.privacy.parameters import budget, not_negative, probability

Floats: TypeAlias = NDArray[np.float64]
Surface: TypeAlias = Callable[[Floats, Floats], Floats]

GRID = 33
"""Points of each axis of the grid on which floats look for t and z."""
ZOOMS = 10
HALVINGS = 50
T_RANGE = (-60.0, 60.0)
"""Natural logarithms of the t that are looked at."""
Z_RANGE = (-90.0, 6.0)
"""Natural logarithms of the z = -log w that are looked at; from above w = 0 is the limit, and that is Proposition 7."""
BACK = (2.0**-46, 2.0**-36, 2.0**-26)
"""How far, relative to itself, u is moved back until balls prove S(u, w) <= E."""


def zcdp_delta_optimal(rho: Exact, epsilon: Exact) -> float:
    """The delta that rho-zCDP gives at this epsilon by the optimal conversion of the best order, rounded up.

    Given:       rho > 0, epsilon >= 0, exact.
    Guarantees:  every rho-zCDP mechanism is (epsilon, result)-differentially private. Never above `zcdp_delta`.
    Reference:   [ALCKS20], [CKS20] section 2.3; module docstring.
    """
    return min(float_up(_delta(budget(rho, "rho"), not_negative(epsilon, "epsilon"))), 1.0)


def zcdp_epsilon_optimal(rho: Exact, delta: Exact) -> float:
    """The epsilon that rho-zCDP gives at this delta by the optimal conversion of the best order, rounded up.

    Given:       rho > 0, 0 < delta < 1, exact.
    Guarantees:  every rho-zCDP mechanism is (result, delta)-differentially private. Never above `zcdp_epsilon`.
    Reference:   [ALCKS20], [CKS20] section 2.3; module docstring.
    """
    return float_up(_epsilon(budget(rho, "rho"), probability(delta, "delta"))) + 0.0


def _delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    rate, cost = clamp_to_float(rho), clamp_to_float(epsilon) if epsilon else 0.0
    t, z, log_u = _best_for_delta(rate, cost)
    found = zcdp_delta_bounds(rho, epsilon).upper
    if not _is_ordinary(t, z, rate):
        return found
    for bits in PRECISIONS[:3]:
        with precision(bits):
            for back in BACK:
                value = delta_bound(rho, epsilon, Fraction(t), Fraction(z), Fraction(log_u - back * max(1.0, abs(log_u))))
                if value is not None and value.is_finite() and value.rad() <= abs(value.mid()) / 2**60:
                    return min(found, enclosure(value).upper)
    return found


def _epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    rate = clamp_to_float(rho)
    t, z = _best_for_epsilon(rate, -log_of(delta))
    found = zcdp_epsilon_bounds(rho, delta).upper
    if not _is_ordinary(t, z, rate):
        return found
    for bits in PRECISIONS[:3]:
        with precision(bits):
            value = epsilon_bound(rho, delta, Fraction(t), Fraction(z))
            if value.is_finite() and value.rad() <= (abs(value.mid()) + 1) / 2**60:
                return max(min(found, enclosure(value).upper), Fraction(0))
    return found


def _is_ordinary(t: float, z: float, rho: float) -> bool:
    """Whether exponentials stay of a size that balls can hold; elsewhere the optimal conversion gains nothing on Proposition 7."""
    return 1e-200 < t < 1e9 and t * (1 + t) * rho < 1e5 and (1 + t) * z < 1e5


def delta_bound(rho: Fraction, epsilon: Fraction, t: Fraction, z: Fraction, log_u: Fraction) -> arb | None:
    """A ball of the bound (*) at w = e^-z and this u, at the current precision; None where S(u, w) <= E is not proved."""
    order, slope, top = ball(t), ball(z), ball(log_u)
    if not top + slope > 0:  # u > w
        return None
    scale = (-order * (top + slope)).expm1()  # -(1 - (w/u)^t)
    mean = top + (order / (1 + order)).log() + ((-(1 + order) * (top + slope)).expm1() / scale).log()  # log S(u, w)
    if not mean <= ball(epsilon):
        return None
    return _numerator(rho, t, z) / (1 + order) * (-order * top).exp() / -scale


def epsilon_bound(rho: Fraction, delta: Fraction, t: Fraction, z: Fraction) -> arb:
    """A ball of the epsilon at w = e^-z, at the current precision; below zero it means 0."""
    order, slope = ball(t), ball(z)
    gain = _numerator(rho, t, z) / ((1 + order) * ball(delta))  # u^t - w^t
    top = ((-order * slope).exp() + gain).log() / order
    ratio = (-(1 + order) * (top + slope)).expm1() / (-order * (top + slope)).expm1()
    return top + (order / (1 + order)).log() + ratio.log()


def _numerator(rho: Fraction, t: Fraction, z: Fraction) -> arb:
    """N = (c - 1) + (1 - alpha w^t + t w^alpha)."""
    order, slope = ball(t), ball(z)
    return (order * (1 + order) * ball(rho)).exp() - (1 + order) * (-order * slope).exp() + order * (-(1 + order) * slope).exp()


def _best_for_delta(rho: float, epsilon: float) -> tuple[float, float, float]:
    """(t, z, log u) in floats, near the least bound."""

    def surface(t: Floats, z: Floats) -> Floats:
        log_u = _solve_u(t, z, epsilon)
        return _log_numerator(rho, t, z) - np.log1p(t) - t * log_u - np.log(-np.expm1(-t * (log_u + z)))

    t, z = _least(surface)
    return t, z, float(_solve_u(np.array(t), np.array(z), epsilon))


def _best_for_epsilon(rho: float, log_inverse: float) -> tuple[float, float]:
    def surface(t: Floats, z: Floats) -> Floats:
        gain = _log_numerator(rho, t, z) - np.log1p(t) + log_inverse
        top = np.logaddexp(-t * z, gain) / t
        return top - np.log1p(1 / t) + np.log(np.expm1(-(1 + t) * (top + z)) / np.expm1(-t * (top + z)))

    return _least(surface)


def _log_numerator(rho: float, t: Floats, z: Floats) -> Floats:
    """log N, without overflow: N / max(c, 1) with what is near 1 taken through expm1."""
    log_c = t * (1 + t) * rho
    flat = np.expm1(-(1 + t) * z) * t - np.expm1(-t * z) * (1 + t)  # 1 - alpha w^t + t w^alpha, zero to second order in z
    small = t * (1 + t) * z < 1e-5
    flat = np.where(small, t * (1 + t) * z * z / 2, np.maximum(flat, 0.0))
    return log_c + np.log(-np.expm1(-log_c) + flat * np.exp(-log_c))


def _solve_u(t: Floats, z: Floats, epsilon: float) -> Floats:
    """log u with S(u, w) = E. S is a mean of u and w that increases in u, and at least t u / alpha: so E <= u <= alpha E / t."""
    low, high = np.full(np.shape(t), epsilon), epsilon + np.log1p(1 / t)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        reach = middle + z
        above = middle - np.log1p(1 / t) + np.log(np.expm1(-(1 + t) * reach) / np.expm1(-t * reach)) > epsilon
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(low)


def _least(surface: Surface) -> tuple[float, float]:
    """(t, z) near the least value of the surface: a grid in log t and log z that closes in on its best point. Nothing rests on it."""
    (t_low, t_high), (z_low, z_high) = T_RANGE, Z_RANGE
    best = (1.0, 1.0)
    with np.errstate(all="ignore"):
        for _ in range(ZOOMS):
            t_axis, z_axis = np.linspace(t_low, t_high, GRID), np.linspace(z_low, z_high, GRID)
            t, z = np.meshgrid(np.exp(t_axis), np.exp(z_axis), indexing="ij")
            values = surface(t, z)
            i, j = np.unravel_index(int(np.argmin(np.where(np.isfinite(values), values, np.inf))), values.shape)
            best = float(t[i, j]), float(z[i, j])
            t_step, z_step = (t_high - t_low) / (GRID - 1), (z_high - z_low) / (GRID - 1)
            t_low, t_high = max(T_RANGE[0], t_axis[i] - 3 * t_step), min(T_RANGE[1], t_axis[i] + 3 * t_step)
            z_low, z_high = max(Z_RANGE[0], z_axis[j] - 3 * z_step), min(Z_RANGE[1], z_axis[j] + 3 * z_step)
    return best


def zcdp_delta_closed_form(rho: Exact, epsilon: Exact) -> float:
    """The second form of Proposition 7, with (1 - 1/alpha)^alpha replaced by 1/e: a little larger, and its best order is known.

    Law:         e^(t ((1 + t) rho - epsilon) - 1) / t at t = (epsilon - rho + sqrt((epsilon - rho)^2 + 8 rho)) / (4 rho), where
                 2 rho t^2 + (rho - epsilon) t = 1 makes the derivative vanish. Any t is valid, so this one is.
    Guarantees:  valid, rounded up, at most 1; never below the true value of the first form.
    Reference:   [CKS20] Proposition 7, right-hand side of (1).
    """
    rho, epsilon = budget(rho, "rho"), not_negative(epsilon, "epsilon")

    def log_delta() -> arb:
        rate, gap = ball(rho), ball(epsilon - rho)
        size = (gap * gap + 8 * rate).sqrt()
        t = (gap + size) / (4 * rate) if epsilon >= rho else 2 / (size - gap)  # the same number; no difference of near numbers
        return t * ((1 + t) * rate - ball(epsilon)) - 1 - t.log()

    return _up_to_one(log_delta)


def zcdp_delta_standard(rho: Exact, epsilon: Exact) -> float:
    """exp(-(epsilon - rho)^2 / (4 rho)) where epsilon >= rho, else 1: the bound most papers use, for comparison.

    Guarantees:  valid, rounded up.
    Reference:   [CKS20] section 2.3; Bun and Steinke 2016, Proposition 1.3.
    """
    rho, epsilon = budget(rho, "rho"), not_negative(epsilon, "epsilon")
    return 1.0 if epsilon < rho else _up_to_one(lambda: -ball((epsilon - rho) ** 2 / (4 * rho)))


def zcdp_delta_intermediate(rho: Exact, epsilon: Exact) -> float:
    """2 sqrt(pi rho) e^epsilon P[X > (epsilon + rho) / sqrt(2 rho)], X a standard normal, where epsilon >= rho, else 1.

    Guarantees:  valid, rounded up. The integral of e^(epsilon - z) P[loss > z] over z > epsilon with the standard bound of the
                 probability, which holds from z = rho on: so it is not used below.
    Reference:   [CKS20] section 2.3; Bun and Steinke 2016.
    """
    rho, epsilon = budget(rho, "rho"), not_negative(epsilon, "epsilon")

    def log_delta() -> arb:
        rate = ball(rho)
        return (arb.pi() * rate).log() / 2 + ball(epsilon) + (ball(epsilon + rho) / (2 * rate.sqrt())).erfc().log()

    return 1.0 if epsilon < rho else _up_to_one(log_delta)


def _up_to_one(log_delta: Callable[[], arb]) -> float:
    """e to this number, rounded up, or 1 where that is less."""
    upper = min(narrow(log_delta).upper, Fraction(0))
    with precision(PRECISIONS[0]):
        return min(enclosure(ball(upper).exp()).up(), 1.0)
