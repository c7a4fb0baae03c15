"""Exact parameters: what a user may write for a number on which privacy depends."""

from __future__ import annotations

import math
import numbers
import re
from fractions import Fraction
from typing import Literal, TypeAlias

from holdfast.errors import InexactParameter, InvalidParameter

Exact: TypeAlias = int | str | Fraction
"""How a user writes an exact number: 3, "0.192", "1/4", "1e-10", Fraction(1, 4)."""

MAX_DIGITS = 400
"""Longest number accepted, in digits or decimal exponent: more is a mistake, and 10**(10**9) would fill the memory."""

LARGEST_BUDGET = 10**150
"""Budgets and variances above this, or below its inverse, are refused: the bounds and figures beside them are doubles."""
BUDGET_RANGE = "must lie between 1e-150 and 1e150"

_DIGITS = r"\d+(?:_\d+)*"
_NUMBER = re.compile(rf"\s*[+-]?(?:{_DIGITS}/{_DIGITS}|(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?(?P<exponent>\d+))?)\s*")


def exact_fraction(value: Exact, name: str) -> Fraction:
    """The number as a Fraction.

    Given:       an int, a Fraction, or a decimal or rational string ("0.25", "1/4", "1e-10").
    Guarantees:  no rounding. A float is refused with the string to write instead: 0.1 is not 1/10.
    """
    if isinstance(value, bool):
        raise InvalidParameter(f"{name} must be a number. Got a bool. Write an int, a Fraction or a string such as '1/4'.")
    if isinstance(value, str):
        return _fraction_from_text(value, name)
    if isinstance(value, numbers.Rational):  # int, Fraction, NumPy integers
        fraction = Fraction(int(value.numerator), int(value.denominator))
        if max(fraction.numerator.bit_length(), fraction.denominator.bit_length()) > MAX_DIGITS * 4:
            raise InvalidParameter(f"{name} has more than {MAX_DIGITS} digits. Write a shorter number.")
        return fraction
    if isinstance(value, numbers.Real):
        raise InexactParameter(_float_advice(float(value), name))
    raise InvalidParameter(f"{name} must be an int, a Fraction or a string such as '1/4'. Got {type(value).__name__}.")


def outside(value: Fraction, below: int | None = None) -> Literal["zero", "negative", "large"] | None:
    """How a number misses the range from 0 (and, where given, to `below`), both ends excluded; None where it lies inside."""
    if value <= 0:
        return "negative" if value else "zero"
    return "large" if below is not None and value >= below else None


def is_extreme(value: Fraction) -> bool:
    """Whether a positive number is too large or too small for a budget or a variance."""
    return not Fraction(1, LARGEST_BUDGET) <= value <= LARGEST_BUDGET


def positive_fraction(value: Exact, name: str) -> Fraction:
    """`exact_fraction`, refusing zero and negative numbers."""
    fraction = exact_fraction(value, name)
    if outside(fraction):
        raise InvalidParameter(f"{name} must be greater than zero. Got {_show(fraction)}.")
    return fraction


def optional_integer(value: int | None, name: str) -> int | None:
    """A bound: an int, or None for no bound."""
    return None if value is None else exact_integer(value, name)


def exact_integer(value: int, name: str) -> int:
    """A whole number below 2^62 in size, so that sums stay inside 64-bit integers."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidParameter(f"{name} must be an int. Got {type(value).__name__}.")
    if abs(int(value)) >= 2**62:
        raise InvalidParameter(f"{name} must lie strictly between -2^62 and 2^62.")
    return int(value)


def real_number(value: float, name: str) -> float:
    """A number on which no privacy depends, as a float; NaN is refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or math.isnan(value):
        raise InvalidParameter(f"{name} must be a number. Got {type(value).__name__}.")
    return float(value)


def sample_size(n: int) -> int:
    """A number of draws: an int, zero or more."""
    if isinstance(n, bool) or not isinstance(n, numbers.Integral):
        raise InvalidParameter(f"n must be an int, the number of draws. Got {type(n).__name__}.")
    if n < 0:
        raise InvalidParameter(f"n must be zero or more. Got {int(n)}.")
    return int(n)


def _fraction_from_text(text: str, name: str) -> Fraction:
    match = _NUMBER.fullmatch(text) if len(text) <= 2 * MAX_DIGITS else None
    if match is None:
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise InvalidParameter(f"{name} must be a decimal or rational number such as '0.25', '1/4' or '1e-10'. Got {shown!r}.")
    if match["exponent"] is not None and int(match["exponent"]) > MAX_DIGITS:
        raise InvalidParameter(f"{name} has a decimal exponent beyond {MAX_DIGITS}. Write a number of ordinary size.")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise InvalidParameter(f"{name} has a zero denominator: {text!r}. Write a rational number such as '1/4'.") from None


def _float_advice(value: float, name: str) -> str:
    if not math.isfinite(value):
        return f"{name} must be a finite exact number. Got the float {value!r}. Write an int, a Fraction or a string such as '1/4'."
    return (
        f"{name} must be exact, because privacy depends on it. Got the float {value!r}, which is not exactly the number it looks like. "
        f"Write the string '{value!r}' instead."
    )


def _show(fraction: Fraction) -> str:
    text = str(fraction)
    return text if len(text) <= 40 else f"{text[:37]}..."
