"""Laws of sums of Gaussian noise on lattices, against the law itself summed over the lattice ([theory T140], [theory T141])."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.accuracy.convolved import ERROR, cell_of, convolve
from holdfast.accuracy.lattice_sums import LatticeSum, discrete_reach, flatness, log_theta, tail_bound
from holdfast.accuracy.short_moves import form_variance, short_moves
from holdfast.lattices.shapes import Free, General, Grid, Levels, OneSum, Units
from holdfast.lattices.trees import Tree
from holdfast.laws import Gaussian, LevelGaussian

REACH = {1: 40, 2: 20, 3: 12, 4: 9}


def basis_of(shape: Any) -> Any:
    return np.eye(shape.size, dtype=np.int64) if isinstance(shape, Free) else np.array(shape.basis(), dtype=np.int64)


def points_of(basis: Any) -> Any:
    """Moves with coefficients up to REACH, six standard deviations or more with the variances here."""
    reach = REACH[basis.shape[1]]
    return np.array(list(itertools.product(range(-reach, reach + 1), repeat=basis.shape[1])), dtype=np.int64) @ basis.T


def form_of(target: Any, shape: Any) -> Any:
    """Q as a matrix."""
    if isinstance(target, Gaussian):
        return np.eye(shape.size) / float(target.sigma_squared)
    out = np.zeros((shape.size, shape.size))
    for height, mask, share in target.measured:
        level = shape.levels - height
        if level < 0:
            continue
        labels = shape.tree.unit_of(level).reshape(-1, *[1] * len(shape.lengths))
        for k, n in enumerate(shape.lengths):
            place = np.arange(n).reshape([1] * (k + 1) + [n] + [1] * (len(shape.lengths) - k - 1))
            labels = labels * n + (place if mask >> k & 1 else 0 * place)
        flat = np.broadcast_to(labels, shape.axes).ravel()
        out += 2 * float(target.rho * share) * (flat[:, None] == flat)
    return out


def weighed(target: Any, shape: Any) -> tuple[Any, Any]:
    """Moves and their probabilities."""
    moves = points_of(basis_of(shape))
    weights = np.exp(-((moves @ form_of(target, shape)) * moves).sum(axis=1) / 2)
    return moves, weights / weights.sum()


def law_of(points: tuple[Any, Any], query: Any) -> dict[int, float]:
    values, place = np.unique(points[0] @ query, return_inverse=True)
    return dict(zip(values.tolist(), np.bincount(place, weights=points[1]).tolist(), strict=True))


def shape_of(keep: list[Any], columns: dict[str, list[str]], mechanism: Any = None) -> tuple[Any, Any]:
    """(target, shape) of the only block of a table."""
    universe = hf.Universe.product(columns)
    plan = hf.plan(universe, keep, mechanism or hf.GeneralizedGaussian(sigma_squared=1))
    (task,) = plan.drawing.channel.tasks()
    return plan.drawing.channel.target, task.shape


def units() -> tuple[Any, Any]:
    universe = hf.Universe.listed({"region": ["1", "1", "2", "2"], "area": ["1a", "1b", "2a", "2b"]})
    plan = hf.plan(universe, [hf.total()], hf.GeneralizedGaussian(rho="1/3", levels={"region": "1/4", "area": "3/4"}, per="distance"))
    (task,) = plan.drawing.channel.tasks()
    return plan.drawing.channel.target, task.shape


def made_cases() -> Iterator[Any]:
    rows = General(((1, 1, 0, 1), (0, 1, 1, 2)), (2, 1, 1, 2))
    shapes: list[Any] = [Free(1), OneSum(3), OneSum(4), OneSum(3, (1, -1, 1)), Grid((2, 3)), Grid((3, 3)), rows]
    for shape in shapes:
        for variance in ("1/3", "3/2"):
            yield pytest.param(Gaussian(Fraction(variance)), shape, id=f"{shape.name} {shape.axes} {variance}")
    yield pytest.param(*units(), id="units of levels")
    other = shape_of(
        [],
        {"area": ["a", "b"], "sex": ["F", "M"]},
        hf.GeneralizedGaussian(rho="1/3", levels={"total": {"sex": "1/3"}, "area": "2/3"}, per="distance"),
    )
    yield pytest.param(*other, id="units by sex")
    plain = Tree.plain(2)
    for trees, kept in (((plain, plain, plain), ((0, 0, 1), (1, 1, 0))), ((Tree(((2,), (2, 1))), plain), ((0, 1), (1, 0)))):
        for variance in ("1", "4"):
            yield pytest.param(Gaussian(Fraction(variance)), Levels(trees, kept), id=f"levels {kept} {variance}")


CASES = list(made_cases())


def test_the_shapes_are_all_here() -> None:
    found = {type(case.values[1]) for case in CASES}
    assert found == {Free, OneSum, Grid, General, Levels, Units}
    assert any(isinstance(case.values[0], LevelGaussian) for case in CASES)


@pytest.mark.parametrize(("target", "shape"), CASES)
def test_the_law_lies_between_its_bounds(target: Any, shape: Any) -> None:
    """P[e = g k] / P[e = 0] is exp(-g^2 k^2 / (2 V)) times a number between the flatness and 1, and tails are below their bounds."""
    random, checked, points = np.random.default_rng(7), 0, weighed(target, shape)
    queries = [np.eye(shape.size, dtype=np.int64)[0], *random.integers(-1, 3, (6, shape.size)), *random.integers(0, 2, (4, shape.size))]
    for query in queries:
        law = law_of(points, query)
        moves = short_moves(target, shape, query[None])
        assert len(moves.still) + len(moves.values) == (np.count_nonzero(query) if isinstance(shape, Free) else shape.dimension)
        if len(law) == 1:
            assert not len(moves.values)
            continue
        rows, flat = flatness([moves])
        step, variance = math.gcd(*rows.ravel().tolist()), form_variance(target, shape, query)
        assert step == math.gcd(*law)
        found = LatticeSum(step, variance, flat)
        for k in range(1, 5):
            share = law.get(step * k, 0.0) / law[0] / math.exp(-((step * k) ** 2) / (2 * variance))
            assert flat * (1 - 1e-6) <= share <= 1 + 1e-6
            checked += flat > 0
        for t in range(5):
            assert sum(p for value, p in law.items() if abs(value) > step * t) <= found.tail(step * t) + 1e-9
        for alpha in (0.3, 0.05, 1e-3):
            reach, _ = found.reach(alpha)
            assert sum(p for value, p in law.items() if abs(value) > reach) <= alpha
    assert checked >= 4 or float(getattr(target, "sigma_squared", 4)) < 1.1  # of very narrow noise little is known


@pytest.mark.parametrize("axes", [(2, 3), (3, 3), (4, 4), (2, 2, 3)])
def test_the_moves_of_a_cell_are_the_same_for_every_cell_of_a_grid(axes: tuple[int, ...]) -> None:
    """They were not: two cells of one table had intervals of different lengths. Lengths are those of Gram-Schmidt vectors, from QR."""
    found = set()
    for cell in range(math.prod(axes)):
        query = np.eye(math.prod(axes), dtype=np.int64)[cell]
        moves = short_moves(Gaussian(Fraction(2)), Grid(axes), query[None])
        assert np.abs(moves.values).tolist() == [[1]]
        found.add(tuple(moves.still))
    (still,) = found
    basis: Any = np.ones((1, 1))
    for n in axes:
        basis = np.kron(basis, np.eye(n - 1, n) - np.eye(n - 1, n, 1))
    lengths = np.diag(np.linalg.qr(basis.T, mode="r")) ** 2
    assert still == pytest.approx((2 / lengths[:-1]).tolist(), rel=1e-12)


def test_a_sum_that_is_one_cell_up_to_kept_sums_has_the_moves_of_that_cell() -> None:
    """Two of the three cells of a row are the row less the third."""
    target, shape = Gaussian(Fraction(3, 2)), Grid((3, 3))
    cell, others = (short_moves(target, shape, np.array([[*row, 0, 0, 0, 0, 0, 0]])) for row in ((0, 0, 1), (1, 1, 0)))
    assert others.still.tolist() == cell.still.tolist()
    assert np.abs(others.values).tolist() == [[1]]


def test_a_law_of_less_variance_would_break_the_bounds() -> None:
    """Power: with the variance a tenth too small, tails are above what the bound says."""
    target, shape, query = Gaussian(Fraction(3, 2)), OneSum(4), np.array([1, 1, 0, 0])
    law = law_of(weighed(target, shape), query)
    _, flat = flatness([short_moves(target, shape, query[None])])
    wrong = LatticeSum(1, 0.9 * form_variance(target, shape, query), flat)
    tail = sum(p for value, p in law.items() if abs(value) > 2)
    assert wrong.tail(2) < tail < LatticeSum(1, form_variance(target, shape, query), flat).tail(2) < tail * (1 + 1e-3)


def test_a_flatness_that_is_claimed_too_high_is_found() -> None:
    """Power: z_1 + 3 z_2 of narrow noise is far from a discrete Gaussian, and the bound says so."""
    target, shape, query = Gaussian(Fraction(1, 3)), Free(2), np.array([1, 3])
    law = law_of(weighed(target, shape), query)
    variance = form_variance(target, shape, query)
    shares = [law[k] / law[0] / math.exp(-(k**2) / (2 * variance)) for k in range(1, 5)]
    _, flat = flatness([short_moves(target, shape, query[None])])
    assert min(shares) < 0.5
    assert flat <= min(shares)


@pytest.mark.parametrize("variance", [0.3, 2.0, 40.0, 1000.0])
def test_tails_of_the_discrete_gaussian(variance: float) -> None:
    law = hf.DiscreteGaussian(Fraction(variance))
    for t in (0, 1, math.ceil(math.sqrt(variance)), math.ceil(2.5 * math.sqrt(variance)), math.ceil(5 * math.sqrt(variance))):
        exact = 2 * law.tail_bounds(t + 1).upper
        bound = tail_bound(variance, t)
        assert exact <= Fraction(bound) or bound == 1.0
        # The integral over a place k exceeds the weight there by about k^2 / (24 variance^2) of it; k^2 is below (t + 2 sd)^2 on average.
        assert bound <= min(1.0, float(exact) * (1 + (t + 1 + 2 * variance**0.5) ** 2 / (24 * variance**2))) * (1 + 1e-12)
    for alpha in (0.5, 0.05, 1e-6):
        reach = discrete_reach(variance, alpha)
        assert 2 * law.tail_bounds(reach + 1).upper <= alpha
        assert reach == 0 or 2 * law.tail_bounds(reach).upper > 0.97 * alpha  # the same figure at alpha = 1e-6, 4.9 sd


def test_theta_sums_are_not_below_their_series() -> None:
    s_squared = np.array([0.05, 0.2, 1.0, 3.0])
    series = sum(math.log(1 + 2 * sum(math.exp(-2 * math.pi**2 * s * n * n) for n in range(1, 60))) for s in s_squared)
    assert series <= log_theta(s_squared) <= 1.03 * series  # q^4 / (1 - q) for q^4 + q^9 + ..., q = 0.37 at most


def test_two_queries_are_cut_together() -> None:
    """Moves that change neither of two queries: the joint law of both, against the law summed over the lattice."""
    target, shape = Gaussian(Fraction(2)), OneSum(4)
    queries = np.array([[1, 0, 0, 0], [1, 1, 0, 0]])
    rows, flat = flatness([short_moves(target, shape, queries)])
    assert flat > 0.5
    assert rows.shape[1] == 2
    moves = points_of(basis_of(shape))
    weights = np.exp(-(moves**2).sum(axis=1) / 4)
    frame, _ = np.linalg.qr(basis_of(shape).astype(float))
    inverse = np.linalg.inv(2 * queries @ frame @ frame.T @ queries.T)
    found: dict[tuple[int, int], float] = {}
    for pair, weight in zip((moves @ queries.T).tolist(), weights.tolist(), strict=True):
        found[pair[0], pair[1]] = found.get((pair[0], pair[1]), 0.0) + weight
    for pair in ((1, 0), (0, 1), (2, 1), (-1, 2), (2, 3)):
        share = found[pair] / found[0, 0] / math.exp(-np.array(pair) @ inverse @ np.array(pair) / 2)
        assert flat <= share <= 1 + 1e-6


@given(
    st.fractions(min_value=Fraction(3, 2), max_value=20, max_denominator=4),
    st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=60), min_size=1, max_size=4),
    st.lists(st.integers(-1, 1), max_size=30),
)
@settings(max_examples=25, deadline=None)
def test_sums_too_large_to_list_agree_with_their_convolution(variance: Fraction, totals: list[list[int]], free: list[int]) -> None:
    """Another way to the same law: blocks under one total each, and free cells."""
    target = Gaussian(variance)
    parts: list[Any] = [(OneSum(len(row)), np.array(row)) for row in totals] + ([(Free(1), np.array(free))] if any(free) else [])
    moves = [short_moves(target, shape, row[None]) for shape, row in parts]
    used = [k for k, found in enumerate(moves) if len(found.values)]
    assume(used)
    rows, flat = flatness([moves[k] for k in used])
    step = math.gcd(*rows.ravel().tolist())
    bounds = LatticeSum(step, sum(form_variance(target, *parts[k]) for k in used), flat)
    cell = cell_of(target)
    assert cell is not None
    exact = convolve(cell, np.array(free if any(free) else [], dtype=np.int64), [np.array(row) for row in totals])
    assert exact is not None
    assert exact.step == step
    for level in (0.5, 0.9, 0.99, 0.9999):
        reach, _ = bounds.reach(1 - level)
        narrow = exact.reach(1 - level)
        assert exact.within[reach // step] >= level - ERROR
        if flat > 0.999:  # then no more than a step is given away
            assert narrow is not None
            assert abs(reach - narrow) <= step
