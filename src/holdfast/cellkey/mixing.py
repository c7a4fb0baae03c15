"""A fixed public permutation of cell keys, applied before the noise is looked up.

The key of a total is the sum of its parts' keys, and in a perturbation table noise rises with the key. So the gap between a total and
its parts tells about the noise (`attacks.gap_attack`). A permutation that scatters neighbouring keys leaves every cell key as
uniform as it was, so that the law of one cell's noise is the same, and takes that order away.

Four rounds of shift, multiplication and addition modulo a power of two, each of which can be undone; for other numbers of keys they are
repeated until the result is one of the keys. The permutation is part of what fixes the noise of records: it must never change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROUNDS = 4
_STEP = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio, odd; multiples of it by odd numbers are odd, and so can be undone as factors."""


def mixed(keys: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """The keys 0, ..., size - 1 permuted, for many at once."""
    bits = (size - 1).bit_length()
    out = _rounds(keys, bits)
    while len(outside := np.flatnonzero(out > np.uint64(size - 1))):
        out[outside] = _rounds(out[outside], bits)
    return out


def _rounds(keys: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    mask, shift = np.uint64(2**bits - 1), np.uint64(max(bits // 2, 1))
    out = keys.astype(np.uint64)
    for factor, term in _constants():
        out ^= out >> shift
        out *= np.uint64(factor)  # modulo 2^64, and so modulo every smaller power of two
        out += np.uint64(term)
        out &= mask
    return out


def slow_mixed(key: int, size: int) -> int:
    """The same for one key in Python's integers: the definition."""
    bits = (size - 1).bit_length()
    while True:
        for factor, term in _constants():
            key ^= key >> max(bits // 2, 1)
            key = (key * factor + term) % 2**bits
        if key < size:
            return key


def _constants() -> list[tuple[int, int]]:
    return [((2 * number + 1) * _STEP % 2**64, (number + 1) * _STEP % 2**64) for number in range(ROUNDS)]
