"""Queries in floating point: the moves of one person, and what is asked for where a sensitivity is missing."""

from __future__ import annotations

from fractions import Fraction

import pytest

from holdfast.errors import InvalidParameter
from holdfast.research.subspace import Query
from holdfast.research.subspace.spaces import InvariantSpace
from holdfast.subspace import Sensitivities


def test_neighbour_vectors() -> None:
    query = Query.linear([[1, 0, 0], [0, 2, 0]], InvariantSpace([], 2))
    assert query.neighbour_vectors().T.tolist() == [[1, -2], [1, 0], [0, 2]]
    assert Query.linear([[1, 0], [0, 2]], InvariantSpace([], 2), "add-remove").neighbour_vectors().tolist() == [[1, 0], [0, 2]]


def test_what_is_missing_is_asked_for() -> None:
    query = Query(InvariantSpace([[1, 1]]), Sensitivities(l1=Fraction(1)))
    with pytest.raises(InvalidParameter, match=r"needs the squared l2 sensitivity.*Sensitivities\(l2_squared=\.\.\.\)"):
        _ = query.projected_l2_squared
    with pytest.raises(InvalidParameter, match="needs a linear query"):
        query.neighbour_vectors()
