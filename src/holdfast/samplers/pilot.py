"""How often a try is accepted, estimated before any data is seen.

The pilot draws proposals from a public test key whose label is the sampler's public parameters, and averages their accept PROBABILITIES
(not coins: smaller variance). The figure informs the plan and the size of batches; no draw's law depends on it. It is the same number on
every machine: accept exponents are integers times a rational unit, and their exponentials are balls.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.exact.balls import ball, enclosure, precision
from holdfast.randomness import NoiseKey, Words

CELL_BUDGET = 2_000_000
"""Cells a pilot draws at most."""
MOST_TRIES = 1 << 17
FIRST_TRIES = 1 << 10
ENOUGH = 0.02
"""Relative standard error at which a pilot stops."""
USELESS = 0.25
"""Relative standard error above which an estimate says nothing."""
HOPELESS = 1e300
NEGLIGIBLE_NATS = 100
"""Accept probabilities below exp(-this) count as zero."""


class Acceptance(NamedTuple):
    """A pilot's result: estimated probability that a try is accepted, its standard error, and the tries made (0: none was affordable)."""

    estimate: float
    standard_error: float
    tries: int

    @property
    def is_useful(self) -> bool:
        """Whether the estimate is large against its standard error; accept probabilities are skewed, so that others may be far off."""
        return self.tries > 0 and self.estimate > 0 and self.standard_error <= USELESS * self.estimate

    def expected_tries(self, fallback: float) -> float:
        """1 / estimate, or the fallback where the estimate says nothing; at least 1."""
        return max(1.0, 1 / self.estimate if self.is_useful else fallback)


class Piloted(Protocol):
    """What a pilot needs of a rejection sampler."""

    @property
    def pilot_label(self) -> str:
        """The public parameters, as text. Part of the stream's format, since pilots size batches: never changed, never a repr."""

    @property
    def cells_per_try(self) -> float:
        """Cells drawn for one try, tries thrown away further down included."""

    @property
    def exponent_unit(self) -> Fraction:
        """A try is accepted with probability exp(-unit k), k its exponent."""

    def pilot_exponents(self, tries: int, words: Words) -> NDArray[np.int64]:
        """Exponents k of that many new proposals, in units; negative for a proposal that is never accepted."""


def estimate_acceptance(
    sampler: Piloted,
    *,
    purpose: str = "plan",
    cell_budget: float = CELL_BUDGET,
    most_tries: int = MOST_TRIES,
    first_tries: int = FIRST_TRIES,
    enough: float = ENOUGH,
    least: float = 0.0,
) -> Acceptance:
    """Estimate the probability that a try is accepted; another purpose is another sample.

    Guarantees:  deterministic; at most `cell_budget` cells drawn (expected, where drawing them needs tries itself), none where not even
                 two tries fit. Stops early, after `first_tries` or a doubling of them, when the relative standard error is below `enough`
                 or the estimate below `least`.
    """
    affordable = min(cell_budget / sampler.cells_per_try, most_tries)
    if affordable < 2:
        return Acceptance(0.0, math.inf, 0)
    limit = int(affordable)
    exponents = np.empty(0, dtype=np.int64)
    with NoiseKey.for_tests("acceptance pilot: " + sampler.pilot_label).stream(purpose) as words:
        while True:
            more = min(max(first_tries, len(exponents)), limit - len(exponents))
            exponents = np.concatenate((exponents, sampler.pilot_exponents(more, words)))
            result = average(exponents, sampler.exponent_unit)
            if len(exponents) >= limit or result.standard_error <= enough * result.estimate or result.estimate < least:
                return result


def average(exponents: NDArray[np.int64], unit: Fraction) -> Acceptance:
    """Mean and standard error of exp(-unit k) over the exponents; negative ones count as probability zero."""
    tries = len(exponents)
    possible = exponents[(exponents >= 0) & (exponents <= min(math.ceil(NEGLIGIBLE_NATS / unit), 2**62))]
    with precision(128):
        first = second = ball(0)
        for k, count in zip(*np.unique(possible, return_counts=True), strict=True):
            chance = (-ball(unit * int(k))).exp()
            first += int(count) * chance
            second += int(count) * chance * chance
        mean = enclosure(first / tries).nearest()
        variance = enclosure((second - first * first / tries) / (tries * (tries - 1))).nearest()
    return Acceptance(mean, math.sqrt(max(variance, 0.0)), tries)


def safe_exp(nats: float) -> float:
    """exp(nats), at most HOPELESS: an expected number of tries that no run will make."""
    return math.exp(nats) if nats < math.log(HOPELESS) else HOPELESS
