"""What a user may write for a privacy parameter, and how one is written back: shared by conversions, calibration and guarantees."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import BUDGET_RANGE, Exact, exact_fraction, exact_integer, is_extreme, outside

SHORT = 12
"""Longest decimal, in characters, that is preferred to p/q."""
SHORT_DIGITS, GIVEN_TEXT = 5, 14
"""Most digits of an exact decimal in a sentence; most characters of a number that a user gives."""
FLOAT_DIGITS = 12
"""Digits of a rounded number in fields for machines."""


def budget(value: Exact, name: str) -> Fraction:
    """An exact number above zero; zero is refused with what to do instead."""
    fraction = exact_fraction(value, name)
    missed = outside(fraction)
    if missed == "zero":
        raise InvalidParameter(
            f"{name} must be greater than zero: a budget of zero publishes nothing about the cells. The mechanism suppression "
            "publishes the kept totals alone.",
            field=name,
        )
    if missed:
        raise InvalidParameter(f"{name} must be greater than zero. Got {format_exact(fraction)}.", field=name)
    return fraction


def ordinary(value: Fraction, name: str) -> Fraction:
    """The number, refused where it is too large or too small for a mechanism, whose bounds and figures are doubles."""
    if is_extreme(value):
        raise InvalidParameter(f"{name} {BUDGET_RANGE}. Write a number of ordinary size.")
    return value


def not_negative(value: Exact, name: str) -> Fraction:
    """An exact number, zero or more."""
    fraction = exact_fraction(value, name)
    if fraction < 0:
        raise InvalidParameter(f"{name} must be zero or more. Got {format_exact(fraction)}.")
    return fraction


def at_least_one(value: int, name: str) -> int:
    """A whole number, 1 or more."""
    number = exact_integer(value, name)
    if number < 1:
        raise InvalidParameter(f"{name} must be a whole number, 1 or more. Got {number}.")
    return number


def probability(value: Exact, name: str) -> Fraction:
    """An exact number strictly between 0 and 1."""
    fraction = exact_fraction(value, name)
    if outside(fraction, 1):
        raise InvalidParameter(
            f"{name} must lie strictly between 0 and 1. Got {format_exact(fraction)}. Write a small number such as '1e-10'."
        )
    return fraction


def format_exact(value: Fraction | float) -> str:
    """The number as text. A Fraction exactly: a decimal where a short one exists ('212.17', '1e-10'), else p/q. A float rounded up."""
    if isinstance(value, float):
        return format_up(Fraction(value), FLOAT_DIGITS)
    decimal = _decimal(value)
    return decimal if decimal is not None and len(decimal) <= SHORT else str(value)


def format_up(value: Fraction, digits: int) -> str:
    """A decimal of this many significant digits at or above the number, which is zero or more.

    (The repr of a float is no such decimal: it may lie below the float it stands for.)
    """
    if value == 0:
        return "0"
    unit = unit_in_last_place(value, digits)
    exponent = len(str(unit.numerator)) - len(str(unit.denominator))  # unit is a power of ten
    decimal = Decimal(math.ceil(value / unit)).scaleb(exponent).normalize()
    return format(decimal, "f" if -4 <= decimal.adjusted() < SHORT else "e").replace("e+", "e")


def format_short(value: Fraction | float) -> str:
    """As text for people: all of it where that is short (0.384, 1/3, 1/1024), else three digits rounded up. Equal numbers read the same."""
    exact = Fraction(value)
    if not exact or round_up(exact, SHORT_DIGITS) == exact:
        return format_exact(exact)
    is_short = exact.numerator < 100 and exact.denominator < 10_000
    return str(exact) if is_short else format_up(exact, 3)


def format_given(value: Fraction) -> str:
    """A number that someone gave: exact where that is not very long, else six digits rounded up."""
    text = format_exact(value)
    return text if len(text) <= GIVEN_TEXT else format_up(value, 6)


def round_up(value: Fraction, digits: int) -> Fraction:
    """The smallest number of this many significant digits at or above a positive number."""
    unit = unit_in_last_place(value, digits)
    return unit * math.ceil(value / unit)


def unit_in_last_place(value: Fraction, digits: int) -> Fraction:
    """The weight of the last of this many significant digits of a positive number."""
    exponent = math.floor((math.log(value.numerator) - math.log(value.denominator)) / math.log(10))  # right, or off by one
    if Fraction(10) ** exponent > value:
        exponent -= 1
    if Fraction(10) ** (exponent + 1) <= value:
        exponent += 1
    return Fraction(10) ** (exponent - digits + 1)


def _decimal(value: Fraction) -> str | None:
    """The terminating decimal of the number, or None where there is none of moderate length."""
    if value.denominator == 1 and abs(value.numerator) < 10**SHORT:
        return str(value.numerator)
    reduced, twos, fives = value.denominator, 0, 0
    while reduced % 2 == 0:
        reduced, twos = reduced // 2, twos + 1
    while reduced % 5 == 0:
        reduced, fives = reduced // 5, fives + 1
    places = max(twos, fives)
    if reduced != 1 or places > 30:
        return None
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    sign = "-" if value < 0 else ""
    if len(digits) + 4 <= places:
        return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e-{places - len(digits) + 1}"
    padded = digits.rjust(places + 1, "0")
    return f"{sign}{padded[: len(padded) - places]}{'.' if places else ''}{padded[len(padded) - places :]}"
