"""Shapes against exact algebra on all their rows, and as values: equal, hashed, pickled, told apart by their fields."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest

from holdfast.errors import InvalidParameter, NoExactSampler, RequestTooLarge
from holdfast.lattices import Lattice, algebra
from holdfast.lattices.norms import L1, L2
from holdfast.lattices.shapes import Bounded, Free, General, Grid, Levels, OneSum, Pinned, Shape, Units, Whole
from holdfast.lattices.shortest import shortest_vector
from holdfast.lattices.trees import Tree

LARGE = General.without_rows(10**6, 300)
SHAPES: list[Shape] = [
    Free(1),
    Free(3),
    Pinned(3),
    OneSum(2),
    OneSum(5),
    OneSum(2, (1, -1)),
    OneSum(5, (1, 1, 1, -1, -1)),
    Grid((2, 2)),
    Grid((3, 4)),
    Grid((2, 3, 2)),
    General(((1, 2, 3),), (1, 1, 1)),
    General(((1, 1, 0, 0), (0, 1, 1, 2)), (2, 1, 1, 2)),
    Units(None, (2, 3), ((),)),
    Units(None, (2, 3, 2), ((0, 1, 2, 4),)),
    Units(Tree(((2,), (2, 3))), (2,), ((0,), (), ())),
    Units(Tree(((2,), (2, 1))), (2, 2), ((0, 1), (0,), ())),
    Units(Tree(((3,), (2, 1, 2))), (2,), ((0,), (0,), (0,))),
    Units(Tree(((2,), (1, 2))), (2,), ((0, 1), (0, 1), ())),
]


def all_rows(shape: Shape) -> Any:
    """Every kept row of a shape, dependent ones too, written from its definition."""
    if isinstance(shape, Grid):
        cells = np.arange(shape.size).reshape(shape.axes)
        lines = [line for axis in range(cells.ndim) for line in np.moveaxis(cells, axis, -1).reshape(-1, shape.axes[axis])]
        return np.array([np.isin(np.arange(shape.size), line) for line in lines]).astype(np.int64)
    if isinstance(shape, Units):
        places = np.indices(shape.axes).reshape(len(shape.axes), -1)
        sums = [np.zeros(shape.size, dtype=np.bool_)]
        for level, mask in ((level, mask) for level, family in enumerate(shape.kept) for mask in family):
            unit = places[0] if shape.tree is None else shape.tree.unit_of(level)[places[0]]
            keys = [unit, *(places[k + 1] for k in range(len(shape.lengths)) if mask >> k & 1)]
            sums += [(key == np.array(keys).T).all(axis=1) for key in np.unique(keys, axis=1).T]
        return np.array(sums).astype(np.int64)
    if isinstance(shape, OneSum):
        return np.array([shape.signs or [1] * shape.size])
    given = shape.matrix()
    return given if given is not None else np.eye(shape.size, dtype=np.int64)[: shape.rank]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_algebra_is_that_of_the_rows(shape: Shape) -> None:
    rows = all_rows(shape)
    kernel = algebra.kernel_basis(rows)
    assert (shape.rank, shape.dimension) == (algebra.rank(rows) if len(rows) else 0, kernel.ncols())
    assert shape.size == np.prod(shape.axes) == rows.shape[1]
    assert shape.basis().shape == (shape.size, shape.dimension)
    listed = shape.matrix()
    assert listed is None or algebra.rank(listed) == len(listed) == shape.rank
    if shape.dimension == 0:
        assert shape.shortest(L1) is None
        return
    assert algebra.same_lattice(shape.basis(), kernel)
    assert shape.log_gram_determinant() == pytest.approx(log(algebra.determinant_squared(kernel)), abs=1e-12)
    for norm in (L1, L2):
        found, searched = shape.shortest(norm), shortest_vector(kernel, norm)
        assert found is not None
        assert (found.norm, found.value, found.status) == (norm.name, searched.value, "exact")
    columns = [tuple(column) for column in rows.T.tolist()]
    assert shape.one_can_move() == (len(set(columns)) < len(columns))


LEVELS = Levels((Tree(((2,), (2, 3))), Tree.plain(3)), ((0, 1), (1, 0)))
MORE: list[Shape] = [LEVELS, Whole((OneSum(3, (1, 1, -1)), Free(2), Grid((2, 2)))), Bounded(Grid((2, 3)), 0, None)]


@pytest.mark.parametrize("shape", [*SHAPES, *MORE], ids=str)
def test_what_a_shape_says_of_its_moves_follows_from_its_basis(shape: Shape) -> None:
    basis, unit = shape.basis().astype(np.float64), np.eye(shape.size)
    projection = basis @ np.linalg.pinv(basis)
    assert shape.project(unit) == pytest.approx(projection, abs=1e-9)
    assert shape.projection_diagonal() == pytest.approx(np.diag(projection), abs=1e-9)
    assert shape.rounding_diagonal() == pytest.approx((shape.gram_schmidt_products(unit) ** 2).sum(axis=1), abs=1e-9)
    asked = np.concatenate([all_rows(shape), np.eye(shape.size, dtype=np.int64), np.ones((1, shape.size), dtype=np.int64)])
    assert shape.are_fixed(asked).tolist() == (~(asked @ shape.basis()).any(axis=1)).tolist()
    assert algebra.same_lattice(shape.reduced_basis(), shape.basis())
    assert algebra.same_lattice(shape.short_basis().astype(np.int64), shape.basis())


@pytest.mark.parametrize("shape", [shape for shape in [*SHAPES, *MORE] if not isinstance(shape, Units)], ids=str)
def test_kept_rows_are_those_of_the_definition(shape: Shape) -> None:
    rows = shape.kept_rows()
    assert (algebra.rank(rows) if len(rows) else 0) == shape.rank
    assert not (rows @ shape.basis()).any()


def test_facts_that_other_rooms_decide_by() -> None:
    def names(shape: Shape) -> set[str]:
        facts = ("is_free", "is_pinned", "is_one_sum", "is_plain_sum", "is_two_way", "is_network", "is_irreducible", "cells_alike")
        return {fact for fact in facts if getattr(shape, fact)}

    alike = {"is_irreducible", "cells_alike"}
    assert names(Free(2)) == {"is_free", "is_network", *alike}
    assert names(Pinned(2)) == {"is_pinned", "is_network"}
    assert names(OneSum(3)) == {"is_one_sum", "is_plain_sum", "is_network", *alike}
    assert names(OneSum(2, (1, -1))) == {"is_one_sum", "is_network", *alike}
    assert names(Grid((2, 3))) == {"is_two_way", "is_network", *alike}
    assert names(Grid((2, 3, 2))) == alike
    assert names(LEVELS) == names(LARGE) == names(Whole((Free(2),))) == names(Bounded(OneSum(3), 0, None)) == set()
    assert names(Levels((Tree(((2,), (2, 2))),), ((1,),))) == {"cells_alike"}
    assert (LARGE.is_listed, OneSum(3).is_listed) == (False, True)
    assert (LARGE.dense_dimension, Whole((LARGE,)).dense_dimension, LEVELS.dense_dimension) == (LARGE.dimension, 0, 0)


@pytest.mark.parametrize("shape", [OneSum(4), Grid((2, 3)), Grid((2, 3, 2))], ids=str)
def test_sums_along_axes_are_levels_too(shape: OneSum | Grid) -> None:
    assert algebra.same_lattice(shape.as_levels.basis(), shape.basis())


@pytest.mark.parametrize("cell", range(15))
def test_a_cell_put_last_has_the_same_moves(cell: int) -> None:
    shape, place = LEVELS.put_last(cell)
    assert place == shape.size - 1 == 14
    assert shape.projection_diagonal()[place] == pytest.approx(LEVELS.projection_diagonal()[cell])
    assert sorted(shape.projection_diagonal()) == pytest.approx(sorted(LEVELS.projection_diagonal()))


@pytest.mark.parametrize("shape", [OneSum(3), Grid((2, 2)), Grid((2, 3)), Pinned(2)], ids=str)
@pytest.mark.parametrize("least", [0, 1])
def test_bounds_are_the_extremes_over_all_tables_with_the_same_sums(shape: Shape, least: int) -> None:
    rows = all_rows(shape)
    tables = np.array(list(product(range(least, least + 4), repeat=shape.size)))
    sums = tables @ rows.T
    chosen = tables[np.random.default_rng(1).integers(len(tables), size=20)]
    chosen = chosen[(chosen - least).sum(axis=1) <= 3]  # every table with these sums is in the list
    found = shape.bounds_given(chosen, least)
    assert found is not None
    for table, low, high in zip(chosen, *found, strict=True):
        same = tables[(sums == rows @ table).all(axis=1)]
        assert (low.tolist(), high.tolist()) == (same.min(axis=0).tolist(), same.max(axis=0).tolist())


def test_shapes_without_sharp_bounds() -> None:
    values = np.ones((1, 8), dtype=np.int64)
    assert Grid((2, 2, 2)).bounds_given(values, 0) is None
    assert LARGE.bounds_given(values, 0) is None
    for shape in (Free(8), OneSum(8, (1,) * 7 + (-1,))):
        low, high = shape.bounds_given(values, 1)
        assert (low == 1).all()
        assert (high == np.iinfo(np.int64).max).all()


def test_shapes_are_values() -> None:
    everything = [*SHAPES, LARGE, General.without_rows(10**6, 301)]
    for shape in everything:
        again = pickle.loads(pickle.dumps(shape))
        assert again == shape
        assert hash(again) == hash(shape)
        assert json.loads(json.dumps(shape.fields)) == list(shape.fields)
    assert len(set(everything)) == len(everything)
    assert len({json.dumps(shape.fields) for shape in everything}) == len(everything), "fields tell shapes apart"


def test_fields_that_label_streams_stay_as_they_are() -> None:
    assert [shape.fields for shape in (Free(3), Pinned(2), OneSum(10), Grid((3, 4)))] == [
        ("free", 3),
        ("exposed", 2),
        ("one sum", 10),
        ("grid", 3, 4),
    ]
    assert OneSum(3, (1, -1, -1)).fields == ("one sum", 3, [1, -1, -1])
    assert General(((1, 2),), (3, 1)).fields == ("general", [[1, 2]], [3, 1])
    assert LARGE.fields == ("general", 10**6, 300)
    assert Whole((OneSum(3), Free(2))).fields == ("whole", ["one sum", 3], ["free", 2])


def test_side_by_side_is_the_direct_sum() -> None:
    parts = (OneSum(3, (1, 1, -1)), Free(2), Grid((2, 2)), General(((1, 2, 3),), (1, 1, 1)))
    whole = Whole(parts)
    rows = np.zeros((sum(len(all_rows(part)) for part in parts), whole.size), dtype=np.int64)
    row = column = 0
    for part in parts:
        mine = all_rows(part)
        rows[row : row + len(mine), column : column + part.size] = mine
        row, column = row + len(mine), column + part.size
    kernel = algebra.kernel_basis(rows)
    assert (whole.size, whole.rank, whole.dimension) == (12, algebra.rank(rows), kernel.ncols())
    assert algebra.same_lattice(whole.basis(), kernel)
    assert whole.log_gram_determinant() == pytest.approx(log(algebra.determinant_squared(kernel)), abs=1e-12)
    for norm in (L1, L2):
        found, searched = whole.shortest(norm), shortest_vector(kernel, norm)
        assert found is not None
        assert (found.value, found.status) == (searched.value, "exact")
    assert whole.one_can_move()
    assert Whole((LARGE, Pinned(1))).one_can_move() is None
    assert Whole((Grid((2, 2)), Pinned(1))).one_can_move() is False
    assert pickle.loads(pickle.dumps(whole)) == whole
    with pytest.raises(RequestTooLarge, match="which is refused"):
        Whole((OneSum(10**5),)).basis()


def test_a_block_too_large_to_list() -> None:
    assert (LARGE.size, LARGE.rank, LARGE.matrix(), LARGE.one_can_move()) == (10**6, 300, None, None)
    found = LARGE.shortest(L1)
    assert found is not None
    assert (found.value, found.status) == (2, "lower bound")
    for refused in (LARGE.basis, LARGE.log_gram_determinant):
        with pytest.raises(RequestTooLarge, match="too large"):
            refused()
    for refused in (LARGE.reduced_basis, LARGE.listed_matrix, General(((1, 2),), (1600, 2)).reduced_basis):
        with pytest.raises(NoExactSampler, match="up to 1600 cells are drawn"):
            refused()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Grid((3,)),
        lambda: Grid((3, 1)),
        lambda: OneSum(1),
        lambda: OneSum(2, (1, 1)),
        lambda: OneSum(3, (1, -1)),
        lambda: General(((1, 2),), (1, 1, 1)),
    ],
)
def test_what_is_no_shape_is_refused(make: Callable[[], Shape]) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_cells_of_all_blocks_of_a_shape() -> None:
    blocks = Lattice(np.kron(np.eye(4, dtype=np.int64), [[1, 1, 1]])[:, [*range(9), 9, 10]]).blocks
    assert (blocks.shapes, blocks.counts) == ((OneSum(2), OneSum(3)), (1, 3))
    for number, shape, count in blocks.used_shapes():
        mine = [block.cells.ravel().tolist() for block in blocks if block.shape == shape]
        assert blocks.cells_of(number).tolist() == mine
        assert blocks.cells_of(number).shape == (count, shape.size)
        assert blocks.cells_of(number).dtype == np.int32
