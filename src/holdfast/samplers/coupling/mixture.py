"""The cell law of l1 Laplace noise as a mixture of Gaussians whose variances stay away from 0.

Legend: a = exp(-epsilon); atoms tau_j > 0, rising, with masses m_j > 0; f(k) = sum_j m_j exp(-k^2 / (2 tau_j)) for integers k.

On the reals exp(-epsilon |x|) is a mixture of Gaussians of every variance tau > 0. At the integers alone, and up to a small factor, atoms
from some tau_0 > 0 on suffice:

    head   finitely many atoms with dyadic masses, found by a linear programme (mixture_fit.py); nothing it says is trusted;
    tail   tau_j = cut + i step for i = 1, 2, ..., without end, m_j = step epsilon / sqrt(2 pi tau_j) exp(-epsilon^2 tau_j / 2).

What is proved of a mixture [theory T160]: every m_j > 0, and a^|k| / f(k) <= exp(loss) for EVERY integer k. A sampler of the law
prod f(z_i) becomes one of prod a^|z_i| by an accept step of probability prod a^|z_i| exp(-loss) / f(z_i).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from holdfast.exact.balls import ball, enclosure, float_up, precision

Doubles = NDArray[np.float64]

REACH = 60
"""Checked one by one up to k = REACH / epsilon; beyond that a formula bounds the error."""
TABLE_BITS = 128
LEFT_OUT_BITS = 96
"""The table of atoms ends where all later ones together have less than 2^-this of the weight m sqrt(tau)."""
EXCESS_ERROR = 2.0**-40
"""Proved error of `excess_table`."""
WEIGHT_BOUND = 16.0
"""Of the sum of m exp(epsilon^2 tau / 2) over the table's atoms: the proof of EXCESS_ERROR uses it."""


@dataclass(frozen=True)
class Mixture:
    """f(k) = sum_j m_j exp(-k^2 / (2 tau_j)), near exp(-epsilon |k|).

    Given:       head_taus rising and at most cut, head_masses > 0, all dyadic; step > 0 dyadic.
    Guarantees:  `loss` >= log(exp(-epsilon |k|) / f(k)) for every integer k; see `excess`. Immutable; equal fields, equal law.
    """

    epsilon: Fraction
    head_taus: tuple[Fraction, ...]
    head_masses: tuple[Fraction, ...]
    cut: Fraction
    step: Fraction

    @property
    def head(self) -> int:
        """Atoms before the tail."""
        return len(self.head_taus)

    def tau(self, j: int) -> Fraction:
        return self.head_taus[j] if j < self.head else self.cut + (j - self.head + 1) * self.step

    def mass(self, j: int) -> arb:
        """m_j, as a ball at flint's current precision."""
        return ball(self.head_masses[j]) if j < self.head else self.weight(j) / ball(self.tau(j)).sqrt()

    def weight(self, j: int) -> arb:
        """m_j sqrt(tau_j): from atom to atom of the tail it falls by the factor `ratio`."""
        tau = ball(self.tau(j))
        if j < self.head:
            return ball(self.head_masses[j]) * tau.sqrt()
        return self._density * (-(ball(self.epsilon**2) * tau) / 2).exp()

    @property
    def ratio(self) -> arb:
        return (-ball(self.epsilon**2 * self.step) / 2).exp()

    def weight_from(self, j: int) -> arb:
        """The sum of m sqrt(tau) over atoms j, j + 1, ... of the tail."""
        if j < self.head:
            raise ValueError(f"Atom {j} is before the tail, which begins at {self.head}.")
        return self.weight(j) / (1 - self.ratio)

    @property
    def _density(self) -> arb:
        return ball(self.step * self.epsilon) / (2 * arb.pi()).sqrt()

    def excess(self, k: int) -> arb:
        """log(f(k) exp(epsilon |k|)), as a ball at flint's current precision."""
        k, epsilon = abs(k), ball(self.epsilon)
        last = self._last(k)
        total = arb(0)
        for j in range(last):
            total += self.mass(j) * (epsilon * k - arb(k * k) / (2 * ball(self.tau(j)))).exp()
        left_out = (epsilon * k).exp() * self.weight_from(last) / ball(self.tau(last)).sqrt()
        return (total + arb(0).union(left_out)).log()

    def _last(self, k: int) -> int:
        """Atoms from here on give less than 2^-prec of f(k): epsilon^2 tau / 2 > epsilon k + prec log 2."""
        tau = (2 * self.epsilon * k + 2 * ctx.prec) / self.epsilon**2
        return self.head + max(1, math.ceil((tau - self.cut) / self.step))

    @cached_property
    def reach(self) -> int:
        return math.ceil(REACH / self.epsilon)

    @cached_property
    def far_error(self) -> float:
        """A bound of |log(f(k) exp(epsilon |k|))| for all |k| > reach, by Poisson summation over the tail [theory T160]."""
        with precision(TABLE_BITS):
            epsilon, k, cut = ball(self.epsilon), arb(self.reach), ball(self.cut)
            head = arb(0)
            for tau, mass in zip(self.head_taus, self.head_masses, strict=True):
                head += ball(mass) * (ball(self.epsilon**2 * tau) / 2).exp()
            tau = self.cut
            while tau > 0:
                head += self._density / ball(tau).sqrt()
                tau -= self.step
            error = aliasing(epsilon * k, self.epsilon**2 * self.step) + head * (-((k - epsilon * cut) ** 2) / (2 * cut)).exp()
            if not (k > epsilon * cut and error < 0.25):
                raise ValueError("The tail begins too late for its error to be bounded.")
            return float_up(enclosure(2 * error).upper)  # |log(1 + e)| <= 2 |e| for |e| <= 1/2

    @cached_property
    def excess_table(self) -> Doubles:
        """log(f(k) exp(epsilon k)) for k = 0, ..., reach, off by at most EXCESS_ERROR. Beyond it is 0, off by at most far_error."""
        table = np.empty(self.reach + 1)
        taus, epsilon = self.taus, float(self.epsilon)
        with precision(TABLE_BITS):
            growth = [(ball(self.epsilon**2 * self.tau(j)) / 2).exp() for j in range(self.atoms)]
            scaled = np.array([enclosure(self.mass(j) * growth[j]).nearest() for j in range(self.atoms)])
        # What is left of exp(epsilon k - k^2 / (2 tau)) has the exponent -(k - epsilon tau)^2 / (2 tau): no cancellation.
        for begin in range(0, len(table), 1 << 10):
            k = np.arange(begin, min(begin + (1 << 10), len(table)), dtype=np.float64)[:, None]
            distance = k - epsilon * taus
            table[begin : begin + len(k)] = np.log((scaled * np.exp(-(distance * distance) / (2 * taus))).sum(axis=1))
        if not (scaled.sum() < WEIGHT_BOUND and table.min() > -0.5):
            raise ValueError("These masses are too far from the Laplace law for the error of the table to be bounded.")
        table.setflags(write=False)
        return table

    @cached_property
    def loss(self) -> Fraction:
        """At least log sup over all integers k of exp(-epsilon |k|) / f(k); dyadic, and 0 or more."""
        largest = max(0.0, -float(self.excess_table.min()), self.far_error)
        # Rounded up coarsely, so that the last bits of a machine's exp and log do not show.
        return Fraction(math.ceil((largest + EXCESS_ERROR) * 2.0**26), 1 << 26)

    @cached_property
    def atoms(self) -> int:
        """Atoms in the tables; all later ones together have less than 2^-LEFT_OUT_BITS of the weight."""
        log_share = LEFT_OUT_BITS * math.log(2) + 10
        tau = Fraction(math.ceil(2 * log_share)) / self.epsilon**2
        return self.head + max(1, math.ceil((tau - self.cut) / self.step))

    @cached_property
    def taus(self) -> Doubles:
        """tau_j of the table's atoms: exact, and so are the sums of them that are needed, which the forms check."""
        return _frozen([float(self.tau(j)) for j in range(self.atoms)])

    @cached_property
    def weights(self) -> Doubles:
        """m_j sqrt(tau_j) of the table's atoms, each the double nearest to it or next to that."""
        with precision(TABLE_BITS):
            return _frozen([enclosure(self.weight(j)).nearest() for j in range(self.atoms)])


def aliasing(x: arb, step: Fraction) -> arb:
    """A bound of |exp(x) S - 1|, S the sum of the tail's formula for epsilon = 1 over all tau = c + i step > 0, for any c and at every
    point from x on: part (i) of the proof of [theory T160], in units where epsilon is 1.
    """
    y = 4 * arb.pi() / ball(step)
    root = (((1 + y * y).sqrt() + 1) / 2).sqrt()
    b = x * (y / 2).sqrt()
    return 2 * ((x * (1 - root)).exp() + 2 * (x - b).exp() * (b + 1) / (b * b))


def _frozen(values: list[float]) -> Doubles:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array
