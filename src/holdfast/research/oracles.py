"""The papers' own samplers, step by step, with integers and fractions only: slow, obvious, and kept forever as oracles.

Fast samplers are compared with these. Nothing here is tuned: each function follows its source line by line, and each draw takes as
many fair bits as it needs from one source, in order. The one place where real numbers occur, the quantile function of the double
geometric law, decides every comparison with certified balls.

Parameters are exact (`Fraction` or `int`) and assumed valid; `holdfast.exact.parameters` is what speaks to users.

    t, s    numerator and denominator of a scale in lowest terms
    K, U, V, Z      as in Algorithms 1 and 2 of [CKS20]
    a       exp(-1/scale), the ratio of the double geometric law
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx, fmpq

from holdfast.testing.words import WORD_BITS, FairBits

Exact = Fraction | int


def bernoulli(p: Exact, bits: FairBits) -> bool:
    """Draw True with a rational probability.

    Law:         P[True] = p.
    Given:       0 <= p <= 1 (asserted).
    Guarantees:  exact law.
    Reference:   [CKS20] Section 4, the remark below Algorithm 2.
    """
    assert 0 <= p <= 1
    return bits.below(p.denominator) < p.numerator


def bernoulli_exp(gamma: Exact, bits: FairBits) -> bool:
    """Draw True with probability exp(-gamma), never computing an exponential.

    Law:         P[True] = exp(-gamma).
    Given:       gamma >= 0 (asserted).
    Guarantees:  exact law, fractions only; fewer than five rational coins in expectation, whatever gamma is.
    Reference:   [CKS20] Algorithm 2, Proposition 14.
    """
    assert gamma >= 0
    whole = math.floor(gamma) if gamma > 1 else 0
    return all(_bernoulli_exp_unit(Fraction(1), bits) for _ in range(whole)) and _bernoulli_exp_unit(Fraction(gamma) - whole, bits)


def _bernoulli_exp_unit(gamma: Fraction, bits: FairBits) -> bool:
    """Algorithm 2 of [CKS20] for 0 <= gamma <= 1: K is odd with probability 1 - gamma + gamma^2/2! - ..."""
    K = 1
    while bernoulli(gamma / K, bits):
        K += 1
    return K % 2 == 1


def discrete_laplace(scale: Exact, bits: FairBits) -> int:
    """Draw one integer from the centred discrete Laplace (double geometric) law.

    Law:         P[X = k] proportional to exp(-|k| / scale), k in Z.
    Given:       scale > 0 (asserted).
    Guarantees:  exact law, fractions only; time is random, finite with probability one.
    Reference:   [CKS20] Algorithm 1, lines up to Z, for scale = t; for t/s the magnitude U + tV is divided by s and rounded down, since
                 floor(G / s) is geometric with ratio exp(-s/t) when G is geometric with ratio exp(-1/t).
    """
    assert scale > 0
    t, s = scale.numerator, scale.denominator
    while True:
        U = bits.below(t)
        if not bernoulli_exp(Fraction(U, t), bits):
            continue
        V = 0
        while bernoulli_exp(1, bits):
            V += 1
        magnitude = (U + t * V) // s
        negative = bits.bit()
        if magnitude > 0 or not negative:  # zero must not be counted under both signs
            return -magnitude if negative else magnitude


def discrete_gaussian(sigma_squared: Exact, bits: FairBits) -> int:
    """Draw one integer from the centred discrete Gaussian.

    Law:         P[X = k] proportional to exp(-k^2 / (2 sigma_squared)), k in Z.
    Given:       sigma_squared > 0 (asserted).
    Guarantees:  exact law, fractions only; a bounded expected number of tries.
    Reference:   [CKS20] Algorithm 1, Theorem 13.
    """
    assert sigma_squared > 0
    t = _proposal_scale(sigma_squared)
    while True:
        Z = discrete_laplace(t, bits)
        if bernoulli_exp((abs(Z) - Fraction(sigma_squared) / t) ** 2 / (2 * sigma_squared), bits):
            return Z


def discrete_gaussian_centered(sigma_squared: Exact, center: Exact, bits: FairBits) -> int:
    """Draw one integer from the discrete Gaussian around a rational center.

    Law:         P[X = k] proportional to exp(-(k - center)^2 / (2 sigma_squared)), k in Z.
    Given:       sigma_squared > 0 (asserted).
    Guarantees:  exact law, fractions only; the acceptance exponent is never negative. With f = center - round(center), |f| <= 1/2:
                 for y != 0, r = |y - f| >= |y| - 1/2 gives r^2/(2 s2) - |y|/t >= r^2/(2 s2) - r/t - 1/(2t) >= -s2/(2 t^2) - 1/(2t),
                 and for y = 0 every term is non-negative. At sigma = 0.3 one try in 4 succeeds for f = 0 and one in 7 for
                 f = 1/2; below, success falls like exp(-f^2 / (2 sigma_squared)): a very narrow law off the integers takes long.
    Reference:   our extension of [CKS20] Algorithm 1, which has center 0.
    """
    assert sigma_squared > 0
    s2, t, nearest = Fraction(sigma_squared), _proposal_scale(sigma_squared), round(Fraction(center))
    f = Fraction(center) - nearest
    while True:
        y = discrete_laplace(t, bits)
        if bernoulli_exp((y - f) ** 2 / (2 * s2) - Fraction(abs(y), t) + Fraction(1, 2 * t) + s2 / (2 * t * t), bits):
            return nearest + y


def _proposal_scale(sigma_squared: Exact) -> int:
    """floor(sigma) + 1, exactly: floor(sqrt(x)) = isqrt(floor(x)) for every real x >= 0."""
    return math.isqrt(math.floor(sigma_squared)) + 1


def double_geometric_quantile(scale: Exact, bits: FairBits) -> int:
    """Draw one integer from the double geometric law by inverting its distribution function at a uniform real number.

    Law:         P[X = k] = (1 - a) / (1 + a) * a^|k|, a = exp(-1 / scale), k in Z: the law of `discrete_laplace(scale)`.
    Given:       scale > 0 (asserted).
    Guarantees:  exact law. The uniform number is known to 32, 64, ... bits, so it lies in an interval of two dyadic ends; the quantile
                 function is monotone, so when both ends give the same integer every number between them does.
    Reference:   [GM20] Appendix B.
    """
    assert scale > 0
    low, depth = 0, 0
    while True:
        low, depth = low << WORD_BITS | bits.bits(WORD_BITS), depth + WORD_BITS
        if low == 0 or low + 1 == 1 << depth:  # the quantile function is infinite at 0 and at 1
            continue
        value = quantile_at(scale, Fraction(low, 1 << depth))
        if value == quantile_at(scale, Fraction(low + 1, 1 << depth)):
            return value


def quantile_at(scale: Exact, v: Fraction) -> int:
    """The smallest integer u whose distribution function F(u) is at least v, for the law of `double_geometric_quantile`.

    Given:       scale > 0, 0 < v < 1 (asserted), both rational.
    Guarantees:  the exact integer, by balls of growing precision. It ends: a = exp(-1/scale) is transcendental, so for rational v
                 neither v = 1/(1+a) nor an integer logarithm below can occur.
    Reference:   [GM20] Appendix B, as printed. Its second branch, floor(X), should read ceil(X) - 1: F(u) >= v means u >= X - 1. The two
                 differ where X is an integer, that is where v = F(u) for some u >= 1: a set of measure zero, which holds no rational v.
    """
    assert scale > 0
    assert 0 < v < 1
    precision = 64 + v.denominator.bit_length()
    while True:
        with ctx.workprec(precision):
            value = _printed_quantile(Fraction(scale), v)
        if value is not None:
            return value
        precision *= 2


def _printed_quantile(scale: Fraction, v: Fraction) -> int | None:
    """The formula of [GM20] Appendix B at flint's current precision; None where the balls leave the answer open."""
    log_a = -1 / _ball(scale)
    one_plus_a = 1 + log_a.exp()
    left_of_jump = _ball(v) * one_plus_a
    if left_of_jump < 1:
        rounded = ((-_ball(v).log() - one_plus_a.log()) / log_a).ceil()
    elif left_of_jump > 1:
        rounded = ((_ball(1 - v).log() + one_plus_a.log()) / log_a).floor()
    else:
        return None
    integer = rounded.unique_fmpz()
    return None if integer is None else int(integer)


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def uniform_composition(total: int, parts: int, bits: FairBits) -> tuple[int, ...]:
    """Draw `parts` non-negative integers that add up to `total`, every such tuple equally likely.

    Law:         P[X = x] = 1 / binomial(total + parts - 1, parts - 1) for each x >= 0 with sum(x) = total.
    Given:       total >= 0, parts >= 1 (asserted).
    Guarantees:  exact law; at most total + parts - 1 rational coins.
    Reference:   stars and bars: of total + parts - 1 places the parts - 1 bars are chosen one place after the other, a place being a bar
                 with probability (bars left) / (places left).
    """
    assert total >= 0
    assert parts >= 1
    sizes = [0]
    bars = parts - 1
    for places in range(total + parts - 1, 0, -1):
        if bernoulli(Fraction(bars, places), bits):
            bars -= 1
            sizes.append(0)
        else:
            sizes[-1] += 1
    return tuple(sizes)
