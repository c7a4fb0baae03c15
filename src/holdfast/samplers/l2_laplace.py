"""Laplace noise of the Euclidean norm on a lattice taken whole.

Small lattices by rejection (`L2Rejection`): l1 proposals, an irrational accept probability decided exactly.

The law exp(-epsilon |z|_2) does not factorise over blocks. By Cauchy-Schwarz |z|_1 <= sqrt(cells) |z|_2, so with
proposal_epsilon <= epsilon / sqrt(cells) the exponent t = epsilon |z|_2 - proposal_epsilon |z|_1 is never negative.

Any lattice (`MixedL2Laplace`): one random variance for all cells, then Klein's sampler.

Legend: u = epsilon^2 tau; kappa = STEP; atoms tau_j = j kappa / epsilon^2, j = 1, 2, ..., without end, with masses w_j = sqrt(kappa / (2 pi
j)) exp(-j kappa / 2). F(x) = sum_j w_j exp(-x^2 / (2 j kappa)) is near exp(-x) for x > 0 and below 1 at 0; m_0 = 1 - F(0) > 0.
b*_i are the Gram-Schmidt vectors of a basis, s_i^2 = tau_j / |b*_i|^2, rho(s) = sum over integers k of exp(-k^2 / (2 s^2)).

One try:
    1. draw j >= 0 with weights m_0 for j = 0 and w_j prod_i rho(s_i) for j >= 1, from an exact table with an endless tail;
    2. z = 0 where j = 0; else one try of Klein's sampler at sigma_squared = tau_j, accept step included (klein.py);
    3. keep z with probability exp(-epsilon |z|_2 - loss) / F(epsilon |z|_2), and 0 with probability exp(-loss).
A try that fails anywhere is thrown away whole, j included. A kept z has the law exactly [theory R13]: nothing continuous is drawn, and how
near F is to exp(-x) decides about speed alone. The table's weights, the loss and all accept steps are enclosed or decided by balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball, enclosure, fixed_point, float_down, float_up, precision
from holdfast.exact.parameters import Exact, exact_integer, positive_fraction, sample_size
from holdfast.exact.predicates import BAND, is_below, settle, settle_exp
from holdfast.exact.table import TableSampler
from holdfast.exact.weights import FixedWeights
from holdfast.lattices import algebra
from holdfast.randomness import Words
from holdfast.samplers.coupling.convex_correction import log_theta
from holdfast.samplers.coupling.mixture import aliasing
from holdfast.samplers.klein import KleinGaussian
from holdfast.samplers.rejection import CHUNK_CELLS, HOPELESS, Acceptance, check_l1_reach, estimate_acceptance, first_accepted, safe_exp

Proposal: TypeAlias = Callable[[int, Words], NDArray[np.int64]]
"""draw(n, words) -> (n, cells), of law exp(-proposal_epsilon |z|_1) on the lattice."""

WORD_BITS = 32
DENOMINATOR = 1 << 20
"""Denominator of the ratio of the two epsilons if it is irrational: its relative loss is below 2^-20 sqrt(cells)."""
PILOT_UNIT = Fraction(1, 1 << 10)
"""The pilot rounds exponents down to multiples of this."""
SURE_EXPONENT = 64.0
TRUSTED = 2.0**11
WORTHLESS = 2.0**50


class L2Rejection:
    """Laplace noise of the Euclidean norm on a lattice.

    Law:         P[Z = z] proportional to exp(-epsilon |z|_2), z in the lattice that `proposal` draws from.
    Given:       `proposal(n, words)` gives n independent draws, shape (n, cells), of law exp(-proposal_epsilon |z|_1) on that lattice
                 (trusted); proposal_epsilon^2 cells <= epsilon^2 (checked); see `proposal_epsilon_for`. `proposal_tries` is what one
                 proposal costs in tries of its own, for the plan alone. `band` exists for tests: a wide one changes nothing.
    Guarantees:  exact. A try is accepted where U < exp(-t); U's first 32 bits are one word of the try, further bits belong to that word.
    Cost:        about .71 x 1.32^m tries, m the lattice's dimension, where epsilon is small.
    Reference:   [theory R8].

    Doubles: |z|_1 and |z|_2 come from sums of `cells` non-negative terms, so t is off by at most (2 cells + 10) 2^-53 epsilon |z|_2, and
    exp(-t) by that and 2^-51. Where (2 cells + 10) epsilon |z|_2 <= 2^11 this is below 2^-41, half of the band's 2^-40. Where t >= 64
    and the product is at most 2^50, t is off by at most 1/8 and exp(-t) is below 2^-90 in double and in truth. All else goes to balls.
    """

    def __init__(
        self, cells: int, proposal: Proposal, proposal_epsilon: Exact, epsilon: Exact, *, proposal_tries: float = 1.0, band: float = BAND
    ) -> None:
        self.cells = exact_integer(cells, "cells")
        self.epsilon = positive_fraction(epsilon, "epsilon")
        self.proposal_epsilon = positive_fraction(proposal_epsilon, "proposal_epsilon")
        if self.cells < 1:
            raise InvalidParameter(f"cells must be one or more. Got {self.cells}.")
        if self.proposal_epsilon**2 * self.cells > self.epsilon**2:
            raise InvalidParameter(
                "proposal_epsilon must be at most epsilon / sqrt(cells), else far-out points are proposed too rarely. "
                f"Got {self.proposal_epsilon} for epsilon {self.epsilon} and {self.cells} cells. Use proposal_epsilon_for(epsilon, cells)."
            )
        check_l1_reach(self.cells, self.proposal_epsilon)
        self._proposal = proposal
        self._proposal_tries = proposal_tries
        self._band = band

    def __repr__(self) -> str:
        return f"L2Laplace({self.cells}, proposal, '{self.proposal_epsilon}', '{self.epsilon}')"

    @property
    def name(self) -> str:
        return f"{self.cells} cells, Euclidean norm: exact rejection from l1 Laplace"

    @cached_property
    def acceptance(self) -> Acceptance:
        """How often a proposal is accepted, by pilot."""
        return estimate_acceptance(self)

    @cached_property
    def _own_tries(self) -> float:
        return self.acceptance.expected_tries(safe_exp(math.log(1.32) * self.cells))

    @property
    def expected_tries(self) -> float:
        """Estimated tries for one draw, those of the proposals included."""
        return min(self._own_tries * self._proposal_tries, HOPELESS)

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent draws, shape (n, cells)."""
        return first_accepted(sample_size(n), self.cells, self._own_tries, lambda tries: self._accept(tries, words))

    def _accept(self, tries: int, words: Words) -> NDArray[np.int64]:
        """The accepted ones of so many tries, in order: first all proposals, then one accept word a try."""
        values = self._proposal(tries, words)
        base = words.position
        uniforms = words.take(tries)
        return values[self.decide(values, uniforms, base, words)]

    def decide(self, values: NDArray[np.int64], uniforms: NDArray[np.uint32], base: int, words: Words) -> NDArray[np.bool_]:
        """Verdict of each try: doubles where they suffice, balls and extra bits where not."""
        exponents, sizes = self._exponents(values)
        verdict = settle_exp(uniforms.astype(np.float64), WORD_BITS, exponents, self._band)
        size = (2 * self.cells + 10) * sizes
        verdict[~((size <= TRUSTED) | ((exponents >= SURE_EXPONENT) & (size <= WORTHLESS)))] = 0
        for i in np.flatnonzero(verdict == 0):
            below = is_below(int(uniforms[i]), WORD_BITS, self.accept_probability(values[i].tolist()), words, base + int(i))
            verdict[i] = 1 if below else -1
        return verdict > 0

    def _exponents(self, values: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """t and epsilon |z|_2 of each vector, in doubles."""
        magnitudes = np.abs(values.astype(np.float64))
        sizes = float(self.epsilon) * np.sqrt((magnitudes * magnitudes).sum(axis=1))
        return sizes - float(self.proposal_epsilon) * magnitudes.sum(axis=1), sizes

    def accept_probability(self, values: list[int]) -> Callable[[], arb]:
        """exp(-t) of one vector, as a function giving balls."""
        squares, total = sum(value * value for value in values), sum(map(abs, values))
        return lambda: (ball(self.proposal_epsilon * total) - ball(self.epsilon) * arb(squares).sqrt()).exp()

    # What the pilot asks for.

    @property
    def pilot_label(self) -> str:
        return f"L2Laplace({self.cells}, proposal, '{self.proposal_epsilon}', '{self.epsilon}')"

    @property
    def cells_per_try(self) -> float:
        return self.cells * self._proposal_tries

    @property
    def exponent_unit(self) -> Fraction:
        return PILOT_UNIT

    def pilot_exponents(self, tries: int, words: Words) -> NDArray[np.int64]:
        exponents, _ = self._exponents(self._proposal(tries, words))
        # Rounding may leave -2^-50 where the exponent is 0; a negative exponent would mean "never".
        return np.floor(np.clip(exponents, 0.0, 2.0**40) / float(PILOT_UNIT)).astype(np.int64)


def rule_of_thumb_tries(dimension: int) -> float:
    """Tries for one draw where epsilon is small."""
    return min(0.71 * safe_exp(math.log(1.32) * dimension), HOPELESS)


def proposal_epsilon_for(epsilon: Exact, cells: int) -> Fraction:
    """A rational just below epsilon / sqrt(cells), equal to it where sqrt(cells) is an integer.

    Guarantees:  result^2 cells <= epsilon^2, by integers: the ratio r / DENOMINATOR has r = floor(sqrt(DENOMINATOR^2 / cells)).
    """
    epsilon, cells = positive_fraction(epsilon, "epsilon"), exact_integer(cells, "cells")
    if cells < 1:
        raise InvalidParameter(f"cells must be one or more. Got {cells}.")
    root = math.isqrt(cells)
    ratio = Fraction(1, root) if root * root == cells else Fraction(math.isqrt(DENOMINATOR**2 // cells), DENOMINATOR)
    return epsilon * ratio


Ints: TypeAlias = NDArray[np.int64]

STEP = Fraction(1, 16)
"""kappa. Step 3 loses one try in seven where epsilon is tiny, one in fifty at 1/4, almost none at 1; a smaller kappa loses fewer."""
NEAR = 4
"""Beyond x = NEAR a formula bounds |log(F(x) exp(x))|; up to there it is computed."""
DOUBLE_ERROR = 2.0**-40
"""Proved error of `excess_double` up to NEAR."""
PIECES = 1 << 10
TRY_COST = 2_500
"""Cell draws that take as long as one coefficient: some 120 microseconds."""
WIDEST = 160
"""Atoms with u beyond do not matter for F up to NEAR: together they add less than exp(-(WIDEST - NEAR)^2 / (2 WIDEST)) < 2^-100."""


class Closeness:
    """F against exp(-x), for one STEP: the same for every epsilon and every lattice."""

    def __init__(self, step: Fraction = STEP) -> None:
        self.step = step
        self._u = float(step) * np.arange(1, math.ceil(WIDEST / step))
        self._masses = float(step) / np.sqrt(2 * math.pi * self._u)

    def mass(self, j: int) -> arb:
        """w_j, as a ball at flint's current precision."""
        return (ball(self.step) / (2 * arb.pi() * j)).sqrt() * (-ball(self.step * j) / 2).exp()

    def at_zero(self) -> arb:
        """m_0 = 1 - F(0)."""
        last = self._last(0)
        rest = self.mass(last) / (1 - (-ball(self.step) / 2).exp())
        return 1 - sum((self.mass(j) for j in range(1, last)), arb(0)) - arb(0).union(rest)

    def excess(self, x_squared: Fraction) -> arb:
        """log(F(x) exp(x)) for x > 0, as a ball at flint's current precision."""
        square, step = ball(x_squared), ball(self.step)
        x = square.sqrt()
        last = self._last(math.isqrt(math.ceil(x_squared)) + 1)
        total = arb(0)
        for j in range(1, last):
            total += (x - j * step / 2 - square / (2 * j * step)).exp() / arb(j).sqrt()
        rest = (x - last * step / 2).exp() / (1 - (-step / 2).exp())
        return ((total + arb(0).union(rest)) * (step / (2 * arb.pi())).sqrt()).log()

    def _last(self, x: int) -> int:
        """From here on the masses, times exp(x), are below 2^-prec: log 2 < 7/10."""
        return math.ceil((2 * x + Fraction(7, 5) * ctx.prec) / self.step)

    def excess_double(self, x: float) -> float:
        """The same in doubles, off by at most DOUBLE_ERROR [theory T163]; 0 beyond NEAR, off by at most `far_error`."""
        if x >= NEAR:
            return 0.0
        distance = x - self._u
        return math.log(float((self._masses * np.exp(-(distance * distance) / (2 * self._u))).sum()))

    @cached_property
    def far_error(self) -> float:
        """A bound of |log(F(x) exp(x))| for all x >= NEAR, by Poisson summation [theory T163]."""
        with precision(64):
            return float_up(enclosure(2 * aliasing(arb(NEAR), self.step)).upper)

    def loss(self, least: float) -> Fraction:
        """At least log sup of exp(-x) / F(x) over x >= least; dyadic, and above 0. (At z = 0, m_0 makes up what F(0) is short of 1.)"""
        return self._largest(least, -1)

    def gain(self, least: float) -> Fraction:
        """At least log sup of F(x) / exp(-x) over x >= least."""
        return self._largest(least, 1)

    def _largest(self, least: float, sign: int) -> Fraction:
        """Both functions fall, so on a piece [x, y] one is at most its value at x and the other at least its value at y."""
        largest = self.far_error
        for x, y in pairwise(np.linspace(min(least, NEAR), NEAR, PIECES + 1).tolist()):
            largest = max(largest, y - x + sign * self.excess_double(x if sign > 0 else y))
        # Rounded up coarsely, so that the last bits of a machine's exp and log do not show.
        return Fraction(math.ceil((largest + self.far_error + DOUBLE_ERROR) * 2.0**20), 1 << 20)


class VarianceWeights:
    """Source of the weights of step 1, up to a constant: weight 0 is m_0, weight j is w_j prod_i rho(s_i).

    `squared_lengths` gives the |b*_i|^2 as balls at flint's current precision.
    """

    def __init__(self, closeness: Closeness, epsilon: Fraction, squared_lengths: Callable[[], list[arb]]) -> None:
        self.closeness, self.epsilon, self.squared_lengths = closeness, epsilon, squared_lengths

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        working = bits + guard + 64
        with precision(working + 64):
            logs = _LogWeights(self.closeness, self.epsilon, self.squared_lengths())
            lows, highs = ([end] for end in fixed_point(logs.at_zero().exp(), working))
            while True:
                j = len(lows)
                weight = logs.at(j).exp()
                low, high = fixed_point(weight, working)
                lows.append(low)
                highs.append(high)
                beyond = logs.beyond(j, weight) if high < 1 << 62 else None
                if beyond is not None and (rest := fixed_point(beyond, working)[1]) < 1 << 64:
                    return FixedWeights(0, lows, highs, (0, 0), (0, rest))


class _LogWeights:
    """Logarithms of the weights at one precision, less a whole number that brings the largest near 0."""

    def __init__(self, closeness: Closeness, epsilon: Fraction, squared_lengths: list[arb]) -> None:
        self.closeness, self.epsilon, self.lengths = closeness, epsilon, squared_lengths
        self.dimension = len(squared_lengths)
        self._longest = max((length.upper() for length in squared_lengths), key=float)
        # log of kappa / sqrt(2 pi) prod sqrt(2 pi) / (epsilon |b*_i|): what does not depend on j
        half = (2 * arb.pi()).log() / 2
        start = ball(closeness.step).log() - half + self.dimension * (half - ball(epsilon).log())
        self._constant = start - sum((length.log() for length in squared_lengths), arb(0)) / 2
        self.shift = 0
        middle = max(1, round((self.dimension - 1) / float(closeness.step)))
        self.shift = math.floor(max(0.0, *(float(self.at(j).mid()) for j in (1, middle))))

    def at_zero(self) -> arb:
        return self.closeness.at_zero().log() - self.shift

    def at(self, j: int) -> arb:
        u = ball(self.closeness.step * j)
        return self._constant - self.shift + (self.dimension - 1) * u.log() / 2 - u / 2 + self.corrections(j)

    def corrections(self, j: int) -> arb:
        """sum_i log(rho(s_i) / (sqrt(2 pi) s_i)); where all are below 2^-prec together, a ball around them."""
        scale = ball(self.epsilon**2 / (self.closeness.step * j))
        nome = (-2 * arb.pi() ** 2 / (scale * self._longest)).exp()
        if self.dimension * nome < arb(2) ** -ctx.prec:
            return arb(0).union(3 * self.dimension * nome)  # log(1 + 2 q + 2 q^4 + ...) < 3 q
        return sum((log_theta(scale * length) for length in self.lengths), arb(0))

    def beyond(self, j: int, weight: arb) -> arb | None:
        """A bound of all weights after j, if there is one yet: rho(s) / s falls in s, so they fall at least like a geometric series."""
        ratio = (1 + arb(1) / j) ** (arb(self.dimension - 1) / 2) * (-ball(self.closeness.step) / 2).exp()
        return weight * ratio / (1 - ratio) if ratio < 1 else None


class MixedL2Laplace:
    """Laplace noise of the Euclidean norm on a lattice.

    Law:         P[Z = z] proportional to exp(-epsilon |z|_2) for z in the lattice that the columns of `basis` span.
    Given:       independent integer columns (checked). The basis decides about speed and about which draw belongs to which words.
    Guarantees:  exact over uniform words. No try is capped or given up.
    Cost:        one Klein try at a variance of its own for a try; .8 of them are kept or more, unless epsilon is well above 1.
    Reference:   [theory R13].

    `band` and `step` exist for tests: a wide band changes nothing; another step is another way to the same law.
    """

    def __init__(self, basis: algebra.Matrix, epsilon: Exact, *, band: float = BAND, step: Fraction = STEP) -> None:
        self.epsilon = positive_fraction(epsilon, "epsilon")
        self._klein = KleinGaussian(basis, step / self.epsilon**2, band)
        self._band = band
        self.cells, self.dimension = self._klein.cells, self._klein.dimension
        self._closeness = Closeness(step)
        self.loss = self._closeness.loss(float_down(self.epsilon))  # |z|_2 >= 1 for every integer vector but 0
        self._variances = TableSampler(VarianceWeights(self._closeness, self.epsilon, self._klein.squared_lengths))

    @property
    def name(self) -> str:
        return f"{self.cells} cells, Euclidean norm: one random variance, then Klein's sampler"

    def draw(self, n: int, words: Words) -> Ints:
        """n independent draws, shape (n, cells)."""
        out = np.empty((sample_size(n), self.cells), dtype=np.int64)
        done = 0
        while done < n:
            values, kept = self.tries(min(n - done, max(1, CHUNK_CELLS // self.cells)), words)
            piece = values[kept]
            out[done : done + len(piece)] = piece
            done += len(piece)
        return out

    def tries(self, n: int, words: Words) -> tuple[Ints, NDArray[np.bool_]]:
        """n tries: vectors, and which are kept."""
        indices = self._variances.draw(n, words)
        values, kept = np.zeros((n, self.cells), dtype=np.int64), np.ones(n, dtype=np.bool_)
        for j in np.unique(indices[indices > 0]).tolist():
            places = np.flatnonzero(indices == j)
            values[places], kept[places] = self._klein.at(self._closeness.step * j / self.epsilon**2).tries(len(places), words)
        base = words.position
        return values, kept & self.decide(values, words.take(n), base, words)

    def decide(self, values: Ints, uniforms: NDArray[np.uint32], base: int, words: Words) -> NDArray[np.bool_]:
        """Step 3 for each vector: doubles where they suffice, balls where not."""
        squares = [sum(value * value for value in row) for row in values.tolist()]
        band = max(self._band, 2 * (DOUBLE_ERROR + self._closeness.far_error))
        chances = {square: self._chance_double(square) for square in set(squares)}
        verdict = settle(uniforms.astype(np.float64), 32, np.array([chances[square] for square in squares]), band)
        for i in np.flatnonzero(verdict == 0):
            below = is_below(int(uniforms[i]), 32, self.chance(squares[i]), words, base + int(i))
            verdict[i] = 1 if below else -1
        return verdict > 0

    def _chance_double(self, square: int) -> float:
        x = float(self.epsilon) * math.sqrt(square)
        return math.exp(-float(self.loss) - (self._closeness.excess_double(x) if square else 0.0))

    def chance(self, square: int) -> Callable[[], arb]:
        """The probability of step 3 for |z|_2^2 = square, as a function giving balls."""
        x_squared = self.epsilon**2 * square
        return lambda: (-ball(self.loss) - (self._closeness.excess(x_squared) if square else arb(0))).exp()

    @property
    def try_cost(self) -> float:
        """In cell draws (samplers/choice.py): what Klein's coefficients cost, and their centres."""
        return TRY_COST * self.dimension

    @cached_property
    def expected_tries(self) -> float:
        """A bound of the expected number of tries, in doubles, for plans.

        A try is kept with probability Z exp(-loss) / (m_0 + sum_j w_j prod rho(s_i)), Z the sum over the lattice of exp(-epsilon |z|_2).
        This sum is at least exp(-gain) (m_0 + sum_j w_j Theta(tau_j)), and Theta(tau), the sum of exp(-|z|^2 / (2 tau)), is at least 1 and
        at least prod sqrt(2 pi) s_i.
        """
        with precision(64):
            logs = _LogWeights(self._closeness, self.epsilon, self._klein.squared_lengths())
            ours = theirs = math.exp(float(logs.at_zero().mid()))
            last = self._variances.first + len(self._variances)
            for j in range(1, last):
                weight, mass = float(logs.at(j).mid()), float(self._closeness.mass(j).log().mid()) - logs.shift
                ours += math.exp(weight)
                theirs += math.exp(max(mass, weight - float(logs.corrections(j).mid())))
        return math.exp(float(self.loss + self._closeness.gain(float_down(self.epsilon)))) * ours / theirs
