"""Kept constraints as plain values, and back: what a card needs so that anyone can add up the published table again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from holdfast.display import Json, read_as
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


def definition(constraint: Constraint, universe: Universe) -> dict[str, Json]:
    """Plain values that say the constraint in full. A node is written with the codes under it, so that no tree is needed later."""
    # Sums that are kept without values say nothing of them.
    told: dict[str, Json] = {} if constraint.kind == "kept" else {"values": _plain(constraint.values)}
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


def _levels(found: Sequence[Grouping]) -> dict[str, Json]:
    """Levels with the codes under each of their units; nothing where only columns are named."""
    levels = [{"level": one.level, "column": one.column, "units": [[name, list(codes)] for name, codes in one.units]} for one in found]
    return {"levels": levels} if levels else {}


def _plain(values: Values) -> list[int] | int | None:
    return list(values) if isinstance(values, tuple) else values


def constraint_of(given: Mapping[str, Json]) -> Constraint:
    """Return the constraint that `definition` wrote. Raise InvalidConstraint if it is not one."""
    try:
        return _constraint_of(given)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidConstraint(
            f"A kept constraint of the card cannot be read ({type(error).__name__}). The card may have been changed."
        ) from None


def _constraint_of(given: Mapping[str, Json]) -> Constraint:
    """By the functions that users call, so that values are checked as theirs are."""
    made: Constraint
    match given["type"]:
        case "margin":
            columns = _texts(given["columns"])
            made = replace(margin(*columns) if columns else total(), groupings=_groupings(given))
        case "subset" if given["condition"] is not None:
            made = replace(subset(read_as(str, given["condition"]), by=_texts(given["by"])), groupings=_groupings(given))
        case "subset":
            made = subset(read_as(str, given["column"]), _texts(given["codes"]), by=_texts(given["by"]))
            node = given["node"]  # only a name: the codes say what is under it
            made = replace(made, groupings=_groupings(given), node=node if isinstance(node, str) else None)
        case "areas":
            made = areas(read_as(str, given["column"]), dict(_named_codes(given["sets"])), by=_texts(given["by"]))
        case "linear":
            made = _linear(given)
        case _:
            raise ValueError
    if given["kind"] not in ("kept", "identity"):
        raise ValueError
    return made if given["kind"] == "kept" else identity(made, _values(given["values"]))


def _groupings(given: Mapping[str, Json]) -> tuple[Grouping, ...]:
    found = []
    for one in (read_as(dict, one) for one in read_as(list, given.get("levels", []))):
        found.append(Grouping(read_as(str, one["level"]), read_as(str, one["column"]), tuple(_named_codes(one["units"]))))
    return tuple(found)


def _linear(given: Mapping[str, Json]) -> Linear:
    from scipy.sparse import csr_array

    width, columns, data, ends = read_as(int, given["columns"]), [], [], [0]
    for row in read_as(list, given["rows"]):
        for place, value in (read_as(list, one) for one in read_as(list, row)):
            columns.append(read_as(int, place))
            data.append(read_as(int, value))
        ends.append(len(columns))
    if any(not 0 <= column < width for column in columns):
        raise ValueError
    matrix = csr_array((data, columns, ends), shape=(len(ends) - 1, width), dtype="int64")
    names, values = given["names"], _values(given["values"]) if given["kind"] == "kept" else None
    return linear(matrix, None if names is None else _texts(names), [values] if isinstance(values, int) else values)


def _texts(value: Json) -> list[str]:
    return [read_as(str, one) for one in read_as(list, value)]


def _values(value: Json) -> list[int] | int | None:
    return [read_as(int, one) for one in value] if isinstance(value, list) else None if value is None else read_as(int, value)


def _named_codes(value: Json) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, codes in (read_as(list, one) for one in read_as(list, value)):
        yield read_as(str, name), tuple(_texts(codes))
