"""Parameters are exact or refused, with a message that says what to write."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InexactParameter, InvalidParameter, RequestTooLarge
from holdfast.exact import (
    Bernoulli,
    BernoulliExp,
    DiscreteGaussian,
    DiscreteLaplace,
    Geometric,
    UniformComposition,
    UniformInteger,
    Weighted,
)
from holdfast.exact.parameters import exact_fraction, sample_size


@given(st.fractions())
def test_every_way_of_writing_a_rational_gives_it_back(value: Fraction) -> None:
    assert exact_fraction(value, "x") == value
    assert exact_fraction(f"{value.numerator}/{value.denominator}", "x") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.192", Fraction(24, 125)),
        ("1e-10", Fraction(1, 10**10)),
        ("6/4", Fraction(3, 2)),
        (" 7 ", Fraction(7)),
        (".5", Fraction(1, 2)),
        ("-3", -3),
    ],
)
def test_strings_are_read_exactly(text: str, value: Fraction) -> None:
    assert exact_fraction(text, "x") == value


@pytest.mark.parametrize("value", [0.1, 1e-5, np.float64(0.25), np.float32(0.5), 2.0])
def test_a_float_is_refused_with_the_string_to_write(value: float) -> None:
    with pytest.raises(InexactParameter, match=f"'{float(value)!r}'"):
        DiscreteLaplace(scale=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.nan])
def test_nan_and_infinity_are_refused_without_advice_to_write_them(value: float) -> None:
    with pytest.raises(InexactParameter, match="finite") as caught:
        DiscreteGaussian(sigma_squared=value)  # type: ignore[arg-type]
    assert "'nan'" not in str(caught.value)
    assert "'inf'" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "one", "1/2/3", "nan", "inf", "0x10", "1,5", "1e", "--1", "1/0", "1e999999999", "9" * 5000, "1." + "0" * 900]
)
def test_strings_that_are_no_ordinary_numbers_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        DiscreteLaplace(scale=text)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", [True, None, Decimal("0.5"), [1], 1j, 10**2000])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(InvalidParameter):
        DiscreteLaplace(scale=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [0, -1, "0", "-1/3", Fraction(0)])
@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian, Geometric])
def test_zero_and_negative_scales_are_refused(law: type, scale: object) -> None:
    with pytest.raises(InvalidParameter, match="greater than zero"):
        law(scale)


@pytest.mark.parametrize("make", [lambda: DiscreteLaplace(10**17), lambda: DiscreteGaussian(10**35), lambda: Geometric(10**17)])
def test_noise_that_could_leave_64_bits_is_refused(make: object) -> None:
    with pytest.raises(RequestTooLarge, match="64-bit"):
        make()  # type: ignore[operator]


def test_the_largest_and_smallest_promised_sizes_are_accepted() -> None:
    for sigma_squared in ("1/1000", 10**18, 10**33):
        assert len(DiscreteGaussian(sigma_squared).sample(5)) == 5
    assert len(DiscreteLaplace(10**15).sample(5)) == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda: DiscreteGaussian(1, lower=3, upper=2),
        lambda: DiscreteGaussian(1, lower=0.5),  # type: ignore[arg-type]
        lambda: DiscreteGaussian(1, center=2**61),
        lambda: DiscreteLaplace(4, tilt="1/4"),
        lambda: DiscreteLaplace(4, tilt="1/2", lower=0),
        lambda: DiscreteLaplace(4, tilt="-1/2", upper=0),
        lambda: DiscreteLaplace(4, lower=2**62),
        lambda: Bernoulli("3/2"),
        lambda: Bernoulli(-1),
        lambda: BernoulliExp("-1/2"),
        lambda: Weighted({}),
        lambda: Weighted({0: 0}),
        lambda: Weighted({0: 1, 1: -1}),
        lambda: Weighted({0: 1, 2**40: 1}),
        lambda: UniformInteger(2, 1),
        lambda: UniformComposition(-1, 2),
        lambda: UniformComposition(3, 0),
    ],
)
def test_impossible_laws_are_refused(make: object) -> None:
    with pytest.raises(InvalidParameter):
        make()  # type: ignore[operator]


def test_a_computable_centre_must_name_itself() -> None:
    class Nameless:
        def ball(self) -> arb:
            return arb(2).sqrt()

    with pytest.raises(InvalidParameter, match="__repr__"):
        DiscreteGaussian(1, Nameless())


@pytest.mark.parametrize("n", [-1, 1.5, "3", True, None])
def test_n_must_be_a_whole_number_from_zero(n: object) -> None:
    with pytest.raises(InvalidParameter, match="n must be"):
        DiscreteLaplace(1).sample(n)  # type: ignore[arg-type]


def test_n_beyond_memory_is_refused_with_the_streaming_form() -> None:
    with pytest.raises(RequestTooLarge, match=r"\.batches"):
        DiscreteLaplace(1).sample(10**14)


def test_zero_draws_are_an_empty_array_and_numpy_sizes_are_fine() -> None:
    assert DiscreteLaplace(1).sample(0).shape == (0,)
    assert sample_size(np.int64(3)) == 3  # type: ignore[arg-type]
