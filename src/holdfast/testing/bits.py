"""Fair bits, one at a time: what the step-by-step samplers of papers, and a test that enumerates bits, take."""

from __future__ import annotations

from holdfast.randomness.words import Words

WORD_BITS = 32


class FairBits:
    """Fair bits from 32-bit words taken in order, the highest bit of each word first; a word is taken only when a bit of it is needed."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._pool = 0
        self._left = 0

    def bit(self) -> int:
        """One fair bit."""
        return self.bits(1)

    def bits(self, count: int) -> int:
        """An integer of `count` fair bits, the first one highest."""
        while self._left < count:
            self._pool = self._pool << WORD_BITS | int(self._words.take(1)[0])
            self._left += WORD_BITS
        self._left -= count
        value, self._pool = divmod(self._pool, 1 << self._left)
        return value

    def below(self, bound: int) -> int:
        """Draw an integer uniformly from 0, ..., bound - 1.

        Law:         P[X = k] = 1 / bound.
        Given:       bound >= 1 (asserted); the words are independent and uniform (trusted).
        Guarantees:  exact law; fewer than two tries of ceil(log2(bound)) bits in expectation.
        Reference:   [CKS20] Section 4, the remark below Algorithm 2.
        """
        assert bound >= 1
        width = (bound - 1).bit_length()
        while (value := self.bits(width)) >= bound:
            pass
        return value
