"""The law of a sum over free cells and cells under one kept total each, by convolution: for Laplace noise, and for narrow Gaussian noise.

Independent cells have a characteristic function f > 0, known in closed form. A sum over cells given that a total of theirs is 0 has

    Phi(x) = integral of prod_c f(y + w_c x)^(n_c) dy / integral of f(y)^n dy,

w_c the coefficients and n_c the number of cells with each ([theory T142]). Both integrals are means over roots of unity, off by what
lies beyond as many points; blocks multiply; and a transform gives the probabilities. Doubles; `ERROR` bounds what all this can be off.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.laws.families import Gaussian, L1Laplace, Rounded, free_laplace_variance

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Classes = tuple[tuple[int, int], ...]
"""(coefficient, number of cells with it) of a block under one total."""

ERROR = 1e-10
"""Bound of the error of every probability: wrapping and what is cut off are below exp(-WRAPPED), rounding below 1e-12."""
WRAPPED = 60.0
MAX_POINTS = 1 << 21
MAX_PRODUCTS = 1 << 26
"""Points of the mean over y, times points of x: a second or two."""
CHUNK = 1 << 20
UNBOUNDED = 1 << 62
WIDEST_GAUSSIAN = 25
"""Variance up to which Gaussian cells are taken: beyond, the lattice sum is as good."""


@dataclass(frozen=True)
class LaplaceCell:
    rate: float
    """Up to which u moments are looked at."""
    spread: float
    """The variance."""

    def transform(self, x: Floats) -> Floats:
        """E exp(i x z): real and above 0."""
        return np.asarray(1 / (1 + 2 * self.spread * np.sin(x / 2) ** 2))

    def log_moment(self, u: Floats) -> Floats:
        """A bound of log E exp(u z); infinity where there is none."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            left = 1 - 2 * self.spread * np.sinh(np.minimum(np.abs(u), self.rate) / 2) ** 2
            return np.where(left > 0, -np.log(np.maximum(left, 0.0)), np.inf)


@dataclass(frozen=True)
class GaussianCell:
    variance: float

    @property
    def rate(self) -> float:
        return 8 / math.sqrt(self.variance) + 8

    def transform(self, x: Floats) -> Floats:
        k = np.arange(1, math.ceil(12 * math.sqrt(self.variance)) + 3)
        weights = np.exp(-(k**2) / (2 * self.variance))
        out = np.ones_like(x)
        for number, weight in zip(k.tolist(), weights.tolist(), strict=True):
            out += 2 * weight * np.cos(number * x)
        return np.asarray(np.maximum(out, 0.0) / (1 + 2 * weights.sum()))

    def log_moment(self, u: Floats) -> Floats:
        return np.asarray(self.variance * u**2 / 2)


IndependentCell: TypeAlias = LaplaceCell | GaussianCell
"""The law of an independent cell."""


@dataclass(frozen=True, eq=False)
class Convolved:
    """Law:  e in step Z; within[t] = P[|e| <= t step], off by ERROR at most. `work`: points of the transforms that it took."""

    step: int
    within: Floats
    work: int = 0

    def reach(self, alpha: float) -> int | None:
        """The least r, a multiple of the step, with P[|e| > r] <= alpha; None if alpha is not well above the error."""
        enough = np.flatnonzero(self.within >= 1 - alpha + ERROR)
        return int(enough[0]) * self.step if alpha >= 10 * ERROR and len(enough) else None

    def tail(self, reach: int) -> float:
        """A bound of P[|e| > reach]."""
        return min(1.0, 1 - float(self.within[min(reach // self.step, len(self.within) - 1)]) + ERROR)


def cell_of(target: object) -> IndependentCell | None:
    """The cells whose sums are convolved; None for other laws. Of rounded projection it is that of free cells alone."""
    if isinstance(target, L1Laplace | Rounded):
        return LaplaceCell(float(target.epsilon), free_laplace_variance(target.epsilon))
    if isinstance(target, Gaussian) and target.sigma_squared <= WIDEST_GAUSSIAN:
        return GaussianCell(float(target.sigma_squared))
    return None


def convolve(cell: IndependentCell, free: Ints, totals: Sequence[Ints], most: int = UNBOUNDED) -> Convolved | None:
    """Law of the sum over free cells with these coefficients, and over blocks under one total: one array of coefficients each.

    Guarantees:  None where there would be too many points, of one transform, or `most` of all together.
    """
    blocks = [_classes(row) for row in totals]
    step = math.gcd(*free.tolist(), *(w for classes in blocks for w, _ in classes))
    if step == 0:
        return Convolved(1, np.ones(1))
    alone = Counter(abs(int(w)) // step for w in free if w)
    alike = Counter(tuple((w // step, n) for w, n in classes) for classes in blocks if len(classes) > 1)
    spans = sum(_span(cell, _cells(classes)) for classes in alike)
    if spans > most:
        return None
    given = [(classes, times, chance) for classes, times in alike.items() if (chance := _log_chance(cell, classes)) is not None]
    if len(given) < len(alike):
        return None
    points = _points(cell, alone, given)
    work = spans + points * (1 + len(alone) + len(given))
    if points > MAX_POINTS or work > most:
        return None
    x = 2 * math.pi * np.arange(points // 2 + 1) / points
    phi = np.ones(len(x))
    for w, times in alone.items():
        phi *= cell.transform(w * x) ** times
    for classes, times, chance in given:
        part = _given_total(cell, classes, points, chance)
        if part is None:
            return None
        phi *= part**times
    law = np.fft.irfft(phi, points)[: points // 2]
    return Convolved(step, np.cumsum(np.concatenate([law[:1], 2 * law[1:]])), work)


def _classes(row: Ints) -> Classes:
    """Coefficients less that of most cells: adding the same to all changes nothing under a kept total."""
    kinds, counts = np.unique(row, return_counts=True)
    most = int(kinds[counts.argmax()])
    return tuple((int(w) - most, int(n)) for w, n in zip(kinds, counts, strict=True))


def _cells(classes: Classes) -> int:
    return sum(n for _, n in classes)


def _span(cell: IndependentCell, cells: int) -> int:
    """Points, a power of two, beyond half of which a sum of so many cells goes with probability below exp(-2 WRAPPED)."""
    u = cell.rate * np.arange(1, 128) / 128
    beyond = float(np.min((cells * cell.log_moment(u) + 2 * WRAPPED) / u))
    return 1 << (2 * math.ceil(beyond) + 2).bit_length()


def _log_chance(cell: IndependentCell, classes: Classes) -> float | None:
    """log P[the sum of all cells is 0]; None where the mean would have too many points."""
    cells = _cells(classes)
    points = _span(cell, cells)
    if points > MAX_POINTS:
        return None
    return math.log(float((cell.transform(2 * math.pi * np.arange(points) / points) ** cells).mean()))


def _points(cell: IndependentCell, alone: Counter[int], given: list[tuple[Classes, int, float]]) -> int:
    """Points, a power of two, beyond half of which e goes with probability below exp(-WRAPPED), by Chernoff's bound; a kept total lets
    coefficients be taken from their mean, and divides by the chance of that total."""
    terms: list[tuple[float, int]] = [(float(w), n) for w, n in alone.items()]
    lost = WRAPPED
    for classes, times, chance in given:
        mean = sum(w * n for w, n in classes) / _cells(classes)
        terms += [(w - mean, n * times) for w, n in classes]
        lost -= chance * times
    largest = max(abs(w) for w, _ in terms)
    u = cell.rate / largest * np.arange(1, 256) / 256
    logs = sum(n * cell.log_moment(w * u) for w, n in terms)
    return 1 << (2 * math.ceil(float(np.min((logs + lost) / u))) + 2).bit_length()


def _given_total(cell: IndependentCell, classes: Classes, points: int, log_chance: float) -> Floats | None:
    """Phi at the points, for cells under a total that is kept."""
    if len(classes) == 2:
        return _two_classes(cell, classes, points)
    span = _span(cell, _cells(classes))
    if points // 2 * span * len(classes) > MAX_PRODUCTS:
        return None
    y = 2 * math.pi * np.arange(span) / span
    x = 2 * math.pi * np.arange(points // 2 + 1) / points
    out = np.empty(len(x))
    rows = max(1, CHUNK // span)
    for begin in range(0, len(x), rows):
        product = np.ones((len(x[begin : begin + rows]), span))
        for w, n in classes:
            product *= cell.transform(y + w * x[begin : begin + rows, None]) ** n
        out[begin : begin + rows] = product.mean(axis=1)
    return out / math.exp(log_chance)


def _two_classes(cell: IndependentCell, classes: Classes, points: int) -> Floats:
    """The sum S over one class has P[S = k] proportional to q_a(k) q_b(-k), q the laws of sums of independent cells."""
    (one, a), (other, b) = classes
    span = _span(cell, a + b)
    f = cell.transform(2 * math.pi * np.arange(span // 2 + 1) / span)
    half = span // 2
    law = np.maximum(np.fft.irfft(f**a, span), 0.0) * np.maximum(np.fft.irfft(f**b, span), 0.0)
    k = np.concatenate([np.arange(half), np.arange(-half, 0)])
    wrapped = np.bincount((one - other) * k % points, weights=law / law.sum(), minlength=points)
    return np.asarray(np.fft.rfft(wrapped).real)
