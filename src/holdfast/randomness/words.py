"""The one thing samplers ask of randomness: 32-bit words, and more bits for a word that did not settle its question.

A sampler reads words in order. Where a word leaves a comparison open it asks for extra bits that belong to THAT word (by its index),
never for the next word. So what one draw consumes never shifts what another draw sees: outputs do not depend on chunk sizes, on the code
path (NumPy or Numba), or on how wide a floating-point filter was set.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

EXTRA_WORDS = 4
"""Extra words per index and depth: one 128-bit block."""


class Words(Protocol):
    """Independent, uniformly distributed 32-bit words, each handed out once."""

    @property
    def position(self) -> int:
        """Index of the next word that `take` will return."""

    def take(self, count: int) -> NDArray[np.uint32]:
        """The next `count` words."""

    def take_into(self, out: NDArray[np.uint32]) -> None:
        """The next `len(out)` words, written into a contiguous array."""

    def give_back(self, count: int) -> None:
        """Return the last `count` words unread: they will be handed out again. Never more than the last `take` returned."""

    def extra(self, indices: NDArray[np.uint64], depth: int) -> NDArray[np.uint32]:
        """For each word index (already taken) 128 further bits, shape (len(indices), 4); depth 0, 1, 2, ... gives new bits each.

        A function of (label, index, depth) only: asking again gives the same bits.
        """
