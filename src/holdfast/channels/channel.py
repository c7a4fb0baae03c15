"""A channel: what a mechanism does to public facts. Pure, cheap to make, and ready to be pickled; nothing is chosen or drawn here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.channels.facts import Facts
from holdfast.channels.layout import Layout
from holdfast.display import shorten
from holdfast.errors import RequestTooLarge
from holdfast.lattices.blocks import Blocks
from holdfast.lattices.shapes import Bounded, Free, Grid, Levels, OneSum, Shape, Whole
from holdfast.laws import Reads, Target
from holdfast.laws.families import reach
from holdfast.privacy.guarantee import Guarantee
from holdfast.samplers.table import AUTO, COUPLING, EXACT

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SamplerRequest:
    """What a user asks for: a kernel or one of EXACT, whether an estimate is allowed, and the total variation error eta of all blocks."""

    sampler: str
    allow_estimated: bool
    eta: Fraction

    @property
    def names_a_chain(self) -> bool:
        return self.sampler not in EXACT

    @property
    def exact_only(self) -> SamplerRequest:
        """The same without chains."""
        return replace(EXACT_ONLY, sampler=AUTO if self.names_a_chain else self.sampler)


EXACT_ONLY = SamplerRequest(AUTO, False, Fraction(1, 1000))


IDENTITY_VERSION = 1
"""Changes with the meaning of any field below."""
STREAM_CELLS = 1 << 11
"""Small blocks of one shape share a stream up to this many cells: drawing one of them alone then costs no more than opening a stream. Part
of the stream's format."""
FREE_CELLS = 1 << 16
"""Free cells share a stream by chunks of this many places of the universe's order. Part of the stream's format."""
OVERFLOW_BITS = 200
"""Noise that could exceed 2^61 with probability above 2^-200 is refused ([theory T13])."""
ONE_FREE_CELL = Free(1)
SHARED = OneSum | Grid | Levels
"""Shapes of which small blocks share a stream."""


@dataclass(frozen=True, eq=False)
class Task:
    """One piece of work: blocks of one shape that share a stream.

    label:  names the stream by the number of the first cell of its first block, free cells by the number of their chunk. An engine that
            runs tasks elsewhere, in another order or one at a time gets the same bytes.
    cells:  one row a block, in the block's order.
    """

    label: tuple[str | int, ...]
    shape: Shape
    cells: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Channel:
    """A target on a lattice, and what it promises when it is drawn exactly.

    Guarantees:  made from public facts alone. Tasks cover every cell that is not fixed, each once.
    """

    facts: Facts
    target: Target
    guarantee: Guarantee
    request: SamplerRequest = EXACT_ONLY
    layout: Layout | None = None
    """Where the target draws cells together that no kept total joins: its own blocks, in place of the lattice's."""

    def __post_init__(self) -> None:
        """No draw leaves 64-bit integers, except with probability below 2^-200."""
        lattice = self.facts.moves
        radius = reach(lambda t: self.target.log_tail(lattice, t), OVERFLOW_BITS)
        if radius * max(lattice.cells, 2) > 1 << 61:
            named = shorten(" ".join(map(str, self.target.fields)), 120)
            raise RequestTooLarge(
                f"The noise ({named}) could leave 64-bit integers on {lattice.cells} cells. Use less noise (a larger budget)"
                f"{', or fewer places.' if self.facts.measure.places else '.'}"
            )

    @cached_property
    def identity(self) -> str:
        """The only thing that labels streams: a digest of names and exact numbers. Equal identities draw equal noise from equal keys."""
        request = self.request
        chain = [request.sampler, str(request.eta)] if request.names_a_chain or request.allow_estimated else []
        if request.sampler == COUPLING and not chain:  # another sampler makes other noise of the same words
            chain = [COUPLING]
        fields = {"version": IDENTITY_VERSION, "target": list(self.target.fields), "chain": chain, "facts": self.facts.digest}
        if self.layout is not None:
            fields["layout"] = self.layout.digest
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

    @property
    def blocks(self) -> Blocks:
        """What is drawn together."""
        return self.facts.moves.blocks if self.layout is None else self.layout.blocks

    @property
    def needs_cell_keys(self) -> bool:
        return self.target.reads is Reads.CELL_KEYS

    def shapes(self) -> dict[Shape, int]:
        """The shapes that are drawn, each with its number of blocks. Free cells are blocks of one cell; a law that does not factorise has
        one shape, the lattice taken whole.
        """
        if not self.target.publishes_cells:
            return {}
        if not self.target.splits:
            whole, cells = self._whole
            return {whole: 1} if len(cells) else {}
        moving = [(shape, count) for _, shape, count in self.blocks.moving_shapes()]
        free = sum(shape.size * count for shape, count in moving if shape.is_free)
        return {**{s: n for s, n in moving if not s.is_free}, **({ONE_FREE_CELL: free} if free else {})}

    def tasks(self) -> tuple[Task, ...]:
        """Every piece of work: blocks shape by shape, then free cells chunk by chunk."""
        return self._tasks

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        return tuple(self._find_tasks())

    def __getstate__(self) -> dict[str, object]:
        """A pickle holds what the channel was made from: tasks are found again where they are needed."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_tasks", "_whole")}

    def _find_tasks(self) -> Iterator[Task]:
        if not self.target.publishes_cells:
            return
        if not self.target.splits:
            whole, moving = self._whole
            if len(moving):
                yield Task(("whole",), whole, moving[None, :])
            return
        blocks = self.blocks
        free = [np.zeros(0, dtype=np.int64)]
        for number, shape, count in blocks.moving_shapes():
            cells = blocks.cells_of(number)
            if shape.is_free:
                free.append(cells.ravel())
                continue
            if count == 1:
                yield Task(("blocks", int(cells.min())), shape, cells)
                continue
            first = cells.min(axis=1)
            order = np.argsort(first, kind="stable")  # a block's place does not depend on how blocks were found
            together = max(1, STREAM_CELLS // shape.size) if self._shares(shape) else 1
            for begin in range(0, count, together):
                rows = order[begin : begin + together]
                yield Task(("blocks", int(first[rows[0]])), shape, cells[rows])
        yield from self._free_tasks(np.concatenate(free))

    def _shares(self, shape: Shape) -> bool:
        """Whether small blocks of this shape share a stream: where words do not depend on counts, and cells that stand alone."""
        if isinstance(shape, Bounded):
            return shape.shape.is_free
        return self.target.reads is Reads.NOTHING and isinstance(shape, SHARED)

    def _free_tasks(self, free: Ints) -> Iterator[Task]:
        if not len(free):
            return
        if (free[1:] < free[:-1]).any():
            free = np.sort(free)
        chunks = free // FREE_CELLS
        starts = np.flatnonzero(np.diff(chunks, prepend=-1))
        for begin, end in zip(starts.tolist(), [*starts[1:].tolist(), len(free)], strict=True):
            yield Task(("free", int(chunks[begin])), ONE_FREE_CELL, free[begin:end, None])

    def __repr__(self) -> str:
        return f"Channel({self.summary})"

    @property
    def summary(self) -> str:
        """One line: what is drawn, on how many cells, and on how many blocks of how many shapes."""
        shapes = self.shapes()
        drawn = f"{sum(shapes.values())} blocks of {len(shapes)} shapes" if shapes else "nothing drawn"
        fields = shorten(" ".join(map(str, self.target.fields)), 120)
        return f"{fields}; {self.facts.lattice.cells} cells, {drawn}"

    @cached_property
    def _whole(self) -> tuple[Whole, Ints]:
        """All blocks that move, side by side in the order of their first cells, and their cells."""
        blocks = self.facts.moves.blocks
        moving = sorted((block for block in blocks if not block.shape.is_pinned), key=lambda block: int(block.cells.min()))
        cells = [block.cells.ravel() for block in moving]
        return Whole(tuple(block.shape for block in moving)), np.concatenate([np.zeros(0, dtype=np.int64), *cells])
