"""Words chosen by the test: a list that a sampler reads as if it were random, and every list of a small size; and fair bits, one at a time,
as the step-by-step samplers of papers and a test that enumerates bits take them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.randomness.words import EXTRA_WORDS, Words

MAX_ENUMERATED = 1 << 26
"""`all_words` refuses more numbers than this: 256 MiB."""

ExtraWords: TypeAlias = Mapping[tuple[int, int], Sequence[int]] | Callable[[int, int], Sequence[int]]

WORD_BITS = 32


class WordsExhausted(LookupError):
    """A sampler asked for more words than the test listed; the message says how many of each."""


class ListedWords:
    """The `Words` protocol over a given list; extra bits come from `extra` or repeat one word.

    Given:       words fit in 32 bits (checked); `extra` maps (index, depth) to four words, or is a function that does.
    Guarantees:  `take` hands out exactly the listed words in order and raises WordsExhausted, taking nothing, where they end; `extra`
                 answers for words already taken only, with `default_extra` four times where a mapping has no entry.
    """

    def __init__(self, words: Sequence[int] | NDArray[np.uint32], extra: ExtraWords | None = None, default_extra: int = 0) -> None:
        self._words = _as_words(words)
        self._extra: ExtraWords = {} if extra is None else extra
        self._default = (default_extra,) * EXTRA_WORDS
        self._position = 0
        self._returnable = 0

    @property
    def position(self) -> int:
        """Index of the next word that `take` will return."""
        return self._position

    def take(self, count: int) -> NDArray[np.uint32]:
        """The next `count` words."""
        if count < 0:
            raise ValueError(f"A number of words cannot be negative. Got {count}.")
        left = self._words.size - self._position
        if count > left:
            raise WordsExhausted(f"{count} words were asked for, but {left} of the {self._words.size} listed are left. List more words.")
        taken = self._words[self._position : self._position + count].copy()
        self._position += count
        self._returnable = count
        return taken

    def take_into(self, out: NDArray[np.uint32]) -> None:
        """The next `len(out)` words, written into a contiguous array."""
        out[:] = self.take(len(out))

    def give_back(self, count: int) -> None:
        """Return the last `count` words unread; never more than the last `take` returned."""
        if not 0 <= count <= self._returnable:
            raise ValueError(f"{count} words were given back, but the last take left {self._returnable} to return. Give back only those.")
        self._position -= count
        self._returnable -= count

    def extra(self, indices: NDArray[np.uint64], depth: int) -> NDArray[np.uint32]:
        """For each word index (already taken) the four extra words of that depth."""
        listed = [int(index) for index in indices]
        early = [index for index in listed if not 0 <= index < self._position]
        if early:
            raise IndexError(f"Extra bits belong to words already taken, 0 to {self._position - 1}. Got index {early[0]}.")
        rows = [self._extra_row(index, depth) for index in listed]
        return np.stack(rows) if rows else np.empty((0, EXTRA_WORDS), dtype=np.uint32)

    def _extra_row(self, index: int, depth: int) -> NDArray[np.uint32]:
        row = self._extra(index, depth) if callable(self._extra) else self._extra.get((index, depth), self._default)
        if len(row) != EXTRA_WORDS:
            raise ValueError(f"Extra bits come as {EXTRA_WORDS} words. Got {len(row)} for index {index}, depth {depth}.")
        return _as_words(row)


def _as_words(words: Sequence[int] | NDArray[np.uint32]) -> NDArray[np.uint32]:
    array = np.asarray(words)
    if array.ndim != 1:
        raise ValueError(f"Words are a flat list. Got {array.ndim} dimensions.")
    if array.size and not (np.issubdtype(array.dtype, np.integer) and array.min() >= 0 and array.max() < 1 << 32):
        raise ValueError("Words are integers from 0 to 2^32 - 1. Got something else in the list.")
    return array.astype(np.uint32)


def all_words(bits: int, count: int, *, shift: int = 0) -> NDArray[np.uint32]:
    """Every tuple of `count` words of `bits` bits, one per row, in lexicographic order.

    Each number is multiplied by 2^shift; shift = 32 - bits enumerates the highest bits, which a sampler reading from the top sees first.
    """
    if min(bits, count, shift) < 0 or bits + shift > 32:
        raise ValueError(f"Words have 32 bits and counts are not negative. Got bits={bits}, count={count}, shift={shift}.")
    if bits * count > 62 or max(count, 1) << (bits * count) > MAX_ENUMERATED:
        raise ValueError(f"2^{bits * count} tuples of {count} words are too many to list. Use fewer bits or fewer words.")
    rows = np.arange(1 << (bits * count), dtype=np.uint64)[:, None]
    shifts = np.arange(count - 1, -1, -1, dtype=np.uint64) * np.uint64(bits)
    return (((rows >> shifts) & np.uint64((1 << bits) - 1)) << np.uint64(shift)).astype(np.uint32)


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
