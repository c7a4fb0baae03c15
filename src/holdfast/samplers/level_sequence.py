"""The order in which a product of hierarchies is drawn: level vector by level vector, coarse before fine, unit by unit, cell by cell.

Legend and formulas: [theory R20] (d). For a free level vector s and a unit of its parents the children form a small grid, whose sums along
axis k stand in m_(s - e_k), which is known before. A cell's variance is sigma_squared prod_(k not in S) n_k prod_(k in S) F_k, and its
centre N / D after the last axis. After a cell of value z, S_k -= D_(k-1) z - N_(k-1). All are integers. Where a child is the last of its
siblings the centre is an integer, and the cell is forced.

Gaussian noise and rounded projection walk through this sequence alike; they differ in what is put at a centre, and in the sums that are
kept: zero for Gaussian noise, minus the sums of the Laplace noise for rounded projection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from math import ceil, prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.shapes.levels import Levels, LevelVector
from holdfast.lattices.trees import Tree

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Table: TypeAlias = NDArray[Any]


class OpenCell(NamedTuple):
    """A cell that is not forced, as the walk comes to it."""

    stage: Stage
    place: tuple[int, ...]
    """Its unit on each axis of the stage."""
    centre: Fraction
    share: Fraction
    """Its variance in units of sigma_squared."""
    step: int
    """Its class: the sum of the steps of its axes."""
    number: int = 0
    """Which one of its line it is."""
    length: int = 1
    """How many cells its line has."""


class Redraw(NamedTuple):
    """In place of a value: this cell and those before it on its line, so many in all, are drawn anew."""

    cells: int


Choose: TypeAlias = Callable[[OpenCell], int | Redraw]
"""What is put at a cell."""

STEPS = 4
"""Proposal laws are so many to a doubling of the variance."""
FINE_BITS = 10
"""Leading bits of the variances by which expected tries are bounded."""
_QUARTERS = np.array([2.0**-1, 2.0**-0.75, 2.0**-0.5, 2.0**-0.25])


class Weights:
    """How what is left of a parent is shared out among its children at one level of an axis: child c has w_c / W of it and a variance of
    w_c (W - w_c) / W, W the sum over the children not yet drawn, c included.

    Nodes are what compiled loops read: one for each unit, or, where all weights are 1, one for each number of children left.
    `rest` is 0 where w / W is known as a double alone, `ratio`.
    """

    exact: Sequence[Fraction] | Ints

    def __init__(self, w: Ints, starts: Ints) -> None:
        counts, alike = np.diff(starts), bool((w == 1).all())
        self.starts, self.exact = starts, np.broadcast_to(np.int64(1), w.shape) if alike else w
        self.longest = int(counts.max()) if alike else 0
        """Where nodes go by the number of children left: the most there are."""
        if self.longest:
            heavy, rest = np.ones(self.longest, dtype=np.int64), np.arange(self.longest, 0, -1)
        else:
            ends = np.repeat(np.cumsum(w)[starts[1:] - 1], np.diff(starts))
            heavy, rest = w, ends - np.cumsum(w) + w
        self.largest = int(rest.max())
        self.heavy, self.rest = heavy.astype(np.int32), rest.astype(np.int32)
        self._set(heavy * (rest - heavy) / rest, np.zeros(0))

    @classmethod
    def real(cls, w: Floats, exact: Sequence[Fraction], starts: Ints) -> Weights:
        """For weights that are no small integers."""
        out = cls.__new__(cls)
        out.starts, out.exact, out.longest, out.largest = starts, exact, 0, 1
        out.heavy = out.rest = np.zeros(len(w), dtype=np.int32)
        rest, later = w.copy(), np.zeros(len(w))
        for back in range(2, int(np.diff(starts).max()) + 1):  # positive terms alone: no error but that of so many sums
            child = starts[1:][np.diff(starts) >= back] - back
            later[child] = rest[child + 1]
            rest[child] += later[child]
        out._set(w * (later / rest), w / rest)
        return out

    def _set(self, share: Floats, ratio: Floats) -> None:
        self.share, self.ratio = share, ratio
        self.step = steps_above(np.where(share > 0, share, 1.0)).astype(np.int16)

    @property
    def is_exact(self) -> bool:
        return not len(self.ratio)

    def between(self, begin: int, end: int) -> list[Fraction]:
        """The weights of some units, exactly."""
        return [w if isinstance(w, Fraction) else Fraction(int(w)) for w in self.exact[begin:end]]

    def node(self, family: int, child: int) -> int:
        """The node of a child of a unit."""
        begin, end = self.starts[family : family + 2].tolist()
        return int(self.longest - (end - begin) + child if self.longest else begin + child)

    @cached_property
    def shares(self) -> tuple[Floats, Ints]:
        """(shares of children that are not the last ones of their parent, how many have each)."""
        if not self.longest:
            found = self.share[np.delete(np.arange(len(self.share)), self.starts[1:] - 1)]
            return found, np.ones(len(found), dtype=np.int64)
        families = np.bincount(np.diff(self.starts), minlength=self.longest + 1)
        return self.share[:-1], families[::-1].cumsum()[:-2]  # so many have that number of children or more

    @cached_property
    def least(self) -> tuple[Fraction, int]:
        """(the smallest share of a child that is not the last one of its parent, how many have it), as far as doubles tell shares apart;
        0 children where none is.
        """
        shares, counts = self.shares
        if not len(shares):
            return Fraction(1), 0
        near = np.flatnonzero(shares <= shares.min() * (1 + 2.0**-45))
        if self.longest:
            w, W = 1, 2  # the last one but one
        elif self.is_exact:
            node = int(np.delete(np.arange(len(self.share)), self.starts[1:] - 1)[near[0]])
            w, W = int(self.heavy[node]), int(self.rest[node])
        else:
            return Fraction(float(shares.min())), int(counts[near].sum())
        return Fraction(w * (W - w), W), int(counts[near].sum())

    @cached_property
    def by_child(self) -> tuple[Floats, Floats]:
        """(w / W, share) of every child, in doubles; the last one of its parent has a share of 0."""
        if not self.longest:
            return (self.ratio if len(self.ratio) else self.heavy / self.rest), self.share
        return 1 / self.children_left, (self.children_left - 1) / self.children_left

    @property
    def children_left(self) -> Ints:
        """For every child, how many children of its parent are not drawn before it."""
        return np.repeat(self.starts[1:], np.diff(self.starts)) - np.arange(self.starts[-1])

    def innovations(self, m: Table, axis: int) -> Table:
        """m less what is expected of it given what its parent has left, along an axis."""
        counts = np.diff(self.starts)
        m = np.moveaxis(m, axis, -1)
        sums = np.concatenate([np.zeros((*m.shape[:-1], 1)), np.cumsum(m, axis=-1)], axis=-1)
        left = sums[..., np.repeat(self.starts[1:], counts)] - sums[..., :-1]
        return np.moveaxis(m - self.by_child[0] * left, -1, axis)

    @property
    def free(self) -> int:
        """How many children are not the last ones of their parent."""
        return int(self.starts[-1]) - len(self.starts) + 1


@dataclass(frozen=True, eq=False)
class Stage:
    """One free level vector: its axes with a level above 0, in the order of the walk; what their shares are multiplied by; the weights
    along each of them.
    """

    vector: LevelVector
    axes: tuple[int, ...]
    base: Fraction
    weights: tuple[Weights, ...]


class Walk(NamedTuple):
    """What every walk of the compiled loops reads, and the room it takes: tables of level vectors above, N and S of the lines at hand, the
    unit (`box`) and the line (`place`) it is in.
    """

    stages: Ints
    along: Ints
    starts: Ints
    heavy: NDArray[np.int32]
    rest: NDArray[np.int32]
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
    along: Ints
    starts: Ints
    heavy: NDArray[np.int32]
    rest: NDArray[np.int32]
    share: Floats
    ratio: Floats
    step: NDArray[np.int16]
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
        box, place = np.zeros((axes, 5), dtype=np.int64), np.zeros(axes, dtype=np.int64)
        return Walk(self.stages, self.along, self.starts, self.heavy, self.rest, tables, N, S, zeros, self.offsets, box, place)


class LevelSequence:
    """The stages over some trees in order, coarse before fine, with the tables they need; nothing of a law is in it."""

    def __init__(self, trees: tuple[Tree, ...], stages: Sequence[Stage]) -> None:
        self.trees, self.stages = trees, tuple(stages)
        self.last = self.stages[-1].vector
        self.free_cells = sum(prod(w.free for w in stage.weights) for stage in self.stages)
        """Cells drawn for one table."""

    def table_shape(self, s: LevelVector) -> tuple[int, ...]:
        return tuple(tree.units(level) for tree, level in zip(self.trees, s, strict=True))

    @cached_property
    def _free(self) -> dict[LevelVector, Stage]:
        return {stage.vector: stage for stage in self.stages}

    def kept_vectors(self) -> list[LevelVector]:
        """The kept level vectors whose sums enter a stage."""
        return sorted({down for stage in self.stages for _, down in predecessors(stage)} - set(self._free))

    def sums(self, z: Table, s: LevelVector) -> Table:
        """The sums of a table at a level vector that is not finer than the last one."""
        out = z.reshape(self.table_shape(self.last))
        for axis, (tree, level, last) in enumerate(zip(self.trees, s, self.last, strict=True)):
            for above in range(last - 1, level - 1, -1):
                out = np.add.reduceat(out, tree.starts(above)[:-1], axis=axis)
        return out

    def innovations(self, z: Floats) -> Iterator[tuple[Floats, Floats]]:
        """(the innovations of a real table, their variances in units of `scale`), stage after stage: [theory R15] (c), axis by axis. Lines
        of a stage are on the last axis; what is forced has a variance of 0.
        """
        for stage in self.stages:
            m, share = self.sums(z, stage.vector), np.array(float(stage.base))
            for axis, w in zip(stage.axes, stage.weights, strict=True):
                m = w.innovations(m, axis)
            for w in (w for _, w in sorted(zip(stage.axes, stage.weights, strict=True), key=lambda pair: pair[0])):
                share = np.multiply.outer(share, w.by_child[1])
            last = stage.axes[-1] if stage.axes else -1
            yield np.moveaxis(m, last, -1), np.moveaxis(share.reshape(m.shape), last, -1)

    # ---- the obvious form, on Python's integers and fractions

    def walk(self, kept: Mapping[LevelVector, Table], choose: Choose) -> list[int]:
        """All cells of the table, by recursion over axes; `kept` has the sums of every vector of `kept_vectors`."""
        tables: dict[LevelVector, Table] = dict(kept)
        for stage in self.stages:
            tables[stage.vector] = self._stage(stage, tables, choose)
        return [int(value) for value in tables[self.last].ravel()]

    def _stage(self, stage: Stage, tables: Mapping[LevelVector, Table], choose: Choose) -> Table:
        out = np.zeros(self.table_shape(stage.vector), dtype=object)
        start = OpenCell(stage, (), Fraction(0), stage.base, int(steps_above(np.float64(stage.base))))
        order = [*stage.axes, *(k for k in range(len(self.trees)) if k not in stage.axes)]
        for families in product(*(range(len(w.starts) - 1) for w in stage.weights)):
            children = [slice(None)] * len(order)
            for k, w, family in zip(stage.axes, stage.weights, families, strict=True):
                children[k] = slice(*w.starts[family : family + 2].tolist())
            grid = tuple(children[k].stop - children[k].start for k in stage.axes)
            sums = []
            for i, (k, down) in enumerate(predecessors(stage)):
                place = [*children[:k], slice(families[i], families[i] + 1), *children[k + 1 :]]
                sums.append(tables[down][tuple(place)].transpose(order).reshape(grid[:i] + grid[i + 1 :]))
            if grid:
                drawn = _grid(np.full(grid, Fraction(0)), sums, stage.weights, families, start, choose)
            else:
                drawn = np.array(choose(start), dtype=object)
            shape = [out[tuple(children)].shape[k] for k in order]
            out[tuple(children)] = drawn.reshape(shape).transpose(np.argsort(order))
        return out

    # ---- arrays for compiled loops

    @cached_property
    def arrays(self) -> Arrays:
        parts: list[Weights] = []
        nodes: dict[int, tuple[int, int]] = {}
        node_at = start_at = 0
        for stage in self.stages:
            for w in stage.weights or (ALONE,):
                if id(w) not in nodes:
                    nodes[id(w)] = node_at, start_at
                    parts.append(w)
                    node_at, start_at = node_at + len(w.share), start_at + len(w.starts)
        table_at: dict[LevelVector, tuple[int, int]] = {}
        at = 0
        for s in sorted({*self.kept_vectors(), *self._free} - {self.last}):
            table_at[s] = at, max(prod(self.table_shape(s)), len(ALONE.share) if s in self._free and not self._free[s].axes else 1)
            at += table_at[s][1]
        nothing, at = at, at + 1  # a sum of zero, for what has no axes
        most = max(1, *(len(stage.axes) for stage in self.stages))
        heads, along = np.zeros((len(self.stages), 5), dtype=np.int64), np.zeros((len(self.stages), most, 6 + most), dtype=np.int64)
        offsets, longest = np.zeros(max(most - 1, 1), dtype=np.int64), 1
        for head, rows, stage in zip(heads, along, self.stages, strict=True):
            s, weights = stage.vector, stage.weights or (ALONE,)
            families = [len(w.starts) - 1 for w in weights]
            table = -1 if s == self.last else table_at[s][0]
            head[:4] = len(weights), table, prod(families), int(steps_above(np.float64(stage.base)))
            own = self._strides(s)
            for i, w in enumerate(weights):
                rows[i, :4] = *nodes[id(w)], families[i], w.longest
                rows[i, 5] = 1
                rows[i, 4] = nothing
            for i, (k, down) in enumerate(predecessors(stage)):
                strides = self._strides(down)
                rows[i, 4:6] = table_at[down][0], own[k]
                rows[i, 6 : 6 + len(stage.axes)] = [strides[a] for a in stage.axes]
            lengths = [int(np.diff(w.starts).max()) for w in weights]
            longest = max(longest, lengths[-1])
            sizes = [prod(lengths[i + 1 :]) for i in range(len(lengths) - 1)]
            offsets[: len(sizes)] = np.maximum(offsets[: len(sizes)], sizes)
        ends = np.cumsum(offsets)
        offsets = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        starts, heavy, rest, share, step = (np.concatenate([getattr(w, name) for w in parts]) for name in _NODES)
        ratio = np.concatenate([np.zeros(len(w.share)) if w.is_exact else w.ratio for w in parts]) if not self.is_exact else np.zeros(0)
        return Arrays(heads, along, starts, heavy, rest, share, ratio, step, table_at, at, offsets, int(ends[-1]), longest)

    def _strides(self, s: LevelVector) -> dict[int, int]:
        """Return the stride of each axis in the table of a level vector, whose order is that of its stage."""
        found = self._free.get(s)
        order = found.axes if found else range(len(s))
        shape = self.table_shape(s)
        out, stride = dict.fromkeys(range(len(s)), 0), 1
        for k in reversed(order):
            out[k] = stride
            stride *= shape[k]
        return out

    @property
    def is_exact(self) -> bool:
        """Whether all centres come from integers alone."""
        return all(w.is_exact for stage in self.stages for w in stage.weights)

    @cached_property
    def largest_scale(self) -> int:
        """The largest D W of a cell: the product over the axes of the largest weight of a family."""
        return max(prod(w.largest for w in stage.weights) for stage in self.stages)

    def places_under(self, s: LevelVector) -> int:
        """The most places under one sum at a level vector."""
        return prod(int(tree.sizes(level).max()) for tree, level in zip(self.trees, s, strict=True))

    @cached_property
    def line_cells(self) -> int:
        """The most places under a sum along an axis: |a|^2 of the longest linear form that is held, divided by its D."""
        return max(self.places_under(down) for stage in self.stages for _, down in predecessors(stage))

    def variance_counts(self) -> dict[int, int]:
        """{class: cells drawn in it for one table}: a cell of class c has a variance of at most 2^(c / STEPS)."""
        total: Counter[int] = Counter()
        for stage in self.stages:
            found = Counter({int(steps_above(np.float64(stage.base))): 1})
            for w in stage.weights:
                steps, counts = w.shares
                distinct, which = np.unique(steps_above(steps), return_inverse=True)
                times = np.bincount(which, weights=counts, minlength=len(distinct)).astype(np.int64)
                before, found = found, Counter()
                for (a, m), (b, n) in product(before.items(), zip(distinct.tolist(), times.tolist(), strict=True)):
                    found[a + b] += m * n
            total += found
        return dict(total)

    @cached_property
    def variance_floors(self) -> tuple[Floats, Floats]:
        """(lower bounds of the variances of the cells drawn for one table, how many cells have each)."""
        values, counts = zip(*(floors(stage.base, [w.shares for w in stage.weights]) for stage in self.stages), strict=True)
        return np.concatenate(values), np.concatenate(counts)

    @cached_property
    def lines(self) -> tuple[tuple[Fraction, tuple[int, ...]] | None, ...]:
        """For every stage (the smallest variance of a cell but for the sum of its line on the last axis, the numbers of cells of such
        lines) where cells of lines have equal weights and none has two, else (the smallest variance of a cell, ()); None where no cell is
        drawn.
        """
        found: list[tuple[Fraction, tuple[int, ...]] | None] = []
        for stage in self.stages:
            parts, last = [w.least for w in stage.weights], stage.weights[-1] if stage.weights else ALONE
            sizes = tuple(n for n in np.unique(np.diff(last.starts)).tolist() if n > 1) if last.longest > 2 else ()
            sizes = () if 2 in sizes else sizes
            share = prod((share for share, _ in parts[: len(parts) - bool(sizes)]), start=stage.base)
            found.append((share, sizes) if all(n for _, n in parts) else None)
        return tuple(found)

    @cached_property
    def least(self) -> tuple[Fraction, int, LevelVector]:
        """(the smallest variance in units of `scale`, how many cells drawn for one table have it, whose sums they are)."""
        found = []
        for stage in self.stages:
            parts = [w.least for w in stage.weights]
            if times := prod(n for _, n in parts):
                found.append((prod((share for share, _ in parts), start=stage.base), times, stage.vector))
        share, _, vector = min(found)
        return share, sum(times for other, times, _ in found if other == share), vector


_NODES = ("starts", "heavy", "rest", "share", "step")


def predecessors(stage: Stage) -> list[tuple[int, LevelVector]]:
    """(k, s - e_k) for every axis of the stage: where its sums along axis k stand."""
    s = stage.vector
    return [(k, (*s[:k], s[k] - 1, *s[k + 1 :])) for k in stage.axes]


def _grid(mean: Table, sums: list[Any], weights: Sequence[Weights], families: Sequence[int], cell: OpenCell, choose: Choose) -> Table:
    """A grid with these sums along each axis, slice after slice of the first axis: the rest of a sum, beyond what `mean` expects there, is
    shared out by weight; inside a slice the same is done on one axis less.
    """
    first, end = weights[0].starts[families[0] : families[0] + 2].tolist()
    own = weights[0].between(first, end)
    out = np.zeros(mean.shape, dtype=object)
    left: Any = sums[0] - mean.sum(axis=0)
    W, i, before = sum(own, Fraction(0)), 0, []
    while i < len(own):
        w = own[i]
        before.append((left, W))
        centre = mean[i] + left * (w / W)
        step = int(weights[0].step[weights[0].node(families[0], i)]) if w < W else 0
        inner = OpenCell(cell.stage, (*cell.place, first + i), Fraction(0), cell.share * (w * (W - w) / W), cell.step + step)
        if len(weights) > 1:
            out[i] = _grid(np.asarray(centre, dtype=object), [along[i] for along in sums[1:]], weights[1:], families[1:], inner, choose)
        elif inner.share == 0:
            assert Fraction(centre).denominator == 1
            out[i] = int(centre)
        else:
            value = choose(inner._replace(centre=Fraction(centre), number=i, length=len(own)))
            if isinstance(value, Redraw):
                i -= value.cells - 1
                left, W = before[i]
                del before[i:]
                continue
            out[i] = value
        left = left - (out[i] - mean[i])
        W -= w
        i += 1
    return out


def steps_above(share: Any) -> Any:
    """The least whole e, or one more at the very border, with share <= 2^(e / STEPS); the same on every machine."""
    mantissa, exponent = np.frexp(share)
    return (STEPS * exponent.astype(np.int64) - STEPS + np.searchsorted(_QUARTERS, mantissa)).astype(np.int64)


def step_bound(e: int) -> Fraction:
    """A fraction of few bits, 2^(e / STEPS) or slightly more."""
    whole, quarter = divmod(e, STEPS)
    return Fraction(ceil(2 ** (quarter / STEPS) * 64), 64) * Fraction(2) ** whole


ALONE = Weights(np.ones(2, dtype=np.int64), np.array([0, 2]))
"""A number that is in no sum: it has a sibling that takes it back, in a place that is not read."""
ALONE.longest, ALONE.share[0], ALONE.step[0] = 0, 1.0, 0


def floors(base: Fraction, axes: Iterable[tuple[Floats, NDArray[Any]]]) -> tuple[Floats, Floats]:
    """(lower bounds of the products of `base` and a share of every axis, how many cells have each)."""
    low, times = np.array([float(base)]), np.ones(1)
    for shares, counts in axes:
        own, count = _gather(shares, counts)
        low, times = _gather(np.multiply.outer(low, own).ravel(), np.multiply.outer(times, count).ravel())
    return low, times


def _gather(values: Floats, counts: NDArray[Any]) -> tuple[Floats, Floats]:
    """(values rounded down to a few leading bits, each once; how many there are of each)."""
    mantissa, exponent = np.frexp(values)
    distinct, which = np.unique(np.ldexp(np.floor(np.ldexp(mantissa, FINE_BITS)), exponent - FINE_BITS), return_inverse=True)
    return distinct, np.bincount(which, weights=counts).astype(np.float64)


@lru_cache(maxsize=64)
def sequence_of(shape: Levels) -> LevelSequence:
    """Return the sequence of a product of hierarchies: a child has the weight of its places. Samplers of one shape share it."""
    weights = lru_cache(None)(lambda k, level: Weights(shape.trees[k].sizes(level), shape.trees[k].starts(level - 1)))
    stages = []
    for s in shape.free():
        axes = tuple(k for k, level in enumerate(s) if level)
        outside = prod(n for k, n in enumerate(shape.axes) if k not in axes)
        stages.append(Stage(s, axes, Fraction(outside), tuple(weights(k, s[k]) for k in axes)))
    return LevelSequence(shape.trees, stages)
