"""The experiments of [GGY22] on public data: road deaths in the shape of its WiFi table, counties under state totals, errors of a query."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import holdfast as hf
from benchmarks.answers import (
    CELL_VARIANCE,
    CENSUS,
    FREE_DEATHS,
    KEPT_DEATHS,
    STATES,
    counties_of,
    death_squares,
    linear_facts,
    log_sizes,
    road_deaths,
)
from holdfast.channels import Law
from holdfast.laws import Gaussian
from holdfast.mechanisms.subspace import SubspaceMechanism
from holdfast.testing.fit import ALPHA, check_p_value
from tests.sums_of_squares import sum_of_squares_p_value

REPETITIONS, RUNS = 50, 10
DEATHS = "fars2015_state_hour_group.csv"


def test_road_deaths_have_the_shape_of_the_paper(shared_data: Path) -> None:
    universe, true = road_deaths(shared_data / DEATHS)
    moves = hf.lattice(universe, KEPT_DEATHS)
    assert (len(universe), moves.rank, moves.dimension) == (6720, 20 * (14 + 24 - 1), FREE_DEATHS)
    assert moves.blocks.kinds() == {"grid": 20}  # no block is dense
    assert true.sum() == 23_753
    assert CELL_VARIANCE * 6720 == FREE_DEATHS  # the trace of the projection


@pytest.mark.long
def test_the_variance_of_a_cell_over_50_releases(shared_data: Path) -> None:
    """The sum of squares has mean 50 x 5,980 and covariance of norm 1: false alarm at most ALPHA by a proven bound."""
    squares = death_squares(shared_data / DEATHS, REPETITIONS, 4)
    total, mean = float(squares.sum()), float(REPETITIONS * FREE_DEATHS)
    check_p_value(sum_of_squares_p_value(total, mean, mean, 1.0), name="road deaths", n=squares.size, statistic=total)
    assert sum_of_squares_p_value(0.97 * total, mean, mean, 1.0) < ALPHA  # power: three in a hundred are told
    assert abs(squares.mean() - float(CELL_VARIANCE)) < 0.03 * float(CELL_VARIANCE)


def _slope_p_value(found: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """P[|sum of w errors| >= what was found] at most, by Chernoff: w are centred, so that it is the sum of w e, e independent discrete
    Laplace variables, and of w over uniform sets of cells lowered by one, at most half of the cells up to sign (Hoeffding).
    """
    rate = float(Fraction(CENSUS)) / 2
    a, t = math.exp(-rate), abs(sum(float((errors @ w).sum()) for w, errors in found))
    best = 0.0
    for step in range(1, 100):
        lam = step / 100 * rate / max(float(np.abs(w).max()) for w, _ in found)
        log = 0.0
        for w, errors in found:
            laplace = 2 * math.log1p(-a) - np.log1p(-a * np.exp(lam * w)) - np.log1p(-a * np.exp(-lam * w))
            log += len(errors) * (float(laplace.sum()) + lam**2 * len(w) / 2 * float(np.ptp(w)) ** 2 / 8)
        best = min(best, log - lam * t)
    return min(1.0, 2 * math.exp(best))


@pytest.mark.long
def test_errors_of_counties_do_not_depend_on_their_size(shared_data: Path) -> None:
    found = {state: (log_sizes(true), errors) for state, true, errors in counties_of(shared_data / "county_pop_2010.csv", RUNS)}
    assert list(found) == list(STATES)
    assert len(found["Illinois"][0]) == 102
    for _, errors in found.values():
        assert not errors.sum(axis=1).any()  # every state total, in every run
    p_value = _slope_p_value(list(found.values()))
    check_p_value(p_value, name="counties by size", n=RUNS * len(STATES), statistic=0.0)
    tilted = [(w, errors - 2 * w) for w, errors in found.values()]
    assert _slope_p_value(tilted) < ALPHA  # power: two people for each factor of e in size would be seen


@pytest.mark.parametrize("mechanism", [hf.ProjectedGaussian(rho="1/50"), hf.ExtendedGaussian(rho="1/50")], ids=lambda made: made.name)
def test_the_error_is_that_of_the_closed_form(mechanism: SubspaceMechanism) -> None:
    """E|y - A x|^2 = (n - n_c) sigma_squared on the grid, sigma_squared = Delta^2 / (2 rho): false alarm below ALPHA by a proven bound."""
    matrix, kept = [[1, 0, 2, 1], [0, 3, 1, 0], [2, 2, 0, 1], [1, 1, 1, 3], [0, 1, 0, 2]], [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]
    facts, draws = linear_facts(matrix, kept, mechanism), 30_000
    law = Law(mechanism.channel(facts))
    variance = math.floor(facts.measure.as_grid("").sensitivity("l2")) * 25.0
    total, mean = float((law.sample(draws, hf.NoiseKey.for_tests(mechanism.name)) ** 2).sum()), draws * (5 - 2) * variance
    p_value = sum_of_squares_p_value(total, mean, mean * variance, variance)
    check_p_value(p_value, name=f"error of {mechanism.name}", n=draws, statistic=total)
    assert sum_of_squares_p_value(1.05 * total, mean, mean * variance, variance) < ALPHA  # power: five in a hundred are told


def test_answers_rounded_cell_by_cell_give_themselves_away_and_by_the_lattice_not() -> None:
    """Two answers with one total, in steps of 2^-10. Rounded one by one they are published with two totals, whatever the noise."""
    step = Fraction(1, 2**10)
    pair = [[step * Fraction(n, 10) for n in row] for row in ((4, 4, 2), (6, 2, 2))]
    assert sum(pair[0]) == sum(pair[1]) == step
    totals: dict[str, list[set[int]]] = {"one by one": [], "by the lattice": []}
    for answers in pair:
        by_itself = [step * math.floor(value / step + Fraction(1, 2)) for value in answers]
        for way, given_answers, on_grid in (("one by one", by_itself, True), ("by the lattice", answers, False)):
            made = [
                hf.answer(
                    given_answers,
                    mechanism=hf.ProjectedLaplace(epsilon=1),
                    keep=[[1, 1, 1]],
                    sensitivity=1,
                    step="1/1024",
                    on_grid=on_grid,
                    key=hf.NoiseKey.for_tests(f"{way} {run}"),
                )
                for run in range(3)
            ]
            totals[way].append({int(release.table.counts.sum()) for release in made})
    assert totals == {"one by one": [{0}, {1}], "by the lattice": [{1}, {1}]}


@given(st.integers(2, 6), st.integers(1, 6), st.data())
@settings(max_examples=25)
def test_extension_never_adds_more_gaussian_noise_than_projection(n: int, kinds: int, data: st.DataObject) -> None:
    """[GGY22] Corollaries 3.5 and 3.6 on the grid: one budget, one form of law, and a projection's sensitivity is at most the query's."""
    entries = st.lists(st.integers(-3, 3), min_size=kinds, max_size=kinds)
    matrix = data.draw(st.lists(entries, min_size=n, max_size=n))
    assume(len({tuple(x - column[0] for x in column) for column in zip(*matrix, strict=True)}) > 1)  # someone can move, the sum as it is
    kept = [[1] * n]
    squares = []
    for mechanism in (hf.ProjectedGaussian(rho="1/2"), hf.ExtendedGaussian(rho="1/2")):
        facts = linear_facts(matrix, kept, mechanism)
        assume(facts.measure.as_grid("").sensitivity("l2") >= 1)  # steps of 1 tell such neighbours apart
        target = mechanism.channel(facts).target
        assert isinstance(target, Gaussian)
        squares.append(target.sigma_squared)
    assert squares[1] <= squares[0]
