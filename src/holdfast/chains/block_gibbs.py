"""Block Gibbs on a two-way grid: two rows, or two columns, are drawn again from their exact law given everything that is kept.

One step reads a word for a line among the R + C rows and columns, a word for its partner among the other lines of that axis, and then one
word for every column (of these two lines) but the last: pair_of_rows.py says how. `step` decides everything in integers and balls. `run`
computes the same thresholds in doubles, all terms being positive, with an error that it adds up as it goes; where a word comes within
that error, or within the band, of a threshold, `step` makes that step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.pair_of_rows import PairOfRows, Share, draw_alone, list_alone, one_by_one
from holdfast.chains.protocol import Info, State
from holdfast.chains.target import LARGEST_ENTRY, Ints, Target
from holdfast.chains.words_in_steps import pick, run_steps
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import precision
from holdfast.exact.predicates import BAND
from holdfast.randomness import Words

if TYPE_CHECKING:
    from holdfast.chains.coupled_block import CoupledBlockGibbs

WIDEST_COLUMN = 1 << 14
"""Values of one cell that carry weight; more are refused: convolutions would take too long."""
CUT = 2.0**-64
"""Compiled loops leave out weights below this share of the largest; what they leave out is bounded and goes into the band."""
SMALLEST_WEIGHT = 2.0**-900
LARGEST_STATE = LARGEST_ENTRY // 2
"""Cells stay below this, so that the sum of two is an entry."""
NO_BOUND = 1 << 40
"""Stands for no bound in the compiled loops; beyond any sum of two states."""


@dataclass(frozen=True, eq=False)
class BlockGibbs:
    """Two rows or two columns of a grid drawn again, given all row and column sums.

    Law:         leaves the target's law on the tables with the same row and column sums unchanged: a Gibbs kernel.
    Given:       a shape of two axes, each of length 2 or more; a target whose forms are the cells, kind "absolute" or "squares", all
                 multipliers 1; bounds as the target has them.
    Guarantees:  a step has exactly the conditional law over uniform words. It contains every basic move (+1 -1 / -1 +1 on two rows and two
                 columns) that the bounds allow. These connect all tables with the same sums where there are no bounds, lower bounds only or
                 upper bounds only (Diaconis and Sturmfels 1998). With both they may not: a 3 x 3 table whose diagonal is pinned moves only
                 along a cycle through three rows, which no two rows contain. It is not assessed there; chains/bounded.py has other moves.
    Reference:   [theory T23].
    """

    target: Target
    shape: tuple[int, int]
    band: float = BAND

    name = "block_gibbs"

    def __post_init__(self) -> None:
        shape = tuple(self.shape)
        if len(shape) != 2 or any(isinstance(a, bool) or not isinstance(a, int) or a < 2 for a in shape):
            raise InvalidParameter(
                f"block_gibbs needs a grid of two axes, each of length 2 or more. Got shape {self.shape!r}. Use line_gibbs for others."
            )
        object.__setattr__(self, "shape", shape)
        cells = math.prod(shape)
        kind = self.target.decay.kind
        if kind == "norm":
            raise InvalidParameter(
                "block_gibbs needs a weight that is a product over the cells: kind 'absolute' or 'squares'. Got 'norm'. Use line_gibbs."
            )
        forms, multipliers = self.target.forms, self.target.multipliers
        is_cells = forms is None or (forms.shape == (cells, cells) and np.array_equal(forms, np.eye(cells, dtype=np.int64)))
        if self.target.cells != cells or not is_cells or (multipliers is not None and (multipliers != 1).any()):
            raise InvalidParameter(
                f"block_gibbs needs a target whose forms are the {cells} cells of the grid in order, all multipliers 1. "
                f"Got {self.target.terms} forms of {self.target.cells} cells. Use line_gibbs."
            )
        if not self.band >= BAND:
            raise InvalidParameter(f"band must be 2^-40 or more: the loop's doubles need that much. Got {self.band!r}. Leave it out.")
        _ = self.weights  # refuses what is too wide

    @property
    def steps_per_sweep(self) -> int:
        return sum(self.shape) // 2

    @property
    def step_nanoseconds(self) -> int:
        return 20_000 + 6_000 * max(self.shape)

    @property
    def connects_all(self) -> bool:
        """Whether every table within the bounds is known to be reached: bounds on one side only, or two lines are all there is."""
        return self.target.lower is None or self.target.upper is None or 2 in self.shape

    def start(self, words: Words) -> State:
        """The table of zeros; reads no words."""
        return np.zeros(math.prod(self.shape), dtype=np.int64)

    def cells_of(self, state: State) -> NDArray[np.int64]:
        return state

    def step(self, state: State, words: Words) -> tuple[State, Info]:
        state = self.checked_state(state)
        first, second = self.lines(*self.picked(words))
        rows = self.rows_between(state, first, second)
        values = draw_alone(rows, self.shares(len(first)), int(state[first].sum()), words)
        return self.moved(state, first, second, values), Info(1, 1)

    def run(self, state: State, steps: int, words: Words) -> tuple[State, Info]:
        from holdfast.chains import _block_compiled as compiled

        cells = self.checked_state(state).copy()
        tables, space = compiled.tables(self), compiled.space(self)

        def loop(chunk: NDArray[np.uint32], wanted: int) -> tuple[int, int, int]:
            made, used, code = compiled.run_alone(cells, self.shape[0], self.shape[1], tables, space, chunk, wanted, self.band)
            return int(made), int(used), int(code)

        def exact_step() -> bool:
            cells[:] = self.step(cells, words)[0]
            return False

        made = run_steps(loop, exact_step, steps, words)
        return cells, Info(made, made)

    def trace(self, state: State, records: int, every: int, words: Words) -> tuple[State, NDArray[np.int64]]:
        """records * every steps; after each `every` of them the energy, the first cell, and the sum of a quadrant. (A call for each record:
        its cost is small against a step's.)
        """
        if records < 0 or every < 1:
            raise InvalidParameter(f"A trace needs records >= 0, every >= 1. Got {records} and {every}.")
        rows = np.zeros((records, 3), dtype=np.int64)
        for row in rows:
            state, _ = self.run(state, every, words)
            grid = state.reshape(self.shape)
            quadrant = grid[: self.shape[0] // 2, : self.shape[1] // 2]
            energy = np.abs(state).sum() if self.target.decay.kind == "absolute" else (state * state).sum()
            row[:] = energy, state[0], quadrant.sum()
        return state, rows

    def coupled(self) -> CoupledBlockGibbs:
        from holdfast.chains.coupled_block import CoupledBlockGibbs

        return CoupledBlockGibbs(self)

    def transitions(self, state: Sequence[int] | State) -> dict[tuple[int, ...], Fraction]:
        """The law of one step as fractions, for a target with a rational base and finite bounds."""
        self.check_listed()
        cells = self.checked_state(state)
        out: dict[tuple[int, ...], Fraction] = {}
        for line, partner, chance in self.picks():
            first, second = self.lines(line, partner)
            rows = self.rows_between(cells, first, second)
            for values, mass in list_alone(rows, self.shares(len(first)), int(cells[first].sum())).items():
                key = tuple(replaced(cells, first, second, values).tolist())
                out[key] = out.get(key, Fraction(0)) + chance * mass
        return out

    # What the coupled kernel uses too.

    def check_listed(self) -> None:
        """Refuse what cannot be listed in fractions."""
        if self.target.decay.base is None or self.target.lower is None or self.target.upper is None:
            raise InvalidParameter("Transitions are listed for a target with a rational base and with bounds on both sides.")

    def picked(self, words: Words) -> tuple[int, int]:
        """A line, rows counted before columns, and its partner of the same axis."""
        line = pick(sum(self.shape), words)
        return line, self._partner(line, pick(self._axis(line)[1] - 1, words))

    def picks(self) -> list[tuple[int, int, Fraction]]:
        """Every line and partner with their probability."""
        out = []
        for line in range(sum(self.shape)):
            others = self._axis(line)[1] - 1
            out += [(line, self._partner(line, place), Fraction(1, sum(self.shape) * others)) for place in range(others)]
        return out

    def _axis(self, line: int) -> tuple[int, int]:
        """Number of the first line of this line's axis, and how many there are."""
        return (0, self.shape[0]) if line < self.shape[0] else (self.shape[0], self.shape[1])

    def _partner(self, line: int, place: int) -> int:
        partner = self._axis(line)[0] + place
        return partner if partner < line else partner + 1

    def lines(self, line: int, partner: int) -> tuple[Ints, Ints]:
        """The cells of both lines."""
        grid = np.arange(math.prod(self.shape), dtype=np.int64).reshape(self.shape)
        rows = self.shape[0]
        if line < rows:
            return grid[line], grid[partner]
        return grid[:, line - rows], grid[:, partner - rows]

    def rows_between(self, state: State, first: Ints, second: Ints) -> PairOfRows:
        """The laws of the columns of two lines."""
        sums = [int(s) for s in state[first] + state[second]]
        lowest, highest = self._ends(first, second, sums)
        for total, low, high in zip(sums, lowest, highest, strict=True):
            width = 2 * self.weights.reach + 1 + (abs(total) if self.target.decay.kind == "absolute" else 1)  # as in make_column
            if low is not None and high is not None:
                width = min(width, high - low + 1)
            if width > WIDEST_COLUMN or abs(total) >= LARGEST_ENTRY:
                raise RequestTooLarge(
                    f"A cell of the chain could take more than {WIDEST_COLUMN} values of some weight, which block_gibbs cannot sum. "
                    "Use a larger epsilon, less noise, or line_gibbs."
                )
        return PairOfRows.of(self.target.decay, sums, lowest, highest)

    def _ends(self, first: Ints, second: Ints, sums: list[int]) -> tuple[list[int | None], list[int | None]]:
        """Least and greatest x_j: its own bounds, and those of S_j - x_j."""
        lows: list[list[int]] = [[] for _ in sums]
        highs: list[list[int]] = [[] for _ in sums]
        if self.target.lower is not None:
            for j, s in enumerate(sums):
                lows[j].append(int(self.target.lower[first[j]]))
                highs[j].append(s - int(self.target.lower[second[j]]))
        if self.target.upper is not None:
            for j, s in enumerate(sums):
                highs[j].append(int(self.target.upper[first[j]]))
                lows[j].append(s - int(self.target.upper[second[j]]))
        return [max(low, default=None) for low in lows], [min(high, default=None) for high in highs]

    @staticmethod
    def shares(columns: int) -> list[Share]:
        """Column after column."""
        return one_by_one([(column,) for column in range(columns)])

    def moved(self, state: State, first: Ints, second: Ints, values: Sequence[int]) -> State:
        """`replaced`, if the next step can begin with it."""
        out = replaced(state, first, second, values)
        if _largest(out) >= LARGEST_STATE:
            raise RequestTooLarge("A cell of the chain went beyond 2^30. Start nearer to zero, as `start` does, or use a larger epsilon.")
        return out

    def checked_state(self, state: Sequence[int] | State) -> State:
        """The state, if it is one."""
        state = np.asarray(state)
        if state.shape != (math.prod(self.shape),) or state.dtype != np.int64:
            raise InvalidParameter(
                f"A state of this chain has {math.prod(self.shape)} whole numbers. Got {state.dtype} of shape {state.shape}."
            )
        if _largest(state) >= LARGEST_STATE or not self.target.allows(state):
            raise InvalidParameter("A state of this chain lies within the target's bounds and below 2^30. Start from `start`.")
        return state

    @cached_property
    def weights(self) -> ColumnWeights:
        """What the compiled loops look up."""
        return ColumnWeights.of(self.target)


@dataclass(frozen=True, eq=False)
class ColumnWeights:
    """Weight of a column's value at distance d from where it is largest, each the double nearest to the truth or its neighbour.

    Kind "absolute": the energy |x| + |S - x| is least, and flat, between 0 and S, and grows by 2 a step beyond: base^(2 d).
    Kind "squares": it is least at the one or two integers next to S / 2. For S even it exceeds that by 2 d^2, for S odd by 2 d (d + 1).
    """

    even: NDArray[np.float64]
    odd: NDArray[np.float64]
    reach: int
    """Distances whose weight is not cut off."""

    @classmethod
    def of(cls, target: Target) -> ColumnWeights:
        if target.decay.kind == "absolute":
            even = odd = _doubles(target, 0, 2)
        else:
            even, odd = _doubles(target, 2, 0), _doubles(target, 2, 2)
        return cls(even, odd, max(int((table >= CUT).sum()) for table in (even, odd)))


def _doubles(target: Target, quadratic: int, linear: int) -> NDArray[np.float64]:
    """weight(quadratic d^2 + linear d), d = 0, 1, ..., while doubles hold it easily."""
    out: list[float] = []
    with precision(128):
        while not out or out[-1] >= SMALLEST_WEIGHT:
            d = len(out)
            out.append(float(target.decay.ratio(quadratic * d * d + linear * d, 0)))
            if 2 * d >= WIDEST_COLUMN and out[-1] >= CUT:
                raise RequestTooLarge(
                    f"A cell would have more than {WIDEST_COLUMN} values of some weight, which block_gibbs cannot sum. "
                    "Use a larger epsilon, less noise, or line_gibbs."
                )
    return np.array(out)


def _largest(state: State) -> int:
    """Largest absolute value; in Python, since 64 bits do not hold that of -2^63."""
    return max(int(state.max()), -int(state.min()))


def replaced(state: State, first: Ints, second: Ints, values: Sequence[int]) -> State:
    """The table with the first line set to these values, and the second so that both have the sums that they had."""
    out = state.copy()
    out[first] = values
    out[second] = state[first] + state[second] - out[first]
    return out
