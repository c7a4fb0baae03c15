"""Nested sums first: replace each set by itself minus its children.

A family is one group number per cell (-1: none), the rows of one constraint. If a group g of one family lies inside what is left of a group
f of another, and comes before f in the order of (size, constraint), then g's cells are taken out of f: f's row becomes its own minus g's.
Since every row only ever loses rows that come before it in that order, the change of rows is unitriangular: rows before and after span
the same integer space. A group left without cells was implied by others: a redundant row. Of equal sets the one stated first stays.

There are two ways with one result. `reduce_by_pairs` compares every two families, cell by cell: the best for a few families of many groups.
`reduce_by_rows` looks at each different set once and only at sets that may lie in it: nearly linear in the number of families.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_PIECE = 1 << 18
"""Cells compared at a time: a few megabytes, which stay in the cache."""

FEW_FAMILIES = 24
"""Families up to which every two are compared."""
MOST_ROWS = 1 << 18
"""Groups up to which they are looked at one by one."""
PROBES = 16
"""Cells of a set that are looked at before all of them are: few sets that do not lie in another one get further."""

_NO_CELLS: Ints = np.zeros(0, dtype=np.int64)


def reduce_nested(families: Sequence[Ints], counts: Sequence[int]) -> Sequence[Ints]:
    """The group of each cell by family, -1 for none, after every set lost the cells of the sets nested in it.

    Given:       group numbers below counts[i] in family i, each with a cell.
    Guarantees:  the rows left and the rows given span the same space over the integers.
    """
    rows = sum({id(family): count for family, count in zip(families, counts, strict=True)}.values())
    return reduce_by_rows(families, counts) if len(families) > FEW_FAMILIES and rows <= MOST_ROWS else reduce_by_pairs(families, counts)


def reduce_margins(families: Sequence[Ints], counts: Sequence[int], columns: Sequence[frozenset[str]]) -> Sequence[Ints]:
    """As `reduce_nested` where the families are margins of a full product by these columns, each of two codes or more.

    A group of one margin lies in a group of another exactly if it goes by all its columns; so a margin is left whole or not at all: not if
    another goes by more columns, or by the same and was stated before.
    """
    first = {own: number for number, own in reversed(list(enumerate(columns)))}
    largest = largest_sets(first)
    nothing = np.full(len(families[0]) if families else 0, -1, dtype=np.int64)
    stays = [own in largest and first[own] == number for number, own in enumerate(columns)]
    return [family if stay else nothing for family, stay in zip(families, stays, strict=True)]


def largest_sets(given: Iterable[frozenset[str]]) -> set[frozenset[str]]:
    """Those that lie in no other one."""
    sets = set(given)
    bit = {name: 1 << place for place, name in enumerate(sorted(frozenset().union(*sets)))}
    masks = {own: sum(bit[name] for name in own) for own in sets}
    known = np.array(list(masks.values()), dtype=object if len(bit) > 62 else np.int64)
    return {own for own, mask in masks.items() if np.count_nonzero((known & mask) == mask) == 1}


def reduce_by_pairs(families: Sequence[Ints], counts: Sequence[int]) -> list[Ints]:
    """Every two families compared: time linear in cells for each pair."""
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
    return groups


def reduce_by_rows(families: Sequence[Ints], counts: Sequence[int]) -> list[Ints]:
    """The same, set by set.

    Proof:  by pairs, a set f of family F loses, in the order of families, each set g of other families that lies in what is left of f,
            if g is smaller, or equal and stated before. Of equal sets g only the first can be lost: afterwards, or if it was not whole in
            what is left, the others are not either. A family's own sets are disjoint from f. So what f keeps depends on the different
            sets alone, each at the place of its first family; and an equal set stated before f is lost exactly if it comes before all
            smaller ones, since the first of them that comes is always lost.
    """
    sets = _Sets(families, counts)
    groups = list(families)
    lost: dict[int, tuple[Ints, bool]] = {}
    repeated: dict[int, Ints] = {}  # what is left of families that are one array, from the second on
    for number, family in enumerate(families):
        if sets.first_number[id(family)] < number and id(family) in repeated:
            groups[number] = repeated[id(family)]
            continue
        gone = []
        for row in sets.rows_of(number):
            if row not in lost:
                lost[row] = sets.lost(row)
            cells, has_earlier = lost[row]
            repeats = sets.first_family[row] < number and not has_earlier
            gone.append(sets.cells(row) if repeats else cells)
        removed = np.concatenate([_NO_CELLS, *gone])
        if len(removed):
            groups[number] = family.copy()
            groups[number][removed] = -1
        if sets.first_number[id(family)] < number:
            repeated[id(family)] = groups[number]
    return groups


class _Sets:
    """The different sets of all families, told by numbers; each with its cells in order and the first family that has it."""

    def __init__(self, families: Sequence[Ints], counts: Sequence[int]) -> None:
        self._parts: list[Ints] = []
        self.first_family: list[int] = []
        self._rows_of: list[list[int]] = []
        known: dict[bytes, int] = {}
        self.first_number: dict[int, int] = {}
        """Keep the first of families that are one array, as constraints that repeat another one have."""
        for number, (family, count) in enumerate(zip(families, counts, strict=True)):
            same = self.first_number.setdefault(id(family), number)
            self._rows_of.append(self._rows_of[same] if same < number else self._add(number, family, count, known))
        self._sizes = np.array([len(cells) for cells in self._parts], dtype=np.int64)
        self._index(len(families[0]))

    def _add(self, number: int, family: Ints, count: int, known: dict[bytes, int]) -> list[int]:
        inside = np.flatnonzero(family >= 0)
        order = inside if count == 1 else inside[np.argsort(family[inside], kind="stable")]
        ends = np.cumsum(np.bincount(family[inside], minlength=count))[:-1]
        rows = []
        for cells in np.split(order, ends) if count > 1 else [order]:
            if not len(cells):  # of rows seen from other cells, some may have none
                continue
            row = known.setdefault(cells.tobytes(), len(known))
            if row == len(self._parts):
                self._parts.append(cells)
                self.first_family.append(number)
            rows.append(row)
        return rows

    def _index(self, n_cells: int) -> None:
        """Each set is found under that of its cells which the fewest sets have; a few of its cells are noted as probes."""
        degree = np.zeros(n_cells, dtype=np.int64)
        for cells in self._parts:
            degree[cells] += 1
        rarest, probes = [np.zeros(0, dtype=np.int64)], [np.zeros((0, PROBES), dtype=np.int64)]
        shared = [np.zeros(0, dtype=np.bool_)]
        for some in self._pieces():
            lengths, every = np.array([len(cells) for cells in some]), np.concatenate(some)
            starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
            rarest.append(np.minimum.reduceat(degree[every] * n_cells + every, starts) % n_cells)
            shared.append(np.maximum.reduceat(degree[every], starts) > 1)
            probes.append(every[starts[:, None] + (np.arange(PROBES)[None, :] * lengths[:, None]) // PROBES])
        under = np.concatenate(rarest)
        self._order = np.argsort(under, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(under, minlength=n_cells))])
        self._probes = np.concatenate(probes)
        self._shared: list[bool] = np.concatenate(shared).tolist()
        self._place = np.array(self.first_family, dtype=np.int64)
        self._left = np.zeros(n_cells, dtype=np.bool_)

    def _pieces(self) -> Iterator[list[Ints]]:
        """The sets, some of them at a time: a signal waits for no more than that."""
        some: list[Ints] = []
        size = 0
        for cells in self._parts:
            some.append(cells)
            size += len(cells)
            if size >= _PIECE:
                yield some
                some, size = [], 0
        if some:
            yield some

    def rows_of(self, family: int) -> list[int]:
        return self._rows_of[family]

    def cells(self, row: int) -> Ints:
        return self._parts[row]

    def lost(self, row: int) -> tuple[Ints, bool]:
        """(the cells that smaller sets take from this one, whether one of them was stated in a family before it)."""
        if not self._shared[row]:  # no other set has a cell of it
            return _NO_CELLS, False
        mine, left = self._parts[row], self._left
        left[mine] = True
        gone = []
        has_earlier = False
        candidates = self._probe(self._smaller(row), left)
        while len(candidates):
            inner, candidates = int(candidates[0]), candidates[1:]
            cells = self._parts[inner]
            if not left[cells].all():
                continue
            gone.append(cells)
            has_earlier = has_earlier or bool(self.first_family[inner] < self.first_family[row])
            left[cells] = False
            candidates = self._probe(candidates, left)
        left[mine] = False
        return np.concatenate([_NO_CELLS, *gone]), has_earlier

    def _smaller(self, row: int) -> Ints:
        """Smaller sets with a cell of this one, in the order in which they were stated."""
        mine = self._parts[row]
        begin, number = self._starts[mine], self._starts[mine + 1] - self._starts[mine]
        offset = np.repeat(begin - np.cumsum(number) + number, number)
        found = self._order[offset + np.arange(len(offset))]
        found = found[self._sizes[found] < len(mine)]
        return found[np.argsort(self._place[found], kind="stable")]

    def _probe(self, candidates: Ints, left: NDArray[np.bool_]) -> Ints:
        """Those of which all probes are left; of a set of few cells these are all of its cells."""
        for probe in range(PROBES):
            if not len(candidates):
                break
            candidates = candidates[left[self._probes[candidates, probe]]]
        return candidates


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
    sizes = np.zeros(count, dtype=np.int64)
    for begin in range(0, len(group), _PIECE):
        piece = group[begin : begin + _PIECE]
        sizes += np.bincount(piece[piece >= 0], minlength=count)
    return sizes
