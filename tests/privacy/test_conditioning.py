"""gamma for all tables: bounds against full enumeration, sharp where they are called so, broken by slightly smaller ones."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter
from holdfast.lattices.shapes import Free, General, Grid, OneSum, Pinned, Shape, Whole
from holdfast.lattices.shapes.bounded import Bounded
from holdfast.privacy.conditioning import BestRate, best_rate, gamma_bound, gaussian_factor, neighbourhood
from holdfast.research.accounting.fibres import UNIT_BITS, Fibre, fibre_of, list_tables, neighbourhood_given

TWO_FIFTHS = Fraction(2, 5)
CLASSES = General(((1, 1, 1, 1), (1, 1, 0, 0), (1, 0, 1, 0)), (2, 1, 1, 1))  # total, one sex, one age group
SKEW = General(((3, 5, 7, 2),), (1, 1, 1, 1))


def slow_gamma(tables: np.ndarray, rate: float) -> float:
    """The largest gamma over all pairs, in doubles, from the definition."""
    distances = np.abs(tables[:, None, :] - tables[None, :, :]).sum(axis=2)
    logs = np.log(np.exp(-rate * distances).sum(axis=1))
    gains, apart = logs[None, :] - logs[:, None], distances > 0
    return float((gains[apart] / distances[apart]).max() / rate) if apart.any() else 0.0


def boxes(cells: int, widest: int) -> st.SearchStrategy[tuple[tuple[int, ...], tuple[int, ...]]]:
    cell = st.tuples(st.integers(-2, 2), st.integers(0, widest)).map(lambda pair: (pair[0], pair[0] + pair[1]))
    return st.lists(cell, min_size=cells, max_size=cells).map(lambda pairs: (tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)))


def fibres_in(shape: Bounded) -> dict[tuple[int, ...], np.ndarray]:
    """Every table within the bounds, by its kept totals: the obvious way."""
    everything = np.array(
        list(product(*(range(low, high + 1) for low, high in zip(shape.lower_cells(), shape.upper_cells(), strict=True))))
    )
    everything = everything[shape.holds(everything)]
    totals = everything @ shape.kept_rows().T
    return {key: everything[(totals == key).all(axis=1)] for key in map(tuple, np.unique(totals, axis=0).tolist())}


class TestListing:
    """Tables with given totals, against all tables within the bounds."""

    @pytest.mark.parametrize(
        "shape",
        [
            Bounded(OneSum(4), 0, 2),
            Bounded(OneSum(3, (1, -1, 1)), (-1, 0, 0), (1, 2, 3)),
            Bounded(Grid((2, 3)), 0, (2, 1, 2, 2, 2, 1)),
            Bounded(Grid((2, 2, 2)), 0, 1),
            Bounded(CLASSES, 0, 2),
            Bounded(SKEW, -1, 2),
            Bounded(Whole((OneSum(2), OneSum(3))), 0, 2, ((1, 0, -1, 0, 0),), (0,)),
            Bounded(Free(2), 0, 2, ((-1, -2),), (-4,)),
        ],
        ids=str,
    )
    def test_all_tables_are_listed(self, shape: Bounded) -> None:
        found = fibres_in(shape)
        assert sum(map(len, found.values())) > len(found)
        for totals, tables in found.items():
            listed = list_tables(shape, totals)
            assert listed is not None
            assert sorted(listed.tolist()) == sorted(tables.tolist())

    def test_bounds_that_follow_from_totals(self) -> None:
        tables = list_tables(Bounded(OneSum(3), 0, None), (3,))
        assert tables is not None
        assert len(tables) == math.comb(5, 2)
        grid = list_tables(Bounded(Grid((2, 2)), 0, None), (3, 2, 1, 4))
        assert grid is not None
        assert sorted(grid.tolist()) == [[0, 1, 3, 1], [1, 0, 2, 2]], "columns 3 and 2, rows 1 and 4"

    def test_what_cannot_be_listed(self) -> None:
        assert list_tables(Bounded(OneSum(3), None, 5), (3,)) is not None, "upper bounds and a total bound every cell"
        assert list_tables(Bounded(OneSum(3, (1, -1, 1)), 0, None), (3,)) is None, "cells of opposite signs grow together"
        assert list_tables(Bounded(OneSum(10), 0, None), (50,)) is None, "too many"
        assert list_tables(Bounded(OneSum(4), 0, 9), (18,), most=9) is None

    def test_no_table(self) -> None:
        tables = list_tables(Bounded(OneSum(2), 0, 1), (5,))
        assert tables is not None
        assert len(tables) == 0
        assert Fibre(tables).excess(TWO_FIFTHS) == 0
        assert Fibre(tables).smallest is None


class TestListedGamma:
    """Integers and balls, against doubles from the definition."""

    def test_the_value_of_the_paper_notes(self) -> None:
        """3 cells, total 3, zero or more, epsilon .4: 1 + gamma = 1.317. [theory T74]"""
        excess = fibre_of(Bounded(OneSum(3), 0, None), (3,)).excess(TWO_FIFTHS)
        assert f"{float(1 + excess / TWO_FIFTHS):.3f}" == "1.317"

    @pytest.mark.parametrize("rate", [Fraction(1, 20), TWO_FIFTHS, Fraction(2)])
    @pytest.mark.parametrize(
        "shape", [Bounded(OneSum(4), 0, 2), Bounded(Grid((2, 3)), 0, 2), Bounded(SKEW, -1, 2), Bounded(Grid((2, 2, 2)), 0, 1)], ids=str
    )
    def test_against_doubles(self, shape: Bounded, rate: Fraction) -> None:
        for totals, tables in fibres_in(shape).items():
            excess = fibre_of(shape, totals).excess(rate)
            slow = slow_gamma(tables, float(rate)) * float(rate)
            assert slow - 1e-12 <= float(excess) <= slow + 1e-12 + 2**-43

    def test_rounded_up(self) -> None:
        """Every logarithm is enclosed, to one unit; the bound is above the quotient of the ends that can be reached."""
        fibre = fibre_of(Bounded(OneSum(3), 0, None), (3,))
        low, high = fibre.log_normalisers(TWO_FIFTHS)
        exact = np.log(np.exp(-0.4 * fibre.distances).sum(axis=1)) * 2.0**UNIT_BITS
        assert ((low - 1 <= exact) & (exact <= high + 1)).all()
        assert (high - low <= 1).all()
        reached = ((low[None, :] - high[:, None]) / np.maximum(fibre.distances, 1)).max()
        assert reached <= fibre.excess(TWO_FIFTHS) * 2**UNIT_BITS <= reached + 2


class TestMoves:
    """The bound along elementary moves, for all totals: [theory T71], [theory T72]."""

    @given(boxes(4, 3), st.sampled_from([Fraction(1, 10), TWO_FIFTHS, Fraction(3, 2)]), st.booleans())
    @settings(max_examples=25, deadline=None)
    def test_one_sum(self, box: tuple[tuple[int, ...], tuple[int, ...]], rate: Fraction, signed: bool) -> None:
        shape = Bounded(OneSum(4, (1, -1, -1, 1) if signed else None), *box)
        self.check(shape, rate)

    @given(boxes(6, 2), st.sampled_from([Fraction(1, 10), TWO_FIFTHS, Fraction(3, 2)]))
    @settings(max_examples=15, deadline=None)
    def test_two_way(self, box: tuple[tuple[int, ...], tuple[int, ...]], rate: Fraction) -> None:
        self.check(Bounded(Grid((2, 3)), *box), rate)

    def test_grids_with_one_long_axis(self) -> None:
        """[theory T79]: less than along moves of length 4 or more; binary ones cost nothing."""
        rate = TWO_FIFTHS
        folded, square = gamma_bound(Bounded(Grid((2, 5)), 0, None), rate), gamma_bound(Bounded(Grid((3, 5)), 0, None), rate)
        assert float(folded) == pytest.approx(math.log(2 - math.exp(-1.6)) / 1.6)
        assert gamma_bound(Bounded(Grid((5, 2)), 0, None), rate) == folded < square
        three = Bounded(Grid((2, 3, 2)), 0, 1)
        assert best_rate([three], Fraction(1)) == BestRate(Fraction(1), Fraction(1), "moves")
        for tables in list(fibres_in(three).values())[::50]:
            assert slow_gamma(tables, 0.4) == pytest.approx(0, abs=1e-12)

    @given(boxes(5, 2), st.sampled_from([Fraction(1, 10), TWO_FIFTHS, Fraction(3, 2)]))
    @settings(max_examples=15, deadline=None)
    def test_classes(self, box: tuple[tuple[int, ...], tuple[int, ...]], rate: Fraction) -> None:
        self.check(Bounded(CLASSES, *box), rate)

    def check(self, shape: Bounded, rate: Fraction) -> None:
        bound = float(gamma_bound(shape, rate))
        assert 0 <= bound < 1
        for tables in fibres_in(shape).values():
            assert slow_gamma(tables, float(rate)) <= bound + 1e-11

    @pytest.mark.parametrize(
        "shape",
        [
            Bounded(Grid((2, 2)), 0, 3),
            Bounded(Grid((2, 2, 2)), 0, 1),
            Bounded(OneSum(2), 0, 9, ((1, -2),), (-5,)),
            Bounded(General(((2, 3),), (1, 1)), -9, 9),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("rate", [Fraction(1, 20), TWO_FIFTHS, Fraction(3, 2)])
    def test_one_free_dimension(self, shape: Bounded, rate: Fraction) -> None:
        self.check(shape, rate)

    @pytest.mark.parametrize("shape", [Grid((2, 2)), OneSum(2), General(((2, 3),), (1, 1))], ids=str)
    def test_a_long_line_comes_near_it(self, shape: Shape) -> None:
        """.1 % less would be wrong."""
        tables = list_tables(Bounded(shape, -60, None), (0,) * len(shape.kept_rows()))
        assert tables is not None
        bound = float(gamma_bound(Bounded(shape, -60, None), TWO_FIFTHS))
        assert 0.999 * bound < slow_gamma(tables, 0.4) <= bound + 1e-11

    @pytest.mark.parametrize("rate", [Fraction(1, 20), TWO_FIFTHS, Fraction(3, 2)])
    def test_one_free_cell_attains_it(self, rate: Fraction) -> None:
        tables = np.arange(200)[:, None]
        found = slow_gamma(tables, float(rate))
        bound = float(gamma_bound(Bounded(Free(1), 0, None), rate))
        assert found == pytest.approx(bound, abs=1e-3 if rate < TWO_FIFTHS else 1e-9)

    def test_one_sum_comes_near_it(self) -> None:
        """Many cells at the lower end of wide ranges, one at its upper end: a bound .1 % smaller would be wrong."""
        rate, n, reach = 0.4, 14, 60
        z = np.arange(-reach, reach + 1)
        laplace = np.exp(-rate * np.abs(z))

        def normaliser(down_i: int, up_j: int) -> float:
            out = np.convolve(laplace * (z >= -down_i), laplace * (z <= up_j))
            for _ in range(n - 2):
                out = np.convolve(out, laplace * (z >= 0))
            return float(out[n * reach])

        found, bound = math.log(normaliser(1, 1) / normaliser(0, 0)), float(gamma_bound(Bounded(OneSum(n), 0, 9), TWO_FIFTHS)) * 2 * rate
        assert 0.999 * bound < found <= bound

    def test_the_length_enters(self) -> None:
        """Along a move of length 4 the normaliser grows by more than what holds for length 2."""
        shape, rate = Bounded(Grid((2, 3)), 0, 3), Fraction(1, 10)
        one, other = [1, 0, 3, 1, 3, 0], [1, 1, 2, 1, 2, 1]
        fibre = fibre_of(shape, tuple((shape.kept_rows() @ one).tolist()))
        assert fibre.tables is not None
        low, high = fibre.log_normalisers(rate)
        places = [fibre.tables.tolist().index(table) for table in (one, other)]
        grown = Fraction(int(low[places[1]] - high[places[0]]), 2**UNIT_BITS)
        assert gamma_bound(Bounded(OneSum(6), 0, 3), rate) * rate * 2 < grown <= gamma_bound(shape, rate) * rate * 4

    def test_longest_moves(self) -> None:
        """Against all moves of small lattices that are no sum of two others with the same signs."""
        for shape, expected in [(OneSum(4), 2), (OneSum(3, (1, -1, 1)), 2), (Grid((2, 3)), 4), (Grid((3, 3)), 6), (CLASSES, 4)]:
            assert shape.longest_move() == expected
            assert longest_elementary(shape) == expected
        assert Free(3).longest_move() == 1
        assert SKEW.longest_move() is None
        assert longest_elementary(SKEW) > SKEW.rank + 1, "rows that are not unimodular have longer ones"
        assert Grid((2, 2, 2)).longest_move() is None
        assert General.without_rows(10, 3).longest_move() is None


def longest_elementary(shape: Shape) -> int:
    reach = 1 if shape.size > 6 else 2 if shape.size > 4 else 7
    found = np.array(list(product(range(-reach, reach + 1), repeat=shape.size)), dtype=np.int64)
    moves = found[(found @ shape.kept_rows().T == 0).all(axis=1)]
    moves = moves[np.abs(moves).sum(axis=1) > 0]
    longest = 0
    for move in moves:
        within = (moves * np.sign(move) >= 0).all(axis=1) & (np.abs(moves) <= np.abs(move)).all(axis=1)
        if within.sum() == 1:  # itself alone
            longest = max(longest, int(np.abs(move).sum()))
    return longest


class TestOneSided:
    """Bounds on one side only, n cells under one sum: 2 - b - (1 - b)^n for all totals, b = e^(-2 rate). [theory T73]"""

    @pytest.mark.parametrize(("cells", "total"), [(2, 8), (3, 7), (4, 5), (5, 4)])
    @pytest.mark.parametrize("rate", [Fraction(1, 10), TWO_FIFTHS, Fraction(3, 2)])
    def test_every_total(self, cells: int, total: int, rate: Fraction) -> None:
        shape = Bounded(OneSum(cells), 0, None)
        bound = gamma_bound(shape, rate)
        for value in range(1, total + 1):
            tables = list_tables(shape, (value,))
            assert tables is not None
            assert fibre_of(shape, (value,)).excess(rate) <= bound * rate
            assert fibre_of(Bounded(OneSum(cells), None, 0), (-value,)).excess(rate) <= bound * rate

    @given(boxes(4, 3), st.sampled_from([Fraction(1, 10), TWO_FIFTHS, Fraction(3, 2)]))
    @settings(max_examples=20, deadline=None)
    def test_a_step_of_the_proof(self, box: tuple[tuple[int, ...], tuple[int, ...]], rate: Fraction) -> None:
        """Z(x + g) Z(x - g) <= Z(x)^2 for g = e_i - e_j, with any bounds. [theory T76]"""
        for (total,) in fibres_in(Bounded(OneSum(4), *box)):
            fibre = fibre_of(Bounded(OneSum(4), *box), (total,))
            assert fibre.tables is not None
            low, high = fibre.log_normalisers(rate)
            place = {table: k for k, table in enumerate(map(tuple, fibre.tables.tolist()))}
            for x, k in place.items():
                up, down = place.get((x[0] + 1, x[1] - 1, *x[2:])), place.get((x[0] - 1, x[1] + 1, *x[2:]))
                if up is not None and down is not None:
                    assert low[up] + low[down] <= 2 * high[k]

    def test_it_is_approached(self) -> None:
        """All people in one cell, one of them moves: with many people the bound is nearly reached, so a smaller one is wrong."""
        shape, rate = Bounded(OneSum(3), 0, None), TWO_FIFTHS
        found, bound = fibre_of(shape, (20,)).excess(rate), gamma_bound(shape, rate) * rate
        assert Fraction(999, 1000) * bound < found <= bound

    def test_signs_turn_sides_round(self) -> None:
        rate = TWO_FIFTHS
        plain = gamma_bound(Bounded(OneSum(3), 0, None), rate)
        assert gamma_bound(Bounded(OneSum(3, (1, -1, 1)), (0, None, 0), (None, 0, None)), rate) == plain
        assert gamma_bound(Bounded(OneSum(3, (1, -1, 1)), 0, None), rate) > plain
        assert gamma_bound(Bounded(OneSum(3), 0, 9), rate) > plain


class TestBestRate:
    """epsilon_0 from (1 + gamma(epsilon_0)) epsilon_0 = epsilon."""

    @pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
    def test_one_sum_in_closed_form(self, epsilon: Fraction) -> None:
        """e^(2 rate) = (1 + e^(2 epsilon)) / 2. [theory T73]"""
        best = best_rate([Bounded(OneSum(5), 0, 9)], epsilon)
        exact = math.log((1 + math.exp(2 * float(epsilon))) / 2) / 2
        assert exact - float(epsilon) / 10_000 <= float(best.rate) <= exact
        assert best.basis == "moves"
        assert best.rate * best.one_plus_gamma == epsilon

    @pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(2)])
    def test_the_promise_by_enumeration(self, epsilon: Fraction) -> None:
        """All tables of small blocks, all pairs, all outputs, at the rate that is used; and the rate is more than half."""
        shape = Bounded(CLASSES, 0, 2)
        best = best_rate([shape], epsilon)
        assert epsilon / 2 < best.rate < epsilon
        for tables in fibres_in(shape).values():
            distances = np.abs(tables[:, None, :] - tables[None, :, :]).sum(axis=2)
            law = np.exp(-float(best.rate) * distances)
            logs = np.log(law / law.sum(axis=1, keepdims=True))
            loss = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
            assert (loss <= float(epsilon) * distances + 1e-11).all()

    def test_equalities_cost_nothing(self) -> None:
        for shape in (OneSum(3), Grid((2, 3)), Bounded(Grid((2, 2, 2)), None, None), Bounded(Pinned(1), 0, None)):
            assert best_rate([shape], Fraction(1)).rate == 1
        assert best_rate([], Fraction(1)).basis == "equalities"

    def test_binary_sums_cost_nothing(self) -> None:
        """All tables with one total are alike up to the order of cells. [theory T74]"""
        best = best_rate([Bounded(OneSum(6), 0, 1), OneSum(4), Bounded(OneSum(3), (2, 0, 5), (3, 0, 6))], Fraction(1))
        assert best == BestRate(Fraction(1), Fraction(1), "moves")
        for tables in fibres_in(Bounded(OneSum(5), 0, 1)).values():
            assert slow_gamma(tables, 0.4) == pytest.approx(0, abs=1e-12)
        assert best_rate([Bounded(OneSum(6), 0, (1, 1, 1, 1, 1, 2))], Fraction(1)).rate < 1
        assert best_rate([Bounded(OneSum(6), -(2**62), 2**62)], Fraction(1)).rate < 1, "wide bounds do not overflow"

    def test_binary_cells_under_no_sum_cost_nothing(self) -> None:
        """Exchanging the two values of a cell maps one table to the other. [theory T74]"""
        for shape in (Bounded(Free(1), 0, 1), Bounded(Free(1), 4, 4), Bounded(Free(3), (0, 2, 5), (1, 2, 6))):
            assert best_rate([shape], Fraction(1)) == BestRate(Fraction(1), Fraction(1), "moves")
            (tables,) = fibres_in(shape).values()
            assert slow_gamma(tables, 0.4) == pytest.approx(0, abs=1e-12)
        assert best_rate([Bounded(Free(1), 0, 1), Bounded(Free(1), 0, 2)], Fraction(1)).rate < 1
        assert best_rate([Bounded(Free(1), 0, None)], Fraction(1)).rate < 1

    def test_the_worst_block_decides(self) -> None:
        mild, bad = Bounded(OneSum(3), 0, None), Bounded(Grid((3, 3)), 0, None)
        assert best_rate([mild, OneSum(4), bad], Fraction(1)) == best_rate([bad], Fraction(1))
        assert best_rate([bad], Fraction(1)).rate < best_rate([mild], Fraction(1)).rate

    @pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(50), Fraction(10**6)])
    def test_extreme_budgets(self, epsilon: Fraction) -> None:
        for shape in (Bounded(OneSum(3), 0, None), Bounded(OneSum(3), 0, 4), Bounded(Grid((3, 3)), 0, None), Bounded(OneSum(2), 0, None)):
            best = best_rate([shape], epsilon)
            assert epsilon / 2 <= best.rate < epsilon
            assert best.rate + gamma_bound(shape, best.rate) * best.rate <= epsilon

    def test_rows_and_unknown_moves_take_the_default(self) -> None:
        for shape in (Bounded(OneSum(3), 0, None, ((1, -1, 0),), (0,)), Bounded(Grid((2, 3, 3)), 0, None), Bounded(SKEW, 0, None)):
            assert best_rate([shape], Fraction(3, 2)) == BestRate(Fraction(3, 4), Fraction(2), "default")


class TestNeighbourhood:
    """[GM20] section 5.1: kept, disrupted, destroyed."""

    @given(boxes(3, 2), st.booleans())
    @settings(max_examples=30, deadline=None)
    def test_one_sum_against_listing(self, box: tuple[tuple[int, ...], tuple[int, ...]], signed: bool) -> None:
        shape = Bounded(OneSum(3, (1, -1, 1) if signed else None), *box)
        for totals, tables in fibres_in(shape).items():
            found = neighbourhood_given(shape, totals)
            assert found.kind == ("kept" if len(tables) > 1 else "destroyed")
            assert found.smallest == Fibre(tables).smallest

    def test_without_bounds(self) -> None:
        assert neighbourhood(OneSum(3)).kind == "kept"
        assert neighbourhood(Grid((3, 3))).kind == "disrupted"
        assert neighbourhood(Grid((3, 3))).smallest == 4
        assert neighbourhood(Pinned(1)).kind == "destroyed"
        assert neighbourhood(Free(2)).smallest == 1

    def test_with_bounds(self) -> None:
        grid = Bounded(Grid((2, 2)), 0, None)
        assert neighbourhood_given(grid, (3, 2, 1, 4)).kind == "disrupted"
        assert neighbourhood_given(grid, (3, 0, 1, 2)).kind == "destroyed", "an empty row leaves one table"
        assert neighbourhood(grid).kind == "disrupted"
        assert neighbourhood(grid).status == "lower bound"
        assert neighbourhood(Bounded(OneSum(3), 0, None)).kind == "not known", "a total of zero leaves one table"
        assert neighbourhood_given(Bounded(OneSum(3), 0, None), (10**12,)).kind == "kept"
        assert neighbourhood_given(Bounded(OneSum(3), 0, None), (0,)).kind == "destroyed"
        assert neighbourhood(Bounded(Free(2), 0, (1, 0))).smallest == 1
        assert neighbourhood(Bounded(Free(2), 0, 0)).kind == "destroyed"
        assert neighbourhood_given(Bounded(Free(2), 0, 1, ((1, -1), (-1, 1)), (0, 0)), ()).smallest == 2, "a row ties the two cells"

    def test_a_row_can_disrupt(self) -> None:
        """y1 = y2 by two inequalities: one person alone cannot move."""
        shape = Bounded(OneSum(3), 0, None, ((1, -1, 0), (-1, 1, 0)), (0, 0))
        found = neighbourhood_given(shape, (4,))
        assert (found.kind, found.smallest) == ("disrupted", 4)


class TestGaussianFactor:
    def test_shapes(self) -> None:
        assert (
            gaussian_factor([OneSum(5), Grid((2, 2, 2)), Bounded(Free(4), 0, None), Bounded(OneSum(2), 0, 9), Bounded(Grid((2, 2)), 0, 1)])
            == 1
        )
        assert gaussian_factor([OneSum(5), Bounded(OneSum(3), 0, None)]) == 2
        assert gaussian_factor([Bounded(Grid((2, 3)), 0, None)]) == gaussian_factor([Bounded(Grid((2, 3, 2)), 0, None)]) == 2
        assert gaussian_factor([Bounded(Grid((3, 4)), 0, None)]) == gaussian_factor([Bounded(CLASSES, 0, None)]) == 2
        assert gaussian_factor([]) == 1

    @pytest.mark.parametrize(
        "shape", [Bounded(SKEW, 0, None), Bounded(Grid((3, 3, 3)), 0, None), Bounded(OneSum(3), 0, 1, ((1, 0, 0),), (0,))]
    )
    def test_what_is_not_proved_is_refused(self, shape: Bounded) -> None:
        with pytest.raises(InvalidParameter, match="no proven cost"):
            gaussian_factor([OneSum(2), shape])

    def test_the_refusal_names_all_that_is_allowed(self) -> None:
        """CLASSES are neither one sum nor rows and columns, and are not refused."""
        assert gaussian_factor([Bounded(CLASSES, 0, None)]) == 2
        with pytest.raises(InvalidParameter, match="not one sum, not rows and columns, and not known to have rows whose nonzero minors"):
            gaussian_factor([Bounded(SKEW, 0, None)])
