"""Variances as functions of weights: against dense linear algebra, and against the figures that plans print."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.accuracy.level_design import Margin, MarginVariances, UnitClasses
from holdfast.lattices.shapes import Units
from holdfast.lattices.trees import Tree

Floats = NDArray[np.float64]

SHAPES = [
    Units(Tree(((2,), (3, 2))), (2,), ((), (), ())),
    Units(Tree(((3,), (2, 2, 3))), (2, 3), ((0,), (0,), ())),
    Units(Tree(((2,), (2, 1))), (2, 2), ((0, 1), (0,), ())),
    Units(Tree(((3,), (2, 1, 2))), (2,), ((0,), (0,), (0,))),
    Units(None, (3, 2, 2), ((0, 1, 2),)),
]


def matrix(shape: Units, margin: Margin) -> Floats:
    """One row for each number of a margin of the units of a level, by plain grouping."""
    level, mask = margin
    unit = np.zeros(shape.leaves, dtype=np.int64) if shape.tree is None else shape.tree.unit_of(level)
    groups: dict[tuple[int, ...], int] = {}
    rows = [
        groups.setdefault((int(unit[leaf]), *(place if mask >> k & 1 else 0 for k, place in enumerate(places))), len(groups))
        for leaf, *places in product(range(shape.leaves), *map(range, shape.lengths))
    ]
    return np.asarray(np.array(rows)[None, :] == np.arange(len(groups))[:, None], dtype=np.float64)


def free(shape: Units) -> list[Margin]:
    return [(level, mask) for level in range(shape.levels + 1) for mask in shape.masks if mask not in shape.kept[level]]


@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
def test_variances_and_slopes_are_those_of_the_best_linear_estimate(shape: Units) -> None:
    """C = B (B^T Q B)^-1 B^T with Q the weighted sum of the margins' squares; minus the derivative by a weight is |its margin of C c|^2."""
    measured = wanted = free(shape)
    weights = np.random.default_rng(len(measured)).uniform(0.1, 2.0, len(measured))
    rows = [matrix(shape, margin) for margin in measured]
    basis = shape.basis().astype(np.float64)
    form = sum(weight * part.T @ part for weight, part in zip(weights, rows, strict=True))
    covariance = basis @ np.linalg.solve(basis.T @ form @ basis, basis.T)
    variances = MarginVariances(shape, measured, wanted)
    found = variances.with_slopes(weights)
    for place, (margin, (values, slopes)) in enumerate(zip(wanted, found, strict=True)):
        queries = matrix(shape, margin) @ covariance
        dense = np.sort((queries * matrix(shape, margin)).sum(axis=1))
        numbers = variances.numbers(place)
        assert np.allclose(np.sort(np.repeat(values, numbers)), dense, rtol=1e-10)
        assert np.array_equal(values, variances.at(weights)[place])
        for slope, part in zip(slopes, rows, strict=True):
            assert np.allclose(np.sort(np.repeat(slope, numbers)), np.sort(((queries @ part.T) ** 2).sum(axis=1)), rtol=1e-9, atol=1e-12)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    children, units = [], 1
    for _ in range(draw(st.integers(1, 3))):
        children.append(tuple(draw(st.lists(st.integers(1, 3), min_size=units, max_size=units))))
        units = sum(children[-1])
    return Tree(tuple(children))


@given(trees())
def test_classes_hold_every_unit_once(tree: Tree) -> None:
    """As many units at each level, and in the classes of each level the units of one parent class that have the same parts."""
    classes = UnitClasses.of(tree)
    for level in range(tree.depth + 1):
        assert classes.units(level).sum() == tree.units(level)
    leaves = classes.units(tree.depth)
    kinds = {(_parts(tree, 0, 0), *_path(tree, leaf)) for leaf in range(tree.places)}
    assert len(leaves) == len(kinds)


def _parts(tree: Tree, level: int, unit: int) -> object:
    """A unit's parts without their order."""
    if level == tree.depth:
        return ()
    inside = range(int(tree.starts(level)[unit]), int(tree.starts(level)[unit + 1]))
    return tuple(sorted((_parts(tree, level + 1, child) for child in inside), key=repr))


def _path(tree: Tree, leaf: int) -> tuple[object, ...]:
    return tuple(_parts(tree, level, int(tree.unit_of(level)[leaf])) for level in range(1, tree.depth + 1))
