"""Gaussian noise between bounds, by rejection from the Laplace law between the same bounds.

Legend: s^2 is sigma_squared, r a rate near 1/s. For every z

    exp(-z^2 / (2 s^2)) = exp(r^2 s^2 / 2) exp(-r |z|) exp(-(|z| - r s^2)^2 / (2 s^2)).

So a table drawn from the Laplace law of rate r around x, within the bounds, and accepted with the product of the last factor over its cells
has the Gaussian law: the step of [CKS20] Algorithm 3, on the tables of a block. A cell lowers the chance of a try to about 3/4, at most to
exp(-1/2) where its bounds leave it one value: small blocks only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import isqrt

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.exact.balls import ball
from holdfast.exact.predicates import BAND, is_below, settle_exp
from holdfast.randomness import Words
from holdfast.samplers.protocol import InputSampler, Ints

MOST_TRIES = 1 << 12
"""Tries of one block that are made at once, at most."""


def laplace_rate(sigma_squared: Fraction) -> Fraction:
    """A short rational near 1/sigma: the rate of the proposals."""
    scale = 1
    while scale * scale * sigma_squared.denominator < 10**4 * sigma_squared.numerator:
        scale *= 2
    return Fraction(isqrt(scale * scale * sigma_squared.denominator // sigma_squared.numerator), scale)


@dataclass(frozen=True)
class BoundedGaussian:
    """Law:         P[y] proportional to exp(-|y - x|_2^2 / (2 sigma_squared)) over the tables that `proposal` draws.
    Given:       a sampler of the Laplace law of rate `laplace_rate(sigma_squared)` on the same block.
    Guarantees:  exact. There is no cap on tries; how many it takes depends on the counts.
    Reference:   [CKS20] Algorithm 3.
    """

    proposal: InputSampler
    sigma_squared: Fraction

    expected_tries = None

    @property
    def name(self) -> str:
        return f"rejection from Laplace draws: {self.proposal.name}"

    @property
    def cells(self) -> int:
        return self.proposal.cells

    @cached_property
    def _middle(self) -> Fraction:
        return laplace_rate(self.sigma_squared) * self.sigma_squared

    def publish(self, counts: Ints, cell_keys: Ints | None, words: Words, band: float = BAND) -> Ints:
        out = counts.copy()
        pending = np.arange(len(counts))
        while len(pending):
            tries = max(1, min(MOST_TRIES, 1 << self.cells // 2) // len(pending))
            tried = self.proposal.publish(np.repeat(counts[pending], tries, axis=0), None, words)
            taken = self._accept(tried - np.repeat(counts[pending], tries, axis=0), words, band).reshape(len(pending), tries)
            first = taken.argmax(axis=1)
            found = taken.any(axis=1)
            out[pending[found]] = tried.reshape(len(pending), tries, -1)[found, first[found]]
            pending = pending[~found]
        return out

    def _accept(self, changes: Ints, words: Words, band: float) -> NDArray[np.bool_]:
        """The accept step of each try. In doubles an exponent below 40 is off by less than 2^-44: its square roots have one sign."""
        taken, start = words.take(len(changes)), words.position - len(changes)
        off = np.abs(changes) - float(self._middle)
        verdict = settle_exp(taken.astype(np.float64), 32, (off * off).sum(axis=1) / (2 * float(self.sigma_squared)), band)
        for i in np.flatnonzero(verdict == 0).tolist():
            verdict[i] = 1 if is_below(int(taken[i]), 32, partial(self._chance, changes[i].tolist()), words, start + i) else -1
        return verdict > 0

    def _chance(self, changes: list[int]) -> arb:
        return ball(-sum(((abs(z) - self._middle) ** 2 for z in changes), Fraction(0)) / (2 * self.sigma_squared)).exp()
