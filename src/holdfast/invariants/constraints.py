"""What must hold exactly, in the office's words: frozen descriptions, compiled to rows in rows.py.

A constraint names sums of cells. Kept constraints are published: what they say is exposed, whatever the budget. Identities hold for every
data set (structural zeros, agreement of linked tables): their values are public, 0 unless others are declared. They restrict the noise and
expose nothing, and a table that breaks one is refused.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from holdfast.display import list_names, shorten
from holdfast.errors import InvalidConstraint

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
        raise InvalidConstraint(f"{where} takes column names, each a text. Write for example margin('state') or by=['state'].")
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
