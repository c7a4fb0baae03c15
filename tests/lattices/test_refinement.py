"""Which tables are proved to hold different records; the refinement itself is tested with what it is for, in test_joint.py."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.lattices.refinement import are_disjoint
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.universe import Universe

COUNTIES = Hierarchy.from_prefixes(["17001", "17003", "18001"], [2, 5], levels=["state", "county"])


def coded(**codes: str) -> Universe:
    return Universe.product({column: list(listed) for column, listed in codes.items()})


def test_disjoint_only_where_it_is_proved() -> None:
    left, right = Universe.listed({"x": ["a", "b"], "y": ["0", "1"]}), Universe.listed({"y": ["1", "0"], "x": ["a", "b"]})
    assert are_disjoint(left, right) is True
    assert are_disjoint(left, left) is False
    assert are_disjoint(left, coded(x="ab")) is None
    ages, groups = coded(age="01"), Universe.product({"age": ["0 to 1"]})
    assert are_disjoint(ages, groups) is None, "other codes may hold the same people"
    assert are_disjoint(ages, groups, same_coding=True) is True, "the caller vouches"
    tree = Universe.product({"area": COUNTIES})
    assert are_disjoint(tree, Universe.product({"area": ["17"]}), same_coding=True) is None, "17 holds counties of the other"


@given(st.sets(st.tuples(st.sampled_from("abc"), st.sampled_from("01")), min_size=1), st.data())
def test_disjoint_agrees_with_the_cells(first: set[tuple[str, str]], data: st.DataObject) -> None:
    second = data.draw(st.sets(st.tuples(st.sampled_from("abc"), st.sampled_from("01")), min_size=1))
    a, b = (Universe.listed({"x": [x for x, _ in sorted(s)], "y": [y for _, y in sorted(s)]}) for s in (first, second))
    assert are_disjoint(a, b, same_coding=True) is first.isdisjoint(second)
    assert are_disjoint(a, b) in (None, first.isdisjoint(second))
