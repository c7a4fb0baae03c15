"""The best shares: closed forms on products and trees, the proof that comes with every answer, grids of all shares as oracle."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.accuracy.level_design import Margin, MarginVariances
from holdfast.accuracy.share_design import FLOOR, LOSS, Objective, best_shares, closed_form
from holdfast.lattices.shapes import Units
from holdfast.lattices.trees import Tree

Floats = NDArray[np.float64]


def sum_of(shape: Units, measured: list[Margin], wanted: list[Margin], importance: list[float]) -> Objective:
    variances = MarginVariances(shape, measured, wanted)
    factors = [np.asarray(factor * variances.numbers(place), dtype=np.float64) for place, factor in enumerate(importance)]
    return Objective(variances, factors, largest=False)


def even_tree(*children: int) -> Tree:
    units, out = 1, []
    for count in children:
        out.append((count,) * units)
        units *= count
    return Tree(tuple(out))


@pytest.mark.parametrize("children", [(3, 4), (50, 62), (2, 3, 4)])
def test_an_even_tree_has_the_shares_of_its_formula(children: tuple[int, ...]) -> None:
    """Least sum of all variances, level g counted r_g times: the weight of level g is in proportion to (sqrt(b_g) - sqrt(b_(g+1))) / m_g,
    with m_g the leaves of a unit and b_g = sum of r_h m_h over h >= g.
    """
    shape = Units(even_tree(*children), (), ((),) * (len(children) + 1))
    margins = [(level, 0) for level in range(len(children) + 1)]
    importance = [float(3 + level % 2) for level in range(len(children) + 1)]
    leaves = [int(np.prod(children[level:])) for level in range(len(children) + 1)]
    b = np.append(np.cumsum((np.array(importance) * leaves)[::-1])[::-1], 0.0)
    weights = (np.sqrt(b[:-1]) - np.sqrt(b[1:])) / leaves
    objective = sum_of(shape, margins, margins, importance)
    found = closed_form(objective.variances, importance, len(children), True)
    assert found is not None
    assert np.allclose(found, weights / weights.sum(), rtol=1e-9)
    _check_both_ways(objective, found, len(children))


def _check_both_ways(objective: Objective, formula: Floats, finest: int) -> None:
    """The formula's shares are proved best, and the search without the formula comes to the same value."""
    value, slopes, bound = objective.norm(formula, 1)
    assert value / bound - 1 < 1e-9
    assert np.allclose(slopes[formula > 0], value)
    searched = best_shares(objective, finest, True)
    assert searched.value <= value * (1 + LOSS + 1e-6)
    assert value * (1 - 1e-6) <= searched.bound <= value * (1 + 1e-9)


@pytest.mark.parametrize("lengths", [(3, 5), (2, 7), (4, 4, 3)])
def test_a_product_has_the_weights_of_its_formula(lengths: tuple[int, ...]) -> None:
    """lambda_S in proportion to sqrt(v_S / q_S) ([theory T156]); shares follow by inclusion and exclusion where none is negative."""
    axes, full = range(len(lengths)), (1 << len(lengths)) - 1
    size = lambda mask: int(np.prod([lengths[k] for k in axes if mask >> k & 1]))  # noqa: E731
    q = lambda mask: float(np.prod([1 - 1 / lengths[k] for k in axes if mask >> k & 1]))  # noqa: E731
    masks = range(full + 1)
    importance = [1.0 if mask.bit_count() in (0, len(lengths)) else 0.01 for mask in masks]
    v = {
        s: sum(importance[t] * size(t) * q(s) / size(t & ~s) ** 2 for t in masks if s & t == s)  # of all numbers of all tables
        for s in masks
    }
    weight = {s: (v[s] / q(s)) ** 0.5 for s in masks}
    shares: dict[int, float] = {}
    for s in sorted(masks, key=lambda s: -s.bit_count()):
        shares[s] = weight[s] - sum(shares[t] / size(t & ~s) for t in shares if s & t == s and t != s)
    assert min(shares.values()) > 0  # else no shares have these weights
    objective = sum_of(Units(None, lengths, ((),)), [(0, s) for s in masks], [(0, s) for s in masks], importance)
    found = closed_form(objective.variances, importance, full, True)
    assert found is not None
    assert np.allclose(found, np.array([shares[s] for s in masks]) / sum(shares.values()), rtol=1e-9)
    _check_both_ways(objective, found, full)


def test_kept_totals_drop_out_of_the_formula() -> None:
    """Units under kept states: only contrasts within states are noisy, and counties and tracts share the budget."""
    shape = Units(even_tree(4, 3, 5), (), ((0,), (0,), (), ()))
    objective = sum_of(shape, [(2, 0), (3, 0)], [(2, 0), (3, 0)], [1.0, 1.0])
    found = closed_form(objective.variances, [1.0, 1.0], 1, True)
    assert found is not None
    _check_both_ways(objective, found, 1)


def test_where_the_formula_needs_a_negative_share_the_search_finds_the_best() -> None:
    """Two one-way margins of a product: the formula would take the grand total away from them, which no share can do."""
    shape, margins = Units(None, (6, 7), ((),)), [(0, 0), (0, 1), (0, 2), (0, 3)]
    objective = sum_of(shape, margins, [(0, 1), (0, 2)], [1.0, 1.0])
    assert closed_form(objective.variances, [1.0, 1.0], 3, False) is None
    found = best_shares(objective, 3, False)
    assert found.shares[0] == 0
    assert found.shares[3] == FLOOR
    assert found.value / found.bound < 1 + float(FLOOR) + 2 * LOSS


CASES = [
    (Units(Tree(((2,), (4, 1))), (), ((), (), ())), [(0, 0), (1, 0), (2, 0)]),
    (Units(Tree(((3,), (2, 5, 1))), (2,), ((0,), (0,), ())), [(0, 1), (2, 0), (2, 1)]),
    (Units(None, (2, 5), ((),)), [(0, 1), (0, 2), (0, 3)]),
]


@pytest.mark.parametrize("largest", [False, True], ids=["sum", "largest"])
@pytest.mark.parametrize(("shape", "margins"), CASES, ids=range(len(CASES)))
def test_no_shares_of_a_grid_are_better(shape: Units, margins: list[Margin], largest: bool) -> None:
    """All shares in steps of 1/60: none is below the proved bound, and none better than the answer by more than rounding may lose."""
    variances = MarginVariances(shape, margins, margins)
    factors = [np.full(len(variances.numbers(place)), 1.0 + place) for place in range(3)]
    objective = Objective(variances, factors, largest)
    found = best_shares(objective, 2, True)
    assert sum(found.shares) == 1
    grid = [(a, b, 60 - a - b) for a, b in itertools.product(range(60), repeat=2) if a + b < 60]
    values = [objective.value(np.array(shares) / 60) for shares in grid]
    assert min(values) >= found.bound * (1 - 1e-12)
    assert found.value <= min(values) * (1 + LOSS)
    assert found.value / found.bound < 1 + 3 * LOSS


def test_a_bound_of_other_shares_is_no_larger_than_their_value() -> None:
    """The bound holds at any shares, good or bad, with any power."""
    shape, margins = CASES[1]
    variances = MarginVariances(shape, margins, margins)
    objective = Objective(variances, [np.ones(len(variances.numbers(place))) for place in range(3)], True)
    best = best_shares(objective, 2, True).value
    for shares, power in itertools.product(np.random.default_rng(1).dirichlet(np.ones(3), 50), (1, 3, 50)):
        assert objective.norm(shares, power)[2] <= best * (1 + 1e-12)


def test_shares_are_short_decimals() -> None:
    objective = sum_of(Units(even_tree(3, 4), (), ((), (), ())), [(0, 0), (1, 0), (2, 0)], [(1, 0), (2, 0)], [1.0, 1.0])
    shares = best_shares(objective, 2, True).shares
    assert all((share * 1000).denominator == 1 for share in shares)
    assert sum(shares) == Fraction(1)
