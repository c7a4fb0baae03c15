"""The exact delta of lattice Gaussians: against sums over points, between the ways, and against the value of [theory T18]."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import precision
from holdfast.lattices import Lattice
from holdfast.privacy import discrete_gaussian_delta_bounds, zcdp_delta
from holdfast.research.accounting import lattice_gaussian_delta, lattice_gaussian_delta_bounds, one_sum_delta_bounds
from holdfast.research.accounting.lattice_delta import (
    MAX_SUMMED_CELLS,
    _parity_weights,
    _points,
    _radius_squared,
    _tail,
    _theta,
    enumerated_delta_bounds,
)
from tests.examples import examples
from tests.privacy.reference import real

GRID = Lattice([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])


def differences(n: int) -> np.ndarray:
    return np.eye(n, n - 1, dtype=np.int64) - np.eye(n, n - 1, k=-1, dtype=np.int64)


def by_definition(points: list[tuple[int, ...]], v: tuple[int, ...], s2: Fraction, epsilon: Fraction) -> arb:
    """Sum of the positive parts of p(z - v) - e^epsilon p(z) over the points given; the rest weighs nothing at this precision."""
    weight = {z: (-real(Fraction(sum(x * x for x in z)) / (2 * s2))).exp() for z in points}
    total, factor = sum(weight.values(), arb(0)), real(epsilon).exp()
    out = arb(0)
    for z, here in weight.items():
        moved = tuple(a - b for a, b in zip(z, v, strict=True))
        gap = (-real(Fraction(sum(x * x for x in moved)) / (2 * s2))).exp() - factor * here
        out += gap if gap > 0 else arb(0)
    return out / total


def zero_sums(n: int, reach: int) -> list[tuple[int, ...]]:
    return [(*z, -sum(z)) for z in itertools.product(range(-reach, reach + 1), repeat=n - 1)]


@pytest.mark.parametrize("epsilon", ["0", "1/3", "2"])
@pytest.mark.parametrize(("cells", "sigma_squared", "reach"), [(2, "3", 40), (3, "1", 24), (3, "5/2", 36), (4, "1/2", 12)])
def test_one_sum_agrees_with_the_definition(cells: int, sigma_squared: str, reach: int, epsilon: str) -> None:
    v = (1, -1, *[0] * (cells - 2))
    with precision(256):
        truth = by_definition(zero_sums(cells, reach), v, Fraction(sigma_squared), Fraction(epsilon))
        lower, upper = one_sum_delta_bounds(cells, sigma_squared, epsilon)
        assert abs(truth - real(lower)) < real("1e-30")
        assert upper - lower < Fraction(1, 10**40)
    counted = enumerated_delta_bounds(differences(cells), v, sigma_squared, epsilon)
    assert counted.lower <= upper
    assert lower <= counted.upper
    assert counted.upper - counted.lower < Fraction(1, 10**28)


@pytest.mark.parametrize("people", [1, 2, 5])
def test_several_people_along_one_direction(people: int) -> None:
    for cells, s2, epsilon in ((3, "4", "1"), (4, "2", "3"), (2, "7", "1/2")):
        v = [people, -people, *[0] * (cells - 2)]
        summed, counted = one_sum_delta_bounds(cells, s2, epsilon, people), enumerated_delta_bounds(differences(cells), v, s2, epsilon)
        assert summed.lower <= counted.upper
        assert counted.lower <= summed.upper


def test_a_table_with_rows_and_columns_kept() -> None:
    """The smallest grid has one dimension: its noise is a discrete Gaussian along (1, -1, -1, 1), of a quarter of the s2."""
    for epsilon in ("0", "1/2", "3"):
        found = lattice_gaussian_delta_bounds(GRID, [1, -1, -1, 1], "6", epsilon)
        alone = discrete_gaussian_delta_bounds(Fraction(6, 4), epsilon, 1)
        assert found.lower <= alone.upper
        assert alone.lower <= found.upper
        assert found.upper - found.lower < Fraction(1, 10**25)


def test_each_lattice_goes_its_way() -> None:
    free = Lattice(np.zeros((1, 3), dtype=np.int64))
    assert lattice_gaussian_delta_bounds(free, [0, 2, 0], "5", "1/2") == discrete_gaussian_delta_bounds("5", "1/2", 2)
    both = lattice_gaussian_delta_bounds(free, [1, 1, 0], "5", "1/2")
    with precision(200):
        points = list(itertools.product(range(-30, 31), repeat=2))
        truth = by_definition(points, (1, 1), Fraction(5), Fraction(1, 2))
        assert abs(truth - real(both.lower)) < real("1e-20")
    total = Lattice([[1] * 6])
    assert lattice_gaussian_delta_bounds(total, [0, 1, 0, -1, 0, 0], "5", "1/2") == one_sum_delta_bounds(6, "5", "1/2")
    signed = Lattice([[1, -1, 1]])
    assert lattice_gaussian_delta_bounds(signed, [1, 1, 0], "5", "1/2") == one_sum_delta_bounds(3, "5", "1/2")
    longer = lattice_gaussian_delta_bounds(Lattice([[1, 1, 1]]), [1, 1, -2], "2", "1")
    with precision(200):
        truth = by_definition(zero_sums(3, 25), (1, 1, -2), Fraction(2), Fraction(1))
        assert abs(truth - real(longer.lower)) < real("1e-20")
    two = Lattice([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]])  # a move across two blocks
    found = lattice_gaussian_delta_bounds(two, [1, -1, 1, -1, 0], "1", "1")
    with precision(200):
        points = [(a, -a, *z) for a in range(-18, 19) for z in zero_sums(3, 18)]
        truth = by_definition(points, (1, -1, 1, -1, 0), Fraction(1), Fraction(1))
        assert abs(truth - real(found.lower)) < real("1e-20")


def test_the_value_of_the_notes() -> None:
    """At (1/4, 1e-5) for each unit of l2 distance the exact delta allows a sigma_squared of about 176.5; Proposition 7 needs 212.2.

    r = sqrt 2 for one person under one total of 102 cells: epsilon r and the delta of Definition 2 are enclosed by rationals.
    """
    root = Fraction(math.isqrt(2 * 10**40), 10**20)
    low, high = root / 4, (root + Fraction(1, 10**20)) / 4
    allowed = 1e-5 * math.expm1(math.sqrt(2) / 4) / math.expm1(0.25)
    assert one_sum_delta_bounds(102, Fraction("176.5"), low).upper <= allowed < one_sum_delta_bounds(102, Fraction("176.4"), high).lower
    assert zcdp_delta(Fraction(2) / (2 * Fraction("176.5")), low) > 2 * allowed
    assert (
        discrete_gaussian_delta_bounds("176.6", "1/4", 1).upper
        <= Fraction(1, 10**5)
        < discrete_gaussian_delta_bounds("176.5", "1/4", 1).lower
    )


def test_the_bound_of_the_parity_bias() -> None:
    """0 <= b <= M^2 wherever both are computed; and beyond the cells that are summed the enclosure holds what the sums give."""
    with precision(384):
        for s2 in (Fraction(1, 4), Fraction(1), Fraction(5, 2), Fraction(6), Fraction(20)):
            whole, _, signed = _theta(s2)
            limit = (signed * whole) ** 2
            for cells in (4, 5, 9):
                even, odd = _parity_weights(cells - 2, s2)
                bias = (even - odd) / (even + odd)
                assert bias.upper() >= 0
                assert bias <= limit
    wide = one_sum_delta_bounds(MAX_SUMMED_CELLS + 1, "3", "1/2")
    narrow = one_sum_delta_bounds(MAX_SUMMED_CELLS, "3", "1/2")
    assert wide.lower <= narrow.upper
    assert narrow.lower <= wide.upper
    assert wide.upper - wide.lower < Fraction(1, 1000)


def test_theta_sums() -> None:
    with precision(256):
        for s2 in (Fraction(1, 10), Fraction(9, 10), Fraction(1), Fraction(3, 2), Fraction(20)):
            reach = range(-150, 151)
            direct = (
                sum(((-real(Fraction(j * j) / s2)).exp() for j in reach), arb(0)),
                sum(((-real(Fraction((2 * j + 1) ** 2, 4) / s2)).exp() for j in reach), arb(0)),
                sum(((-1) ** (j % 2) * (-real(Fraction(j * j) / s2)).exp() for j in reach), arb(0)),
            )
            assert all(abs(a - b) < real("1e-60") for a, b in zip(_theta(s2), direct, strict=True))


@pytest.mark.parametrize("basis", [differences(3), differences(4), np.array([[1, 0], [0, 3], [2, 1]])])
def test_no_point_is_missed(basis: np.ndarray) -> None:
    """All coordinates in a large box, against the enumeration."""
    vector, radius = np.arange(1, basis.shape[0] + 1), 30
    found = sorted(pair for pair in zip(*map(np.ndarray.tolist, _points(basis, vector, radius)), strict=True) if pair[0] <= radius)
    expected = []
    for c in itertools.product(range(-25, 26), repeat=basis.shape[1]):
        z = basis @ np.array(c)
        if z @ z <= radius:
            expected.append((int(z @ z), int(z @ vector)))
    assert found == sorted(expected)


def test_the_tail_holds() -> None:
    """The mass beyond a radius, on the zero sums of three numbers, against its bound."""
    s2 = Fraction(2)
    with precision(128):
        weights = [(sum(x * x for x in z), (-real(Fraction(sum(x * x for x in z)) / (2 * s2))).exp()) for z in zero_sums(3, 25)]
        total = sum((w for _, w in weights), arb(0))
        for radius_squared in range(4, 60, 5):
            beyond = sum((w for n, w in weights if n > radius_squared), arb(0)) / total
            assert beyond <= _tail(2, s2, radius_squared)
    assert _radius_squared(2, s2) > 200


@given(
    st.fractions(min_value=Fraction(1, 4), max_value=400, max_denominator=100),
    st.fractions(min_value=0, max_value=4, max_denominator=100),
    st.fractions(min_value=0, max_value=2, max_denominator=100),
    st.integers(min_value=2, max_value=40),
)
@settings(max_examples=examples(40), deadline=None)
def test_below_what_rho_alone_gives_and_falling_in_epsilon(s2: Fraction, epsilon: Fraction, more: Fraction, cells: int) -> None:
    bounds = one_sum_delta_bounds(cells, s2, epsilon)
    assert bounds.lower <= Fraction(zcdp_delta(1 / s2, epsilon))
    assert one_sum_delta_bounds(cells, s2, epsilon + more).lower <= bounds.upper


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="kept total"):
        lattice_gaussian_delta(GRID, [1, -1, 0, 0], "1", "1")
    with pytest.raises(InvalidParameter, match="zero"):
        lattice_gaussian_delta(GRID, [0, 0, 0, 0], "1", "1")
    with pytest.raises(RequestTooLarge, match="zcdp_delta"):
        lattice_gaussian_delta(Lattice([[1] * 30]), [1, 1, -2, *[0] * 27], "1", "1")
    with pytest.raises(RequestTooLarge, match="zcdp_delta"):
        enumerated_delta_bounds(differences(6), [1, 1, -2, 0, 0, 0], "100", "1")
    with pytest.raises(InvalidParameter):
        one_sum_delta_bounds(1, "1", "1")
    assert 0 < lattice_gaussian_delta(GRID, [1, -1, -1, 1], "6", "1/2") < 1
    with pytest.raises(RequestTooLarge, match="entry"):
        lattice_gaussian_delta(Lattice([[1, 1]]), [2**40, -(2**40)], "1", "1")


@pytest.mark.parametrize("epsilon", ["1e7", "1e12", "1e300"])
def test_an_enormous_epsilon_fills_no_memory(epsilon: str) -> None:
    assert one_sum_delta_bounds(5, "1", epsilon).upper < Fraction(1, 10**300)
    assert discrete_gaussian_delta_bounds("1", epsilon, 1).upper < Fraction(1, 10**300)
    assert 0 <= enumerated_delta_bounds(differences(3), [1, 1, -2], "1", epsilon).upper < Fraction(1, 10**25)
