"""Laplace noise by pivots: the accept step enumerated in rationals, laws by enumeration, choices of pivots, wide integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices.algebra import as_matrix, independent_rows, rank, take_rows
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.laplace_rejection import PivotLaplace, pivot_choices, solve_pivots, unit_pivots
from holdfast.testing import ALPHA, ListedWords, check_fit_categories
from tests.examples import examples

from .lattice_points import (
    ODD,
    VENN,
    AlwaysHeads,
    Listed,
    coin_weights,
    counted,
    enumerated,
    fit_of_sums,
    margin_rows,
    normalised,
    vectors,
)

QUARTER = Fraction(1, 4)
PAIR = np.array([[2, -3]])
SIGMAS = 6.5
"""A right mean is this many standard errors off with probability about 1e-10."""


def words(label: str) -> Words:
    return NoiseKey.for_tests(label).stream("pivot")


def square_margins(side: int) -> fmpz_mat:
    """Independent rows of the margins of a square table."""
    rows = as_matrix(margin_rows((side, side)))
    return take_rows(rows, independent_rows(rows))


@pytest.mark.ordinary("rows0", "rows1", "rows2", "rows3")
@pytest.mark.parametrize(
    ("rows", "pivots", "reach"), [(PAIR, (0,), 9), (PAIR, (1,), 9), (ODD, (0, 3), 12), (ODD, (1, 2), 12), (VENN, None, 2)]
)
def test_the_accept_step_gives_the_law_exactly_in_rationals(rows: NDArray[np.int64], pivots: tuple[int, ...] | None, reach: int) -> None:
    """Weights (1/2)^|z|_1. All free cells up to `reach` meet every value of the coin, through the sampler's own code."""
    sampler = PivotLaplace(rows, 1, pivots=pivots)
    free = vectors(len(sampler.pivots.free), reach)
    sampler.__dict__["_cell"] = Listed(free.T)
    largest = max(sum(map(abs, row)) for row in sampler.pivots.numerators) * len(rows) * reach
    found: dict[tuple[int, ...], Fraction] = {}
    for coin, chance in enumerate(coin_weights(largest)):
        sampler.__dict__["_coin"] = Listed(np.full(len(free), coin))
        for z in sampler.accept_tries(len(free), ListedWords([])):
            proposed = Fraction(1, 2 ** int(np.abs(z[list(sampler.pivots.free)]).sum()))
            found[tuple(z.tolist())] = found.get(tuple(z.tolist()), Fraction(0)) + proposed * chance
    assert normalised(found) == normalised(_lattice_points(rows, sampler.pivots.free, reach))


def _lattice_points(rows: NDArray[np.int64], free: tuple[int, ...], reach: int) -> dict[tuple[int, ...], Fraction]:
    """All z with rows z = 0 whose free cells are at most `reach` in size, by determinants."""
    pivots = [c for c in range(rows.shape[1]) if c not in free]
    found = {}
    for cells in vectors(len(free), reach):
        z = np.zeros(rows.shape[1], dtype=np.int64)
        z[list(free)] = cells
        solution = _integer_solution(rows[:, pivots], -(rows @ z))
        if solution is not None:
            z[pivots] = solution
            found[tuple(z.tolist())] = Fraction(1, 2 ** int(np.abs(z).sum()))
    return found


def _integer_solution(square: NDArray[np.int64], needed: NDArray[np.int64]) -> list[int] | None:
    """Cramer's rule in Python integers, or None where the solution is not whole."""
    determinant = int(fmpz_mat(square.tolist()).det())
    solution = []
    for column in range(len(needed)):
        replaced = square.copy()
        replaced[:, column] = needed
        whole, rest = divmod(int(fmpz_mat(replaced.tolist()).det()), determinant)
        if rest:
            return None
        solution.append(whole)
    return solution


CASES = [(VENN, QUARTER, 22), (VENN, Fraction(1), 8), (VENN, Fraction(3), 4)]
CASES += [(ODD, QUARTER, 30), (ODD, Fraction(1), 12), (PAIR, QUARTER, 30), (PAIR, Fraction(1), 12)]


@pytest.mark.parametrize(("rows", "epsilon", "reach"), CASES)
def test_draws_follow_the_enumerated_law(rows: NDArray[np.int64], epsilon: Fraction, reach: int) -> None:
    z = PivotLaplace(rows, epsilon).draw(40_000, words(f"{rows.shape} {epsilon}"))
    assert not (z @ rows.T).any()
    check_fit_categories(counted(z, epsilon), enumerated(rows, epsilon, reach), name=f"pivots, {len(rows)} rows, epsilon {epsilon}")


@pytest.mark.parametrize(("rows", "epsilon"), [(PAIR, "1/2"), (ODD, "1/2")])
def test_every_choice_of_pivots_gives_the_same_law(rows: NDArray[np.int64], epsilon: str) -> None:
    law = enumerated(rows, Fraction(epsilon), 24)
    for choice in pivot_choices(as_matrix(rows)):
        z = PivotLaplace(rows, epsilon, pivots=choice.columns).draw(20_000, words(f"{choice.columns}"))
        check_fit_categories(counted(z, Fraction(epsilon)), law, name=f"pivots {choice.columns}")


def test_a_law_one_percent_off_and_a_missing_accept_step_are_seen() -> None:
    epsilon = Fraction(1)
    sampler = PivotLaplace(VENN, epsilon)
    z = sampler.draw(400_000, words("power"))
    assert fit_of_sums(z, enumerated(VENN, epsilon, 8), epsilon) >= ALPHA
    for percent in (99, 101):
        assert fit_of_sums(z, enumerated(VENN, epsilon, 9, slope=epsilon * Fraction(percent, 100)), epsilon) < ALPHA
    sampler.__dict__["_coin"] = AlwaysHeads()
    assert fit_of_sums(sampler.draw(40_000, words("careless")), enumerated(VENN, epsilon, 8), epsilon) < ALPHA


def test_a_missing_check_for_integers_is_seen() -> None:
    """Without it the vectors leave the lattice: nothing statistical is needed."""
    sampler = PivotLaplace(PAIR, QUARTER)
    solve = sampler.solve
    sampler.solve = lambda free: (solve(free)[0], np.ones(free.shape[1], dtype=np.bool_))  # type: ignore[method-assign]
    assert (sampler.draw(1000, words("not whole")) @ PAIR.T).any()


@pytest.mark.parametrize(
    ("rows", "rate", "half_unit"),
    [(np.ones((1, 102), dtype=int), 0.0565, 5e-5), (np.repeat(VENN, 2, axis=1), 0.01485, 5e-6), (square_margins(4), 0.001036, 5e-7)],
)
def test_acceptance_is_what_the_reference_says(rows: NDArray[np.int64], rate: float, half_unit: float) -> None:
    """[theory R8]; the three sets over 14 cells are the synthetic example of [theory T51]."""
    sampler = PivotLaplace(rows, QUARTER)
    found = sampler.acceptance
    assert sampler.pivots.is_integral
    assert abs(found.estimate - rate) < SIGMAS * found.standard_error + half_unit
    assert sampler.expected_tries == 1 / found.estimate


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 3).flatmap(lambda k: st.lists(st.lists(st.integers(-3, 3), min_size=5, max_size=5), min_size=k, max_size=k)))
def test_pivots_solve_the_rows(rows: list[list[int]]) -> None:
    matrix = as_matrix(rows)
    matrix = take_rows(matrix, independent_rows(matrix))
    for choice in pivot_choices(matrix):
        for place, f in enumerate(choice.free):
            z = [Fraction(0)] * 5
            z[f] = Fraction(1)
            for p, row, denominator in zip(choice.columns, choice.numerators, choice.denominators, strict=True):
                z[p] = -Fraction(row[place], denominator)
            assert all(sum(int(entry) * value for entry, value in zip(line, z, strict=True)) == 0 for line in matrix.tolist())
    unit = unit_pivots([[int(entry) for entry in row] for row in matrix.tolist()])
    if len(unit) == matrix.nrows():
        assert solve_pivots(matrix, tuple(unit)).is_integral


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.integers(-2, 2), min_size=4, max_size=4), min_size=1, max_size=2).filter(lambda rows: rank(rows) == len(rows)))
def test_draws_keep_the_rows(rows: list[list[int]]) -> None:
    z = PivotLaplace(rows, 1).draw(30, words(str(rows)))
    assert z.shape == (30, 4)
    assert not (z @ np.array(rows).T).any()


def test_doubles_64_bit_and_python_integers_give_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = PivotLaplace(ODD, QUARTER)
    assert plain.number_type is np.float64
    expected = plain.draw(500, words("integers"))
    for wider in (np.int64, object):
        monkeypatch.setattr("holdfast.samplers.laplace_rejection.number_type", lambda pivots, reach, wider=wider: wider)
        sampler = PivotLaplace(ODD, QUARTER, pivots=plain.pivots.columns)
        assert sampler.number_type is wider
        assert np.array_equal(sampler.draw(500, words("integers")), expected)


def test_huge_entries_do_not_overflow() -> None:
    """z = (k, -10^19 k): a wrapped product would look small and be accepted. Only 0 has weight that a draw could meet."""
    sampler = PivotLaplace([[10**19, 1]], QUARTER)
    assert sampler.number_type is object
    assert not sampler.draw(200, words("huge")).any()
    wide = PivotLaplace([[1, 1]], Fraction(1, 10**12))
    z = wide.draw(50, words("wide"))
    assert not z.sum(axis=1).any()
    assert np.abs(z).max() > 10**10


def test_no_rows_and_as_many_rows_as_cells() -> None:
    free = PivotLaplace(np.zeros((0, 3), dtype=int), 1)
    assert free.expected_tries == 1
    assert free.draw(100, words("free")).any()
    pinned = PivotLaplace([[1, 0], [1, 2]], 1)
    assert not pinned.draw(10, words("pinned")).any()
    assert pinned.expected_tries == 1
    assert PivotLaplace([[1, 1, 0]], 1).draw(0, words("none")).shape == (0, 3)


def test_wrong_rows_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="independent"):
        PivotLaplace([[1, 1], [2, 2]], 1)
    with pytest.raises(InvalidParameter, match="Pivots"):
        PivotLaplace([[1, 0, 0], [0, 1, 1]], 1, pivots=(1, 2))
    with pytest.raises(InvalidParameter, match="columns"):
        PivotLaplace(np.zeros((0, 0), dtype=int), 1)
    with pytest.raises(RequestTooLarge, match="64-bit"):
        PivotLaplace([[1, 1]], Fraction(1, 2**60))


def test_sums_beyond_the_integers_of_a_double_are_exact() -> None:
    sampler = PivotLaplace([[1, 2**40 + 1]], Fraction(1, 1024), pivots=[0])
    solved, is_whole = sampler.solve(np.array([[2**18 - 1, 1 - 2**18]]))
    assert is_whole.all()
    assert solved.tolist() == [[-(2**40 + 1) * (2**18 - 1), (2**40 + 1) * (2**18 - 1)]]


def test_pilots_know_that_python_integers_are_slow() -> None:
    """Two pivots of three cells: each try multiplies Python integers for both."""
    assert PivotLaplace([[1, 0, 2**70], [0, 1, 1]], Fraction(1), pivots=[0, 1]).cells_per_try == 6
    assert PivotLaplace([[1, 0, 2], [0, 1, 1]], Fraction(1), pivots=[0, 1]).cells_per_try == 3
