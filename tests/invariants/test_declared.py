"""Declared values: a table has them or it does not, decided as integers and told by constraint only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.invariants import compile_rows
from holdfast.invariants.constraints import Constraint
from holdfast.invariants.rows import broken_constraints, broken_identities

UNIVERSE = hf.Universe.product({"a": ["x", "y", "z"], "b": ["p", "q"]})
BUILDERS: list[Any] = [
    lambda values: hf.identity(hf.total(), values),
    lambda values: hf.identity(hf.margin("b"), values),
    lambda values: hf.identity(hf.subset("a", ["x", "z"], by=["b"]), values),
    lambda values: hf.identity(hf.areas("a", {"one": ["x", "y"], "two": ["y", "z"]}), values),
    lambda values: hf.identity(hf.linear([[1, -1, 0, 0, 0, 2], [0, 0, 1, 0, -1, 0]]), values),
]


@st.composite
def declared(draw: st.DrawFn) -> Constraint:
    build = draw(st.sampled_from(BUILDERS))
    rows = len(compile_rows(UNIVERSE, [build(0)]))
    made: Constraint = build(draw(st.integers(0, 4) | st.lists(st.integers(-2, 5), min_size=rows, max_size=rows)))
    return made


@given(
    st.lists(declared(), max_size=3), st.lists(st.integers(0, 3), min_size=6, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6)
)
def test_broken_constraints_and_sums_are_those_of_the_dense_matrix(keep, counts, published) -> None:
    kept = compile_rows(UNIVERSE, [hf.margin("a"), *keep])
    broken, sums = set(), []
    for number, constraint in enumerate(keep, 2):
        alone = compile_rows(UNIVERSE, [constraint])
        matrix = alone.matrix().toarray()
        values = constraint.values if isinstance(constraint.values, tuple) else (constraint.values,) * len(matrix)
        for row, value, name in zip(matrix.tolist(), values, alone.names(), strict=True):
            if sum(c * n for c, n in zip(row, counts, strict=True)) != value:
                broken.add(number)
                if all(shown for c, shown in zip(row, published, strict=True) if c):
                    sums.append(name)
    given_counts = np.array(counts, dtype=np.int64)
    assert {number for number, _ in broken_constraints(kept, given_counts)} == broken
    told = list(broken_identities(kept, given_counts, np.array(published)))
    assert [line.rsplit(": ", 1)[0] for line in told] == sums


@pytest.mark.parametrize("value", [2**62, 2**63, 10**30, -(10**30)])
def test_a_value_that_no_table_can_have(value) -> None:
    kept = compile_rows(UNIVERSE, [hf.identity(hf.total(), value)])
    assert [number for number, _ in broken_constraints(kept, np.full(6, 3, dtype=np.int64))] == [1]
