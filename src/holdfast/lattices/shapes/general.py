"""Any other kept rows on a block, and all blocks of a lattice side by side, for laws that do not factorise over them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb, log
from typing import Any

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, NoExactSampler, RequestTooLarge
from holdfast.lattices import algebra
from holdfast.lattices.algebra import small_kernel_basis
from holdfast.lattices.columns import MOST_COLUMNS
from holdfast.lattices.norms import Norm
from holdfast.lattices.shapes.shape import MAX_DENSE, Floats, Ints, Shape
from holdfast.lattices.shortest import Shortest, shortest_vector

logger = logging.getLogger("holdfast")

HERMITE_DIMENSION = 150
"""Free dimensions up to which a basis comes from the Hermite form. A constant: which words give which draw depends on it."""
MOST_SEARCHED = 400
"""Different columns up to which a shortest move is searched for; beyond, 2 is a lower bound: no unit vector is a move."""
MAX_MINORS = 5000
"""Determinants up to which rows are tried for being unimodular."""
LONG_DIMENSION = 200
"""Free dimensions from which preparing a sampler takes a second or more, and is announced."""
SECONDS_AT_500 = 15
"""What 500 free dimensions took on one core of 2020, for announcements."""


@dataclass(frozen=True)
class General(Shape):
    """Independent integer rows over classes of cells with equal columns, the cells class after class; no cell of it is free.

    basis:      all integer solutions of the rows (algebra.kernel_basis), reduced.
    shortest:   two cells with equal columns: one up, one down, and no unit vector is a move. Else by search in the reduced basis
                (lattices/shortest.py), exact or a proven lower bound.
    not listed: of a block too large to look into the rows are None, `class_sizes` has one entry for all cells, and the rank is given.
                Then no basis is made, and 2 is a lower bound for a shortest move: no unit vector is one.
    """

    name = "general"

    rows: tuple[tuple[int, ...], ...] | None
    class_sizes: tuple[int, ...]
    general_rank: int | None = None
    """Rank of a block whose rows are not listed."""

    def __post_init__(self) -> None:
        if self.rows is not None and any(len(row) != len(self.class_sizes) for row in self.rows):
            raise InvalidParameter(
                f"Every row of a general block has one coefficient for each of its {len(self.class_sizes)} classes of cells."
            )

    @classmethod
    def without_rows(cls, size: int, rank: int) -> General:
        """A block too large to list its rows."""
        return cls(None, (size,), rank)

    @property
    def size(self) -> int:
        return sum(self.class_sizes)

    @property
    def axes(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def is_listed(self) -> bool:
        return self.rows is not None

    @property
    def dense_dimension(self) -> int:
        return self.dimension

    def class_ends(self) -> Ints:
        return np.cumsum(self.class_sizes)

    @property
    def rank(self) -> int:
        return len(self.rows) if self.rows is not None else int(self.general_rank or 0)

    @property
    def fields(self) -> tuple[Any, ...]:
        if self.rows is None:
            return self.name, self.size, self.rank
        return self.name, [list(row) for row in self.rows], list(self.class_sizes)

    def matrix(self) -> Ints | None:
        return None if self.rows is None else np.repeat(np.array(self.rows, dtype=np.int64), self.class_sizes, axis=1)

    def listed_matrix(self) -> Ints:
        """As `matrix`; NoExactSampler where the rows are not listed."""
        rows = self.matrix()
        if rows is None:
            raise NoExactSampler(self._no_exact_sampler())
        return rows

    def basis(self) -> NDArray[Any]:
        rows = self.matrix()
        if rows is None:
            raise RequestTooLarge("A basis of this general block was not computed: it is too large.")
        return algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis(rows)))

    def reduced_basis(self) -> NDArray[Any]:
        """The basis for samplers, up to MOST_COLUMNS cells; NoExactSampler beyond. Shared by all who ask: not to be written to."""
        return _reduced_basis(self)

    @property
    def class_dimension(self) -> int:
        """Free dimensions of the class totals: what dense algebra has to deal with."""
        return self.dimension if self.rows is None else len(self.class_sizes) - self.rank

    def class_basis(self) -> NDArray[Any]:
        """A reduced basis of the class totals that moves can have; NoExactSampler where the rows are not listed. Shared: not to be written
        to.
        """
        return _class_basis(self)

    def short_basis(self) -> NDArray[Any]:
        """Differences of neighbours inside classes, and moves of class totals made at the first cells."""
        ends = self.class_ends()
        inside = [np.eye(1, self.size, k) - np.eye(1, self.size, k + 1) for k in range(self.size - 1) if k + 1 not in ends]
        between = np.zeros((self.class_basis().shape[1], self.size))
        between[:, ends - np.array(self.class_sizes)] = self.class_basis().T.astype(np.float64)
        return np.concatenate([*inside, between]).T

    def longest_move(self) -> int | None:
        """Known if all nonzero minors of full size are equal up to sign: entries -1, 0, 1 on rank + 1 cells at most."""
        return self.rank + 1 if _is_unimodular(self) else None

    def shortest(self, norm: Norm) -> Shortest | None:
        if self.dimension == 0:
            return None
        if self.rows is None:
            return Shortest(norm.name, 2, None, "lower bound")
        if self.one_can_move():
            return Shortest(norm.name, 2, None, "exact")
        if len(self.class_sizes) > MOST_SEARCHED:
            return Shortest(norm.name, 2, None, "lower bound")
        return shortest_vector(self.basis(), norm)

    @cached_property
    def _class_frame(self) -> tuple[Floats, Floats]:
        """(an orthonormal basis of the class totals divided by sqrt n_c, their Gram-Schmidt vectors as values on cells of each class)."""
        roots = np.sqrt(np.array(self.class_sizes, dtype=np.float64))
        frame, upper = np.linalg.qr(self.class_basis().astype(np.float64) / roots[:, None])
        return frame, frame * np.abs(np.diag(upper)) / roots[:, None]

    def _class_means(self, values: Floats) -> tuple[Floats, Floats]:
        """(the means over classes, the values less those)."""
        sizes = np.array(self.class_sizes)
        means = np.add.reduceat(values, np.concatenate([[0], np.cumsum(sizes)[:-1]]), axis=1) / sizes
        return means, values - np.repeat(means, sizes, axis=1)

    def project(self, values: Floats) -> Floats:
        """Inside classes, and between them."""
        means, inside = self._class_means(values)
        roots, frame = np.sqrt(np.array(self.class_sizes)), self._class_frame[0]
        between = ((means * roots) @ frame) @ frame.T / roots
        return np.asarray(inside + np.repeat(between, self.class_sizes, axis=1))

    def projection_diagonal(self) -> Floats:
        sizes = np.array(self.class_sizes, dtype=np.float64)
        return np.repeat(1 - 1 / sizes + (self._class_frame[0] ** 2).sum(axis=1) / sizes, self.class_sizes)

    def are_fixed(self, values: Ints) -> NDArray[np.bool_]:
        starts = np.concatenate([[0], np.cumsum(self.class_sizes)[:-1]])
        of_class = values[:, starts]
        even = (np.repeat(of_class, self.class_sizes, axis=1) == values).all(axis=1)
        moves = self.class_basis().astype(object)
        return np.array(
            [bool(flat) and not any(row.astype(object) @ moves) for flat, row in zip(even, of_class, strict=True)], dtype=np.bool_
        )

    def gram_schmidt_products(self, values: Floats) -> Floats:
        """Each row's inner products with vectors of which a quarter of the squares bounds what rounding by classes adds to the variance of
        its sum: Gram-Schmidt vectors of the class totals, and random subsets inside classes.
        """
        sizes = np.array(self.class_sizes)
        means, inside = self._class_means(values)
        spread = np.repeat(np.sqrt(np.where(sizes > 1, sizes / np.maximum(sizes - 1, 1), 0)), sizes)
        return np.concatenate([(means * sizes) @ self._class_frame[1], inside * spread], axis=1)

    def rounding_diagonal(self) -> Floats:
        """The sums of squares of `gram_schmidt_products` of single cells."""
        of_class = (self._class_frame[1] ** 2).sum(axis=1) + (np.array(self.class_sizes) > 1)
        return np.repeat(of_class, self.class_sizes)

    def log_gram_determinant(self) -> float:
        rows = self.matrix()
        if rows is None:
            raise RequestTooLarge("The determinant of this general block was not computed: it is too large.")
        return log(algebra.determinant_squared(algebra.kernel_basis(rows)))

    def one_can_move(self) -> bool | None:
        """Two cells of one class, or of two classes whose columns are equal after all."""
        if self.rows is None:
            return None
        return max(self.class_sizes) > 1 or len(set(zip(*self.rows, strict=True))) < len(self.class_sizes)

    def _no_exact_sampler(self) -> str:
        return (
            f"The kept totals link {self.size} cells in a way that has no exact sampler for this size: up to {MOST_COLUMNS} cells "
            "are drawn, where cells that no kept total tells apart count as one. Keep fewer totals, nested ones, or all sums along the "
            "axes of a product."
        )


def announce(dimension: int) -> None:
    """Say how long dense algebra will take, where it takes long."""
    if dimension >= LONG_DIMENSION:
        seconds = max(1, round(SECONDS_AT_500 * (dimension / 500) ** 3))
        logger.info("A block of %s free dimensions is prepared, once: about %s seconds.", dimension, seconds)


@lru_cache(maxsize=256)
def _is_unimodular(shape: General) -> bool:
    """Whether all nonzero minors of full size are equal up to sign; False where there are too many to try, or rows are not listed."""
    rows = shape.rows or ()
    columns = sorted(set(zip(*rows, strict=True)))
    if not rows or comb(len(columns), len(rows)) > MAX_MINORS:
        return False
    minors = {abs(int(fmpz_mat([list(column) for column in chosen]).det())) for chosen in combinations(columns, len(rows))}
    return len(minors - {0}) == 1


@lru_cache(maxsize=256)
def _class_basis(shape: General) -> NDArray[Any]:
    if shape.rows is None:
        raise NoExactSampler(shape._no_exact_sampler())
    return _short(np.array(shape.rows, dtype=np.int64))


@lru_cache(maxsize=256)
def _reduced_basis(shape: General) -> NDArray[Any]:
    rows = shape.matrix()
    if rows is None or shape.size > MOST_COLUMNS:
        raise NoExactSampler(shape._no_exact_sampler())
    return _short(rows)


def _short(rows: Ints) -> NDArray[Any]:
    """A reduced basis of the integer solutions, not to be written to."""
    dimension = rows.shape[1] - len(rows)
    announce(dimension)
    kernel = small_kernel_basis(rows) if dimension > HERMITE_DIMENSION else algebra.kernel_basis(rows)
    basis = algebra.to_numpy(algebra.reduced_basis(kernel))
    basis.flags.writeable = False
    return basis


@dataclass(frozen=True)
class Whole(Shape):
    """The direct sum of its parts: the cells of the first part, then those of the second, and so on. No block of a lattice has this shape;
    a channel whose law is no product over blocks draws the whole lattice in it.

    basis, rank, determinant: those of the parts side by side. shortest: the shortest of the parts', since a move that is nonzero on two
    parts is longer than its restriction to either.
    """

    name = "general"

    parts: tuple[Shape, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def axes(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def rank(self) -> int:
        return sum(part.rank for part in self.parts)

    @property
    def fields(self) -> tuple[Any, ...]:
        return ("whole", *(list(part.fields) for part in self.parts))

    def basis(self) -> NDArray[Any]:
        return self._side_by_side(lambda part: part.basis())

    def reduced_basis(self) -> NDArray[Any]:
        """The same lattice, with a reduced basis of every part that has one."""
        return self._side_by_side(lambda part: part.reduced_basis())

    def direct_sum(self) -> tuple[Shape, ...]:
        return self.parts

    def kept_rows(self) -> Ints:
        return algebra.block_diagonal([part.kept_rows() for part in self.parts])

    def _side_by_side(self, basis: Callable[[Shape], NDArray[Any]]) -> NDArray[Any]:
        if self.size * self.dimension > MAX_DENSE:
            raise RequestTooLarge(f"A basis of {self.size} cells would have {self.size * self.dimension} entries, which is refused.")
        return algebra.block_diagonal([basis(part) for part in self.parts])

    def shortest(self, norm: Norm) -> Shortest | None:
        found = [shortest for part in self.parts if (shortest := part.shortest(norm)) is not None]
        return min(found, key=lambda shortest: (shortest.value, shortest.status != "exact"), default=None)

    def log_gram_determinant(self) -> float:
        return sum(part.log_gram_determinant() for part in self.parts)

    def one_can_move(self) -> bool | None:
        found = [part.one_can_move() for part in self.parts]
        return True if any(found) else None if None in found else False
