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

from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.metropolis import Metropolis
from holdfast.chains.moves import ListedMoves, Swaps
from holdfast.chains.target import LARGEST_ENTRY, ChainTarget, Ints
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices.shapes import Bounded, Grid, OneSum
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.research.chains.bounded_moves import elementary_moves
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
    target = ChainTarget.laplace(shape.size, rate).within(lower, upper)
    base = shape.shape
    one_sided = shape.lower is None or shape.upper is None
    if isinstance(base, OneSum) or (isinstance(base, Grid) and base.is_two_way and (one_sided or 2 in base.axes)):
        signs = np.array(base.signs) if isinstance(base, OneSum) and base.signs is not None else None
        return BoundedChain(LineGibbs(target, Swaps(base.axes, signs)), "swaps")
    try:
        return BoundedChain(LineGibbs(target, ListedMoves(elementary_moves(block.kept))), "elementary moves")
    except RequestTooLarge:
        return BoundedChain(Metropolis(target, block.basis()), "all moves")


def first_table(tables: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Where a chain on a listed fibre may start: a function of the kept sums and bounds alone."""
    return min(tables)


def worst_distance(tables: Sequence[tuple[int, ...]], moves: Ints, rate: Fraction, start: tuple[int, ...], steps: int) -> float:
    """A bound of the total variation distance between line Gibbs after so many steps and its law, for EVERY table x of a listed fibre.

    Given:       all tables with some kept sums within some bounds; moves that connect them; a start among them that does not depend on x.
    Guarantees:  proven. The law of a line is exp(-t) for t = rate (distance - least distance on the line), over its sum, which is at least
                 1. A double of t is off by t 2^-52 of itself, so exp(-t) is off by t exp(-t) 2^-52, at most 2^-53, whatever the rate, and
                 by 2^-52 of itself: for n tables all lines together lose (n + 2) 2^-52 in l1. Sums of positive numbers, n of them twice
                 and one for each move, and a few products lose (n + moves + 8) 2^-52 more. Steps do not widen what was lost before, and
                 the law at the end loses as much as a step. Twice that covers products of errors.
    Reference:   [theory T68].
    """
    lost = 2 * (steps + 1) * (2 * len(tables) + len(moves) + 10) * 2.0**-52
    return min(1.0, max(distances(tables, moves, rate, start, steps)) + lost)


def distances(tables: Sequence[tuple[int, ...]], moves: Ints, rate: Fraction, start: tuple[int, ...], steps: int) -> list[float]:
    """The distance for each table x of the fibre, in doubles. CONFIDENTIAL as soon as one of them is told to be that of the true table."""
    if len(tables) > MOST_LISTED:
        raise RequestTooLarge(f"A fibre of {len(tables)} tables is too large: up to {MOST_LISTED} are worked out.")
    place = {table: i for i, table in enumerate(tables)}
    points = np.array(tables, dtype=np.int64)
    lines = [_lines(points, place, move) for move in moves]
    out = []
    for x in points:
        far = abs(points - x).sum(axis=1)
        shares = [(ids, _shares(far, ids, float(rate))) for ids in lines]
        now = np.zeros(len(tables))
        now[place[start]] = 1.0
        for _ in range(steps):  # the mass of each table's line, shared out
            now = sum((np.bincount(ids, now)[ids] * share for ids, share in shares), np.zeros(len(tables))) / len(moves)
        law = _shares(far, np.zeros(len(tables), dtype=np.int64), float(rate))
        out.append(float(abs(now - law).sum()) / 2)
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


def _shares(far: Ints, line: NDArray[np.int64], rate: float) -> NDArray[np.float64]:
    """For each table its share of its line, by weight. Distances count from the least of the line, so that no line is without weight."""
    least = np.full(line.max() + 1, far.max())
    np.minimum.at(least, line, far)
    weights = np.exp(-rate * (far - least[line]))
    return np.asarray(weights / np.bincount(line, weights)[line])
