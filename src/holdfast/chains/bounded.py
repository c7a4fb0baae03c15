"""Chains within bounds: which moves connect the tables, and how far a chain is from its law at worst.

A chain on a table with bounds is a tool for research. Its law depends on the counts, so what is seen of it on one table says nothing about
another with the same kept sums: its status is then "estimated for this table only", and no release is drawn by it. Only where the fibre is
small enough to be listed is its error computed, for every table of the fibre: `worst_distance`, status "proven".

Where it starts, how many steps it makes and with what parameters must be functions of public facts. The true table (z = 0) is none: a short
run started there publishes the truth. `first_table` is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.bounded_moves import elementary_moves
from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.metropolis import Metropolis
from holdfast.chains.moves import Listed, Swaps
from holdfast.chains.target import LARGEST_ENTRY, Ints, Target
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices.shapes import Bounded, Grid, OneSum
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.samplers.bounded_block import BoundedBlock

MovesKind: TypeAlias = Literal["swaps", "elementary moves", "all moves"]

FOR_THIS_TABLE = "estimated for this table only"
MOST_LISTED = 5000
"""Tables of a fibre whose matrix of transitions is worked out."""


@dataclass(frozen=True, eq=False)
class BoundedChain:
    """A kernel for one table, the moves that make it reach every table of the fibre, and what may be said of its error."""

    kernel: LineGibbs | Metropolis
    moves: MovesKind
    status: str = FOR_THIS_TABLE


def bounded_chain(shape: Bounded, table: Ints, rate: Fraction) -> BoundedChain:
    """A chain with law exp(-rate |y - x|_1) on the fibre of a table x within its bounds; the state is y - x. CONFIDENTIAL input.

    Guarantees:  every table of the fibre is reached from every other one. Which moves do it follows from the shape and its bounds alone.
    """
    if shape.rows:
        raise InvalidParameter("Chains know bounds of cells only. Inequalities among cells have exact samplers where blocks are small.")
    block = BoundedBlock.of(shape)
    room = block.room(np.asarray(table, dtype=np.int64)[None])
    lower = np.maximum(room.least[0], 1 - LARGEST_ENTRY) if (room.least > -UNBOUNDED).any() else None
    upper = np.minimum(room.most[0], LARGEST_ENTRY - 1) if (room.most < UNBOUNDED).any() else None
    target = Target.laplace(shape.size, rate).within(lower, upper)
    base = shape.shape
    one_sided = shape.lower is None or shape.upper is None
    if isinstance(base, OneSum) or (isinstance(base, Grid) and base.is_two_way and (one_sided or 2 in base.axes)):
        signs = np.array(base.signs) if isinstance(base, OneSum) and base.signs is not None else None
        return BoundedChain(LineGibbs(target, Swaps(base.axes, signs)), "swaps")
    try:
        return BoundedChain(LineGibbs(target, Listed(elementary_moves(block.kept))), "elementary moves")
    except RequestTooLarge:
        return BoundedChain(Metropolis(target, block.basis()), "all moves")


def first_table(tables: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Where a chain on a listed fibre may start: a function of the kept sums and bounds alone."""
    return min(tables)


def worst_distance(tables: Sequence[tuple[int, ...]], moves: Ints, rate: Fraction, start: tuple[int, ...], steps: int) -> float:
    """A bound of the total variation distance between line Gibbs after so many steps and its law, for EVERY table x of a listed fibre.

    Given:       all tables with some kept sums within some bounds; moves that connect them; a start among them that does not depend on x.
    Guarantees:  proven. Steps are products of matrices of positive numbers in doubles: an entry is off by at most (n + 60) 2^-52 of itself
                 a step, and so is the distance in all.
    Reference:   [theory T68].
    """
    return min(1.0, max(distances(tables, moves, rate, start, steps)) + steps * (len(tables) + 60) * 2.0**-52)


def distances(tables: Sequence[tuple[int, ...]], moves: Ints, rate: Fraction, start: tuple[int, ...], steps: int) -> list[float]:
    """The distance for each table x of the fibre, in doubles. CONFIDENTIAL as soon as one of them is told to be that of the true table."""
    if len(tables) > MOST_LISTED:
        raise RequestTooLarge(f"A fibre of {len(tables)} tables is too large: up to {MOST_LISTED} are worked out.")
    place = {table: i for i, table in enumerate(tables)}
    points = np.array(tables, dtype=np.int64)
    lines = [_lines(points, place, move) for move in moves]
    out = []
    for x in points:
        weights = np.exp(-float(rate) * abs(points - x).sum(axis=1))
        now = np.zeros(len(tables))
        now[place[start]] = 1.0
        for _ in range(steps):
            now = sum((_along(now, weights, ids) for ids in lines), np.zeros(len(tables))) / len(moves)
        out.append(float(abs(now - weights / weights.sum()).sum()) / 2)
    return out


def _lines(points: Ints, place: dict[tuple[int, ...], int], move: Ints) -> NDArray[np.int64]:
    """For each table the number of its line along the move: tables that differ by multiples of it."""
    out = np.full(len(points), -1, dtype=np.int64)
    count = 0
    for i, point in enumerate(points):
        if out[i] >= 0:
            continue
        for sign in (1, -1):
            at = point
            while (j := place.get(tuple(at.tolist()))) is not None:
                out[j] = count
                at = at + sign * move
        count += 1
    return out


def _along(now: NDArray[np.float64], weights: NDArray[np.float64], line: NDArray[np.int64]) -> NDArray[np.float64]:
    """The law after one step along each table's line: the line's mass, shared out by weight."""
    return np.asarray((np.bincount(line, now) / np.bincount(line, weights))[line] * weights)
