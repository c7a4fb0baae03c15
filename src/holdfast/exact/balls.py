"""Certified real numbers: the few things we ask of ball arithmetic (Arb, through python-flint).

A ball is a rational midpoint with a radius; every operation returns a ball that contains the true result. Precision is a property of
flint's context, so it is always set through `precision` and always restored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import NamedTuple, Protocol, TypeAlias

from flint import arb, ctx, fmpq

from holdfast.errors import PrecisionExhausted

MAX_PRECISION_BITS = 1 << 14
"""Where we give up separating two numbers. No law of this package comes near: it would need a coincidence of probability 2^-10000."""


class Enclosure(NamedTuple):
    """Two rationals with the true value between them, ends included: `lower <= value <= upper`, proved."""

    lower: Fraction
    upper: Fraction

    def down(self) -> float:
        """A float at or below the true value."""
        return float_down(self.lower)

    def up(self) -> float:
        """A float at or above the true value."""
        return float_up(self.upper)

    def nearest(self) -> float:
        """The float nearest to the middle, off by at most half the width and one rounding; 0.0 where 0 is inside."""
        return 0.0 if self.lower <= 0 <= self.upper else float((self.lower + self.upper) / 2)


class ComputableReal(Protocol):
    """A real number known through balls that shrink as the precision grows."""

    def ball(self) -> arb:
        """A ball containing the number, at flint's current precision."""


Real: TypeAlias = Fraction | ComputableReal


class Affine:
    """factor * base + shift for a computable real; keeps laws with such centres in the same formulas as rational ones."""

    def __init__(self, base: ComputableReal, factor: Fraction, shift: Fraction) -> None:
        self.base, self.factor, self.shift = base, factor, shift

    def ball(self) -> arb:
        return ball(self.factor) * self.base.ball() + ball(self.shift)


def affine(value: Real, factor: Fraction, shift: Fraction) -> Real:
    """factor * value + shift, exact where value is rational."""
    if isinstance(value, Fraction):
        return factor * value + shift
    return Affine(value, factor, shift)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at `bits` of precision inside the block; restore what was set before."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Real | int) -> arb:
    """A ball containing the number, at the current precision."""
    if isinstance(value, int):
        return arb(value)
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return value.ball()


def enclosure(value: arb) -> Enclosure:
    """The ball's end points as exact rationals."""
    return Enclosure(_dyadic(value.lower()), _dyadic(value.upper()))


def fixed_point(value: arb, bits: int) -> tuple[int, int]:
    """(floor of the lower end, ceiling of the upper end) in units of 2^-bits, for a ball of a number >= 0."""
    low_mantissa, low_exponent = (int(part) for part in value.lower().man_exp())
    high_mantissa, high_exponent = (int(part) for part in value.upper().man_exp())
    low = _shift(low_mantissa, low_exponent + bits)
    high = -_shift(-high_mantissa, high_exponent + bits)
    return max(low, 0), max(high, 0)


def certain_floor(value: Callable[[], arb], start_bits: int) -> int:
    """floor(value), raising the precision until the ball lies between two integers.

    Given:  a value that is not an integer, or whose balls become exact. Else PrecisionExhausted.
    """
    bits = start_bits
    while bits <= MAX_PRECISION_BITS:
        with precision(bits):
            low, high = enclosure(value())
        if math.floor(low) == math.floor(high):
            return math.floor(low)
        bits *= 2
    raise PrecisionExhausted(
        f"A real number could not be separated from an integer with {MAX_PRECISION_BITS} bits. "
        "If it is a rational number in disguise, pass it as a Fraction or string."
    )


def float_down(value: Fraction) -> float:
    """The largest float at or below the value (or one below it)."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def float_up(value: Fraction) -> float:
    """The smallest float at or above the value (or one above it)."""
    return -float_down(-value)


def _dyadic(value: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in value.man_exp())
    return Fraction(mantissa) * (Fraction(2) ** exponent)


def _shift(mantissa: int, exponent: int) -> int:
    """floor(mantissa * 2^exponent); a shift far beyond the number's length must not build a huge integer."""
    if exponent >= 0:
        return mantissa << exponent
    if -exponent > mantissa.bit_length():
        return -1 if mantissa < 0 else 0
    return mantissa >> -exponent
