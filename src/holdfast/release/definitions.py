"""Kept statements as plain values, and back: what a card needs so that anyone can add up the published table again."""

from __future__ import annotations

from typing import Any

from holdfast.errors import InvalidStatement
from holdfast.invariants.rows import integer_matrix
from holdfast.invariants.statements import Areas, Linear, Margin, Statement, Subset
from holdfast.tables import Universe


def definition(statement: Statement, universe: Universe) -> dict[str, Any]:
    """Plain values that say the statement in full. A hierarchy node is written with the codes under it, so that no tree is needed later."""
    if isinstance(statement, Margin):
        return {"type": "margin", "kind": statement.kind, "columns": list(statement.columns)}
    if isinstance(statement, Subset):
        codes = list(statement.codes) if statement.codes is not None else None
        if statement.node is not None:
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
        }
    if isinstance(statement, Areas):
        sets = {name: list(codes) for name, codes in statement.sets}
        return {"type": "areas", "kind": statement.kind, "column": statement.column, "sets": sets, "by": list(statement.by)}
    matrix = integer_matrix(statement.matrix)
    bounds = zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True)
    rows = [[[int(c), int(v)] for c, v in zip(matrix.indices[b:e], matrix.data[b:e], strict=True)] for b, e in bounds]
    names = list(statement.names) if statement.names is not None else None
    values = list(statement.values) if statement.values is not None else None
    return {"type": "linear", "kind": statement.kind, "rows": rows, "columns": matrix.shape[1], "names": names, "values": values}


def statement_of(given: dict[str, Any]) -> Statement:
    """The statement that `definition` wrote down; InvalidStatement if it is none."""
    try:
        return _statement_of(given)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidStatement(
            f"A kept statement of the card cannot be read ({type(error).__name__}). The card may have been changed."
        ) from None


def _statement_of(given: dict[str, Any]) -> Statement:
    kind = given["kind"]
    if kind not in ("kept", "identity"):
        raise ValueError
    match given["type"]:
        case "margin":
            return Margin(tuple(given["columns"]), kind)
        case "subset":
            codes = None if given["codes"] is None else tuple(given["codes"])
            return Subset(given["column"], codes, given["node"], given["condition"], tuple(given["by"]), kind)
        case "areas":
            return Areas(given["column"], tuple((name, tuple(codes)) for name, codes in given["sets"].items()), tuple(given["by"]), kind)
        case "linear":
            return _linear(given)
        case _:
            raise ValueError


def _linear(given: dict[str, Any]) -> Linear:
    from scipy.sparse import csr_array

    rows, columns, data, ends = given["rows"], [], [], [0]
    for row in rows:
        columns += [int(c) for c, _ in row]
        data += [int(v) for _, v in row]
        ends.append(len(columns))
    matrix = csr_array((data, columns, ends), shape=(len(rows), int(given["columns"])), dtype="int64")
    names = None if given["names"] is None else tuple(given["names"])
    values = None if given["values"] is None else tuple(int(v) for v in given["values"])
    return Linear(matrix, names, values, given["kind"])
