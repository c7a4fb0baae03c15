"""The law of a single cell's noise, for pictures and sentences: probabilities in floats, to 1e-12 in all; no privacy rests on them.

    free cells           the law itself
    one sum, Laplace     P[z_1 = k] = p(k) q_(n-1)(-k) / q_n(0), q_m the law of a sum of m independent cells: the rest makes up for k
    one sum, Gaussian    the same
    rounded projection   where every cell goes to its floor or its ceiling (one sum, two-way tables, [theory R10] (b), (c)):
                         P[z_1 = k] = E[max(0, 1 - |u_1 - k|)], u_1 a sum of multiples of independent cells

Laws of sums are found by Fourier transforms over a range that holds all but a negligible part of the mass. Other cells (grids, general
blocks), and laws too wide for a transform, have no figure here.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.shapes import Shape
from holdfast.laws.families import Gaussian, L1Laplace, Rounded
from holdfast.laws.moments import free_laplace_variance
from holdfast.laws.target import Target

Floats = NDArray[np.float64]

MAX_POINTS = 1 << 21
"""Largest size of a transform: a tenth of a second."""


def cell_probabilities(target: Target, shape: Shape) -> Floats | None:
    """P[z = -r], ..., P[z = r] of a cell of a block of this shape, for an r beyond which it hardly goes; None where there is no figure."""
    if isinstance(target, Rounded) and shape.is_network and not shape.is_free:
        return _rounded_law(tuple(shape.axes), float(target.epsilon))
    if not isinstance(target, L1Laplace | Gaussian | Rounded) or not (shape.is_free or shape.is_one_sum):
        return None
    reach = _reach(target, 1)
    if 2 * reach >= MAX_POINTS:
        return None
    own = _weights(target, np.arange(-reach, reach + 1))
    if shape.is_free:
        return np.asarray(own / own.sum())
    points = 1 << (2 * _reach(target, shape.size)).bit_length()
    if points > MAX_POINTS:
        return None
    wrapped = np.zeros(points)
    places = np.arange(-points // 2, points // 2)
    wrapped[places] = _weights(target, places)
    others = np.fft.irfft(np.fft.rfft(wrapped / wrapped.sum()) ** (shape.size - 1), points)
    joint = own * np.maximum(others[np.arange(-reach, reach + 1)], 0.0)
    return np.asarray(joint / joint.sum())


def _reach(target: L1Laplace | Gaussian | Rounded, cells: int) -> int:
    """Beyond which a sum of so many cells has a probability below 1e-16: twelve standard deviations, and a Laplace tail."""
    if isinstance(target, Gaussian):
        return math.ceil(12 * math.sqrt(cells * float(target.sigma_squared))) + 2
    return math.ceil(12 * math.sqrt(cells * free_laplace_variance(target.epsilon)) + 40 / float(target.epsilon)) + 2


def _weights(target: L1Laplace | Gaussian | Rounded, k: NDArray[np.int64]) -> Floats:
    if isinstance(target, Gaussian):
        return np.exp(-(k.astype(np.float64) ** 2) / (2 * float(target.sigma_squared)))
    return np.exp(-float(target.epsilon) * np.abs(k))


@lru_cache(maxsize=8)
def _rounded_law(axes: tuple[int, ...], epsilon: float) -> Floats | None:
    """Law of a cell that goes to the floor or the ceiling of its projection. N u_1 is an integer, N the number of cells."""
    cells = math.prod(axes)
    spread = 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2
    reach = math.ceil(12 * math.sqrt(spread) + 40 / epsilon) + 2
    points = 2 * reach * cells
    if points > MAX_POINTS:
        return None
    turns = np.arange(points // 2 + 1)
    log_phi = np.zeros(len(turns))
    for elsewhere in itertools.product((False, True), repeat=len(axes)):
        multiple = math.prod(-1 if away else n - 1 for n, away in zip(axes, elsewhere, strict=True))
        count = math.prod(n - 1 if away else 1 for n, away in zip(axes, elsewhere, strict=True))
        half = np.pi * (multiple * turns % points) / points
        log_phi -= count * np.log1p(2 * spread * np.sin(half) ** 2)
    law = np.fft.irfft(np.exp(log_phi), points)  # of N u_1, wrapped around: place s is N u_1 = s
    table = np.roll(law, points // 2).reshape(2 * reach, cells)  # row j, place r: N u_1 = (j - reach) N + r
    above = np.arange(cells) / cells
    stay, rise = table @ (1 - above), table @ above
    made = np.maximum(np.concatenate((stay, [0.0])) + np.concatenate(([0.0], rise)), 0.0)
    found = np.asarray(made / made.sum())
    found.flags.writeable = False  # it is kept
    return found
