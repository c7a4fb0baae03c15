"""Bounds of cells and inequalities of sums: read from Python, from run files and from cards; compiled against a table."""

from __future__ import annotations

import json
import numbers
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from holdfast.channels import Facts
from holdfast.display import Json
from holdfast.errors import InexactParameter, InvalidConstraint, InvalidParameter
from holdfast.invariants.inequalities import Inequality, column_values, columns_named, fields_of, inequalities_from, inequality_rows
from holdfast.lattices.bounded_blocks import Inequalities
from holdfast.lattices.shapes.shape import UNBOUNDED, Ints
from holdfast.mechanisms.keys import GOT, FloatText, InvalidKey, Key, declare_shape

LARGEST = 2**62
"""Bounds are smaller than this in size: so are counts."""
NONE = "none"
"""In run files and on cards: there is no bound. No public column can have this name there."""

Bounds: TypeAlias = int | str | tuple[int | None, ...] | None
"""One number for all cells; a public column; one number for each cell in the table's order. None: there is none."""


def read_bounds(given: Any, name: str) -> Bounds:
    """Bounds as they are given in Python."""
    if isinstance(given, np.ndarray) and given.ndim == 0:
        given = given.item()
    if given is None or isinstance(given, numbers.Integral | float):
        return _one(given, name)
    if isinstance(given, str):
        if given == NONE:
            raise InvalidParameter(f"{name}={NONE!r}: no public column can have this name. Write {name}=None for no bound.", field=name)
        return given
    if isinstance(given, Sequence | np.ndarray):
        return tuple(_one(value, name) for value in (given.tolist() if isinstance(given, np.ndarray) else given))
    raise InvalidParameter(
        f"{name} is a whole number for all cells, a list with one for each cell, the name of a public column, or None. "
        f"Got {type(given).__name__}.",
        field=name,
    )


def _one(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, float):
        raise InexactParameter(f"{name} must be a whole number, because published counts are. Got a float.", field=name)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidParameter(f"{name} must be a whole number or None. Got {type(value).__name__}.", field=name)
    if abs(int(value)) >= LARGEST:
        raise InvalidParameter(f"{name} must lie between -2^62 and 2^62.", field=name)
    return int(value)


def read_rows(given: Any) -> tuple[Inequality, ...]:
    """Inequalities as they are given in Python."""
    if isinstance(given, Iterable) and not isinstance(given, str | Inequality):
        listed = tuple(given)
        if all(isinstance(row, Inequality) for row in listed):
            return listed
    raise InvalidParameter("rows is a list of inequalities, such as [at_least(margin('county'), 5)].", field="rows")


@declare_shape({"anyOf": [{"type": ["integer", "string"]}, {"type": "array", "items": {"type": ["integer", "string"]}}]})
def bounds_key(key: Key, raw: object) -> Bounds:
    """The reader of `lower` and `upper` in a run file."""
    if raw == NONE:
        return None
    if isinstance(raw, FloatText):
        raise InvalidKey(key.name, f"must be a whole number, because published counts are. Got {GOT}. Write {key.line}.")
    try:
        if isinstance(raw, list):
            return tuple(None if value == NONE else _one(_plain(value), key.name) for value in raw)
        return read_bounds(raw, key.name)
    except InvalidParameter:
        raise InvalidKey(
            key.name,
            f'must be a whole number, a list of them with one for each cell, the name of a public column, or "{NONE}". Got {GOT}. '
            f"Write {key.line}.",
        ) from None


def _plain(value: object) -> object:
    return float(value.text) if isinstance(value, FloatText) else value


_BOUND: Json = {"anyOf": [{"type": ["integer", "string"]}, {"type": "array", "items": {"type": "integer"}}, {"type": "object"}]}
_ROW: Json = {
    "type": "object",
    "properties": {
        "total": {"enum": [True]},
        "margin": {"type": "array", "items": {"type": "string"}},
        "subset": {"type": "string"},
        "linear": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "codes": {"type": "array", "items": {"type": "string"}},
        "by": {"type": "array", "items": {"type": "string"}},
        "at_least": _BOUND,
        "at_most": _BOUND,
    },
    "additionalProperties": False,
}


@declare_shape({"type": "array", "items": _ROW})
def rows_key(key: Key, raw: object) -> tuple[Inequality, ...]:
    """The reader of `rows` in a run file: a list of tables."""
    if not isinstance(raw, list) or not all(isinstance(row, dict) for row in raw):
        raise InvalidKey(key.name, f"must be a list of tables. Got {GOT}. Write {key.line}.")
    made: list[Inequality] = []
    for place, row in enumerate(raw, 1):
        try:
            made += inequalities_from(row)
        except InvalidConstraint as problem:
            raise InvalidKey(key.name, f"row {place}: {problem} Write {key.line}.") from None
    return tuple(made)


def bounds_text(bounds: Bounds) -> str:
    """For cards: JSON of what a run file has, or the bare name of a column. A name that would be read as JSON is marked as a column."""
    if bounds is None:
        return NONE
    if isinstance(bounds, str):
        return bounds if _json(bounds) == bounds else json.dumps({"column": bounds}, ensure_ascii=False)
    return json.dumps([NONE if b is None else b for b in bounds] if isinstance(bounds, tuple) else bounds)


def bounds_value(text: str) -> Json:
    """The value in a run file for the text of a card."""
    found = _json(text)
    return found["column"] if isinstance(found, dict) and found.keys() == {"column"} else found


def _json(text: str) -> Json:
    """Return the value of a text as JSON, or the text itself if it is not JSON."""
    try:
        return cast(Json, json.loads(text))
    except (ValueError, RecursionError):
        return text


def rows_text(rows: tuple[Inequality, ...]) -> str:
    """For cards; JSON of what a run file has."""
    return json.dumps([fields_of(row) for row in rows], ensure_ascii=False)


def compile_inequalities(facts: Facts, lower: Bounds, upper: Bounds, rows: tuple[Inequality, ...]) -> Inequalities:
    """All inequalities over the cells of a table."""
    if rows and facts.lattice.universe is None:
        raise InvalidParameter(
            "rows name columns and cells of a table. A lattice of a matrix alone has none: leave rows out.", field="rows"
        )
    found = tuple(made for row in rows for made in inequality_rows(facts.universe, row, facts.columns))
    return Inequalities(_of_cells(facts, lower, "lower"), _of_cells(facts, upper, "upper"), found)


def used_columns(facts: Facts, lower: Bounds, upper: Bounds, rows: tuple[Inequality, ...]) -> tuple[str, ...]:
    """The public columns that bounds come from, each once."""
    named = [bound for bound in (lower, upper, *(row.bound for row in rows)) if isinstance(bound, str)]
    return tuple(dict.fromkeys(name for text in named if (name := columns_named(text, facts.columns)) is not None))


def _of_cells(facts: Facts, bounds: Bounds, name: str) -> Ints:
    """One bound for each cell of the table; UNBOUNDED, with the sign of the side, where there is none."""
    none = -UNBOUNDED if name == "lower" else UNBOUNDED
    cells = facts.lattice.cells
    if isinstance(bounds, str):
        return column_values(bounds, facts.columns, name).copy()
    if not isinstance(bounds, tuple):
        return np.full(cells, none if bounds is None else bounds, dtype=np.int64)
    if len(bounds) != cells:
        raise InvalidParameter(f"{name} has {len(bounds)} bounds, and the table has {cells} cells. Give one for each cell.", field=name)
    if facts.lattice.universe is not None and facts.universe.rows_moved:
        raise InvalidParameter(
            f"{name} has one bound for each cell in the table's order, and the rows of the source stood in another: they were put in the "
            "order of their codes, since nobody declared them public. Put the bounds into a column of the source and name it "
            "(public_columns), or declare the list of cells public (public = true).",
            field=name,
        )
    return np.array([none if bound is None else bound for bound in bounds], dtype=np.int64)
