"""The universe of a table: which columns, which codes, which cells. Public facts only; no count ever stands here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.display import count_of, html_table, list_names, shorten
from holdfast.errors import DuplicateCells, EmptyTable, InvalidCode, InvalidParameter, RequestTooLarge, UnknownColumn
from holdfast.tables.cells import find_rows, rank_rows, rows_ascend, strides
from holdfast.tables.columns import BATCH, Indices, arrow_numbers, index_type, read_only
from holdfast.tables.hierarchy import Hierarchy, first_repeated
from holdfast.tables.labels import NO_LABELS, Labels
from holdfast.tables.machine import check_memory
from holdfast.tables.readers import open_source, read_codes
from holdfast.tables.text_files import Reading
from holdfast.tables.totals import Allow, check_codes

Support: TypeAlias = Literal["declared", "as listed", "observed"]
T = TypeVar("T")

_ORIGINS: dict[Support, str] = {
    "declared": "declared",
    "as listed": "the rows of the source, not declared public",
    "observed": "observed: the cells that have records, which is itself exposed",
}

FEW_CELLS = 1 << 18
"""Cells up to which the codes of the cells of a full product are kept once they were asked for."""
FEW_CODES = 8
"""Fewer than one code in so many are found one by one."""
MAX_CELLS = 2**36
"""More cells than any machine holds counts for (512 GiB of them): a mistake in the declaration."""


class Codes(Mapping[str, tuple[str, ...]]):
    """The codes of each column as Python texts, made when a column is first asked for: ten million codes are not made in vain."""

    def __init__(self, columns: tuple[str, ...], arrays: tuple[Any, ...]) -> None:
        self._arrays = dict(zip(columns, arrays, strict=True))
        self._made: dict[str, tuple[str, ...]] = {}
        self._derived: dict[tuple[str, object], Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Codes, (tuple(self._arrays), tuple(self._arrays.values()))

    def derive(self, column: str, make: Callable[[tuple[str, ...]], T]) -> T:
        """What a function makes of the codes of a column, made once: thousands of constraints may ask. Not to be written to."""
        if (column, make) not in self._derived:
            self._derived[column, make] = make(self[column])
        return cast(T, self._derived[column, make])

    def places(self, column: str) -> Mapping[str, int]:
        """The place of each code among the codes of its column."""
        return self.derive(column, _places)

    def __getitem__(self, column: str) -> tuple[str, ...]:
        if column not in self._made:
            self._made[column] = tuple(self._arrays[column].to_pylist())
        return self._made[column]

    def __contains__(self, column: object) -> bool:
        return column in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return (
            "{"
            + list_names([f"{shorten(repr(column), 24)}: {count_of(len(array), 'code')}" for column, array in self._arrays.items()], 120)
            + "}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Universe:
    """The cells of a table, in order, each named by one code per column. Build one with `product` or `listed`.

    Guarantees:  codes are the texts given, in the order given; no cell occurs twice; nothing in it depends on a count where `support` is
                 "declared". "as listed": the rows of a source of counts, perhaps those with a positive count; "observed": the cells
                 that have records. Two universes are equal if columns, codes, cells and their order are. Memory: one to four bytes per
                 cell and column, and nothing per cell if the cells are the full product in order (last column fastest).
    """

    columns: tuple[str, ...]
    support: Support
    _codes: tuple[Any, ...]
    """Per column an Arrow array of text."""
    _indices: tuple[Indices, ...] | None
    """Per column the index of every cell's code; None for the full product in order."""
    _hierarchies: dict[str, Hierarchy]
    rows_moved: bool = False
    """Whether the rows of the source stood in another order than the cells: a matrix with one column for each row would not fit."""
    labels: Labels = NO_LABELS
    """What people call columns and codes; no part of the digest."""

    @classmethod
    def product(
        cls,
        codes: Mapping[str, Sequence[str] | Hierarchy],
        *,
        hierarchies: Mapping[str, Hierarchy] | None = None,
        allow_similar_codes: bool = False,
        allow_total_names: bool = False,
    ) -> Universe:
        """Every combination of the codes of each column, the last column fastest. A hierarchy stands for its leaves.

        Codes of a column that differ only in blanks, case or Unicode form are refused, unless `allow_similar_codes`; codes named like
        totals (TOTAL_NAMES), unless `allow_total_names`.
        """
        if not codes:
            raise EmptyTable("A universe needs at least one column. Got none. Declare codes such as {'sex': ['F', 'M']}.")
        trees = {column: given for column, given in codes.items() if isinstance(given, Hierarchy)}
        arrays = tuple(
            _declared_codes(column, given.leaves() if isinstance(given, Hierarchy) else given) for column, given in codes.items()
        )
        for column, array in zip(codes, arrays, strict=True):
            check_codes(column, array, Allow(allow_similar_codes, allow_total_names))
        cells = prod(map(len, arrays))
        if cells > MAX_CELLS:
            raise RequestTooLarge(f"The product of all codes has {cells} cells, more than 2^36. List the cells that can occur instead.")
        return cls(tuple(codes), "declared", arrays, None, _checked_trees(tuple(codes), arrays, {**(hierarchies or {}), **trees}))

    @classmethod
    def listed(
        cls,
        cells: Any,
        columns: Sequence[str] | None = None,
        *,
        hierarchies: Mapping[str, Hierarchy] | None = None,
        allow_similar_codes: bool = False,
        allow_total_names: bool = False,
        separator: str | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
    ) -> Universe:
        """Exactly the cells of these rows, in their order: nested geography, structural zeros left out.

        Given:       a frame, a path, or a mapping from column to the codes of all rows; `columns` selects, by default all.
                     `separator`, `encoding` and `sheet` say how a file is read where it does not tell.
        Guarantees:  a cell that is listed twice is refused with the numbers of two such rows; codes that differ only in blanks, case or
                     Unicode form are refused, unless `allow_similar_codes`, and codes named like totals, unless `allow_total_names`.
        """
        data = _frame_of(cells) if isinstance(cells, Mapping) else cells
        with open_source(data, reading=Reading(separator, encoding, sheet)) as source:
            names = tuple(source.names if columns is None else columns)
            codes, indices = read_codes(source, names)
            for column, array in zip(names, codes, strict=True):
                check_codes(column, array, Allow(allow_similar_codes, allow_total_names))
            return cls.from_indices(names, codes, indices, "declared", source.label, hierarchies)

    @classmethod
    def from_indices(
        cls,
        columns: tuple[str, ...],
        codes: tuple[Any, ...],
        indices: tuple[Indices, ...],
        support: Support,
        label: str,
        hierarchies: Mapping[str, Hierarchy] | None = None,
    ) -> Universe:
        """From columns already read: per column distinct codes (an Arrow array of text) and the index of each row's code."""
        if not columns:
            raise EmptyTable("A table needs at least one column of codes. Got none. Name the columns that tell cells apart.")
        cells = len(indices[0])
        if cells == 0:
            raise EmptyTable(f"There are no rows in {label}. List every cell, zeros included; check the file or the query.")
        if not rows_ascend(indices):
            ranks_of_cells(indices, [len(array) for array in codes], label)
        ordered = cls(columns, support, codes, None, {})
        full = prod(ordered._radices) == cells  # not len(), which cannot say numbers beyond 2^63
        in_order = full and all(np.array_equal(ordered._spread(place), given) for place, given in enumerate(indices))
        small = [given.astype(index_type(len(array)), copy=False) for given, array in zip(indices, codes, strict=True)]
        kept = None if in_order else tuple(map(read_only, small))
        return cls(columns, support, codes, kept, _checked_trees(columns, codes, hierarchies or {}))

    def with_moved_rows(self) -> Universe:
        """The same cells, with the mark that the source has them in another order."""
        return replace(self, rows_moved=True)

    def with_hierarchies(self, hierarchies: Mapping[str, Hierarchy]) -> Universe:
        """The same cells with these code trees."""
        return replace(self, _hierarchies=_checked_trees(self.columns, self._codes, hierarchies))

    def with_labels(self, labels: Labels) -> Universe:
        """The same cells, with words for columns and codes; refused where they do not fit."""
        return replace(self, labels=labels.fit_to(self))

    @property
    def is_public(self) -> bool:
        """Whether the list of cells was declared, and so tells nothing of the data."""
        return self.support == "declared"

    def __len__(self) -> int:
        return prod(self._radices) if self._indices is None else len(self._indices[0])

    def __repr__(self) -> str:
        shape = "all combinations" if self.is_product else "listed cells"
        return f"Universe({len(self)} cells by {list_names(self.columns)}; {shape}; {self.support})"

    def declarations(self) -> list[tuple[str, str]]:
        """What is declared, as pairs of name and value for people: cells, where they come from, and the codes of each column."""
        shape = "all combinations" if self.is_product else "listed"
        trees = {column: f", in a hierarchy with {len(tree.levels)} levels" for column, tree in self._hierarchies.items()}
        codes = [
            (f"column {c}", count_of(f"{len(a):,}", "code") + trees.get(c, "")) for c, a in zip(self.columns, self._codes, strict=True)
        ]
        return [("cells", f"{len(self):,}, {shape}"), ("universe", _ORIGINS[self.support]), *codes]

    def _repr_html_(self) -> str:
        return html_table("Universe", self.declarations())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Universe):
            return NotImplemented
        return self is other or self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())

    @cached_property
    def codes(self) -> Codes:
        """Per column its codes, in the order declared or first seen."""
        return Codes(self.columns, self._codes)

    @property
    def hierarchies(self) -> dict[str, Hierarchy]:
        """The code trees given, by column."""
        return dict(self._hierarchies)

    @property
    def is_product(self) -> bool:
        """Whether the cells are all combinations of the codes, in whichever order."""
        return self._indices is None or len(self) == prod(self._radices)

    @property
    def is_in_order(self) -> bool:
        """Whether the cells are all combinations with the last column fastest, so that counts[i] reshapes to one axis per column."""
        return self._indices is None

    def code_count(self, column: str) -> int:
        """How many codes a column has, without making them."""
        return len(self._codes[self._place(column)])

    def code_indices(self, column: str) -> Indices:
        """For each cell the place of its code in codes[column], in integers as small as their number allows; read-only. In a product in
        order it is computed, not stored.
        """
        place = self._place(column)
        if self._indices is not None:
            return self._indices[place]
        if len(self) > FEW_CELLS:
            return read_only(self._spread(place))
        if place not in self._spreads:
            self._spreads[place] = read_only(self._spread(place))
        return self._spreads[place]

    def used_codes(self, column: str) -> NDArray[np.int64]:
        """The places of those codes of a column that have a cell."""
        place = self._place(column)
        used = np.full(self._radices[place], self._indices is None)
        given = used[:0] if self._indices is None else self._indices[place]
        for low in range(0, len(given), BATCH):
            used[given[low : low + BATCH]] = True
        return np.flatnonzero(used)

    def cells_having(self, column: str, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """For each cell whether its code in a column is one of those chosen. In a product in order few codes cost little more than their
        cells.
        """
        place = self._place(column)
        if self._indices is not None:
            return chosen[self._indices[place]]
        before, stride = prod(self._radices[:place]), strides(self._radices)[place]
        codes = np.flatnonzero(chosen)
        if len(codes) * FEW_CODES > len(chosen):
            return np.tile(np.repeat(chosen, stride), before)
        cells = np.zeros((before, len(chosen), stride), dtype=np.bool_)
        cells[:, codes] = True
        return cells.reshape(-1)

    def group(self, columns: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Cells that agree on these columns form a group: the group of each cell, and for each group its code index per column.

        Guarantees:  groups are numbered from 0 in lexicographic order of their code indices, in the order of `columns`; each has a cell.
                     No columns: one group.
        Time:        linear in the cells if few combinations are possible or cells are sorted; otherwise n log n.
        """
        if len(set(columns)) < len(columns):
            raise InvalidParameter(f"A column to group by is named twice: {', '.join(map(repr, columns))}. Name each once.")
        places = [self._place(column) for column in columns]
        if self._indices is None:
            return self._group_of_product(places)
        indices = [self.code_indices(column) for column in columns]
        groups, number = rank_rows(indices, [self._radices[place] for place in places], len(self))
        names = np.empty((number, len(columns)), dtype=np.int32)
        for place, given in enumerate(indices):
            names[groups, place] = given
        return groups, names

    def cell_name(self, cell: int) -> str:
        """A name a person recognises: "Cook County, women, 18 to 24" with labels. Without them "state=17, county=031": no two cells have
        the same; codes with commas and the like are quoted.
        """
        return self.labels.name_cell(self.cell(cell))

    def cell(self, cell: int) -> dict[str, str]:
        """The codes of one cell, by column; the inverse of `locate`."""
        if not 0 <= cell < len(self):
            raise InvalidParameter(f"Cells are numbered from 0 to {len(self) - 1}. Got {cell}.")
        if self._indices is None:
            steps = zip(strides(self._radices), self._radices, strict=True)
            row = [cell // stride % radix for stride, radix in steps]
        else:
            row = [int(given[cell]) for given in self._indices]
        return {name: array[index].as_py() for name, array, index in zip(self.columns, self._codes, row, strict=True)}

    def locate(self, codes: Mapping[str, str]) -> int:
        """The number of the cell with these codes, one for each column."""
        if set(codes) != set(self.columns):
            raise UnknownColumn(f"A cell is named by one code for each of {', '.join(self.columns)}. Got {', '.join(map(str, codes))}.")
        wanted = [np.array([self._index_of(column, codes[column])], dtype=np.int32) for column in self.columns]
        found = int(self.find(wanted)[0]) if self._indices is None else self._search(wanted)
        if found < 0:
            raise InvalidCode(f"There is no cell {dict(codes)!r}: each code is known, but this combination is not listed.")
        return found

    def find(self, indices: Sequence[Indices]) -> NDArray[np.int64]:
        """For each tuple of code indices (one array per column) the number of its cell, or -1 if that is not listed."""
        if self._indices is not None:
            return find_rows(self._indices, self._radices, indices)
        cells = np.zeros(len(indices[0]), dtype=np.int64)
        for stride, given in zip(strides(self._radices), indices, strict=True):
            cells += np.int64(stride) * given
        return cells

    def code_array(self, column: str) -> Any:
        """The codes of a column as an Arrow array of text."""
        return self._codes[self._place(column)]

    def frame(self) -> Any:
        """A pyarrow.Table of the cells: one column of dictionary-encoded text per column."""
        import pyarrow as pa

        indices = {column: arrow_numbers(self.code_indices(column).astype(np.int32, copy=False)) for column in self.columns}
        columns = [pa.DictionaryArray.from_arrays(given, self.code_array(column)) for column, given in indices.items()]
        return pa.Table.from_arrays(columns, names=list(self.columns))

    def digest(self) -> str:
        """SHA-256 (hexadecimal) of columns, codes and cells in order; public. How the cells were given makes no difference."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        sha = hashlib.sha256(b"holdfast universe 1\0")
        for column, array in zip(self.columns, self._codes, strict=True):
            _add_text(sha, [column.encode("utf-8", "surrogatepass")])
            _add_codes(sha, array)
        sha.update(b"product" if self._indices is None else b"cells" + len(self).to_bytes(8, "little"))
        for given in self._indices or ():
            for low in range(0, len(given), BATCH):
                sha.update(given[low : low + BATCH].astype("<i4", copy=False).data)
        return sha.hexdigest()

    @cached_property
    def _radices(self) -> list[int]:
        return [len(array) for array in self._codes]

    @cached_property
    def _spreads(self) -> dict[int, Indices]:
        """Columns of a full product of few cells, by place: thousands of constraints may ask for them."""
        return {}

    def _group_of_product(self, places: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """`group` for the full product in order: every combination of codes has a cell, so that groups are numbered by counting."""
        sizes = [self._radices[place] for place in places]
        names = np.indices(sizes, dtype=np.int32).reshape(len(places), -1).T if places else np.zeros((1, 0), dtype=np.int32)
        varied = [place for place, radix in enumerate(self._radices) if radix > 1]  # an array has few axes, a table may have many columns
        steps = dict(zip(places, strides(sizes), strict=True))
        numbers = np.zeros([1] * len(varied), dtype=np.int64)
        for axis, place in enumerate(varied):
            if place in steps:
                along = [-1 if other == axis else 1 for other in range(len(varied))]
                numbers = numbers + (steps[place] * np.arange(self._radices[place])).reshape(along)
        return np.broadcast_to(numbers, [self._radices[place] for place in varied]).flatten(), np.ascontiguousarray(names)

    def _spread(self, place: int) -> Indices:
        """One column of the full product."""
        stride, radix = strides(self._radices)[place], self._radices[place]
        once = np.repeat(np.arange(radix, dtype=np.int32), stride)
        return np.tile(once, prod(self._radices[:place]))

    def _place(self, column: str) -> int:
        if column not in self.columns:
            raise UnknownColumn(f"There is no column {column!r}. Columns: {', '.join(map(repr, self.columns))}.")
        return self.columns.index(column)

    def _index_of(self, column: str, code: str) -> int:
        import pyarrow as pa
        import pyarrow.compute as pc

        index = pc.index(self.code_array(column), pa.scalar(code, pa.string())).as_py() if isinstance(code, str) else -1
        if index < 0:
            raise InvalidCode(f"Column {column!r} has no code {code!r}. Codes are texts and must match exactly, blanks and zeros included.")
        return int(index)

    def _search(self, wanted: Sequence[Indices]) -> int:
        """One cell among those listed, by narrowing down; sorting all cells would not pay."""
        assert self._indices is not None
        left = np.flatnonzero(self._indices[0] == wanted[0])
        for given, index in zip(self._indices[1:], wanted[1:], strict=True):
            left = left[given[left] == index]
        return int(left[0]) if len(left) else -1


def check_counts_fit(universe: Universe, columns: int) -> None:
    """Refuse columns of numbers, one for each cell, that the memory does not hold."""
    what = f"A table of {len(universe):,} cells"
    check_memory(8 * columns * len(universe), what, "Declare fewer cells, or list those that can occur.")


def _places(codes: tuple[str, ...]) -> dict[str, int]:
    return {code: place for place, code in enumerate(codes)}


def _declared_codes(column: str, codes: Sequence[str]) -> Any:
    """Declared codes as an Arrow array; they are public, so messages may show them."""
    import pyarrow as pa

    if not isinstance(column, str):
        raise InvalidParameter(f"Column names must be text. Got {type(column).__name__}.")
    if isinstance(codes, str):
        raise InvalidCode(f"The codes of column {column!r} must be a list of texts. Got one text. Write [{codes!r}] for a single code.")
    listed = list(codes)
    wrong = next((code for code in listed if not isinstance(code, str)), None)
    if wrong is not None or None in listed:
        raise InvalidCode(f"The codes of column {column!r} must be texts. Got {type(wrong).__name__} among them. Write '01', not 1.")
    if not listed:
        raise EmptyTable(f"Column {column!r} has no codes. Declare at least one.")
    twice = first_repeated(listed)
    if twice is not None:
        raise InvalidCode(f"Code {twice!r} of column {column!r} is declared twice. Declare each code once.")
    try:
        return pa.array(listed, pa.string())
    except UnicodeEncodeError:
        pass
    raise InvalidCode(f"A code of column {column!r} is not valid Unicode (half a surrogate pair). Decode the source as UTF-8.")


def _frame_of(columns: Mapping[str, Sequence[str]]) -> Any:
    import pyarrow as pa

    lengths = {len(codes) for codes in columns.values()}
    if len(lengths) > 1:
        raise InvalidParameter(f"The columns of listed cells differ in length: {sorted(lengths)}. Give one code per column and cell.")
    for column, codes in columns.items():
        if not all(isinstance(code, str) for code in codes):
            raise InvalidCode(f"The codes of column {column!r} must be texts, one for each cell. Write '01', not 1.")
    return pa.table({column: pa.array(list(codes), pa.string()) for column, codes in columns.items()})


def ranks_of_cells(indices: tuple[Indices, ...], radices: list[int], label: str) -> NDArray[np.int64]:
    """The place of each row in the order of the code indices; refuses rows that name one cell twice."""
    cells = len(indices[0])
    ranks, distinct = rank_rows(indices, radices, cells)
    if distinct == cells:
        return ranks
    first = np.full(distinct, cells, dtype=np.int64)
    np.minimum.at(first, ranks, np.arange(cells))
    again = int(np.flatnonzero(first[ranks] < np.arange(cells))[0])
    raise DuplicateCells(
        f"A cell is listed more than once in {label}: rows {int(first[ranks[again]]) + 1} and {again + 1} are one example. "
        "Add such rows up, or name all columns that tell cells apart."
    )


def _checked_trees(columns: tuple[str, ...], codes: tuple[Any, ...], trees: Mapping[str, Hierarchy]) -> dict[str, Hierarchy]:
    for column, tree in trees.items():
        if column not in columns:
            raise UnknownColumn(f"A hierarchy is given for column {column!r}, which the table does not have: {', '.join(columns)}.")
        if not isinstance(tree, Hierarchy):
            raise InvalidParameter(f"The hierarchy of column {column!r} must be a Hierarchy. Got {type(tree).__name__}.")
        tree.check_leaves(column, codes[columns.index(column)].to_pylist())
    return dict(trees)


def _add_text(sha: Any, parts: Sequence[bytes]) -> None:
    for part in parts:
        sha.update(len(part).to_bytes(8, "little"))
        sha.update(part)


def _add_codes(sha: Any, array: Any) -> None:
    """Number of codes, then lengths, then texts, so that no two lists of codes feed the same bytes."""
    _, offsets, texts = array.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    sha.update(len(array).to_bytes(8, "little"))
    sha.update(np.diff(ends).astype("<i4", copy=False).data)
    if texts is not None:
        sha.update(memoryview(texts)[int(ends[0]) : int(ends[-1])])
