"""Certified real numbers: the few things we ask of ball arithmetic (Arb, through python-flint).

A ball is a rational midpoint with a radius; every operation returns a ball that contains the true result. Precision is a property of
flint's context, so it is always set through `precision` and always restored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from threading import RLock
from typing import NamedTuple, Protocol, TypeAlias

from flint import arb, ctx, fmpq

from holdfast.errors import PrecisionExhausted

_CONTEXT = RLock()

SMALLEST_EXPONENT = -(1 << 16)
"""Numbers below 2 to this power are enclosed by 0 and that power: their own digits would only fill the memory."""


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
    """Work at `bits` of precision inside the block; restore what was set before. One thread at a time: all share flint's context."""
    with _CONTEXT:
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
    """The ball's end points as exact rationals, moved outwards where they are below 2^SMALLEST_EXPONENT in size."""
    if not value.is_finite():
        raise PrecisionExhausted("A number could not be enclosed at the precision tried. Use parameters of a more ordinary size.")
    # lower() and upper() round to the current precision: call this where the ball was made.
    return Enclosure(_dyadic_down(*_parts(value.lower())), -_dyadic_down(*_parts(value.upper(), negate=True)))


def fixed_point(value: arb, bits: int) -> tuple[int, int]:
    """(floor of the lower end, ceiling of the upper end) in units of 2^-bits, for a ball of a number >= 0."""
    low_mantissa, low_exponent = _parts(value.lower())
    high_mantissa, high_exponent = _parts(value.upper(), negate=True)
    low = _shift(low_mantissa, low_exponent + bits)
    high = -_shift(high_mantissa, high_exponent + bits)
    return max(low, 0), max(high, 0)


def floors(value: Callable[[], arb], start_bits: int) -> tuple[int, int]:
    """(a, b) with a <= floor(value) <= b; a = b unless the number is an integer, or within 2^-100 of one.

    Shrinking balls never separate a number from an integer it equals: then both neighbours are returned, and the caller asks for more
    bits of its uniform instead.
    """
    for extra_bits in (0, 128, 1024):
        with precision(start_bits + extra_bits):
            low, high = enclosure(value())
        if math.floor(low) == math.floor(high):
            break
    return math.floor(low), math.floor(high)


def float_down(value: Fraction) -> float:
    """The largest float at or below the value (or one below it)."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def float_up(value: Fraction) -> float:
    """The smallest float at or above the value (or one above it)."""
    return -float_down(-value)


def _parts(value: arb, negate: bool = False) -> tuple[int, int]:
    """(mantissa, exponent) of an exact ball, or of its negative."""
    mantissa, exponent = value.man_exp()
    return (-int(mantissa) if negate else int(mantissa)), int(exponent)


def _dyadic_down(mantissa: int, exponent: int) -> Fraction:
    """mantissa * 2^exponent; if below 2^SMALLEST_EXPONENT in size, moved down to 0 or to minus that."""
    if mantissa and exponent + mantissa.bit_length() < SMALLEST_EXPONENT:
        return Fraction(0) if mantissa > 0 else -(Fraction(2) ** SMALLEST_EXPONENT)
    return Fraction(mantissa) * (Fraction(2) ** exponent)


def _shift(mantissa: int, exponent: int) -> int:
    """floor(mantissa * 2^exponent); a shift far beyond the number's length must not build a huge integer."""
    if exponent >= 0:
        return mantissa << exponent
    if -exponent > mantissa.bit_length():
        return -1 if mantissa < 0 else 0
    return mantissa >> -exponent


def enclose_until(
    value: Callable[[], arb], precisions: Sequence[int], is_narrow: Callable[[Enclosure], bool]
) -> tuple[Enclosure | None, bool]:
    """(the number enclosed at the first precision at which it is narrow, True); else (the last enclosure found, if any, False)."""
    found = None
    for bits in precisions:
        with precision(bits):
            made = value()
            if not made.is_finite():
                continue
            found = enclosure(made)
        if is_narrow(found):
            return found, True
    return found, False
