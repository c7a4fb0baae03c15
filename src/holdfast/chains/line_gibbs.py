"""Gibbs sampling along lines: pick a move u, then draw t in z + t u from its exact conditional law.

Law of a step.  The move is uniform among the kernel's moves; t is the smallest integer with U < F(t), F the distribution function of the
law of t (line.py), U the uniform that begins with the step's last word. Nothing is rejected. The target is invariant, since each
direction's conditional law is.

How doubles decide.  The compiled loops compute F to within 2^-45 and settle a word only where its cell keeps BAND = 2^-40 away from the
two values of F beside the place found; any other word is left to `step`. The errors, in units of F:

    weights     exp(-x) with x off by 2^-51 x at most and exp by a unit in the last place: below 2^-51 of the mode's weight each, and
                below 2^-50 in all, as the sum of x exp(-x) over a log-concave law is at most about its total
    sums        compensated: one rounding, 2^-52
    tails       a window ends where what follows is below 2^-56
    a norm      sqrt(E) - sqrt(E0) is computed as (E - E0) / (sqrt(E) + sqrt(E0)), with a relative error of 2^-51

The fast loops (absolute values of the cells, swaps on one or two axes) know F in closed form: between its four breakpoints the law of a
swap is flat, then geometric with ratio exp(-2 rate), then with exp(-4 rate). A logarithm proposes the place, a table of powers verifies it.
What `step` might refuse, a stretch too long to sum or cells near the limit, they leave to it: the band does not change what is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.chains import line as line_module
from holdfast.chains.coupled_line import CoupledLine
from holdfast.chains.line import KINDS, TOO_LARGE, Line, draw_point, limit_message
from holdfast.chains.moves import ONE_WORD_CHOICES, ListedMoves, Move, Moves, Swaps
from holdfast.chains.protocol import Info, State
from holdfast.chains.target import LARGEST_ENTRY, ChainTarget, Ints
from holdfast.chains.words_in_steps import run_steps
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.predicates import BAND
from holdfast.randomness import Words

LEAST_RATE, LARGEST_RATE = 2.0**-40, 2.0**500
"""Between them 1 / rate, a rate times an energy and the size of every table are doubles of ordinary size."""
POWERS = 1 << 18
"""Entries at most of the fast loops' table of powers."""
WINDOW = 1 << 18
TABLE = 1 << 16

_NONE: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LineGibbs:
    """Exact one-dimensional conditionals along moves.

    Law:         leaves the target unchanged, on the lattice that the moves generate (within bounds: on what they connect, see moves.py).
    Given:       moves over the target's cells. That they generate the lattice meant is for `moves_for`.
    Guarantees:  `run` equals repeated `step` on the same words; the state is z itself.
    Reference:   [theory T22].
    """

    target: ChainTarget
    moves: Moves
    band: float = BAND
    """Wider ones change the running time and nothing else; narrower ones would not cover the errors of doubles and are refused."""

    def __post_init__(self) -> None:
        if not self.band >= BAND:
            raise InvalidParameter(f"band must be 2^-40 or more, so that it covers the errors of doubles. Got {self.band}.")
        if not LEAST_RATE < self.target.decay.rate_double < LARGEST_RATE:
            raise RequestTooLarge("The target's rate is too far from one for the loops' doubles. Use an epsilon of ordinary size.")
        if self.moves.cells != self.target.cells:
            raise InvalidParameter(f"The moves have {self.moves.cells} cells, the target {self.target.cells}. They must be the same.")
        if isinstance(self.moves, ListedMoves) and int(abs(self.moves.vectors).max()) > self.limit >> 8:
            raise RequestTooLarge("The entries of the moves are too large for energies in 64-bit integers. Use a reduced basis.")

    @property
    def name(self) -> str:
        return "line_gibbs"

    @property
    def steps_per_sweep(self) -> int:
        return self.moves.dimension

    @cached_property
    def limit(self) -> int:
        """Cells stay below this in absolute value, so that energies fit 64-bit integers with room to spare."""
        cells = max(self.target.cells, 1)
        return min(LARGEST_ENTRY, (1 << 60) // cells if self.target.decay.kind == "absolute" else math.isqrt((1 << 58) // cells))

    def start(self, words: Words) -> State:
        """All zeros; no words are read."""
        return np.zeros(self.target.cells, dtype=np.int64)

    def cells_of(self, state: State) -> NDArray[np.int64]:
        return state

    def step(self, state: State, words: Words) -> tuple[State, Info]:
        self.check_state(state)
        move = self.moves.pick(words)
        t = draw_point(self.line(state, move), words)
        return self.move_state(state, move, t), Info(1, 1)

    def line(self, state: State, move: Move) -> Line:
        """The law of t in state + t move."""
        values = state[move.cells].tolist()
        constant = self.energy_under_root(state) - sum(v * v for v in values) if self.target.decay.kind == "norm" else 0
        return Line(self.target.decay, tuple(values), tuple(move.coefficients.tolist()), constant, *self._ends(state, move))

    def energy_under_root(self, state: State) -> int:
        """E(z) where the weights need all of it; else 0."""
        return self.target.energy(state) if self.target.decay.kind == "norm" else 0

    def _ends(self, state: State, move: Move) -> tuple[int | None, int | None]:
        lows: list[int] = []
        highs: list[int] = []
        for c, u in zip(move.cells.tolist(), move.coefficients.tolist(), strict=True):
            below = None if self.target.lower is None else (int(state[c]) - int(self.target.lower[c])) // abs(u)
            above = None if self.target.upper is None else (int(self.target.upper[c]) - int(state[c])) // abs(u)
            down, up = (below, above) if u > 0 else (above, below)
            lows += [] if down is None else [-down]
            highs += [] if up is None else [up]
        return max(lows, default=None), min(highs, default=None)

    def move_state(self, state: State, move: Move, t: int) -> State:
        """state + t move, refused where it leaves the limit."""
        if not t:
            return state
        if abs(t) >= 2 * self.limit:  # from one end of the limit beyond the other, and t move need not fit 64 bits
            raise RequestTooLarge(limit_message(self.limit))
        after = state.copy()
        after[move.cells] += t * move.coefficients
        if (abs(after[move.cells]) >= self.limit).any():
            raise RequestTooLarge(limit_message(self.limit))
        return after

    @property
    def step_nanoseconds(self) -> int:
        return 10_000 + 50 * self.target.cells if self.target.decay.kind == "norm" else 2_000

    def run(self, state: State, steps: int, words: Words) -> tuple[State, Info]:
        self.check_state(state)
        z = np.array(state)
        self._run(z, steps, words, np.zeros((0, 3), dtype=np.int64), 0)
        return z, Info(steps, steps)

    def trace(self, state: State, records: int, every: int, words: Words) -> tuple[State, NDArray[np.int64]]:
        """`run` for records * every steps; after each `every` of them the energy E(z), cell 0, and the sum of the first half of the cells
        along each axis (a quadrant of a two-way grid; of listed moves the first half of the cells)."""
        if records < 0 or every < 1:
            raise InvalidParameter(f"A trace needs records >= 0, every >= 1. Got {records} and {every}.")
        self.check_state(state)
        z = np.array(state)
        record = np.zeros((records, 3), dtype=np.int64)
        self._run(z, records * every, words, record, every)
        return z, record

    def couple(self) -> CoupledLine:
        return CoupledLine(self)

    def _run(self, z: State, steps: int, words: Words, record: NDArray[np.int64], every: int) -> None:
        """Changes z in place."""
        energy = np.array([self.energy_under_root(z)], dtype=np.int64)
        done = 0
        compiled = self.compiled_run(z, energy, record, every)

        def loop(chunk: NDArray[np.uint32], wanted: int) -> tuple[int, int, int]:
            nonlocal done
            made, used, code = compiled(chunk, wanted, done)
            if code == TOO_LARGE:
                raise RequestTooLarge(limit_message(self.limit))
            done += made
            return made, used, code

        def exact_step() -> bool:
            nonlocal done
            z[:] = self.step(z, words)[0]
            energy[0] = self.energy_under_root(z)
            done += 1
            if every and done % every == 0:
                record[done // every - 1] = self.target.energy(z), z[0], z[self.quadrant].sum()
            return False

        run_steps(loop, exact_step, steps, words)
        self.check_state(z)

    def check_state(self, z: State) -> None:
        """Raise if the value is not a state, or is too large."""
        if not isinstance(z, np.ndarray) or z.dtype != np.int64:
            raise InvalidParameter(f"A state is an array of int64, which is never rounded. Got {getattr(z, 'dtype', type(z).__name__)}.")
        if z.shape != (self.target.cells,):
            raise InvalidParameter(f"A state has one integer for each of the {self.target.cells} cells. Got shape {z.shape}.")
        if z.size and max(-int(z.min()), int(z.max())) >= self.limit:
            raise RequestTooLarge(limit_message(self.limit))
        if not self.target.allows(z):
            raise InvalidParameter("The state lies outside the target's bounds. Start from a state within them.")

    def compiled_run(
        self, z: State, energy: Ints, record: NDArray[np.int64], every: int
    ) -> Callable[[NDArray[np.uint32], int, int], tuple[int, int, int]]:
        from holdfast.chains import _line_compiled as compiled

        rate, moves = self.target.decay.rate_double, self.moves
        if self.is_fast:
            assert isinstance(moves, Swaps)
            counts = self.move_arrays[1].tolist()
            tail = self.powers[0].size  # no t lies further beyond the breakpoints, and no sum of `step` goes on for longer there
            law = (*self.powers, line_module.LONGEST_LINE - tail, self.limit - tail, rate)
            if len(moves.shape) == 2:
                return lambda chunk, wanted, done: compiled.run_swaps(
                    chunk, wanted, z, *moves.shape, counts[0], counts[1], law, self.band, record, every, done, self.quadrant
                )
            return lambda chunk, wanted, done: compiled.run_pairs(
                chunk, wanted, z, self.move_arrays[2], counts[0], law, self.band, record, every, done, self.quadrant
            )
        kind, picks, scratch = KINDS[self.target.decay.kind], moves.words_per_pick, self.scratch()
        return lambda chunk, wanted, done: compiled.run_windows(
            chunk,
            wanted,
            z,
            energy,
            self.move_arrays,
            self.target_arrays,
            scratch,
            picks,
            kind,
            rate,
            self.band,
            self.limit,
            record,
            every,
            done,
            self.quadrant,
        )

    @property
    def is_fast(self) -> bool:
        """Whether the law of t has the closed form of the fast loops."""
        target, moves = self.target, self.moves
        plain = target.decay.kind == "absolute" and target.lower is target.upper is None
        if not plain or not isinstance(moves, Swaps) or 50 / target.decay.rate_double > POWERS - 32:
            return False
        return len(moves.shape) == 1 or (len(moves.shape) == 2 and moves.signs is None)

    @cached_property
    def powers(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
        """q^j; -q^(L+1) / (1 - q^2); 1 / (1 - q); 1 / (1 - q^2), for q = exp(-2 rate): see `draw_flat`."""
        rate = self.target.decay.rate_double
        q = np.exp(-2 * rate * np.arange(math.ceil(50 / rate) + 32))
        inner, outer = -1 / math.expm1(-2 * rate), -1 / math.expm1(-4 * rate)
        return q, -q * math.exp(-2 * rate) * outer, inner, outer

    @cached_property
    def move_arrays(self) -> tuple[Ints, ...]:
        """The moves as the compiled loops read them: shape, words of each axis, signs; or starts, cells and coefficients of a list."""
        if isinstance(self.moves, Swaps):
            counts = [1 if n * (n - 1) <= ONE_WORD_CHOICES else 2 for n in self.moves.shape]
            signs = _NONE if self.moves.signs is None else self.moves.signs
            return np.array(self.moves.shape, dtype=np.int64), np.array(counts, dtype=np.int64), signs, _NONE, _NONE, _NONE
        assert isinstance(self.moves, ListedMoves)
        rows, cells = np.nonzero(self.moves.vectors)
        starts = np.searchsorted(rows, np.arange(len(self.moves.vectors) + 1)).astype(np.int64)
        return _NONE, _NONE, _NONE, starts, cells.astype(np.int64), self.moves.vectors[rows, cells]

    @cached_property
    def target_arrays(self) -> tuple[NDArray[Any], ...]:
        """The target as the compiled loops read it: bounds (empty where there are none), weights."""
        target, rate = self.target, self.target.decay.rate_double
        lower, upper = (_NONE if part is None else part.copy() for part in (target.lower, target.upper))
        table = np.exp(-rate * np.arange(0 if target.decay.kind == "norm" else min(TABLE, math.ceil(45 / rate))))
        return lower, upper, table

    def scratch(self) -> tuple[NDArray[Any], ...]:
        """Room for one compiled run: a move, the line, and the window of sums."""
        moves = self.moves
        entries = 1 << len(moves.shape) if isinstance(moves, Swaps) else int(np.diff(self.move_arrays[3]).max())
        cells, coefficients = np.zeros((2, entries), dtype=np.int64)
        window = int(min(WINDOW, 4096 + 64 / self.target.decay.rate_double))
        return cells, coefficients, np.zeros((2, entries), dtype=np.int64), np.empty((2, window))

    @cached_property
    def quadrant(self) -> Ints:
        """The cells in the first half of every axis."""
        if isinstance(self.moves, Swaps):
            every = np.arange(self.target.cells).reshape(self.moves.shape)
            return every[tuple(slice(n // 2) for n in self.moves.shape)].ravel().astype(np.int64)
        return np.arange(self.target.cells // 2, dtype=np.int64)
