"""The law of one cell of narrow Gaussian noise under a few kept sums, by means over roots of unity ([theory T199]).

Independent cells have a characteristic function f > 0. Given that sums of theirs are 0, a cell is k with a probability proportional to

    exp(-k^2 / (2 sigma^2)) mean over y of cos(k <a, y>) prod over the other cells c of f(<a_c, y>),

a_c the coefficients of cell c in the sums, y as many angles as there are sums. Finitely many roots of unity in place of all angles add
tables whose sums are multiples of their number, which the noise hardly reaches. In a two-way table the angles of the columns can be taken
one after the other, given those of the rows: so only the shorter side counts. Doubles; probabilities are off by ERROR at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.convolved import GaussianCell

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ERROR = 1e-8
"""Error of each probability: twice WRAPPED, and far more than rounding."""
WRAPPED = 1e-9
WIDEST = 4.0
"""Variance up to which this is tried: beyond, [theory T198] gives all laws, and f comes near the rounding of doubles."""
MAX_POINTS, MAX_PRODUCTS = 1 << 21, 1 << 27
"""Most roots of unity for all sums together; and with those for a column, or with the cells: a tenth of a second or two."""


def cell_of_table(rows: int, columns: int, variance: float) -> Floats | None:
    """P[z = -r], ..., P[z = r] of a cell of a table whose row and column sums are kept; None where there would be too many points.

    Given:  rows and columns of two or more.
    """
    few, many = sorted((rows, columns))
    if variance > WIDEST:
        return None
    across = _roots(4 * few * variance, many)
    down = _roots(4 * many * variance, few - 1)
    if down ** (few - 1) > MAX_POINTS or down ** (few - 1) * across > MAX_PRODUCTS:
        return None
    cell = GaussianCell(variance)
    s = 2 * math.pi * np.arange(across) / across
    f = cell.transform(2 * math.pi * np.arange(down)[:, None] / down + s)
    half = (few - 1) // 2
    left, right = _combine(f, half), _combine(f, few - 1 - half)
    column = np.maximum((left * cell.transform(s)) @ right.T, 0.0)
    whole = (left * ((column / column.max()) ** (many - 1) @ right)).sum(axis=0)
    return _mark(variance, whole)


def _combine(f: Floats, times: int) -> Floats:
    """Products of f over so many angles, one row for each choice of them."""
    out = np.ones((1, f.shape[1]))
    for _ in range(times):
        out = (out[:, None] * f).reshape(-1, f.shape[1])
    return out


def cells_of_rows(rows: Sequence[Sequence[int]], sizes: Sequence[int], variance: float) -> list[Floats] | None:
    """The same for a cell of each class, under sums with any whole coefficients: one column of `rows` for each class of alike cells.

    Given:  independent rows, as many classes as columns.
    """
    matrix, counts = np.array(rows, dtype=np.int64).reshape(len(rows), len(sizes)), np.array(sizes, dtype=np.int64)
    largest = float(np.linalg.eigvalsh((matrix * counts) @ matrix.T)[-1]) * (1 + 1e-9)
    roots = _roots(2 * largest * variance, len(rows))
    if variance > WIDEST or roots ** len(rows) > MAX_POINTS or roots ** len(rows) * len(sizes) > MAX_PRODUCTS:
        return None
    log_f = np.log(GaussianCell(variance).transform(2 * math.pi * np.arange(roots) / roots))
    places = np.indices((roots,) * len(rows)).reshape(len(rows), -1)
    angles = [column @ places % roots for column in matrix.T]
    logs = sum(count * (log_f[angle] - log_f[0]) for count, angle in zip(counts.tolist(), angles, strict=True))
    rests = [np.asarray(np.bincount(angle, np.exp(logs - log_f[angle]), roots), dtype=np.float64) for angle in angles]
    return [_mark(variance, rest) for rest in rests]


def _roots(scale: float, sums: int) -> int:
    """The least N with sums * log theta_3(exp(-N^2 / scale)) <= WRAPPED: theta_3(q) <= 1 + 2 q / (1 - q), and q <= 1 / 2 here."""
    return math.ceil(math.sqrt(scale * math.log(4 * max(sums, 1) / WRAPPED)))


def _mark(variance: float, weights: Floats) -> Floats:
    """exp(-k^2 / (2 variance)) times the transform of weights at roots of unity, as probabilities."""
    reach = math.ceil(12 * math.sqrt(variance)) + 2
    k = np.arange(-reach, reach + 1)
    rest = np.fft.fft(weights).real[k % len(weights)]
    found = np.exp(-(k**2) / (2 * variance)) * np.maximum(rest, 0.0)
    return np.asarray(found / found.sum())
