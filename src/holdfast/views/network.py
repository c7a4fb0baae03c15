"""Where kept totals are two nested families (county totals and sex by age, rows and columns), cells are the arcs of a network.

Each cell leaves the smallest set of one family that it lies in and enters that of the other, or the ground where it lies in none. Kept
totals say what leaves and enters each node. Wanted are whole units of the base, zero or more if asked for, with the least sum of
(base u - y)^2: a flow of convex cost. It is found by prices of the nodes, first roughly (values halved again and again), then exactly.

All numbers are integers, so that the same files give the same view on every machine. An optimum is recognised by its prices: no unit more
or less of any cell costs less than they say ([theory T151]).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvariantBroken, RequestTooLarge
from holdfast.views.crossing import no_table
from holdfast.views.tree import public_words

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from holdfast.views._network_compiled import Graph

Ints = NDArray[np.int64]
Tell = Callable[[int, int], None]

MOST_CELLS = 1_000_000
"""Cells of a network that are looked at: 100,000 take a second or two, 1,000,000 some minutes."""
LARGEST_VALUE = 2**50
LARGEST_PRICE = 2**59
"""Far beyond what the noise of a table leads to; below it no sum of the solver leaves 64-bit integers."""


@dataclass(frozen=True, eq=False)
class Families:
    """Two nested families of sets, as far as there are two."""

    smallest: tuple[Ints, Ints]
    """For each cell the smallest set of each family that has it, or -1."""
    odd: Ints
    """Sets that fit into no two nested families."""


def two_families(sets: csr_array, stated: Ints) -> Families:
    """Split sets of cells into two families in each of which any two are nested or disjoint.

    Given:       a row of 0 and 1 for each set; `stated`: a number for each, equal only for sets that are disjoint. Sets that are made of
                 smaller ones of one number say nothing more, and are left out.
    Guarantees:  sets that cross are in different families; sets joined by an odd circle of crossings are in `odd`.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    number = sets.shape[0]
    sizes = np.asarray(sets.sum(axis=1), dtype=np.int64)
    common = coo_array(sets @ sets.T)
    one, other, both = common.row.astype(np.int64), common.col.astype(np.int64), common.data
    lies_in = (both == sizes[one]) & ((sizes[one] < sizes[other]) | (one < other))
    made_of, place = np.unique(other[lies_in] * (int(stated.max(initial=0)) + 1) + stated[one[lies_in]], return_inverse=True)
    covered = np.zeros(len(made_of), dtype=np.int64)
    np.add.at(covered, place, sizes[one[lies_in]])
    implied = np.zeros(number, dtype=np.bool_)
    whole = made_of // (int(stated.max(initial=0)) + 1)
    implied[whole[covered == sizes[whole]]] = True
    crosses = (both < np.minimum(sizes[one], sizes[other])) & ~implied[one] & ~implied[other]
    # Each set twice, once in each family: a crossing joins it to the other set in the other family.
    ends = np.concatenate([one[crosses], one[crosses] + number]), np.concatenate([other[crosses] + number, other[crosses]])
    label = connected_components(coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(2 * number, 2 * number)), directed=False)[1]
    odd = label[:number] == label[number:]
    second = label[:number] > label[number:]
    entries = sets.tocoo()
    order = np.argsort(-sizes[entries.row], kind="stable")
    smallest = []
    for family in (~second, second):
        rows, cells = entries.row[order], entries.col[order]
        used = family[rows] & ~implied[rows]
        found = np.full(sets.shape[1], -1, dtype=np.int64)
        found[cells[used]] = rows[used]  # the last one stays: the smallest
        smallest.append(found)
    return Families((smallest[0], smallest[1]), np.flatnonzero(odd & ~implied))


class Network:
    """Cells as arcs: tails and heads are numbers of nodes, the tails first."""

    def __init__(self, tail: Ints, head: Ints) -> None:
        """Given: for each cell its set in each family, or -1 for the ground."""
        self.cells = len(tail)
        # Cells in a public order, so that of equally good views none prefers the first places.
        self.order = np.argsort(public_words(0, len(tail)), kind="stable")
        ends = np.concatenate([tail[self.order], head[self.order]])
        _, first, place = np.unique(ends, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        self._tail, self._head = rank[place].reshape(2, -1)
        self._tails, self.nodes = int(self._tail.max(initial=-1)) + 1, len(first)

    def nearest_table(self, counts: Ints, base: int, *, nonnegative: bool, tell: Tell | None = None) -> Ints:
        """The nearest table of multiples of the base, zero or more if asked for, with the totals of the counts.

        Guarantees:  kept totals and optimality are checked as integers.
        """
        if base == 1 and not (nonnegative and (counts < 0).any()):
            return counts
        values = counts[self.order]
        if int(np.abs(values).max()) > LARGEST_VALUE:
            raise RequestTooLarge("Counts beyond 2^50 under crossing totals have no view. Take the released counts as they are.")
        supply = self._supply_of(values)
        if (supply % base).any():
            raise no_table(base)
        units, prices = self._solve(values, supply // base, base, nonnegative, tell or (lambda done, total: None))
        if not self.is_nearest(units, prices, values, base, nonnegative=nonnegative):
            raise InvariantBroken("The view of a network is not the nearest one. This is a fault in Holdfast.")
        out = np.empty_like(counts)
        out[self.order] = base * units
        return out

    def is_nearest(self, units: Ints, prices: Ints, values: Ints, base: int, *, nonnegative: bool) -> bool:
        """Whether units keep the totals, and no unit more or less of a cell costs less than the prices of its ends say ([theory T151])."""
        slope = 2 * (base * units - values) + prices[self._tail] - prices[self._head]
        at_least = (units == 0) if nonnegative else np.zeros(len(units), dtype=np.bool_)
        signs = not nonnegative or bool((units >= 0).all())
        optimal = bool((slope >= -base).all() and ((slope <= base) | at_least).all())
        return signs and optimal and np.array_equal(self._supply_of(base * units), self._supply_of(values))

    def _supply_of(self, values: Ints) -> Ints:
        """What leaves each node less what enters it."""
        out = np.zeros(self.nodes, dtype=np.int64)
        np.add.at(out, self._tail, values)
        np.subtract.at(out, self._head, values)
        return out

    def _graph(self, base: int, nonnegative: bool) -> Graph:
        from holdfast.views._network_compiled import Graph

        ends = np.concatenate([self._tail, self._head])
        arcs = np.argsort(ends, kind="stable") % self.cells
        start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=self.nodes))])
        return Graph(self._tail, self._head, start, arcs, base, 0 if nonnegative else -(2**52))

    def _solve(self, values: Ints, supply: Ints, base: int, nonnegative: bool, tell: Tell) -> tuple[Ints, Ints]:
        """(units of each arc, prices of the nodes). Values and supplies are divided by 2^k, rounded, and solved: their prices, doubled, are
        the first ones for half of k. Only the last step, k = 0, has to succeed.
        """
        from holdfast.views._network_compiled import fill_units, raise_prices, route_excess, settle_prices

        graph, prices = self._graph(base, nonnegative), np.zeros(self.nodes, dtype=np.int64)
        steps = max(0, -int(values.min()) // base).bit_length() if nonnegative else 0
        for k in range(steps, -1, -1):
            half = (1 << k) >> 1
            own, excess, units = (values + half) >> k, (supply + half) >> k, np.empty_like(values)
            prices *= 2
            settle_prices(graph, own, excess, prices, self._tails)
            fill_units(graph, own, prices, units, excess)
            most = first = max(1, int(np.maximum(excess, 0).sum()))
            while most:
                route_excess(graph, own, prices, units, excess)
                most = int(np.maximum(excess, 0).sum())
                done = (steps - k + 1 - min(1.0, most / first)) / (steps + 1)
                tell(min(self.cells - 1, int(self.cells * done)), self.cells)
                if most and not raise_prices(graph, own, prices, units, excess):
                    break  # nobody wants more
                if int(np.abs(prices).max()) > LARGEST_PRICE:
                    raise RequestTooLarge("The view of this table leaves 64-bit integers. Take the released counts as they are.")
        if excess.any():
            raise no_table(base)
        return units, prices


def check_network(cells: int) -> None:
    """Refuse a network of too many cells."""
    if cells > MOST_CELLS:
        raise RequestTooLarge(
            f"Kept totals cross over {cells:,} cells, and counts for print are made of {MOST_CELLS:,} at most. Leave view_base out and "
            "take the released counts as they are, or keep totals that do not cross."
        )
