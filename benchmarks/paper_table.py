"""The 2 x 23 table of [GM20], with its kept sums and proposal index set: simulated by its authors, so public."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.samplers.bounded_block import BoundedBlock

WOMEN = (8, 6, 3, 6, 4, 4, 4, 8, 5, 7, 7, 6, 1, 5, 4, 4, 9, 6, 2, 8, 8, 8, 7)
MEN = (3, 4, 5, 8, 6, 4, 5, 5, 5, 6, 10, 7, 3, 2, 5, 11, 6, 4, 7, 4, 5, 3, 8)
TABLE = np.array(WOMEN + MEN, dtype=np.int64)
MINORS, AGES = 4, 23


def sexes_and_ages(minors: int, adults: int) -> NDArray[np.int64]:
    """Total, women and adults of a table of two sexes by ages, women first."""
    ages = minors + adults
    women = np.arange(2 * ages) < ages
    grown = np.arange(2 * ages) % ages >= minors
    return np.array([np.ones(2 * ages), women, grown], dtype=np.int64)


BLOCK = BoundedBlock.plain(sexes_and_ages(MINORS, AGES - MINORS))
"""Total, women, adults kept; no count below zero."""
SOLVED = (0, 22, 45)
"""All cells but the paper's proposal index set {2, ..., 22, 24, ..., 45}, counted from 1."""


def class_moves() -> NDArray[np.int64]:
    """Moves for a chain on the table: all pairs inside the four classes, and for each adult age one square through all four.

    They connect all tables >= 0 with these sums: pairs move counts inside a class to wherever a square takes one away.
    """
    cells = np.arange(2 * AGES).reshape(2, AGES)
    out = []
    for members in (cells[0, :MINORS], cells[0, MINORS:], cells[1, :MINORS], cells[1, MINORS:]):
        for i, first in enumerate(members):
            for second in members[i + 1 :]:
                out.append(_move({first: 1, second: -1}))
    for age in range(AGES - MINORS):
        adult, minor = MINORS + age, age % MINORS
        out.append(_move({cells[0, adult]: 1, cells[0, minor]: -1, cells[1, adult]: -1, cells[1, minor]: 1}))
    return np.array(out)


def _move(entries: dict[int, int]) -> NDArray[np.int64]:
    z = np.zeros(2 * AGES, dtype=np.int64)
    for cell, value in entries.items():
        z[cell] = value
    return z
