"""Conditions: compared with a slow evaluation cell by cell, and refused in one clear sentence where they cannot be read."""

from __future__ import annotations

import builtins
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidConstraint
from holdfast.invariants import subset
from holdfast.invariants.conditions import cells_meeting
from holdfast.tables.universe import Universe
from tests.examples import examples

from .reference import Cell, Small, compiled, dense, refused, small_listed, small_product

# --- Random conditions ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compare:
    column: str
    symbol: str
    value: int | str


@dataclass(frozen=True)
class In:
    column: str
    values: tuple[int | str, ...]


@dataclass(frozen=True)
class Not:
    inner: Node


@dataclass(frozen=True)
class Both:
    left: Node
    right: Node


@dataclass(frozen=True)
class Either:
    left: Node
    right: Node


Node: TypeAlias = Compare | In | Not | Both | Either

SYMBOLS = ["=", "==", "!=", "<>", "<", "<=", ">", ">="]
INTEGERS = {"age": ["9", "10", "01", "-3", "+7", "100"], "group quarters": ["0", "-0", "1"]}
TEXTS = {"band": ["85+", "100", "9", "O'Neil", ""], "Ort": ["Ærø", " "], "and": ["x", "'"]}
BINDS = {Either: 1, Both: 2, Not: 3, Compare: 4, In: 4}

integers = st.integers(-5, 12) | st.sampled_from([99, 100, 101, -(2**70), 2**70])
texts = st.sampled_from([code for codes in TEXTS.values() for code in codes] + ["86", "O''Neil", "Aero", "é", "~", "in", "(", "a\nb"])


@st.composite
def comparisons(draw: st.DrawFn) -> Node:
    column = draw(st.sampled_from([*INTEGERS, *TEXTS]))
    values: st.SearchStrategy[int | str] = integers if column in INTEGERS else texts
    if draw(st.booleans()):
        return Compare(column, draw(st.sampled_from(SYMBOLS)), draw(values))
    return In(column, tuple(draw(st.lists(values, min_size=1, max_size=3))))


def _deeper(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.builds(Not, inner) | st.builds(Both, inner, inner) | st.builds(Either, inner, inner)


nodes = st.recursive(comparisons(), _deeper, max_leaves=6)


def holds(node: Node, cell: Cell) -> bool:
    """What the condition says of one cell."""
    if isinstance(node, Not):
        return not holds(node.inner, cell)
    if isinstance(node, Both):
        return holds(node.left, cell) and holds(node.right, cell)
    if isinstance(node, Either):
        return holds(node.left, cell) or holds(node.right, cell)
    code: int | str = int(cell[node.column]) if node.column in INTEGERS else cell[node.column]
    if isinstance(node, In):
        return code in node.values
    below, equal = code < node.value, code == node.value  # type: ignore[operator]
    if node.symbol in ("=", "=="):
        return equal
    if node.symbol in ("!=", "<>"):
        return not equal
    return bool({"<": below, "<=": below or equal, ">": not below and not equal, ">=": not below}[node.symbol])


@st.composite
def renderings(draw: st.DrawFn, node: Node) -> str:
    """One way of writing a condition: odd spacing, quoted names, capital keywords, parentheses where needed and where not."""

    def word(text: str) -> str:
        return draw(st.sampled_from([text, text.upper(), text.capitalize()]))

    def name(column: str) -> str:
        plain = re.fullmatch(r"[^\W\d]\w*", column) and column != "and"
        return column if plain and draw(st.booleans()) else f'"{column}"'

    def literal(value: int | str) -> str:
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        sign = "-" if value < 0 else draw(st.sampled_from(["", "+"]))
        return sign + draw(st.sampled_from(["", "00"])) + str(abs(value))

    def tokens(node: Node, binding: int) -> list[str]:
        if BINDS[type(node)] < binding or draw(st.integers(0, 4)) == 4:
            return ["(", *tokens(node, 1), ")"]
        if isinstance(node, Not):
            return [word("not"), *tokens(node.inner, 3)]
        if isinstance(node, Both):
            return [*tokens(node.left, 2), word("and"), *tokens(node.right, 2)]
        if isinstance(node, Either):
            return [*tokens(node.left, 1), word("or"), *tokens(node.right, 1)]
        if isinstance(node, Compare):
            return [name(node.column), node.symbol, literal(node.value)]
        commas = [part for value in node.values for part in (",", literal(value))]
        return [name(node.column), word("in"), "(", *commas[1:], ")"]

    written = draw(st.sampled_from(["", " ", "\n"]))
    for token in tokens(node, 1):
        touching = bool(written) and re.match(r"\w", written[-1]) and re.match(r"\w", token)
        written += draw(st.sampled_from([" ", "  ", "\t", "\n"] if touching else ["", " ", "\t "])) + token
    return written + draw(st.sampled_from(["", " ", "\n"]))


CELLS = small_product({**INTEGERS, **TEXTS})


@settings(max_examples=examples(300))
@given(st.data())
def test_conditions_hold_where_a_slow_evaluation_says_so(data: st.DataObject) -> None:
    node = data.draw(nodes)
    text = data.draw(renderings(node))
    assert cells_meeting(text, CELLS.universe).tolist() == [holds(node, cell) for cell in CELLS.cells], text


@settings(max_examples=examples(40))
@given(st.data())
def test_conditions_hold_on_listed_cells_too(data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(CELLS.cells) - 1), min_size=1, max_size=30, unique=True))
    rows = [tuple(CELLS.cells[number].values()) for number in numbers]
    # Which columns hold integers follows from the codes that are listed: one of each text column is no integer.
    rows += [("9", "0", "85+", "Ærø", "x")] if ("9", "0", "85+", "Ærø", "x") not in rows else []
    listed = small_listed(CELLS.columns, rows)
    node = data.draw(nodes)
    mask = cells_meeting(data.draw(renderings(node)), listed.universe)
    assert mask.tolist() == [holds(node, cell) for cell in listed.cells]


def test_a_subset_with_a_condition_has_the_cells_that_meet_it() -> None:
    node = Both(Compare("age", ">=", 9), Not(Compare("band", "=", "100")))
    kept = compiled(CELLS.universe, subset("age >= 9 and not band = '100'"))
    assert dense(kept) == [[int(holds(node, cell)) for cell in CELLS.cells]]


# --- How codes compare ----------------------------------------------------------------------------------------------------------------


def chosen(codes: list[str], condition: str, column: str = "c") -> list[str]:
    """The codes of a single column that meet a condition."""
    mask = cells_meeting(condition, Universe.product({column: codes}))
    return [code for code, meets in zip(codes, mask.tolist(), strict=True) if meets]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("c < 10", ["9", "01", "1", "-2"]),
        ("c = 1", ["01", "1"]),
        ("c = 001", ["01", "1"]),
        ("c = +1", ["01", "1"]),
        ("c in (1, 9)", ["9", "01", "1"]),
        ("c != 1", ["9", "10", "-2"]),
        ("c <> 1", ["9", "10", "-2"]),
        ("c < 0", ["-2"]),
        ("c >= -2", ["9", "10", "01", "1", "-2"]),
        ("c>-2", ["9", "10", "01", "1"]),
        ("c = 2", []),
        ("c < 99999999999999999999999", ["9", "10", "01", "1", "-2"]),
    ],
)
def test_codes_that_are_all_integers_compare_as_integers(condition: str, expected: list[str]) -> None:
    assert chosen(["9", "10", "01", "1", "-2"], condition) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("c >= '85'", ["85+", "9"]),
        ("c < '85'", ["100", "01"]),
        ("c = '85+'", ["85+"]),
        ("c = '1'", []),
        ("c = '01'", ["01"]),
        ("c in ('100', '85+')", ["85+", "100"]),
        ("not c < '9'", ["9"]),
    ],
)
def test_other_codes_compare_as_text_and_the_literal_is_quoted(condition: str, expected: list[str]) -> None:
    assert chosen(["85+", "100", "9", "01"], condition) == expected


@pytest.mark.parametrize(
    "codes", [["1", "2", ""], ["1", " 2"], ["1", "2 "], ["1", "1.0"], ["1", "1e3"], ["1", "1_0"], ["1", "7²"], ["1", "2\n"]]
)
def test_one_code_that_is_no_integer_makes_the_column_text(codes: list[str]) -> None:
    assert chosen(codes, "c = '1'") == ["1"]
    refused(lambda: chosen(codes, "c = 1"), repr(codes[-1]), "= '1'")


@pytest.mark.parametrize("condition", ["c >= 85", "c in (85)", "c in ('100', 85)", "not (c > 'a' or c = 85)"])
def test_a_bare_number_on_a_text_column_is_refused_with_advice(condition: str) -> None:
    message = refused(lambda: chosen(["85+", "100"], condition), "column 'c'", "'85+'", "compare as text", "'85'", "list the codes")
    assert "'100'" not in message.replace(repr(condition), "")  # the example is a code that is no integer


@pytest.mark.parametrize("condition", ["c > ''", "c = nine", "c < 'x'"])
def test_a_text_on_an_integer_column_is_refused_with_advice(condition: str) -> None:
    refused(lambda: chosen(["9", "10"], condition), "column 'c' holds integers", "compare it with a number")


def test_a_code_in_quotes_on_an_integer_column() -> None:
    """county = '010' was refused as it stood beside SEX = 1, and told nothing of what to write."""
    for condition in ("c = '010'", "c = 10", "c in (10)", "c in ('010')", "not c != '010'"):
        assert chosen(["9", "010", "11"], condition) == ["010"]
    assert chosen(["9", "010", "11"], "c in (9, '010')") == ["9", "010"]
    refused(lambda: chosen(["9", "010"], "c = '10'"), "'10' is not a code of the column 'c'", "Did you mean '010'?")
    refused(lambda: chosen(["10", "010"], "c = '10'"), "the codes '10' and '010' of column 'c' are one number", "List the codes")
    refused(lambda: chosen(["9", "010"], "c >= '010'"), "column 'c' holds integers: write >= 10")
    refused(lambda: chosen(["9", "010"], 'c = "9"'), "column 'c' holds integers: write = 9")


def test_words_of_other_languages_are_refused_with_ours() -> None:
    refused(lambda: chosen(["F", "M"], "c = 'F' && c = 'M'"), "Join comparisons with and, or, not.")
    refused(lambda: chosen(["F", "M"], "c LIKE 'F%'"), "found 'LIKE'. Write =, !=, <, <=, >, >= or in ('a', 'b').")


def test_an_unquoted_text_is_refused_with_the_text_to_write() -> None:
    refused(lambda: chosen(["F", "M"], "c != F"), "write != 'F'")


@pytest.mark.parametrize("code", ["O'Neil", "'", "''", "'quoted'", 'dou"ble', "a'b''c", "x = 'y'", "(", "and", "Ærø", "  ", "a\nb", ""])
def test_any_code_can_be_written_by_doubling_its_quotes(code: str) -> None:
    literal = "'" + code.replace("'", "''") + "'"
    assert chosen([code, "other"], f"c = {literal}") == [code]
    assert chosen([code, "other"], f"c in ({literal})") == [code]
    assert chosen([code, "other"], f"not c={literal}") == ["other"]


@pytest.mark.parametrize("column", ["and", "or", "not", "in", "AND", "group quarters", "Gemeinde-Nr.", "18", "a'b", "(", "x; y", "<="])
def test_any_column_name_can_be_quoted(column: str) -> None:
    assert chosen(["1", "2"], f'"{column}" = 2', column) == ["2"]
    assert chosen(["1", "2"], f'not "{column}" in (2) and "{column}">0', column) == ["1"]


@pytest.mark.parametrize("column", ["age", "_a", "Ærø", "北京", "age_2", "notable", "order", "18plus"])
def test_a_name_of_letters_digits_and_underscores_needs_no_quotes(column: str) -> None:
    assert chosen(["1", "2"], f"{column}=2", column) == ["2"]
    assert chosen(["1", "2"], f"not {column} = 2 or {column} = 3", column) == ["1"]


def test_a_double_quote_in_a_column_name_is_doubled() -> None:
    assert chosen(["1", "2"], '"a""b" = 2', 'a"b') == ["2"]


@pytest.mark.parametrize(
    ("condition", "same"),
    [
        ("not a = 1 and b = 1", "(not a = 1) and b = 1"),
        ("not a = 1 or b = 1", "(not a = 1) or b = 1"),
        ("a = 1 or b = 1 and a = 2", "a = 1 or (b = 1 and a = 2)"),
        ("a = 2 and b = 1 or a = 1", "(a = 2 and b = 1) or a = 1"),
        ("a = 1 and b = 1 or a = 2 and b = 2", "(a = 1 and b = 1) or (a = 2 and b = 2)"),
        ("not not a = 1", "a = 1"),
    ],
)
def test_not_binds_before_and_which_binds_before_or(condition: str, same: str) -> None:
    universe = Universe.product({"a": ["1", "2"], "b": ["1", "2"]})
    assert cells_meeting(condition, universe).tolist() == cells_meeting(same, universe).tolist()
    outermost = f"not ({condition})"
    assert cells_meeting(outermost, universe).tolist() == [not meets for meets in cells_meeting(condition, universe).tolist()]


# --- What is refused ------------------------------------------------------------------------------------------------------------------

AGE_AND_SEX: Small = small_product({"age": ["9", "10", "85"], "sex": ["F", "M"]})

UNREADABLE = [
    ("", "ends where a column is expected"),
    (" \t\n", "ends where a column is expected"),
    ("age", "ends where a comparison is expected"),
    ("age >=", "ends where a value is expected"),
    ("age >= 9 and", "ends where a column is expected"),
    ("not", "ends where a column is expected"),
    ("and age = 9", "no column 'and'"),
    ("region = 1", "no column 'region'; there are age, sex"),
    ("Age = 9", "no column 'Age'; there are age, sex"),
    ('" age" = 9', "no column ' age'"),
    ("9 = age", "expected a column, found '9'"),
    ("'F' = sex", "expected a column, found \"'F'\""),
    ("= 9", "expected a column, found '='"),
    ("age 9", "expected a comparison after 'age', found '9'"),
    ("age not in (9)", "expected a comparison after 'age', found 'not'"),
    ("age >= 9 10", "unexpected '10'"),
    ("age >= 9 age < 10", "unexpected 'age'"),
    ("age >= 9 years", "unexpected 'years'"),
    ("sex = 'F''M' 'F'", "unexpected \"'F'\""),
    ("9 < age < 85", "expected a column"),
    ("age = 9 = 9", "unexpected '='"),
    ("(age = 9", "expected ')'"),
    ("((age = 9) or age = 10", "expected ')'"),
    ("age = 9)", "unexpected ')'"),
    ("()", "expected a column, found ')'"),
    ("age in 9", "expected '('"),
    ("age in (9", "expected ')'"),
    ("age in (9 10)", "expected ')'"),
    ("age = 9,", "unexpected ','"),
    ("age = 9.5", "cannot read '.5'"),
    ("age = 85+", "cannot read '+'"),
    ("age = 1e1", "not with 1e1"),
    ("age = 9and sex = 'F'", "not with 9and"),
    ("age = - 9", "cannot read ' - 9'"),
    ("age * 2 = 18", "cannot read ' * 2 = 18'"),
    ("sex = 'F", "cannot read"),
    ("sex = 'F''", "cannot read"),
    ('"age = 9', "cannot read"),
    ('"" = 9', "cannot read"),
    ("age && sex", "cannot read"),
    ("age = 9 -- comment", "cannot read"),
    ("age = 9 # comment", "cannot read"),
    ("age = 9\0", "cannot read"),
]


@pytest.mark.parametrize(("condition", "part"), UNREADABLE)
def test_what_cannot_be_read_is_refused_with_what_was_found(condition: str, part: str) -> None:
    refused(lambda: compiled(AGE_AND_SEX.universe, subset(condition)), f"The condition {condition!r} cannot be used", part)


@pytest.mark.parametrize("condition", ["age > 85", "sex = 'X'", "age = 9 and age = 10", "not age >= 9", "sex in ('f', 'm')"])
def test_a_condition_that_no_cell_meets_is_refused_by_name(condition: str) -> None:
    refused(lambda: compiled(AGE_AND_SEX.universe, subset(condition)), f"subset({condition}) selects no cell", "Check")


ATTACKS = [
    "age = 9; drop table cells",
    "age = 9); delete from cells; --",
    "sex = ''; select 1 --'",
    "age = 9 union select 1",
    "__import__('os').system('touch MARK')",
    "eval('1')",
    "age = __import__('os')",
    "age in (select 9)",
    "age = (9)",
    "age.__class__ = 9",
    "age = 9 or exec(\"open('MARK', 'w')\")",
    "read_csv('MARK') = 9",
    "copy (select 9) to 'MARK'",
    "age = 9 if open('MARK','w') else 10",
    "lambda: 9",
    "{age} = 9",
    "%(age)s = 9",
    "$(touch MARK)",
    "`touch MARK`",
    "age = \\x39",
    "@age := 9",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_that_looks_like_a_program_is_one_clear_error_and_nothing_is_executed(
    attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    condition = attack.replace("MARK", str(tmp_path / "mark"))
    refused(lambda: compiled(AGE_AND_SEX.universe, subset(condition)))  # everything that is imported late is imported now
    import duckdb

    ran: list[str] = []
    watched = [(builtins, "eval"), (builtins, "exec"), (builtins, "compile"), (builtins, "open"), (os, "system"), (os, "popen")]
    with monkeypatch.context() as patch:
        for where, name in [*watched, (subprocess, "Popen"), (duckdb, "connect")]:
            patch.setattr(where, name, lambda *args, name=name, **kwargs: ran.append(name))
        try:
            compiled(AGE_AND_SEX.universe, subset(condition))
        except ValueError as error:
            message = str(error)
    assert ran == []
    assert message.startswith(f"The condition {condition!r} cannot be used: ")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=examples(200))
@given(st.text("age sx=<>!()',\"09'FMnotandrin;.\n", max_size=20))
def test_any_text_is_either_a_condition_or_refused_as_one(text: str) -> None:
    try:
        mask = cells_meeting(text, AGE_AND_SEX.universe)
    except ValueError:
        refused(lambda: cells_meeting(text, AGE_AND_SEX.universe), f"The condition {text!r} cannot be used")
    else:
        assert mask.shape == (6,)
        assert mask.dtype == bool


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        pytest.param("sex = \"F\"", "'F'", id="double quotes around a text: the advice must not keep them"),
        pytest.param("sex = =", "expected a value, found '='", id="an operator is no value"),
        pytest.param("sex = )", "expected a value, found ')'", id="a parenthesis is no value"),
        pytest.param("age = )", "expected a value, found ')'", id="nor on an integer column"),
        pytest.param("age in ()", "expected a value, found ')'", id="an empty list"),
        pytest.param("age in (9,)", "expected a value, found ')'", id="a comma too many"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_not_advised_as_one(condition: str, advice: str) -> None:
    message = refused(lambda: compiled(AGE_AND_SEX.universe, subset(condition)), advice)
    assert "'\"F\"'" not in message


@pytest.mark.parametrize(
    "condition",
    ["age < " + "9" * 5000, "(" * 3000 + "age = 9" + ")" * 3000, "not " * 3000 + "age = 9"],
    ids=["a number of 5000 digits", "3000 parentheses", "3000 times not"],
)
def test_a_monstrous_condition_is_refused_as_one(condition: str) -> None:
    refused(lambda: compiled(AGE_AND_SEX.universe, subset(condition)), "cannot be used")


def test_advice_for_a_text_with_a_quote_inside_can_be_followed() -> None:
    refused(lambda: chosen(["O'Neil", "M"], 'c = "O\'Neil"'), "write = 'O''Neil'")


def test_a_long_condition_is_read_as_long_as_it_is_not_deep() -> None:
    wide = " or ".join(["(not age = 9 and sex = 'F')", *["age = 85"] * 300])
    deep = "(" * 40 + "not age = 9 and sex = 'F' or age = 85" + ")" * 40
    assert cells_meeting(wide, AGE_AND_SEX.universe).tolist() == [False, False, True, False, True, True]
    assert cells_meeting(deep, AGE_AND_SEX.universe).tolist() == [False, False, True, False, True, True]


def test_questions_of_readers_name_codes_as_they_are_written() -> None:
    universe = Universe.product({"county": ["31", "031", "9"], "sex": ["F", "M"]})
    found = {
        "county = '031'": [2, 3],
        "county in ('9', '31') and sex = 'F'": [0, 4],
        "county != '031'": [0, 1, 4, 5],
        "county = 31": [0, 1, 2, 3],
    }
    for condition, cells in found.items():
        assert np.flatnonzero(cells_meeting(condition, universe, quoted_codes=True)).tolist() == cells
    with pytest.raises(InvalidConstraint, match="'x' is not a code of the column 'county'"):
        cells_meeting("county = 'x'", universe, quoted_codes=True)
    with pytest.raises(InvalidConstraint, match="write < 31"):
        cells_meeting("county < '031'", universe, quoted_codes=True)
    with pytest.raises(InvalidConstraint, match="are one number"):
        cells_meeting("county = '031'", universe)
