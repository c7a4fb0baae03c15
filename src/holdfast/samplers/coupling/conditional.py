"""One variance given all others, in balls, and coupling from the past with every step decided in balls: slow and plain. It is the oracle of
the compiled loops, and their last resort.

Legend: atoms tau_0 < tau_1 < ... with weights w_j = m_j sqrt(tau_j) (mixture.py). Given the variances of the other cells, atom j of a cell
has weight w_j (C + tau_j)^(-1/2) exp(exponent_j), C >= 0 the conductance of the others (None: infinite), exponents what the cell adds to
the correction: falling in j, and the last one given stands for all later atoms. [theory T173], [theory T191]

A try takes one word of the stream for every cell. The uniform of a cell at time -t is made of extra bits that belong to that word
(randomness/words.py): so how far back a try goes, and how many bits a comparison needs, shifts nothing that comes after.

Any start below all states and any start above all states give the same result, if the chains meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Protocol

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.predicates import extra_integer
from holdfast.randomness import Words
from holdfast.samplers.coupling.convex_correction import log_theta
from holdfast.samplers.coupling.mixture import Mixture
from holdfast.samplers.theta import theta_ratio_ball

GUARD_BITS = 64
FIRST_BITS, MORE_BITS = 48, 128
MOST_KEPT = 16


@dataclass(frozen=True)
class ConditionalLaw:
    """The law of one cell's atom; see above."""

    mixture: Mixture
    exponents: Sequence[Fraction]
    conductance: Fraction | None

    def cumulative(self, bits: int) -> tuple[list[arb], arb]:
        """(sums of weights over atoms 0 to j, for so many j that the rest is below 2^-bits of them; the whole sum)."""
        sums: list[arb] = []
        last, small = arb(0), arb(2) ** -bits
        factors = [ball(exponent).exp() for exponent in self.exponents]
        for j, (tau, weight) in enumerate(_atoms(self.mixture)):
            factor = factors[min(j, len(factors) - 1)]
            if self.conductance is not None:
                factor /= (ball(self.conductance) + tau).sqrt()
            if j >= self.mixture.head:
                rest = weight * factor / (1 - self.mixture.ratio)  # all factors fall in j
                if rest < small * last:
                    return sums, last + arb(0).union(rest)
            last += weight * factor
            sums.append(last)
        raise AssertionError("the list of atoms has no end")

    def index(self, cell: Callable[[int], int]) -> int:
        """The j with F(j - 1) <= U < F(j), F the law's cumulative probability; cell(levels) has the first 128 levels bits of U.

        Guarantees:  exact; ends with probability one.
        """
        levels, bits, u = 1, FIRST_BITS, cell(1) >> (MORE_BITS - FIRST_BITS)
        while True:
            with precision(bits + GUARD_BITS):
                sums, total = self.cumulative(bits + GUARD_BITS // 2)
                scale = arb(2) ** bits / total
                low, high = 0, len(sums)
                while low < high:  # the first atom whose share may pass u
                    middle = (low + high) // 2
                    low, high = (low, middle) if enclosure(sums[middle] * scale).upper > u else (middle + 1, high)
                if low < len(sums) and enclosure(sums[low] * scale).lower >= u + 1:
                    return low  # and the share before it is at most u
            if bits >= MORE_BITS:
                levels += 1
            bits, u = MORE_BITS * levels, cell(levels)


_KEPT: dict[tuple[int, int], tuple[Mixture, list[tuple[arb, arb]]]] = {}
"""Atoms already found, by mixture and precision; the mixture is kept, so that its id stays its own."""


def _atoms(mixture: Mixture) -> Iterator[tuple[arb, arb]]:
    """(tau_j, w_j) as balls at flint's current precision, without end."""
    if len(_KEPT) > MOST_KEPT:
        _KEPT.clear()
    kept = _KEPT.setdefault((id(mixture), ctx.prec), (mixture, []))[1]
    for j in count():
        if j == len(kept):
            kept.append((ball(mixture.tau(j)), mixture.weight(j)))
        yield kept[j]


def integer_at(distance: Fraction, variance: Fraction, cell: int, bits: int, words: Words, index: int) -> int:
    """The k that a uniform gives under weights exp(-(k - distance)^2 / (2 variance)), in the order 0, 1, -1, 2, ...: |distance| <= 1/2.

    Guarantees:  exact; further bits of the uniform are those of word `index`.
    """
    depth = 0
    while True:
        with precision(bits + 2 * GUARD_BITS):
            centre, half, scale = ball(distance), 1 / ball(2 * variance), arb(2) ** bits / gaussian_sum(distance, variance)
            reached, n = arb(0), 0
            while True:
                k = (n + 1) // 2 if n % 2 else -(n // 2)
                reached += (-((k - centre) ** 2) * half).exp()
                share = reached * scale
                if share >= cell + 1:
                    return k  # all before k had a share of at most `cell`
                if not share <= cell:
                    break
                n += 1
        cell = (cell << MORE_BITS) | extra_integer(words, index, depth)
        bits, depth = bits + MORE_BITS, depth + 1


def gaussian_sum(distance: Fraction, variance: Fraction) -> arb:
    """The sum over all integers k of exp(-(k - distance)^2 / (2 variance)), as a ball; |distance| <= 1/2."""
    return (2 * arb.pi() * ball(variance)).sqrt() * log_theta(1 / ball(variance)).exp() * theta_ratio_ball(variance, distance)


Doubles = NDArray[np.float64]
LEVEL_BITS = 128
DOUBLE_BITS = 53


def depth_of(time: int, level: int) -> int:
    """Where the bits number `level` (128 each) of the uniform of time -time are: a different depth for every pair."""
    a = time - 1 + level
    return a * (a + 1) // 2 + level


@dataclass(frozen=True)
class SweepUniform:
    """The uniform of one cell at time -time; `index` is the cell's word."""

    words: Words
    index: int
    time: int

    def cell(self, levels: int) -> int:
        """The first 128 `levels` bits, as an integer."""
        value = 0
        for level in range(levels):
            value = (value << LEVEL_BITS) | extra_integer(self.words, self.index, depth_of(self.time, level))
        return value


def sweep_doubles(words: Words, first: int, count: int, time: int) -> Doubles:
    """The first 53 bits of the uniforms of time -time for words first, first + 1, ...: numbers below 1, rounded down."""
    parts = words.extra(np.arange(first, first + count, dtype=np.uint64), depth_of(time, 0))
    return as_doubles(parts[:, 0], parts[:, 1])


def as_doubles(high: NDArray[np.uint32], low: NDArray[np.uint32]) -> Doubles:
    """The first 53 of 64 bits, times 2^-53."""
    whole = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    return np.asarray((whole >> np.uint64(64 - DOUBLE_BITS)).astype(np.float64) * 2.0**-DOUBLE_BITS)


class ExactForm(Protocol):
    """What the reference needs of a form."""

    @property
    def cells(self) -> int: ...

    def law(self, indices: list[int], cell: int) -> ConditionalLaw:
        """The conditional law of one cell given the others."""

    def top_law(self, cell: int) -> ConditionalLaw:
        """A law above every conditional of the cell."""


def coalesce(form: ExactForm, uniform: Callable[[int, int], SweepUniform], steps: int = 2) -> list[int]:
    """The atoms at time 0; uniform(cell, time) is that of a cell at time -time. Never gives up."""
    while True:
        lower = [0] * form.cells
        upper = [form.top_law(e).index(uniform(e, steps).cell) for e in range(form.cells)]
        _sweep(form, lower, uniform, steps)
        for time in range(steps - 1, 0, -1):
            _sweep(form, lower, uniform, time)
            _sweep(form, upper, uniform, time)
        if lower == upper:
            return lower
        steps += 1


def _sweep(form: ExactForm, state: list[int], uniform: Callable[[int, int], SweepUniform], time: int) -> None:
    for cell in range(form.cells):
        state[cell] = form.law(state, cell).index(uniform(cell, time).cell)
