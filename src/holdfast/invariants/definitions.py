"""Kept statements as plain values, and back: what a card needs so that anyone can add up the published table again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.errors import InvalidStatement
from holdfast.invariants.levels import groupings
from holdfast.invariants.rows import integer_matrix
from holdfast.invariants.statements import (
    Areas,
    Grouping,
    Linear,
    Margin,
    Statement,
    Subset,
    Values,
    areas,
    identity,
    linear,
    margin,
    subset,
    total,
)
from holdfast.tables import Universe


def definition(statement: Statement, universe: Universe) -> dict[str, Any]:
    """Plain values that say the statement in full. A hierarchy node is written with the codes under it, so that no tree is needed later."""
    told = {} if statement.kind == "kept" else {"values": _plain(statement.values)}  # sums that are kept without values say nothing of them
    if isinstance(statement, Margin):
        found = groupings(universe, statement.columns, str(statement), statement.groupings)
        return {"type": "margin", "kind": statement.kind, "columns": list(statement.columns), **_levels(found), **told}
    if isinstance(statement, Subset):
        codes = list(statement.codes) if statement.codes is not None else None
        if statement.node is not None and codes is None:
            assert statement.column is not None
            codes = list(universe.hierarchies[statement.column].leaves(statement.node))
        return {
            "type": "subset",
            "kind": statement.kind,
            "column": statement.column,
            "codes": codes,
            "node": statement.node,
            "condition": statement.condition,
            "by": list(statement.by),
            **_levels(groupings(universe, statement.by, str(statement), statement.groupings)),
            **told,
        }
    if isinstance(statement, Areas):
        sets = [[name, list(codes)] for name, codes in statement.sets]  # a list: their order decides which words make which noise
        return {"type": "areas", "kind": statement.kind, "column": statement.column, "sets": sets, "by": list(statement.by), **told}
    matrix = integer_matrix(statement.matrix)
    bounds = zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True)
    rows = [[[int(c), int(v)] for c, v in zip(matrix.indices[b:e], matrix.data[b:e], strict=True)] for b, e in bounds]
    names = list(statement.names) if statement.names is not None else None
    values = _plain(statement.values)
    return {"type": "linear", "kind": statement.kind, "rows": rows, "columns": matrix.shape[1], "names": names, "values": values}


def _levels(found: Sequence[Grouping]) -> dict[str, Any]:
    """Levels with the codes under each of their units; nothing where only columns are named."""
    levels = [{"level": one.level, "column": one.column, "units": [[name, list(codes)] for name, codes in one.units]} for one in found]
    return {"levels": levels} if levels else {}


def _groupings(given: dict[str, Any]) -> tuple[Grouping, ...]:
    found = []
    for one in given.get("levels", ()):
        units = tuple((str(name), tuple(map(str, codes))) for name, codes in one["units"])
        found.append(Grouping(str(one["level"]), str(one["column"]), units))
    return tuple(found)


def _plain(values: Values) -> list[int] | int | None:
    return list(values) if isinstance(values, tuple) else values


def statement_of(given: dict[str, Any]) -> Statement:
    """Return the statement that `definition` wrote. Raise InvalidStatement if it is not one."""
    try:
        return _statement_of(given)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidStatement(
            f"A kept statement of the card cannot be read ({type(error).__name__}). The card may have been changed."
        ) from None


def _statement_of(given: dict[str, Any]) -> Statement:
    """By the functions that users call, so that values are checked as theirs are."""
    made: Statement
    match given["type"]:
        case "margin":
            made = replace(margin(*given["columns"]) if given["columns"] else total(), groupings=_groupings(given))
        case "subset" if given["condition"] is not None:
            made = replace(subset(given["condition"], by=given["by"]), groupings=_groupings(given))
        case "subset":
            made = replace(subset(given["column"], list(given["codes"]), by=given["by"]), groupings=_groupings(given))
            if isinstance(given["node"], str):  # only a name: the codes say what is under it
                made = replace(made, node=given["node"])
        case "areas":
            made = areas(given["column"], dict(given["sets"]), by=given["by"])
        case "linear":
            made = _linear(given)
        case _:
            raise ValueError
    if given["kind"] not in ("kept", "identity"):
        raise ValueError
    return made if given["kind"] == "kept" else identity(made, given["values"])


def _linear(given: dict[str, Any]) -> Linear:
    from scipy.sparse import csr_array

    rows, columns, data, ends = given["rows"], [], [], [0]
    for row in rows:
        columns += [int(c) for c, _ in row]
        data += [int(v) for _, v in row]
        ends.append(len(columns))
    if any(not 0 <= column < int(given["columns"]) for column in columns):
        raise ValueError
    matrix = csr_array((data, columns, ends), shape=(len(rows), int(given["columns"])), dtype="int64")
    return linear(matrix, given["names"], given["values"] if given["kind"] == "kept" else None)
