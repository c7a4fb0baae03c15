"""Uniform integers, and uniform ways to split a total."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact.law import Sampler, check_memory, law_words
from holdfast.exact.parameters import exact_integer, sample_size
from holdfast.randomness import NoiseKey, Words


class UniformSampler(Sampler):
    """lower + (word mod size), words at or above the largest multiple of size thrown away; 64-bit words for sizes above 2^24."""

    def __init__(self, lower: int, size: int, word_bits: int | None = None) -> None:
        self._lower, self._size = lower, size
        self.words_per_draw = 1 if size <= 1 << 24 else 2
        bits = word_bits or 32 * self.words_per_draw
        self._drop = 32 * self.words_per_draw - bits
        self._last = (1 << bits) - (1 << bits) % size - 1

    def draw_into(self, out: NDArray[np.int64], words: Words) -> None:
        done = 0
        while done < len(out):
            # Never more tries than values still missing: no word has to be given back.
            tries = min(len(out) - done, 1 << 16)
            taken = words.take(tries * self.words_per_draw).astype(np.uint64).reshape(tries, self.words_per_draw)
            value = taken[:, 0] if self.words_per_draw == 1 else (taken[:, 0] << np.uint64(32)) | taken[:, 1]
            value = value >> np.uint64(self._drop)
            kept = value[value <= np.uint64(self._last)] % np.uint64(self._size)
            out[done : done + len(kept)] = kept.astype(np.int64) + self._lower
            done += len(kept)


class UniformComposition:
    """A uniform way to write a total as an ordered sum of parts.

    Law:         uniform over the C(total + parts - 1, total) vectors of `parts` integers >= 0 with the given total.
    Given:       total >= 0, parts >= 1.
    Guarantees:  exact. Bars among total + parts - 1 places: the first distinct places of a uniform sequence are a uniform set.
    Reference:   [theory R4], [theory T14]; [oracles.uniform_composition] is the slow form.
    """

    def __init__(self, total: int, parts: int) -> None:
        self.total, self.parts = exact_integer(total, "total"), exact_integer(parts, "parts")
        if self.total < 0:
            raise InvalidParameter(f"total must be zero or more. Got {self.total}.")
        if self.parts < 1:
            raise InvalidParameter(f"parts must be one or more. Got {self.parts}.")

    def __repr__(self) -> str:
        return self.stream_name

    @property
    def stream_name(self) -> str:
        """The law with all its parameters: labels its stream."""
        return f"UniformComposition(total={self.total}, parts={self.parts})"

    def sample(self, n: int, key: NoiseKey | None = None, *, label: str = "") -> NDArray[np.int64]:
        """n independent compositions, shape (n, parts)."""
        n = sample_size(n)
        check_memory(n * self.parts)
        with law_words(self, key, label) as words:
            return self.draw(n, words)

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent compositions from words the caller holds."""
        out = np.empty((n, self.parts), dtype=np.int64)
        for row in out:
            row[:] = self._one(words)
        return out

    def _one(self, words: Words) -> NDArray[np.int64]:
        bars, places = self.parts - 1, self.total + self.parts - 1
        if bars <= self.total:
            chosen = _distinct(bars, places, words)
        else:  # choose the fewer stars and take the other places as bars
            is_bar = np.ones(places, dtype=bool)
            is_bar[_distinct(self.total, places, words)] = False
            chosen = np.flatnonzero(is_bar).astype(np.int64)
        edges = np.concatenate(([-1], chosen, [places]))
        return np.diff(edges) - 1


def _distinct(count: int, places: int, words: Words) -> NDArray[np.int64]:
    """A uniform set of `count` of the numbers 0 .. places - 1, sorted: the first distinct ones of a uniform sequence."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    sampler = UniformSampler(0, places)
    sequence = np.empty(0, dtype=np.int64)
    while True:
        # As many new numbers as are missing: the sequence can reach `count` distinct ones only at its very end.
        found, first_seen = np.unique(sequence, return_index=True)
        if len(found) == count:
            return found.astype(np.int64)
        sequence = np.concatenate((sequence[np.sort(first_seen)], sampler.draw(count - len(found), words)))
