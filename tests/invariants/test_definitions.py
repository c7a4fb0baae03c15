"""Kept constraints as plain values and back: the same rows, the same names, whatever is given instead is refused in words."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidConstraint
from holdfast.invariants.constraints import Constraint, constraint_of, definition
from holdfast.invariants.rows import compile_rows

TREE = hf.Hierarchy.from_prefixes(["17031", "17043", "18001"], [2], levels=["state", "county"])
UNIVERSE = hf.Universe.product({"county": ["17031", "17043", "18001"], "age": ["1", "20"]}, hierarchies={"county": TREE})
MATRIX = [[2, -3, 0, 0, 1, 0], [0, 0, 1, 1, 0, 0]]
CONSTRAINTS: list[Constraint] = [
    hf.total(),
    hf.margin("county"),
    hf.margin("age", "county"),
    hf.subset("county", ["17043", "18001"], by=["age"]),
    hf.subset("county", node="17"),
    hf.subset("age >= 18", by=["county"]),
    hf.areas("county", {"b": ["18001", "17031"], "a": ["17031"]}, by=["age"]),
    hf.linear(MATRIX, ["first", "second"], [4, -5]),
    hf.linear(np.array(MATRIX)),
    hf.identity(hf.subset("age = 1 and county = 17031")),
    hf.identity(hf.margin("age"), [4, 5]),
    hf.identity(hf.areas("county", {"b": ["18001", "17031"], "a": ["17031"]}), 7),
    hf.identity(hf.linear(MATRIX)),
    hf.identity(hf.linear(MATRIX, values=[1, 2])),
]


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_there_and_back_gives_the_same_rows_and_names(constraint: Constraint) -> None:
    written = json.loads(json.dumps(definition(constraint, UNIVERSE)))
    bare = hf.Universe.product(dict(UNIVERSE.codes))  # a reader of the card has no tree
    back = constraint_of(written)
    before, after = compile_rows(UNIVERSE, [constraint]), compile_rows(bare, [back])
    assert list(before.names()) == list(after.names())
    assert before.kinds() == after.kinds()
    assert [rows.values for rows in before.rows] == [rows.values for rows in after.rows]
    assert (before.matrix() != after.matrix()).nnz == 0
    assert str(back) == str(constraint)
    assert definition(back, bare) == written


def test_declared_values_travel_along() -> None:
    back = constraint_of(definition(CONSTRAINTS[7], UNIVERSE))
    assert back.values == (4, -5)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(range(len(CONSTRAINTS))), st.integers(0, 10), plain)
def test_a_changed_definition_is_a_constraint_or_refused(which: int, place: int, instead: Any) -> None:
    changed = definition(CONSTRAINTS[which], UNIVERSE)
    field = list(changed)[place % len(changed)]
    changed[field] = instead
    try:
        rows = compile_rows(UNIVERSE, [constraint_of(changed)])
    except InvalidConstraint:
        return
    assert rows.constraint_of == (1,) * len(rows.rows)
    assert definition(constraint_of(changed), UNIVERSE)["type"] == changed["type"]


@pytest.mark.parametrize("given", [{}, {"kind": "kept"}, {"kind": "other", "type": "margin", "columns": []}, {"kind": "kept", "type": "x"}])
def test_what_is_no_definition_is_refused_in_words(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidConstraint, match=r"The card may have been changed"):
        constraint_of(given)
