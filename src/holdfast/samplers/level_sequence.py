"""The order in which a product of hierarchies is drawn: level vector by level vector, coarse before fine, unit by unit, cell by cell.

Legend and formulas: [theory R20] (d). For a free level vector s and a unit of its parents the children form a small grid, whose sums along
axis k stand in m_(s - e_k), which is known before. A cell's variance is sigma_squared prod_(k not in S) n_k prod_(k in S) F_k, and its
centre N / D after the last axis. After a cell of value z, S_k -= D_(k-1) z - N_(k-1). All are integers. Where a child is the last of its
siblings the centre is an integer, and the cell is forced.

Gaussian noise and rounded projection walk through this sequence alike; they differ in what is put at a centre, and in the sums that are
kept: zero for Gaussian noise, minus the sums of the Laplace noise for rounded projection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from math import ceil, prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.shapes.levels import Levels, LevelVector

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Table: TypeAlias = NDArray[Any]


class OpenCell(NamedTuple):
    """A cell that is not forced, as the walk comes to it."""

    vector: LevelVector
    place: tuple[int, ...]
    """Its unit on each axis of the level vector with a level above 0."""
    centre: Fraction
    share: Fraction
    """Its variance in units of sigma_squared."""
    step: int
    """Its class: the sum of the steps of its axes."""


Choose: TypeAlias = Callable[[OpenCell], int]
"""What is put at a cell."""

STEPS = 4
"""Proposal laws are so many to a doubling of the variance."""
FINE_STEPS = 16
_QUARTERS = np.array([2.0**-1, 2.0**-0.75, 2.0**-0.5, 2.0**-0.25])


@dataclass(frozen=True)
class Stage:
    """One free level vector: the axes with a level above 0, and what the others multiply the variance by."""

    vector: LevelVector
    axes: tuple[int, ...]
    outside: int


class Walk(NamedTuple):
    """What every walk of the compiled loops reads, and the room it takes: tables of level vectors above, N and S of the lines at hand, the
    unit (`box`) and the line (`place`) it is in.
    """

    stages: Ints
    starts: Ints
    heavy: Ints
    rest: Ints
    tables: Ints
    N: Ints
    S: Ints
    zeros: Ints
    offsets: Ints
    box: Ints
    place: Ints


@dataclass(frozen=True, eq=False)
class Arrays:
    """The sequence as arrays for compiled loops; see _levels_compiled.py for the columns."""

    stages: Ints
    starts: Ints
    heavy: Ints
    rest: Ints
    share: Floats
    floor: Floats
    step: Ints
    table_at: Mapping[LevelVector, tuple[int, int]]
    """Where each table that is not the last lies, and its length."""
    table_cells: int
    offsets: Ints
    buffer: int
    longest: int

    def walk(self) -> Walk:
        """With room of its own, tables of zeros."""
        axes = len(self.offsets) + 1
        tables, N, S, zeros = (np.zeros(n, dtype=np.int64) for n in (self.table_cells, self.buffer, self.buffer, self.longest))
        box, place = np.zeros((axes, 4), dtype=np.int64), np.zeros(axes, dtype=np.int64)
        return Walk(self.stages, self.starts, self.heavy, self.rest, tables, N, S, zeros, self.offsets, box, place)


class LevelSequence:
    """The stages of a shape in order, with the tables they need; nothing of a law is in it."""

    def __init__(self, shape: Levels) -> None:
        self.shape = shape
        self.last = shape.depths
        places = shape.axes
        self.stages = tuple(
            Stage(s, axes := tuple(k for k, level in enumerate(s) if level), prod(n for k, n in enumerate(places) if k not in axes))
            for s in shape.free()
        )

    @property
    def free_cells(self) -> int:
        """Cells drawn for one table: its dimension."""
        return self.shape.dimension

    def table_shape(self, s: LevelVector) -> tuple[int, ...]:
        return tuple(tree.units(level) for tree, level in zip(self.shape.trees, s, strict=True))

    def kept_vectors(self) -> list[LevelVector]:
        """The kept level vectors whose sums enter a stage."""
        return sorted({down for stage in self.stages for _, down in predecessors(stage) if self.shape.is_kept(down)})

    # ---- the obvious form, on Python's integers and fractions

    def walk(self, kept: Mapping[LevelVector, Table], choose: Choose) -> list[int]:
        """All cells of the table, by recursion over axes; `kept` has the sums of every vector of `kept_vectors`."""
        tables: dict[LevelVector, Table] = dict(kept)
        for stage in self.stages:
            tables[stage.vector] = self._stage(stage, tables, choose)
        return [int(value) for value in tables[self.last].ravel()]

    def _stage(self, stage: Stage, tables: Mapping[LevelVector, Table], choose: Choose) -> Table:
        out = np.zeros(self.table_shape(stage.vector), dtype=object)
        trees, s = self.shape.trees, stage.vector
        for unit in product(*(range(trees[k].units(s[k] - 1)) for k in stage.axes)):
            children: list[slice] = [slice(None)] * len(s)
            weights, firsts = [], []
            for k, parent in zip(stage.axes, unit, strict=True):
                begin, end = trees[k].starts(s[k] - 1)[parent : parent + 2].tolist()
                children[k] = slice(begin, end)
                weights.append(trees[k].sizes(s[k])[begin:end].tolist())
                firsts.append(begin)
            sums = []
            for (k, down), parent in zip(predecessors(stage), unit, strict=True):
                place: list[slice | int] = [0 if not level else chosen for level, chosen in zip(s, children, strict=True)]
                place[k] = parent
                sums.append(tables[down][tuple(place)])
            grid = tuple(len(own) for own in weights)
            start = OpenCell(s, (), Fraction(0), Fraction(stage.outside), int(steps_above(np.float64(stage.outside))))
            drawn = _grid(np.full(grid, Fraction(0)), sums, weights, firsts, start, choose)
            out[tuple(children)] = drawn.reshape(out[tuple(children)].shape)
        return out

    # ---- arrays for compiled loops

    @cached_property
    def arrays(self) -> Arrays:
        trees = self.shape.trees
        nodes: dict[tuple[int, int], tuple[int, int]] = {}
        parts: list[tuple[Ints, Ints]] = []
        starts: list[Ints] = []
        node_at = start_at = 0
        for k, tree in enumerate(trees):
            for level in range(1, tree.depth + 1):
                w = tree.sizes(level)
                begins = tree.starts(level - 1)
                ends = np.repeat(np.cumsum(w)[begins[1:] - 1], np.diff(begins))
                nodes[k, level] = node_at, start_at
                parts.append((w, ends - np.cumsum(w) + w))
                starts.append(begins)
                node_at, start_at = node_at + len(w), start_at + len(begins)
        heavy, rest = (np.concatenate([part[i] for part in parts]) for i in range(2))
        share = heavy * (rest - heavy) / rest
        needed = {down for stage in self.stages for _, down in predecessors(stage)} | {stage.vector for stage in self.stages}
        table_at: dict[LevelVector, tuple[int, int]] = {}
        at = 0
        for s in sorted(needed - {self.last}):
            table_at[s] = at, prod(self.table_shape(s))
            at += table_at[s][1]
        most = max(len(stage.axes) for stage in self.stages)
        rows = np.zeros((len(self.stages), 4 + 5 * most), dtype=np.int64)
        offsets, longest, buffer = np.zeros(max(most - 1, 1), dtype=np.int64), 1, 1
        for row, stage in zip(rows, self.stages, strict=True):
            s = stage.vector
            parents = [trees[k].units(s[k] - 1) for k in stage.axes]
            row[:4] = len(stage.axes), -1 if s == self.last else table_at[s][0], prod(parents), int(steps_above(np.float64(stage.outside)))
            for place, (k, down) in enumerate(predecessors(stage)):
                row[4 + 5 * place : 9 + 5 * place] = (*nodes[k, s[k]], parents[place], trees[k].units(s[k]), table_at[down][0])
            lengths = [max(trees[k].children[s[k] - 1]) for k in stage.axes]
            longest = max(longest, lengths[-1])
            sizes = [prod(lengths[i + 1 :]) for i in range(len(lengths) - 1)]
            offsets[: len(sizes)] = np.maximum(offsets[: len(sizes)], sizes)
        ends = np.cumsum(offsets)
        buffer = int(ends[-1])
        offsets = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        floor = floors(share)
        step = steps_above(np.where(share > 0, share, 1.0))
        return Arrays(rows, np.concatenate(starts), heavy, rest, share, floor, step, table_at, at, offsets, buffer, longest)

    @cached_property
    def largest_scale(self) -> int:
        """The largest D of a cell: the product over the axes of the largest weight of a family."""
        return max(prod(int(self.shape.trees[k].sizes(stage.vector[k] - 1).max()) for k in stage.axes) for stage in self.stages)

    @cached_property
    def line_cells(self) -> int:
        """The most places under a sum along an axis: |a|^2 of the longest linear form that is held, divided by its D."""
        longest = 1
        for stage in self.stages:
            own = [int(self.shape.trees[k].sizes(stage.vector[k]).max()) for k in stage.axes]
            above = [int(self.shape.trees[k].sizes(stage.vector[k] - 1).max()) for k in stage.axes]
            longest = max(longest, stage.outside * max(prod(own) // o * a for o, a in zip(own, above, strict=True)))
        return longest

    def variance_counts(self, steps: int = STEPS) -> dict[int, int]:
        """{class: cells drawn in it for one table}: a cell of class c has a variance of at most 2^(c / steps) sigma_squared.

        For other than STEPS, classes are lower bounds instead: the variance is at least 2^(c / steps) sigma_squared.
        """
        total: dict[int, int] = {}
        for stage in self.stages:
            outside = np.float64(stage.outside)
            found = {int(steps_above(outside) if steps == STEPS else np.floor(steps * np.log2(outside) * (1 - 1e-12))): 1}
            for k in stage.axes:
                found = _convolve(found, self._axis_counts(k, stage.vector[k], steps))
            for key, count in found.items():
                total[key] = total.get(key, 0) + count
        return total

    def _axis_counts(self, k: int, level: int, steps: int) -> dict[int, int]:
        tree = self.shape.trees[k]
        w, begins = tree.sizes(level), tree.starts(level - 1)
        rest = np.repeat(np.cumsum(w)[begins[1:] - 1], np.diff(begins)) - np.cumsum(w) + w
        share = (w * (rest - w) / rest)[rest > w]
        classes = steps_above(share) if steps == STEPS else np.floor(steps * np.log2(share) - 1e-9).astype(np.int64)
        keys, counts = np.unique(classes, return_counts=True)
        return dict(zip(keys.tolist(), counts.tolist(), strict=True))


def predecessors(stage: Stage) -> list[tuple[int, LevelVector]]:
    """(k, s - e_k) for every axis of the stage: where its sums along axis k stand."""
    s = stage.vector
    return [(k, (*s[:k], s[k] - 1, *s[k + 1 :])) for k in stage.axes]


def _grid(mean: Table, sums: list[Any], weights: list[list[int]], firsts: list[int], cell: OpenCell, choose: Choose) -> Table:
    """A grid with these sums along each axis, slice after slice of the first axis: the rest of a sum, beyond what `mean` expects there, is
    shared out by weight; inside a slice the same is done on one axis less.
    """
    own = weights[0]
    out = np.zeros(mean.shape, dtype=object)
    left: Any = sums[0] - mean.sum(axis=0)
    for i, w in enumerate(own):
        W = sum(own[i:])
        centre = mean[i] + left * Fraction(w, W)
        step = int(steps_above(np.float64(w * (W - w) / W))) if w < W else 0
        inner = OpenCell(cell.vector, (*cell.place, firsts[0] + i), Fraction(0), cell.share * Fraction(w * (W - w), W), cell.step + step)
        if len(weights) > 1:
            out[i] = _grid(np.asarray(centre, dtype=object), [along[i] for along in sums[1:]], weights[1:], firsts[1:], inner, choose)
        elif inner.share == 0:
            assert Fraction(centre).denominator == 1
            out[i] = int(centre)
        else:
            out[i] = choose(inner._replace(centre=Fraction(centre)))
        left = left - (out[i] - mean[i])
    return out


def steps_above(share: Any) -> Any:
    """The least whole e, or one more at the very border, with share <= 2^(e / STEPS); the same on every machine."""
    mantissa, exponent = np.frexp(share)
    return (STEPS * exponent.astype(np.int64) - STEPS + np.searchsorted(_QUARTERS, mantissa)).astype(np.int64)


def step_bound(e: int) -> Fraction:
    """A fraction of few bits, 2^(e / STEPS) or slightly more."""
    whole, quarter = divmod(e, STEPS)
    return Fraction(ceil(2 ** (quarter / STEPS) * 64), 64) * Fraction(2) ** whole


def floors(share: Floats) -> Floats:
    """A lower bound of each share, of few different values: 1 - 1/p, p a power of two, below one; else five bits."""
    missing, power = np.frexp(np.where(share < 1, 1 - share, 0.5))
    below_one = 1 - np.ldexp(1.0, np.where(missing == 0.5, power - 1, power))
    mantissa, exponent = np.frexp(share)
    return np.asarray(np.where(share < 1, np.minimum(below_one, share), np.ldexp(np.floor(mantissa * 32) / 32, exponent)))


@lru_cache(maxsize=64)
def sequence_of(shape: Levels) -> LevelSequence:
    """The sequence of a shape; samplers of one shape share it."""
    return LevelSequence(shape)


def _convolve(first: dict[int, int], second: dict[int, int]) -> dict[int, int]:
    out: dict[int, int] = {}
    for a, m in first.items():
        for b, n in second.items():
            out[a + b] = out.get(a + b, 0) + m * n
    return out
