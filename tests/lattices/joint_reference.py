"""What several releases expose together, the slow way: dense exact algebra, and all tables that agree with the published totals."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from holdfast.exposure.joint import JointExposure, PublishedTotals
from holdfast.invariants import compile_rows, margin, total
from holdfast.invariants.constraints import Constraint
from holdfast.tables.universe import Universe


def table(**sizes: int) -> Universe:
    return Universe.product({column: [str(i) for i in range(size)] for column, size in sizes.items()})


def coded(**codes: str) -> Universe:
    return Universe.product({column: list(listed) for column, listed in codes.items()})


def release(name: str, universe: Universe, *constraints: Constraint, values: list[int] | None = None) -> PublishedTotals:
    return PublishedTotals(name, universe, constraints, None if values is None else tuple(values))


def published(name: str, universe: Universe, counts: np.ndarray, *constraints: Constraint) -> PublishedTotals:
    kept = compile_rows(universe, constraints)
    return release(name, universe, *constraints, values=[int(v) for rows in kept.rows for v in rows.totals(counts)])


# The oracle: row spaces by Gaussian elimination over fractions, tables laid over one another by comparing codes cell by cell.


def echelon(rows: list[list[int]]) -> list[list[Fraction]]:
    done: list[list[Fraction]] = []
    for row in rows:
        left = reduced([Fraction(entry) for entry in row], done)
        lead = next((entry for entry in left if entry), None)
        if lead is not None:
            done.append([entry / lead for entry in left])
    return done


def reduced(row: list[Fraction], done: list[list[Fraction]]) -> list[Fraction]:
    for other in done:
        place = next(i for i, entry in enumerate(other) if entry)
        if row[place]:
            factor = row[place]
            row = [a - factor * b for a, b in zip(row, other, strict=True)]
    return row


def in_span(row: list[int], done: list[list[Fraction]]) -> bool:
    return not any(reduced([Fraction(entry) for entry in row], done))


def cell_of(universe: Universe, codes: dict[str, str]) -> int:
    """The table cell that holds a refined cell, -1 for none; codes of other columns are left out."""
    return numbered(universe).get(tuple(codes[column] for column in universe.columns), -1)


@cache
def numbered(universe: Universe) -> dict[tuple[str, ...], int]:
    return {tuple(universe.cell(i).values()): i for i in range(len(universe))}


def oracle(releases: list[PublishedTotals], refined: Universe) -> list[tuple[set[int], set[int]]]:
    """Per release (cells fixed by its own rows, cells fixed jointly but not alone), identities alone left out."""
    cells = [refined.cell(i) for i in range(len(refined))]
    places = [[cell_of(each.universe, codes) for codes in cells] for each in releases]
    every: list[list[int]] = []
    known: list[list[int]] = []
    out = []
    for each, place in zip(releases, places, strict=True):
        kept = compile_rows(each.universe, each.constraints)
        dense = kept.matrix().toarray().astype(int).tolist()
        lifted = [[row[c] if c >= 0 else 0 for c in place] for row in dense]
        every += lifted
        known += [row for row, kind in zip(lifted, kept.kinds(), strict=True) if kind == "identity"]
    joint, identities = echelon(every), echelon(known)
    for each, place in zip(releases, places, strict=True):
        kept = compile_rows(each.universe, each.constraints)
        dense = kept.matrix().toarray().astype(int).tolist()
        own, own_known = echelon(dense), echelon([r for r, k in zip(dense, kept.kinds(), strict=True) if k == "identity"])
        old, new = set(), set()
        for cell in range(len(each.universe)):
            unit = [int(i == cell) for i in range(len(each.universe))]
            spread = [int(c == cell) for c in place]
            if in_span(unit, own):
                if not in_span(unit, own_known):
                    old.add(cell)
            elif in_span(spread, joint) and not in_span(spread, identities):
                new.add(cell)
        out.append((old, new))
    return out


def laid_over(releases: list[PublishedTotals]) -> set[frozenset[tuple[str, str]]]:
    """The refinement's cells: of tables with the same columns all cells, else all combinations that agree on shared columns."""
    cells = [[each.universe.cell(i) for i in range(len(each.universe))] for each in releases]
    if len({frozenset(each.universe.columns) for each in releases}) == 1:
        return {frozenset(cell.items()) for listed in cells for cell in listed}
    joined: list[dict[str, str]] = [{}]
    for listed in cells:
        joined = [a | b for a in joined for b in listed if all(a.get(c, code) == code for c, code in b.items())]
    return {frozenset(cell.items()) for cell in joined}


def learned_totals(releases: list[PublishedTotals], refined: Universe) -> set[tuple[str, frozenset[str]]]:
    """All margins of a table over columns of a margin that another release keeps, which are known jointly and not alone."""
    out = set()
    cells = [refined.cell(i) for i in range(len(refined))]
    every: list[list[int]] = []
    for each in releases:
        place = [cell_of(each.universe, codes) for codes in cells]
        dense = compile_rows(each.universe, each.constraints).matrix().toarray().astype(int).tolist()
        every += [[row[c] if c >= 0 else 0 for c in place] for row in dense]
    joint = echelon(every)
    for each in releases:
        own_rows = compile_rows(each.universe, each.constraints).matrix().toarray().astype(int).tolist()
        own, place = echelon(own_rows), [cell_of(each.universe, codes) for codes in cells]
        candidates = [
            frozenset(rows.columns) & frozenset(each.universe.columns)
            for other in releases
            if other is not each
            for rows in compile_rows(other.universe, other.constraints).families
            if rows.is_margin and rows.kind == "kept"
        ]
        found = set()
        for columns in candidates:
            sums = compile_rows(each.universe, [margin(*sorted(columns)) if columns else total()]).matrix().toarray().astype(int).tolist()
            lifted = [[row[c] if c >= 0 else 0 for c in place] for row in sums]
            if all(in_span(row, joint) for row in lifted) and not all(in_span(row, own) for row in sums):
                found.add(columns)
        out |= {(each.name, columns) for columns in found if not any(columns < larger for larger in found)}
    return out


def assert_agrees(found: JointExposure, releases: list[PublishedTotals]) -> None:
    assert found.is_computed
    assert found.complete
    assert found.fixed is not None
    assert found.refinement is not None
    cells = {frozenset(found.refinement.cell(i).items()) for i in range(len(found.refinement))}
    if not any(each.universe.hierarchies for each in releases):
        assert cells == laid_over(releases)
        assert {(told.release, frozenset(told.columns)) for told in found.facts.learned} == learned_totals(releases, found.refinement)
    expected = oracle(releases, found.refinement)
    assert [(set(cells.old.tolist()), set(cells.new.tolist())) for cells in found.fixed] == expected
    assert [cells.release for cells in found.fixed] == [given.name for given in releases]


def new_cells(found: JointExposure) -> list[list[str]]:
    assert found.fixed is not None
    return [list(cells.names()) for cells in found.fixed]


def brute(universe: Universe, releases: list[PublishedTotals], top: int) -> np.ndarray:
    """Every table of counts over these cells that has all the published totals."""
    matrix = np.vstack([compile_rows(universe, given.constraints).matrix().toarray() for given in releases])
    values = np.array([v for given in releases for v in given.values or ()])
    rows = range(len(matrix))
    out: list[list[int]] = []

    def extend(start: list[int], left: np.ndarray) -> None:
        if len(start) == len(universe):
            if not left.any():
                out.append(start)
            return
        column = matrix[:, len(start)]
        limit = min([int(left[i] // column[i]) for i in rows if column[i] > 0], default=top)
        for value in range(limit + 1):
            extend([*start, value], left - value * column)

    extend([], values)
    return np.array(out)
