"""The lattices on which laws are enumerated in full."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import holdfast as hf
from holdfast.lattices import Lattice
from holdfast.laws import Gaussian


def one_sum(cells: int) -> Lattice:
    return Lattice(np.ones((1, cells), dtype=np.int64))


def margins(rows: int, columns: int) -> Lattice:
    """Row and column sums of a two-way table; the rows of the matrix are dependent."""
    cells = np.arange(rows * columns).reshape(rows, columns)
    matrix = np.zeros((rows + columns, rows * columns), dtype=np.int64)
    for i in range(rows):
        matrix[i, cells[i]] = 1
    for j in range(columns):
        matrix[rows + j, cells[:, j]] = 1
    return Lattice(matrix)


def overlapping() -> Lattice:
    """Three overlapping sets over the seven regions of their Venn diagram, one cell each."""
    regions = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)][1:]
    return Lattice(np.array(regions, dtype=np.int64).T)


def twos_and_threes() -> Lattice:
    return Lattice(np.array([[2, -3, 1, 0], [0, 1, 2, -3]]))


def free(cells: int) -> Lattice:
    return Lattice(np.zeros((0, cells), dtype=np.int64))


LATTICES = {
    "one sum, 3 cells": one_sum(3),
    "2 x 2": margins(2, 2),
    "2 x 3": margins(2, 3),
    "3 x 3": margins(3, 3),
    "three overlapping sets": overlapping(),
    "entries 2 and -3": twos_and_threes(),
    "no invariant": free(2),
}


def sigma_squared_of(mechanism: hf.GeneralizedGaussian, lattice: Lattice) -> Fraction:
    """What the mechanism draws on this lattice."""
    target = mechanism.law(lattice).target
    assert isinstance(target, Gaussian)
    return target.sigma_squared
