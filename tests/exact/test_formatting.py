"""Numbers as text: never on the wrong side, and the same wherever people read them."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.exact import formatting
from holdfast.exact.formatting import (
    format_amount,
    format_decimal,
    format_deviation,
    format_digits,
    format_exact,
    format_field,
    format_number,
    format_number_up,
    format_parameter,
    format_percent,
    format_power,
    format_published,
    format_short,
    format_three,
    format_tick,
    round_down,
    round_up,
)


@given(st.fractions(min_value=Fraction(1, 10**40), max_value=10**40), st.integers(min_value=1, max_value=8))
def test_rounding_up_keeps_the_digits_asked_for(value: Fraction, digits: int) -> None:
    found = round_up(value, digits)
    assert value <= found < value * (1 + Fraction(10) ** (1 - digits))
    scaled = found
    while scaled >= 10**digits:
        scaled /= 10
    while scaled < 10 ** (digits - 1):
        scaled *= 10
    assert scaled.denominator == 1


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_text_of_a_rounded_number_is_never_below_it(value: float) -> None:
    written = Fraction(format_exact(value))
    assert Fraction(value) <= written <= Fraction(value) * (1 + Fraction(1, 10**11))


@given(st.fractions())
def test_text_of_a_number_is_exact(value: Fraction) -> None:
    assert Fraction(format_exact(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [("1061/5", "212.2"), ("1/3", "1/3"), ("1e-10", "1e-10"), ("25e-9", "2.5e-8"), ("-1/4", "-0.25"), ("7", "7"), ("1/1000", "0.001")],
)
def test_text_of_a_number_is_short(value: str, text: str) -> None:
    assert format_exact(Fraction(value)) == text


@given(st.one_of(st.fractions(min_value=Fraction(1, 10**12), max_value=10**6), st.floats(min_value=1e-12, max_value=1e6)))
def test_a_short_number_is_never_below_and_depends_on_the_value_alone(value: Fraction | float) -> None:
    shown = Fraction(format_short(value))
    assert value <= shown <= Fraction(value) * Fraction(101, 100)
    assert format_short(Fraction(value)) == format_short(value)


def test_amounts_are_shown_short_and_on_the_safe_side() -> None:
    huge = sum((Fraction(1, 10**60 + k) for k in range(300)), Fraction(1, 3))
    for value in (Fraction(2, 3), Fraction(1234567, 89101112131), huge, Fraction(10**40 + 1, 7), Fraction(1, 10**25 + 1)):
        assert Fraction(format_amount(value, up=False)) <= value <= Fraction(format_amount(value))
        assert len(format_amount(value)) <= 45
    assert (format_amount(Fraction(2, 3)), format_amount(Fraction(1, 10)), format_amount(Fraction(0)), format_amount(None)) == (
        "2/3",
        "0.1",
        "0",
        "none",
    )
    assert format_amount(-huge) == "-" + format_amount(huge, up=False)
    assert round_down(Fraction(123456, 10), 3) == 12300


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (3143, "3,143"),
        (-1234567, "-1,234,567"),
        (10**30, "1,000,000,000,000,000,000,000,000,000,000"),
        (7.25, "7.25"),
        (1.0, "1"),
        (12345.5, "12,345.5"),
        (1e-6, "0.000001"),
        (3.33334e-11, "3.33334e-11"),
        (1e22, "1e+22"),
    ],
)
def test_numbers(value: float, shown: str) -> None:
    assert format_number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("24/125", "24/125 (= 0.192)"),
        ("1/3", "1/3 (≤ 0.334)"),
        ("2/3000000", "2/3000000 (≤ 6.67e-7)"),
        ("1/0", "1/0"),
        ("0.192", "0.192"),
        ("l1", "l1"),
        ("٣/٤", "٣/٤"),
        (2, "2"),
        (0.5, "0.5"),
    ],
)
def test_values_of_a_card(value: str | float, shown: str) -> None:
    assert format_field(value) == shown.replace("e-7", "e-07")


@given(st.integers(0, 10**40 - 1), st.integers(1, 10**40 - 1))
def test_the_decimal_beside_a_fraction_is_never_below_it(numerator: int, denominator: int) -> None:
    fraction = f"{numerator}/{denominator}"
    shown = format_field(fraction)
    assert shown.startswith(fraction + " (")
    mark, decimal = shown.removeprefix(fraction + " (").removesuffix(")").split()
    value, true = Fraction(decimal.replace(",", "")), Fraction(numerator, denominator)
    assert value == true if mark == "=" else true < value <= true * Fraction(101, 100)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_rounding_up(value: float) -> None:
    shown = float(format_number_up(value).replace(",", ""))
    assert value <= shown <= value * 1.01


def test_powers_are_raised_where_zeros_would_be_counted() -> None:
    assert [format_power(10.0**-k) for k in (0, 1, 2, 3, 10)] == ["1", "0.1", "0.01", "10⁻³", "10⁻¹⁰"]
    assert format_power(0.2) == "0.2"


def test_idle_zeros_of_a_decimal_are_dropped() -> None:
    assert [format_decimal(value) for value in ("20.5000", "0.000", "100", "-1.250")] == ["20.5", "0", "100", "-1.25"]


@pytest.mark.parametrize(
    ("share", "shown"), [(1.399, "140"), (9.996, "1,000"), (1 / 6, "16.7"), (0.05, "5"), (0.00012, "0.012"), (0, "0"), (12, "> 1,000")]
)
def test_shares_have_three_digits_at_most(share: float, shown: str) -> None:
    assert format_percent(share) == f"{shown}\u00a0%"


@pytest.mark.parametrize(
    ("value", "three", "deviation", "published", "tick"),
    [
        (0, "0", "0", "0", "0"),
        (7.214, "7.21", "7.21", "7.21", "7.21"),
        (1234, "1,230", "1,234", "1,234", "1,234"),
        (12345, "12,300", "12,300", "12,345", "12.3k"),
        (2_500_000, "2,500,000", "2,500,000", "2,500,000", "2.5M"),
        (-0.01254, "-0.0125", "-0.0125", "-0.0125", "-0.0125"),
        (1.254e-5, "0.0000125", "0.0000125", "0.0000125", "0.0000125"),
    ],
)
def test_one_number_by_what_it_is(value: float, three: str, deviation: str, published: str, tick: str) -> None:
    """Standard deviations keep small whole numbers, published numbers all of them; axes are short."""
    assert [form(value) for form in (format_three, format_deviation, format_published, format_tick)] == [three, deviation, published, tick]


@given(st.floats(min_value=-1e12, max_value=1e12))
def test_ends_of_intervals_go_outwards(value: float) -> None:
    low, high = (Fraction(format_digits(value, rounding).replace(",", "")) for rounding in (ROUND_FLOOR, ROUND_CEILING))
    assert low <= Fraction(value) <= high
    assert high - low <= abs(Fraction(value)) / 10**5


@pytest.mark.parametrize(("value", "shown"), [("1/3", "1/3"), ("288182/100000", "2.89"), (0.5, "0.5"), ("l1", "l1"), ("1/0", "1/0")])
def test_parameters_of_a_card_read_as_in_sentences(value: str | float, shown: str) -> None:
    assert format_parameter(value) == shown


def test_formatters_are_defined_here_alone() -> None:
    """No other module names a function format_..., but for what is not a number."""
    source = Path(formatting.__file__).parents[1]
    elsewhere = {
        f"{path.relative_to(source)}: {name}"
        for path in source.rglob("*.py")
        if path != Path(formatting.__file__)
        for name in re.findall(r"^ *def (_?format_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert elsewhere == {"research/chains/lattices.py: format_move"}
