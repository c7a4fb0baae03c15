"""Exact subspaces and invariants: algebra in fractions, the floats that draw, and refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import fmpz
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InexactParameter, InvalidParameter, NothingLeft, RequestTooLarge
from holdfast.research.subspace.spaces import InvariantSpace, Subspace, to_floats

entries = st.fractions(-3, 3, max_denominator=4)
rows = st.lists(st.lists(entries, min_size=4, max_size=4), min_size=1, max_size=3)


def inner(a: Any, b: Any) -> Fraction:
    return sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(0))


class TestSubspace:
    @settings(max_examples=25)
    @given(rows, rows)
    def test_algebra(self, first: list[list[Fraction]], second: list[list[Fraction]]) -> None:
        V, W = Subspace.span(first, 4), Subspace.span(second, 4)
        assert V.contains(V & W)
        assert V.complement().complement() == V
        assert V.dimension + V.complement().dimension == 4
        assert (V & V.complement()).dimension == 0
        joined = Subspace.span([*first, *second], 4)  # dimension formula
        assert V.dimension + W.dimension == joined.dimension + (V & W).dimension
        assert joined.contains(V)
        assert V.contains(joined) == (V.dimension == joined.dimension)
        assert hash(V) == hash(Subspace.span(first[::-1], 4))
        assert V.beside(W).dimension == V.dimension + W.dimension

    @settings(max_examples=25)
    @given(rows, st.lists(entries, min_size=4, max_size=4))
    def test_projection(self, spanning: list[list[Fraction]], v: list[Fraction]) -> None:
        """Pi v lies in V, and v - Pi v is at a right angle to all of V."""
        V = Subspace.span(spanning, 4)
        found = V.project(v)
        assert V.contains(Subspace.span([found], 4))
        assert all(inner(row, [a - b for a, b in zip(v, found, strict=True)]) == 0 for row in spanning)

    def test_fixed_cells_are_those_that_no_vector_moves(self) -> None:
        V = InvariantSpace([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 2, 2]]).space
        assert V.fixed_cells == (0, 1)
        assert {i for i in range(4) if all(vector[i] == 0 for vector in V.vectors.tolist())} == {0, 1}

    def test_other_numbers_of_answers_are_not_compared(self) -> None:
        with pytest.raises(InvalidParameter, match="of 3 and of 4 answers"):
            Subspace.whole(3).contains(Subspace.whole(4))


class TestInvariants:
    def test_dependent_and_rational_rows(self) -> None:
        C = InvariantSpace([["1/2", "1/2", 0], [1, 1, 0], ["0.25", "0.25", 0]])
        assert (C.rank, C.free, C.rows.entries()) == (1, 2, [fmpz(1), fmpz(1), fmpz(0)])
        assert InvariantSpace(np.ones((2, 3), dtype=int)).rank == InvariantSpace([np.ones(3, dtype=int)]).rank == 1
        assert InvariantSpace([], 3).free == 3

    @pytest.mark.parametrize("given", [[[1, 1, 1, 1]], [[1, 0, 1, 0], [0, 1, 1, 0]], [["1/3", -2, 0, 5], [1, 1, 1, 0], [0, 1, 0, 0]]])
    def test_the_floats_are_an_orthonormal_basis_of_the_null_space(self, given: list[list[Any]]) -> None:
        C = InvariantSpace(given)
        matrix = np.array([[float(Fraction(x)) for x in row] for row in given])
        size = 64 * 2.0**-52  # four answers: far more than the rounding of a QR step
        assert np.abs(C.basis.T @ C.basis - np.eye(C.free)).max() < size
        assert np.abs(matrix @ C.basis).max() < size * np.abs(matrix).max()
        exact = np.array([[float(x) for x in C.space.project([Fraction(int(i == j)) for i in range(4)])] for j in range(4)])
        assert np.abs(C.project(np.eye(4)) - exact).max() < size
        assert np.abs(C.basis @ C.basis.T - exact).max() < size

    @pytest.mark.parametrize("row", [[1, 1, 1, 1, 1], [1, 0, 1, 0, 0], [0, 3, -1, 2, 2]])
    def test_the_basis_is_gram_schmidt_of_the_echelon_basis(self, row: list[int]) -> None:
        """Column k is a combination of the first k vectors, with a positive k-th: recorded, as l1 sensitivities depend on it."""
        C = InvariantSpace([row])
        triangle = np.linalg.lstsq(to_floats(C.space.vectors).T, C.basis, rcond=None)[0]
        assert np.abs(np.tril(triangle, -1)).max() < 1e-12 < np.diag(triangle).min()
        assert C.basis_name.startswith("Gram-Schmidt")

    @pytest.mark.parametrize(
        ("given", "kind", "message"),
        [
            (np.eye(2, dtype=int), NothingLeft, "fix all 2 answers: C has 2 independent rows, and no null space is left"),
            ([[1, 2], [3, "1/7"]], NothingLeft, "no null space"),
            ([[0.5, 1]], InexactParameter, "an entry of invariants must be exact.*Write the string '0.5'"),
            (np.ones((1, 2)), InexactParameter, "must be exact"),
            ([["sqrt(2)", 1]], InvalidParameter, "must be a decimal or rational number"),
            ([[float("nan"), 1]], InexactParameter, "finite exact number"),
            ([[1, 2], [1]], InvalidParameter, "rows of one length"),
            ([[]], InvalidParameter, "rows of one length"),
            ("11", InvalidParameter, "a list of rows"),
            ([1, 1], InvalidParameter, "a list of rows"),
            (np.zeros((1001, 1000), dtype=int), RequestTooLarge, r"State kept margins as hf\.margin"),
        ],
    )
    def test_bad_input(self, given: Any, kind: type[Exception], message: str) -> None:
        with pytest.raises(kind, match=message):
            InvariantSpace(given)

    def test_answers_of_another_number(self) -> None:
        with pytest.raises(InvalidParameter, match="over 2 answers"):
            InvariantSpace([[1, 1]]).differing_row([1], [1, 2])
