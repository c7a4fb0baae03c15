"""What the rejection samplers share: batches of tries, the proof that their integers stay within 64 bits, and a pilot that estimates how
often a try is accepted, before any data is seen.

The pilot draws proposals from a public test key whose label is the sampler's public parameters, and averages their accept PROBABILITIES
(not coins: smaller variance). The figure informs the plan and the size of batches; no draw's law depends on it. It is the same number on
every machine: accept exponents are integers times a rational unit, and their exponentials are balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import RequestTooLarge
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.randomness import NoiseKey, Words

CHUNK_CELLS = 1 << 20
"""Most cells in one batch of tries, unless a single block is larger: 8 MiB an array."""
INT64_SUMS = 1 << 62
"""Sums of absolute values stay below this."""


def first_accepted(n: int, cells: int, expected_tries: float, batch: Callable[[int], NDArray[np.int64]]) -> NDArray[np.int64]:
    """The first n accepted tries of a sequence of independent ones, taken batch by batch; what the last batch has beyond is dropped.

    Given:       `batch(tries)` makes that many new tries and returns the accepted ones in order, shape (accepted, cells).
    Guarantees:  independent draws from the law of an accepted try: how many tries a batch has depends on how many draws are missing, never
                 on what it will hold.
    """
    out = np.empty((n, cells), dtype=np.int64)
    done = 0
    while done < n:
        accepted = batch(batch_tries(n - done, expected_tries, cells))[: n - done]
        out[done : done + len(accepted)] = accepted
        done += len(accepted)
    return out


def batch_tries(missing: int, expected_tries: float, cells: int) -> int:
    """How many tries to make at once: about as many as the missing draws need, within CHUNK_CELLS."""
    most = max(1, CHUNK_CELLS // cells)
    return most if (missing + 2) * expected_tries >= most else math.ceil((missing + 2) * expected_tries)


def l1_reach(cells: int, epsilon: Fraction) -> int:
    """A bound that |z|_1 passes with probability below 2^-200, for the law exp(-epsilon |z|_1) on ANY lattice in Z^cells.

    Proof:       P[|z|_1 >= t] <= E exp(epsilon |z|_1 / 2) exp(-epsilon t / 2). The expectation is Z(epsilon / 2) / Z(epsilon), Z the sum of
                 the weights over the lattice: Z(epsilon) >= 1, the weight of 0, and Z(epsilon / 2) is at most the sum over all integer
                 vectors, coth(epsilon / 4)^cells <= (1 + 4 / epsilon)^cells. With 2^bits >= 1 + 4 / epsilon and ln 2 < 7/10 the bound
                 returned makes the right side at most exp(-140) < 2^-200.
    """
    bits = (math.ceil(4 / epsilon) + 1).bit_length()
    return math.ceil(2 * (140 + Fraction(7, 10) * cells * bits) / epsilon)


def check_l1_reach(cells: int, epsilon: Fraction) -> int:
    """`l1_reach`, refused where sums of that size could leave 64-bit integers."""
    reach = l1_reach(cells, epsilon)
    if reach >= INT64_SUMS:
        raise RequestTooLarge(
            f"The noise of {cells} cells could leave 64-bit integers with probability above 2^-200 at this epsilon. Use a larger epsilon."
        )
    return reach


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
