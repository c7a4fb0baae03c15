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

_PIECE = 1 << 18
"""Cells compared at a time: a few megabytes, which stay in the cache."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """Families after reduction: the same row space, fewer and smaller sets."""

    groups: tuple[Ints, ...]
    """Per family the group of each cell, -1 for none; group numbers are those of the family as given."""
    redundant: tuple[Ints, ...]
    """Per family the rows that nested families imply."""


def reduce_nested(families: Sequence[Ints], counts: Sequence[int]) -> Reduced:
    """Take out of every family the cells of the families nested in it.

    Given:       group numbers below counts[i] in family i, each with a cell.
    Guarantees:  the rows left and the rows given span the same space over the integers. Time linear in cells for each pair of families.
    """
    groups = list(families)
    covers = [not (family < 0).any() for family in families]
    for outer in range(len(families)):
        is_empty = False
        for inner in range(len(families)):
            if inner == outer or is_empty:
                continue
            if covers[inner] and covers[outer] and counts[inner] < counts[outer]:
                continue  # both cover every cell: the finer one has at least as many sets
            if not _is_nested(families[inner], counts[inner], groups[outer]):
                continue
            if inner > outer and _is_nested(groups[outer], counts[outer], families[inner]):
                continue  # the same sets twice: the later statement gives way
            if groups[outer] is families[outer]:
                groups[outer] = families[outer].copy()
            np.putmask(groups[outer], families[inner] >= 0, -1)
            is_empty = covers[inner] or not (groups[outer] >= 0).any()
    redundant = tuple(np.flatnonzero(~_present(group, count)) for group, count in zip(groups, counts, strict=True))
    return Reduced(tuple(groups), redundant)


def _is_nested(inner: Ints, count: int, outer: Ints) -> bool:
    """Whether each group of `inner` lies in one group of `outer` or wholly outside it, and some lies inside.

    Pieces of the arrays are compared one by one: no copies of whole tables, and an early end where the answer is no.
    """
    representative = np.full(count + 1, -1, dtype=np.int64)  # the last entry catches cells outside `inner`
    representative[inner] = outer
    overlaps = False
    for begin in range(0, len(inner), _PIECE):
        mine, theirs = inner[begin : begin + _PIECE], outer[begin : begin + _PIECE]
        inside = mine >= 0
        if ((representative[mine] != theirs) & inside).any():
            return False
        overlaps = overlaps or bool(((theirs >= 0) & inside).any())
    return overlaps


def _present(group: Ints, count: int) -> NDArray[np.bool_]:
    present = np.zeros(count + 1, dtype=np.bool_)
    present[group] = True  # -1 marks the entry beyond the last
    return present[:-1]
