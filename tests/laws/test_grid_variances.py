"""The variance of a cell of Laplace noise on small grids, where it has a closed form: by enumeration, and by printed values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from holdfast.channels.covariance import of_shape
from holdfast.lattices.shapes import Grid
from holdfast.lattices.shapes.plain import zero_sum_basis
from holdfast.laws import L1Laplace
from holdfast.laws.families import grid_laplace_variance
from holdfast.samplers.table import choose

QUARTER = Fraction(1, 4)


@pytest.mark.parametrize(("axes", "printed"), [((2, 2), 1.84135), ((3, 3), 5.46088), ((4, 4), 8.81598)])
def test_printed_variances_are_found(axes: tuple[int, ...], printed: float) -> None:
    found = grid_laplace_variance(axes, QUARTER)
    assert found is not None
    assert found[0] == pytest.approx(printed, abs=6e-6)


@pytest.mark.parametrize("axes", [(2, 2), (2, 3), (2, 2, 2), (3, 2, 2), (3, 3)])
@pytest.mark.parametrize("epsilon", ["3/2", "3"])
def test_closed_forms_are_those_of_all_tables(axes: tuple[int, ...], epsilon: str) -> None:
    """Coordinates up to 12, which leave less than exp(-36) at epsilon 3/2."""
    basis = zero_sum_basis(axes)
    tables = np.stack(np.meshgrid(*[np.arange(-12, 13)] * basis.shape[1], indexing="ij"), axis=-1).reshape(-1, basis.shape[1]) @ basis.T
    weights = np.exp(-float(Fraction(epsilon)) * np.abs(tables).sum(axis=1))
    found = grid_laplace_variance(axes, Fraction(epsilon))
    assert found is not None
    assert found[0] == pytest.approx(float(weights @ tables[:, 0] ** 2 / weights.sum()), rel=1e-9 + found[1])
    target, shape = L1Laplace(Fraction(epsilon)), Grid(axes)
    whole = of_shape(target, choose(shape, target).noise, shape, np.arange(shape.size)[None])
    assert whole.variance.basis == "exact"
    query = np.array([i % 5 + 0.5 for i in range(shape.size)])
    assert whole.variance_of(query) == pytest.approx(float(weights @ (tables @ query) ** 2 / weights.sum()), rel=1e-9 + found[1])


WRAPPED = [((3, 3), "1/10"), ((3, 60), "1/3"), ((3, 60), "6"), ((4, 5), "2/3"), ((5, 6), "3"), ((3, 2, 7), "1/2")]


@pytest.mark.parametrize(("axes", "epsilon"), WRAPPED)
def test_what_wraps_around_is_less_than_the_stated_error(axes: tuple[int, ...], epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer period leaves less. The power: a third of the period is off by more, where epsilon is small."""
    found = grid_laplace_variance(axes, Fraction(epsilon))
    assert found is not None
    for times, differs in ((1.5, False), (1 / 3, Fraction(epsilon) < 2)):
        monkeypatch.setattr(math, "ceil", lambda x, ceil=math.ceil, times=times: ceil(times * x))
        other = grid_laplace_variance(axes, Fraction(epsilon))
        monkeypatch.undo()
        assert other is not None
        assert (abs(other[0] / found[0] - 1) > found[1]) is differs


@pytest.mark.parametrize(("axes", "epsilon"), [((3, 3, 3), "1"), ((6, 6), "1/4"), ((3, 3), "1/1000"), ((3, 3), "40")])
def test_what_takes_long_or_is_nearly_nil_is_left_to_draws(axes: tuple[int, ...], epsilon: str) -> None:
    assert grid_laplace_variance(axes, Fraction(epsilon)) is None
