"""The plain shapes, whose algebra is written down: cells that the kept rows fix, cells under no kept sum, a product of axes with the sums
along each axis kept, and cells under a single kept sum with coefficients equal up to sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import log, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.lattices.norms import Norm
from holdfast.lattices.shapes.levels import Levels, maximal
from holdfast.lattices.shapes.shape import UNBOUNDED, Floats, Ints, OneAxis, Shape
from holdfast.lattices.shortest import Shortest
from holdfast.lattices.trees import Tree


@dataclass(frozen=True)
class Pinned(OneAxis):
    """As many independent kept rows as cells: zero is the only move, and the published totals tell every cell."""

    name = "exposed"
    is_pinned = True

    @property
    def rank(self) -> int:
        return self.size

    def basis(self) -> Ints:
        return np.zeros((self.size, 0), dtype=np.int64)

    def shortest(self, norm: Norm) -> None:
        return None

    def kept_rows(self) -> Ints:
        return np.eye(self.size, dtype=np.int64)

    def bounds_given(self, values: Ints, least: int) -> tuple[Ints, Ints]:
        return values, values

    def fixed_cells(self) -> Ints:
        return np.arange(self.size, dtype=np.int64)

    def one_can_move(self) -> bool:
        return False


@dataclass(frozen=True)
class Free(OneAxis):
    """All integer vectors are moves: the lattice is Z^size, with the unit vectors as its basis and as its shortest vectors."""

    name = "free"
    is_free = True

    @property
    def rank(self) -> int:
        return 0

    def basis(self) -> Ints:
        return np.eye(self.size, dtype=np.int64)

    def shortest(self, norm: Norm) -> Shortest:
        return Shortest(norm.name, 1, None, "exact")

    def bounds_given(self, values: Ints, least: int) -> tuple[Ints, Ints]:
        return np.full_like(values, least), np.full_like(values, UNBOUNDED)

    def kept_rows(self) -> Ints:
        return np.zeros((0, self.size), dtype=np.int64)

    def project(self, values: Floats) -> Floats:
        return values

    def projection_diagonal(self) -> Floats:
        return np.ones(self.size)

    def are_fixed(self, values: Ints) -> NDArray[np.bool_]:
        return np.asarray(~values.any(axis=1))

    def rounding_square(self) -> float:
        return 0.0  # integers stay as they are

    def one_can_move(self) -> bool:
        return self.size > 1


class ZeroSums(Shape):
    """What one sum and grids share: moves are the tables over the axes, cells times their signs, with zero sums along each axis."""

    keeps_axis_sums = True

    @property
    def rank(self) -> int:
        return self.size - prod(n - 1 for n in self.axes)

    def kept_rows(self) -> Ints:
        """The sums along the first axis, along the second, and so on."""
        rows = []
        for axis in range(len(self.axes)):
            factors = [np.ones((1, n), np.int64) if k == axis else np.eye(n, dtype=np.int64) for k, n in enumerate(self.axes)]
            rows.append(reduce(np.kron, factors))
        return self.apply_signs(np.concatenate(rows))

    @cached_property
    def as_levels(self) -> Levels:
        """The lattice without signs, as a product of axes with one level each."""
        count = len(self.axes)
        kept = maximal(tuple(int(axis != k) for axis in range(count)) for k in range(count))
        return Levels(tuple(map(Tree.plain, self.axes)), kept)

    def basis(self) -> Ints:
        return self.apply_signs(zero_sum_basis(self.axes).T).T

    def shortest(self, norm: Norm) -> Shortest:
        return Shortest(norm.name, 2 ** len(self.axes), None, "exact")

    def longest_move(self) -> int | None:
        """Rows and columns: a cycle through at most min(R, C) rows and as many columns."""
        return {1: 2, 2: 2 * min(self.axes)}.get(len(self.axes))

    def log_gram_determinant(self) -> float:
        """Zero sums over n cells have determinant n, and det(G x H) = det(G)^dim(H) det(H)^dim(G) for tensor products."""
        return sum(log(n) * (self.dimension // (n - 1)) for n in self.axes)

    def project(self, values: Floats) -> Floats:
        table = self.apply_signs(values).reshape(-1, *self.axes)
        for axis in range(1, table.ndim):
            table = table - table.mean(axis=axis, keepdims=True)
        return self.apply_signs(table.reshape(values.shape))

    def projection_diagonal(self) -> Floats:
        return np.full(self.size, prod(1 - 1 / n for n in self.axes))

    def are_fixed(self, values: Ints) -> NDArray[np.bool_]:
        """All mixed differences vanish in the space of the kept rows."""
        table = self.apply_signs(values).reshape(-1, *self.axes)
        for axis in range(1, table.ndim):
            table = np.diff(table, axis=axis)
        return np.asarray(~table.reshape(len(values), -1).any(axis=1))

    def rounding_square(self) -> float:
        """Rounding is controlled: less than one a cell; by nearest plane for more than two axes."""
        return self.size * (1.0 if len(self.axes) <= 2 else 2.0 ** len(self.axes))


@dataclass(frozen=True)
class Grid(ZeroSums):
    """Integer tables over a product of two axes or more, each of two places or more, in row-major order; all sums along each axis are kept.

    basis:      products of differences e_i - e_(i+1), one for each axis. Proof: a table with zero sums along the first axis is a sum of
                (e_i - e_(i+1)) times a slice, in exactly one way (its partial sums). Its sums along another axis are zero iff those of
                every such slice are. So the moves are the tensor product of the zero-sum lattices of the axes.
    shortest:   2^axes, in l1 and in squared l2, by a product of differences e_i - e_j. Proof: the slices across the first axis have sum
                zero, so a nonzero move has two nonzero slices or more. Each is a move of the grid of the other axes. By induction at least
                2^axes cells are nonzero.
    bounds:     for two axes Frechet's, of the table less `least` everywhere: max(0, r + c - N) and min(r, c), sharp for two-way tables.
                For more axes no sharp bounds are known in closed form.
    """

    name = "grid"

    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.axes) < 2 or min(self.axes) < 2:
            raise InvalidParameter(f"A grid has two axes or more, with two places or more on each. Got {self.axes}. One axis is OneSum.")

    @property
    def size(self) -> int:
        return prod(self.axes)

    @property
    def fields(self) -> tuple[Any, ...]:
        return self.name, *self.axes

    def bounds_given(self, values: Ints, least: int) -> tuple[Ints, Ints] | None:
        if not self.is_two_way:
            return None
        above = values.reshape(-1, *self.axes) - least
        rows, columns, whole = (above.sum(axis=axis, keepdims=True) for axis in (2, 1, (1, 2)))
        low, most = np.maximum(0, rows + columns - whole), np.minimum(rows, columns)
        return (low + least).reshape(values.shape), (most + least).reshape(values.shape)

    def one_can_move(self) -> bool:
        """Never: two cells differ in some coordinate, and the sums along another axis tell them apart."""
        return False


def zero_sum_basis(axes: Sequence[int]) -> Ints:
    """Products of differences e_i - e_(i+1), one for each axis, as columns: a basis of the tables with zero sums along each axis."""
    out = np.ones((1, 1), dtype=np.int64)
    for n in axes:
        out = np.kron(out, np.eye(n, n - 1, dtype=np.int64) - np.eye(n, n - 1, k=-1, dtype=np.int64))
    return out


@dataclass(frozen=True)
class OneSum(ZeroSums, OneAxis):
    """One kept row of +1 and -1 over two or more cells. Nested sums give such blocks: each set less the sets inside it.

    basis:      the differences e_i - e_(i+1): z with sum zero is the sum of (z_0 + ... + z_i) (e_i - e_(i+1)). Multiplying cell j by its
                sign s_j turns sums into sums with signs, is its own inverse and changes no length.
    shortest:   s_i e_i - s_j e_j. A single unit vector is no move, and two entries of at least 1 measure 2 in l1 and in squared l2.
    bounds:     a cell of a plain sum holds `least` up to the sum less `least` for each other cell; all counts of that sum attain it. Under
                both signs there is no upper bound: two cells of opposite sign can always grow together.
    """

    name = "one sum"

    signs: tuple[int, ...] | None = None
    """+1 or -1 for each cell, both of them used; None where all coefficients are equal."""

    def __post_init__(self) -> None:
        if self.size < 2:
            raise InvalidParameter(f"One sum needs two cells or more. Got {self.size}: the cell is its own sum, so it is exposed.")
        if self.signs is not None and (len(self.signs) != self.size or set(self.signs) != {1, -1}):
            raise InvalidParameter(f"Signs are +1 and -1, one for each of the {self.size} cells. Leave them out where all are equal.")

    @property
    def fields(self) -> tuple[Any, ...]:
        return super().fields if self.signs is None else (*super().fields, list(self.signs))

    def apply_signs(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.signs is None else values * np.array(self.signs, dtype=np.int64)

    def matrix(self) -> Ints | None:
        return None if self.signs is None else self.kept_rows()

    def bounds_given(self, values: Ints, least: int) -> tuple[Ints, Ints]:
        low = np.full_like(values, least)
        if self.signs is not None:
            return low, np.full_like(values, UNBOUNDED)
        most = values.sum(axis=1, keepdims=True) - (self.size - 1) * least
        return low, np.broadcast_to(most, values.shape)

    def one_can_move(self) -> bool:
        """Two cells of equal sign."""
        return self.signs is None or self.size > 2
