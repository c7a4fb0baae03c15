"""Which sums of cells given rows fix: membership in a row space, exactly and without a dense matrix of the whole table.

Legend: S is the row space over the rationals; a sum over a set of cells is fixed iff the indicator row of the set lies in S.

(1) Margins of a full product: S is the sum of the interaction spaces of all sets of axes inside a kept margin. The indicator of one code
    combination of the axes U has a part in the space of U itself. So it is in S iff U, without axes of one code, is inside a kept margin.
(2) Else: cells with equal columns form a class, and every row of S is constant on it. A set that cuts a class is not fixed.
(3) The other sets are looked at component by component of the classes, since S is the direct sum over the components. On a grid S is what
    all mixed differences send to zero; a small component is decided by its echelon form. Sets in a component that is too large stay
    undecided, and are reported as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray

from holdfast.lattices import algebra, components
from holdfast.lattices.columns import column_numbers, grid_order
from holdfast.lattices.reduction import reduce_nested
from holdfast.tables.cells import rank_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RowSet:
    """Rows over some cells."""

    cells: int
    families: list[Ints]
    counts: list[int]
    axes: list[frozenset[str] | None]
    """Per family the columns of which it is a margin, or None."""
    linear: csr_array | None
    sizes: dict[str, int] | None
    """Codes of each column where the cells are a full product."""


def fixed_sums(rows: RowSet, labels: Ints, count: int, axes: frozenset[str] | None) -> tuple[Bools, Bools]:
    """(which sums the rows fix, which stay undecided): sum c is over the cells with label c; -1 marks cells in no sum.

    Given:       every label below `count` occurs. `axes`: columns such that each sum is over all cells with one combination of their codes;
                 None where there are none.
    """
    if rows.sizes is not None and rows.linear is None and axes is not None and axes <= rows.sizes.keys() and None not in rows.axes:
        inside = {axis for axis in axes if rows.sizes[axis] > 1}
        fixed = any(inside <= kept for kept in rows.axes if kept is not None)
        return np.full(count, fixed), np.zeros(count, dtype=np.bool_)
    class_of, classes, some_cell = equal_columns(rows)
    low, high = np.full(classes, count, dtype=np.int64), np.full(classes, -1, dtype=np.int64)
    np.minimum.at(low, class_of, labels)
    np.maximum.at(high, class_of, labels)
    out = np.zeros(count + 1, dtype=np.bool_)  # the last entry catches -1
    out[labels[(low != high)[class_of]]] = True
    label_of = np.where(low == high, low, -1)
    groups = [group[some_cell] for group in rows.families]
    linear = None if rows.linear is None else rows.linear.tocsc()[:, some_cell].tocsr()
    undecided = np.zeros(count + 1, dtype=np.bool_)
    for cells, local, own in _components(classes, groups, rows.counts, linear):
        if not local and own is None:
            out[label_of[cells]] = True  # under no row
            continue
        open_labels = np.where(out[label_of[cells]], -1, label_of[cells])
        if len(cells) == 1 or (open_labels < 0).all():
            continue
        missed, cut = _outside_row_space(cells, local, own, open_labels)
        out[missed] = True
        undecided[cut] = True
    return ~out[:-1] & ~undecided[:-1], ~out[:-1] & undecided[:-1]


def equal_columns(rows: RowSet) -> tuple[Ints, int, Ints]:
    """(class of each cell, number of classes, a cell of each): cells with equal columns share a class."""
    keys, radices = list(rows.families), [count + 1 for count in rows.counts]
    if rows.linear is not None:
        numbers = column_numbers(rows.linear)
        assert numbers is not None
        keys.append(numbers - 1)
        radices.append(int(keys[-1].max()) + 2)
    class_of, classes = rank_rows([(key + 1).astype(np.int32) for key in keys], radices, rows.cells)
    some_cell = np.empty(classes, dtype=np.int64)
    some_cell[class_of] = np.arange(rows.cells)
    return class_of, classes, some_cell


def _components(
    n: int, groups: Sequence[Ints], counts: Sequence[int], linear: csr_array | None
) -> Iterator[tuple[Ints, list[Ints], csr_array | None]]:
    """(cells, their families, their linear rows) of each connected component; one without rows for the cells under none."""
    if not groups and linear is None:
        yield np.arange(n), [], None
        return
    reduced = reduce_nested(groups, counts)
    node_of, component_of, has_linear = components._components(n, reduced, counts, linear)
    free = np.flatnonzero(node_of < 0)
    if len(free):
        yield free, [], None
    inside = np.flatnonzero(node_of >= 0)
    component = component_of[node_of[inside]]
    order = np.argsort(component, kind="stable")
    for cells in np.split(inside[order], np.flatnonzero(np.diff(component[order])) + 1):
        if len(cells):
            local = [group[cells] for group in reduced if (group[cells] >= 0).any()]
            yield cells, local, linear if has_linear[component_of[node_of[cells[0]]]] else None


def _outside_row_space(cells: Ints, local: list[Ints], linear: csr_array | None, labels: Ints) -> tuple[Ints, Ints]:
    """(labels whose sum over this component the rows do not fix, labels not decided); -1 marks cells that need no answer."""
    none = np.zeros(0, dtype=np.int64)
    grid = grid_order(local) if linear is None and all((group >= 0).all() for group in local) else None
    if grid is not None:
        order, shape = grid
        return (none if min(shape) == 1 else _uneven(labels[order].reshape(shape))), none
    if len(cells) > components.LARGEST_SEARCHED:
        return none, np.unique(labels[labels >= 0])
    matrix = components._local_matrix(cells, local, linear).toarray().astype(np.int64)
    asked = np.unique(labels[labels >= 0])
    return asked[~_in_row_space(matrix, (labels == asked[:, None]).astype(np.int64))], none


def _uneven(labels: Ints) -> Ints:
    """Labels of a grid whose indicator has a mixed difference that is not zero: the sums along the axes do not fix them."""
    # A cell by itself is uneven, and mostly all cells are such: no sort is needed for them.
    present, times = np.unique(labels[labels >= 0], return_counts=True)
    single: Ints = present[times == 1]
    several: Ints = present[times > 1]
    if not len(several):
        return single
    labels = np.where(np.isin(labels, several), labels, -1)
    windows = np.arange(int(np.prod([length - 1 for length in labels.shape])), dtype=np.int64)
    keys, signs = [], []
    for corner in product((0, 1), repeat=labels.ndim):
        view = labels[tuple(slice(up, length - 1 + up) for up, length in zip(corner, labels.shape, strict=True))].ravel()
        keys.append(view[view >= 0] * len(windows) + windows[view >= 0])
        signs.append(np.full(len(keys[-1]), 1 - 2 * (sum(corner) % 2), dtype=np.int64))
    places, which = np.unique(np.concatenate(keys), return_inverse=True)
    sums = np.zeros(len(places), dtype=np.int64)
    np.add.at(sums, which, np.concatenate(signs))
    return np.union1d(single, places[sums != 0] // len(windows))


def _in_row_space(matrix: Ints, asked: Ints) -> Bools:
    """For each asked row whether it is a rational combination of the rows of the matrix: its entries at the pivots say of which."""
    given = algebra.as_matrix(matrix)
    rows, denominator = algebra.echelon_form(given)
    pivots = algebra.pivot_columns(given)
    made = algebra.as_matrix(asked[:, list(pivots)]) * rows if len(pivots) else fmpz_mat(*asked.shape)
    wanted = algebra.as_matrix(asked) * denominator
    return np.array([row == found for row, found in zip(wanted.tolist(), made.tolist(), strict=True)], dtype=np.bool_)
