"""Chains within bounds: which moves connect the tables, and how far a chain is from its law at worst.

A chain on a table with bounds is a tool for research. Its law depends on the counts, so what is seen of it on one table says nothing about
another with the same kept sums: its status is then "estimated for this table only", and no release is drawn by it. Only where the fibre is
small enough to be listed is its error computed, for every table of the fibre: `worst_distance`, status "proven".

Where it starts, how many steps it makes and with what parameters must be functions of public facts. The true table (z = 0) is none: a short
run started there publishes the truth. `first_table` is one.

Within bounds a basis is not enough: the way from one table to another may leave them. What is enough, by kind of bounds:

    swaps              one sum, within any box; two-way grids with lower bounds only, or upper bounds only
    elementary moves   any kept sums, within any box: the moves that are no sum of two others of the same signs (the Graver basis)
    all moves          any kept sums, bounds and inequalities: a step that may jump by any integer combination of a basis

Elementary moves are finitely many, but soon very many: 15 for rows and columns of a 3 x 3 table, 795 for the two-way margins of 3 x 3 x 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.line_gibbs import TABLE, LineGibbs
from holdfast.chains.metropolis import Metropolis
from holdfast.chains.moves import ListedMoves, moves_for
from holdfast.chains.protocol import State
from holdfast.chains.target import LARGEST_ENTRY, ChainTarget, Ints
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices import algebra
from holdfast.lattices.shapes import Bounded
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.samplers.bounded_block import BoundedBlock

MOST_ELEMENTARY = 600
"""Moves, both signs, up to which elementary moves are worked out: some seconds."""

MovesKind: TypeAlias = Literal["swaps", "elementary moves", "all moves"]

SHORT = 1024
"""Points of a line that are all summed."""
FOR_THIS_TABLE = "estimated for this table only"
MOST_LISTED = 5000
"""Tables of a fibre whose matrix of transitions is worked out."""


def elementary_moves(kept: Ints) -> Ints:
    """All elementary moves of {z : kept z = 0}, one of each pair z, -z, as rows; RequestTooLarge where they are too many.

    Guarantees:  complete. A move h fits into z if it has no sign that z does not have, and no entry that is larger. Starting from a basis,
                 sums of two known moves are reduced by known moves that fit into them, until nothing is left; what remains is a new move.
                 Where all sums reduce to zero, every move is a sum of known ones that fit into it; those into which no other fits are the
                 elementary ones.
    Reference:   [theory T67]; Pottier 1991, Sturmfels, Groebner Bases and Convex Polytopes, Algorithm 7.2.
    """
    basis = algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis(kept))).T.astype(np.int64)
    known = np.concatenate([basis, -basis])
    waiting = list(combinations(range(len(known)), 2))
    while waiting:
        i, j = waiting.pop()
        rest = reduce_by_moves(known[i] + known[j], known)
        if rest.any():
            if len(known) + 2 > MOST_ELEMENTARY:
                raise RequestTooLarge(f"These kept totals have more than {MOST_ELEMENTARY} elementary moves. Use metropolis.")
            known = np.concatenate([known, rest[None], -rest[None]])
            new = len(known) - 2
            waiting += [(k, n) for n in (new, new + 1) for k in range(n)]
    least = [z for i, z in enumerate(known) if not fits_into(np.delete(known, i, axis=0), z).any()]
    return np.array([z for z in least if z[np.flatnonzero(z)[0]] > 0], dtype=np.int64)


def fits_into(moves: Ints, z: Ints) -> NDArray[np.bool_]:
    """Which moves fit into z: entry by entry of the same sign and no larger."""
    return np.asarray(((moves * z >= 0) & (abs(moves) <= abs(z))).all(axis=1))


def reduce_by_moves(z: Ints, moves: Ints) -> Ints:
    """z less moves that fit into it, until none does."""
    while z.any():
        fits = np.flatnonzero(fits_into(moves, z))
        if not len(fits):
            break
        z = z - moves[fits[0]]
    return z


def grid_cycles(rows: int, columns: int) -> Ints:
    """The elementary moves of a two-way grid: +1 and -1 in turn along closed ways through different rows and columns, as rows.

    Proof:  a table with zero sums has in every row and column with a positive entry a negative one too. Going from one to the next, rows
            and columns in turn, closes a way after a while; that move fits into the table. So the others are sums. A cycle is elementary:
            a move that fits into it and leaves out one of its cells leaves out all, row by row and column by column.
    """
    out = {}
    for length in range(2, min(rows, columns) + 1):
        for chosen in combinations(range(rows), length):
            for places in permutations(range(columns), length):
                for rest in permutations(chosen[1:]):
                    way = (chosen[0], *rest)
                    z = np.zeros((rows, columns), dtype=np.int64)
                    for i, (row, column) in enumerate(zip(way, places, strict=True)):
                        z[row, column] += 1
                        z[way[(i + 1) % length], column] -= 1
                    flat = z.ravel()
                    flat = flat if flat[np.flatnonzero(flat)[0]] > 0 else -flat
                    out[tuple(flat.tolist())] = flat
    return np.array(list(out.values()), dtype=np.int64)


class NarrowLineGibbs(LineGibbs):
    """Line Gibbs within narrow bounds: all points of a line, at most SHORT, are summed one after the other in compiled loops.

    Guarantees:  as LineGibbs; the sums are off by 2^-43 of themselves.
    """

    @property
    def is_short(self) -> bool:
        """Whether every point of a line is summed: absolute values of cells, listed moves of +1 and -1, narrow bounds below or above."""
        target, moves = self.target, self.moves
        plain = target.decay.kind == "absolute"
        if not plain or not isinstance(moves, ListedMoves) or abs(moves.vectors).max() > 1 or 64 / target.decay.rate_double > TABLE:
            return False
        return any(bound is not None and int(abs(bound).max()) <= SHORT // 8 for bound in (target.lower, target.upper))

    def compiled_run(
        self, z: State, energy: Ints, record: NDArray[np.int64], every: int
    ) -> Callable[[NDArray[np.uint32], int, int], tuple[int, int, int]]:
        if not self.is_short:
            return super().compiled_run(z, energy, record, every)
        from holdfast.research.chains import _bounded_line_compiled as short

        rate = self.target.decay.rate_double
        lists, bounds, room = self.move_arrays[3:], self._bounds, (np.empty(SHORT, dtype=np.int64), np.empty(SHORT))
        table = np.exp(-rate * np.arange(min(TABLE, math.ceil(64 / rate)) + 1))
        return lambda chunk, wanted, done: short.run_short(
            chunk, wanted, z, *lists, *bounds, table, *room, self.band, record, every, done, self.quadrant
        )

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints]:
        """Bounds of every cell, beyond the limit where there are none."""
        far = np.full(self.target.cells, 2 * self.limit, dtype=np.int64)
        lower, upper = self.target.lower, self.target.upper
        return -far if lower is None else lower.copy(), far if upper is None else upper.copy()


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
    if base.is_one_sum or (base.is_two_way and (one_sided or 2 in base.axes)):
        return BoundedChain(LineGibbs(target, moves_for(base)), "swaps")
    try:
        return BoundedChain(NarrowLineGibbs(target, ListedMoves(elementary_moves(block.kept_matrix))), "elementary moves")
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
