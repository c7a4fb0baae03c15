"""Moves that connect all tables within bounds.

Within bounds a basis is not enough: the way from one table to another may leave them. What is enough, by kind of bounds:

    swaps              one sum, within any box; two-way grids with lower bounds only, or upper bounds only
    elementary moves   any kept sums, within any box: the moves that are no sum of two others of the same signs (the Graver basis)
    all moves          any kept sums, bounds and inequalities: a step that may jump by any integer combination of a basis

Elementary moves are finitely many, but soon very many: 15 for rows and columns of a 3 x 3 table, 795 for the two-way margins of 3 x 3 x 3.
"""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.target import Ints
from holdfast.errors import RequestTooLarge
from holdfast.lattices import algebra

MOST_ELEMENTARY = 600
"""Moves, both signs, up to which elementary moves are worked out: some seconds."""


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
        rest = reduced(known[i] + known[j], known)
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


def reduced(z: Ints, moves: Ints) -> Ints:
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
