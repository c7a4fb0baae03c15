"""Laplace noise on grids: the accept step enumerated in rationals, laws by enumeration, moments, shapes, and known acceptance rates."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InexactParameter, InvalidParameter, RequestTooLarge
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers import rejection
from holdfast.samplers.laplace_rejection import GridLaplace
from holdfast.samplers.one_sum_laplace import OneSumLaplace
from holdfast.samplers.rejection import Acceptance, average, estimate_acceptance
from holdfast.testing import ALPHA, ListedWords, check_fit_categories
from holdfast.testing.fit import check_p_value

from .lattice_points import AlwaysHeads, Listed, coin_weights, counted, enumerated, fit_of_sums, margin_rows, normalised, vectors

QUARTER = Fraction(1, 4)
SIGMAS = 6.5
"""A right mean of 10^5 draws is this many standard errors off with probability about 1e-10."""


def words(label: str) -> Words:
    return NoiseKey.for_tests(label).stream("grid")


@pytest.mark.parametrize(("stack", "cells", "reach"), [(3, 3, 2), (4, 3, 1)])
def test_the_accept_step_gives_the_law_exactly_in_rationals(stack: int, cells: int, reach: int) -> None:
    """Weights (1/2)^|z|_1. Every tuple of slices up to `reach` meets every value of the coin, through the sampler's own code."""
    rows = [row for row in vectors(cells, reach) if row.sum() == 0]
    slices = np.array(list(product(rows, repeat=stack - 1)))
    sampler = GridLaplace((stack, cells), QUARTER)
    sampler.__dict__["_part"] = Listed(slices.transpose(1, 0, 2).reshape(-1, cells))
    largest = cells * reach * (stack - 1)
    found: dict[tuple[int, ...], Fraction] = {}
    for coin, chance in enumerate(coin_weights(largest)):
        sampler.__dict__["_coin"] = Listed(np.full(len(slices), coin))
        for z in sampler.accept_tries(len(slices), ListedWords([])):
            proposed = Fraction(1, 2 ** int(np.abs(z[:-cells]).sum()))
            found[tuple(z.tolist())] = found.get(tuple(z.tolist()), Fraction(0)) + proposed * chance
    target = {}
    for drawn in slices:
        whole = np.concatenate([drawn.ravel(), -drawn.sum(axis=0)])
        assert not (margin_rows((stack, cells)) @ whole).any()
        target[tuple(whole.tolist())] = Fraction(1, 2 ** int(np.abs(whole).sum()))
    assert normalised(found) == normalised(target)


CASES = [
    ((2, 2), QUARTER, 20, 40_000),
    ((2, 2), Fraction(1), 6, 40_000),
    ((2, 3), QUARTER, 24, 40_000),
    ((2, 3), Fraction(1), 8, 40_000),
    ((2, 3), Fraction(2), 4, 100_000),
    ((3, 3), QUARTER, 20, 40_000),
    ((3, 3), Fraction(1), 8, 40_000),
    ((3, 3), Fraction(3), 3, 1_000_000),  # nearly all draws are zero
    ((2, 2, 2), QUARTER, 10, 40_000),
    ((2, 2, 2), Fraction(1), 4, 200_000),
    ((3, 3, 3), Fraction(3, 2), 2, 200_000),
]


@pytest.mark.parametrize(("shape", "epsilon", "reach", "n"), CASES)
def test_draws_follow_the_enumerated_law(shape: tuple[int, ...], epsilon: Fraction, reach: int, n: int) -> None:
    law = enumerated(margin_rows(shape), epsilon, reach)
    z = GridLaplace(shape, epsilon).draw(n, words(f"{shape} {epsilon}"))
    check_fit_categories(counted(z, epsilon), law, name=f"grid {shape}, epsilon {epsilon}")


def test_rows_from_another_sampler_give_the_same_law() -> None:
    law = enumerated(margin_rows((3, 3)), Fraction(1), 8)
    z = GridLaplace((3, 3), 1, OneSumLaplace).draw(40_000, words("one sum"))
    check_fit_categories(counted(z, Fraction(1)), law, name="grid (3, 3), rows by OneSumLaplace")


def test_a_law_one_percent_off_and_a_missing_accept_step_are_seen() -> None:
    rows, epsilon = margin_rows((3, 3)), Fraction(1)
    sampler = GridLaplace((3, 3), epsilon)
    z = sampler.draw(400_000, words("power"))
    p_value = fit_of_sums(z, enumerated(rows, epsilon, 8), epsilon)
    check_p_value(p_value, name="grid (3, 3), sums", n=len(z), statistic=p_value)
    for percent in (99, 101):
        assert fit_of_sums(z, enumerated(rows, epsilon, 9, slope=epsilon * Fraction(percent, 100)), epsilon) < ALPHA
    sampler.__dict__["_coin"] = AlwaysHeads()
    assert fit_of_sums(sampler.draw(40_000, words("careless")), enumerated(rows, epsilon, 8), epsilon) < ALPHA


@pytest.mark.ordinary("3-15", "2-3")
@pytest.mark.parametrize(("side", "absolute_sum", "variance"), [(4, 35.01676, 8.81598), (3, 15.29888, 5.46088), (2, 3.40367, 1.84135)])
def test_moments_of_square_margins(side: int, absolute_sum: float, variance: float) -> None:
    """[theory T52]. Cells of one draw are exchangeable, so the mean square of a draw estimates the variance of one cell."""
    n = 100_000
    z = GridLaplace((side, side), QUARTER).draw(n, words(f"moments {side}"))
    grid = z.reshape(n, side, side)
    assert not grid.sum(axis=1).any()
    assert not grid.sum(axis=2).any()
    for values, truth in ((np.abs(z).sum(axis=1), absolute_sum), ((z * z).mean(axis=1), variance)):
        assert abs(values.mean() - truth) < SIGMAS * values.std() / math.sqrt(n)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda s: math.prod(s) <= 24), st.sampled_from(["1/2", "1", "3"]))
def test_sums_along_every_axis_of_the_callers_shape_are_zero(lengths: list[int], epsilon: str) -> None:
    shape = tuple(lengths)
    z = GridLaplace(shape, epsilon).draw(20, words(f"{shape} {epsilon}"))
    assert z.shape == (20, math.prod(shape))
    assert z.dtype == np.int64
    assert z.flags.c_contiguous
    for axis in range(len(shape)):
        assert not z.reshape(20, *shape).sum(axis=1 + axis).any()


def test_axes_of_length_one_and_two() -> None:
    assert not GridLaplace((5, 1, 3), 1).draw(10, words("one")).any()
    direct = GridLaplace((2, 3), QUARTER)
    z = direct.draw(1000, words("two")).reshape(1000, 2, 3)
    assert np.array_equal(z[:, 0], -z[:, 1])
    assert z.any()
    assert "direct" in direct.name
    assert GridLaplace((2,), 1).draw(5, words("pair")).sum() == 0
    assert GridLaplace((4,), 1).draw(0, words("none")).shape == (0, 4)


@pytest.mark.parametrize(
    ("shape", "rate", "half_unit"),
    [((3, 3), 0.149, 0.0005), ((4, 4), 0.0330, 0.00005), ((5, 5), 0.0062, 0.00005), ((20, 4), 0.0023, 0.00005), ((4, 20), 0.0023, 0.00005)],
)
def test_acceptance_is_what_the_reference_says(shape: tuple[int, ...], rate: float, half_unit: float) -> None:
    """[theory R8]. Both orders of the axes stack the longer one. 6.5 standard errors and the rounding of the printed figure."""
    sampler = GridLaplace(shape, QUARTER)
    found = sampler.acceptance
    assert abs(found.estimate - rate) < SIGMAS * found.standard_error + half_unit
    assert sampler.expected_tries == 1 / found.estimate
    assert estimate_acceptance(sampler) == found


def test_tries_are_accepted_as_often_as_the_pilot_says() -> None:
    """Coins against averaged probabilities: "geometric > |last|_1" would give the same law with fewer accepted."""
    sampler, tries = GridLaplace((3, 3), QUARTER), 100_000
    rate = len(sampler.accept_tries(tries, words("rate"))) / tries
    error = math.hypot(math.sqrt(rate * (1 - rate) / tries), sampler.acceptance.standard_error)
    assert abs(rate - sampler.acceptance.estimate) < SIGMAS * error


def test_hopeless_grids_are_announced_without_a_draw() -> None:
    assert GridLaplace((20, 20), QUARTER).expected_tries == pytest.approx((20 * math.pi) ** 9.5)
    assert GridLaplace((20, 20, 20), QUARTER).expected_tries > 1e200
    assert GridLaplace((20, 20, 20), QUARTER).acceptance.tries == 0
    assert GridLaplace((20, 20), 8).expected_tries < 1.1


def test_the_pilot_averages_accept_probabilities() -> None:
    found = average(np.array([0, 4, -1, 4, 10**6]), QUARTER)
    chances = np.array([1.0, math.exp(-1), 0.0, math.exp(-1), 0.0])
    assert found.estimate == pytest.approx(chances.mean(), rel=1e-14)
    assert found.standard_error == pytest.approx(chances.std(ddof=1) / math.sqrt(5), rel=1e-14)
    assert Acceptance(0.0, math.inf, 0).expected_tries(7.0) == 7.0
    assert Acceptance(0.1, 0.01, 9).expected_tries(7.0) == 10.0


def test_memory_is_bounded_and_small_chunks_give_exact_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rejection.batch_tries(10**9, 1e17, 400) == rejection.CHUNK_CELLS // 400
    assert rejection.batch_tries(1, 1e300, 10**7) == 1
    monkeypatch.setattr(rejection, "CHUNK_CELLS", 900)
    z = GridLaplace((3, 3), QUARTER).draw(500, words("chunks"))
    assert not (z @ margin_rows((3, 3)).T).any()


def test_equal_words_give_equal_draws_and_leave_the_words_at_one_place() -> None:
    first, second = words("again"), words("again")
    a = GridLaplace((4, 3), QUARTER).draw(300, first)
    b = GridLaplace((4, 3), QUARTER).draw(300, second)
    assert np.array_equal(a, b)
    assert first.position == second.position


def test_the_reach_bounds_the_sum_of_absolute_values() -> None:
    """P[|z|_1 >= t] of free cells, the widest lattice, by the exact negative binomial tail of one cell against 2^-200 on a small case."""
    reach = rejection.l1_reach(1, Fraction(1))
    assert 2 * math.exp(-reach) / (1 + math.exp(-1)) < 2.0**-200
    assert rejection.l1_reach(100, QUARTER) < 10_000


@pytest.mark.parametrize("shape", [(), (0, 3), (3, -1), (2.0, 3), (True, 3)])
def test_wrong_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidParameter, match="shape"):
        GridLaplace(shape, 1)


def test_wrong_epsilons_are_refused() -> None:
    with pytest.raises(InexactParameter):
        GridLaplace((3, 3), 0.25)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        GridLaplace((3, 3), 0)
    with pytest.raises(RequestTooLarge, match="64-bit"):
        GridLaplace((3, 3), Fraction(1, 2**60))
