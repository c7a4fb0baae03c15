"""Laws on small lattices by enumeration, for the tests of rejection samplers; nothing of the samplers is used."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.algebra import kernel_basis, reduced_basis, to_numpy
from holdfast.testing import chi_square_p_value

VENN = np.array([[1, 0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 0, 1, 1], [0, 0, 1, 0, 1, 1, 1]])
"""Three overlapping sets, one cell for each of their seven regions."""
ODD = np.array([[2, -3, 1, 0], [0, 1, 2, -3]])
"""No choice of two columns has a determinant of 1 in size, though the lattice has index 1: pivots are not always integers."""


def margin_rows(shape: tuple[int, ...]) -> NDArray[np.int64]:
    """All sums along every axis of a grid, as rows; some follow from others."""
    cells = np.arange(np.prod(shape)).reshape(shape)
    rows = []
    for axis in range(len(shape)):
        for line in np.moveaxis(cells, axis, -1).reshape(-1, shape[axis]):
            rows.append(np.isin(cells.ravel(), line).astype(np.int64))
    return np.array(rows)


def points(rows: NDArray[np.int64], reach: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """The lattice's points with coordinates up to `reach` in a reduced basis, and which of them lie at the end of that range."""
    basis = to_numpy(reduced_basis(kernel_basis(rows)))
    line = np.arange(-reach, reach + 1)
    rest = np.zeros((1, 0), dtype=np.int64)
    for _ in range(basis.shape[1] - 1):
        rest = np.hstack([np.repeat(rest, len(line), axis=0), np.tile(line, len(rest))[:, None]])
    others: NDArray[np.int64] = (rest.astype(np.float64) @ basis[:, 1:].T.astype(np.float64)).astype(np.int64)
    at_end = (np.abs(rest) == reach).any(axis=1)
    for first in line:
        shifted: NDArray[np.int64] = others + int(first) * basis[:, 0]
        yield shifted, at_end | (abs(first) == reach)


def summary(z: NDArray[np.int64], epsilon: Fraction) -> NDArray[np.int64]:
    """What fits look at: the first cell, cut at the ends, and the sum of absolute values in steps of about 1 / (2 epsilon)."""
    step = max(1, int(1 / (2 * epsilon)))
    keys: NDArray[np.int64] = (np.clip(z[:, 0], -5, 5) + 5) * 64 + np.minimum(np.abs(z).sum(axis=1) // step, 63)
    return keys


def enumerated(rows: NDArray[np.int64], epsilon: Fraction, reach: int, *, norm: int = 1, slope: Fraction | None = None) -> dict[int, float]:
    """The law of `summary` under weights exp(-slope |z|_norm), slope being epsilon unless told (summaries keep the bins of epsilon)."""
    masses, end = np.zeros(11 * 64), 0.0
    for z, at_end in points(rows, reach):
        size = np.abs(z).sum(axis=1) if norm == 1 else np.sqrt((z * z).sum(axis=1))
        weights = np.exp(-float(epsilon if slope is None else slope) * size)
        masses += np.bincount(summary(z, epsilon), weights=weights, minlength=len(masses))
        end += float(weights[at_end].sum())
    assert end < 1e-5 * masses.sum(), f"enumerate further out than {reach}: {end / masses.sum()} lies at the end"
    return {key: mass / masses.sum() for key, mass in enumerate(masses.tolist()) if mass > 0}


def counted(z: NDArray[np.int64], epsilon: Fraction) -> Counter[int]:
    """How often each summary came."""
    return Counter(summary(z, epsilon).tolist())


def fit_of_sums(z: NDArray[np.int64], law: dict[int, float], epsilon: Fraction) -> float:
    """p-value of the sums of absolute values alone: few bins, so that a law one percent off is seen. Records nothing."""
    sums = [math.fsum(mass for key, mass in law.items() if key % 64 == place) for place in range(64)]
    return chi_square_p_value(np.bincount(summary(z, epsilon) % 64, minlength=64), sums, len(z))


class Listed:
    """In place of a law: gives what was listed, whatever the words."""

    expected_tries = 1.0

    def __init__(self, values: NDArray[np.int64]) -> None:
        self.values = values

    def draw(self, n: int, words: object) -> NDArray[np.int64]:
        assert n == self.values.size or n == len(self.values)
        return self.values


def vectors(cells: int, reach: int) -> NDArray[np.int64]:
    """All integer vectors of so many cells, entries up to `reach` in size."""
    return np.array(list(product(range(-reach, reach + 1), repeat=cells)), dtype=np.int64).reshape(-1, cells)


def coin_weights(last: int) -> list[Fraction]:
    """P[G = g] of the geometric law of ratio 1/2 for g < last, and P[G >= last] at the end."""
    return [Fraction(1, 2 ** (g + 1)) for g in range(last)] + [Fraction(1, 2**last)]


def normalised(weights: dict[tuple[int, ...], Fraction]) -> dict[tuple[int, ...], Fraction]:
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


class AlwaysHeads:
    """In place of the coin: an accept step that accepts everything."""

    def draw(self, n: int, words: object) -> NDArray[np.int64]:
        return np.full(n, 2**40)
