"""How far one person can move real-valued answers: sensitivities, declared or computed from a query matrix.

Legend: A is the query; Delta_p(A) the largest l_p distance of its answers on neighbours. For a linear query A(x) = sum of a column a_z for
each person in cell z: replacing one person moves it by a_z - a_z', adding one by a_z.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from flint import fmpq, fmpq_mat, fmpz_mat
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, NothingLeft
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import Exact, exact_fraction
from holdfast.lattices import algebra
from holdfast.subspace.spaces import Invariants, read_matrix

Neighbours: TypeAlias = Literal["replace-one", "add-remove"]
NEIGHBOURS: tuple[Neighbours, ...] = ("replace-one", "add-remove")

ALIKE = (
    "All columns of the query are alike: replacing one person by another changes no answer, so there is nothing to protect. Check the "
    "query, or take neighbours='add-remove'."
)
_NOBODY_REPLACED = (
    "No person can change alone: no two different columns of the query matrix have the same invariants, so that whoever is replaced by "
    "another changes an invariant. A promise would be for nobody. Keep fewer invariants, or such as are equal for two kinds of people."
)
_NOBODY_ADDED = (
    "No person can come or go alone: no column of the query matrix has invariants of 0, so that whoever does changes an invariant. "
    "A promise would be for nobody."
)
_REPLACE = "Take neighbours='replace-one', or keep fewer invariants."
_FEWER = "Keep fewer invariants."


@dataclass(frozen=True)
class Sensitivities:
    """How far one person can move the answers, in the norms that are known; exact numbers, greater than zero.

    l1, l2_squared:                      of A: Delta_1(A), and the SQUARE of Delta_2(A)
    projected_l1, projected_l2_squared:  of Q_N^T A. The first depends on which basis Q_N is (InvariantSpace.basis_name) and is rounded up.
    """

    l1: Fraction | None = None
    l2_squared: Fraction | None = None
    projected_l1: Fraction | None = None
    projected_l2_squared: Fraction | None = None
    neighbours: Neighbours = "replace-one"

    def __post_init__(self) -> None:
        for name in ("l1", "l2_squared", "projected_l1", "projected_l2_squared"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, read_sensitivity(value, name))
        if self.neighbours not in NEIGHBOURS:
            raise InvalidParameter(f"neighbours must be one of {', '.join(map(repr, NEIGHBOURS))}. Got {self.neighbours!r}.")


def read_sensitivity(value: Exact, name: str = "sensitivity") -> Fraction:
    """An exact number above zero."""
    found = exact_fraction(value, name)
    if found == 0:
        raise InvalidParameter(
            f"{name} is zero: then no person changes any answer, and there is nothing to protect. Give the largest distance by which one "
            "person can move the answers.",
            field=name,
        )
    if found < 0:
        raise InvalidParameter(f"{name} must be greater than zero: it is a distance. Got {format_exact(found)}.", field=name)
    return found


def same_invariants_sensitivities(matrix: Any, invariants: Invariants, neighbours: Neighbours = "replace-one") -> Sensitivities:
    """Sensitivities for neighbours with the same invariants alone, exact: a_z - a_z' where C a_z = C a_z', and a_z where C a_z = 0.

    Guarantees:  l1 and l2_squared bound the distance of A(x) and A(x') for all neighbours x, x' with C A(x) = C A(x'). Where neighbours
                 add or remove one person, twice the distance bounds those who replace one by another too. NothingLeft where there are no
                 such neighbours.
    Reference:   [theory T113].
    """
    A = read_linear(matrix, invariants)
    gram = fmpq_mat(A.transpose() * A)
    kinds: dict[tuple[fmpq, ...], list[int]] = {}
    for z, kept in enumerate(fmpq_mat(fmpq_mat(invariants.rows) * A).transpose().tolist()):
        kinds.setdefault(tuple(kept), []).append(z)
    found = [farthest(A, gram, kind, "replace-one") for kind in kinds.values()]
    l1, l2_squared = (max(each) for each in zip(*found, strict=True))
    if neighbours == "replace-one":
        if not l1:
            raise NothingLeft(_NOBODY_REPLACED) if len(kinds) > 1 else InvalidParameter(ALIKE)
        return Sensitivities(l1, l2_squared, neighbours=neighbours)
    unseen = kinds.get((fmpq(0),) * invariants.rank, [])
    alone_l1, alone_l2_squared = farthest(A, gram, unseen, neighbours)
    if not alone_l1:
        raise NothingLeft(f"{_NOBODY_ADDED} {_REPLACE if l1 else _FEWER}")
    return Sensitivities(max(alone_l1, l1 / 2), max(alone_l2_squared, l2_squared / 4), neighbours=neighbours)


def read_linear(matrix: Any, invariants: Invariants) -> fmpq_mat:
    A = read_matrix(matrix, "query_matrix")
    if A.nrows() != invariants.cells:
        raise InvalidParameter(f"The query has {A.nrows()} answers, the invariants are over {invariants.cells}. Give both for the same.")
    return A


def farthest(A: fmpq_mat, gram: fmpq_mat, kinds: Sequence[int], neighbours: Neighbours) -> tuple[Fraction, Fraction]:
    """The largest l1 and the largest squared l2 length of a move among these columns; 0 where there is none."""
    if not kinds:
        return Fraction(0), Fraction(0)
    whole, denominator = A.numer_denom()
    l1 = Fraction(_largest(algebra.to_numpy(whole)[:, list(kinds)], neighbours, sums), int(denominator))
    return l1, largest_gram(fmpq_mat([[gram[i, j] for j in kinds] for i in kinds]), neighbours)


def moves(columns: NDArray[Any], neighbours: Neighbours) -> Iterator[NDArray[Any]]:
    """The moves of one person, up to sign, as arrays of columns."""
    if neighbours == "add-remove":
        yield columns
        return
    for z in range(columns.shape[1] - 1):
        yield columns[:, z + 1 :] - columns[:, z : z + 1]


def _largest(columns: NDArray[Any], neighbours: Neighbours, measure: Callable[[NDArray[Any]], NDArray[Any]]) -> int:
    if columns.dtype != object and int(np.abs(columns).max(initial=0)) * 2 * columns.shape[0] >= 2**62:
        columns = columns.astype(object)
    return max((int(measure(moves).max()) for moves in moves(columns, neighbours) if moves.size), default=0)


def sums(moves: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.abs(moves).sum(axis=0))


def largest_gram(gram: fmpq_mat, neighbours: Neighbours) -> Fraction:
    """The largest squared length of a move, from the inner products of the columns: |a - b|^2 = aa + bb - 2 ab."""
    whole, denominator = gram.numer_denom()
    products = algebra.to_numpy(fmpz_mat(whole)).astype(object)
    own = np.diagonal(products)
    if neighbours == "add-remove":
        return Fraction(int(own.max()), int(denominator))
    return Fraction(int((own[:, None] + own[None, :] - 2 * products).max()), int(denominator))
