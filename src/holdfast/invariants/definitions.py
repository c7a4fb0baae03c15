"""Kept constraints as plain values, and back: what a card needs so that anyone can add up the published table again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.errors import InvalidConstraint
from holdfast.invariants.constraints import (
    Areas,
    Constraint,
    Grouping,
    Linear,
    Margin,
    Subset,
    Values,
    areas,
    identity,
    linear,
    margin,
    subset,
    total,
)
from holdfast.invariants.levels import groupings
from holdfast.invariants.rows import integer_matrix
from holdfast.tables import Universe


def definition(constraint: Constraint, universe: Universe) -> dict[str, Any]:
    """Plain values that say the constraint in full. A node is written with the codes under it, so that no tree is needed later."""
    told = (
        {} if constraint.kind == "kept" else {"values": _plain(constraint.values)}
    )  # sums that are kept without values say nothing of them
    if isinstance(constraint, Margin):
        found = groupings(universe, constraint.columns, str(constraint), constraint.groupings)
        return {"type": "margin", "kind": constraint.kind, "columns": list(constraint.columns), **_levels(found), **told}
    if isinstance(constraint, Subset):
        codes = list(constraint.codes) if constraint.codes is not None else None
        if constraint.node is not None and codes is None:
            assert constraint.column is not None
            codes = list(universe.hierarchies[constraint.column].leaves(constraint.node))
        return {
            "type": "subset",
            "kind": constraint.kind,
            "column": constraint.column,
            "codes": codes,
            "node": constraint.node,
            "condition": constraint.condition,
            "by": list(constraint.by),
            **_levels(groupings(universe, constraint.by, str(constraint), constraint.groupings)),
            **told,
        }
    if isinstance(constraint, Areas):
        sets = [[name, list(codes)] for name, codes in constraint.sets]  # a list: their order decides which words make which noise
        return {"type": "areas", "kind": constraint.kind, "column": constraint.column, "sets": sets, "by": list(constraint.by), **told}
    matrix = integer_matrix(constraint.matrix)
    bounds = zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True)
    rows = [[[int(c), int(v)] for c, v in zip(matrix.indices[b:e], matrix.data[b:e], strict=True)] for b, e in bounds]
    names = list(constraint.names) if constraint.names is not None else None
    values = _plain(constraint.values)
    return {"type": "linear", "kind": constraint.kind, "rows": rows, "columns": matrix.shape[1], "names": names, "values": values}


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


def constraint_of(given: dict[str, Any]) -> Constraint:
    """Return the constraint that `definition` wrote. Raise InvalidConstraint if it is not one."""
    try:
        return _constraint_of(given)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidConstraint(
            f"A kept constraint of the card cannot be read ({type(error).__name__}). The card may have been changed."
        ) from None


def _constraint_of(given: dict[str, Any]) -> Constraint:
    """By the functions that users call, so that values are checked as theirs are."""
    made: Constraint
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
