"""Nested sums first: replace each set by itself minus its children.

A family is one group number per cell (-1: none), the rows of one statement. If a group g of one family lies inside what is left of a group
f of another, and comes before f in the order of (size, statement), then g's cells are taken out of f: f's row becomes its own minus g's.
Since every row only ever loses rows that come before it in that order, the change of rows is unitriangular: rows before and after span
the same integer space. A group left without cells was implied by others: a redundant row. Of equal sets the one stated first stays.
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
    """Take out of every set the cells of the sets nested in it.

    Given:       group numbers below counts[i] in family i, each with a cell.
    Guarantees:  the rows left and the rows given span the same space over the integers. Time linear in cells for each pair of families.
    """
    groups = list(families)
    sizes = [_sizes(family, count) for family, count in zip(families, counts, strict=True)]
    supports = [_support(family) for family in families]
    for outer in range(len(families)):
        for inner in range(len(families)):
            if inner == outer or (groups[outer] is not families[outer] and not (groups[outer] >= 0).any()):
                continue
            cells = supports[inner]
            inside = families[inner] if cells is None else families[inner][cells]
            around = groups[outer] if cells is None else groups[outer][cells]
            nested = _nested_groups(inside, sizes[inner], around, sizes[outer], inner < outer)
            if not nested.any():
                continue
            if groups[outer] is families[outer]:
                groups[outer] = families[outer].copy()
            if cells is not None:
                groups[outer][cells[nested[inside]]] = -1
                continue
            for begin in range(0, len(inside), _PIECE):
                np.putmask(groups[outer][begin : begin + _PIECE], nested[inside[begin : begin + _PIECE]], -1)
    redundant = tuple(np.flatnonzero(~_present(group, count)) for group, count in zip(groups, counts, strict=True))
    return Reduced(tuple(groups), redundant)


def _nested_groups(inner: Ints, inner_sizes: Ints, outer: Ints, outer_sizes: Ints, inner_first: bool) -> NDArray[np.bool_]:
    """For each group of `inner` whether it lies in one group of what is left of `outer` and comes before it; a last False for no group.

    Pieces of the arrays are compared one by one: no copies of whole tables.
    """
    count = len(inner_sizes)
    home = np.full(count + 1, -1, dtype=np.int64)  # the last entry catches cells outside `inner`
    home[inner] = outer
    nested = home >= 0
    for begin in range(0, len(inner), _PIECE):
        mine = inner[begin : begin + _PIECE]
        differs = home[mine] != outer[begin : begin + _PIECE]
        if differs.any():
            nested[mine[differs]] = False
    own, around = inner_sizes, outer_sizes[home[:-1]]
    nested[:-1] &= (own < around) | ((own == around) & inner_first)
    nested[-1] = False
    return nested


def _support(group: Ints) -> Ints | None:
    """The cells of a family that holds few of them, so that comparing it with others costs only those; None for the others."""
    cells = np.flatnonzero(group >= 0)
    return cells if 4 * len(cells) < len(group) else None


def _sizes(group: Ints, count: int) -> Ints:
    return np.bincount(group + 1, minlength=count + 1)[1:].astype(np.int64)


def _present(group: Ints, count: int) -> NDArray[np.bool_]:
    present = np.zeros(count + 1, dtype=np.bool_)
    present[group] = True  # -1 marks the entry beyond the last
    return present[:-1]
