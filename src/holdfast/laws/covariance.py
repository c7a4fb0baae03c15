"""The covariance of noise, block by block: never as one large matrix.

On one sum and on grids every law here is symmetric under permutations along each axis; the tables with zero sums along every axis are an
irreducible representation of that group, so by Schur's lemma the covariance is a multiple of the projection on them: one number a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Basis = Literal["exact", "upper bound", "estimated"]

MAX_DENSE_CELLS = 5_000


@dataclass(frozen=True, eq=False)
class Part:
    """Blocks of one shape: `cells` has one row per block. Covariance = scale x projection, or `matrix` for blocks of no simple shape."""

    cells: Ints
    shape: tuple[int, ...] | None
    """Axes along which sums are zero; None: independent cells."""
    scale: float
    signs: Ints | None = None
    matrix: Floats | None = None
    basis: Basis = "exact"
    relative_error: float = 0.0

    def variance_of(self, query: Floats) -> float:
        """Variance of the query's sum over these blocks."""
        values = query[self.cells] * (1 if self.signs is None else self.signs)
        if self.matrix is not None:
            return float(np.einsum("bi,ij,bj->", values, self.matrix, values))
        return self.scale * float((self._projected(values) ** 2).sum())

    def diagonal(self) -> Floats:
        """Variance of each cell of one block."""
        size = self.cells.shape[1]
        if self.matrix is not None:
            return np.asarray(np.diag(self.matrix))
        share = 1.0
        for length in self.shape or ():
            share *= 1 - 1 / length
        return np.full(size, self.scale * share)

    def dense(self) -> Floats:
        """Covariance of one block."""
        if self.matrix is not None:
            return self.matrix
        projected = self._projected(np.eye(self.cells.shape[1]))
        out = self.scale * projected
        return out if self.signs is None else out * np.outer(self.signs, self.signs)

    def _projected(self, values: Floats) -> Floats:
        if self.shape is None:
            return values
        grid = values.reshape(-1, *self.shape)
        for axis in range(1, grid.ndim):
            grid = grid - grid.mean(axis=axis, keepdims=True)
        return np.asarray(grid.reshape(values.shape))


class Covariance:
    """Covariance of the noise of all cells.

    `basis` says what the figures are: exact (up to `relative_error`, from rounding), an upper bound (proved, never smaller than the
    truth), or estimated from draws of the public law (`relative_error` is then one standard error). Data enter nowhere.
    """

    def __init__(self, cells: int, parts: Iterable[Part]) -> None:
        self.cells = cells
        self.parts: Sequence[Part] = tuple(parts)

    @property
    def basis(self) -> Basis:
        ranks: tuple[Basis, ...] = ("exact", "upper bound", "estimated")
        return max((part.basis for part in self.parts), key=ranks.index, default="exact")

    @property
    def relative_error(self) -> float:
        """Of every variance given, at most (for estimates: one standard error)."""
        return max((part.relative_error for part in self.parts), default=0.0)

    def diagonal(self) -> Floats:
        """Variance of every cell's noise; 0 where the kept totals fix a cell."""
        out = np.zeros(self.cells)
        for part in self.parts:
            out[part.cells] = part.diagonal()
        return out

    def of(self, query: Any) -> float:
        """Variance of the noise of sum of query_i y_i; 0 for kept totals."""
        vector = np.asarray(query, dtype=np.float64)
        if vector.shape != (self.cells,):
            raise InvalidParameter(f"A query has one coefficient for each of the {self.cells} cells. Got shape {vector.shape}.")
        return float(sum(part.variance_of(vector) for part in self.parts))

    def dense(self) -> Floats:
        """The whole matrix; refused above 5,000 cells."""
        if self.cells > MAX_DENSE_CELLS:
            raise RequestTooLarge(
                f"A covariance matrix of {self.cells} cells is refused above {MAX_DENSE_CELLS}. Use .diagonal() or .of(query)."
            )
        out = np.zeros((self.cells, self.cells))
        for part in self.parts:
            block = part.dense()
            for cells in part.cells:
                out[np.ix_(cells, cells)] = block
        return out

    def __repr__(self) -> str:
        return f"Covariance({self.cells} cells, {self.basis}, relative error {self.relative_error:.1e})"
