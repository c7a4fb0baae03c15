"""`hf.answer`: real-valued answers on a grid, released like any table. The noise is that of a lattice, in steps of the grid."""

from __future__ import annotations

import decimal
import math
import numbers
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from holdfast.engines.local import Progress
from holdfast.errors import HoldfastWarning, InvalidParameter
from holdfast.exact.parameters import exact_fraction, positive_fraction
from holdfast.invariants import linear
from holdfast.invariants.statements import Areas, Linear, Margin, Statement, Subset
from holdfast.lattices import Lattice, lattice
from holdfast.lattices.grid_rounding import movement, to_grid
from holdfast.lattices.norms import L1
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.subspace import SubspaceMechanism
from holdfast.publication.pipeline import release
from holdfast.publication.release import Release
from holdfast.randomness import NoiseKey
from holdfast.tables import Table, Universe
from holdfast.tables.grid import MAX_PLACES, Grid, Neighbours
from holdfast.wording.answers import for_counts_only, moved_totals_sentence

if TYPE_CHECKING:
    from holdfast.privacy.ledger import Ledger, NewLedger

COLUMN = "answer"
"""The column of codes where answers have no universe of their own."""


def answer(
    values: Any,
    histogram: Any = None,
    *,
    mechanism: Mechanism,
    invariants: Any = (),
    sensitivity: Any = None,
    neighbours: Literal["replace-one", "add-remove"] = "replace-one",
    places: int | None = None,
    on_grid: bool = False,
    universe: Universe | None = None,
    names: Sequence[str] | None = None,
    value: str = "value",
    unit: str = "person",
    name: str | None = None,
    key: NoiseKey | None = None,
    ledger: Ledger | NewLedger | None = None,
    release_id: str | None = None,
    dataset: str | None = None,
    date: str | None = None,
    allow_exposed: int | None = None,
    office: str | None = None,
    approver: str | None = None,
    progress: Progress | None = None,
) -> Release:
    """Publish real-valued answers with noise that keeps linear invariants exactly.

    Given:       answers, one number each, and their `sensitivity` in the norm of the mechanism (l1 for Laplace, l2 for Gaussian): how far
                 one `unit` can move them. Or a query matrix of rational numbers and a `histogram` of counts: the answers are their product
                 and the sensitivity is computed, for `neighbours` that replace one record by another or add and remove one.
                 `invariants`: a matrix C of rational numbers, one column for each answer, or statements such as hf.margin over a
                 `universe`. Values are published as multiples of 2^-places. `on_grid=True` says that the answers of every data set are such
                 multiples; otherwise they are brought to the grid through the lattice, and the promise counts how far that moves them.
                 All other arguments are those of hf.release.
    Guarantees:  what `release.guarantee` says, for pairs of data sets with the same invariants C f(x). C y = C f(x) as exact numbers
                 wherever multiples of 2^-places can have these values, else their rounding, with a warning.
    Reference:   [theory T110], [theory T111].
    """
    if not isinstance(mechanism, SubspaceMechanism):
        raise InvalidParameter(for_counts_only(type(mechanism).__name__))
    query = read_query(values, histogram)
    cells = answer_universe(len(query.values), universe, names)
    statements = read_invariants(invariants, len(cells))
    moves = lattice(cells, statements)
    grid = make_grid(query, moves, mechanism, sensitivity=sensitivity, neighbours=neighbours, places=places, on_grid=on_grid)
    table = on_the_grid(query.values, moves, cells, grid, value=value, unit=unit, name=name)
    others: dict[str, Any] = {"dataset": dataset, "date": date, "allow_exposed": allow_exposed, "office": office, "approver": approver}
    return release(table, statements, mechanism, key, ledger, release_id, progress=progress, **others)


@dataclass(frozen=True, eq=False)
class AnswerQuery:
    """Answers as exact numbers. CONFIDENTIAL: the values are not shown."""

    values: list[Fraction] = field(repr=False)
    matrix: list[list[Fraction]] | None = None
    """The query matrix, where the answers come from one: public."""


def read_query(values: Any, histogram: Any = None) -> AnswerQuery:
    """Answers as given, or a query matrix times a histogram."""
    if histogram is None:
        return AnswerQuery(read_values(values))
    matrix = read_matrix(values, "The query matrix")
    counts = histogram.counts if isinstance(histogram, Table) else np.asarray(histogram)
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or len(counts) != len(matrix[0]):
        raise InvalidParameter(f"The histogram needs one whole number for each of the {len(matrix[0])} columns of the query matrix.")
    whole = counts.tolist()
    return AnswerQuery([sum((a * x for a, x in zip(row, whole, strict=True) if a and x), Fraction(0)) for row in matrix], matrix)


def read_values(values: Any) -> list[Fraction]:
    """Exact numbers: whole numbers, fractions, decimals, texts, and doubles, which are fractions. A message shows none of them."""
    given = values.tolist() if isinstance(values, np.ndarray) else list(values) if isinstance(values, Iterable) else None
    if given is None or isinstance(values, str | Mapping) or not given:
        raise InvalidParameter("Answers come as a list of numbers, one for each. Got no such list.")
    return [_value(entry, place) for place, entry in enumerate(given, 1)]


def _value(entry: Any, place: int) -> Fraction:
    try:
        if isinstance(entry, bool) or not isinstance(entry, str | numbers.Real | decimal.Decimal):
            raise TypeError
        return Fraction(entry if not isinstance(entry, numbers.Real) or isinstance(entry, numbers.Rational) else float(entry))
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        pass  # outside of the handler: what Python says would quote the value
    raise InvalidParameter(f"Answer {place} is not a finite number. Give whole numbers, fractions, decimals as texts, or finite doubles.")


def read_matrix(rows: Any, what: str) -> list[list[Fraction]]:
    """A matrix of rational numbers; doubles are refused, since invariants and sensitivities would not be the ones meant."""
    given = rows.tolist() if isinstance(rows, np.ndarray) else rows.toarray().tolist() if hasattr(rows, "toarray") else rows
    try:
        listed = [list(row) for row in given if not isinstance(row, str)]
    except TypeError:
        listed = []
    if not listed or not listed[0] or len({len(row) for row in listed}) > 1 or len(listed) != len(given):
        raise InvalidParameter(f"{what} is a list of rows of the same length. Got something else.")
    return [[exact_fraction(entry, f"{what}, row {i}, column {j}") for j, entry in enumerate(row, 1)] for i, row in enumerate(listed, 1)]


def answer_universe(count: int, universe: Universe | None, names: Sequence[str] | None) -> Universe:
    """One cell for each answer: the user's own, or numbered from 1."""
    if universe is None:
        codes = [str(number) for number in range(1, count + 1)] if names is None else list(names)
        if len(codes) != count:
            raise InvalidParameter(f"names has {len(codes)} entries for {count} answers. Give one for each.")
        return Universe.product({COLUMN: codes})
    if not isinstance(universe, Universe) or names is not None:
        raise InvalidParameter("universe is a Universe with one cell for each answer; it takes the place of names. Give one of the two.")
    if len(universe) != count:
        raise InvalidParameter(f"The universe has {len(universe)} cells for {count} answers. Give one answer for each cell, in its order.")
    return universe


def read_invariants(invariants: Any, cells: int) -> list[Statement]:
    """Statements as given, or the rows of a rational matrix, each scaled to whole numbers."""
    if isinstance(invariants, Margin | Subset | Areas | Linear):
        invariants = [invariants]
    if isinstance(invariants, Sequence) and all(isinstance(given, Margin | Subset | Areas | Linear) for given in invariants):
        stated = list(invariants)
        if any(given.values not in (None, 0) and any(_as_list(given.values)) for given in stated):
            raise InvalidParameter("Invariants of answers declare no values but 0: the kept values are those of the answers. Leave values out.")
        return stated
    rows = read_matrix(invariants, "The matrix of invariants")
    if len(rows[0]) != cells:
        raise InvalidParameter(f"The matrix of invariants has {len(rows[0])} columns for {cells} answers. Give one column for each answer.")
    scaled = [[int(entry * math.lcm(*(e.denominator for e in row))) for entry in row] for row in rows if any(row)]
    return [linear(np.array(scaled, dtype=object))] if scaled else []


def _as_list(values: Any) -> Sequence[int]:
    return values if isinstance(values, tuple) else (values,)


def make_grid(
    query: AnswerQuery,
    moves: Lattice,
    mechanism: SubspaceMechanism,
    *,
    sensitivity: Any,
    neighbours: str,
    places: int | None,
    on_grid: bool,
) -> Grid:
    """The grid, from public facts: the query matrix or the declared sensitivity, the invariants, and what is declared of the answers."""
    if query.matrix is not None and sensitivity is None:
        found = _of_matrix(query.matrix, moves, mechanism, neighbours)
    else:
        found = read_sensitivity(sensitivity, mechanism)
    if places is None:
        places = _usual_places(query, moves, mechanism, found, on_grid)
    grid = Grid(places)  # checked, before it is used
    multiples = query.matrix is not None and all((entry / grid.step).denominator == 1 for row in query.matrix for entry in row)
    return Grid(places, **found, on_grid=on_grid or multiples)


def read_sensitivity(sensitivity: Any, mechanism: SubspaceMechanism) -> dict[str, Any]:
    """The fields of a grid: one number in the norm of the mechanism, or {"l1": ..., "l2_squared": ...}."""
    if sensitivity is None:
        raise InvalidParameter(
            f"sensitivity is missing: how far one person can move the answers in {mechanism.norm.name} distance. Give it as an exact "
            "number, or give a query matrix and a histogram, from which it is computed.",
            field="sensitivity",
        )
    named = dict(sensitivity) if isinstance(sensitivity, Mapping) else {mechanism.norm.name: sensitivity}
    if "l2" in named and "l2_squared" not in named:
        named["l2_squared"] = _sensitivity(named.pop("l2"), "sensitivity") ** 2
    if not named or not set(named) <= {"l1", "l2_squared"}:
        raise InvalidParameter('sensitivity is one exact number, or {"l1": ..., "l2_squared": ...}. Write sensitivity="2".', field="sensitivity")
    return {norm: _sensitivity(number, f"sensitivity ({norm})") for norm, number in named.items()}


def _sensitivity(number: Any, what: str) -> Fraction:
    if number == 0:
        raise InvalidParameter(
            f"{what} is 0: then no person can move the answers, and they need no noise. Publish them as they are.", field="sensitivity"
        )
    return positive_fraction(number, what)


def _of_matrix(matrix: list[list[Fraction]], moves: Lattice, mechanism: SubspaceMechanism, neighbours: str) -> dict[str, Any]:
    raise NotImplementedError


def _usual_places(
    query: AnswerQuery, moves: Lattice, mechanism: SubspaceMechanism, found: Mapping[str, Any], on_grid: bool
) -> int:
    """So many that rounding adds a thousandth of the sensitivity at most; as few as a query matrix on the grid needs."""
    if on_grid:
        return 0
    if query.matrix is not None:
        denominator = math.lcm(*(entry.denominator for row in query.matrix for entry in row))
        if denominator & (denominator - 1) == 0 and denominator <= 2**MAX_PLACES:
            return denominator.bit_length() - 1
    l1, square = found.get("l1"), found.get("l2_squared")
    if mechanism.norm is L1 and l1 is not None:
        return min(max(movement(moves).exponent_for("l1", l1), 0), MAX_PLACES)
    length = Fraction(math.isqrt(math.floor((square or l1**2) * 2**40)) + 1, 2**20)
    return min(max(movement(moves).exponent_for("l2", length), 0), MAX_PLACES)


def on_the_grid(values: Sequence[Fraction], moves: Lattice, cells: Universe, grid: Grid, *, value: str, unit: str, name: str | None) -> Table:
    """The confidential table of answers in steps of the grid."""
    if grid.on_grid:
        steps = [entry / grid.step for entry in values]
        if any(entry.denominator != 1 for entry in steps):
            raise InvalidParameter(
                f"on_grid=True says that all answers are multiples of {grid.step_text}, and some are not. Use more places, or leave on_grid out: "
                "then answers are rounded, and the promise counts it.",
                field="on_grid",
            )
    found = to_grid(moves, values, grid.places)
    if found.moved_totals:
        warnings.warn(moved_totals_sentence(len(found.moved_totals), grid.step_text), HoldfastWarning, stacklevel=3)
    return Table(cells, found.integers, count=value, unit=unit, name=name, grid=grid)
