"""Laplace noise of the Euclidean norm on a small lattice taken whole: l1 proposals, an irrational accept probability decided exactly.

The law exp(-epsilon |z|_2) does not factorise over blocks. By Cauchy-Schwarz |z|_1 <= sqrt(cells) |z|_2, so with
proposal_epsilon <= epsilon / sqrt(cells) the exponent t = epsilon |z|_2 - proposal_epsilon |z|_1 is never negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball
from holdfast.exact.parameters import Exact, exact_integer, positive_fraction, sample_size
from holdfast.exact.predicates import BAND, is_below, settle_exp
from holdfast.randomness import Words
from holdfast.samplers.pilot import HOPELESS, Acceptance, estimate_acceptance, safe_exp
from holdfast.samplers.rejection import check_l1_reach, first_accepted

Proposal: TypeAlias = Callable[[int, Words], NDArray[np.int64]]
"""draw(n, words) -> (n, cells), of law exp(-proposal_epsilon |z|_1) on the lattice."""

WORD_BITS = 32
DENOMINATOR = 1 << 20
"""Of the ratio of the two epsilons where it is irrational: its relative loss is below 2^-20 sqrt(cells)."""
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
        self,
        cells: int,
        proposal: Proposal,
        proposal_epsilon: Exact,
        epsilon: Exact,
        *,
        proposal_tries: float = 1.0,
        band: float = BAND,
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
