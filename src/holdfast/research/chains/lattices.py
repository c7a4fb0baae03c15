"""Chains on a whole lattice, along given moves or the basis of the paper: no release draws so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.metropolis import Metropolis
from holdfast.chains.moves import ListedMoves, Moves
from holdfast.chains.target import ChainTarget
from holdfast.errors import InvalidParameter, NothingLeft, RequestTooLarge, UnreachableLattice
from holdfast.exact.parameters import Exact, positive_fraction
from holdfast.lattices import Lattice, algebra
from holdfast.lattices.shapes.plain import zero_sum_basis

_SHOWN = 12
LARGEST_CHECK = 4_000_000
"""Entries of a matrix of moves that are checked by exact algebra."""


def check_generates(moves: Moves, lattice_or_rows: Lattice | algebra.Matrix) -> None:
    """Refuse moves that leave the lattice {z : A z = 0}, or do not generate all of it over the integers.

    Guarantees:  exact integers. The message names a vector of the lattice that no sum of moves gives; of a reduced basis, so a short one.
    """
    rows = lattice_or_rows.matrix.toarray() if isinstance(lattice_or_rows, Lattice) else lattice_or_rows
    matrix = algebra.as_matrix(rows, "the matrix of kept totals")
    if matrix.ncols() != moves.cells:
        raise InvalidParameter(f"The moves have {moves.cells} cells, the kept totals {matrix.ncols()}. Give both over the same cells.")
    generators = algebra.as_matrix(generating_rows(moves))
    outside = algebra.to_numpy(generators * matrix.transpose()).any(axis=1)
    if outside.any():
        vector = algebra.to_numpy(generators)[int(np.flatnonzero(outside)[0])]
        raise UnreachableLattice(f"A move changes a kept total: {format_move(vector)}. Leave it out.")
    basis = algebra.reduced_basis(algebra.kernel_basis(matrix))
    if algebra.same_lattice(basis, generators.transpose()):
        return
    reached = algebra.reduced_basis(generators.transpose())
    missing = next(vector for vector in algebra.to_numpy(basis).T if not _contains(reached, vector))
    raise UnreachableLattice(
        f"The moves do not reach every table with the kept totals: no sum of them gives {format_move(missing)}. Add this move to the list."
    )


def generating_rows(moves: Moves) -> NDArray[Any]:
    """Return rows that generate the same lattice as the moves, for small cases."""
    if isinstance(moves, ListedMoves):
        return moves.vectors
    if moves.cells * moves.dimension > LARGEST_CHECK:
        raise RequestTooLarge(f"The moves of a grid of {moves.cells} cells are too many to list.")
    rows = zero_sum_basis(moves.shape).T
    return rows if moves.signs is None else rows * moves.signs


def format_move(vector: NDArray[Any]) -> str:
    """The non-zero entries of a move, such as '+1 at cell 0, -1 at cell 3'."""
    places = np.flatnonzero(vector)
    text = ", ".join(f"{int(vector[i]):+d} at cell {i}" for i in places[:_SHOWN])
    return text if len(places) <= _SHOWN else f"{text} and {len(places) - _SHOWN} further entries"


def _contains(basis: Any, vector: NDArray[Any]) -> bool:
    try:
        algebra.coordinates(basis, vector)
    except InvalidParameter:
        return False
    return True


def line_gibbs_on(target: ChainTarget, lattice: Lattice, moves: Moves | None = None) -> LineGibbs:
    """On this lattice: along the given moves, refused where they do not generate it, or along a basis."""
    if moves is None:
        if lattice.dimension == 0:
            raise NothingLeft("The kept totals fix every cell, so no move is left.")
        return LineGibbs(target, ListedMoves(lattice.basis.T))
    check_generates(moves, lattice)
    return LineGibbs(target, moves)


def metropolis_on(target: ChainTarget, lattice: Lattice, jump_rate: Exact = 1) -> Metropolis:
    """Along the basis that the Smith form gives: the last columns of V, as in the paper."""
    if lattice.dimension == 0:
        return Metropolis(target, np.zeros((lattice.cells, 0), dtype=np.int64))  # refused there
    columns = algebra.to_numpy(lattice.smith().V)[:, lattice.cells - lattice.dimension :]
    return Metropolis(target, columns, positive_fraction(jump_rate, "jump_rate"))
