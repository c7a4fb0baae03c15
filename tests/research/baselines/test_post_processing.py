"""Corrections of noisy tables against brute force: every set of cells at zero, every optimum checked against moves."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.display import watching
from holdfast.errors import HoldfastError, InvalidParameter, RequestTooLarge
from holdfast.research.baselines import l1, l2, nonnegative_l2
from holdfast.views.network import Network

ONE_TOTAL = np.ones((1, 4))
ROWS_AND_COLUMNS = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]])
SIGNS = np.array([[1, -1, 2, 0], [0, 1, 1, 1]])
SYSTEMS = {"one total": ONE_TOTAL, "rows and columns": ROWS_AND_COLUMNS, "signs": SIGNS}


def noisy_and_totals(rows: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    counts = random.integers(0, 6, rows.shape[1])
    return np.asarray(counts + random.laplace(scale=4, size=rows.shape[1])), rows @ counts


def by_every_set_of_zeros(noisy: np.ndarray, rows: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """The nearest table of numbers of zero or more: the nearest of those that are zero on some set of cells."""
    best, found = np.inf, None
    cells = len(noisy)
    if not np.any(totals):
        return np.zeros(cells)
    for size in range(cells):
        for zeros in combinations(range(cells), size):
            rest = [i for i in range(cells) if i not in zeros]
            try:
                part = l2(noisy[rest], rows[:, rest], totals).values
            except InvalidParameter:
                continue
            if part.min() < -1e-12:
                continue
            table = np.zeros(cells)
            table[rest] = part
            distance = float(((table - noisy) ** 2).sum())
            if distance < best:
                best, found = distance, table
    assert found is not None
    return found


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("seed", range(4))
class TestAgainstBruteForce:
    def test_l2_keeps_totals_and_moves_at_right_angles(self, name: str, seed: int) -> None:
        rows = SYSTEMS[name]
        noisy, totals = noisy_and_totals(rows, seed)
        made = l2(noisy, rows, totals).values
        assert np.allclose(rows @ made, totals)
        moves = hf.Lattice(rows.astype(int)).basis.astype(float)
        assert np.allclose((noisy - made) @ moves, 0)

    def test_nonnegative_l2_is_the_best_of_all_sets_of_zeros(self, name: str, seed: int) -> None:
        rows = SYSTEMS[name]
        noisy, totals = noisy_and_totals(rows, seed)
        made = nonnegative_l2(noisy, rows, totals).values
        assert made.min() >= 0
        assert np.allclose(rows @ made, totals)
        assert np.allclose(made, by_every_set_of_zeros(noisy, rows, totals), atol=1e-8)

    def test_no_move_makes_l1_shorter(self, name: str, seed: int) -> None:
        """|m - y|_1 is convex: it is least where no small move along a shortest vector or any other shortens it. Its dual shows it whole:
        a vector A^T c with entries of 1 at most that earns as much as the distance."""
        rows = SYSTEMS[name]
        noisy, totals = noisy_and_totals(rows, seed)
        made = l1(noisy, rows, totals).values
        assert np.allclose(rows @ made, totals)
        assert np.abs(made - noisy).sum() == pytest.approx(largest_dual(rows, totals - rows @ noisy), abs=1e-8)


def largest_dual(rows: np.ndarray, missing: np.ndarray) -> float:
    """max c.missing over |A^T c| <= 1, by looking at every vertex."""
    rank = np.linalg.matrix_rank(rows)
    best = 0.0
    for cells in combinations(range(rows.shape[1]), int(rank)):
        part = rows[:, cells].T
        if np.linalg.matrix_rank(part) < rank:
            continue
        for signs in np.ndindex(*(2,) * int(rank)):
            c = np.linalg.lstsq(part, 2.0 * np.array(signs) - 1, rcond=None)[0]
            if np.abs(rows.T @ c).max() <= 1 + 1e-9:
                best = max(best, float(c @ missing))
    return best


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=12), st.integers(0, 60))
def test_one_total_agrees_with_the_projection_on_a_simplex(noisy: list[float], total: int) -> None:
    """Sorting finds it too: y = max(m - c, 0) with the c that gives the total."""
    m = np.array(noisy)
    made = nonnegative_l2(m, np.ones((1, m.size)), [total]).values
    low, high = float(m.min() - total - 1), float(m.max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(m - middle, 0).sum() > total else (low, middle)
    assert np.allclose(made, np.maximum(m - high, 0), atol=1e-7)


def test_a_large_table_agrees_with_the_exact_flow_in_thousandths() -> None:
    """2,400 cells under 100 totals, which took minutes: the nearest table of whole thousandths is within a few of them."""
    random = np.random.default_rng(3)
    row, column = np.repeat(np.arange(40), 60), np.tile(np.arange(60), 40)
    matrix = (np.concatenate([row[None] == np.arange(40)[:, None], column[None] == np.arange(60)[:, None]])).astype(np.int64)
    noise = random.integers(-9000, 9000, (40, 60))
    noise[:, -1] -= noise.sum(axis=1)
    noise[-1] -= noise.sum(axis=0)
    values = 1000 * random.poisson(5, 2400) + noise.ravel()
    steps: list[str] = []
    with watching(lambda name, done, total: steps.append(name)):
        made = nonnegative_l2(values / 1000, matrix, matrix @ values / 1000).values
    exact = Network(row, 40 + column).nearest_table(values, 1, nonnegative=True)
    assert made.min() >= 0
    assert np.abs(made - exact / 1000).max() < 0.01
    assert set(steps) == {"Finding the nearest table"}


class TestDegenerate:
    def test_a_total_of_zero_leaves_one_table(self) -> None:
        assert nonnegative_l2([5, -20, 3.5], [[1, 1, 1]], [0]).values.tolist() == [0, 0, 0]

    def test_cells_that_must_be_zero_beside_others(self) -> None:
        """Row 1 is empty, so that its cells are zero whatever was measured; row 2 is a problem of its own."""
        rows = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [1, 0, 1, 0, 0]])
        made = nonnegative_l2([4, 7, -3, 2, 1], rows, [0, 6, 2]).values
        assert np.allclose(made, [0, 0, 2, 2.5, 1.5])

    @pytest.mark.parametrize("seed", range(20))
    def test_rows_and_columns_with_empty_lines(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        counts = random.integers(0, 2, 6) * random.integers(0, 5, 6)
        noisy = counts + random.laplace(scale=5, size=6)
        made = nonnegative_l2(noisy, ROWS_AND_COLUMNS, ROWS_AND_COLUMNS @ counts).values
        assert np.allclose(made, by_every_set_of_zeros(noisy, ROWS_AND_COLUMNS, ROWS_AND_COLUMNS @ counts), atol=1e-7)


class TestBudget:
    def test_it_is_kept_for_equal_totals_only(self, snapshot) -> None:
        for correct in (l2, nonnegative_l2, l1):
            made = correct([3, -2], [[1, 1]], [4], epsilon="1/2")
            assert made.epsilon_same_totals == Fraction(1, 2)
            assert made.epsilon_other_totals == "undetermined"
            assert made.status == "floating point"
            assert not hasattr(made, "guarantee")
            snapshot(hf.describe(made), made.method)
        snapshot(repr(l2([3, -2], [[1, 1]], [4])), "repr, budget not given")

    def test_a_float_is_no_budget(self) -> None:
        with pytest.raises(HoldfastError, match=r"'1/2'|0\.5"):
            l2([3, -2], [[1, 1]], [4], epsilon=0.5)  # type: ignore[arg-type]


class TestShares:
    def test_weights_share_what_is_missing(self) -> None:
        assert l1([3, 4], [[1, 1]], [10], weights=[0.25, 0.75]).values.tolist() == [3.75, 6.25]

    def test_equal_shares_are_the_projection(self) -> None:
        assert np.allclose(l1([3, 4, 9], [[1, 1, 1]], [10]).values, l2([3, 4, 9], [[1, 1, 1]], [10]).values)

    @pytest.mark.parametrize("weights", [[1, -1], [0, 0], [1]])
    def test_bad_weights_are_refused(self, weights: list[float]) -> None:
        with pytest.raises(InvalidParameter, match="weights"):
            l1([3, 4], [[1, 1]], [10], weights=weights)

    def test_weights_do_not_fit_other_rows(self) -> None:
        with pytest.raises(InvalidParameter, match="leave them out"):
            l1([3, 4], [[1, 2]], [10], weights=[1, 1])


class TestBadInput:
    @pytest.mark.parametrize("correct", [l2, nonnegative_l2, l1])
    @pytest.mark.parametrize(
        ("noisy", "rows", "totals"),
        [
            ([1, 2], [[1, 1], [2, 2]], [3, 7]),
            ([1, 2, 3], [[1, 1]], [3]),
            ([1, float("nan")], [[1, 1]], [3]),
            ([1, 2], [[1, 1]], [3, 4]),
            ([1, 2], "total", [3]),
        ],
        ids=["totals that disagree", "too many cells", "no number", "too many totals", "no rows"],
    )
    def test_is_refused(self, correct, noisy, rows, totals) -> None:
        with pytest.raises(InvalidParameter):
            correct(noisy, rows, totals)

    def test_a_negative_total_has_no_table(self) -> None:
        with pytest.raises(InvalidParameter, match="zero or more"):
            nonnegative_l2([1, 2], [[1, 1]], [-3])

    def test_a_fixed_cell_below_zero_has_no_table(self) -> None:
        with pytest.raises(InvalidParameter, match="zero or more"):
            nonnegative_l2([1.0], [[1]], [-3])

    def test_a_large_table_is_refused(self) -> None:
        with pytest.raises(RequestTooLarge):
            l2(np.zeros(3_000_000), np.ones((2, 3_000_000)), [0, 0])

    def test_a_lattice_is_taken_as_rows(self) -> None:
        assert np.allclose(l2([3, 4], hf.Lattice([[1, 1]]), [10]).values, [4.5, 5.5])
