"""Loops of the network solver (views/network.py): prices of nodes, and whole units moved along arcs whose next unit costs nothing more.

u units on an arc from t to h with a published value y cost (base u - y)^2 / base. With prices p the reduced cost of one more unit is
2 (base u - y) + base + p[t] - p[h], and that of one less 2 (y - base u) + base - p[t] + p[h]. All reduced costs stay zero or more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.exact._loop_compiled import loop

Ints = NDArray[np.int64]

FAR = np.int64(1) << 62
LONGEST_STEP = np.int64(1) << 40


class Graph(NamedTuple):
    """Arcs between nodes; the arcs of node v are arcs[start[v] : start[v + 1]]."""

    tail: Ints
    head: Ints
    start: Ints
    arcs: Ints
    base: int
    least: int
    """The fewest units of an arc: 0, or far below where numbers may be negative."""


@loop
def cheapest_units(graph: Graph, arc: int, value: int, difference: int) -> int:
    """The units of an arc at a difference of the prices of its ends, head less tail."""
    units: int = max((difference + graph.base + 2 * value) // (2 * graph.base), graph.least)
    return units


@loop
def shortfall(graph: Graph, values: Ints, supply: Ints, prices: Ints, node: int, price: int) -> int:
    """What the arcs of a node lack of its supply at a price of it: it grows with the price."""
    out: int = supply[node]
    for k in range(graph.start[node], graph.start[node + 1]):
        arc = graph.arcs[k]
        if graph.tail[arc] == node:
            out -= cheapest_units(graph, arc, values[arc], prices[graph.head[arc]] - price)
        else:
            out += cheapest_units(graph, arc, values[arc], price - prices[graph.tail[arc]])
    return out


@loop
def settle_prices(graph: Graph, values: Ints, supply: Ints, prices: Ints, nodes: int) -> None:
    """For the first nodes, one after the other: the largest price at which the arcs lack nothing."""
    for node in range(nodes):
        price, reach = prices[node], np.int64(1)
        if shortfall(graph, values, supply, prices, node, price) <= 0:
            low = price
            while reach < LONGEST_STEP and shortfall(graph, values, supply, prices, node, price + reach) <= 0:
                low, reach = price + reach, 2 * reach
            high = price + reach
        else:
            high = price
            while reach < LONGEST_STEP and shortfall(graph, values, supply, prices, node, price - reach) > 0:
                high, reach = price - reach, 2 * reach
            low = price - reach
        if reach >= LONGEST_STEP:
            continue
        while high - low > 1:
            middle = low + (high - low) // 2
            if shortfall(graph, values, supply, prices, node, middle) <= 0:
                low = middle
            else:
                high = middle
        prices[node] = low


@loop
def fill_units(graph: Graph, values: Ints, prices: Ints, units: Ints, excess: Ints) -> None:
    """The cheapest units of every arc; `excess`, which holds the supply, loses what they carry."""
    for arc in range(len(values)):
        tail, head = graph.tail[arc], graph.head[arc]
        units[arc] = cheapest_units(graph, arc, values[arc], prices[head] - prices[tail])
        excess[tail] -= units[arc]
        excess[head] += units[arc]


@loop
def route_excess(graph: Graph, values: Ints, prices: Ints, units: Ints, excess: Ints) -> int:
    """Move single units from nodes with too many to nodes with too few, along arcs that cost nothing more; returns how many."""
    nodes, moved = len(prices), 0
    cursor, seen = graph.start[:-1].copy(), np.zeros(nodes, dtype=np.bool_)
    path, via = np.empty(nodes + 1, dtype=np.int64), np.empty(nodes + 1, dtype=np.int64)
    for root in range(nodes):
        while excess[root] > 0 and not seen[root]:
            depth = 0
            path[0], seen[root] = root, True
            while depth >= 0 and excess[path[depth]] >= 0:
                node, found = path[depth], False
                while cursor[node] < graph.start[node + 1]:
                    arc = graph.arcs[cursor[node]]
                    tail, head = graph.tail[arc], graph.head[arc]
                    slope = 2 * (graph.base * units[arc] - values[arc]) + prices[tail] - prices[head]
                    other = head if tail == node else tail
                    opens = slope == -graph.base if tail == node else slope == graph.base and units[arc] > graph.least
                    if opens and not seen[other]:
                        depth += 1
                        path[depth], via[depth], seen[other], found = other, arc, True, True
                        break
                    cursor[node] += 1
                if not found:
                    depth -= 1
            if depth < 0:
                break
            for place in range(1, depth + 1):
                arc = via[place]
                units[arc] += 1 if graph.tail[arc] == path[place - 1] else -1
            for place in range(depth + 1):
                seen[path[place]] = False
            excess[root] -= 1
            excess[path[depth]] += 1
            moved += 1
    return moved


@loop
def raise_prices(graph: Graph, values: Ints, prices: Ints, units: Ints, excess: Ints) -> int:
    """Raise prices by the distance from nodes with too many units, so that arcs to nodes with too few cost nothing more (Dijkstra 1959).

    Returns how many of these were reached.
    """
    nodes, wanting, reached, last, size = len(prices), 0, 0, np.int64(0), 0
    distance = np.full(nodes, FAR)
    keys, heap = np.empty(nodes + len(graph.arcs), dtype=np.int64), np.empty(nodes + len(graph.arcs), dtype=np.int64)
    for node in range(nodes):
        wanting += excess[node] < 0
        if excess[node] > 0:
            distance[node], keys[size], heap[size] = 0, 0, node
            size += 1
    while size and reached < wanting:
        key, node = keys[0], heap[0]
        size -= 1
        place = 0
        while 2 * place + 1 < size:
            child = 2 * place + 1
            if child + 1 < size and keys[child + 1] < keys[child]:
                child += 1
            if keys[child] >= keys[size]:
                break
            keys[place], heap[place] = keys[child], heap[child]
            place = child
        keys[place], heap[place] = keys[size], heap[size]
        if key > distance[node]:
            continue
        if excess[node] < 0:
            reached, last = reached + 1, key
        for k in range(graph.start[node], graph.start[node + 1]):
            arc = graph.arcs[k]
            tail, head = graph.tail[arc], graph.head[arc]
            slope = 2 * (graph.base * units[arc] - values[arc]) + prices[tail] - prices[head]
            if tail != node and units[arc] <= graph.least:
                continue
            other = head if tail == node else tail
            there = key + graph.base + (slope if tail == node else -slope)
            if there < distance[other]:
                distance[other] = there
                place, size = size, size + 1
                while place > 0 and keys[(place - 1) >> 1] > there:
                    keys[place], heap[place] = keys[(place - 1) >> 1], heap[(place - 1) >> 1]
                    place = (place - 1) >> 1
                keys[place], heap[place] = there, other
    if reached:
        for node in range(nodes):
            prices[node] += min(distance[node], last)
    return reached
