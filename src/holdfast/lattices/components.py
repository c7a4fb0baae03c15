"""From group codes to blocks: connected components, then the shape of each. Never builds a dense matrix of the whole table.

A small component is split as finely as can be, into blocks that can be sampled on their own (`finest_split`). Legend: A is k x d; S its row
space over Q; L = {z in Z^d : A z = 0} = Z^d intersected with the orthogonal complement of S. For a set J of columns, S_J and L_J are the
vectors of S and L that vanish outside J.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from math import gcd
from typing import TYPE_CHECKING

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray

from holdfast.errors import RequestTooLarge
from holdfast.lattices import algebra
from holdfast.lattices.algebra import Matrix, as_matrix, has_independent_columns
from holdfast.lattices.blocks import Blocks
from holdfast.lattices.columns import MOST_COLUMNS, distinct_columns, grid_order
from holdfast.lattices.levels import Misfit, Piece, level_pieces
from holdfast.lattices.long_calls import check_affordable, long_call
from holdfast.lattices.shapes import Free, General, Grid, OneSum, Pinned, Shape
from holdfast.tables.machine import check_memory

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FEW_PLACES = 1 << 17
"""Places up to which sorting is quick enough; beyond, counting is, and pays for loading SciPy."""

Ints = NDArray[np.int64]

LARGEST_SEARCHED = MOST_COLUMNS
"""Different columns up to which a general component is split exactly, and its rows are listed."""
GRAM_SECONDS, GRAM_BYTES = 1.1e-9, 100
"""What the rank of a dense square matrix takes, for each cube and each square of its rows."""
MOST_GRAM_SECONDS = 60
FEW_FAMILIES = 24
"""Families whose matrix is made without asking first."""
LARGEST_REMEMBERED = 1 << 14
"""Cells up to which a component is compared with those before it, so that equal ones are recognised once."""
MOST_REMEMBERED = 1 << 21
"""The same for cells times families."""


@dataclass
class Named:
    """Kept sums as they were stated, over cells with codes: what a product of hierarchies is recognised by."""

    families: Sequence[Ints]
    """Per family the group of each cell before reduction, -1 for none. Restricted to a component its rows span the same space as those left
    by reduction: the row space is the direct sum over the components."""
    columns: Sequence[NDArray[np.int32]]
    zeros: Ints | None = None
    """Cells that one of the families has as sums of their own, because no noise is to go there."""
    seen: dict[bytes, list[Piece] | Misfit] = field(default_factory=dict)

    def pieces(self, cells: Ints, numbers: Sequence[int] | None = None) -> list[Piece] | Misfit:
        """Blocks of a component as a product of hierarchies, cells by their places in it; or what does not fit.

        `numbers`: the families that have a cell of it, where that is known.
        """
        if numbers is None:
            numbers = [number for number, family in enumerate(self.families) if (family[cells] >= 0).any()]
        local: list[Ints] = [self.families[number][cells].astype(np.int64) for number in numbers]
        columns = [column[cells].astype(np.int64) for column in self.columns]
        if len(cells) > LARGEST_REMEMBERED or len(cells) * len(local) > MOST_REMEMBERED:
            return _name_families(level_pieces(local, columns), numbers)
        local, columns = [list(map(_numbered_from, groups)) for groups in (local, columns)]
        key = b"|".join(array.tobytes() for array in [*local, *columns])
        if key not in self.seen:
            self.seen[key] = level_pieces(local, columns)
        return _name_families(self.seen[key], numbers)


def _name_families(found: list[Piece] | Misfit, numbers: Sequence[int]) -> list[Piece] | Misfit:
    """Families by their numbers in the table, not in the component."""
    return replace(found, families=tuple(numbers[i] for i in found.families)) if isinstance(found, Misfit) else found


def _numbered_from(group: Ints) -> Ints:
    """Groups as numbers that are equal for equal patterns; -1 stays."""
    inside = group >= 0
    out = np.full(len(group), -1, dtype=np.int64)
    out[inside] = np.unique(group[inside], return_inverse=True)[1]
    return out


@dataclass
class _Builder:
    """Collects blocks; equal shapes are stored once."""

    pieces: list[Ints] = field(default_factory=list)
    lengths: list[Ints] = field(default_factory=list)
    shape_of: list[NDArray[np.int32]] = field(default_factory=list)
    shapes: dict[Shape, int] = field(default_factory=dict)
    finest: bool = True
    misfits: set[Misfit] = field(default_factory=set)

    def add(self, shape: Shape, cells: Ints) -> None:
        self.add_many(cells, np.array([len(cells)]), np.array([self.number(shape)], dtype=np.int32))

    def add_many(self, cells: Ints, lengths: Ints, shape_of: NDArray[np.int32]) -> None:
        self.pieces.append(cells)
        self.lengths.append(lengths)
        self.shape_of.append(shape_of)

    def number(self, shape: Shape) -> int:
        return self.shapes.setdefault(shape, len(self.shapes))

    def blocks(self) -> Blocks:
        lengths = np.concatenate([np.zeros(0, dtype=np.int64), *self.lengths])
        return Blocks(
            self.pieces[0] if len(self.pieces) == 1 else np.concatenate([np.zeros(0, dtype=np.int64), *self.pieces]),
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([np.zeros(0, dtype=np.int32), *self.shape_of]),
            tuple(self.shapes),
            self.finest,
            tuple(sorted(self.misfits, key=lambda found: (found.families, found.columns))),
        )


def find_blocks(
    n_cells: int, groups: Sequence[Ints], counts: Sequence[int], linear: csr_array | None, named: Named | None = None
) -> Blocks:
    """Split the cells into blocks and classify each.

    Given:       families reduced by `reduce_nested`, and further integer rows. `named`: the families before reduction with the codes of the
                 cells, where there are any.
    Guarantees:  the lattice of moves is the direct sum over the blocks. Components of families that form one set or a grid cannot be split;
                 products of hierarchies know what they fix; other components are split by their echelon form, unless they are too large.
    """
    builder = _Builder()
    some = list(islice((group for group in groups if group.max() >= 0), 3))  # of thousands of families no more need be looked at
    active = _with_zeros_joined(some, named)
    if linear is None and len(active) <= 1:  # nested totals: no graph is needed
        component = active[0] if active else np.full(n_cells, -1, dtype=np.int64)
        _add_free(builder, component)
        _add_single_sums(builder, component)
        return builder.blocks()
    node_of, component_of, has_linear = _components(n_cells, groups, counts, linear)
    _add_free(builder, node_of)
    component = np.where(node_of >= 0, component_of[node_of], -1)
    simple = (np.bincount(component_of, minlength=len(has_linear)) == 1) & ~has_linear
    is_simple = (component >= 0) & simple[component]
    _add_single_sums(builder, np.where(is_simple, component, -1))
    rest = np.flatnonzero((component >= 0) & ~is_simple)
    if len(rest):
        left, stated = _Present(groups, component, rest), None if named is None else _Present(named.families, component, rest)
        for cells in _places_of(component[rest]):
            own = rest[cells]
            number = int(component[own[0]])
            local: list[Ints] = [groups[family][own].astype(np.int64) for family in left.families(number)]
            _add_component(
                builder, own, local, linear if has_linear[number] else None, named, None if stated is None else stated.families(number)
            )
    if builder.misfits and named is not None and linear is None:
        # Taking nested sets out can spoil a product: a county that is a whole state leaves it with a hole. Look at all cells at once.
        zeros = np.zeros(0, dtype=np.int64) if named.zeros is None else named.zeros
        inside = np.delete(np.arange(n_cells), zeros)
        pieces = named.pieces(inside)
        if not isinstance(pieces, Misfit):
            builder = _Builder()
            for shape, order in pieces:
                builder.add(shape, inside[order])
            if len(zeros):
                builder.add(Pinned(len(zeros)), zeros)
    return builder.blocks()


class _Present:
    """Which families have cells in each component: asked once for all of them, since both may be many."""

    def __init__(self, families: Sequence[Ints], component: Ints, cells: Ints) -> None:
        of_cell, found = component[cells], []
        for number, family in enumerate(families):
            present = np.zeros(int(of_cell.max()) + 1, dtype=np.bool_)
            present[of_cell[family[cells] >= 0]] = True
            where = np.flatnonzero(present)
            found.append(np.stack([where, np.full(len(where), number)]))
        pairs = np.concatenate([np.zeros((2, 0), dtype=np.int64), *found], axis=1)
        order = np.argsort(pairs[0], kind="stable")
        self._components, self._families = pairs[0][order], pairs[1][order]

    def families(self, component: int) -> list[int]:
        begin, end = np.searchsorted(self._components, [component, component + 1])
        return list(map(int, self._families[begin:end]))


def _with_zeros_joined(active: list[Ints], named: Named | None) -> list[Ints]:
    """One family with the cells that take no noise as groups of their own, if there is only one beside them: reduction took them out."""
    if named is None or named.zeros is None or len(active) != 2:
        return active
    first, last = active
    both = (first >= 0) & (last >= 0)
    return active if both.any() else [np.where(last >= 0, last.astype(np.int64) + int(first.max()) + 1, first)]


def _add_free(builder: _Builder, component: Ints) -> None:
    free = np.flatnonzero(component < 0)
    if len(free):
        builder.add(Free(len(free)), free)


def _by_number(numbers: Ints) -> tuple[Ints, Ints]:
    """(places ordered by their number, where each number begins and the end), by counting: linear, unlike a sort."""
    if not len(numbers):
        return np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    if not (numbers[1:] < numbers[:-1]).any():  # tables are mostly in order already
        return np.arange(len(numbers)), np.concatenate([[0], np.cumsum(np.bincount(numbers))])
    if len(numbers) < FEW_PLACES:
        return np.argsort(numbers, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(numbers))])
    from scipy.sparse import coo_array

    ones = np.ones(len(numbers), dtype=np.int8)
    counted = coo_array((ones, (numbers, np.arange(len(numbers)))), shape=(int(numbers.max()) + 1, len(numbers))).tocsr()
    return counted.indices, counted.indptr.astype(np.int64)


def _places_of(numbers: Ints) -> Iterator[Ints]:
    """The places of each number that occurs."""
    order, starts = _by_number(numbers)
    for begin, end in pairwise(starts.tolist()):
        if end > begin:
            yield order[begin:end]


def _components(
    n_cells: int, groups: Sequence[Ints], counts: Sequence[int], linear: csr_array | None
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """(some row of each cell, -1 for none; component of each row; whether a component holds a linear row). Rows are the nodes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    offsets = np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)
    n_linear = 0 if linear is None else linear.shape[0]
    total = int(offsets[-1]) + n_linear
    node_of = np.full(n_cells, -1, dtype=np.int64)
    edges: list[Ints] = []
    same: Ints | None = None  # for each node one that it is connected with, as far as was looked
    for number, (offset, group) in enumerate(zip(offsets[:-1], groups, strict=True)):
        cells = np.flatnonzero(group >= 0)
        rows, seen = offset + group[cells], node_of[cells]
        both = seen >= 0
        if both.any():
            if number >= 4 and number & (number - 1) == 0:  # at 4, 8, 16, ... families: later ones then have fewer edges to tell apart
                same = _representatives(edges, total)
            edges.append(_edges(seen[both] if same is None else same[seen[both]], rows[both], total))
        node_of[cells[~both]] = rows[~both]
    for row in range(n_linear):
        assert linear is not None
        cells = linear.indices[linear.indptr[row] : linear.indptr[row + 1]]
        node = int(offsets[-1]) + row
        seen = node_of[cells]
        met = np.unique(seen[seen >= 0])
        edges.append(np.stack([np.full(len(met), node), met]))
        node_of[cells[seen < 0]] = node
    ends = np.concatenate([np.zeros((2, 0), dtype=np.int64), *edges], axis=1)
    graph = coo_array((np.ones(ends.shape[1], dtype=np.int8), (ends[0], ends[1])), shape=(total, total))
    n_components, component_of = connected_components(graph, directed=False) if total else (0, np.zeros(0, dtype=np.int32))
    has_linear = np.zeros(n_components, dtype=np.bool_)
    has_linear[component_of[int(offsets[-1]) :]] = True
    # Rows emptied by reduction are nodes without cells: components of their own that hold nothing.
    return node_of, component_of.astype(np.int64), has_linear


def _representatives(edges: Sequence[Ints], total: int) -> Ints:
    """For each node the first of those that these edges connect it with."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.concatenate([np.zeros((2, 0), dtype=np.int64), *edges], axis=1)
    graph = coo_array((np.ones(ends.shape[1], dtype=np.int8), (ends[0], ends[1])), shape=(total, total))
    component_of = connected_components(graph, directed=False)[1]
    first = np.full(total, total, dtype=np.int64)
    np.minimum.at(first, component_of, np.arange(total))
    found: Ints = first[component_of]
    return found


def _edges(nodes: Ints, rows: Ints, total: int) -> Ints:
    """Pairs of a node and a row, each a few times at most."""
    if nodes[0] == nodes[-1] and (nodes == nodes[0]).all():  # no sort is needed
        low = int(rows.min())
        different = np.flatnonzero(np.bincount(rows - low)) + low
        return np.stack([np.full(len(different), nodes[0]), different])
    places = range(0, len(nodes), FEW_PLACES)  # a signal waits for no more than one of these pieces
    keys = [np.unique(nodes[k : k + FEW_PLACES] * total + rows[k : k + FEW_PLACES]) for k in places]
    return np.stack(np.divmod(np.concatenate(keys), total))  # rows of arrays sort slowly


def _add_single_sums(builder: _Builder, component: Ints) -> None:
    """Components of one 0/1 row: one sum, or a pinned cell where the sum has one cell. All at once: there may be millions."""
    if (component >= 0).all():
        order, starts = _by_number(component)
        cells = order.astype(np.int64, copy=False)
    else:
        inside = np.flatnonzero(component >= 0)
        order, starts = _by_number(component[inside])
        cells = inside[order]
    lengths = np.diff(starts)
    lengths = lengths[lengths > 0]
    if (lengths == 1).any():
        single = np.repeat(lengths == 1, lengths)
        builder.add(Pinned(int(single.sum())), np.sort(cells[single]))
        cells, lengths = cells[~single], lengths[lengths > 1]
    if len(lengths):
        sizes, which = np.unique(lengths, return_inverse=True)
        numbers = np.array([builder.number(OneSum(int(size))) for size in sizes], dtype=np.int32)
        builder.add_many(cells, lengths, numbers[which])


def _add_component(
    builder: _Builder, cells: Ints, local: Sequence[Ints], linear: csr_array | None, named: Named | None, stated: Sequence[int] | None
) -> None:
    """Classify a component of several rows. `local`: the families that have cells in it, on these; `stated`: their numbers as stated."""
    if linear is None and all((group >= 0).all() for group in local):
        grid = grid_order(local)
        if grid is not None:
            order, axes = grid
            if min(axes) > 1:
                builder.add(Grid(axes), cells[order])
            else:  # an axis of length one: its sum is the cell itself
                builder.add(Pinned(len(cells)), np.sort(cells))
            return
    if linear is None and named is not None:
        pieces = named.pieces(cells, stated)
        if not isinstance(pieces, Misfit):
            for shape, order in pieces:
                builder.add(shape, cells[order])
            return
        builder.misfits.add(pieces)
    if linear is None and len(local) > FEW_FAMILIES and _columns_at_least(local) > LARGEST_SEARCHED:
        check_gram(_rows_up_to(len(cells), local))  # before a matrix of all of them is made
    _add_general(builder, cells, _local_matrix(cells, local, linear))


def _rows_up_to(most: int, local: Sequence[Ints]) -> int:
    """How many rows these families have, counted no further than `most`."""
    rows = 0
    for own in local:
        rows += len(np.unique(own[own >= 0]))
        if rows >= most:
            return most
    return rows


def _columns_at_least(local: Sequence[Ints]) -> int:
    """How many different columns the rows of these families have at least: equal ones have equal sums of random numbers."""
    sums = np.zeros(len(local[0]), dtype=np.uint64)
    chosen = np.random.default_rng(0)
    for own in local:
        weights = chosen.integers(0, 2**64, size=int(own.max()) + 2, dtype=np.uint64)
        weights[-1] = 0  # of cells in no row
        sums += weights[own]
    return len(np.unique(sums))


def _local_matrix(cells: Ints, local: Sequence[Ints], linear: csr_array | None) -> csr_array:
    """The component's rows over its own cells."""
    from scipy.sparse import csr_array, vstack

    rows, columns, count = [], [], 0
    for group in local:
        here = np.flatnonzero(group >= 0)
        own = group[here]
        one_row = bool((own == own[0]).all())
        row = np.zeros(len(here), dtype=np.int64) if one_row else np.unique(own, return_inverse=True)[1]
        rows.append(row + count)
        columns.append(here)
        count += int(row.max()) + 1
    none = np.zeros(0, dtype=np.int64)
    at = np.concatenate([none, *rows]), np.concatenate([none, *columns])
    parts = [csr_array((np.ones(len(at[0]), dtype=np.int64), at), shape=(count, len(cells)))]
    if linear is not None:
        given = csr_array(linear[:, cells])
        parts.append(csr_array(given[np.flatnonzero(np.diff(given.indptr) > 0)]))
    return csr_array(vstack(parts, format="csr", dtype=np.int64))


def _add_general(builder: _Builder, cells: Ints, matrix: csr_array) -> None:
    """Split by echelon form on the different columns: cells with equal columns are always together."""
    found = distinct_columns(matrix, LARGEST_SEARCHED)
    if found is None:
        builder.finest = False
        builder.add(General.without_rows(len(cells), gram_rank(matrix)), cells)
        return
    columns, class_of = found
    for classes in finest_split(columns):
        mine = np.flatnonzero(np.isin(class_of, classes))
        order, starts = _by_number(np.searchsorted(classes, class_of[mine]))
        _add_split(builder, cells[mine[order]], columns[:, list(classes)], np.diff(starts))


def _add_split(builder: _Builder, cells: Ints, columns: Ints, class_sizes: Ints) -> None:
    """One indecomposable piece, its cells class after class: independent rows decide its shape."""
    rows = primitive_rows(columns)
    if not len(rows):
        builder.add(Free(len(cells)), cells)
    elif len(rows) == len(cells):
        builder.add(Pinned(len(cells)), cells)
    elif len(rows) == 1 and (rows == rows[0, 0]).all():
        builder.add(OneSum(len(cells)), np.sort(cells))
    elif len(rows) == 1 and len(np.unique(np.abs(rows))) == 1:
        builder.add(OneSum(len(cells), tuple(np.repeat(np.sign(rows[0]), class_sizes).tolist())), cells)
    else:
        builder.add(General(tuple(map(tuple, rows.tolist())), tuple(class_sizes.tolist())), cells)


def primitive_rows(matrix: Ints) -> Ints:
    """A maximal independent set of the rows, each divided by the greatest common divisor of its entries, zero rows left out."""
    if matrix.shape[1] == 1:  # there may be thousands of rows, and one of them says all
        return np.sign(matrix[np.flatnonzero(matrix)[:1]])
    chosen = matrix[list(algebra.independent_rows(matrix))] if matrix.size else matrix[:0]
    return np.array([row // gcd(*map(int, row)) for row in chosen], dtype=np.int64).reshape(-1, matrix.shape[1])


def check_gram(rows: int) -> None:
    """Refuse a dense square matrix of so many rows before it is made, with the time that its rank would take."""
    seconds = GRAM_SECONDS * rows**3
    if seconds > MOST_GRAM_SECONDS:
        raise RequestTooLarge(
            f"The kept totals link {rows:,} sums, and as many cells or more, in a way that is no product and no nesting. To find out how "
            f"many of them are independent would take about {seconds:,.0f} seconds, which is refused. Keep fewer totals, nested ones, "
            "or all sums along the axes of a product."
        )
    check_memory(GRAM_BYTES * rows**2, f"Dependence among {rows:,} linked sums", "Keep fewer totals.")


def gram_rank(matrix: csr_array) -> int:
    """Rank of A as that of A A^T, which has only as many columns as A has rows; or of A^T A, where that has fewer.

    Exact: entries below 2^31 are cut into halves of 16 bits, whose products and sums stay in 64 bits; Python's integers join them.
    RequestTooLarge where it would take too long.
    """
    from scipy.sparse import csr_array

    matrix = csr_array(matrix.T) if matrix.shape[0] > matrix.shape[1] else matrix
    check_gram(matrix.shape[0])
    high, low = matrix.copy(), matrix.copy()
    high.data, low.data = matrix.data >> 16, matrix.data & 0xFFFF
    parts = [(high @ high.T, 32), (high @ low.T, 16), (low @ high.T, 16), (low @ low.T, 0)]
    gram = sum(part.toarray().astype(object) * 2**shift for part, shift in parts)
    return algebra.rank([[int(entry) for entry in row] for row in gram])


def finest_split(A: Matrix) -> list[tuple[int, ...]]:
    """The finest partition of the columns for which L is the direct sum of the L_J over its parts J.

    A cell under no invariant is a part of its own, and so is a cell that never moves. Parts are sorted, and ordered by their first column.

    Guarantees:  L is the direct sum of the L_J, and no part can be divided further. RequestTooLarge where a basis would take too long.
    Method:      the connected components of the row supports of the reduced row echelon form of A over Q ([theory R1] (a)).
    """
    matrix = as_matrix(A)
    if matrix.ncols() and has_independent_columns(matrix):
        return [(column,) for column in range(matrix.ncols())]
    check_affordable("Hermite form", matrix)  # who has the parts will want moves: refused before the shorter work is done
    parent = list(range(matrix.ncols()))
    for support in _echelon_supports(matrix):
        root = _find(parent, support[0])
        for column in support[1:]:
            parent[_find(parent, column)] = root
    parts: dict[int, list[int]] = {}
    for column in range(matrix.ncols()):
        parts.setdefault(_find(parent, column), []).append(column)
    return [tuple(part) for part in parts.values()]


@long_call("echelon form")
def _echelon_supports(A: fmpz_mat) -> list[list[int]]:
    """For each nonzero row of the reduced row echelon form the columns in which it is not zero (flint scales all rows alike)."""
    echelon, _, dimension = A.rref()
    return [[column for column, entry in enumerate(row) if entry != 0] for row in echelon.tolist()[: int(dimension)]]


def _find(parent: list[int], column: int) -> int:
    """The representative of the column's part; halves the path on the way."""
    while parent[column] != column:
        parent[column] = parent[parent[column]]
        column = parent[column]
    return column
