"""Exact predicates: a uniform number, drawn lazily, compared with a real number.

A double with a proven error decides almost always. Where the uniform's cell comes within the band of the double, balls decide; where the
real number lies inside the cell itself, 128 more bits of THIS uniform are drawn. Which bits are drawn depends on the exact comparison
alone, so a wider band changes the running time and nothing else.

The compiled forms for Numba loops, `settle` and `settle_exp`, are in `_compiled.py`; here are their NumPy twins and the fallback.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.exact.balls import floors
from holdfast.randomness.words import EXTRA_WORDS, Words

BAND = 2.0**-40
"""Default band. The doubles compared are off by less than 2^-48: see docs/exact-numbers.md."""


def settle(cells: NDArray[np.float64], bits: int, values: NDArray[np.float64], band: float) -> NDArray[np.int8]:
    """For uniforms in [cell, cell + 1) / 2^bits and reals within `band` of `values`: 1 below, -1 not below, 0 open.

    Given:       bits <= 52, so that cells and their ends are exact doubles.
    Guarantees:  1 and -1 are certain.
    """
    width = 2.0**-bits
    verdict = np.zeros(len(cells), dtype=np.int8)
    verdict[(cells + 1.0) * width <= values - band] = 1
    verdict[cells * width >= values + band] = -1
    return verdict


def settle_exp(cells: NDArray[np.float64], bits: int, exponents: NDArray[np.float64], band: float) -> NDArray[np.int8]:
    """`settle` against exp(-exponent), exponent >= 0 a double whose own error is covered by the band."""
    return settle(cells, bits, np.exp(-exponents), band)


def is_below(cell: int, bits: int, real: Callable[[], arb], words: Words, index: int) -> bool:
    """Whether U < real, U uniform in [cell, cell + 1) / 2^bits; further bits of U are those owned by word `index`.

    Guarantees:  exact; ends with probability one. `real()` gives a ball at flint's current precision, 0 <= real <= 1.
    """
    depth = 0
    while True:
        lowest, highest = _floors_at(real, bits)
        if not lowest <= cell <= highest:
            return cell < lowest
        cell = (cell << (32 * EXTRA_WORDS)) | extra_integer(words, index, depth)
        bits += 32 * EXTRA_WORDS
        depth += 1


def _floors_at(real: Callable[[], arb], bits: int) -> tuple[int, int]:
    """The cell that holds the number, or the two cells on whose border it lies as far as balls can tell."""
    return floors(lambda: real() * arb(2) ** bits, bits + 64)


def extra_integer(words: Words, index: int, depth: int) -> int:
    """The 128 extra bits of one word as an integer, first word highest."""
    value = 0
    for word in words.extra(np.array([index], dtype=np.uint64), depth)[0]:
        value = (value << 32) | int(word)
    return value
