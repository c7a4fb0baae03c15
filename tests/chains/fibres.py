"""Small fibres listed whole, and the exact one-step laws of kernels checked on them in fractions.

A fibre here is all the points of a lattice within a box, as tuples of cells. Kernels whose states are not cells (coordinates in a basis)
pass the states that stand for the fibre's points, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from holdfast.chains.moves import ListedMoves, Swaps
from holdfast.chains.protocol import StatePair
from holdfast.chains.target import ChainTarget
from holdfast.lattices import algebra
from holdfast.research.chains.lattices import generating_rows

from .transitions import joint_transitions, transitions

Point: TypeAlias = tuple[int, ...]


def enumerate_fibre(moves_or_basis: Any, lower: ArrayLike, upper: ArrayLike) -> list[Point]:
    """All integer combinations z of the moves with lower <= z <= upper, in lexicographic order.

    Moves are the ROWS of an array or a list of rows, or moves of a kernel; a basis given as columns has to be transposed. Whether the
    kernel's steps connect these points is another question: see `check_stationary`.
    """
    rows = generating_rows(moves_or_basis) if isinstance(moves_or_basis, Swaps | ListedMoves) else moves_or_basis
    hermite = algebra.as_matrix(np.asarray(rows)).hnf().tolist()
    echelon = [[int(entry) for entry in row] for row in hermite if any(row)]
    pivots = [next(i for i, entry in enumerate(row) if entry) for row in echelon]
    low, high = [int(b) for b in np.asarray(lower).ravel()], [int(b) for b in np.asarray(upper).ravel()]
    found: list[Point] = []

    def extend(index: int, z: list[int]) -> None:
        # cells before the next pivot are final: later rows are zero there
        final = pivots[index] if index < len(pivots) else len(z)
        if any(not low[i] <= z[i] <= high[i] for i in range(final)):
            return
        if index == len(echelon):
            found.append(tuple(z))
            return
        row, pivot = echelon[index], pivots[index]
        step = row[pivot]
        for t in range(-((z[pivot] - low[pivot]) // step), (high[pivot] - z[pivot]) // step + 1):
            extend(index + 1, [a + t * b for a, b in zip(z, row, strict=True)])

    extend(0, [0] * len(low))
    return sorted(found)


def weights(target: ChainTarget, fibre: Iterable[Point]) -> dict[Point, Fraction]:
    """The target's probability of each point of the fibre; for targets with a rational base."""
    points = list(fibre)
    energies = [target.energy(np.array(z, dtype=np.int64)) for z in points]
    raw = [target.decay.exact_ratio(energy, min(energies)) for energy in energies]
    total = sum(raw)
    return {z: w / total for z, w in zip(points, raw, strict=True)}


def as_state(point: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(point, dtype=np.int64)


def transition_matrix(kernel: Any, fibre: Sequence[Point], states: Sequence[Point] | None = None) -> dict[Point, dict[Point, Fraction]]:
    """From each point of the fibre the exact law of the next one; every row is checked to be a law on the fibre."""
    inside = set(fibre)
    matrix: dict[Point, dict[Point, Fraction]] = {}
    for z, state in zip(fibre, fibre if states is None else states, strict=True):
        row: dict[Point, Fraction] = {}
        for after, mass in transitions(kernel, as_state(state)).items():
            cells = tuple(int(c) for c in kernel.cells_of(as_state(after)))
            row[cells] = row.get(cells, Fraction(0)) + mass
        assert all(isinstance(mass, Fraction) and mass >= 0 for mass in row.values())
        assert sum(row.values()) == 1
        assert inside.issuperset(row), f"a step from {z} leaves the fibre"
        matrix[z] = row
    return matrix


def check_stationary(kernel: Any, fibre: Sequence[Point], target: ChainTarget, states: Sequence[Point] | None = None) -> None:
    """pi P = pi as fractions, every point reached from every other, and no period."""
    pi = weights(target, fibre)
    matrix = transition_matrix(kernel, fibre, states)
    after: dict[Point, Fraction] = dict.fromkeys(fibre, Fraction(0))
    for z, row in matrix.items():
        for y, mass in row.items():
            after[y] += pi[z] * mass
    assert after == pi
    forwards = {z: {y for y, mass in row.items() if mass} for z, row in matrix.items()}
    backwards: dict[Point, set[Point]] = {z: set() for z in fibre}
    for z, reached in forwards.items():
        for y in reached:
            backwards[y].add(z)
    for links in (forwards, backwards):
        assert len(_reached(fibre[0], links)) == len(fibre), "the fibre is not connected by the kernel"
    assert any(matrix[z].get(z, Fraction(0)) > 0 for z in fibre)


def _reached(start: Point, links: dict[Point, set[Point]]) -> set[Point]:
    seen, waiting = {start}, [start]
    while waiting:
        for y in links[waiting.pop()]:
            if y not in seen:
                seen.add(y)
                waiting.append(y)
    return seen


def check_margins(coupled: Any, fibre: Sequence[Point], states: Sequence[Point] | None = None, every: int = 1) -> None:
    """Each chain of a pair moves by the kernel's own law, as fractions, and identical chains stay identical.

    All ordered pairs of the fibre's points, or one of `every` where there are too many.
    """
    points = list(fibre if states is None else states)
    alone = {x: {tuple(after): mass for after, mass in transitions(coupled.kernel, as_state(x)).items() if mass} for x in points}
    for x, y in list(product(points, points))[::every] + [(x, x) for x in points]:
        joint = joint_transitions(coupled, StatePair(as_state(x), as_state(y)))
        first: dict[Point, Fraction] = {}
        second: dict[Point, Fraction] = {}
        for (a, b), mass in joint.items():
            if mass:
                first[tuple(a)] = first.get(tuple(a), Fraction(0)) + mass
                second[tuple(b)] = second.get(tuple(b), Fraction(0)) + mass
        assert first == alone[x], f"the first margin is wrong at {x}, {y}"
        assert second == alone[y], f"the second margin is wrong at {x}, {y}"
        if x == y:
            assert all(tuple(a) == tuple(b) for (a, b), mass in joint.items() if mass), f"identical chains part at {x}"
