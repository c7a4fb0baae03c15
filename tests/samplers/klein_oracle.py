"""Klein's sampler by plain loops: every centre a Fraction, every decision on balls."""

from __future__ import annotations

import numpy as np

from holdfast.exact.predicates import is_below
from holdfast.randomness import Words
from holdfast.samplers.klein import Coordinate, Ints, KleinGaussian, tries_at_once


def klein_oracle(sampler: KleinGaussian, n: int, words: Words) -> Ints:
    """The draws of `sampler` from the same words; at most CHUNK_DRAWS of them."""
    out: dict[int, list[int]] = {}
    pending, rounds = list(range(n)), 0
    while pending:
        owners = pending * tries_at_once(rounds, len(pending))
        vectors = [[0] * sampler.dimension for _ in owners]
        for coordinate in reversed(sampler.coordinates):
            _coefficients_exactly(coordinate, vectors, words)
        base = words.position
        cells = [int(word) for word in words.take(len(owners))]
        kept = [is_below(cell, 32, sampler.chance(v), words, base + k) for k, (cell, v) in enumerate(zip(cells, vectors, strict=True))]
        for place, v, good in zip(owners, vectors, kept, strict=True):
            if good:
                out.setdefault(place, v)
        pending, rounds = [place for place in pending if place not in out], rounds + 1
    basis = sampler.orthogonal.basis.tolist()
    return np.array([[sum(a * b for a, b in zip(row, out[k], strict=True)) for row in basis] for k in range(n)], dtype=np.int64)


def _coefficients_exactly(coordinate: Coordinate, vectors: list[list[int]], words: Words) -> None:
    """Draw one coefficient of every vector, in place."""
    if coordinate.has_table:
        for v, value in zip(vectors, coordinate.sampler.draw(len(vectors), words), strict=True):
            v[coordinate.index] = int(value)
        return
    pending = vectors
    while pending:
        proposals = coordinate.sampler.draw(len(pending), words)
        base = words.position
        again = []
        for k, (v, p, cell) in enumerate(zip(pending, proposals, words.take(len(pending)), strict=True)):
            start = coordinate.start(v)
            if is_below(int(cell), 32, coordinate.chance(int(p), start, v), words, base + k):
                v[coordinate.index] = start + int(p)
            else:
                again.append(v)
        pending = again
