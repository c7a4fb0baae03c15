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
from holdfast.exact import DiscreteGaussian, DiscreteLaplace, Geometric, UniformComposition
from holdfast.exact.law import IntegerLaw
from holdfast.exact.parameters import exact_fraction, sample_size
from holdfast.randomness import NoiseKey
from holdfast.research.laws import Bernoulli, BernoulliExp, UniformInteger, Weighted


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
    "text", ["", "one", "1/2/3", "nan", "inf", "0x10", "1,5", "1e", "--1", "1_", "1__0", "1/0", "1e999999999", "9" * 5000, "1." + "0" * 900]
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
    for n in (10**14, 10**400):
        with pytest.raises(RequestTooLarge, match=r"\.batches"):
            DiscreteLaplace(1).sample(n)
    with pytest.raises(RequestTooLarge):
        UniformComposition(10, 2**45).sample(1)


EXTREME = [
    DiscreteGaussian(1, upper=-(10**12)),
    DiscreteGaussian(1, lower=10**12),
    DiscreteLaplace("1e-12", upper=-5),
    DiscreteLaplace("1e-300", upper=-5),
    DiscreteGaussian(1, upper=5, tilt=10**20),
    DiscreteGaussian("1e-300"),
    DiscreteGaussian("1e-300", "1/2"),
    DiscreteGaussian(1, "1/2", lower=-100),
    DiscreteGaussian("1/4", "-15/2", upper=52),
    DiscreteLaplace("1/5000", lower=-5, upper=7, tilt=5000),
    DiscreteGaussian(10**12, "3/2"),
    DiscreteGaussian(10**18, lower=10**15),
    DiscreteGaussian(10**20, lower=5 * 10**17),
    DiscreteGaussian(3, 2**60),
    DiscreteGaussian(7, lower=4, upper=4),
    Geometric(3, upper=0),
    DiscreteLaplace(10**40, lower=0, upper=10),
    DiscreteGaussian(10**300, lower=0, upper=10**6),
    DiscreteLaplace("1e-350", tilt=Fraction(10**359 - 1, 10**9)),
    BernoulliExp(500),
    BernoulliExp("1e300"),
]


@pytest.mark.parametrize("law", EXTREME, ids=repr)
def test_extreme_but_legal_laws_draw_and_answer(law: IntegerLaw) -> None:
    values = law.sample(1000, NoiseKey.for_tests("extreme"))
    for k in {int(values[0]), int(values[0]) + 10**6, int(values[0]) - 10**11}:
        lower, upper = law.pmf_bounds(k)
        assert 0 <= lower <= upper <= 1
        assert law.tail_bounds(k).upper >= law.tail_bounds(k + 1).lower
    spread = law.variance() ** 0.5
    assert abs(law.mean() - values.mean()) <= 6.5 * spread / 1000**0.5 + abs(law.mean()) * 1e-12 + 1e-9
    assert law.tail_bounds(int(values.min())).upper >= law.tail_bounds(int(values.max())).lower


def test_nearly_flat_bounded_laws_keep_their_moments() -> None:
    """Cancellation once gave a variance of 176321 here; the law is uniform on 0 .. 10 up to 10^-40."""
    for scale in (10**40, 10**60, 10**130):
        law = DiscreteLaplace(scale, lower=0, upper=10)
        assert law.mean() == pytest.approx(5, abs=1e-12)
        assert law.variance() == pytest.approx(10, rel=1e-12)
        assert law.pmf(3) == pytest.approx(1 / 11, rel=1e-12)


def test_far_tails_come_quickly_and_right() -> None:
    assert DiscreteGaussian(1).pmf_bounds(10**6).upper <= Fraction(1, 2**60_000)
    assert DiscreteGaussian(10**18).tail_bounds(10**11).up() <= 1e-300
    half = DiscreteGaussian(10**18, lower=10**15)  # nearly geometric with scale sigma^2 / bound = 1000
    assert half.mean() - 10**15 == pytest.approx(1000, rel=1e-2)
    assert half.variance() == pytest.approx(10**6, rel=1e-2)
    assert BernoulliExp(500).pmf(1) == pytest.approx(7.124576406741286e-218, rel=1e-12)


def test_zero_draws_are_an_empty_array_and_numpy_sizes_are_fine() -> None:
    assert DiscreteLaplace(1).sample(0).shape == (0,)
    assert sample_size(np.int64(3)) == 3  # type: ignore[arg-type]
