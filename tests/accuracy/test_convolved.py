"""Laws of sums by convolution, against sums over all tables ([theory T142])."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from holdfast.accuracy.convolved import ERROR, cell_of, convolve
from holdfast.laws import Gaussian, L1Laplace, L2Laplace, Rounded

NONE = np.zeros(0, dtype=np.int64)


def law_of(weight: Callable[[int], float], free: Any, totals: Any, reach: int) -> dict[int, float]:
    """All tables with cells up to `reach`, block by block; blocks are convolved as dictionaries."""
    law = {0: 1.0}
    blocks = [([w], False) for w in free] + [(list(row), True) for row in totals]
    for row, kept in blocks:
        own: dict[int, float] = {}
        for z in itertools.product(range(-reach, reach + 1), repeat=len(row) - kept):
            table = (*z, -sum(z)) if kept else z
            value = sum(w * x for w, x in zip(row, table, strict=True))
            own[value] = own.get(value, 0.0) + math.prod(map(weight, table))
        total = sum(own.values())
        joined: dict[int, float] = {}
        for (a, p), (b, q) in itertools.product(law.items(), own.items()):
            joined[a + b] = joined.get(a + b, 0.0) + p * q / total
        law = joined
    return law


QUERIES: list[Any] = [
    ([1], []),
    ([2, -2, 4], []),
    ([], [[1, 0, 0]]),
    ([], [[3, 0, 0]]),
    ([], [[1, -1, 0]]),
    ([], [[2, 5, 0]]),
    ([1], [[1, 0, 0], [1, 1, 0]]),
    ([3], [[1, 0, -1], [2, 2, 2]]),
]


@pytest.mark.parametrize(("free", "totals"), QUERIES)
@pytest.mark.parametrize("target", [L1Laplace(Fraction(9, 10)), Gaussian(Fraction(3, 2))], ids=["laplace", "gaussian"])
def test_every_probability(target: Any, free: Any, totals: Any) -> None:
    laplace = isinstance(target, L1Laplace)
    weight = (lambda k: math.exp(-0.9 * abs(k))) if laplace else (lambda k: math.exp(-(k**2) / 3))
    exact = law_of(weight, free, totals, 36 if laplace else 9)  # what is left out is below 1e-13
    cell = cell_of(target)
    assert cell is not None
    found = convolve(cell, np.array(free, dtype=np.int64), [np.array(row) for row in totals])
    assert found is not None
    assert found.step == math.gcd(*exact)
    for t in range(12):
        inside = sum(p for value, p in exact.items() if abs(value) <= t * found.step)
        assert abs(inside - found.within[t]) < ERROR
    for alpha in (0.4, 0.05, 1e-4):
        reach = found.reach(alpha)
        assert reach is not None
        assert sum(p for value, p in exact.items() if abs(value) > reach) <= alpha
        if reach:  # and no shorter one would do
            assert sum(p for value, p in exact.items() if abs(value) >= reach) > alpha - 2 * ERROR


def test_large_blocks_against_the_law_of_a_cell() -> None:
    """1,000 cells under one total: the variance is that of [theory R4]."""
    from holdfast.laws.families import one_sum_laplace_variance

    cell = cell_of(L1Laplace(Fraction(1, 4)))
    assert cell is not None
    found = convolve(cell, NONE, [np.array([1] + [0] * 999)])
    assert found is not None
    law = np.diff(found.within, prepend=0.0)
    variance = float((law * np.arange(len(law)) ** 2).sum())
    assert variance == pytest.approx(one_sum_laplace_variance(1000, Fraction(1, 4))[0], rel=1e-9)


def test_three_kinds_of_cells_agree_with_two() -> None:
    """(1, 0, 0, -1 many times) by the mean over y, and the same law with cells counted as two classes by the other way."""
    cell = cell_of(L1Laplace(Fraction(1, 2)))
    assert cell is not None
    difference = convolve(cell, NONE, [np.array([1] * 3 + [-1] * 3 + [0] * 4)])
    twice = convolve(cell, NONE, [np.array([2] * 3 + [0] * 7)])
    assert difference is not None
    assert twice is not None
    law = {k * difference.step: p for k, p in enumerate(np.diff(difference.within, prepend=0.0))}
    of_difference = sum(k * k * p for k, p in law.items())
    of_twice = sum((2 * k) ** 2 * p for k, p in enumerate(np.diff(twice.within, prepend=0.0)))
    # Under one total the variance of a query is proportional to its squared distance from its mean ([theory T32]).
    assert of_difference / of_twice == pytest.approx(6 / (4 * 3 * 0.7), rel=1e-9)


def test_where_there_is_no_such_law() -> None:
    assert cell_of(L2Laplace(Fraction(1))) is None
    assert cell_of(Gaussian(Fraction(1000))) is None
    assert cell_of(Rounded(Fraction(1))) is not None  # of free cells
    cell = cell_of(L1Laplace(Fraction(1, 10**9)))
    assert cell is not None
    assert convolve(cell, np.array([1]), []) is None  # too many points
    narrow = cell_of(L1Laplace(Fraction(1)))
    assert narrow is not None
    found = convolve(narrow, np.array([1]), [])
    assert found is not None
    assert found.reach(1e-12) is None  # not to be told from the error
    assert convolve(narrow, NONE, [np.array([2, 2])]).within[0] == 1.0  # type: ignore[union-attr]
