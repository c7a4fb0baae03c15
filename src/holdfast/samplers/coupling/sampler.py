"""Laplace noise in l1 on any lattice, exactly, by coupling from the past.

A try, in order:

1. Variances tau of all cells from the law  prod m(tau_e) sqrt(tau_e) det(A T A')^(-1/2) exp(Phi(tau)): two chains, one from above and one
   from below, run with the same uniforms from time -T to 0; where they meet, the state at time 0 has exactly that law; else they start
   further back, with the uniforms of later times kept.
2. z given tau by Klein's step (klein_step.py).
3. Accept with probability target / (proposal x public constant), else everything is drawn anew.

Why the law is exact, what is proved and what is certified by computation: [theory T170] to [theory T180].

No step is capped, restarted or given up because it takes long: how far back a try must go depends on its result, and throwing such tries
away would change the law.

What it costs, in cell draws (samplers/choice.py): a try by the shape of the block alone, how many of them by a pilot that sees no data. No
draw depends on it. A try makes about three sweeps of two chains and one of Klein's sampler. An update of a cell draws one atom of the
mixture and works on a square of numbers: of the rank, or of the shorter axis where the block is a two-way table, whose correction takes a
time too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.errors import InternalError, InvalidParameter
from holdfast.exact.balls import ball, precision
from holdfast.exact.parameters import Exact, positive_fraction, sample_size
from holdfast.exact.predicates import is_below
from holdfast.lattices import algebra
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.coupling.conditional import SweepUniform, coalesce, gaussian_sum, sweep_doubles
from holdfast.samplers.coupling.convex_correction import WINDOW
from holdfast.samplers.coupling.forms import GeneralForm, GridForm
from holdfast.samplers.coupling.klein_step import DenseKlein, GridKlein, Proposal
from holdfast.samplers.coupling.mixture import EXCESS_ERROR, mixture_for
from holdfast.samplers.rejection import HOPELESS, Acceptance, Piloted, check_l1_reach, estimate_acceptance

UPDATES = 7
"""Updates of each cell in a try."""
ATOM_COST, ENTRY_COST = 40.0, 0.055
TWO_WAY_ATOM_COST, TWO_WAY_ENTRY_COST, TWO_WAY_COORDINATE_COST = 24.0, 0.01, 0.02
"""Cell draws that an atom and an entry of the square take, for any matrix and for two-way tables; there, what a coordinate takes too."""
SLOW_COST = 2.5
"""Cell draws, times the cube of the free dimensions, of a Klein step in integers: half a second for 160."""
PILOT_CELLS, LEAST_TRIES, MOST_TRIES = 2e7, 8, 1 << 10
"""A pilot costs so many cell draws, a second, or so many tries where these are more."""
FIRST_TRIES, ENOUGH = 4, 0.1
"""Accept probabilities of tries differ little, so that a few of them say enough."""
HOPELESS_CELLS = 1e13
"""Expected cell draws from which a pilot looks no further: days."""


def try_cost(axes: tuple[int, ...], rank: int) -> float:
    """Cell draws that take about as long as one try on a block of so many cells under so many independent totals."""
    if len(axes) == 2:
        coordinates = prod(min(length, WINDOW) for length in axes)
        return UPDATES * prod(axes) * (TWO_WAY_ATOM_COST + TWO_WAY_ENTRY_COST * min(axes) ** 2 + TWO_WAY_COORDINATE_COST * coordinates)
    return UPDATES * prod(axes) * (ATOM_COST + ENTRY_COST * rank**2)


def acceptance(sampler: Piloted) -> Acceptance:
    """How often a try is accepted, from a few tries with public words."""
    return estimate_acceptance(
        sampler,
        cell_budget=max(PILOT_CELLS, LEAST_TRIES * sampler.cells_per_try),
        most_tries=MOST_TRIES,
        first_tries=FIRST_TRIES,
        enough=ENOUGH,
        least=sampler.cells_per_try / HOPELESS_CELLS,
    )


Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

DONE, APART, OPEN, BEYOND = 0, 1, 2, 3
"""How a run back ends: one state; two states; a word that doubles leave open; an atom after the table's last."""
FIRST_STEPS = 3
"""Steps back at first; one more each time that the chains have not met."""
CHUNK_CELLS = 1 << 12
"""Cells of tries that take their words together. A constant: the order of words depends on it."""
PILOT_UNIT = Fraction(1, 1 << 10)
PILOT_BITS = 128


class TryWords(NamedTuple):
    """The words of one try: the first one's position, all of them, and the uniforms of the last FIRST_STEPS steps, oldest first."""

    base: int
    taken: NDArray[np.uint32]
    first: Doubles


@dataclass(frozen=True)
class Try:
    """What one try gave: z, the logarithm of its chance to be accepted, that number's error, and how to find the chance exactly."""

    proposal: Proposal
    indices: list[int]
    log_chance: float
    error: float


_State: TypeAlias = tuple[GeneralForm | GridForm, str, float, dict[str, object]]
"""What a pickle holds: form, label, slack, and what the pilot found."""


class CouplingLaplace:
    """Laplace noise in l1 on the lattice that kept rows leave, for any integer matrix.

    Law:         P[Z = z] proportional to exp(-epsilon |z|_1), z an integer vector with A z = 0.
    Given:       epsilon in the range of mixture.py; no cell that the rows leave out or pin. `slack` exists for tests: it widens the
                 error of every double, which may change how far back a try goes, and nothing else.
    Guarantees:  exact; pure epsilon per unit of l1; no chain error. How far back tries went, and the time they took, depend on what is
                 drawn: neither is to be published.
    Cost:        a try takes about three sweeps over all cells, each an update of a k x k matrix, k the number of rows.
    Reference:   [theory T170].
    """

    def __init__(self, form: GeneralForm | GridForm, label: str, slack: float = 0.0) -> None:
        self.form, self._label, self._slack = form, label, slack
        self.epsilon = form.mixture.epsilon
        if form.dimension < 1:
            raise InvalidParameter("A coupled block has a free dimension at least. The rows of this one fix every cell.")
        check_l1_reach(form.cells, self.epsilon)
        self.klein = GridKlein(form, slack) if isinstance(form, GridForm) else DenseKlein(form, slack)
        self._is_turned = False

    @classmethod
    def of_rows(cls, rows: algebra.Matrix, epsilon: Exact, *, slack: float = 0.0) -> CouplingLaplace:
        """The sampler for any integer matrix."""
        epsilon = positive_fraction(epsilon, "epsilon")
        matrix = algebra.as_matrix(rows)
        kept = algebra.to_numpy(algebra.take_rows(matrix, algebra.independent_rows(matrix))).tolist()
        form = GeneralForm(tuple(tuple(int(entry) for entry in row) for row in kept), mixture_for(epsilon, matrix.ncols()))
        return cls(form, f"{form.cells} cells, {len(kept)} rows", slack)

    @classmethod
    def of_grid(cls, axes: tuple[int, ...], epsilon: Exact, *, slack: float = 0.0) -> CouplingLaplace:
        """The sampler for a grid that keeps the sums along every axis; cells in C order."""
        epsilon = positive_fraction(epsilon, "epsilon")
        label = f"grid {' x '.join(map(str, axes))}"
        if len(axes) != 2:
            made = cls.of_rows(_grid_rows(axes), epsilon, slack=slack)
            made._label = label
            return made
        made = cls(GridForm(max(axes), min(axes), mixture_for(epsilon, math.prod(axes))), label, slack)
        made._is_turned = axes[0] < axes[1]
        return made

    def __getstate__(self) -> _State:
        """A pickle holds what the sampler was made from and what its pilot found; what was prepared is prepared again."""
        kept = {name: value for name, value in self.__dict__.items() if name in ("_is_turned", "acceptance")}
        return replace(self.form), self._label, self._slack, kept

    def __setstate__(self, state: _State) -> None:
        form, label, slack, kept = state
        CouplingLaplace.__init__(self, form, label, slack)
        self.__dict__.update(kept)

    @property
    def name(self) -> str:
        return f"{self._label}: coupling from the past"

    @property
    def cells(self) -> int:
        return self.form.cells

    @cached_property
    def acceptance(self) -> Acceptance:
        """How often a try is accepted, by pilot."""
        return acceptance(self)

    @property
    def expected_tries(self) -> float:
        """Estimated tries for one draw."""
        return max(1.0, 1 / self.acceptance.estimate) if self.acceptance.estimate > 0 else HOPELESS

    @property
    def try_cost(self) -> float:
        """In cell draws (samplers/choice.py)."""
        axes = (self.form.rows, self.form.columns) if isinstance(self.form, GridForm) else (self.cells,)
        return try_cost(axes, self.cells - self.form.dimension) + self._slow_share * SLOW_COST * self.form.dimension**3

    @cached_property
    def _slow_share(self) -> float:
        """Share of tries whose Klein step is not left to doubles, from a few states with public words."""
        if isinstance(self.klein, GridKlein):
            return 0.0
        with NoiseKey.for_tests("slow tries: " + self.pilot_label).stream("plan") as words:
            states = [self.variances(own, words) for own in self.take_words(FIRST_TRIES, words)]
        return sum(self.klein.is_slow(np.array(state)) for state in states) / len(states)

    def draw(self, n: int, words: Words) -> Ints:
        """n independent draws, shape (n, cells)."""
        out = np.empty((sample_size(n), self.cells), dtype=np.int64)
        done = 0
        while done < n:
            for own in self.take_words(n - done, words):
                made = self.make_try(own, words)
                if self.accepts(made, own, words):
                    out[done] = made.proposal.z
                    done += 1
        return self._in_block_order(out)

    def _in_block_order(self, values: Ints) -> Ints:
        """Vectors of the form, with their cells as the block has them."""
        if not (self._is_turned and isinstance(self.form, GridForm)):
            return values
        return np.ascontiguousarray(values.reshape(-1, self.form.rows, self.form.columns).transpose(0, 2, 1)).reshape(-1, self.cells)

    @property
    def words_per_try(self) -> int:
        return self.cells + 2 * self.form.dimension + 2

    def take_words(self, wanted: int, words: Words) -> list[TryWords]:
        """Take the words of some tries, never more than are wanted."""
        tries, size = min(wanted, max(1, CHUNK_CELLS // self.cells)), self.words_per_try
        base = words.position
        taken = words.take(tries * size).reshape(tries, size)
        first = np.stack([sweep_doubles(words, base, tries * size, t).reshape(tries, size) for t in range(FIRST_STEPS, 0, -1)], axis=1)
        return [TryWords(base + b * size, taken[b], np.ascontiguousarray(first[b, :, : self.cells])) for b in range(tries)]

    # One try.

    def make_try(self, own: TryWords, words: Words) -> Try:
        """Steps 1 and 2, and the chance of step 3."""
        indices = self.variances(own, words)
        proposal = self.klein.propose(np.array(indices), own.taken[self.cells : -2], own.base + self.cells, words)
        return self.weigh(indices, proposal)

    def variances(self, own: TryWords, words: Words) -> list[int]:
        """Step 1: the atoms of all cells, exactly."""
        base, u = own.base, own.first

        def uniform(cell: int, time: int) -> SweepUniform:
            return SweepUniform(words, base + cell, time)

        found: dict[tuple[int, int], int] = {}
        while True:
            steps = len(u)
            known = np.full(u.shape, -1, dtype=np.int64)
            for (time, cell), j in found.items():
                known[steps - time, cell] = j
            ended, state, (row, cell) = self.form.back(u, known, self._slack)
            if row < 0:
                raise InternalError("The chain from below passed the chain from above: nothing is drawn.")
            if ended == DONE:
                return [int(j) for j in state]
            if ended == APART:
                u = np.concatenate((sweep_doubles(words, base, self.cells, steps + 1)[None, :], u))
                continue
            if ended == BEYOND:
                return coalesce(self.form, uniform, steps)
            time = steps - row
            j = self.form.law([int(i) for i in state], cell).index(uniform(cell, time).cell)
            if j >= self.form.atoms:
                return coalesce(self.form, uniform, steps)
            found[time, cell] = j

    def weigh(self, indices: list[int], proposal: Proposal) -> Try:
        """The chance of the accept step, as a logarithm in doubles."""
        mixture, d, m = self.form.mixture, self.cells, self.form.dimension
        sizes = np.abs(proposal.z)
        near = np.minimum(sizes, mixture.reach)
        excess = float(np.where(sizes <= mixture.reach, mixture.excess_table[near], 0.0).sum())
        phi, off = (0.0, math.inf) if proposal.error == math.inf else self.form.convex.in_doubles(np.array(indices))
        value = proposal.log_ratio - phi - excess - d * float(mixture.loss) - m * float(self.klein.allowance)
        error = proposal.error + off + d * (EXCESS_ERROR + mixture.far_error) + 2.0**-45 * (phi + 1 + abs(proposal.log_ratio))
        if value - error > 0:
            raise InternalError("A chance above 1 was found where a bound is proved: nothing is drawn.")
        return Try(proposal, indices, value, error)

    def accepts(self, made: Try, own: TryWords, words: Words) -> bool:
        """Step 3."""
        cell, last = (int(own.taken[-2]) << 32) | int(own.taken[-1]), own.base + self.words_per_try - 2
        u = (cell >> 11) * 2.0**-53
        error = made.error + self._slack
        if error < 1:
            if u + 2.0**-53 <= math.exp(min(0.0, made.log_chance - error)) * (1 - 2.0**-50):
                return True
            if u >= math.exp(min(0.0, made.log_chance + error)) * (1 + 2.0**-50):
                return False
        return is_below(cell, 64, lambda: self.chance(made.indices, made.proposal), words, last)

    def chance(self, indices: list[int], proposal: Proposal) -> arb:
        """The chance of the accept step, as a ball at flint's current precision; a number above 1 is refused."""
        mixture, d, m = self.form.mixture, self.cells, self.form.dimension
        taus = [mixture.tau(j) for j in indices]
        value = self.form.log_determinant(indices) / 2 - ball(self.form.convex.value(indices))
        value -= ball(d * mixture.loss + m * self.klein.allowance)
        for tau, entry in zip(taus, proposal.z.tolist(), strict=True):
            value -= ball(Fraction(entry * entry) / (2 * tau)) + ball(tau).log() / 2
        for size in set(np.abs(proposal.z).tolist()):
            value -= mixture.excess(size) * int((np.abs(proposal.z) == size).sum())
        for x, c, v in zip(proposal.x.tolist(), proposal.centres, proposal.variances, strict=True):
            centre, variance = Fraction(c), Fraction(v)
            distance = centre - math.floor(centre + Fraction(1, 2))
            value += ball((x - centre) ** 2 / (2 * variance)) + (gaussian_sum(distance, variance) ** 2 / (2 * arb.pi())).log() / 2
        outer, inner = self.form.log_scale
        value -= (arb(outer) / arb(inner)).log() / 2
        if value > 0:
            raise InternalError("A chance above 1 was found where a bound is proved: nothing is drawn.")
        return value.exp()

    # What the pilot asks for.

    @property
    def pilot_label(self) -> str:
        return f"CouplingLaplace({self._label}, '{self.epsilon}')"

    @property
    def cells_per_try(self) -> float:
        return self.try_cost

    @property
    def exponent_unit(self) -> Fraction:
        return PILOT_UNIT

    def pilot_exponents(self, tries: int, words: Words) -> Ints:
        """Minus the logarithm of the chance of so many tries, in units, rounded down."""
        return np.floor(-self.draw_weighed(tries, words)[1] / float(PILOT_UNIT)).astype(np.int64)

    def draw_weighed(self, tries: int, words: Words) -> tuple[Ints, Doubles]:
        """So many tries, none thrown away, and the logarithm of each one's chance to be kept; see protocol.Weighed."""
        values, logs = np.empty((tries, self.cells), dtype=np.int64), np.empty(tries)
        done = 0
        while done < tries:
            for own in self.take_words(tries - done, words):
                made = self.make_try(own, words)
                values[done], logs[done] = made.proposal.z, min(0.0, self._log_chance(made))
                done += 1
        return self._in_block_order(values), logs

    def _log_chance(self, made: Try) -> float:
        """By doubles where they say something, else by balls."""
        if made.error < 1:
            return made.log_chance
        with precision(PILOT_BITS):
            return float(self.chance(made.indices, made.proposal).log().mid())


def _grid_rows(axes: tuple[int, ...]) -> Ints:
    """All sums along every axis of a grid, as rows; some follow from others."""
    numbers = np.arange(math.prod(axes)).reshape(axes)
    rows = []
    for axis, length in enumerate(axes):
        lines = np.moveaxis(numbers, axis, -1).reshape(-1, length)
        row = np.zeros((len(lines), numbers.size), dtype=np.int64)
        np.put_along_axis(row, lines, 1, axis=1)
        rows.append(row)
    return np.concatenate(rows)
