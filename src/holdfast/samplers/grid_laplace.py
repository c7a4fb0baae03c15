"""Laplace noise on a grid that keeps the sums along every axis: slice by slice, the last slice settled by rejection.

Legend: the axes are put in order of length, longest first. The longest one is the stack: of its R slices R - 1 are drawn independently from
the law on a slice, which is a grid of one axis less, and the last is minus their sum. So every sum along the stack is zero; the slices'
own sums are zero, hence the last one's too. A grid of one axis is a row with sum zero.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact import DiscreteLaplace, Geometric
from holdfast.exact.law import Sampler
from holdfast.exact.parameters import Exact, positive_fraction, sample_size
from holdfast.randomness import Words
from holdfast.samplers.one_sum_laplace import OneSumLaplace
from holdfast.samplers.pilot import HOPELESS, Acceptance, estimate_acceptance, safe_exp
from holdfast.samplers.pivot_laplace import PivotLaplace
from holdfast.samplers.protocol import BlockSampler
from holdfast.samplers.rejection import check_l1_reach, first_accepted

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
            return first_accepted(n, self.cells, self._own_tries, lambda tries: self._accept(tries, words))
        values = self._part.draw(n, words)
        return np.stack((values, -values), axis=-1).reshape(n, self.cells) if self._kind == "mirror" else values

    def _accept(self, tries: int, words: Words) -> NDArray[np.int64]:
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
