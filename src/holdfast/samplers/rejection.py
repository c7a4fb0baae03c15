"""What the rejection samplers share: batches of tries, and the proof that their integers stay within 64 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import RequestTooLarge

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
