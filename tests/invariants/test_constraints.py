"""Constraints: frozen values that say what they are, and that refuse at once what no table could fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import HoldfastError, InvalidConstraint
from holdfast.invariants import areas, identity, linear, margin, subset, total
from holdfast.invariants.constraints import Areas, Constraint, Linear, Margin, Subset

from .reference import ODD_CODES, ODD_COLUMNS, refused

EXAMPLES: list[tuple[Constraint, str]] = [
    (total(), "total"),
    (margin("state"), "margin(state)"),
    (margin("county", "sex"), "margin(county, sex)"),
    (subset("age", ["18", "19"]), "subset(age in [18, 19])"),
    (subset("age", codes=[".5", "85+", "Ærø"]), "subset(age in [.5, 85+, Ærø])"),
    (subset("age", codes=["1", "2", "3", "4"], by=["county"]), "subset(age in [1, 2, 3, 4]) by county"),
    (subset("county", node="17"), "subset(county under 17)"),
    (subset("county", node="17", by=["sex", "age"]), "subset(county under 17) by sex, age"),
    (subset("age >= 18"), "subset(age >= 18)"),
    (subset("age >= 18", by=["county"]), "subset(age >= 18) by county"),
    (areas("block", {"Downtown": ["1", "2"]}), "areas(block: 1 sets)"),
    (areas("block", {"Downtown": ["1", "2"], "Harbour": ["2"]}, by=["sex"]), "areas(block: 2 sets) by sex"),
    (linear([[1, 2]]), "linear"),
]


@pytest.mark.parametrize(("constraint", "text"), EXAMPLES, ids=lambda value: str(value))
def test_a_constraint_reads_as_what_it_keeps(constraint: Constraint, text: str) -> None:
    assert str(constraint) == text


@pytest.mark.parametrize("constraint", [constraint for constraint, _ in EXAMPLES], ids=str)
def test_an_identity_is_the_same_constraint_of_the_other_kind(constraint: Constraint) -> None:
    other = identity(constraint, 3)
    assert constraint.kind == "kept"
    assert other.kind == "identity"
    assert type(other) is type(constraint)
    assert str(other) == str(constraint)
    assert other.values == 3
    assert {**vars(other), "kind": "kept", "values": None} == vars(constraint)
    assert vars(identity(other)) == vars(other)


@pytest.mark.parametrize("constraint", [constraint for constraint, _ in EXAMPLES], ids=str)
def test_constraints_are_frozen(constraint: Constraint) -> None:
    with pytest.raises(FrozenInstanceError):
        constraint.kind = "identity"  # type: ignore[misc]


def test_equal_words_make_equal_constraints() -> None:
    assert margin("a", "b") == margin("a", "b") != margin("b", "a")
    assert subset("a", ["1"]) == subset("a", codes=("1",)) != subset("a", ["2"])
    assert subset("a", node="1") != subset("a", codes=["1"])
    assert total() != identity(total(), 5) != identity(total(), 6)
    assert len({margin("a"), margin("a"), subset("a = 1"), subset("a = 1")}) == 2


@given(st.lists(st.sampled_from(ODD_COLUMNS), min_size=1, unique=True), st.lists(st.sampled_from(ODD_CODES), unique=True))
def test_columns_and_codes_are_kept_exactly_and_in_order(columns: list[str], codes: list[str]) -> None:
    assert margin(*columns).columns == tuple(columns)
    assert subset("c", codes, by=columns) == Subset("c", tuple(codes), None, None, tuple(columns))
    assert areas("c", {" x ": codes}, by=columns) == Areas("c", ((" x ", tuple(codes)),), tuple(columns))


def test_a_long_list_is_shortened_with_a_mark_of_its_own() -> None:
    """Two lists that agree on what is shown still have different names; the same list has the same name in every process."""
    codes = [str(number) for number in range(10)]
    assert str(subset("age", codes[:8])) == "subset(age in [0, 1, 2, 3, 4, 5, 6, 7])"
    assert str(subset("age", codes)) == "subset(age in [0, 1, 2, ...: 10 codes, 9b4af2])"
    assert str(subset("age", codes[:9])).startswith("subset(age in [0, 1, 2, ...: 9 codes, ")
    assert str(subset("age", codes)) == str(subset("age", tuple(codes)))
    assert len({str(subset("age", [*codes[:8], last])) for last in ("8", "9", "", "80")}) == 4


def test_later_changes_of_the_lists_given_change_nothing() -> None:
    codes, by, sets, names, values = ["1"], ["sex"], {"A": ["1"]}, ["n"], [3]
    listed, named, rows = subset("age", codes, by=by), areas("age", sets, by=by), linear([[1]], names, values)
    for given_list in (codes, by, sets["A"], names):
        given_list.append("2")
    values.append(4)
    sets["B"] = ["1"]
    assert listed == Subset("age", ("1",), None, None, ("sex",))
    assert named == Areas("age", (("A", ("1",)),), ("sex",))
    assert (rows.names, rows.values) == (("n",), (3,))


def test_total_is_the_margin_without_columns() -> None:
    assert total() == Margin(())


def test_declared_values_become_python_integers_of_any_size() -> None:
    values = linear([[1], [1], [1]], values=_as_any([np.int64(2**62), 10**30, np.uint8(7)])).values
    assert values == (2**62, 10**30, 7)
    assert {type(value) for value in values or ()} == {int}


def test_an_area_may_be_given_with_any_mapping_and_sets_may_overlap() -> None:
    assert areas("c", dict.fromkeys(["x", "y"], ("1", "2"))).sets == (("x", ("1", "2")), ("y", ("1", "2")))


def _as_any(value: object) -> Any:
    return value


REFUSED: list[tuple[str, Callable[[], object], tuple[str, ...]]] = [
    ("margin of nothing", lambda: margin(), ("at least one column", "total()")),
    ("margin twice", lambda: margin("a", "b", "a"), ("margin names a column twice", "a, b, a", "once")),
    ("margin of a number", lambda: margin(_as_any(1)), ("column names", "text", "margin('state')")),
    ("margin of a list", lambda: margin(_as_any(["a", "b"])), ("column names", "margin('a', 'b')")),
    ("codes and node", lambda: subset("a", ["1"], node="2"), ("codes or a node, not both",)),
    ("codes as one text", lambda: subset("a", "18"), ("must be a list", "Write ['18']")),
    ("codes as numbers", lambda: subset("a", _as_any([1, 2])), ("codes must all be texts", "Write '01', not 1")),
    ("codes with a number", lambda: subset("a", _as_any(["1", 2])), ("codes must all be texts",)),
    ("codes with None", lambda: subset("a", _as_any([None])), ("codes must all be texts",)),
    ("codes twice", lambda: subset("a", ["1", "2", "1"]), ("codes name a code twice", "once")),
    ("by as one text", lambda: subset("a", ["1"], by="county"), ("by takes column names", "by=['state']")),
    ("by twice", lambda: subset("a", ["1"], by=["b", "b"]), ("by names a column twice", "b, b")),
    ("by a number", lambda: subset("a >= 1", by=_as_any([3])), ("by takes column names",)),
    ("no areas", lambda: areas("a", {}), ("areas() needs at least one",)),
    ("area as one text", lambda: areas("a", {"Downtown": "12"}), ("area 'Downtown' must be a list", "Write ['12']")),
    ("area of numbers", lambda: areas("a", {"x": ["1"], "Harbour": _as_any([1])}), ("area 'Harbour'", "texts", "'01'")),
    ("area with a code twice", lambda: areas("a", {"x": ["1", "1"]}), ("area 'x'", "twice")),
    ("areas by one text", lambda: areas("a", {"x": ["1"]}, by="sex"), ("by takes column names",)),
    ("areas by twice", lambda: areas("a", {"x": ["1"]}, by=["s", "s"]), ("by names a column twice",)),
]


@pytest.mark.parametrize(("work", "parts"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_no_table_could_fit_is_refused_at_once(work: Callable[[], object], parts: tuple[str, ...]) -> None:
    refused(work, *parts)


def test_the_refusal_is_documented_and_also_a_value_error() -> None:
    assert issubclass(InvalidConstraint, HoldfastError)
    assert issubclass(InvalidConstraint, ValueError)
    assert (InvalidConstraint.code, InvalidConstraint.exit_code) == ("invalid-constraint", 6)


WRONG_TYPES: list[tuple[str, Callable[[], object]]] = [
    ("a value that is no whole number", lambda: linear([[1]], values=_as_any([1.5]))),
    ("a value of NaN", lambda: linear([[1]], values=_as_any([float("nan")]))),
    ("a value that is a text", lambda: linear([[1]], values=_as_any(["3"]))),
    ("values without a list", lambda: linear([[1]], values=_as_any(5))),
    ("names as one text", lambda: linear([[1], [1]], names="ab")),
    ("names that are numbers", lambda: linear([[1]], names=_as_any([1]))),
    ("names without a list", lambda: linear([[1]], names=_as_any(5))),
    ("identity of the total without a value", lambda: identity(total())),
    ("identity of a margin without values", lambda: identity(margin("sex"))),
    ("identity with a value that is no whole number", lambda: identity(margin("sex"), _as_any(1.5))),
    ("identity with a truth value", lambda: identity(margin("sex"), _as_any(True))),
    ("identity with two sets of values", lambda: identity(linear([[1]], values=[3]), [4])),
    ("identity of a text", lambda: identity(_as_any("total"))),
    ("identity of a function", lambda: identity(_as_any(total))),
    ("a condition that is no text", lambda: subset(_as_any(5))),
    ("a column that is no text", lambda: subset(_as_any(["age"]), ["1"])),
    ("a node that is no text", lambda: subset("age", node=_as_any(["17"]))),
    ("codes without a list", lambda: subset("age", _as_any(5))),
    ("by in no order", lambda: subset("age >= 1", by=_as_any({"a", "b"}))),
    ("by without a list", lambda: subset("age >= 1", by=_as_any(5))),
    ("areas without names", lambda: areas("age", _as_any([["1"]]))),
    ("an area named by a number", lambda: areas("age", _as_any({1: ["1"]}))),
    ("areas of a column that is no text", lambda: areas(_as_any(["age"]), {"x": ["1"]})),
]


@pytest.mark.parametrize("work", [case[1] for case in WRONG_TYPES], ids=[case[0] for case in WRONG_TYPES])
def test_wrong_types_are_refused_at_once(work: Callable[[], object]) -> None:
    refused(work)


UNORDERED: list[tuple[str, Callable[[], object]]] = [
    ("codes in no order", lambda: subset("age", _as_any({"1", "2"}))),
    ("an area in no order", lambda: areas("age", {"x": _as_any(frozenset(["1", "2"]))})),
    ("codes that can be read only once", lambda: subset("age", _as_any(iter(["1", "2"])))),
]


@pytest.mark.parametrize("work", [case[1] for case in UNORDERED], ids=[case[0] for case in UNORDERED])
def test_codes_in_no_order_are_refused_because_names_would_differ_between_runs(work: Callable[[], object]) -> None:
    refused(work, "must be a list")


def test_a_matrix_is_not_looked_at_before_there_is_a_table() -> None:
    assert isinstance(linear(np.array([[0.5]])), Linear)
