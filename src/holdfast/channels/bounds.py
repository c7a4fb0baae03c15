"""Blocks of a law that is conditioned on inequalities."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.blocks import Blocks
from holdfast.lattices.bounded_blocks import Inequalities
from holdfast.lattices.shapes import Pinned, Shape


@dataclass(frozen=True, eq=False)
class BoundsLayout:
    """The lattice's blocks with the bounds of their cells, joined where rows span several (lattices/bounded_blocks.py)."""

    blocks: Blocks
    inequalities: Inequalities
    columns: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """The public columns that bounds come from. They are published in full, also the values that bound nothing."""

    @property
    def digest(self) -> str:
        """Digest of all bounds and rows, of the order of cells in blocks, and of the columns in full."""
        given = self.inequalities
        rows = [[cells.tolist(), coefficients.tolist(), least] for cells, coefficients, least in given.rows]
        whole = hashlib.sha256(json.dumps(["bounds", rows]).encode())
        for array in (given.lower, given.upper, self.blocks.order):
            whole.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
        for name, values in self.columns.items():
            whole.update(json.dumps([name, values.tolist()]).encode())
        return whole.hexdigest()

    def shapes(self) -> tuple[Shape, ...]:
        """Shapes of all blocks that move."""
        return tuple(shape for _, shape, _ in self.blocks.used_shapes() if not isinstance(shape, Pinned))

    def holds(self, counts: NDArray[np.int64]) -> bool:
        return self.inequalities.hold(counts)
