"""Sensitivities of linear queries against all pairs in fractions and balls; what is assumed where only some are stated."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InexactParameter, InvalidParameter, NothingLeft
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.lattices.gram_schmidt import gram_schmidt
from holdfast.research.subspace import Query
from holdfast.research.subspace.spaces import InvariantSpace, linear_sensitivities
from holdfast.subspace import Sensitivities, same_invariants_sensitivities
from tests.examples import examples

Rows = list[list[Fraction]]

entries = st.fractions(-3, 3, max_denominator=3)


def moves(matrix: Rows, neighbours: str) -> Rows:
    columns = [list(column) for column in zip(*matrix, strict=True)]
    if neighbours == "add-remove":
        return columns
    return [[a - b for a, b in zip(first, second, strict=True)] for first, second in combinations(columns, 2)]


def in_basis_l1(C: InvariantSpace, v: list[Fraction]) -> Fraction:
    """An upper end of |Q^T v|_1 for the exact Gram-Schmidt basis that the floats stand for."""
    vectors, denominator = C.space.vectors.numer_denom()
    assert int(denominator) >= 1
    found = gram_schmidt(vectors.transpose())
    with precision(200):
        total = arb(0)
        for i, square in enumerate(found.squared_lengths):
            own = sum((Fraction(int(b), found.determinants[i]) * x for b, x in zip(found.integral_vectors[i], v, strict=True)), Fraction(0))
            total += abs(ball(own)) / ball(square).sqrt()
        return enclosure(total).upper


class TestLinear:
    @settings(max_examples=examples(40))
    @given(
        st.lists(st.lists(entries, min_size=4, max_size=4), min_size=3, max_size=3),
        st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), max_size=2),
        st.sampled_from(["replace-one", "add-remove"]),
    )
    def test_all_four_against_all_pairs(
        self, matrix: Rows, rows: list[list[int]], neighbours: Literal["replace-one", "add-remove"]
    ) -> None:
        C = InvariantSpace(rows, 3)
        steps = moves(matrix, neighbours)
        free = [C.space.project(step) for step in steps]
        if not any(map(any, free)):
            with pytest.raises(InvalidParameter if not any(map(any, steps)) else NothingLeft, match="nothing"):
                linear_sensitivities(matrix, C, neighbours)
            return
        found = linear_sensitivities(matrix, C, neighbours)
        assert found.l1 == max(sum(map(abs, step)) for step in steps)
        assert found.l2_squared == max(sum(x * x for x in step) for step in steps)
        assert found.projected_l2_squared == max(sum(x * x for x in step) for step in free)
        assert found.projected_l2_squared <= found.l2_squared
        exact = max(in_basis_l1(C, step) for step in steps)
        assert found.projected_l1 is not None
        assert 0 <= found.projected_l1 - exact <= exact / 10**9  # rounded up, and not by much
        stated = Query(C, Sensitivities(l1=found.l1, l2_squared=found.l2_squared))
        assert stated.projected_l1 >= found.projected_l1 * (1 - Fraction(1, 10**9))  # what holds for every query of this l1
        assert stated.projected_l2_squared == found.l2_squared

    def test_long_numbers_do_not_wrap_around(self) -> None:
        found = linear_sensitivities([[2**62, -(2**62)], [0, 1]], InvariantSpace([], 2))
        assert (found.l1, found.l2_squared) == (Fraction(2**63 + 1), Fraction(2**126 + 1))

    @pytest.mark.parametrize(
        ("matrix", "rows", "kind", "message"),
        [
            ([[1, 1], [2, 2]], [], InvalidParameter, "All columns of the query are alike"),
            ([[1], [2]], [], InvalidParameter, "All columns of the query are alike"),
            ([[1, 0], [0, 0]], [[1, 0]], NothingLeft, "publish all that one person can change"),
            ([[1, 0]], [[1, 1]], InvalidParameter, "The query has 1 answers, the invariants are over 2"),
            (np.array([[0.5, 1], [1, 0]]), [[1, 1]], InexactParameter, "an entry of query_matrix must be exact"),
        ],
    )
    def test_bad_queries(self, matrix: Any, rows: Any, kind: type[Exception], message: str) -> None:
        with pytest.raises(kind, match=message):
            linear_sensitivities(matrix, InvariantSpace(rows, 2))


class TestSameInvariants:
    @settings(max_examples=examples(60))
    @given(
        st.lists(st.lists(st.integers(-1, 1).map(Fraction), min_size=5, max_size=5), min_size=3, max_size=3),
        st.lists(st.lists(st.integers(-1, 1), min_size=3, max_size=3), max_size=2),
        st.sampled_from(["replace-one", "add-remove"]),
    )
    def test_against_all_neighbours_with_the_same_invariants(
        self, matrix: Rows, rows: list[list[int]], neighbours: Literal["replace-one", "add-remove"]
    ) -> None:
        def unseen(among: str) -> Rows:
            return [m for m in moves(matrix, among) if any(m) and not any(sum(c * x for c, x in zip(r, m, strict=True)) for r in rows)]

        C, steps, replaced = InvariantSpace(rows, 3), unseen(neighbours), unseen("replace-one")
        if not steps:
            with pytest.raises((InvalidParameter, NothingLeft), match=r"for nobody|are alike"):
                same_invariants_sensitivities(matrix, C, neighbours)
            return
        found = same_invariants_sensitivities(matrix, C, neighbours)
        assert found.neighbours == neighbours
        twice = 1 if neighbours == "replace-one" else 2  # what a ledger takes for a person who is replaced
        assert found.l1 == max([*(sum(map(abs, v)) for v in steps), *(sum(map(abs, v)) / twice for v in replaced)])
        assert found.l2_squared == max([*(sum(x * x for x in v) for v in steps), *(sum(x * x for x in v) / twice**2 for v in replaced)])

    @pytest.mark.parametrize(
        ("rows", "neighbours", "kind", "message"),
        [
            ([["0.37", "1.21"]], "replace-one", NothingLeft, "No person can change alone.*for nobody.*Keep fewer invariants"),
            ([["0.37", "1.21"]], "add-remove", NothingLeft, "No person can come or go alone.*for nobody. Keep fewer invariants"),
            ([[1, 1]], "add-remove", NothingLeft, "No person can come or go alone.*Take neighbours='replace-one'"),
            ([[1, 1, 1]], "replace-one", InvalidParameter, "The query has 2 answers, the invariants are over 3"),
        ],
    )
    def test_a_promise_for_nobody_is_refused(self, rows: Any, neighbours: Any, kind: type[Exception], message: str) -> None:
        with pytest.raises(kind, match=message):
            same_invariants_sensitivities([[1, 0], [0, 1]], InvariantSpace(rows), neighbours)

    def test_columns_that_are_alike(self) -> None:
        with pytest.raises(InvalidParameter, match="All columns of the query are alike"):
            same_invariants_sensitivities([[1, 1], [2, 2]], InvariantSpace([], 2))


class TestStated:
    @pytest.mark.parametrize(
        ("value", "kind", "message"),
        [
            (0, InvalidParameter, "l1 is zero: then no person changes any answer"),
            (-1, InvalidParameter, "must be greater than zero"),
            (float("inf"), InexactParameter, "finite exact number"),
            ("inf", InvalidParameter, "decimal or rational number"),
            (0.5, InexactParameter, "Write the string '0.5'"),
        ],
    )
    def test_bad_sensitivities(self, value: Any, kind: type[Exception], message: str) -> None:
        with pytest.raises(kind, match=message):
            Sensitivities(l1=value)

    def test_unknown_neighbours(self) -> None:
        with pytest.raises(InvalidParameter, match="neighbours must be one of"):
            Sensitivities(neighbours="any")  # type: ignore[arg-type]
