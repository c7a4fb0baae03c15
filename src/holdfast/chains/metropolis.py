"""Metropolis steps along a basis of the lattice: the sampler of the integer subspace paper.

Legend: B is the basis (cells x m), v in Z^m the state, z = B v the table it stands for. One step jumps in every coordinate at once,

    e_j with P[e_j] = (1 - a) / (1 + a) a^|e_j|,  a = exp(-jump_rate),    independent,

and takes all of it, v + e, with probability min(1, weight(B (v + e)) / weight(B v)), or none of it. The jumps are symmetric, so this leaves
the target unchanged; every jump has positive probability, so one step reaches every table that the target allows.

Two Metropolis chains that propose the same as often as they can, and accept by the same uniform.

In each coordinate the two jump laws, centred on v_j and on w_j, are paired maximally:

    X = v_j + e;  Y = X with probability min(1, eta(X - w_j) / eta(X - v_j)) = a^max(0, |X - w_j| - |X - v_j|);
    otherwise Y = w_j + e', redrawn until a coin of probability a^max(0, |Y - v_j| - |Y - w_j|) shows tails.

Coordinates in which the chains agree always propose the same. A coin that must show heads takes no word. So two identical chains read the
words of one chain, and stay identical.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.chains.protocol import CoupledInfo, Info, State, StatePair
from holdfast.chains.target import LARGEST_ENTRY, ChainTarget, Ints
from holdfast.chains.words_in_steps import run_steps
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact import DiscreteLaplace
from holdfast.exact.balls import ball, floors
from holdfast.exact.parameters import Exact, positive_fraction, sample_size
from holdfast.exact.predicates import BAND, is_below
from holdfast.exact.table import TableSampler
from holdfast.lattices import Shape, algebra
from holdfast.randomness import Words


@dataclass(frozen=True, eq=False)
class CoupledMetropolis:
    """Two chains of one kernel.

    Law:         each chain alone moves by the kernel's law; jumps paired as above, then one uniform for both accept decisions.
    Guarantees:  exact over uniform words; how many of them a step reads varies. Identical chains stay identical.
    Reference:   [DGGY22] Algorithm 2; [theory T21], [theory T46].
    """

    kernel: Metropolis

    def __post_init__(self) -> None:
        _ = self.coins  # made once, here: threads that share the kernel would each make it again

    def step(self, pair: StatePair, words: Words) -> tuple[StatePair, CoupledInfo]:
        """One coupled transition, every decision in integers and balls."""
        kernel = self.kernel
        v, w = kernel.entering(pair.first), kernel.entering(pair.second)
        if np.array_equal(v, w):
            state, _ = kernel.step(v, words)
            return StatePair(state, state), CoupledInfo(1, True)
        proposed = [self._propose(int(x), int(y), words) for x, y in zip(v, w, strict=True)]
        first = kernel.check_state(np.array([x for x, _ in proposed], dtype=np.int64))
        second = kernel.check_state(np.array([y for _, y in proposed], dtype=np.int64))
        index = words.position
        cell = int(words.take(1)[0])
        v = first if kernel.accepts(v, first, cell, words, index) else v
        w = second if kernel.accepts(w, second, cell, words, index) else w
        identical = np.array_equal(v, w)
        return StatePair(v, v if identical else w), CoupledInfo(1, identical)

    def _propose(self, v: int, w: int, words: Words) -> tuple[int, int]:
        """Proposals of one coordinate for both chains."""
        jump = int(self.kernel.sampler.draw(1, words)[0])
        x = v + jump
        if self._heads(abs(x - w) - abs(jump), words):
            return x, x
        while True:
            jump = int(self.kernel.sampler.draw(1, words)[0])
            y = w + jump
            if not self._heads(abs(y - v) - abs(jump), words):
                return x, y

    def _heads(self, exponent: int, words: Words) -> bool:
        """A coin of probability a^max(0, exponent); it takes a word only where it is not certain."""
        if exponent <= 0:
            return True
        index = words.position
        return is_below(int(words.take(1)[0]), 32, lambda: self.kernel.power(exponent), words, index)

    def run(self, pair: StatePair, most: int, words: Words) -> tuple[StatePair, CoupledInfo]:
        """At most so many steps, compiled; stops after the first step at which the chains are identical."""
        from holdfast.chains import _metropolis_compiled as compiled

        kernel = self.kernel
        v, w = kernel.entering(pair.first).copy(), kernel.entering(pair.second).copy()

        def loop(chunk: NDArray[np.uint32], wanted: int) -> tuple[int, int, int]:
            made, used, code = compiled.advance_pair(
                chunk, wanted, v, w, kernel.basis @ v, kernel.basis @ w, kernel.entries_at_hand, kernel.table, self.coins, kernel.rule
            )
            return int(made), int(used), int(code)

        def exact_step() -> bool:
            (v[:], w[:]), info = self.step(StatePair(v, w), words)
            return info.identical

        most = sample_size(most)
        made = run_steps(loop, exact_step, most, words) if most else 0
        identical = np.array_equal(v, w)
        return StatePair(v, v if identical else w), CoupledInfo(made, identical)

    @cached_property
    def coins(self) -> NDArray[np.int64]:
        """For k = 0, 1, ...: bounds of floor(a^k 2^32), up to the first that is zero. A word between them, ends included, is left open."""
        rows = [(1 << 32, 1 << 32)]
        while rows[-1][1] > 0:
            low, high = floors(partial(self._scaled_power, len(rows)), 128)
            rows.append((max(low, 0), high))
        return np.array(rows, dtype=np.int64)

    def _scaled_power(self, exponent: int) -> arb:
        return self.kernel.power(exponent) * (1 << 32)


LARGEST_ENERGY = 1 << 62
LEAST_ROOM = 1 << 12
"""A kernel is refused where 64-bit energies would leave its coordinates less room than this."""
INDEX_BITS = 12
"""Cells of the table of jumps: few, so that it stays in the first-level cache."""


class Watched(NamedTuple):
    """The cells as functions of the coordinates: nonzero entries of the basis, column by column. And bounds of the cells."""

    columns: Ints
    rows: Ints
    entries: Ints
    lower: Ints
    upper: Ints


class Jumps(NamedTuple):
    """The table of one jump for the compiled loop: see `TableSampler`; `lookup` reads it with fewer index bits."""

    direct: NDArray[np.int32]
    high: NDArray[np.uint32]
    low: NDArray[np.uint32]
    shift: int
    first: int


class Rule(NamedTuple):
    """How the compiled loop decides."""

    absolute: bool
    norm: bool
    bounded: bool
    rate: float
    band: float
    room: int
    """Coordinates stay at or below this in size; the exact step refuses what goes further."""


@dataclass(frozen=True, eq=False)
class Metropolis:
    """The paper's own kernel.

    Law:         one step from v: jump in every coordinate, one accept decision for all (text above). A table outside the target's bounds
                 is never accepted.
    Given:       `basis` as columns, independent (checked). `band` is the doubtful zone of the compiled loop; it changes the time and
                 nothing else.
    Guarantees:  the transition law is exact over uniform words. A step takes m + 1 words: one for each jump, one to accept.
    Reference:   [DGGY22] Algorithm 1; [theory T20], [theory T46]. Doubles in the loop: the exponent is an exact integer times a rate
                 correct to 2^-52 of itself (for "norm" a quotient by two square roots, five roundings), so exp(-x) is off by less than
                 x exp(-x) 2^-50 + 2^-51 < 2^-50, a thousandth of the band.
    """

    target: ChainTarget
    basis: Ints
    jump_rate: Fraction = Fraction(1)
    band: float = BAND

    def __post_init__(self) -> None:
        object.__setattr__(self, "basis", _checked_basis(self.basis, self.target.cells))
        object.__setattr__(self, "jump_rate", positive_fraction(self.jump_rate, "jump_rate"))
        if not Fraction(1, 1000) <= self.jump_rate <= 1000:
            raise RequestTooLarge(
                "jump_rate must lie between 1/1000 and 1000: jumps of about 1/jump_rate are drawn by table. Rates near 1 are usual."
            )
        if not self.band >= BAND:
            raise InvalidParameter(f"band must be 2^-40 or more: the loop's doubles need that much. Got {self.band!r}. Leave it out.")
        if not 2.0**-500 < self.target.decay.rate_double < 2.0**500:
            raise RequestTooLarge("The target's rate is too far from one for the loop's doubles. Use an epsilon of ordinary size.")
        if self.rule.room < max(LEAST_ROOM, 4 * abs(self.sampler.first)):
            raise RequestTooLarge(
                f"Energies of this target could leave 64-bit integers: coordinates would have to stay within {self.rule.room}. "
                "Use a basis with smaller entries."
            )

    @classmethod
    def of_shape(cls, target: ChainTarget, shape: Shape, jump_rate: Exact = 1) -> Self:
        """Along the basis of one block: differences of neighbours on grids and under one sum, a reduced basis for general blocks."""
        return cls(target, shape.basis(), positive_fraction(jump_rate, "jump_rate"))

    @property
    def name(self) -> str:
        return "metropolis"

    @property
    def steps_per_sweep(self) -> int:
        """One step moves every coordinate."""
        return 1

    @property
    def dimension(self) -> int:
        return int(self.basis.shape[1])

    @property
    def is_bounded(self) -> bool:
        return self.target.lower is not None or self.target.upper is not None

    def start(self, words: Words) -> State:
        """One jump in every coordinate; zeros where the target has bounds."""
        if self.is_bounded:
            return np.zeros(self.dimension, dtype=np.int64)
        return self.sampler.draw(self.dimension, words)

    @property
    def step_nanoseconds(self) -> int:
        return 100 + 50 * int(self.basis.shape[1])

    def cells_of(self, state: State) -> Ints:
        return self.basis @ self.check_state(state)

    def step(self, state: State, words: Words) -> tuple[State, Info]:
        """One transition: jumps by certified table, the accept step in balls."""
        state = self.entering(state)
        proposed = self.check_state(state + self.sampler.draw(self.dimension, words))
        index = words.position
        cell = int(words.take(1)[0])
        if self.accepts(state, proposed, cell, words, index):
            return proposed, Info(1, 1)
        return state, Info(1, 0)

    def accepts(self, state: State, proposed: State, cell: int, words: Words, index: int) -> bool:
        """Whether U < weight(proposed) / weight(state), for the uniform U that begins with this word."""
        z = self.basis @ proposed
        if not self.target.allows(z):
            return False
        before, after = self.target.energy(self.basis @ state), self.target.energy(z)
        return after <= before or is_below(cell, 32, lambda: self.target.decay.ratio(after, before), words, index)

    def run(self, state: State, steps: int, words: Words) -> tuple[State, Info]:
        """`step` so many times, compiled: the same states from the same words."""
        return self._advance(state, sample_size(steps), 0, np.empty((0, 3), dtype=np.int64), words)

    def trace(self, state: State, records: int, every: int, words: Words) -> tuple[State, NDArray[np.int64]]:
        """records * every steps; after each `every` of them the energy, the first cell, and a partial sum."""
        if every < 1:
            raise InvalidParameter(f"every must be one or more. Got {every}.")
        record = np.zeros((sample_size(records), 3), dtype=np.int64)
        state, _ = self._advance(state, records * every, every, record, words)
        return state, record

    def _advance(self, state: State, steps: int, every: int, record: NDArray[np.int64], words: Words) -> tuple[State, Info]:
        from holdfast.chains import _metropolis_compiled as compiled

        v = self.entering(state).copy()
        made = accepted = 0

        def loop(chunk: NDArray[np.uint32], wanted: int) -> tuple[int, int, int]:
            nonlocal made, accepted
            done, used, code, taken = compiled.advance(
                chunk, wanted, v, self.basis @ v, made, every, record, self.trace_rows, self.entries_at_hand, self.table, self.rule
            )
            made, accepted = made + int(done), accepted + int(taken)
            return int(done), int(used), int(code)

        def exact_step() -> bool:
            nonlocal made, accepted
            v[:], info = self.step(v, words)
            made, accepted = made + 1, accepted + info.accepted
            if every and made % every == 0:
                record[made // every - 1] = (self.target.energy(self.basis @ v), *(self.trace_rows @ v))
            return False

        if steps:
            run_steps(loop, exact_step, steps, words)
        return v, Info(made, accepted)

    def couple(self) -> CoupledMetropolis:
        return CoupledMetropolis(self)

    def power(self, exponent: int) -> arb:
        """a^exponent as a ball at flint's current precision."""
        return (-ball(self.jump_rate * exponent)).exp()

    def check_state(self, state: State) -> State:
        """The state, if it has the right shape and leaves room in 64-bit integers."""
        v = np.asarray(state)
        if v.shape != (self.dimension,) or v.dtype != np.int64:
            raise InvalidParameter(
                f"A state of this kernel has {self.dimension} coordinates of type int64. Got shape {v.shape} of {v.dtype}."
            )
        if (v > self.rule.room).any() or (v < -self.rule.room).any():
            raise RequestTooLarge(
                f"A coordinate of the chain went beyond {self.rule.room}: energies could leave 64-bit integers. Use a larger epsilon."
            )
        return v

    def entering(self, state: State) -> State:
        """A state that a step may begin with: `checked`, and within the target's bounds."""
        v = self.check_state(state)
        if self.is_bounded and not self.target.allows(self.basis @ v):
            raise InvalidParameter("A state must stand for a table within the target's bounds. Begin with start(), which gives one.")
        return v

    @cached_property
    def sampler(self) -> TableSampler:
        """One jump from one word."""
        sampler = DiscreteLaplace.of_rate(self.jump_rate).sampler()
        assert isinstance(sampler, TableSampler)  # jump_rate >= 1/1000
        return sampler

    @cached_property
    def table(self) -> Jumps:
        shift = 32 - INDEX_BITS
        sampler = self.sampler
        cells = np.arange((1 << INDEX_BITS) + 1, dtype=np.uint64) << np.uint64(shift)
        start = np.searchsorted(sampler.high, cells[:-1], side="left").astype(np.int32)
        direct = np.where(sampler.low[start] < cells[1:], -1 - start, start).astype(np.int32)
        return Jumps(np.append(direct, np.int32(len(sampler.high) - 1)), sampler.high, sampler.low, shift, sampler.first)

    @cached_property
    def entries_at_hand(self) -> Watched:
        columns, rows = (indices.astype(np.int64) for indices in np.nonzero(self.basis.T))
        bounds = ((self.target.lower, -LARGEST_ENERGY), (self.target.upper, LARGEST_ENERGY))
        lower, upper = (np.full(self.target.cells, far) if bound is None else bound.copy() for bound, far in bounds)
        return Watched(columns, rows, self.basis[rows, columns], lower, upper)

    @cached_property
    def trace_rows(self) -> Ints:
        """The two rows that `trace` records, over the coordinates: the first cell, and the sum of every
        other cell of the first half (of a table in rows, the whole half may be a kept sum).
        """
        return np.stack([self.basis[0], self.basis[: max(1, self.target.cells // 2) : 2].sum(axis=0)])

    @cached_property
    def rule(self) -> Rule:
        decay = self.target.decay
        reach = [sum(map(abs, row)) for row in self.basis.tolist()]
        if decay.kind == "absolute":
            room = LARGEST_ENERGY // max(1, sum(reach))
        else:
            room = math.isqrt(LARGEST_ENERGY // max(1, sum(r * r for r in reach)))
        room = min(LARGEST_ENTRY - 1, room)
        return Rule(decay.kind == "absolute", decay.kind == "norm", self.is_bounded, decay.rate_double, self.band, room)


def _checked_basis(basis: Any, cells: int) -> Ints:
    columns = np.asarray(basis)
    if columns.ndim != 2 or len(columns) != cells or columns.dtype.kind not in "iu":
        raise InvalidParameter(
            f"basis must hold whole numbers, one row for each of the {cells} cells. Got shape {columns.shape} of {columns.dtype}."
        )
    if columns.shape[1] == 0:
        raise InvalidParameter("basis has no columns: the kept totals fix every cell, so a chain has nowhere to go. Keep fewer totals.")
    if max(-int(columns.min()), int(columns.max())) >= LARGEST_ENTRY:
        raise RequestTooLarge("basis must stay below 2^31 in absolute value. Use a reduced basis.")
    rank = algebra.rank(columns)
    if rank < columns.shape[1]:
        raise InvalidParameter(
            f"basis has {columns.shape[1]} columns of rank {rank}. Give independent columns (reduced_basis removes the rest)."
        )
    out = columns.astype(np.int64)
    out.flags.writeable = False
    return out
