"""Numbers as text: exact ones first, then rounded ones for people.

Pure functions: one number has one text, in every language and on every machine.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

SHORT = 12
"""Longest decimal, in characters, that is preferred to p/q."""
SHORT_DIGITS, GIVEN_TEXT = 5, 14
"""Most digits of an exact decimal in a sentence; most characters of a number that a user gives."""
FLOAT_DIGITS = 12
"""Digits of a rounded number in fields for machines."""
LONG_DIGITS = 6
"""Digits of an amount or an end of an interval that has no short exact form."""
SHORT_BITS = 40
"""Largest size of the parts of an amount for which an exact form is tried."""
WHOLE = 10_000
"""Below this a whole standard deviation is shown with all its digits."""
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_RATIO = re.compile(r"(\d{1,40})/(\d{1,40})", re.ASCII)


def format_exact(value: Fraction | float) -> str:
    """The number as text. A Fraction exactly: a decimal where a short one exists ('212.17', '1e-10'), else p/q. A float rounded up."""
    if isinstance(value, float):
        return format_up(Fraction(value), FLOAT_DIGITS)
    decimal = _decimal(value)
    return decimal if decimal is not None and len(decimal) <= SHORT else str(value)


def format_ratio(value: Fraction | None) -> str | None:
    """The number as "p/q" or "p", for files, however long: sums of many fractions have more digits than Python converts by itself."""
    if value is None:
        return None
    parts = (value.numerator,) if value.denominator == 1 else (value.numerator, value.denominator)
    return "/".join(f"{Decimal(part):f}" for part in parts)


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


def round_up(value: Fraction, digits: int) -> Fraction:
    """The smallest number of this many significant digits at or above a positive number."""
    unit = unit_in_last_place(value, digits)
    return unit * math.ceil(value / unit)


def round_figure(value: float, digits: int, *, is_bound: bool) -> float:
    """The number to so many digits, so that every machine has the same one. A proved bound goes up, but for what doubles do not tell."""
    if not is_bound or not value:
        return float(f"{value:.{digits}g}")
    return float(round_up(Fraction(value) * (1 - Fraction(1, 10**12)), digits))


def round_down(value: Fraction, digits: int) -> Fraction:
    """The largest number of this many significant digits at or below a positive number."""
    unit = unit_in_last_place(value, digits)
    return unit * math.floor(value / unit)


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


# For people: sentences and pages.


def format_short(value: Fraction | float) -> str:
    """A parameter of a promise: all of it where that is short (0.384, 1/3, 1/1024), else three digits rounded up.

    Equal numbers read the same.
    """
    exact = Fraction(value)
    if not exact or round_up(exact, SHORT_DIGITS) == exact:
        return format_exact(exact)
    is_short = exact.numerator < 100 and exact.denominator < 10_000
    return str(exact) if is_short else format_up(exact, 3)


def format_given(value: Fraction) -> str:
    """A number that someone gave: exact where that is not very long, else six digits rounded up."""
    text = format_exact(value)
    return text if len(text) <= GIVEN_TEXT else format_up(value, LONG_DIGITS)


def format_amount(value: Fraction | None, *, up: bool = True) -> str:
    """An amount of budget: exact where a short form exists, else six digits, rounded up (spent) or down (granted, left)."""
    if value is None:
        return "none"
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits <= SHORT_BITS and len(format_exact(value)) <= GIVEN_TEXT:
        return format_exact(value)
    if value < 0:
        return "-" + format_amount(-value, up=not up)
    return format_exact((round_up if up else round_down)(value, LONG_DIGITS))


def format_number(value: float) -> str:
    """Plain digits with a comma between thousands: 3,143 or 7.25. Very small and very large numbers keep their exponent."""
    if isinstance(value, int):
        return f"{value:,}"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{Decimal(repr(value)):,f}" if 1e-6 <= abs(value) < 1e15 else repr(value)


def format_number_up(value: float, digits: int = 3) -> str:
    """A number of few digits, with commas, that is not below the given one."""
    return format_number(float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(value))))


def format_decimal(value: str) -> str:
    """An exact decimal without the zeros that say nothing: 20.500 as 20.5."""
    return value.rstrip("0").rstrip(".") if "." in value else value


def format_digits(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A whole number in full, any other to six digits. `rounding` is a constant of the module decimal: ends of intervals go outwards."""
    if isinstance(value, int):
        return f"{value:,}"
    exact = Decimal(value)
    places = LONG_DIGITS - 1 - exact.adjusted() if exact else 0
    return f"{exact.quantize(Decimal(1).scaleb(-places), rounding, Context(prec=400)).normalize():,f}"


def format_three(value: float) -> str:
    """The nearest number of three digits: 12,300, 7.21, 0.0125."""
    return format_number(float(f"{value:.3g}"))


def format_deviation(value: float, *, is_bound: bool = False) -> str:
    """A standard deviation, and what pages show beside one: three digits, but whole numbers below 10,000 as they are. A bound goes up."""
    return format_number(int(value) if value == int(value) and abs(value) < WHOLE else round_figure(value, 3, is_bound=is_bound))


def format_published(value: float) -> str:
    """A published number: a whole one in full, an answer to three digits."""
    return f"{int(value):,}" if value == int(value) else format_three(value)


def format_percent(share: float) -> str:
    """Three digits at most, one decimal at most from 1 % on: 140 %, 5 %, 16.7 %, 0.012 %; above 1,000 % only that it is more."""
    value = 100 * share
    if value > 1000:
        return "> 1,000\u00a0%"
    digits = f"{value:,.0f}" if value >= 100 else f"{value:.1f}".removesuffix(".0") if value >= 1 or not value else f"{value:.2g}"
    return f"{digits}\u00a0%"


def format_tick(value: float) -> str:
    """A label on an axis: 0.5, 200, 40k, 2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size or (abs(value) >= size and letter != "k"):
            return f"{format_deviation(value / size)}{letter}"
    return format_deviation(value)


def format_power(value: float) -> str:
    """A label on a logarithmic axis: 1, 0.1, 0.01, 10⁻³."""
    exponent = round(math.log10(value))
    if exponent > -3 or not math.isclose(value, 10.0**exponent):
        return format_deviation(value)
    return f"10{str(exponent).translate(RAISED)}"


def format_field(value: str | float) -> str:
    """A value of a card. A fraction gets its decimal beside it: "=" where that is all of it, else rounded up after "≤"."""
    if not isinstance(value, str):
        return format_number(value)
    if not (match := _RATIO.fullmatch(value)) or not int(match[2]):
        return value
    fraction = Fraction(int(match[1]), int(match[2]))
    rounded = Context(prec=6, rounding=ROUND_CEILING).divide(Decimal(fraction.numerator), Decimal(fraction.denominator))
    if Fraction(rounded) == fraction:
        return f"{value} (= {format_number(float(rounded))})"
    return f"{value} (≤ {format_number_up(float(rounded))})"


def format_parameter(value: str | float) -> str:
    """A parameter of a promise in a card, as sentences show it; any other text as it is."""
    try:
        return format_short(Fraction(str(value)))
    except (ValueError, ZeroDivisionError):
        return format_field(value)
