"""Nested sums first: replace each set by itself minus its children.

A family is one group number per cell (-1: none), the rows of one statement. If every group of G lies inside one group of F or outside F
altogether, G is nested in F, and F's row equals (F minus G's cells) plus the rows of G inside it: the row space stays the same when F
gives up G's cells. A group of F left without cells was implied by G: a redundant row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Reduced:
    """Families after reduction: the same row space, fewer and smaller sets."""

    groups: tuple[Ints, ...]
    """Per family the group of each cell, -1 for none; group numbers are those of the family as given."""
    redundant: tuple[Ints, ...]
    """Per family the rows that nested families imply."""


def reduce_nested(families: Sequence[Ints], counts: Sequence[int]) -> Reduced:
    """Take out of every family the cells of the families nested in it.

    Given:       group numbers below counts[i] in family i.
    Guarantees:  the rows left and the rows given span the same space over the integers. Time linear in cells for each pair of families.
    """
    groups = [family.copy() for family in families]
    for outer in range(len(families)):
        for inner in range(len(families)):
            if inner == outer or not _is_nested(families[inner], counts[inner], groups[outer]):
                continue
            if inner > outer and _is_nested(groups[outer], counts[outer], families[inner]):
                continue  # the same sets twice: the later statement gives way
            groups[outer][families[inner] >= 0] = -1
    redundant = []
    for family, group, count in zip(families, groups, counts, strict=True):
        had, has = _present(family, count), _present(group, count)
        redundant.append(np.flatnonzero(had & ~has))
    return Reduced(tuple(groups), tuple(redundant))


def _is_nested(inner: Ints, count: int, outer: Ints) -> bool:
    """Whether each group of `inner` lies in one group of `outer` or wholly outside it, and some lies inside."""
    inside = inner >= 0
    if not inside.any():
        return False
    of_cells = outer[inside]
    representative = np.full(count, -1, dtype=np.int64)
    representative[inner[inside]] = of_cells
    return bool(np.array_equal(representative[inner[inside]], of_cells) and (of_cells >= 0).any())


def _present(group: Ints, count: int) -> NDArray[np.bool_]:
    present = np.zeros(count, dtype=np.bool_)
    present[group[group >= 0]] = True
    return present
