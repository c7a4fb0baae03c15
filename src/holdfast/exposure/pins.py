"""Which cells sums pin by their values: the least and the largest value of a cell over all tables of counts with these sums agree.

Cells with equal columns form a class. Of a class of several cells only a sum of 0 pins anything. Three ways, the first that applies:

(a) Frechet's bounds, where the sums are partitions that can be taken off one by one as ears;
(b) a network, where the sums are two laminar families: one table decides all cells, by strong components and bridges;
(c) linear programmes in integers, with a search for whole tables after them, as far as the stated work goes.

[theory R26] has the proofs. The answer is a function of the sums alone: no floating point, no clock, no table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import ContradictingTotals
from holdfast.exposure.membership import RowSet, equal_columns
from holdfast.exposure.programmes import Work, programme_bounds
from holdfast.invariants.rows import LinearRows, RowFamily, Rows
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.tables.cells import rank_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Found: TypeAlias = tuple[Ints, Ints, Bools]
"""(at least, at most, not decided) of every class or cell."""

RULE = 1
"""Version of the rule: which cells are decided is a function of the rows and their sums under one version of it."""
MOST_PAIRS = 50_000_000
"""Pairs of sums with a common class, up to which two laminar families are looked for."""
MOST_SETS = 10_000_000
"""Linear rows times cells, up to which rows with equal coefficients are taken as sets."""
MOST_FLOW = 2**31 - 1
"""Largest sum for which the network is used: SciPy counts flow in 32 bits."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of counts that are 0 or more."""

    cells: int
    families: Sequence[tuple[Ints, Ints]] = ()
    """Disjoint sets: the number of each cell's set, -1 for none; the sum of each set."""
    linear: csr_array | None = None
    values: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The sums of the linear rows."""

    @classmethod
    def of(cls, cells: int, rows: Sequence[Rows], totals: Sequence[Ints]) -> Self:
        """All rows of a table."""
        given = list(zip(rows, totals, strict=True))
        families = [(one.group.astype(np.int64), sums) for one, sums in given if isinstance(one, RowFamily)]
        return cls(cells, families, *_stack_rows([(one.matrix, sums) for one, sums in given if isinstance(one, LinearRows)]))

    @classmethod
    def within(cls, rows: Sequence[Rows], table: Ints, cells: Ints) -> Self:
        """The rows as they are over a block's cells, in any table with their totals."""
        families, linear = [], []
        for one in rows:
            if isinstance(one, LinearRows):
                part = replace(one, matrix=one.matrix.tocsc()[:, cells].tocsr())
                linear.append((part.matrix, part.totals(table[cells])))
                continue
            group = one.group[cells]
            present, local = np.unique(group, return_inverse=True)
            local = local - int(present[0] < 0)
            sums = np.zeros(int(local.max()) + 1, dtype=np.int64)
            np.add.at(sums, local[group >= 0], table[cells][group >= 0])
            if len(sums):
                families.append((local, sums))
        return cls(len(cells), families, *_stack_rows(linear))


def _stack_rows(linear: Sequence[tuple[csr_array, Ints]]) -> tuple[csr_array | None, Ints]:
    from scipy.sparse import csr_array, vstack

    if not linear:
        return None, np.zeros(0, dtype=np.int64)
    return csr_array(vstack([matrix for matrix, _ in linear], format="csr", dtype=np.int64)), np.concatenate([sums for _, sums in linear])


def decide(sums: Sums, work: Work | None) -> Found | None:
    """Return bounds of every cell, equal where it is pinned, and which cells stay undecided. Without work, None where (a) and (b) fail."""
    sums = _sets_apart(sums)
    groups, counts = [group for group, _ in sums.families], [len(totals) for _, totals in sums.families]
    class_of, count, some = equal_columns(RowSet(sums.cells, groups, counts, [], sums.linear, None))
    several = np.bincount(class_of, minlength=count) > 1
    linear = None if sums.linear is None else sums.linear.tocsc()[:, some].tocsr()
    of_classes = Sums(count, [(group[some], totals) for group, totals in sums.families], linear, sums.values)
    found = _decide_classes(of_classes, several, work)
    if found is None:
        return None
    lower, upper, open_classes = found
    lower = np.where(several, 0, lower)
    return lower[class_of], upper[class_of], (open_classes & (lower < upper))[class_of]


def _decide_classes(sums: Sums, several: Bools, work: Work | None) -> Found | None:
    if sums.linear is None:
        for way in (_frechet_bounds, _network_bounds):
            found = way(sums, several)
            if found is not None:
                return (*found, np.zeros(sums.cells, dtype=np.bool_))
    return None if work is None else programme_bounds(*_as_matrix(sums), several, work)


def _sets_apart(sums: Sums) -> Sums:
    """Linear rows whose coefficients are all equal, as families of one set each."""
    if sums.linear is None or sums.linear.shape[0] * sums.cells > MOST_SETS:
        return sums
    families, rest = list(sums.families), []
    for row in range(sums.linear.shape[0]):
        begin, end = sums.linear.indptr[row : row + 2]
        coefficients, total = sums.linear.data[begin:end], int(sums.values[row])
        if end == begin or (coefficients != coefficients[0]).any():
            rest.append(row)
            continue
        value, remainder = divmod(total, int(coefficients[0]))
        if remainder:
            raise ContradictingTotals("The published totals cannot belong to a table of counts: one of them is no multiple of its rows.")
        group = np.full(sums.cells, -1, dtype=np.int64)
        group[sums.linear.indices[begin:end]] = 0
        families.append((group, np.array([value], dtype=np.int64)))
    return Sums(sums.cells, families, sums.linear[rest] if rest else None, sums.values[rest])


def _as_matrix(sums: Sums) -> tuple[csr_array, Ints]:
    """All rows as one sparse matrix, and their sums."""
    from scipy.sparse import csr_array, vstack

    parts, totals = [] if sums.linear is None else [sums.linear], [sums.values]
    for group, values in sums.families:
        inside = np.flatnonzero(group >= 0)
        ones = np.ones(len(inside), dtype=np.int64)
        parts.append(csr_array((ones, (group[inside], inside)), shape=(len(values), sums.cells)))
        totals.append(values)
    matrix = csr_array(vstack(parts, format="csr", dtype=np.int64)) if parts else csr_array((0, sums.cells), dtype=np.int64)
    return matrix, np.concatenate(totals)


# (a) Ears.


def _frechet_bounds(sums: Sums, several: Bools) -> tuple[Ints, Ints] | None:
    """The sharp bounds of every class where the sums are partitions that come off one by one; None where they do not."""
    left = _partitions(sums)
    if not left or sum(sum(totals.tolist()) for _, totals in left) >= UNBOUNDED // 2:
        return None
    upper = np.min([totals[group] for group, totals in left], axis=0)
    lower = np.zeros(sums.cells, dtype=np.int64)
    left = _finest(left)
    while len(left) > 1:
        found = next((found for place in range(len(left)) if (found := _ear(left, place)) is not None), None)
        if found is None:
            return None
        place, separator = found
        group, totals = left.pop(place)
        common = np.zeros(int(separator.max()) + 1, dtype=np.int64)
        separator_of = np.empty(len(totals), dtype=np.int64)
        separator_of[group] = separator
        np.add.at(common, separator_of, totals)
        lower += totals[group] - common[separator]
    lower += left[0][1][left[0][0]]
    return np.maximum(lower, 0), upper


def _partitions(sums: Sums) -> list[tuple[Ints, Ints]]:
    """The families with the rest of the table as one more set, as far as its sum is known; none where it is not."""
    whole = next((int(totals.sum()) for group, totals in sums.families if (group >= 0).all()), None)
    out = []
    for group, totals in sums.families:
        if (group >= 0).all():
            out.append((group, totals))
        elif whole is None:
            return []
        else:
            out.append((np.where(group < 0, len(totals), group), np.append(totals, whole - int(totals.sum()))))
    used = [(np.unique(group, return_inverse=True), totals) for group, totals in out]
    return [(inverse.astype(np.int64), totals[present]) for (present, inverse), totals in used]


def _pairs(first: Ints, second: Ints) -> Ints:
    """The pairs of numbers that occur, each as one number."""
    return np.unique(first * (int(second.max()) + 1) + second)


def _finest(given: list[tuple[Ints, Ints]]) -> list[tuple[Ints, Ints]]:
    """Without those whose sets are unions of sets of another."""
    out: list[tuple[Ints, Ints]] = []
    for group, totals in sorted(given, key=lambda one: -len(one[1])):
        if not any(len(_pairs(finer, group)) == len(sums) for finer, sums in out):
            out.append((group, totals))
    return out


def _ear(left: list[tuple[Ints, Ints]], place: int) -> tuple[int, Ints] | None:
    """(place, what it has in common with the others) where each part of that is a full product, and follows from one of the others."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    group, totals = left[place]
    others = [part for number, part in enumerate(left) if number != place]
    radices = [len(values) for _, values in others]
    joined, count = rank_rows([part.astype(np.int32) for part, _ in others], radices, len(group))
    pairs = _pairs(joined.astype(np.int64), group)
    here, there = pairs // len(totals), pairs % len(totals)
    shape = (count + len(totals),) * 2
    number, component = connected_components(coo_array((np.ones(len(pairs), np.int8), (here, count + there)), shape=shape), directed=False)
    sides = [np.bincount(part, minlength=number) for part in (component[:count], component[count:])]
    if int((sides[0] * sides[1]).sum()) != len(pairs):
        return None
    separator = component[count + group].astype(np.int64)
    follows = any(len(_pairs(part, separator)) == len(values) for part, values in others)
    return (place, separator) if follows else None


# (b) Networks.


def _network_bounds(sums: Sums, several: Bools) -> tuple[Ints, Ints] | None:
    """Bounds of every class, equal where it is pinned, if the sets are two laminar families; None where they are not."""
    ends = _network(sums)
    if ends is None:
        return None
    tail, head, supply = ends
    flow = _flow(tail, head, supply)
    if flow is None:
        return None
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    back = flow > 0
    places = np.concatenate([tail, head[back]]), np.concatenate([head, tail[back]])
    graph = coo_array((np.ones(len(places[0]), np.int8), places), shape=(len(supply),) * 2)
    component = connected_components(graph, connection="strong")[1]
    apart = component[tail] != component[head]
    pinned = apart | (_bridges(tail, head, ~apart, len(supply)) & ~several)
    most = np.full(sums.cells, UNBOUNDED, dtype=np.int64)
    return np.where(pinned, flow, 0), np.where(pinned, flow, most)


def _network(sums: Sums) -> tuple[Ints, Ints, Ints] | None:
    """(tail, head) of each class and what each node gives, less what it takes: nodes are the sets less the sets in them, and the ground."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    matrix, totals = _as_matrix(sums)
    if int((np.bincount(matrix.indices, minlength=sums.cells) ** 2).sum()) > MOST_PAIRS:
        return None
    sizes = np.diff(matrix.indptr).astype(np.int64)
    common = (matrix @ matrix.T).tocoo()
    first, second = common.row.astype(np.int64), common.col.astype(np.int64)
    same = (common.data == sizes[first]) & (common.data == sizes[second]) & (first != second)
    if (totals[first[same]] != totals[second[same]]).any():
        raise ContradictingTotals("The published totals cannot belong to a table of counts: two of one set of cells differ.")
    rows = len(sizes)
    stays = np.ones(rows, dtype=np.bool_)
    stays[np.maximum(first[same], second[same])] = False
    keep = stays[first] & stays[second]
    first, second, shared = first[keep], second[keep], common.data[keep]
    crossing = shared < np.minimum(sizes[first], sizes[second])
    here, there = first[crossing], second[crossing]
    doubled = np.concatenate([here, here + rows]), np.concatenate([there + rows, there])
    side = connected_components(coo_array((np.ones(len(doubled[0]), np.int8), doubled), shape=(2 * rows,) * 2), directed=False)[1]
    if (side[here] == side[here + rows]).any():
        return None
    is_second = side[:rows] > side[rows:]
    is_second[np.setdiff1d(np.arange(rows), here)] = False
    inside = (shared == sizes[first]) & (sizes[first] < sizes[second]) & (is_second[first] == is_second[second])
    reduced = totals.copy()
    parent = np.full(rows, -1, dtype=np.int64)
    order = np.argsort(-sizes[second[inside]], kind="stable")
    parent[first[inside][order]] = second[inside][order]  # the smallest comes last, and stays
    children = np.flatnonzero(parent >= 0)
    np.subtract.at(reduced, parent[children], totals[children])
    if (reduced[stays] < 0).any():
        raise ContradictingTotals("The published totals cannot belong to a table of counts: parts exceed a sum of them.")
    row, cell = np.repeat(np.arange(rows), sizes), matrix.indices.astype(np.int64)
    entries = np.flatnonzero(stays[row])
    entries = entries[np.argsort(-sizes[row[entries]], kind="stable")]
    ends = []
    for which in (False, True):
        end = np.full(sums.cells, rows, dtype=np.int64)
        own = entries[is_second[row[entries]] == which]
        end[cell[own]] = row[own]
        ends.append(end)
    supply = np.where(stays, np.where(is_second, -reduced, reduced), 0)
    return ends[0], ends[1], np.append(supply, -int(supply.sum()))


def _flow(tail: Ints, head: Ints, supply: Ints) -> Ints | None:
    """A count for every class with these sums, by maximum flow; None where they are too large. Classes in no set have 0."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    nodes, whole = len(supply), sum(np.maximum(supply, 0).tolist())
    if whole > MOST_FLOW:
        return None
    gives, takes, moving = np.flatnonzero(supply > 0), np.flatnonzero(supply < 0), np.flatnonzero(tail != head)
    here = np.concatenate([tail[moving], np.full(len(gives), nodes), takes])
    there = np.concatenate([head[moving], gives, np.full(len(takes), nodes + 1)])
    size = np.concatenate([np.full(len(moving), whole), supply[gives], -supply[takes]]).astype(np.int32)
    found = maximum_flow(csr_array((size, (here, there)), shape=(nodes + 2,) * 2), nodes, nodes + 1)
    if found.flow_value != whole:
        raise ContradictingTotals("The published totals cannot belong to a table of counts: together they leave none.")
    flow = np.zeros(len(tail), dtype=np.int64)
    flow[moving] = np.asarray(found.flow[tail[moving], head[moving]]).ravel()
    return flow


def _bridges(tail: Ints, head: Ints, used: Bools, nodes: int) -> Bools:
    """Which of the edges in use lie on no cycle of them, by a spanning tree numbered from its root down. No two join the same nodes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    edges = np.flatnonzero(used & (tail != head))
    first, second = tail[edges], head[edges]
    part = connected_components(coo_array((np.ones(len(edges), np.int8), (first, second)), shape=(nodes,) * 2), directed=False)[1]
    roots = np.unique(part, return_index=True)[1]
    places = np.concatenate([first, np.full(len(roots), nodes)]), np.concatenate([second, roots])  # one node above all roots
    graph = coo_array((np.ones(len(places[0]), np.int8), places), shape=(nodes + 1,) * 2).tocsr()
    order, before = breadth_first_order(graph, nodes, directed=False)
    down, above = order[1:].tolist(), before.tolist()
    size, taken, number = [1] * (nodes + 1), [1] * (nodes + 1), [0] * (nodes + 1)
    for node in reversed(down):
        size[above[node]] += size[node]
    for node in down:  # what hangs from a node has the numbers after its own
        number[node] = number[above[node]] + taken[above[node]]
        taken[above[node]] += size[node]
    start = np.array(number)
    falls, rises = before[second] == first, before[first] == second
    others = ~falls & ~rises
    low, high = start.copy(), start.copy()
    for one, other in ((first[others], second[others]), (second[others], first[others])):
        np.minimum.at(low, one, start[other])
        np.maximum.at(high, one, start[other])
    lows, highs = low.tolist(), high.tolist()
    for node in reversed(down):
        lows[above[node]] = min(lows[above[node]], lows[node])
        highs[above[node]] = max(highs[above[node]], highs[node])
    child = np.where(falls, second, first)
    last = start + np.array(size) - 1
    out = np.zeros(len(tail), dtype=np.bool_)
    out[edges] = ~others & (np.array(lows)[child] >= start[child]) & (np.array(highs)[child] <= last[child])
    return out
