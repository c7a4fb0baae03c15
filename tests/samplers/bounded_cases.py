"""Small blocks with bounds, every table of their fibres, and their laws by enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from benchmarks.paper_table import sexes_and_ages
from holdfast.samplers.bounded_block import BoundedBlock
from holdfast.samplers.protocol import Ints

Point = tuple[int, ...]


def grid_sums(rows: int, columns: int) -> Ints:
    """Row sums and column sums of a two-way table, the last column's left out: it follows."""
    cells = np.arange(rows * columns).reshape(rows, columns)
    kept = [cells[i] for i in range(rows)] + [cells[:, j] for j in range(columns - 1)]
    return np.array([np.isin(np.arange(cells.size), part) for part in kept], dtype=np.int64)


ONES = ((1, 1, 1, 1),)

CASES: dict[str, tuple[BoundedBlock, tuple[int, ...]]] = {
    "2 x 3 grid": (BoundedBlock.plain(grid_sums(2, 3)), (2, 0, 1, 1, 3, 0)),
    "one sum, upper bounds": (BoundedBlock.plain(ONES, 0, (3, 1, 4, 2)), (1, 0, 3, 2)),
    "facilities": (BoundedBlock((), (0, 0, 0), (None,) * 3, ((1, 1, 1), (-1, -1, -1)), (2, -7)), (1, 0, 4)),
    "binary table": (BoundedBlock.plain(grid_sums(2, 3), 0, 1), (1, 0, 1, 0, 1, 0)),
    "sexes and ages": (BoundedBlock.plain(sexes_and_ages(2, 2)), (1, 0, 2, 1, 0, 3, 1, 0)),
    "people and households": (
        BoundedBlock(((1, 1, 1, 0, 0),), (0,) * 5, (None,) * 3 + (4, 4), ((1, 1, 0, -1, -1),), (0,)),
        (2, 1, 2, 1, 1),
    ),
    "signs and coefficients": (BoundedBlock.plain([[1, 1, -1, 2]], -2, 3), (0, 1, 2, -1)),
}
"""Blocks with a table each; all fibres are finite."""


def fibre(block: BoundedBlock, table: Point) -> list[Point]:
    """Every table with the same kept sums within the bounds, cell by cell: what the cells left cannot bring back is dropped."""
    most = sum(abs(v) for v in table) + sum(abs(b) for b in block.lower if b is not None) + sum(map(abs, block.floors)) + 1
    rows = np.concatenate([block.kept_matrix, -block.kept_matrix, block.cuts])  # all of them at least so much
    floors = np.concatenate([rows[: -len(block.cuts) or None] @ np.array(table), np.array(block.floors, dtype=np.int64)])
    ranges = [
        np.arange(-most if low is None else low, (most if high is None else high) + 1)
        for low, high in zip(block.lower, block.upper, strict=True)
    ]
    gain = np.stack([np.maximum(rows[:, i] * r[0], rows[:, i] * r[-1]) for i, r in enumerate(ranges)], axis=1)
    found = np.zeros((1, 0), dtype=np.int64)
    for i, values in enumerate(ranges):
        found = np.concatenate([np.repeat(found, len(values), axis=0), np.tile(values, len(found))[:, None]], axis=1)
        reached = found @ rows[:, : i + 1].T + gain[:, i + 1 :].sum(axis=1)
        found = found[(reached >= floors).all(axis=1)]
    return [tuple(row) for row in found.tolist()]


def law(block: BoundedBlock, table: Point, epsilon: Fraction) -> dict[Point, float]:
    """P[y] of every table of the fibre, nearest to x first."""
    distance = {y: sum(abs(a - b) for a, b in zip(y, table, strict=True)) for y in fibre(block, table)}
    weights = {y: math.exp(-float(epsilon) * distance[y]) for y in sorted(distance, key=lambda y: (distance[y], y))}
    total = math.fsum(weights.values())
    return {y: weight / total for y, weight in weights.items()}
