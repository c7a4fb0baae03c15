"""What the loops of tree_gaussian.py read and write for one block, as named tuples of arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.trees import Tree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

STATE_SIZE = 11
"""Places in the state of _tree_compiled."""


class TreeUnits(NamedTuple):
    """The tree, level after level: how many children each unit has and where they begin; what is kept; s of every unit."""

    levels: int
    children: Ints
    children_at: Ints
    starts: Ints
    kept: NDArray[np.bool_]
    s_root: Floats
    s_units: Floats
    s_at: Ints
    s_leaf: Floats


class Margins(NamedTuple):
    """For each mask, its table among all margins of a unit: where it begins, its axes, and where the tables of its line sums begin."""

    order: Ints
    axes: Ints
    lens: Ints
    tails: Ints
    at: Ints
    size: Ints
    lines_at: Ints
    offsets: Ints


class Work(NamedTuple):
    """Work space: N and E of the module's text, for a unit and for what is left of its parent; margins, and where the walk stands."""

    N: Ints
    E: Ints
    NR: Ints
    ER: Ints
    place: Ints
    left: Ints
    tables: Ints
    rest: Floats
    rest_at: Ints
    width: Ints
    child: Ints
    number: Ints
    first_child: Ints


class Progress(NamedTuple):
    """Where a try stands, the sum of its log theta ratios and of their errors, and how exact the doubles are."""

    state: Ints
    sums: Floats
    sums_before: Floats
    error: float
    most: float


class TreeBlock:
    """All of it for one block. `s`: by level and mask, of every unit; of the leaves one number is enough."""

    def __init__(
        self,
        tree: Tree | None,
        axes: Sequence[int],
        kept: Sequence[frozenset[int]],
        s: Sequence[Mapping[int, Floats]],
        error: float,
        most: float,
    ) -> None:
        masks = 1 << len(axes)
        self.units = _units(tree, masks, kept, s)
        self.margins = _margins(axes)
        self.work = _work(tree, math.prod(axes), max(len(axes), 1), int(self.margins.size.sum()), masks)
        self.progress = Progress(np.zeros(STATE_SIZE, dtype=np.int64), np.zeros(2), np.zeros(2), error, most)

    def begin(self) -> None:
        """A new try."""
        for array in (*self.progress[:3], self.work.child, self.work.number, self.work.first_child):
            array[:] = 0
        self.progress.state[0] = -1  # before the root


def bits(mask: int) -> list[int]:
    """The axes of a mask."""
    return [k for k in range(mask.bit_length()) if mask >> k & 1]


def by_size(axes: int) -> list[int]:
    """All masks, each after those inside it."""
    return sorted(range(1 << axes), key=lambda mask: (mask.bit_count(), mask))


def _units(tree: Tree | None, masks: int, kept: Sequence[frozenset[int]], s: Sequence[Mapping[int, Floats]]) -> TreeUnits:
    levels = 0 if tree is None else tree.depth
    children = [] if tree is None else [np.array(counts, dtype=np.int64) for counts in tree.children]
    starts = [] if tree is None else [tree.starts(level)[:-1] for level in range(levels)]
    inner = [s[level][mask] for level in range(1, levels) for mask in range(masks)]
    ends = np.cumsum([0, 0, *(masks * len(s[level][0]) for level in range(1, levels)), 0])
    return TreeUnits(
        levels,
        _join(children),
        np.cumsum([0, *map(len, children)]),
        _join(starts),
        np.array([[mask in family for mask in range(masks)] for family in kept]),
        np.array([s[0][mask][0] for mask in range(masks)]),
        np.concatenate([*inner, np.zeros(1)]),
        ends,
        np.array([s[levels][mask][0] for mask in range(masks)]),
    )


def _margins(axes: Sequence[int]) -> Margins:
    numbers, most = range(1 << len(axes)), max(len(axes), 1)
    lens, tails, lines_at, offsets = (np.zeros((len(numbers), most), dtype=np.int64) for _ in range(4))
    sizes = np.array([math.prod(axes[k] for k in bits(mask)) for mask in numbers], dtype=np.int64)
    at = np.cumsum(sizes) - sizes
    for mask in numbers:
        own = bits(mask)
        for place, k in enumerate(own):
            lens[mask, place] = axes[k]
            tails[mask, place] = math.prod(axes[other] for other in own[place + 1 :])
            lines_at[mask, place] = at[mask & ~(1 << k)]
            offsets[mask, place] = tails[mask, :place].sum()
    order = np.array(by_size(len(axes)), dtype=np.int64)
    return Margins(order, np.array([mask.bit_count() for mask in numbers]), lens, tails, at, sizes, lines_at, offsets)


def _work(tree: Tree | None, unit_cells: int, axes: int, table: int, masks: int) -> Work:
    levels = 0 if tree is None else tree.depth
    width = np.array([1] if tree is None else [max(counts) for counts in tree.children], dtype=np.int64)
    rest_at = np.cumsum([0, *(width * masks).tolist()])
    N, E, NR, ER = (np.zeros(2 * unit_cells + 1, dtype=np.int64) for _ in range(4))
    child, number, first_child = (np.zeros(levels + 1, dtype=np.int64) for _ in range(3))
    place, left = np.zeros(axes, dtype=np.int64), np.ones(axes, dtype=np.int64)
    tables = np.zeros((levels + 1, table), dtype=np.int64)
    rest = np.zeros(int(rest_at[-1]) + 1)
    return Work(N, E, NR, ER, place, left, tables, rest, rest_at, width, child, number, first_child)


def _join(parts: list[Ints]) -> Ints:
    return np.concatenate([*parts, np.zeros(1, dtype=np.int64)])
