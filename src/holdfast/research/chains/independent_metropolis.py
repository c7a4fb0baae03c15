"""Metropolis steps with independent proposals within bounds: Algorithm 1 of the paper on congenial privacy.

Legend: z = y - x. I is the proposal index set: its cells are proposed, each with P[k] proportional to exp(-proposal_rate |k|), the others
are solved from the kept sums. A proposal z' outside the bounds is refused; else it is taken with probability min(1, w(z') / w(z)),

    w(z) = exp(-rate |z|_1 + proposal_rate |z_I|_1),    the target's weight over the proposal's.

What this chain is for: to repeat the paper, and to measure exact samplers against it. With proposal_rate > rate the weights have no useful
bound, so single runs stick for ten thousands of steps; and nothing said of a run on one table holds for another. So no release is drawn by
it. Its acceptance rates, traces and states depend on the counts: CONFIDENTIAL, or made on a public stand-in. Started at the true table
(z = 0) it may stay there for long: on the paper's table a step leaves it with probability 5e-8 at proposal_rate 2/5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.chains.protocol import Info, State
from holdfast.chains.target import Ints
from holdfast.chains.words_in_steps import run_steps
from holdfast.errors import InvalidParameter
from holdfast.exact import DiscreteLaplace
from holdfast.exact.balls import ball
from holdfast.exact.parameters import sample_size
from holdfast.exact.predicates import BAND, is_below
from holdfast.exact.table import TableSampler
from holdfast.lattices.algebra import as_matrix, independent_rows, take_rows
from holdfast.randomness import Words
from holdfast.samplers.bounded_block import BoundedBlock
from holdfast.samplers.laplace_rejection import Pivots, solve_pivots

INDEX_BITS = 12
"""Cells of the table of proposals: few, so that it stays in the first-level cache."""


@dataclass(frozen=True, eq=False)
class IndependentMetropolis:
    """One table's chain.

    Law:         a step is that of the module's text; it leaves exp(-rate |z|_1) on the fibre of the table unchanged.
    Given:       a table within the bounds of the block, without further inequalities. `solved` names the cells outside the proposal index
                 set: one for each independent kept sum, such that integers give integers (checked).
    Guarantees:  the transition law is exact over uniform words; `run` equals repeated `step`. A step takes one word for each proposed cell
                 and one to accept. Every table of the fibre is proposed with positive probability, so one step reaches all of it.
    Status:      estimated for this table only: no guarantee rests on it.
    Reference:   [GM20] Algorithm 1; [theory T69].
    """

    block: BoundedBlock
    table: Ints
    rate: Fraction
    proposal_rate: Fraction
    solved: tuple[int, ...]
    band: float = BAND

    name = "independent_metropolis"
    status = "estimated for this table only"

    def __post_init__(self) -> None:
        if not self.band >= BAND:
            raise InvalidParameter(f"band must be 2^-40 or more: the loop's doubles need that much. Got {self.band!r}. Leave it out.")
        if len(self.block.cuts):
            raise InvalidParameter("independent_metropolis knows bounds of cells only. Leave the inequalities out.")
        if not self.pivots.is_integral:
            raise InvalidParameter(f"Solving for the cells {self.solved} does not always give integers. Choose others.")

    @cached_property
    def pivots(self) -> Pivots:
        matrix = as_matrix(self.block.kept_matrix)
        return solve_pivots(take_rows(matrix, independent_rows(matrix)), self.solved)

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints]:
        room = self.block.room(np.asarray(self.table, dtype=np.int64)[None])
        return room.least[0], room.most[0]

    @cached_property
    def sampler(self) -> TableSampler:
        """One proposed cell from one word."""
        sampler = DiscreteLaplace.of_rate(self.proposal_rate).sampler()
        if not isinstance(sampler, TableSampler):
            raise InvalidParameter("proposal_rate is too small: proposals are drawn by table. Rates near the target's are usual.")
        return sampler

    @cached_property
    def _solution(self) -> tuple[Ints, Ints, Ints]:
        """(proposed cells, solved cells, z_solved = -matrix z_proposed)."""
        pivots = self.pivots
        matrix = np.array(pivots.numerators, dtype=np.int64).reshape(len(pivots.columns), len(pivots.free))
        return np.array(pivots.free, dtype=np.int64), np.array(pivots.columns, dtype=np.int64), matrix

    def at_the_table(self) -> State:
        """z = 0: the paper's start, and for short runs a bad one."""
        return np.zeros(self.block.cells, dtype=np.int64)

    def step(self, state: State, words: Words) -> tuple[State, Info]:
        """One transition: proposals by certified table, the accept step in balls."""
        proposed = self.propose(words)
        index = words.position
        cell = int(words.take(1)[0])
        if self.allows(proposed) and self.accepts(state, proposed, cell, words, index):
            return proposed, Info(1, 1)
        return state, Info(1, 0)

    def propose(self, words: Words) -> State:
        """A proposal, within the bounds or not."""
        free, columns, matrix = self._solution
        z = np.zeros(self.block.cells, dtype=np.int64)
        z[free] = self.sampler.draw(len(free), words)
        z[columns] = -(matrix @ z[free])
        return z

    def allows(self, z: State) -> bool:
        """Whether z lies within the bounds."""
        least, most = self._bounds
        return bool(((z >= least) & (z <= most)).all())

    def accepts(self, state: State, proposed: State, cell: int, words: Words, index: int) -> bool:
        """Whether U < w(proposed) / w(state), for the uniform U that begins with this word."""
        exponent = self.exponent(proposed) - self.exponent(state)
        return exponent <= 0 or is_below(cell, 32, lambda: _exp(-exponent), words, index)

    def exponent(self, z: State) -> Fraction:
        """-log w(z)."""
        inside = int(abs(z[self._solution[0]]).sum())
        return self.rate * int(abs(z).sum()) - self.proposal_rate * inside

    def run(self, state: State, steps: int, words: Words) -> tuple[State, Info]:
        """`step` so many times, compiled: the same states from the same words."""
        return self._advance(state, sample_size(steps), 0, np.empty((0, 3), dtype=np.int64), words)

    def trace(self, state: State, records: int, every: int, words: Words) -> tuple[State, NDArray[np.int64]]:
        """records * every steps; after each `every` of them |z|_1 and the first two cells."""
        record = np.zeros((sample_size(records), 3), dtype=np.int64)
        state, _ = self._advance(state, records * every, every, record, words)
        return state, record

    @cached_property
    def _arrays(self) -> tuple[object, ...]:
        """What the compiled loop reads: cells, entries of the solution by proposed cells, bounds, table of proposals, exponents' units."""
        free, columns, matrix = self._solution
        places, rows = np.nonzero(matrix.T)
        starts = np.searchsorted(places, np.arange(len(free) + 1)).astype(np.int64)
        sampler, shift = self.sampler, 32 - INDEX_BITS
        cells = np.arange((1 << INDEX_BITS) + 1, dtype=np.uint64) << np.uint64(shift)
        start = np.searchsorted(sampler.high, cells[:-1], side="left").astype(np.int32)
        direct = np.append(np.where(sampler.low[start] < cells[1:], -1 - start, start).astype(np.int32), np.int32(len(sampler.high) - 1))
        unit = math.lcm(self.rate.denominator, self.proposal_rate.denominator)
        rule = (int(self.rate * unit), int(self.proposal_rate * unit), float(unit), self.band)
        jumps = (direct, sampler.high, sampler.low, shift, sampler.first)
        return free, columns, starts, rows.astype(np.int64), matrix.T[places, rows], *self._bounds, jumps, rule

    def _advance(self, state: State, steps: int, every: int, record: NDArray[np.int64], words: Words) -> tuple[State, Info]:
        from holdfast.research.chains import _independent_compiled as compiled

        if not self.allows(state):
            raise InvalidParameter("A state must lie within the bounds. Begin with at_the_table(), or with a draw of the fibre.")
        z = state.copy()
        made = accepted = 0

        def loop(chunk: NDArray[np.uint32], wanted: int) -> tuple[int, int, int]:
            nonlocal made, accepted
            done, used, code, taken = compiled.advance(chunk, wanted, z, made, every, record, *self._arrays)
            made, accepted = made + int(done), accepted + int(taken)
            return int(done), int(used), int(code)

        def exact_step() -> bool:
            nonlocal made, accepted
            z[:], info = self.step(z, words)
            made, accepted = made + 1, accepted + info.accepted
            if every and made % every == 0:
                record[made // every - 1] = int(abs(z).sum()), z[0], z[1]
            return False

        if steps:
            run_steps(loop, exact_step, steps, words)
        return z, Info(made, accepted)


def _exp(value: Fraction) -> arb:
    return ball(value).exp()
