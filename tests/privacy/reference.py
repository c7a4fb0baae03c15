"""Slow and obvious versions of what privacy/ computes: Proposition 7 in its printed form, minimised at 400 bits by thirds."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx, fmpq

BITS = 400


def real(value: Fraction | int | str) -> arb:
    fraction = Fraction(value)
    return arb(fmpq(fraction.numerator, fraction.denominator))


def printed_delta(alpha: arb, rho: arb, epsilon: arb) -> arb:
    """(alpha - 1)^-1 e^((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha, as [CKS20] prints it."""
    return ((alpha - 1) * (alpha * rho - epsilon)).exp() * (1 - 1 / alpha) ** alpha / (alpha - 1)


def smallest_delta(rho: Fraction, epsilon: Fraction | arb, *, bits: int = BITS) -> Fraction:
    """The infimum of Proposition 7, wrong by less than 10^-40 of itself: its logarithm is convex, so thirds close in on the minimum.

    The search is over log(alpha - 1), in which the function still falls and then rises.
    """
    before, ctx.prec = ctx.prec, bits
    try:
        rate, cost = real(rho), epsilon if isinstance(epsilon, arb) else real(epsilon)
        low, high = Fraction(-60), Fraction(60)
        for _ in range(200):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            at_left = printed_delta(1 + real(left).exp(), rate, cost).mid()
            at_right = printed_delta(1 + real(right).exp(), rate, cost).mid()
            low, high = (low, right) if at_left < at_right else (left, high)
            scale = 2**200
            low, high = Fraction(math.floor(low * scale), scale), Fraction(math.ceil(high * scale), scale)
        mantissa, exponent = printed_delta(1 + real((low + high) / 2).exp(), rate, cost).mid().man_exp()
        return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    finally:
        ctx.prec = before


def allowed_delta(epsilon: Fraction, delta: Fraction, square: int) -> tuple[arb, arb]:
    """(epsilon r, delta (e^(epsilon r) - 1) / (e^epsilon - 1)) at r = sqrt(square), at flint's current precision."""
    cost = real(epsilon) * arb(square).sqrt()
    return cost, real(delta) * (cost.exp() - 1) / (real(epsilon).exp() - 1)
