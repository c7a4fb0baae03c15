"""Continuous Gaussian noise: its delta against integration, the least noise, and the constant of [GGY22] that does not always hold."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from holdfast.errors import InexactParameter, InvalidParameter
from holdfast.research.subspace.analytic_gaussian import analytic_sigma_squared, gaussian_delta, gaussian_delta_bounds, ggy_sigma_squared


class TestDelta:
    @pytest.mark.parametrize(
        ("sigma_squared", "epsilon", "square"), [("1", "1", "1"), ("9/4", "1/2", "2"), ("1/4", "3", "1"), ("50", "0", "7")]
    )
    def test_it_is_the_integral_of_what_exceeds(self, sigma_squared: str, epsilon: str, square: str) -> None:
        """The largest P[S] - e^epsilon P'[S] is the integral of (p - e^epsilon p')_+, for two normal densities this far apart."""
        s, d, e = math.sqrt(Fraction(sigma_squared)), math.sqrt(Fraction(square)), float(Fraction(epsilon))

        def exceeds(t: float) -> float:
            p, q = (math.exp(-((t - mean) ** 2) / (2 * s * s)) / (s * math.sqrt(2 * math.pi)) for mean in (d, 0.0))
            return max(p - math.exp(e) * q, 0.0)

        edge = e * s * s / d + d / 2  # where the integrand begins to be positive
        value, error = quad(exceeds, edge, edge + 40 * s)
        found = gaussian_delta_bounds(sigma_squared, epsilon, square)
        assert found.lower - Fraction(error) <= Fraction(value) <= found.upper + Fraction(error)
        assert found.upper - found.lower <= found.upper / 2**40
        assert gaussian_delta(sigma_squared, epsilon, square) >= found.upper

    @settings(max_examples=25)
    @given(st.fractions("1/10", 20), st.fractions(0, 5), st.fractions("1/10", 20))
    def test_only_the_ratio_matters_and_more_noise_is_better(self, sigma_squared: Fraction, epsilon: Fraction, square: Fraction) -> None:
        found = gaussian_delta_bounds(sigma_squared, epsilon, square)
        assert found == gaussian_delta_bounds(sigma_squared / square, epsilon)
        assert gaussian_delta_bounds(sigma_squared * Fraction(101, 100), epsilon, square).upper < found.lower


class TestAnalytic:
    @settings(max_examples=25)
    @given(st.fractions("1/100", 12), st.integers(1, 40), st.fractions("1/100", 100))
    def test_it_is_enough_and_a_thousandth_less_is_not(self, epsilon: Fraction, digits: int, square: Fraction) -> None:
        delta = Fraction(3, 10 ** (digits + 1))
        found = analytic_sigma_squared(epsilon, delta, square)
        assert gaussian_delta_bounds(found, epsilon, square).upper <= delta
        assert gaussian_delta_bounds(found * Fraction(999, 1000), epsilon, square).lower > delta

    def test_floats_and_budgets_of_zero_are_refused(self) -> None:
        with pytest.raises(InexactParameter, match=r"Write the string '0\.5'"):
            analytic_sigma_squared(0.5, "1e-6")  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="epsilon must be greater than zero"):
            analytic_sigma_squared(0, "1e-6")
        with pytest.raises(InvalidParameter, match="sensitivity_squared must be greater than zero"):
            analytic_sigma_squared(1, "1e-6", 0)


class TestPaper:
    @pytest.mark.parametrize(
        ("epsilon", "delta", "attained"),
        [
            ("0.5", "1e-12", "1.63e-12"),
            ("1", "1e-12", "4.18e-12"),
            ("0.1", "1e-15", "3.52e-15"),
            ("5", "1e-6", "1.32e-6"),
            ("10", "1e-3", "0.00291"),
        ],
    )
    def test_the_printed_constant_is_refused_where_it_fails(self, epsilon: str, delta: str, attained: str) -> None:
        with pytest.raises(InvalidParameter, match=rf"its noise has delta = {attained}\. Use calibration='analytic'"):
            ggy_sigma_squared(epsilon, delta)
        assert analytic_sigma_squared(epsilon, delta) > 0

    @pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1"])
    @pytest.mark.parametrize("delta", ["1e-10", "1e-6", "1e-2"])
    def test_it_holds_for_ordinary_numbers_and_is_never_better_than_the_least(self, epsilon: str, delta: str) -> None:
        found = ggy_sigma_squared(epsilon, delta, 3)
        assert gaussian_delta_bounds(found, epsilon, 3).upper <= Fraction(delta)
        assert found >= analytic_sigma_squared(epsilon, delta, 3)
        constant = (1 + math.sqrt(1 + math.log(1 / float(delta)))) / float(epsilon)
        assert 1 <= float(found) / (3 * constant**2) < 1.0002
