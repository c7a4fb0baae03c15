"""Sums that are known to be at least, or at most, something: public facts that a publication must respect.

An inequality compares the sums of a constraint with whole numbers, a public column of the table, or the sums of another constraint.
Compiled, it is a list of integer rows B y >= b over the cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.display import Json, shorten
from holdfast.errors import InvalidConstraint
from holdfast.invariants.constraints import Constraint, Linear, Margin, Subset, integer_matrix, is_whole, linear, margin, subset, total
from holdfast.invariants.rows import Kept, RowFamily, compile_rows
from holdfast.tables.universe import Universe

Ints = NDArray[np.int64]
Way: TypeAlias = Literal["at_least", "at_most"]
Side: TypeAlias = Margin | Subset | Linear | tuple[int, ...] | int | str
"""A constraint; one number for all sums, or one for each; or a public column, with a whole number in front of its name or without."""
Columns: TypeAlias = Mapping[str, Ints]
Row: TypeAlias = tuple[Ints, Ints, int]
"""(cells, coefficients, least): the sum of coefficients times counts is at least so much."""

LARGEST = 2**62
_TIMES = re.compile(r"\s*([0-9]{1,18})\s*\*?\s+(.*\S)\s*")


@dataclass(frozen=True, repr=False)
class Inequality:
    """Every sum of `constraint` is at least, or at most, its bound."""

    constraint: Margin | Subset | Linear
    way: Way
    bound: Side

    def __str__(self) -> str:
        bound = self.bound if not isinstance(self.bound, tuple) else f"[{shorten(', '.join(map(str, self.bound)), 40)}]"
        return f"{self.constraint} {self.way.replace('_', ' ')} {bound}"

    def __repr__(self) -> str:
        return f"{self.way}({self.constraint!r}, {self.bound!r})"


def at_least(constraint: Constraint, bound: Any) -> Inequality:
    """Every sum of the constraint is at least the bound: a whole number for all of them, a list with one for each, a public column of the
    table (which has one value in all cells of a sum; "3 beds" is three times the column), or another constraint with as many sums.
    """
    return Inequality(_constraint(constraint, "at_least"), "at_least", _bound(bound, "at_least"))


def at_most(constraint: Constraint, bound: Any) -> Inequality:
    """Every sum of the constraint is at most the bound; as `at_least`."""
    return Inequality(_constraint(constraint, "at_most"), "at_most", _bound(bound, "at_most"))


def _constraint(given: Any, way: Way) -> Margin | Subset | Linear:
    if not isinstance(given, Margin | Subset | Linear) or given.kind != "kept":
        raise InvalidConstraint(f"{way}() takes total(), margin(), subset() or linear(), and a bound. Got {type(given).__name__}.")
    if isinstance(given, Subset) and given.node is not None:
        raise InvalidConstraint(f"{way}(): {given} names a node of a hierarchy. List the codes under it instead.")
    return given


def _bound(given: Any, way: Way) -> Side:
    if isinstance(given, Margin | Subset | Linear):
        return _constraint(given, way)
    if isinstance(given, str):
        return given
    if isinstance(given, np.ndarray) and given.ndim == 0:
        given = given.item()
    if is_whole(given) and abs(int(given)) < LARGEST:
        return int(given)
    if isinstance(given, Sequence | np.ndarray) and all(is_whole(value) and abs(int(value)) < LARGEST for value in given):
        return tuple(int(value) for value in given)
    raise InvalidConstraint(
        f"{way}(): a bound is a whole number between -2^62 and 2^62, a list of them, the name of a public column, or a constraint. "
        f"Got {type(given).__name__}."
    )


def column_values(text: str, columns: Columns, what: str) -> Ints:
    """A public column of the table, times the number in front of its name: "beds" or "3 beds"."""
    if text in columns:
        return columns[text]
    found = _TIMES.fullmatch(text)
    if found is not None and found[2] in columns:
        values: Ints = columns[found[2]]
        if int(found[1]) * int(np.abs(values).max(initial=0)) >= LARGEST:
            raise InvalidConstraint(f"{what}: {found[1]} times the column {found[2]!r} reaches 2^62. Use a smaller number.")
        return int(found[1]) * values
    known = f"It has {', '.join(columns)}." if columns else "It has none."
    raise InvalidConstraint(
        f"{what}: the table has no public column {text!r}. {known} Name it when the table is read: public_columns=[...]."
    )


def columns_named(text: str, columns: Columns) -> str | None:
    """The column that a bound names."""
    found = _TIMES.fullmatch(text)
    return text if text in columns else found[2] if found is not None and found[2] in columns else None


def inequality_rows(universe: Universe, given: Inequality, columns: Columns) -> Iterator[Row]:
    """The rows of an inequality; those without a cell are left out, since they say nothing of a table."""
    left = _sums(universe, given.constraint, given)
    matrix, least = left.matrix(), np.zeros(len(left), dtype=np.int64)
    bound = given.bound
    if isinstance(bound, Margin | Subset | Linear):
        right = _sums(universe, bound, given)
        _check_same_sums(left, right, given)
        matrix = (matrix - right.matrix()).tocsr()
        matrix.eliminate_zeros()
    elif isinstance(bound, str):
        least = _common(matrix, column_values(bound, columns, str(given)), given)
    elif isinstance(bound, tuple) and len(bound) != len(left):
        raise InvalidConstraint(f"{given}: {len(bound)} bounds for {len(left)} sums. Give one for each sum, or one for all.")
    elif isinstance(bound, tuple) and len(bound) > 1 and universe.rows_moved:
        raise InvalidConstraint(
            f"{given}: sums go in the order of the codes, and the rows of the source stood in another: nobody declared them public. Put "
            "the bounds into a column of the source and name it (public_columns), or declare the list of cells public (public = true)."
        )
    else:
        least = np.broadcast_to(np.array(bound, dtype=np.int64), len(left))
    sign = 1 if given.way == "at_least" else -1
    matrix.sort_indices()
    for row in range(matrix.shape[0]):
        begin, end = matrix.indptr[row], matrix.indptr[row + 1]
        if begin < end:
            yield matrix.indices[begin:end].astype(np.int64), sign * matrix.data[begin:end].astype(np.int64), sign * int(least[row])


def _sums(universe: Universe, constraint: Constraint, given: Inequality) -> Kept:
    """The sums of one side, by columns and codes: a card has no code trees of bounds."""
    try:
        return compile_rows(universe.with_hierarchies({}), [constraint])
    except InvalidConstraint as problem:
        try:
            compile_rows(universe, [constraint])
        except InvalidConstraint:
            raise problem from None
        raise InvalidConstraint(
            f"{given}: sums of inequalities go by columns and codes; levels of hierarchies are not taken here. Write one row for each unit "
            "of the level, with the codes under it: subset(column, codes)."
        ) from None


def _check_same_sums(left: Kept, right: Kept, given: Inequality) -> None:
    """Both sides have the same sums in the same order: by the same columns, with the same codes."""
    one, other = left.rows[0], right.rows[0]
    same = len(left) == len(right)
    if same and isinstance(one, RowFamily) and isinstance(other, RowFamily):
        same = one.columns == other.columns and one.levels == other.levels and np.array_equal(one.codes, other.codes)
    if not same:
        raise InvalidConstraint(f"{given}: the two sides have different sums. Both go by the same columns, and have the same codes.")


def _common(matrix: Any, values: Ints, given: Inequality) -> Ints:
    """The one value that a column has in all cells of each sum."""
    out = np.zeros(matrix.shape[0], dtype=np.int64)
    for row in range(matrix.shape[0]):
        own = values[matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]]
        if (own != own[0]).any():
            raise InvalidConstraint(f"{given}: the column has different values in the cells of one sum. It must have one for each sum.")
        out[row] = own[0]
    return out


# --- as plain values: a row of a run file, and of a card --------------------------------------------------------------------------------


def fields_of(given: Inequality) -> dict[str, Json]:
    """As in a run file, such as {"margin": ["county"], "at_least": 5}."""
    bound = given.bound
    said = _fields(bound) if isinstance(bound, Margin | Subset | Linear) else list(bound) if isinstance(bound, tuple) else bound
    return {**_fields(given.constraint), given.way: said}


def _fields(constraint: Margin | Subset | Linear) -> dict[str, Json]:
    if isinstance(constraint, Margin):
        return {"margin": list(constraint.columns)} if constraint.columns else {"total": True}
    if isinstance(constraint, Linear):
        return {"linear": integer_matrix(constraint.matrix).toarray().tolist()}
    others = {name: list(value) for name, value in (("codes", constraint.codes), ("by", constraint.by)) if value}
    return {"subset": constraint.condition if constraint.condition is not None else constraint.column, **others}


def inequalities_from(given: Mapping[str, object]) -> Iterator[Inequality]:
    """Return the inequalities of one row of a run file or card. Raise InvalidConstraint if it is not an inequality."""
    ways = [way for way in ("at_least", "at_most") if way in given]
    if not ways:
        raise InvalidConstraint("a row needs at_least or at_most.")
    left = constraint_from({name: value for name, value in given.items() if name not in ways})
    for way in ways:
        bound = given[way]
        made = constraint_from(bound) if isinstance(bound, Mapping) else bound
        yield at_least(left, made) if way == "at_least" else at_most(left, made)


def constraint_from(given: Mapping[str, object]) -> Constraint:
    """The constraint of one side."""
    kinds = [name for name in ("total", "margin", "subset", "linear") if name in given]
    strange = [name for name in given if name not in ("total", "margin", "subset", "linear", "codes", "by")]
    if len(kinds) != 1 or strange or ("subset" not in given and set(given) != set(kinds)):
        raise InvalidConstraint(
            "one side of a row is total = true, margin = [columns], subset = condition, or subset = column with codes, and by; or "
            "linear = [[coefficients of all cells]]."
        )
    value = given[kinds[0]]
    match kinds[0]:
        case "total" if value is True:
            return total()
        case "margin" if isinstance(value, list | tuple):
            return margin(*value)
        case "subset":
            codes, by = given.get("codes"), given.get("by", ())  # of whatever type: checked as those of users are
            return subset(cast(str, value), cast("Sequence[str] | None", codes), by=cast("Sequence[str]", by))
        case "linear" if isinstance(value, list | tuple):
            return linear(value)
    raise InvalidConstraint(f"{kinds[0]} has a value of another type.")
