"""Laplace noise by rejection, on any lattice of few constraints and on grids that keep the sums along every axis.

Pivots: A is k x d with independent rows, L = {z in Z^d : A z = 0}. P: k pivot columns with A_P nonsingular, F: the d - k free ones. Then
z_P = -T z_F with T = A_P^{-1} A_F, and z_F determines z. T is kept as integer rows over one denominator each.

Grids: the axes are put in order of length, longest first. The longest one is the stack: of its R slices R - 1 are drawn independently from
the law on a slice, which is a grid of one axis less, and the last is minus their sum. So every sum along the stack is zero; the slices'
own sums are zero, hence the last one's too. A grid of one axis is a row with sum zero.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from flint import fmpq_mat, fmpz_mat
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact import DiscreteLaplace, Geometric
from holdfast.exact.law import Sampler
from holdfast.exact.parameters import Exact, positive_fraction, sample_size
from holdfast.lattices.algebra import Matrix, as_matrix, pivot_columns
from holdfast.randomness import Words
from holdfast.samplers.one_sum_laplace import OneSumLaplace
from holdfast.samplers.protocol import BlockSampler
from holdfast.samplers.rejection import HOPELESS, INT64_SUMS, Acceptance, check_l1_reach, estimate_acceptance, first_accepted, safe_exp

CHOICE_BUDGET = 1 << 17
"""Cells drawn to judge one choice of pivots."""
CLEARLY_BETTER = 1.1
EXACT_DOUBLE = 1 << 53
"""Integers up to this size, and sums of them that stay below it in any order, are exact as doubles."""


@dataclass(frozen=True)
class Pivots:
    """One choice of pivots: z_P = -(numerators z_F) / denominators, row by row."""

    columns: tuple[int, ...]
    free: tuple[int, ...]
    numerators: tuple[tuple[int, ...], ...]
    denominators: tuple[int, ...]

    @property
    def is_integral(self) -> bool:
        """Whether every choice of free cells gives integer pivots."""
        return all(denominator == 1 for denominator in self.denominators)

    @property
    def growth(self) -> int:
        """The sums of |numerators z_F| over the pivots are at most this times |z_F|_1."""
        return max((sum(abs(row[f]) for row in self.numerators) for f in range(len(self.free))), default=0)

    @property
    def log_tries(self) -> float:
        """Rule of thumb for the logarithm of the tries: a pivot costs sqrt(pi (1 + |row of T|^2)), one in `denominator` is an integer."""
        nats = 0.0
        for row, denominator in zip(self.numerators, self.denominators, strict=True):
            squares = sum(Fraction(entry, denominator) ** 2 for entry in row)
            nats += 0.5 * math.log(math.pi * (1 + squares)) + math.log(denominator)
        return nats


class PivotLaplace:
    """Laplace noise on all integer vectors that a few rows annihilate.

    Law:         P[Z = z] proportional to exp(-epsilon |z|_1), z in Z^d, rows z = 0.
    Given:       rows is k x d, integers, independent (checked); epsilon > 0. `pivots` names the pivot columns; by default a few choices are
                 tried and the best by pilot is kept.
    Guarantees:  exact. Free cells have weight exp(-epsilon |z_F|_1); a try whose pivots are not integers is outside the lattice and fails;
                 accepting with exp(-epsilon |z_P|_1), the coin "geometric >= |z_P|_1", makes the weight exp(-epsilon |z|_1).
    Cost:        each row over n cells costs a factor of about sqrt(pi n) tries where epsilon is small.
    Reference:   [theory R8].
    """

    def __init__(self, rows: Matrix, epsilon: Exact, *, pivots: Sequence[int] | None = None) -> None:
        A = as_matrix(rows, "rows")
        self.rows = tuple(tuple(int(entry) for entry in row) for row in A.tolist())
        self.epsilon = positive_fraction(epsilon, "epsilon")
        self.cells = int(A.ncols())
        if self.cells == 0:
            raise InvalidParameter("rows has no columns, so there is no cell to draw. Give one column per cell.")
        if A.rank() < A.nrows():
            raise InvalidParameter("rows are not independent. Leave out those that follow from the others.")
        self._reach = check_l1_reach(self.cells, self.epsilon)
        self._use(self._best_pivots(A) if pivots is None else solve_pivots(A, tuple(pivots)))

    def __repr__(self) -> str:
        return f"PivotLaplace({len(self.rows)} rows of {self.cells} cells, '{self.epsilon}', pivots={self.pivots.columns})"

    @property
    def name(self) -> str:
        kind = "integral pivots" if self.pivots.is_integral else "pivots that must come out whole"
        return f"{len(self.rows)} rows over {self.cells} cells: exact rejection, {kind}"

    @cached_property
    def _cell(self) -> Sampler:
        return DiscreteLaplace.of_rate(self.epsilon).sampler()

    @cached_property
    def _coin(self) -> Sampler:
        return Geometric.of_rate(self.epsilon).sampler()

    def _use(self, pivots: Pivots) -> None:
        self.pivots = pivots
        self.number_type = number_type(pivots, self._reach)
        self._whole_type: Any = object if self.number_type is object else np.int64
        entries = np.array([entry for row in pivots.numerators for entry in row], dtype=self.number_type)
        self._numerators = entries.reshape(len(pivots.columns), len(pivots.free))
        self._denominators = np.array(pivots.denominators, dtype=self._whole_type)[:, None]

    def _best_pivots(self, A: fmpz_mat) -> Pivots:
        """The choice with the best pilot; rules of thumb where pilots see nothing."""
        choices = pivot_choices(A)
        if len(choices) == 1:
            return choices[0]
        scores = []
        for choice in choices:
            self._use(choice)
            found = estimate_acceptance(self, purpose="choice of pivots", cell_budget=CHOICE_BUDGET)
            scores.append(found.expected_tries(safe_exp(choice.log_tries)))
        # Choices that differ by less than the pilot's noise count as equal: the first of them is taken.
        return next(choice for choice, score in zip(choices, scores, strict=True) if score <= CLEARLY_BETTER * min(scores))

    @cached_property
    def acceptance(self) -> Acceptance:
        """How often a try is accepted, by pilot."""
        return estimate_acceptance(self)

    @cached_property
    def expected_tries(self) -> float:
        """Estimated tries for one draw."""
        return self.acceptance.expected_tries(safe_exp(self.pivots.log_tries))

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent draws, shape (n, cells), cells in the order of the columns."""
        return first_accepted(sample_size(n), self.cells, self.expected_tries, lambda tries: self.accept_tries(tries, words))

    def accept_tries(self, tries: int, words: Words) -> NDArray[np.int64]:
        """The accepted ones of so many tries, in order."""
        free = self._propose(tries, words)
        coins = self._coin.draw(tries, words)
        solved, is_whole = self.solve(free)
        hits = np.flatnonzero(is_whole & (coins >= np.abs(solved).sum(axis=0)))
        out = np.empty((len(hits), self.cells), dtype=np.int64)
        out[:, list(self.pivots.free)] = free[:, hits].T
        # An accepted pivot is at most the coin, so it fits even where others did not.
        out[:, list(self.pivots.columns)] = solved[:, hits].T.astype(np.int64)
        return out

    def _propose(self, tries: int, words: Words) -> NDArray[np.int64]:
        """Free cells of so many tries, one COLUMN a try: sums over few cells are fast along the first axis."""
        return self._cell.draw(tries * len(self.pivots.free), words).reshape(len(self.pivots.free), tries)

    def solve(self, free: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The pivots for each column of free cells, and whether they are all integers (if not, the numbers given mean nothing)."""
        sums = (self._numerators @ free.astype(self.number_type)).astype(self._whole_type)
        if self.pivots.is_integral:
            return -sums, np.ones(free.shape[1], dtype=np.bool_)
        return -(sums // self._denominators), np.asarray((sums % self._denominators == 0).all(axis=0), dtype=np.bool_)

    # What the pilot asks for.

    @property
    def pilot_label(self) -> str:
        rows = [list(row) for row in self.rows]
        return f"PivotLaplace({len(rows)} rows of {self.cells} cells, '{self.epsilon}', pivots={self.pivots.columns}): {rows}"

    @property
    def cells_per_try(self) -> float:
        # A product of Python integers takes about as long as a cell.
        return float(self.cells * (len(self.pivots.columns) if self.number_type is object else 1))

    @property
    def exponent_unit(self) -> Fraction:
        return self.epsilon

    def pilot_exponents(self, tries: int, words: Words) -> NDArray[np.int64]:
        solved, is_whole = self.solve(self._propose(tries, words))
        exponents = np.minimum(np.abs(solved).sum(axis=0), INT64_SUMS)
        return np.where(is_whole, exponents, -1).astype(np.int64)


def number_type(pivots: Pivots, reach: int) -> Any:
    """Doubles (fast products), 64-bit or Python integers: the first that provably holds every sum; see `check_l1_reach`."""
    largest = pivots.growth * reach
    if max(largest, *pivots.denominators, 0) >= INT64_SUMS:
        return object
    return np.float64 if largest < EXACT_DOUBLE else np.int64


def solve_pivots(A: fmpz_mat, columns: tuple[int, ...]) -> Pivots:
    """T for these pivot columns, exactly.

    Given:       A_P is nonsingular (checked).
    """
    columns = tuple(sorted(int(column) for column in columns))
    free = tuple(column for column in range(A.ncols()) if column not in set(columns))
    square = _columns(A, columns)
    if len(columns) != A.nrows() or len(columns) + len(free) != A.ncols() or square.det() == 0:
        raise InvalidParameter(f"Pivots must be {A.nrows()} different columns that are independent. Got {columns}.")
    if not columns or not free:
        return Pivots(columns, free, tuple(() for _ in columns), (1,) * len(columns))
    solution = fmpq_mat(square).solve(fmpq_mat(_columns(A, free)))
    numerators, denominators = [], []
    for p in range(len(columns)):
        row = [Fraction(int(solution[p, f].p), int(solution[p, f].q)) for f in range(len(free))]
        denominator = math.lcm(*(entry.denominator for entry in row))
        numerators.append(tuple(int(entry * denominator) for entry in row))
        denominators.append(denominator)
    return Pivots(columns, free, tuple(numerators), tuple(denominators))


def pivot_choices(A: fmpz_mat) -> list[Pivots]:
    """A few choices of pivots, no two alike; only integral ones if there are any among them.

    Each is the first independent set of columns in some order: units of an elimination with pivots +-1, columns with few and small
    entries, first columns, last columns.
    """
    count = A.ncols()
    table = [[int(entry) for entry in row] for row in A.tolist()]
    sizes = [(sum(row[c] != 0 for row in table), sum(abs(row[c]) for row in table), c) for c in range(count)]
    unit = unit_pivots(table)
    orders = [
        [*unit, *(c for c in range(count) if c not in set(unit))],
        [c for _, _, c in sorted(sizes)],
        list(range(count)),
        list(range(count - 1, -1, -1)),
    ]
    # A column of zeros can be no pivot; pivot_columns skips it.
    sets = {tuple(sorted(order[place] for place in pivot_columns(_columns(A, order)))): None for order in orders}
    choices = [solve_pivots(A, columns) for columns in sets]
    integral = [choice for choice in choices if choice.is_integral]
    return integral or choices


def unit_pivots(table: list[list[int]]) -> list[int]:
    """Columns of an elimination that uses pivots +-1 alone, taking each time the entry that fills in least; it may end early.

    If it has one column for each row, A_P^{-1} A_F is integral: only integer multiples of rows were added to others.
    """
    left = [list(row) for row in table]
    chosen: list[int] = []
    while left:
        column_sizes = [sum(row[c] != 0 for row in left) for c in range(len(left[0]))]
        best: tuple[int, int, int] | None = None
        for r, row in enumerate(left):
            row_size = sum(entry != 0 for entry in row)
            for c, entry in enumerate(row):
                if abs(entry) == 1:
                    best = min(best or (len(left) * len(row) + 1, 0, 0), ((row_size - 1) * (column_sizes[c] - 1), r, c))
        if best is None:
            break
        _, r, c = best
        pivot = left.pop(r)
        chosen.append(c)
        for row in left:
            if row[c]:
                factor = row[c] * pivot[c]  # pivot[c] is its own inverse
                row[:] = [entry - factor * other for entry, other in zip(row, pivot, strict=True)]
    return chosen


def _columns(A: fmpz_mat, columns: Sequence[int]) -> fmpz_mat:
    return fmpz_mat(A.nrows(), len(columns), [A[r, c] for r in range(A.nrows()) for c in columns])


SHORT_ROW = 12
"""Cells up to which a row by rejection takes less time than OneSumLaplace: a quarter at 4 cells and epsilon 1/4, as much at 12."""

RowSampler: TypeAlias = Callable[[int, Fraction], BlockSampler]
"""Makes the sampler of one row from its number of cells and its epsilon."""


class GridLaplace:
    """Laplace noise on a grid whose sums along every axis are zero.

    Law:         P[Z = z] proportional to exp(-epsilon |z|_1), z an integer array of this shape, the sum along every axis zero.
    Given:       one axis or more, each of length 1 or more; epsilon > 0. `row_sampler(cells, epsilon)` makes the sampler of the law on one
                 axis; PivotLaplace for short rows and OneSumLaplace for longer ones unless told.
    Guarantees:  exact. The R - 1 slices drawn have weight exp(-epsilon |slice|_1) each; accepting with exp(-epsilon |last slice|_1), the
                 coin "geometric >= |last slice|_1", makes the whole weight exp(-epsilon |z|_1). An axis of length 2 throws nothing away:
                 its slices are w and -w, w of the law on the other axes at twice the epsilon. An axis of length 1 leaves only zeros.
    Cost:        about (pi R)^(m/2) tries where epsilon is small, m the dimension of a slice: a few rows of a few cells, not 20 by 20.
    Reference:   [theory R8].
    """

    def __init__(self, shape: tuple[int, ...], epsilon: Exact, row_sampler: RowSampler | None = None) -> None:
        self.shape = _checked_shape(shape)
        self.epsilon = positive_fraction(epsilon, "epsilon")
        self.cells = math.prod(self.shape)
        check_l1_reach(self.cells, self.epsilon)
        self._order = tuple(sorted(range(len(self.shape)), key=lambda axis: -self.shape[axis]))
        self._sorted = tuple(self.shape[axis] for axis in self._order)
        self._row_sampler = row_sampler or _row
        self._kind = "zeros" if self._sorted[-1] == 1 else "mirror" if self._sorted[-1] == 2 else "row" if len(self.shape) == 1 else "stack"

    def __repr__(self) -> str:
        return f"GridLaplace({self.shape}, '{self.epsilon}')"

    @property
    def name(self) -> str:
        return f"grid {' x '.join(map(str, self.shape))}: {'exact rejection of the last slice' if self._rejects else 'direct'}"

    @cached_property
    def _coin(self) -> Sampler:
        return Geometric.of_rate(self.epsilon).sampler()

    @property
    def _rejects(self) -> bool:
        return self._kind == "stack" or self._part_rejects

    @property
    def _part_rejects(self) -> bool:
        return self._kind in ("mirror", "stack") and isinstance(self._part, GridLaplace) and self._part._rejects

    @cached_property
    def _part(self) -> BlockSampler | DiscreteLaplace:
        """What this grid is made of: the law on a slice, on a row, or on one half of a mirror (of a single cell where no axis is left)."""
        if self._kind == "row":
            return self._row_sampler(self.cells, self.epsilon)
        if self._kind == "stack":
            return GridLaplace(self._sorted[1:], self.epsilon, self._row_sampler)
        if len(self._sorted) == 1:
            return DiscreteLaplace.of_rate(2 * self.epsilon)
        return GridLaplace(self._sorted[:-1], 2 * self.epsilon, self._row_sampler)

    @property
    def _part_tries(self) -> float:
        return 1.0 if self._kind == "zeros" or isinstance(self._part, DiscreteLaplace) else self._part.expected_tries

    @cached_property
    def acceptance(self) -> Acceptance:
        """How often the last slice is accepted, by pilot; certain where this grid rejects nothing itself."""
        return estimate_acceptance(self) if self._kind == "stack" else Acceptance(1.0, 0.0, 1)

    @cached_property
    def _own_tries(self) -> float:
        # The rule of thumb is for small epsilon, where pilots see nothing on large grids; at large epsilon they see enough.
        return self.acceptance.expected_tries(rule_of_thumb_tries(self.shape))

    @property
    def expected_tries(self) -> float:
        """Estimated tries for one draw: of the whole grid, times those that its slices need if they are grids that reject."""
        # A row's own tries are part of a method whose time is linear: they say nothing about whether a grid is within reach.
        nested = self._part_tries if self._kind != "stack" or self._part_rejects else 1.0
        return min(self._own_tries * nested, HOPELESS)

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent draws, shape (n, cells), cells in C order of the shape."""
        n = sample_size(n)
        values = self._draw_sorted(n, words).reshape(n, *self._sorted)
        back = [0, *(1 + place for place in np.argsort(self._order, kind="stable"))]
        return np.ascontiguousarray(values.transpose(back)).reshape(n, self.cells)

    def _draw_sorted(self, n: int, words: Words) -> NDArray[np.int64]:
        """The same with the longest axis first."""
        if self._kind == "zeros":
            return np.zeros((n, self.cells), dtype=np.int64)
        if self._kind == "stack":
            return first_accepted(n, self.cells, self._own_tries, lambda tries: self.accept_tries(tries, words))
        values = self._part.draw(n, words)
        return np.stack((values, -values), axis=-1).reshape(n, self.cells) if self._kind == "mirror" else values

    def accept_tries(self, tries: int, words: Words) -> NDArray[np.int64]:
        """The accepted ones of so many tries, in order."""
        slices, last = self._propose(tries, words)
        coins = self._coin.draw(tries, words)
        hits = np.flatnonzero(coins >= np.abs(last).sum(axis=1))
        out = np.empty((len(hits), self._sorted[0], last.shape[1]), dtype=np.int64)
        out[:, :-1] = slices[:, hits].transpose(1, 0, 2)
        out[:, -1] = last[hits]
        return out.reshape(len(hits), self.cells)

    def _propose(self, tries: int, words: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All slices but the last, shape (R - 1, tries, cells of a slice), and the last ones; no sum overflows (check_l1_reach)."""
        slices = self._part.draw((self._sorted[0] - 1) * tries, words).reshape(self._sorted[0] - 1, tries, -1)
        return slices, last_slice(slices)

    # What the pilot asks for.

    @property
    def pilot_label(self) -> str:
        return f"GridLaplace({self.shape}, '{self.epsilon}')"

    @property
    def cells_per_try(self) -> float:
        return self.cells * self._part_tries

    @property
    def exponent_unit(self) -> Fraction:
        return self.epsilon

    def pilot_exponents(self, tries: int, words: Words) -> NDArray[np.int64]:
        result: NDArray[np.int64] = np.abs(self._propose(tries, words)[1]).sum(axis=1)
        return result


def rule_of_thumb_tries(shape: tuple[int, ...]) -> float:
    """About (pi R)^(m/2) where epsilon is small: R slices along the longest axis, m the dimension of a slice ([theory R8])."""
    longest, *others = sorted(shape, reverse=True)
    return safe_exp(math.prod(length - 1 for length in others) / 2 * math.log(math.pi * longest))


def last_slice(slices: NDArray[np.int64]) -> NDArray[np.int64]:
    """The slice that makes every sum along the first axis zero."""
    last: NDArray[np.int64] = -slices.sum(axis=0)
    return last


def _row(cells: int, epsilon: Fraction) -> BlockSampler:
    """A row with sum zero: short ones by plain rejection, whose tries are few and cheap."""
    return PivotLaplace([[1] * cells], epsilon) if cells <= SHORT_ROW else OneSumLaplace(cells, epsilon)


def _checked_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    lengths = tuple(shape)
    if not lengths or any(isinstance(a, bool) or not isinstance(a, numbers.Integral) or a < 1 for a in lengths):
        raise InvalidParameter(f"A grid's shape lists the lengths of one axis or more, each 1 or more. Got {shape!r}.")
    return tuple(int(a) for a in lengths)
