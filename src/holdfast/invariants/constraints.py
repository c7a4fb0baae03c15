"""What must hold exactly, in the office's words: frozen descriptions, compiled to rows in rows.py.

A constraint names sums of cells. Kept constraints are published: what they say is exposed, whatever the budget. Identities hold for every
data set (structural zeros, agreement of linked tables): their values are public, 0 unless others are declared. They restrict the noise and
expose nothing, and a table that breaks one is refused.

A margin may name a level of a hierarchy in place of a column: margin("state"), where state is a level of the hierarchy of county. Cards
have constraints as plain values (`definition`, `constraint_of`), so that anyone can add up the published table again.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.display import Json, list_names, named_codes, names_in, nearest, read_as, shorten
from holdfast.errors import InvalidConstraint
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.universe import Universe

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]

Kind: TypeAlias = Literal["kept", "identity"]
Values: TypeAlias = tuple[int, ...] | int | None
"""What sums are declared to be: one number for each, or one for all of them."""


@dataclass(frozen=True)
class Grouping:
    """A level of a column's hierarchy in full: each of its units with the codes under it. Together they hold every code, each once."""

    level: str
    column: str
    units: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, repr=False)
class Margin:
    """One sum for every combination of codes of the named columns; no column: the total of the table.

    A name may be that of a level of a column's hierarchy: then one sum for every unit of the level. `groupings` says in full what the names
    of levels mean, where no hierarchy does (on cards).
    """

    columns: tuple[str, ...]
    kind: Kind = "kept"
    values: Values = None
    groupings: tuple[Grouping, ...] = ()

    def __str__(self) -> str:
        return f"margin({', '.join(self.columns)})" if self.columns else "total"

    def __repr__(self) -> str:
        return _written(
            "margin" if self.columns else "total", self.kind, *([_names(self.columns)] if self.columns else []), values=self.values
        )


@dataclass(frozen=True, repr=False)
class Subset:
    """One sum over the cells whose code is listed, lies under a hierarchy node, or meets a condition; one for each combination in `by`."""

    column: str | None
    codes: tuple[str, ...] | None
    node: str | None
    condition: str | None
    by: tuple[str, ...]
    kind: Kind = "kept"
    values: Values = None
    groupings: tuple[Grouping, ...] = ()
    """As for a margin: what levels named in `by` mean."""

    def __str__(self) -> str:
        if self.condition is not None:
            what = self.condition
        elif self.node is not None:
            what = f"{self.column} under {self.node}"
        else:
            assert self.codes is not None
            what = f"{self.column} in [{_show_codes(self.codes)}]"
        return f"subset({what})" + (f" by {', '.join(self.by)}" if self.by else "")

    def __repr__(self) -> str:
        first = shorten(repr(self.column if self.condition is None else self.condition))
        codes = [] if self.codes is None else [f"[{_names(self.codes)}]"]
        node = [] if self.node is None else [f"node={shorten(repr(self.node), 30)}"]
        return _written("subset", self.kind, first, *codes, *node, by=self.by, values=self.values)


@dataclass(frozen=True, repr=False)
class Areas:
    """One sum for every named set of codes of one column (places and other areas across the main hierarchy); sets may overlap."""

    column: str
    sets: tuple[tuple[str, tuple[str, ...]], ...]
    by: tuple[str, ...]
    kind: Kind = "kept"
    values: Values = None

    def __str__(self) -> str:
        return f"areas({self.column}: {len(self.sets)} sets)" + (f" by {', '.join(self.by)}" if self.by else "")

    def __repr__(self) -> str:
        return _written("areas", self.kind, shorten(repr(self.column)), f"{len(self.sets)} sets", by=self.by, values=self.values)


@dataclass(frozen=True, eq=False, repr=False)
class Linear:
    """Rows of an integer matrix, one column per cell; `values` are the totals as published, where they are declared."""

    matrix: Any
    names: tuple[str, ...] | None
    values: Values
    kind: Kind = "kept"

    def __str__(self) -> str:
        return "linear"

    def __repr__(self) -> str:
        shape = getattr(self.matrix, "shape", None)
        if shape is None and isinstance(self.matrix, Sequence):
            shape = (len(self.matrix),)
        rows = [] if not shape else [f"{shape[0]} rows" + (f" over {shape[1]} cells" if len(shape) > 1 else "")]
        names = [] if self.names is None else [f"names=[{_names(self.names)}]"]
        values = [f"{len(self.values)} values"] if isinstance(self.values, tuple) else []
        return _written("linear", self.kind, *rows, *names, *values)


Constraint: TypeAlias = Margin | Subset | Areas | Linear


def total() -> Margin:
    """Keep the total of the whole table."""
    return Margin(())


def margin(*columns: str) -> Margin:
    """Keep the sum for every combination of codes of these columns: margin("state") keeps every state total.

    A name may also be that of a level of a column's hierarchy: margin("region", "sex"), where regions are made of counties.
    """
    if not columns:
        raise InvalidConstraint("margin() needs at least one column. For the total of the table write total().")
    _check_names(columns, "margin")
    return Margin(tuple(columns))


def subset(column_or_condition: str, codes: Sequence[str] | None = None, *, node: str | None = None, by: Sequence[str] = ()) -> Subset:
    """Keep the sum over part of the table.

    subset("age", codes=["18", "19"])         cells whose code is listed
    subset("county", node="17")               cells under a node of the column's hierarchy
    subset("age >= 18", by=["county"])        cells that meet a condition, one sum for each county

    A condition compares codes as numbers in columns whose declared codes are all integers, and as quoted text in all others.
    """
    if codes is not None and node is not None:
        raise InvalidConstraint("subset() takes codes or a node, not both. Write two constraints.")
    _check_text(column_or_condition, "The first argument of subset()")
    _check_names(by, "by")
    if codes is None and node is None:
        return Subset(None, None, None, column_or_condition, tuple(by))
    if node is not None:
        _check_text(node, "node")
    if codes is not None:
        _check_codes(codes, "codes")
    return Subset(column_or_condition, None if codes is None else tuple(codes), node, None, tuple(by))


def areas(column: str, sets: Mapping[str, Sequence[str]], *, by: Sequence[str] = ()) -> Areas:
    """Keep one sum for every named set of codes of a column, such as places made of blocks; sets may overlap."""
    _check_text(column, "The column of areas()")
    if not isinstance(sets, Mapping) or not sets:
        raise InvalidConstraint('areas() needs at least one named set of codes, such as {"Springfield": ["0101", "0102"]}.')
    for name, codes in sets.items():
        _check_text(name, "The name of an area")
        _check_codes(codes, f"the codes of area {name!r}")
    _check_names(by, "by")
    return Areas(column, tuple((name, tuple(codes)) for name, codes in sets.items()), tuple(by))


def linear(matrix: Any, names: Sequence[str] | None = None, values: Sequence[int] | None = None) -> Linear:
    """Keep the rows of an integer matrix (NumPy, SciPy sparse, or lists), one column for each cell in the table's order."""
    if names is not None and (isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names)):
        raise InvalidConstraint("linear(): names must be a list of texts, one for each row.")
    return Linear(matrix, None if names is None else tuple(names), None if values is None else _whole_numbers(values))


def identity(constraint: Constraint, values: Sequence[int] | int | None = None) -> Constraint:
    """The same sums, true of every data set and so no secret: they restrict the noise and expose nothing.

    Given:       `values`, what the sums are in every data set: one whole number for all of them, or one for each in their order; 0 where
                 none are given, as for structural zeros. A margin needs values: without any it would be a kept total.
    Guarantees:  a table that breaks it is refused before anything is drawn; `verify` checks it on the release.
    """
    if not isinstance(constraint, Margin | Subset | Areas | Linear):
        raise InvalidConstraint(f"identity() takes a constraint such as linear(...). Got {type(constraint).__name__}.")
    declared = constraint.values
    if values is not None:
        declared = int(values) if is_whole(values) else _whole_numbers(values, f"identity({constraint})")  # type: ignore[arg-type]
        if constraint.values is not None and constraint.values != declared:
            raise InvalidConstraint(f"identity({constraint}): the constraint declares other values already. Declare them once.")
    if declared is None and isinstance(constraint, Margin):
        raise InvalidConstraint(
            f"identity({constraint}): the sums of a margin differ from one data set to the next, unless their values are declared; without "
            "values this is a kept total. Declare values=..., or keep the constraint without identity()."
        )
    return replace(constraint, kind="identity", values=0 if declared is None else declared)


def _written(function: str, kind: Kind, *arguments: str, by: tuple[str, ...] = (), values: Values = None) -> str:
    """The call that makes such a constraint, on one line."""
    call = f"{function}({', '.join([*arguments, *([f'by=[{_names(by)}]'] if by else [])])})"
    if kind != "identity":
        return call
    if isinstance(values, tuple):
        return f"identity({call}, values=[{list_names([str(value) for value in values], 45)}])"
    return f"identity({call}, values={values})" if values else f"identity({call})"


def _names(names: tuple[str, ...]) -> str:
    return list_names(names, 45, repr)


def _check_names(names: Sequence[str], where: str) -> None:
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        listed = names[0] if isinstance(names, tuple) and names and isinstance(names[0], list | tuple) else ()
        own = ", ".join(repr(name) for name in listed if isinstance(name, str)) or "'state'"
        raise InvalidConstraint(f"{where} takes column names, each a text. Write for example margin({own}) or by=[{own}].")
    if len(set(names)) < len(names):
        raise InvalidConstraint(f"{where} names a column twice: {', '.join(names)}. Name each once.")


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str):
        raise InvalidConstraint(f"{what} must be a text. Got {type(text).__name__}.")


def is_whole(value: object) -> bool:
    """True if the value is a whole number; True and False are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _whole_numbers(values: Sequence[int], what: str = "linear()") -> tuple[int, ...]:
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [None]
    if not all(map(is_whole, listed)):
        raise InvalidConstraint(f"{what}: values must be a list of whole numbers, one for each row.")
    return tuple(int(value) for value in listed if value is not None)


def _show_codes(codes: tuple[str, ...]) -> str:
    """The codes, or where they are many the first three and a mark that differs between different lists."""
    if len(codes) <= 8:
        return ", ".join(codes)
    mark = hashlib.sha256("\0".join(codes).encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{', '.join(codes[:3])}, ...: {len(codes)} codes, {mark}"


def _check_codes(codes: Sequence[str], what: str) -> None:
    if isinstance(codes, str):
        raise InvalidConstraint(f"{what} must be a list. Got one text. Write [{codes!r}].")
    if not isinstance(codes, Sequence) and type(codes).__name__ != "ndarray":  # a set has no order, and names must not change by run
        raise InvalidConstraint(f"{what} must be a list. Got {type(codes).__name__}. Write for example ['01', '02'].")
    if not all(isinstance(code, str) for code in codes):
        raise InvalidConstraint(f"{what} must all be texts: codes are never numbers. Write '01', not 1.")
    if len(set(codes)) < len(codes):
        raise InvalidConstraint(f"{what} name a code twice. Name each once.")


def groupings(universe: Universe, names: Sequence[str], what: str, given: Sequence[Grouping] = ()) -> tuple[Grouping, ...]:
    """The levels among these names, in full; names of columns are left out, columns go before levels of the same name.

    Given:       `given`: what names mean where no hierarchy says so.
    Guarantees:  every code of the column is in exactly one unit. InvalidConstraint names what is no column and no level.
    """
    known = {grouping.level: grouping for grouping in given}
    return tuple(
        _check_grouping(universe, known.get(name) or _find_level(universe, name, what), what)
        for name in names
        if name not in universe.codes
    )


def _find_level(universe: Universe, name: str, what: str) -> Grouping:
    homes = [column for column, tree in universe.hierarchies.items() if name in named_levels(tree)]
    if len(homes) > 1:
        raise InvalidConstraint(
            f"{what}: {name!r} is a level of the hierarchies of {' and '.join(homes)}. Give the levels different names."
        )
    if not homes:
        raise no_column(universe, name, what)
    tree = universe.hierarchies[homes[0]]
    leaf = tree.leaf_above(name)
    if leaf is not None:
        raise InvalidConstraint(
            f"{what}: code {shorten(leaf)!r} of {homes[0]!r} has no unit at level {name!r}: the hierarchy is uneven there, and the code's "
            "own total would be kept. Give it a unit, if need be one of its own with another name."
        )
    return Grouping(name, homes[0], tuple((node, tree.leaves(node)) for node in tree.level(name)))


def no_column(universe: Universe, name: str, what: str) -> InvalidConstraint:
    """The refusal of a name that is neither a column nor a level; it names the nearest of both."""
    levels = [level for tree in universe.hierarchies.values() for level in named_levels(tree)]
    also = f" Levels of its hierarchies: {', '.join(levels)}." if levels else ""
    several = names_in(name, [*universe.columns, *levels])
    near = f"Write each by itself: {', '.join(map(repr, several))}. " if several else nearest(name, [*universe.columns, *levels], "{!r}")
    return InvalidConstraint(f"{what}: there is no column {name!r}. {near}The table has {', '.join(universe.columns)}.{also}")


def named_levels(tree: Hierarchy) -> tuple[str, ...]:
    """The names given to levels; none where they are only numbered."""
    return () if tree.levels == tuple(map(str, range(len(tree.levels)))) else tree.levels


def _check_grouping(universe: Universe, grouping: Grouping, what: str) -> Grouping:
    if grouping.column not in universe.codes:
        raise no_column(universe, grouping.column, what)
    codes = [code for _, under in grouping.units for code in under]
    found = set(codes)
    left_out = [code for code in universe.codes[grouping.column] if code not in found]
    if left_out:
        raise InvalidConstraint(
            f"{what}: level {grouping.level!r} leaves out codes of {grouping.column!r}, such as {shorten(left_out[0])!r}: the hierarchy is "
            "uneven there. Give every code a unit at this level."
        )
    if len(codes) > len(found) or len(codes) > universe.code_count(grouping.column):
        raise InvalidConstraint(f"{what}: level {grouping.level!r} names a code twice, or one that {grouping.column!r} does not have.")
    return grouping


def unit_of(universe: Universe, grouping: Grouping) -> Ints:
    """The unit of each cell."""
    home = {code: number for number, (_, codes) in enumerate(grouping.units) for code in codes}
    of_code = np.array([home[code] for code in universe.codes[grouping.column]], dtype=np.int64)
    return of_code[universe.code_indices(grouping.column)]


def combine(universe: Universe, found: Sequence[Grouping]) -> tuple[Ints, tuple[str, ...]]:
    """(a number for each cell, equal where the cells are in the same units; the name of each number), all numbers in use."""
    number = np.zeros(len(universe), dtype=np.int64)
    names: list[list[tuple[str, str]]] = [[]]
    for grouping in found:
        joined = number * len(grouping.units) + unit_of(universe, grouping)
        present, number = np.unique(joined, return_inverse=True)
        units = [name for name, _ in grouping.units]
        names = [[*names[k // len(units)], (grouping.level, units[k % len(units)])] for k in present.tolist()]
    return number.astype(np.int64), tuple(map(named_codes, names))


def integer_matrix(matrix: Any) -> csr_array:
    """Any two-dimensional integer matrix as sparse int64; floats and entries beyond 2^31 are refused."""
    from scipy.sparse import csr_array, issparse

    try:
        given = matrix if issparse(matrix) else np.asarray(matrix)
    except ValueError:
        raise InvalidConstraint("A matrix of kept rows has rows of equal length. Got rows of different lengths.") from None
    if given.ndim != 2:
        raise InvalidConstraint(f"A matrix of kept rows has two dimensions. Got {given.ndim}.")
    if not (given.dtype.kind in "iu" or 0 in given.shape):
        raise InvalidConstraint(f"A matrix of kept rows holds integers. Got {given.dtype}. Multiply each row until its entries are whole.")
    _check_entries(matrix.tocoo().data if issparse(matrix) else np.asarray(given))
    sparse = csr_array(given, dtype=np.int64, copy=True)
    sparse.sum_duplicates()
    sparse.eliminate_zeros()
    _check_entries(sparse.data)
    return sparse


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


def _check_entries(entries: NDArray[Any]) -> None:
    if entries.size and (int(entries.max()) >= 2**31 or int(entries.min()) <= -(2**31)):
        raise InvalidConstraint("A matrix of kept rows has an entry beyond 2^31. Use smaller coefficients.")
