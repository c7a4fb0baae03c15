"""Blocks of a law's own: what any such layout has; units of nested levels, where the law weighs levels against each other; blocks with
bounds, where it is conditioned on inequalities.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.blocks import Blocks
from holdfast.lattices.bounded_blocks import Inequalities
from holdfast.lattices.shapes import Shape, Units
from holdfast.laws import LevelGaussian, Sequential, Target
from holdfast.laws.level_gaussian import Floats, LevelVariances
from holdfast.laws.sequential import Raised
from holdfast.tables.columns import BATCH

MOST_MARGINS = 64
"""Margins of a level whose errors are listed; where there are more, those by no column, by one, and by all."""


@dataclass(frozen=True)
class LevelError:
    """Standard deviations of the noise of one margin over the units of one level; all 0 where it is kept."""

    level: str
    margin: str
    units: int
    smallest: float
    median: float
    largest: float


class Layout(Protocol):
    """What is drawn together, where kept totals alone do not say it."""

    @property
    def blocks(self) -> Blocks:
        """In place of the lattice's blocks."""

    @property
    def digest(self) -> str:
        """Digest of everything that distinguishes this layout: part of the channel's identity."""

    def holds(self, counts: NDArray[np.int64]) -> bool:
        """Whether a table is what the law allows beside its kept totals.

        Engines ask this about the true table, so the argument is CONFIDENTIAL; `verification` and `publication` ask it about published
        numbers. Nothing is kept and no message is made here.
        """


@dataclass(frozen=True, eq=False)
class LevelLayout:
    """The table as units times axes.

    blocks:  the units of level `top`, each drawn alone.
    whole:   the shape of all of it; names: of its levels.
    """

    blocks: Blocks
    whole: Units
    top: int
    names: tuple[str, ...]
    margins: dict[int, str]
    """The margins that have a name, by mask."""

    @property
    def digest(self) -> str:
        """Digest of which cells make which units: laws with equal heights and masks differ if these do."""
        whole = hashlib.sha256(json.dumps(self.whole.fields).encode())
        for low in range(0, len(self.blocks.order), BATCH):
            whole.update(self.blocks.order[low : low + BATCH].astype("<i8").data)
        return whole.hexdigest()

    def holds(self, counts: NDArray[np.int64]) -> bool:
        return True

    def errors(self, target: Target) -> Iterator[LevelError]:
        """For every level and margin, from the law alone."""
        for level, margin, deviations in self.deviations(target):
            median = float(np.sort(deviations)[len(deviations) // 2])
            yield LevelError(level, margin, len(deviations), float(deviations.min()), median, float(deviations.max()))

    def deviations(self, target: Target) -> Iterator[tuple[str, str, Floats]]:
        """(level, margin, the standard deviation of one of its numbers in each unit)."""
        assert isinstance(target, LevelGaussian | Sequential), "only laws with weighted levels have such a layout"
        forms = [target.form(shape) for shape in self.blocks.shapes if not shape.is_pinned]
        for level, name in enumerate(self.names):
            for mask, margin in self._list_levels():
                yield name, margin, np.sqrt(np.maximum(self._variances(forms, level, mask), 0.0))

    def _variances(self, forms: Sequence[LevelVariances | Raised], level: int, mask: int) -> Floats:
        """Variance of one number of the margin, for each unit of the level."""
        inside = [form.units(max(level - self.top, 0), mask) for form in forms]
        drawn = [number for number in self.blocks.shape_of if number < len(forms)]  # after them come the cells without noise
        if level >= self.top:
            return np.concatenate([inside[number] for number in drawn])
        assert self.whole.tree is not None
        own = np.array([inside[number][0] for number in drawn])  # of the blocks, which are independent
        leaves = self.whole.tree.unit_of(level)[np.cumsum(self.whole.tree.sizes(self.top)) - 1]
        sums: Floats = np.bincount(leaves, weights=own, minlength=self.whole.tree.units(level)).astype(np.float64)
        return sums

    def _list_levels(self) -> list[tuple[int, str]]:
        if len(self.margins) <= MOST_MARGINS:
            return list(self.margins.items())
        return [(mask, name) for mask, name in self.margins.items() if " x " not in name or mask == max(self.whole.masks)]


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
        return tuple(shape for _, shape, _ in self.blocks.moving_shapes())

    def holds(self, counts: NDArray[np.int64]) -> bool:
        return self.inequalities.hold(counts)
