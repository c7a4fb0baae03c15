"""Lines of a chain made from dense moves: the plain twin of those that kernels make from sparse ones."""

from __future__ import annotations

from functools import reduce
from itertools import combinations, product

import numpy as np

from holdfast.chains.line import Line
from holdfast.chains.moves import ListedMoves, Move, Moves
from holdfast.chains.target import ChainTarget, Ints


def dense(move: Move, cells: int) -> Ints:
    """The move as one number for each cell."""
    out = np.zeros(cells, dtype=np.int64)
    out[move.cells] = move.coefficients
    return out


def every_move(moves: Moves) -> list[Move]:
    """Every direction once: all are equally likely."""
    if isinstance(moves, ListedMoves):
        vectors = list(moves.vectors)
    else:
        axes = [[eye[i] - eye[j] for i, j in combinations(range(len(eye)), 2)] for eye in (np.eye(n, dtype=np.int64) for n in moves.shape)]
        signs = 1 if moves.signs is None else moves.signs
        vectors = [reduce(np.kron, parts) * signs for parts in product(*axes)]
    return [Move(np.flatnonzero(vector), vector[np.flatnonzero(vector)]) for vector in vectors]


def line_through(target: ChainTarget, z: Ints, move: Ints) -> Line:
    """The law of t in z + t move, under the target."""
    steps, values = move.tolist(), z.tolist()
    moving = [k for k, step in enumerate(steps) if step]
    kept = (k for k, step in enumerate(steps) if not step) if target.decay.kind == "norm" else ()
    first, last = _ends(target, z, move)
    return Line(
        target.decay,
        tuple(values[k] for k in moving),
        tuple(steps[k] for k in moving),
        sum(values[k] ** 2 for k in kept),
        first,
        last,
    )


def _ends(target: ChainTarget, z: Ints, move: Ints) -> tuple[int | None, int | None]:
    """Least and greatest t that keep z + t move within the bounds."""
    lows: list[int] = []
    highs: list[int] = []
    for bound, upper in ((target.lower, False), (target.upper, True)):
        if bound is None:
            continue
        for b, value, step in zip(bound.tolist(), z.tolist(), move.tolist(), strict=True):
            if step == 0:
                continue
            # value + t step <= b, or >= b
            if (step > 0) == upper:
                highs.append((b - value) // step)
            else:
                lows.append(-((value - b) // step))
    return max(lows, default=None), min(highs, default=None)
