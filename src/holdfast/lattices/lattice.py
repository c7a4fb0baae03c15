"""The lattice of moves that keep the totals: what noise may be added."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.display import count_of, html_table
from holdfast.errors import HoldfastWarning, InvalidParameter, NothingLeft, RequestTooLarge
from holdfast.invariants.constraints import Constraint, Margin, integer_matrix
from holdfast.invariants.rows import Kept, RowFamily, compile_rows
from holdfast.lattices import algebra, components, levels
from holdfast.lattices.blocks import Blocks
from holdfast.lattices.columns import has_equal_columns
from holdfast.lattices.components import Named, find_blocks
from holdfast.lattices.levels import Misfit
from holdfast.lattices.norms import Norm, NormName, norm_of
from holdfast.lattices.reduction import largest_sets, reduce_margins, reduce_nested
from holdfast.lattices.redundancy import check_values
from holdfast.lattices.shapes.shape import MAX_DENSE
from holdfast.lattices.shortest import Shortest
from holdfast.lattices.smith import Smith, smith
from holdfast.tables import Table, Universe

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]

MISFITS_TOLD = 2
FEW_DIMENSIONS = 10
"""Warn when fewer than one dimension in this many cells is left free."""


class Lattice:
    """L = {z in Z^d : A z = 0}, the integer moves that change no kept total.

    Given:       an integer matrix A, one row for each kept sum, one column for each cell; dependent rows are allowed.
    Guarantees:  exact integers throughout. The lattice is the direct sum of its blocks ([theory R1]).
    """

    def __init__(self, A: Any) -> None:
        matrix = integer_matrix(A)
        families, counts, rest = _families_of(matrix)
        self._set_up(matrix.shape[1], families, counts, rest, matrix=matrix)

    @classmethod
    def from_kept(cls, kept: Kept, zeros: Ints | None = None) -> Lattice:
        """The lattice of compiled constraints; group codes are used as they are, no matrix is built. `zeros`: further cells that no move
        changes.
        """
        self = cls.__new__(cls)
        if zeros is not None:
            kept = Kept(kept.universe, (*kept.rows, _single_cells(kept.universe, zeros)), (*kept.constraint_of, 0))
        linear = [rows.matrix for rows in kept.linear]
        families, counts = [rows.group for rows in kept.families], [rows.count for rows in kept.families]
        self._set_up(len(kept.universe), families, counts, _stack(linear), kept=kept, zeros=zeros)
        return self

    def _set_up(
        self,
        cells: int,
        families: Sequence[Ints],
        counts: Sequence[int],
        linear: csr_array | None,
        *,
        kept: Kept | None = None,
        matrix: csr_array | None = None,
        zeros: Ints | None = None,
    ) -> None:
        if cells == 0:
            raise InvalidParameter("A lattice needs at least one cell. The matrix has no columns.")
        self.cells = cells
        self._kept = kept
        self._matrix = matrix
        margins = None if kept is None or zeros is not None else _margin_columns(kept)
        reduced = reduce_nested(families, counts) if margins is None else reduce_margins(families, counts, margins)
        columns = [] if kept is None else [kept.universe.code_indices(column) for column in kept.universe.columns]
        named = None if kept is None else Named(families, columns, zeros)
        self.blocks: Blocks = find_blocks(cells, reduced, counts, linear, named)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.blocks.kinds().items())
        return f"Lattice({self.cells} cells, {self.rank} independent sums, {self.dimension} free dimensions; blocks: {kinds})"

    def _repr_html_(self) -> str:
        kinds = [(f"blocks of kind {kind}", f"{count:,}") for kind, count in self.blocks.kinds().items()]
        facts = [("cells", self.cells), ("independent sums", self.rank), ("free dimensions", self.dimension)]
        return html_table("Lattice", [*((name, f"{value:,}") for name, value in facts), *kinds])

    @property
    def kept(self) -> Kept | None:
        """The compiled constraints; None for a lattice made from a matrix."""
        return self._kept

    @property
    def universe(self) -> Universe | None:
        """The cells' names; None for a lattice made from a matrix."""
        return None if self._kept is None else self._kept.universe

    def log_gram_determinant(self) -> float:
        """ln det(B^T B) for any basis B: twice the logarithm of the volume of a fundamental cell."""
        return sum(count * shape.log_gram_determinant() for _, shape, count in self.blocks.used_shapes())

    @cached_property
    def rank(self) -> int:
        """Number of independent rows of A."""
        return self.blocks.rank

    @property
    def dimension(self) -> int:
        """Free dimensions: cells minus rank."""
        return self.cells - self.rank

    @property
    def matrix(self) -> csr_array:
        """A as a sparse integer matrix, rows as given."""
        if self._matrix is None:
            assert self._kept is not None
            self._matrix = self._kept.matrix()
        return self._matrix

    @cached_property
    def exposed_cells(self) -> Ints:
        """Cells that no move changes: published exactly, whatever the budget. All of them where `blocks.finest`; else there may be more."""
        fixed = [self.blocks.cells_of(number)[:, shape.fixed_cells()].ravel() for number, shape, _ in self.blocks.used_shapes()]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *fixed]))

    def contains(self, z: Any) -> bool:
        """Whether A z = 0, decided on exact integers."""
        move = np.asarray(z)
        if move.shape != (self.cells,):
            raise InvalidParameter(f"A move has one entry for each of the {self.cells} cells. Got shape {move.shape}.")
        if move.dtype.kind not in "iuO":
            raise InvalidParameter(f"A move holds integers. Got {move.dtype}.")
        if move.dtype.kind == "O" and not all(isinstance(entry, numbers.Integral) for entry in move):
            raise InvalidParameter("A move holds integers. Got other numbers.")
        largest = max((abs(int(entry)) for entry in (move.min(), move.max())), default=0)
        reach = int(abs(self.matrix).sum(axis=1).max()) if self.matrix.nnz else 0
        if largest * reach < 2**62:
            return not (self.matrix @ move.astype(np.int64)).any()
        exact = [int(entry) for entry in move]
        rows = zip(self.matrix.indptr[:-1], self.matrix.indptr[1:], strict=True)
        return all(sum(int(self.matrix.data[i]) * exact[self.matrix.indices[i]] for i in range(b, e)) == 0 for b, e in rows)

    @cached_property
    def basis(self) -> NDArray[Any]:
        """A Z-basis of L as the columns of a (cells x dimension) integer matrix, block by block."""
        self._check_dense("A basis")
        out = np.zeros((self.cells, self.dimension), dtype=np.int64)
        column = 0
        for block in self.blocks:
            part = block.shape.basis()
            width = part.shape[1]
            out[block.cells.ravel(), column : column + width] = part
            column += width
        return out

    def coordinates(self, z: Any) -> tuple[int, ...]:
        """The integers v with basis v = z; InvalidParameter if z is not in the lattice."""
        return algebra.coordinates(self.basis, z)

    def smith(self) -> Smith:
        """U, D, V with U A V = D and U, V unimodular; the last `dimension` columns of V are a basis of L."""
        self._check_dense("A Smith form")
        return smith(self.matrix.toarray().astype(np.int64))

    def shortest(self, norm: NormName | Norm) -> Shortest:
        """The smallest secret: the shortest nonzero move in l1, or in l2 (then `value` is the square of the length).

        Exact where it says so; a proven lower bound for general blocks too large to search.
        """
        if self.dimension == 0:
            raise NothingLeft("The kept totals fix every cell: no two tables agree on them, so nothing is left to protect.")
        norm = norm_of(norm)
        if self._margins is not None:
            value = smallest_secret(*self._margins)
            assert value is not None
            return Shortest(norm.name, value, None, "exact")
        found = [shape.shortest(norm) for _, shape, _ in self.blocks.used_shapes()]
        return min((s for s in found if s is not None), key=lambda s: (s.value, s.status != "exact"))

    @property
    def free_cells(self) -> int:
        """Number of cells under no kept sum."""
        return sum(shape.size * count for _, shape, count in self.blocks.used_shapes() if shape.is_free)

    def one_can_move(self) -> bool:
        """Whether e_i - e_j is a move for some two cells, that is, whether their columns of kept sums are equal.

        Of cells in different blocks only free ones need be looked at: there each of e_i and e_j would have to be a move by itself.
        """
        if self.free_cells > 1:
            return True
        for number, shape, _ in self.blocks.used_shapes():
            found = shape.one_can_move()
            if found is None:
                found = any(has_equal_columns(self.matrix, cells) for cells in self.blocks.cells_of(number))
            if found:
                return True
        return False

    @cached_property
    def _margins(self) -> tuple[dict[str, int], list[tuple[str, ...]]] | None:
        """(sizes of the axes, margins kept) where the lattice is that of margins on a full product; else None."""
        if self._kept is None or not self._kept.universe.is_product or self._kept.linear:
            return None
        if not self._kept.families or not all(rows.is_margin for rows in self._kept.families):
            return None
        sizes = {column: self._kept.universe.code_count(column) for column in self._kept.universe.columns}
        return sizes, [rows.columns for rows in self._kept.families]

    def _check_dense(self, what: str) -> None:
        if self.cells * max(self.dimension, 1) > MAX_DENSE:
            raise RequestTooLarge(
                f"{what} of {self.cells} cells would have {self.cells * self.dimension} entries. Use .blocks, which never needs it."
            )

    def misfits(self) -> str:
        """Explain why kept totals cannot be drawn level by level, a sentence for each reason; empty if there is nothing to say."""
        if self._kept is None:
            return ""
        return " ".join(_misfit_text(found, self._kept) for found in self.blocks.misfits[:MISFITS_TOLD])


def lattice(universe: Universe | Table, keep: Iterable[Constraint]) -> Lattice:
    """The lattice of moves that keep these totals over a universe; of a table only the universe is read.

    Refuses kept totals that leave nothing to protect, and values that contradict one another; warns when little is left.
    """
    if not isinstance(universe, Table | Universe):
        raise InvalidParameter(f"A lattice needs a Table or a Universe, and the kept totals. Got {type(universe).__name__}.")
    own = universe.universe if isinstance(universe, Table) else universe
    stated = keep if isinstance(keep, Constraint) else tuple(keep)
    check_margins(own, stated)
    kept = compile_rows(own, stated)
    if kept.linear:
        check_values(kept)
    made = Lattice.from_kept(kept)
    if made.dimension == 0:
        raise NothingLeft("The kept totals fix every cell, so nothing is left to protect. Keep fewer totals, or publish without noise.")
    if made.dimension * FEW_DIMENSIONS < made.cells:
        warnings.warn(
            f"The kept totals leave {count_of(made.dimension, 'free dimension')} for {made.cells} cells: most of the table is published "
            "exactly.",
            HoldfastWarning,
            stacklevel=2,
        )
    return made


def _misfit_text(found: Misfit, kept: Kept) -> str:
    stated = [kept.families[number].constraint for number in found.families if number >= 0]
    if not found.families:
        return "The cells are not all combinations of the columns' codes, so that no method for products draws them."
    if len(stated) < 2:
        return f"{stated[0]} keeps sums that are no product of partitions, or leaves sums out that no other kept total tells."
    columns = " and ".join(kept.universe.columns[number] for number in found.columns)
    return (
        f"{stated[0]} and {stated[1]} do not fit together: of the ways in which they divide {columns} neither is finer than the other. "
        "State one of them by the units of the other, or leave one out."
    )


def _margin_columns(kept: Kept) -> list[frozenset[str]] | None:
    """The columns of each family where all of them are margins of a full product, columns of one code left out; else None."""
    if not kept.universe.is_product or not all(rows.is_margin for rows in {id(rows): rows for rows in kept.families}.values()):
        return None
    varied = {column for column in kept.universe.columns if kept.universe.code_count(column) > 1}
    return [frozenset(varied.intersection(rows.columns)) for rows in kept.families]


def _single_cells(universe: Universe, cells: Ints) -> RowFamily:
    """Every one of these cells as a sum of its own."""
    group = np.full(len(universe), -1, dtype=np.int64)
    group[cells] = np.arange(len(cells))
    return RowFamily("cells under a total of 0", "identity", group, len(cells), (), np.zeros((len(cells), 0), dtype=np.int32), universe)


def _families_of(matrix: csr_array) -> tuple[list[Ints], list[int], csr_array | None]:
    """Rows with coefficients 0 and 1 (up to a common factor) gathered into families of disjoint supports; the other rows as they are."""
    families: list[Ints] = []
    counts: list[int] = []
    others = []
    for row in range(matrix.shape[0]):
        data = matrix.data[matrix.indptr[row] : matrix.indptr[row + 1]]
        cells = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        if not len(data):
            continue
        if (data != data[0]).any():
            others.append(row)
            continue
        home = next((i for i, family in enumerate(families) if (family[cells] < 0).all()), None)
        if home is None:
            home = len(families)
            families.append(np.full(matrix.shape[1], -1, dtype=np.int64))
            counts.append(0)
        families[home][cells] = counts[home]
        counts[home] += 1
    return families, counts, matrix[others] if others else None


def _stack(parts: Sequence[csr_array]) -> csr_array | None:
    if not parts:
        return None
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack(parts, format="csr", dtype=np.int64))


def smallest_secret(sizes: Mapping[str, int], margins: Iterable[Sequence[str]]) -> int | None:
    """The smallest secret of margins kept on a full product of axes, in closed form, no Smith form needed ([theory T3]): 2^t, t the size of
    the smallest set of axes inside no kept margin. It is the l1 length and the squared l2 length of the shortest move.

    None where every set is inside a margin: no move is left. Axes of size one take part in no move and are left out.
    """
    axes = [axis for axis, size in sizes.items() if size > 1]
    kept = [set(margin) for margin in margins]
    for t in range(len(axes) + 1):
        if any(not any(set(chosen) <= margin for margin in kept) for chosen in combinations(axes, t)):
            return int(2**t)
    return None


def check_margins(universe: Universe, stated: Constraint | Sequence[Constraint]) -> None:
    """Refuse margins of a full product that cannot be looked at, before they are compiled."""
    if isinstance(stated, Constraint) or not universe.is_product or not all(isinstance(one, Margin) for one in stated):
        return
    columns = {frozenset(one.columns) for one in stated if isinstance(one, Margin)}
    sizes = {column: universe.code_count(column) for column in universe.columns}
    if not frozenset().union(*columns) <= sizes.keys():  # levels of hierarchies, or mistakes
        return
    varied = {column for column, size in sizes.items() if size > 1}
    _check_largest(sizes, largest_sets(own & varied for own in columns))


def _check_largest(sizes: Mapping[str, int], largest: Collection[frozenset[str]]) -> None:
    """RequestTooLarge where `find_blocks` would come to it in the end: decided from the columns alone, before thousands of margins are
    looked at cell by cell.

    Given:       margins of which none goes by all the columns of another; `sizes` of the axes.
    Proof:       cells that agree on the columns of all margins are linked with each other and with no others. So a component has the other
                 axes, which are a product; margins on it are told apart by their other columns, and its cells by all columns of margins. It
                 is a grid where the margins leave out each axis once.
    """
    common = frozenset.intersection(*largest) if largest else frozenset()
    axes = {name: size for name, size in sizes.items() if size > 1 and name not in common}
    own = [margin & axes.keys() for margin in largest]
    if len(own) <= components.FEW_FAMILIES or 2 ** len(axes) <= levels.MOST_VECTORS:
        return
    told = frozenset().union(*own)
    is_grid = told == axes.keys() and sum(len(axes) - len(margin) for margin in own) == len(axes)
    if is_grid or prod(axes[name] for name in told) <= components.LARGEST_SEARCHED:
        return
    sums = sum(prod(axes[name] for name in margin) for margin in own)
    components.check_gram(min(sums, prod(axes.values())))
