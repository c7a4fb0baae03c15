"""`hf.answer`: real-valued answers on a grid, released like any table. The noise is that of a lattice, in steps of the grid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq_mat, fmpz_mat

from holdfast.channels import Facts
from holdfast.display import Watcher
from holdfast.errors import ContradictingTotals, InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.invariants import linear
from holdfast.invariants.constraints import Areas, Constraint, Linear, Margin, Subset
from holdfast.lattices import Lattice, lattice
from holdfast.lattices.grid_rounding import movement, row_sums, to_grid
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.subspace import SubspaceMechanism
from holdfast.publication.booking import EMBEDDED, RecordedIn
from holdfast.publication.pipeline import release
from holdfast.publication.publication import Publication
from holdfast.randomness import NoiseKey
from holdfast.subspace.sensitivities import Neighbours, Sensitivities, read_sensitivity, same_invariants_sensitivities
from holdfast.subspace.spaces import Invariants, read_matrix
from holdfast.tables import Table, Universe
from holdfast.tables.answers import exact_value
from holdfast.tables.measure import AnswerGrid, check_flag, decimals_of, read_step, reads_bits
from holdfast.wording.answers import (
    LARGE_COEFFICIENTS,
    broken_identity,
    declared_neighbours,
    floating_only,
    for_counts_only,
    identity_off_grid,
    never_on_grid,
    no_mechanism,
    totals_off_grid,
)

FINEST = 7
"""Decimals of a step that nobody gave, at most: answers may then be as large as 10^11."""
COLUMN = "answer"
"""The column of codes where answers have no universe of their own."""


def answer(
    values: Any,
    histogram: Any = None,
    *,
    mechanism: SubspaceMechanism,
    keep: Any = (),
    sensitivity: Any = None,
    neighbours: Neighbours = "replace-one",
    step: Exact | None = None,
    on_grid: bool = False,
    round_totals: bool = False,
    universe: Universe | None = None,
    names: Sequence[str] | None = None,
    value: str = "value",
    protect: str = "person",
    name: str | None = None,
    key: NoiseKey | None = None,
    ledger: RecordedIn = EMBEDDED,
    release_id: str | None = None,
    dataset: str | None = None,
    date: str | None = None,
    allow_exposed: int = 0,
    office: str | None = None,
    approver: str | None = None,
    progress: Watcher | None = None,
) -> Publication:
    """Publish real-valued answers with noise that keeps linear invariants exactly.

    Given:       answers, one number each, and their `sensitivity` in the norm of the mechanism (l1 for Laplace, l2 for Gaussian): how far
                 one person (or what `protect` names) can move them. Or a query matrix of rational numbers and a `histogram` of counts:
                 the answers are their product and the sensitivity is computed, for `neighbours` that replace one record by another or add
                 and remove one, and have the same invariants; refused where there are none.
                 `keep`: a matrix C of rational numbers, one column for each answer, or constraints such as hf.margin over a `universe`,
                 whose values are kept. Values are published as multiples of `step`, such as "0.01" or "1/1024". `on_grid=True` says that
                 the answers of every data set are such multiples; otherwise they are brought to the grid through the lattice, and the
                 promise counts how far that moves them. Kept totals that no multiples have are refused, or rounded with `round_totals`.
                 All other arguments are those of hf.release.
    Guarantees:  what `release.guarantee` says, for pairs of data sets with the same invariants C f(x). C y = C f(x) as exact numbers,
                 unless `round_totals` says that they may be rounded. Totals, card and pages tell nothing of C f(x) beyond C y.
    Reference:   [theory T110], [theory T111].
    """
    if isinstance(mechanism, type) or not (isinstance(mechanism, Mechanism) or hasattr(mechanism, "floating")):
        raise InvalidParameter(no_mechanism(mechanism), field="mechanism")
    others: dict[str, Any] = {"dataset": dataset, "date": date, "allow_exposed": allow_exposed, "office": office, "approver": approver}
    mechanism = _for_the_grid(mechanism)
    check_flag(on_grid, "on_grid")
    said = None if step is None else read_step(step)
    query = read_answers(values, histogram, binary=reads_bits(said, on_grid))
    cells = answer_universe(len(query.values), universe, names)
    constraints = read_invariants(keep, len(cells))
    moves = lattice(cells, constraints)
    declared: dict[str, Any] = {"step": said, "on_grid": on_grid, "round_totals": round_totals}
    grid = make_grid(query, moves, mechanism, sensitivity=sensitivity, neighbours=neighbours, **declared)
    table = on_the_grid(query.values, moves, grid, value=value, protect=protect, name=name)
    return release(table, constraints, mechanism, key, ledger, release_id, progress=progress, **others)


def _for_the_grid(mechanism: object) -> SubspaceMechanism:
    """Refuse a mechanism for counts, and one that has a form in floating point only."""
    if not isinstance(mechanism, SubspaceMechanism):
        told = for_counts_only if isinstance(mechanism, Mechanism) else floating_only
        raise InvalidParameter(told(type(mechanism).__name__), field="mechanism")
    return mechanism


@dataclass(frozen=True, eq=False)
class AnswerQuery:
    """Answers as exact numbers. CONFIDENTIAL: the values are not shown."""

    values: list[Fraction] = field(repr=False)
    matrix: fmpq_mat | None = None
    """The query matrix, where the answers come from one: public."""


def read_answers(values: Any, histogram: Any = None, *, binary: bool = False) -> AnswerQuery:
    """Answers as given, or a query matrix times a histogram."""
    if histogram is None:
        return AnswerQuery(read_values(values, binary=binary))
    matrix = read_matrix(values, "The query matrix")
    counts = histogram.counts if isinstance(histogram, Table) else np.asarray(histogram)
    if counts.shape != (matrix.ncols(),) or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise InvalidParameter(
            f"The histogram needs one count, a whole number, for each of the {matrix.ncols()} columns of the query matrix.",
            field="histogram",
        )
    product = matrix * fmpq_mat(fmpz_mat(len(counts), 1, counts.tolist()))
    return AnswerQuery([Fraction(int(entry.p), int(entry.q)) for entry in product.entries()], matrix)


def read_values(values: Any, *, binary: bool = False) -> list[Fraction]:
    """Exact numbers: whole numbers, fractions, decimals, texts, and doubles, each as the decimal that is shown for it, or with `binary` as
    the fraction that it is. A message shows none of them.
    """
    given = list(values) if isinstance(values, Iterable) else None
    if given is None or isinstance(values, str | Mapping | Set) or not given:
        raise InvalidParameter("Answers come as a list of numbers, one for each, in their order. Got no such list.")
    found = [exact_value(entry, binary=binary) for entry in given]
    if None in found:
        raise InvalidParameter(
            f"Answer {found.index(None) + 1} is not a finite number. Give whole numbers, fractions, decimals as texts, or finite doubles."
        )
    return [value for value in found if value is not None]


def answer_universe(count: int, universe: Universe | None, names: Sequence[str] | None) -> Universe:
    """One cell for each answer: the user's own, or numbered from 1."""
    if universe is None:
        codes = [str(number) for number in range(1, count + 1)] if names is None else list(names)
        if len(codes) != count:
            raise InvalidParameter(f"names has {len(codes)} entries for {count} answers. Give one for each.")
        return Universe.product({COLUMN: codes}, allow_total_names=True)  # the sensitivity was declared, of totals too
    if not isinstance(universe, Universe) or names is not None:
        raise InvalidParameter("universe is a Universe with one cell for each answer; it takes the place of names. Give one of the two.")
    if len(universe) != count:
        raise InvalidParameter(f"The universe has {len(universe)} cells for {count} answers. Give one answer for each cell, in its order.")
    return universe


def read_invariants(invariants: Any, cells: int) -> list[Constraint]:
    """Constraints as given, or the rows of a rational matrix, each scaled to whole numbers."""
    if isinstance(invariants, Margin | Subset | Areas | Linear):
        invariants = [invariants]
    if isinstance(invariants, Sequence) and all(isinstance(given, Margin | Subset | Areas | Linear) for given in invariants):
        stated = list(invariants)
        if any(given.values not in (None, 0) and any(_as_list(given.values)) for given in stated):
            raise InvalidParameter(
                "Invariants of answers declare no values but 0: the kept values are those of the answers. Leave values out."
            )
        return stated
    rows = read_matrix(invariants, "The matrix of invariants", cells)
    scaled = [[int(entry.p) * (scale // int(entry.q)) for entry in row] for row in rows.tolist() if (scale := _scale(row))]
    if any(abs(entry) >= 2**31 for row in scaled for entry in row):
        raise InvalidParameter(LARGE_COEFFICIENTS, field="keep")
    return [linear(scaled)] if scaled else []


def _scale(row: Sequence[Any]) -> int:
    """The common denominator of a row; 0 for a row of zeros, which says nothing."""
    return math.lcm(*(int(entry.q) for entry in row)) if any(row) else 0


def _as_list(values: Any) -> Sequence[int]:
    return values if isinstance(values, tuple) else (values,)


def make_grid(
    query: AnswerQuery,
    moves: Lattice,
    mechanism: SubspaceMechanism,
    *,
    sensitivity: Any,
    neighbours: Neighbours,
    step: Fraction | None,
    on_grid: bool,
    round_totals: bool,
) -> AnswerGrid:
    """The grid, from public facts: the query matrix or the declared sensitivity, the invariants, and what is declared of the answers."""
    if query.matrix is None:
        if neighbours != "replace-one":
            raise InvalidParameter(declared_neighbours(mechanism.norm), field="neighbours")
        return declared_grid(moves, mechanism, sensitivity, step=step, on_grid=on_grid, round_totals=round_totals)
    if sensitivity is not None:
        raise InvalidParameter("The sensitivity of a query matrix is computed. Leave sensitivity out.", field="sensitivity")
    said = _of_matrix(query.matrix, moves, mechanism, neighbours)
    denominator = int(query.matrix.numer_denom()[1])  # of all answers of all data sets
    made = AnswerGrid(usual_step(denominator, moves, mechanism, said, on_grid) if step is None else step, **said)
    multiples = (Fraction(1, denominator) / made.step).denominator == 1
    if on_grid and not multiples:
        raise InvalidParameter(never_on_grid(denominator, made.step_text), field="on_grid")
    made = replace(made, on_grid=multiples, round_totals=round_totals)
    mechanism.answers(Facts(moves, measure=made))  # what does not fit together is refused before an answer is looked at
    return made


def declared_grid(
    moves: Lattice, mechanism: SubspaceMechanism, sensitivity: Any, *, step: Fraction | None, on_grid: bool, round_totals: bool
) -> AnswerGrid:
    """The grid of answers whose sensitivity was declared; refused where the mechanism cannot use it."""
    said = read_sensitivities(sensitivity, mechanism)
    chosen = usual_step(None, moves, mechanism, said, on_grid) if step is None else step
    made = AnswerGrid(chosen, **said, on_grid=on_grid, round_totals=round_totals)
    mechanism.answers(Facts(moves, measure=made))
    return made


def read_sensitivities(sensitivity: Any, mechanism: SubspaceMechanism) -> dict[str, Any]:
    """The fields of a grid: from one number in the norm of the mechanism, or from holdfast.subspace.Sensitivities."""
    if sensitivity is None:
        raise InvalidParameter(
            f"sensitivity is missing: how far one person can move the answers in {mechanism.norm} distance. Give it as an exact number, or "
            "give a query matrix and a histogram, from which it is computed.",
            field="sensitivity",
        )
    if isinstance(sensitivity, Sensitivities):
        return _fields(sensitivity, mechanism)
    number = read_sensitivity(sensitivity)
    return {"l1": number} if mechanism.norm == "l1" else {"l2_squared": number**2}


def _of_matrix(matrix: fmpq_mat, moves: Lattice, mechanism: SubspaceMechanism, neighbours: Neighbours) -> dict[str, Any]:
    rows = moves.matrix.toarray().tolist()
    return _fields(same_invariants_sensitivities(matrix, Invariants(rows, moves.cells), neighbours), mechanism)


def _fields(found: Sensitivities, mechanism: SubspaceMechanism) -> dict[str, Any]:
    """In the norm of the mechanism. Extended noise is for the projection of the query, which two data sets with the same invariants do not
    leave.
    """
    projected = found.projected_l2_squared if mechanism.of_projection else None
    l2_squared = found.l2_squared if projected is None else projected
    known = {"l1": found.l1} if mechanism.norm == "l1" or l2_squared is None else {"l2_squared": l2_squared}
    return {**known, "neighbours": found.neighbours}


def usual_step(denominator: int | None, moves: Lattice, mechanism: SubspaceMechanism, said: Mapping[str, Any], on_grid: bool) -> Fraction:
    """The largest that a query matrix on the grid allows; else a power of ten so small that rounding adds a thousandth of the sensitivity
    at most, but not below FINEST.
    """
    if denominator is not None and decimals_of(Fraction(1, denominator)) <= FINEST:
        return Fraction(1, denominator)
    if on_grid:
        return Fraction(1)
    moved, sensitivity = movement(moves), AnswerGrid(Fraction(1), **said).sensitivity(mechanism.norm)
    ratio = (1000 * moved.l1 / sensitivity) ** 2 if mechanism.norm == "l1" else 1000**2 * moved.l2_squared / sensitivity
    return Fraction(1, 10 ** next((decimals for decimals in range(FINEST) if ratio <= 100**decimals), FINEST))


def on_the_grid(values: Sequence[Fraction], moves: Lattice, grid: AnswerGrid, *, value: str, protect: str, name: str | None) -> Table:
    """The confidential table of answers in steps of the grid."""
    if grid.on_grid:
        steps = [entry / grid.step for entry in values]
        if any(entry.denominator != 1 for entry in steps):
            raise InvalidParameter(
                f"on_grid=True says that all answers are multiples of {grid.step_text}, and some are not. Use a smaller step, or leave "
                "on_grid out: then answers are rounded, and the promise counts it.",
                field="on_grid",
            )
    assert moves.universe is not None
    assert moves.kept is not None
    families = [rows for rows in moves.kept.rows for _ in range(rows.count)]
    if any(rows.values is not None for rows in moves.kept.rows):  # 0, the only value that is declared of answers
        for rows, total in zip(families, row_sums(moves, values), strict=True):
            if rows.values is not None and total:
                raise ContradictingTotals(broken_identity(rows.constraint), field="keep")
    found = to_grid(moves, values, grid.step)
    for rows in (families[row] for row in found.moved_totals):
        if rows.values is not None:
            raise InvalidParameter(identity_off_grid(rows.constraint, grid.step_text), field="step")
        if not grid.round_totals:
            raise InvalidParameter(totals_off_grid(grid.step_text), field="step")
    return Table(moves.universe, found.integers, count=value, protect=protect, name=name, measure=grid)
