"""Form P of the correction, for grids of two axes: much nearer to the truth than a sum over cells, and still monotone.

Legend: r rows, c columns. Coordinate e = (i, j), i < r - 1 and j < c - 1, is a cell's own; p = r - 1 - i rows are below it and s = c - 1 -
j columns to its right. Its Gram-Schmidt vector has 1 at e, -1/s on the rest of its row, -1/p on the rest of its column and 1/(p s) below
right; squares u_i[k] v_j[l] with u_i[i] = 1, u_i[k] = 1/p^2 for k > i, and v likewise. Drawing e has 1 / s_e^2 <= 1 / tau_e + Y_e,

    Y_e = sum over f != e of u v / tau_f,   at most ymax = ((1 + 1/p) (1 + 1/s) - 1) / tau_0.

    Phi = sum_e [own(tau_e) + slope_e(tau_e) Y_e],   own + slope_e y >= H(1 / tau + y) for 0 <= y <= ymax: a chord of the convex majorant.

The tables hold doubles at or above the chord's, falling in tau; they are own and slope by definition, so that Phi is an exact number, and
a sum of products of falling functions: the coupling stays monotone. [theory T172], [theory T173]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.samplers.coupling.majorant import KNEE, SLOPE, check_certified
from holdfast.samplers.coupling.mixture import Mixture

Doubles = NDArray[np.float64]

NEAR = 8.0
"""Atoms from here on share one slope: it hardly changes any more."""
MARGIN = 2.0**-38
"""More than the relative error of the doubles below."""
TINY = 2.0**-100


@dataclass(frozen=True)
class PairCorrection:
    """own and slope of every cell; see above."""

    rows: int
    columns: int
    mixture: Mixture

    @cached_property
    def near(self) -> int:
        """Atoms that have slopes of their own; the last of these stands for all later ones."""
        return min(self.mixture.atoms, int(np.searchsorted(self.mixture.taus, NEAR)) + 1)

    @cached_property
    def own(self) -> Doubles:
        """For every atom of the table."""
        check_certified()
        return _falling(majorant_above(1.0 / self.mixture.taus))

    @cached_property
    def slopes(self) -> Doubles:
        """Shape (coordinates + 1, near); the last row, of zeros, is for cells without a coordinate."""
        p = np.arange(self.rows - 1, 0, -1, dtype=np.float64)[:, None]
        s = np.arange(self.columns - 1, 0, -1, dtype=np.float64)[None, :]
        longest = ((1 / p + 1 / s + 1 / (p * s)) / self.mixture.taus[0] * (1 + 2.0**-50)).ravel()[:, None]
        x = 1.0 / self.mixture.taus[: self.near]
        rise = majorant_above(x + longest) - majorant_above(x) * (1 - 2 * MARGIN)
        table = _falling(np.maximum(rise / longest * (1 + MARGIN), TINY))
        return np.ascontiguousarray(np.vstack([table, np.zeros((1, self.near))]))

    def cell_slopes(self, indices: NDArray[np.int64]) -> Doubles:
        """slope_e(tau_e) of every cell, shape (rows, columns); 0 where a cell has no coordinate."""
        state = np.minimum(indices, self.near - 1).reshape(self.rows, self.columns)
        found = np.zeros((self.rows, self.columns))
        lines = self.slopes[:-1].reshape(self.rows - 1, self.columns - 1, self.near)
        found[:-1, :-1] = np.take_along_axis(lines, state[:-1, :-1, None], axis=2)[:, :, 0]
        return found

    def below(self, x: Doubles) -> Doubles:
        """Y of every cell with a coordinate, from x = 1 / tau as an array (rows, columns); any arithmetic. 0 elsewhere."""
        p, s = _squares(self.rows), _squares(self.columns)
        mean = _after(x) / p[:, None]
        found = mean + (_after((x + mean).T).T) / s
        found[-1, :], found[:, -1] = 0 * x[-1, :], 0 * x[:, -1]
        return found

    def above(self, slopes: Doubles) -> Doubles:
        """S of every cell, from the slopes of all cells as an array (rows, columns); any arithmetic."""
        p, s = _squares(self.rows), _squares(self.columns)
        upper = _before(slopes / p[:, None])
        return np.asarray(upper + _before(((upper + slopes) / s).T).T)


def majorant_above(x: Doubles) -> Doubles:
    """The convex majorant of H in doubles, moved up by its error: between Ht and (1 + 2 MARGIN) Ht + TINY.

    H = log(1 + 2 q + 2 q^4 + 2 q^9 + 2 q^16), q = exp(-2 pi^2 / x), leaves out less than 2^-80 of itself up to the knee. Where q > 2^-100
    the exponent is below 70, so that q is right to 2^-45 and q^16 contributes nothing to speak of.
    """
    q = np.exp(-2 * math.pi**2 / np.minimum(x, float(KNEE)))
    line = float(SLOPE) * np.maximum(x - float(KNEE), 0.0)
    return np.asarray((np.log1p(2 * (q + q**4 + q**9 + q**16)) + line) * (1 + MARGIN) + TINY)


def _falling(table: Doubles) -> Doubles:
    """The least falling table at or above this one."""
    return np.ascontiguousarray(np.maximum.accumulate(table[..., ::-1], axis=-1)[..., ::-1])


def _squares(length: int) -> Doubles:
    """p^2 for every index, p what comes after it; 1 for the last, after which nothing comes."""
    return np.asarray(np.maximum(np.arange(length - 1, -1, -1), 1) ** 2)


def _after(values: Doubles) -> Doubles:
    """Sums of the later rows."""
    sums = np.cumsum(values[::-1], axis=0)[::-1]
    return np.asarray(np.concatenate([sums[1:], 0 * sums[:1]]))


def _before(values: Doubles) -> Doubles:
    """Sums of the earlier rows."""
    sums = np.cumsum(values, axis=0)
    return np.asarray(np.concatenate([0 * sums[:1], sums[:-1]]))
