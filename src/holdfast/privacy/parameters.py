"""What a user may write for a privacy parameter: shared by conversions, calibration and guarantees."""

from __future__ import annotations

from fractions import Fraction

from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import BUDGET_RANGE, Exact, exact_fraction, exact_integer, is_extreme, outside


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
