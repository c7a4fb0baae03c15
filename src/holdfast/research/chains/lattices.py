"""Chains on a whole lattice, along given moves or the basis of the paper, and targets with forms of their own: no release draws so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.metropolis import Metropolis
from holdfast.chains.moves import ListedMoves, Moves
from holdfast.chains.target import LARGEST_ENTRY, ChainTarget, Decay, EnergyKind, read_integers
from holdfast.errors import InvalidParameter, NothingLeft, UnreachableLattice
from holdfast.exact.parameters import Exact, positive_fraction
from holdfast.lattices import Lattice, algebra

_SHOWN = 12


def check_generates(moves: Moves, lattice_or_rows: Lattice | algebra.Matrix) -> None:
    """Refuse moves that leave the lattice {z : A z = 0}, or do not generate all of it over the integers.

    Guarantees:  exact integers. The message names a vector of the lattice that no sum of moves gives; of a reduced basis, so a short one.
    """
    rows = lattice_or_rows.matrix.toarray() if isinstance(lattice_or_rows, Lattice) else lattice_or_rows
    matrix = algebra.as_matrix(rows, "the matrix of kept totals")
    if matrix.ncols() != moves.cells:
        raise InvalidParameter(f"The moves have {moves.cells} cells, the kept totals {matrix.ncols()}. Give both over the same cells.")
    generators = algebra.as_matrix(moves.matrix())
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


def target_of_forms(kind: EnergyKind, forms: ArrayLike, weights: Sequence[Exact]) -> ChainTarget:
    """exp(-sum_k w_k |f_k z|), exp(-sum_k w_k (f_k z)^2), or exp(-sqrt(sum_k w_k (f_k z)^2)), rational weights w_k > 0."""
    rows = read_integers(forms, 2, "forms")
    exact = [positive_fraction(w, "weights") for w in weights]
    scale = Fraction(math.gcd(*(w.numerator for w in exact)), math.lcm(*(w.denominator for w in exact)))
    rate, factor = scale, 1
    if kind == "norm":  # sqrt(scale) need not be rational: sqrt(p/q) = (1/q) sqrt(p q), and p q goes into the multipliers
        rate, factor = Fraction(1, scale.denominator), scale.numerator * scale.denominator
    multipliers = [int(w / scale) * factor for w in exact]
    if max(multipliers, default=0) >= LARGEST_ENTRY:
        raise InvalidParameter("The weights are no multiples below 2^31 of one fraction. Use weights with fewer digits.")
    return ChainTarget(Decay(kind, rate), rows.shape[1], rows, np.array(multipliers, dtype=np.int64))
