"""Covariance of the error that an unbiased rounding adds to projected noise, for error statements: floats, no privacy rests on them.

z = R(P e) has the covariance s P + Cov(w), w = z - P e, s the variance of a cell of e: rounding is unbiased given e. What Cov(w) is depends
on the rounding ([theory R10] (e)), and it is not the same for all cells of a grid of three axes:

    nearest plane   w = sum_j t_j b*_j with uncorrelated t_j, so Cov(w) = sum_j E[t_j^2] b*_j b*_j^T, and E[t_j^2] = E[|t_j| (1 - |t_j|)]:
                    one number for each direction, at most 1/4, found from draws of the public law; on large blocks the bound is taken.
    two-way tables  a cell is moved to its floor or its ceiling, so its variance is E[f (1 - f)], f the fractional part of its projection,
                    which has a closed form (laws/families.py). What cells share of it is found from draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.laws.families import Basis
from holdfast.randomness import NoiseKey
from holdfast.samplers.nearest_plane import NearestPlane
from holdfast.samplers.rounded_projection import RoundedGrid, RoundedGrid2, RoundedSampler

Floats = NDArray[np.float64]

DRAWS, CELL_DRAWS = 10_000, 5_000_000
"""At most so many draws, and about so many cell draws."""
FEWEST = 100
"""Fewer draws would say less about a direction than its bound does."""


@dataclass(frozen=True, eq=False)
class AlongDirections:
    """sum_j d_j b*_j b*_j^T, the b*_j all products of one column of each factor: for a grid one factor an axis, else one in all."""

    factors: tuple[Floats, ...]
    d: Floats
    """One number for each product of columns."""
    d_error: Floats
    """Its standard error; nothing where d is the bound."""
    basis: Basis

    @property
    def query_basis(self) -> Basis:
        return self.basis

    def of(self, values: Floats) -> float:
        along = _apply([factor.T for factor in self.factors], values.reshape(len(values), *(len(factor) for factor in self.factors)))
        return float((along**2 * self.d).sum())

    def diagonal(self) -> Floats:
        return np.asarray(_apply([factor**2 for factor in self.factors], self.d[None])[0].ravel())

    def dense(self) -> Floats:
        whole: Floats = np.ones((1, 1))
        for factor in self.factors:
            whole = np.asarray(np.kron(whole, factor), dtype=np.float64)
        return np.asarray((whole * self.d.ravel()) @ whole.T)

    def error(self, rest: Floats, of_cells: bool) -> float:
        """Standard errors of directions added up, as if they always erred together."""
        if not of_cells:  # no sum has more of one direction's error than of its variance
            return float((self.d_error / np.maximum(self.d, 1e-300)).max(initial=0.0))
        off = _apply([factor**2 for factor in self.factors], self.d_error[None])[0].ravel()
        return float((off / np.maximum(rest + self.diagonal(), 1e-300)).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class TwoWayError:
    """Every cell has the same variance, in closed form; sums over several cells are estimated from draws, made when they are asked for."""

    sampler: RoundedGrid2
    label: tuple[str, ...]
    cell: float
    basis: Basis = "exact"
    query_basis: Basis = "estimated"

    @cached_property
    def _draws(self) -> Floats:
        count = max(2, min(DRAWS, CELL_DRAWS // self.sampler.cells))
        table = _draw_moves(self.sampler, self.label, count).reshape(count, *self.sampler.shape)
        for axis in (1, 2):  # z - e, projected, is z - P e
            table = table - table.mean(axis=axis, keepdims=True)
        return np.asarray(table.reshape(count, -1))

    def of(self, values: Floats) -> float:
        return float(((self._draws @ values.T) ** 2).mean(axis=0).sum())

    def diagonal(self) -> Floats:
        return np.full(self.sampler.cells, self.cell)

    def dense(self) -> Floats:
        found = self._draws.T @ self._draws / len(self._draws)
        np.fill_diagonal(found, self.cell)
        return np.asarray(found)

    def error(self, rest: Floats, of_cells: bool) -> float:
        """A sum of many cells is near a normal law: its square has twice its variance squared."""
        return 0.0 if of_cells else math.sqrt(2 / max(2, min(DRAWS, CELL_DRAWS // self.sampler.cells)))


RoundingError: TypeAlias = AlongDirections | TwoWayError
"""Cov(w) of one block: `of` sums (one row of coefficients a block, added up), its `diagonal`, `dense`; `basis` is that of single cells,
`query_basis` of sums; `error(rest, of_cells)` is the largest relative standard error of `rest` plus this, of cells or of any sum."""


def rounding_error(sampler: RoundedSampler, label: tuple[str, ...], cell: float | None, count: int | None = None) -> RoundingError:
    """Covariance of the blocks that this sampler rounds; `cell`, on grids, is the closed form of the variance of the first cell. `count`:
    draws for an estimate, 0 for a bound; None is as many as usual.
    """
    if isinstance(sampler, RoundedGrid2):
        assert cell is not None
        return TwoWayError(sampler, label, cell)
    factors = _directions(sampler)
    count = min(DRAWS, CELL_DRAWS // sampler.cells) if count is None else count
    sizes = tuple(factor.shape[1] for factor in factors)
    if cell is not None and math.prod(sizes) == 1:  # the first cell is moved by one direction alone
        return AlongDirections(factors, np.full(sizes, cell), np.zeros(sizes), "exact")
    if count < FEWEST:
        return AlongDirections(factors, np.full(sizes, 0.25), np.zeros(sizes), "upper bound")
    moved = _draw_moves(sampler, label, count).reshape(count, *(len(factor) for factor in factors))
    t = np.abs(_apply([factor.T / (factor**2).sum(axis=0)[:, None] for factor in factors], moved))
    variances = np.clip(t * (1 - t), 0.0, 0.25)
    return AlongDirections(factors, variances.mean(axis=0), variances.std(axis=0, ddof=1) / math.sqrt(count), "estimated")


def _directions(sampler: RoundedSampler) -> tuple[Floats, ...]:
    """The Gram-Schmidt vectors, as columns: of the zero sums of an axis, a cell and its share taken off those after it."""
    if isinstance(sampler, NearestPlane):
        orthogonal = sampler.orthogonal
        return (
            np.array([[int(a) / D for a in row] for row, D in zip(orthogonal.integral_vectors, orthogonal.determinants, strict=False)]).T,
        )
    assert isinstance(sampler, RoundedGrid)
    factors = []
    for size in sampler.shape:
        factor = np.zeros((size, size - 1))
        for j in range(size - 1):
            factor[j, j], factor[j + 1 :, j] = 1.0, -1 / (size - 1 - j)
        factors.append(factor)
    return tuple(factors)


def _draw_moves(sampler: RoundedSampler, label: tuple[str, ...], count: int) -> Floats:
    """z - e of draws with a public key."""
    with NoiseKey.for_tests("public draws") as key, key.stream(*label) as words:
        noise = sampler.law.draw(count * sampler.cells, words).reshape(count, sampler.cells)
        return (sampler.round(noise, words) - noise).astype(np.float64)


def _apply(factors: list[Floats], tables: Floats) -> Floats:
    """Each factor along its axis of a stack of tables."""
    for axis, factor in enumerate(factors, start=1):
        tables = np.moveaxis(np.tensordot(factor, tables, axes=(1, axis)), 0, axis)
    return np.asarray(tables)
