"""[GM20] Example 4.1 and Appendix A: laws, variances, attained budgets, and the projection that is dominated."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from holdfast.errors import InvalidParameter, PrecisionExhausted
from holdfast.research.baselines import ContinuousConditional, ExponentialSum, combined_noise, conditional_noise, l1, l2
from holdfast.research.baselines.two_cells import Term, never_negative
from holdfast.testing.fit import check_fit, fits

EPSILON = Fraction(1, 2)
BETAS = [Fraction(0), Fraction(1, 5), Fraction(1, 3), Fraction(1, 2), Fraction(7, 10), Fraction(9, 10), Fraction(1)]
BINS = 40
WIDTH = 0.5
DRAWS = 10_000


def binned(law: ExponentialSum) -> np.ndarray:
    """P[bin] for bins of WIDTH around 0, the last ones open; entry i is bin i - BINS."""
    tails = [law.tail(WIDTH * k) / 2 for k in range(BINS + 1)]
    right = [tails[k] - tails[k + 1] for k in range(BINS)] + [tails[BINS]]
    return np.array([*right[::-1], *right])


def to_bins(noise: np.ndarray) -> np.ndarray:
    return np.clip(np.floor(noise / WIDTH), -BINS - 1, BINS).astype(np.int64)


def raw_noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).laplace(scale=2 / float(EPSILON), size=(DRAWS, 2))


@pytest.fixture(scope="module")
def corrected() -> dict[str, np.ndarray]:
    """What the first cell's noise is after each correction of the same tables, and after conditioning."""
    noise = raw_noise(1)
    counts = np.array([7.0, 5.0])
    return {
        "l2": np.array([l2(counts + u, [[1, 1]], [12]).values[0] for u in noise]) - 7,
        "l1": np.array([l1(counts + u, [[1, 1]], [12], weights=[0.1, 0.9]).values[0] for u in noise]) - 7,
        "conditional": ContinuousConditional(EPSILON / 2).sample(counts, [[1, 1]], DRAWS, seed=2)[:, 0] - 7,
    }


LAWS = {
    "conditional": conditional_noise(EPSILON),
    "l2": combined_noise(EPSILON, "1/2"),
    "l1": combined_noise(EPSILON, "9/10"),
}


class TestLaws:
    @pytest.mark.parametrize("name", LAWS)
    def test_released_tables_follow_the_densities(self, name: str, corrected: dict[str, np.ndarray]) -> None:
        check_fit(to_bins(corrected[name]), binned(LAWS[name]), offset=-BINS - 1, name=f"two cells, {name}")

    @pytest.mark.parametrize("name", LAWS)
    def test_other_laws_do_not_fit(self, name: str, corrected: dict[str, np.ndarray]) -> None:
        """Power: the laws of the other two ways, and the same law at an epsilon 20 % larger."""
        others = [law for other, law in LAWS.items() if other != name]
        wrong = {"conditional": conditional_noise("3/5"), "l2": combined_noise("3/5", "1/2"), "l1": combined_noise("3/5", "9/10")}
        for law in [*others, wrong[name]]:
            assert not fits(to_bins(corrected[name]), binned(law), offset=-BINS - 1)

    @pytest.mark.parametrize("beta", BETAS)
    def test_mass_and_variance_are_exact(self, beta: Fraction) -> None:
        law = combined_noise(EPSILON, beta)
        assert law.mass == 1
        assert law.variance == 8 * (beta**2 + (1 - beta) ** 2) / EPSILON**2

    def test_variances_of_the_paper(self) -> None:
        assert conditional_noise(EPSILON).mass == 1
        assert conditional_noise(EPSILON).variance == 2 / EPSILON**2
        assert combined_noise(EPSILON, "1/2").variance == 4 / EPSILON**2

    @pytest.mark.parametrize("beta", BETAS[1:-1])
    def test_characteristic_functions_multiply(self, beta: Fraction) -> None:
        """E exp(i s u) of beta u_1 + (1 - beta) u_2 is 1 / ((1 + (c beta s)^2) (1 + (c (1 - beta) s)^2)), c = 2 / epsilon, for rational s
        without rounding: a law is told by it."""
        scale = 2 / EPSILON
        for s in (Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)):
            expected = 1 / ((1 + (scale * beta * s) ** 2) * (1 + (scale * (1 - beta) * s) ** 2))
            assert characteristic(combined_noise(EPSILON, beta), s) == expected

    @pytest.mark.parametrize("beta", BETAS)
    def test_density_is_minus_the_slope_of_the_tail(self, beta: Fraction) -> None:
        law = combined_noise(EPSILON, beta)
        for t in (0.3, 1.0, 4.0):
            assert (law.tail(t - 1e-5) - law.tail(t + 1e-5)) / 4e-5 == pytest.approx(law.density(t), rel=1e-7)


def characteristic(law: ExponentialSum, s: Fraction) -> Fraction:
    """E cos(s u), term by term: the integral of u^p exp(-r u) cos(s u) over u > 0 is the real part of p! / (r - i s)^(p + 1)."""
    total = Fraction(0)
    for weight, power, rate in law.terms:
        real, imaginary = Fraction(1), Fraction(0)
        for _ in range(power + 1):  # times (r + i s) / (r^2 + s^2)
            real, imaginary = (real * rate - imaginary * s) / (rate**2 + s**2), (real * s + imaginary * rate) / (rate**2 + s**2)
        total += 2 * weight * math.factorial(power) * real
    return total


class TestAttainedBudget:
    def test_conditioning_and_projection_attain_epsilon(self) -> None:
        assert conditional_noise(EPSILON).attained_epsilon == EPSILON
        assert combined_noise(EPSILON, "1/2").attained_epsilon == EPSILON

    @pytest.mark.parametrize("beta", BETAS)
    def test_l1_attains_less(self, beta: Fraction) -> None:
        assert combined_noise(EPSILON, beta).attained_epsilon == EPSILON / (2 * max(beta, 1 - beta))

    @pytest.mark.parametrize("beta", BETAS)
    def test_ratios_of_densities_stay_below_it_and_come_near(self, beta: Fraction) -> None:
        law, epsilon = combined_noise(EPSILON, beta), float(combined_noise(EPSILON, beta).attained_epsilon)
        losses = [math.log(law.density(u) / law.density(u + shift)) / shift for shift in (0.5, 1.0, 3.0) for u in np.linspace(-60, 60, 481)]
        assert max(losses) <= epsilon * (1 + 1e-9)
        assert max(losses) >= 0.96 * epsilon

    def test_a_law_with_a_bump_is_not_decided(self) -> None:
        """exp(-u) - 3/2 exp(-2u) + exp(-3u) rises somewhere: the theorem does not apply."""
        law = ExponentialSum((Term(Fraction(1), 0, Fraction(1)), Term(Fraction(-3), 0, Fraction(2)), Term(Fraction(5, 2), 0, Fraction(3))))
        with pytest.raises(PrecisionExhausted):
            _ = law.attained_epsilon

    @pytest.mark.parametrize("seed", range(30))
    def test_the_rule_of_signs_against_a_grid(self, seed: int) -> None:
        """Where the rule says never negative, no point of a fine grid is below 0; where it says no for two rates, some point is."""
        random = np.random.default_rng(seed)
        rates = sorted(Fraction(int(k), 7) for k in random.choice(np.arange(1, 40), 2, replace=False))
        terms = [Term(Fraction(int(random.integers(-9, 10)), 3), 0, rate) for rate in rates]
        grid = np.linspace(0, 60, 6001)
        parts = np.array([float(w) * np.exp(-float(r) * grid) for w, _, r in terms])
        lowest = float((parts.sum(axis=0) / (np.abs(parts).sum(axis=0) + 1e-300)).min())
        assert never_negative(terms) == (lowest >= -1e-12)


class TestMisprints:
    """[theory T64]."""

    def test_the_projection_keeps_the_means_apart(self) -> None:
        """Its noise is even, so that the mean of the first cell is its count; the printed table has the average of both counts."""
        made = [l2(np.array([9.0, 1.0]) + u, [[1, 1]], [10]).values for u in ([3.0, -1.0], [-3.0, 1.0])]
        assert np.mean(made, axis=0).tolist() == [9.0, 1.0]

    @pytest.mark.parametrize("x", [0.3, 1.0, 3.0])
    def test_the_slope_of_the_tilted_density(self, x: float) -> None:
        """With the sign of the second exponent turned, the printed derivative is that of exp(c epsilon x) f(x)."""
        epsilon, beta, c = 0.5, 0.7, 0.8
        law = combined_noise("1/2", "7/10")

        def g(t: float) -> float:
            return math.exp(c * epsilon * t) * law.density(t)

        w, c_prime = 2 * c * beta - 1, 2 * (1 - c)
        first = w * math.exp(w / (2 * beta) * epsilon * x)
        second = (w + c_prime) * math.exp(-(w + c_prime) / (2 * (1 - beta)) * epsilon * x)
        assert epsilon**2 / (8 * (2 * beta - 1)) * (first + second) == pytest.approx((g(x + 1e-5) - g(x - 1e-5)) / 2e-5, rel=1e-6)


class TestProjectionIsInadmissible:
    def test_same_budget_and_twice_the_variance(self) -> None:
        conditional, projected = conditional_noise(EPSILON), combined_noise(EPSILON, "1/2")
        assert conditional.attained_epsilon == projected.attained_epsilon
        assert projected.variance == 2 * conditional.variance

    def test_every_error_is_exceeded_more_often(self) -> None:
        """P[|u| > t] is (1 + epsilon t / 2) exp(-epsilon t) against exp(-epsilon t): worse for every loss that grows with the error. The
        difference of the tails has the one term epsilon t / 2 exp(-epsilon t), positive."""
        conditional, projected = conditional_noise(EPSILON), combined_noise(EPSILON, "1/2")
        for t in np.linspace(0.01, 80, 200):
            assert projected.tail(t) == pytest.approx((1 + float(EPSILON) * t / 2) * conditional.tail(t), rel=1e-12)
            assert projected.tail(t) > conditional.tail(t)


@pytest.mark.parametrize("beta", ["-1/10", "11/10"])
def test_a_weight_is_between_0_and_1(beta: str) -> None:
    with pytest.raises(InvalidParameter, match="between 0 and 1"):
        combined_noise(EPSILON, beta)
