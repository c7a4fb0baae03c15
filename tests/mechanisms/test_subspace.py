"""Mechanisms of real-valued answers on the grid: the promise against every outcome that matters, parameters, run-file keys."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.channels import Facts, Law
from holdfast.errors import InvalidParameter
from holdfast.mechanisms import mechanism_class
from holdfast.mechanisms.keys import InvalidKey
from holdfast.mechanisms.subspace import SubspaceMechanism, _floor_of_sum
from holdfast.tables.measure import AnswerGrid

CLASSES = [hf.ProjectedLaplace, hf.ProjectedGaussian, hf.ExtendedLaplace, hf.ExtendedGaussian]


def law(mechanism: SubspaceMechanism, rows: list[list[int]], cells: int, grid: AnswerGrid) -> Law:
    moves = hf.lattice(hf.Universe.product({"answer": [str(i) for i in range(cells)]}), [hf.linear(rows)] if rows else [])
    return Law(mechanism.channel(Facts(moves, measure=grid)))


class TestPromise:
    """[theory T111]: two answers at the reach, and one step more."""

    def test_gaussian_divergence_at_the_reach_is_rho_and_more_beyond(self) -> None:
        grid = AnswerGrid(Fraction(1, 2), l2_squared=Fraction(2), on_grid=True)
        made = law(hf.ProjectedGaussian(rho="1/3"), [[1, 1]], 2, grid)
        assert made.guarantee.answers is not None
        reach = made.guarantee.answers.reach
        assert reach == 8  # (sqrt(2) * 2)^2
        weights = np.array([math.exp(made.log_weight(np.array([k, -k]))) for k in range(-35, 36)])
        p = weights / weights.sum()

        def divergence(shift: int, alpha: int) -> float:
            inner = slice(5, -5)
            other = np.roll(p, shift)
            return math.log((p[inner] ** alpha * other[inner] ** (1 - alpha)).sum()) / (alpha - 1)

        for alpha in (2, 3, 5):  # the nearest pairs are (2, -2) and (3, -3): squared l2 distances 8 and 18
            assert divergence(2, alpha) == pytest.approx(alpha / 3, rel=1e-9)
            assert divergence(3, alpha) > alpha / 3

    def test_laplace_ratio_at_the_reach_is_epsilon(self) -> None:
        """Without invariants the law is discrete Laplace in every answer: the ratio is e^epsilon at the reach, and more beyond."""
        made = law(hf.ProjectedLaplace(epsilon="1/2"), [], 1, AnswerGrid(Fraction(1, 4), l1=Fraction(3), on_grid=True))
        assert made.guarantee.answers is not None
        assert made.guarantee.answers.reach == 12
        one = hf.DiscreteLaplace(scale=24)
        ratio = one.pmf(0) / one.pmf(12)
        assert math.log(ratio) == pytest.approx(0.5)
        assert made.target.fields == ("rounded projection", "1/24")

    def test_rounding_is_charged(self) -> None:
        exact, rounded = (
            law(hf.ProjectedLaplace(epsilon=1), [[1, 1, 1]], 3, AnswerGrid(Fraction(1, 16), l1=Fraction(2), on_grid=on)).guarantee
            for on in (True, False)
        )
        assert exact.answers is not None
        assert rounded.answers is not None
        assert exact.answers.reach == 32
        assert rounded.answers.reach == 36  # two directions, |b*|_1 = 2 each
        assert rounded.cost(36).epsilon == exact.cost(32).epsilon == 1

    def test_a_pair_is_proved_for_the_noise_taken(self) -> None:
        made = law(
            hf.ProjectedGaussian(epsilon="1", delta="1e-6"),
            [[1, 1, 1]],
            3,
            AnswerGrid(Fraction(1, 16), l2_squared=Fraction(2), on_grid=True),
        )
        cost = made.guarantee.cost(2 * 16**2)
        assert (cost.epsilon, cost.delta) == (1, Fraction(1, 10**6))
        assert cost.rho is not None
        assert hf.privacy.zcdp_delta(cost.rho, 1) <= 1e-6

    @pytest.mark.parametrize(
        ("one", "other"), [(2, 3), (Fraction(1, 3), Fraction(7, 5)), (0, 5), (8, 8), (10**12, Fraction(1, 7)), (3, 12)]
    )
    def test_whole_part_of_a_squared_sum_of_roots(self, one: Any, other: Any) -> None:
        n = _floor_of_sum(Fraction(one), Fraction(other))
        whole, square = Fraction(one) + Fraction(other), 4 * Fraction(one) * Fraction(other)
        assert n <= whole or (n - whole) ** 2 <= square
        assert n + 1 > whole
        assert (n + 1 - whole) ** 2 > square


class TestParameters:
    @pytest.mark.parametrize(
        "mechanism",
        [
            *(made(epsilon="1/3") for made in (hf.ProjectedLaplace, hf.ExtendedLaplace)),
            hf.ProjectedGaussian(rho=1),
            hf.ExtendedGaussian(epsilon=1, delta="1e-9"),
        ],
        ids=str,
    )
    def test_they_are_read_back(self, mechanism: Any) -> None:
        assert mechanism_class(mechanism.name) is type(mechanism)
        assert type(mechanism).from_parameters(mechanism.parameters) == mechanism
        assert (mechanism.per, mechanism.per_distance) == (None, False)
        assert mechanism.takes_answers

    @pytest.mark.parametrize("made", CLASSES)
    def test_a_budget_is_for_a_person_and_never_for_a_distance(self, made: Any) -> None:
        budget = {"epsilon": 1} if made.norm == "l1" else {"rho": 1}
        with pytest.raises(InvalidParameter, match=r"per='distance': answers have a sensitivity"):
            made(**budget, per="distance")
        with pytest.raises(InvalidParameter, match=r"The table protects 'person'"):
            made(**budget, per="firm").law(hf.Lattice([[1, 1]]))

    @pytest.mark.parametrize("given_", [{}, {"epsilon": 1}, {"delta": "1e-6"}, {"rho": 1, "epsilon": 1, "delta": "1e-6"}], ids=str)
    def test_a_gaussian_takes_one_budget(self, given_: dict[str, Any]) -> None:
        with pytest.raises(InvalidParameter, match="epsilon with delta, or rho"):
            hf.ProjectedGaussian(**given_)
        with pytest.raises(InvalidKey, match="epsilon with delta, or rho"):
            hf.ExtendedGaussian.from_run_file(given_, "person")

    @pytest.mark.parametrize(
        ("mechanism", "grid"),
        [
            (hf.ProjectedLaplace(epsilon=1), AnswerGrid(Fraction(1, 1), l2_squared=Fraction(1))),
            (hf.ProjectedGaussian(rho=1), AnswerGrid(Fraction(1, 1))),
        ],
    )
    def test_a_sensitivity_in_the_right_norm_is_needed(self, mechanism: Any, grid: AnswerGrid) -> None:
        with pytest.raises(InvalidParameter, match="sensitivity"):
            law(mechanism, [], 2, grid)

    def test_l1_serves_for_l2(self) -> None:
        made = law(hf.ProjectedGaussian(rho=1), [], 2, AnswerGrid(Fraction(1, 1), l1=Fraction(3), on_grid=True))
        assert made.guarantee.answers is not None
        assert made.guarantee.answers.reach == 9

    @pytest.mark.parametrize("made", CLASSES)
    def test_counts_are_refused(self, made: Any) -> None:
        mechanism = made(epsilon="1") if made.norm == "l1" else made(rho="1")
        with pytest.raises(InvalidParameter, match=r"Use hf\.answer"):
            mechanism.law(hf.Lattice([[1, 1]]))
