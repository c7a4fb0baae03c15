"""Draws of the errors of queries from a public key: made once for all queries of a drawing, and kept as far as there is room."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.sequential import lattice_law
from holdfast.chains.sampler import ChainSampler
from holdfast.channels.covariance import public_draws
from holdfast.channels.drawing import Drawing
from holdfast.display import step
from holdfast.errors import RequestTooLarge
from holdfast.lattices.shapes import Shape
from holdfast.samplers.protocol import BlockSampler, cell_draws
from holdfast.wording.samplers import LONG_DRAW, long_interval_sentence

logger = logging.getLogger(__name__)

Ints = NDArray[np.int64]
Part = tuple[Shape, Ints, Ints]
"""A block: its shape, its cells, and the coefficients of its cells, one row a query."""

WORTH_KEEPING, MOST_KEPT = 2 * 10**7, 2**29
"""Draws of a block that take so many cell draws, a second, are kept for the next query: so many bytes of a drawing at most."""
CHUNK_CELLS = 2**23
"""Cell draws that are made at once: some tenths of a second."""
LARGEST = 2**53

_kept: WeakKeyDictionary[Drawing, dict[tuple[str | int, ...], Ints]] = WeakKeyDictionary()
"""Costly draws of blocks, which are the same for every query, as long as the drawing lives."""


class Chunk(NamedTuple):
    """Draws number first, first + 1, ... of a block, and one row of coefficients a query."""

    sampler: BlockSampler
    names: tuple[Any, ...]
    row: Ints
    first: int
    draws: int
    cost: float
    is_costly: bool


class _Clock:
    """Says once how long the draws take. The first chunk is not timed, as loops may be compiled for it."""

    def __init__(self, count: int, chunks: int) -> None:
        self.count, self.chunks, self.done, self.begun = count, chunks, 0, 0.0

    def tick(self) -> None:
        """One chunk more is done."""
        self.done += 1
        if self.done == 1:
            self.begun = time.perf_counter()
        if self.done == 2 + self.chunks // 50:
            seconds = (time.perf_counter() - self.begun) / (self.done - 1) * self.chunks
            logger.info(long_interval_sentence(self.count, seconds))


def draw_errors(drawing: Drawing, parts: Sequence[Part], label: str, count: int) -> Ints:
    """Draws of the errors of queries, one row a query, from a public key, chunk after chunk. Long work is announced."""
    kept = _kept.setdefault(drawing, {})
    out = np.zeros((len(parts[0][2]) if parts else 1, count), dtype=np.float64)
    work = [chunk for part in parts for chunk in _chunks(drawing, part, label, count)]
    new = [chunk.cost for chunk in work if chunk.names not in kept]
    clock = _Clock(count, len(new)) if sum(new) >= LONG_DRAW else None
    with step("Drawing errors", max(len(work), 1)) as tell:
        for number, chunk in enumerate(work, start=1):
            used = chunk.row.any(axis=0)
            is_new = chunk.names not in kept
            drawn = _draw_chunk(kept, chunk)[:, used].astype(np.float64)
            out[:, chunk.first : chunk.first + chunk.draws] += chunk.row[:, used].astype(np.float64) @ drawn.T
            if is_new and clock:
                clock.tick()
            tell(number, len(work))
    if np.abs(out).max(initial=0.0) >= LARGEST:
        raise RequestTooLarge(
            "The error of this query leaves the whole numbers of doubles. Ask about fewer cells, or smaller coefficients."
        )
    return out.astype(np.int64)


def _chunks(drawing: Drawing, part: Part, label: str, count: int) -> Iterator[Chunk]:
    """The draws of a block, or of every free cell, in parts of about CHUNK_CELLS cell draws."""
    shape, own, values = part
    sampler = drawing.choice(shape).noise
    assert not isinstance(sampler, ChainSampler)
    cost, law = cell_draws(sampler), (label, json.dumps(lattice_law(drawing.channel.target).fields), json.dumps(shape.fields))
    most = max(1, int(CHUNK_CELLS / max(cost, 1)))
    for cells, row in zip(*((own[:, None], values.T[:, :, None]) if shape.is_free else (own[None], values[None])), strict=True):
        for first in range(0, count, most):
            draws = min(most, count - first)
            label_of = (*law, str(int(cells[0])), *([str(first)] if first else []))
            yield Chunk(sampler, (*label_of, draws), row, first, draws, draws * max(cost, len(cells)), count * cost >= WORTH_KEEPING)


def _draw_chunk(kept: dict[tuple[str | int, ...], Ints], chunk: Chunk) -> Ints:
    """The draws of an earlier query, where they were kept: in the fewest bytes that hold them."""
    if chunk.names not in kept:
        made = public_draws(chunk.sampler, chunk.names[:-1], chunk.draws)
        if not chunk.is_costly:
            return made
        made = made.astype(np.min_scalar_type(-1 - int(np.abs(made).max(initial=0))))
        if made.nbytes > MOST_KEPT:
            return made
        while sum(one.nbytes for one in kept.values()) + made.nbytes > MOST_KEPT:
            del kept[next(iter(kept))]  # the oldest
        kept[chunk.names] = made
    return kept[chunk.names]
