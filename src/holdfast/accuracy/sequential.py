"""The sequential law as far as it differs from the lattice law of the same form ([theory R22])."""

from __future__ import annotations

from holdfast.lattices.shapes import Shape
from holdfast.laws import Sequential, Target
from holdfast.samplers.steps import Steps
from holdfast.samplers.table import steps_of


def lattice_law(target: Target) -> Target:
    """The lattice law of the same form; any other law itself."""
    return target.of if isinstance(target, Sequential) else target


def sequential_steps(target: Target, shape: Shape) -> Steps:
    """The steps of a block that the sequential law draws; none of one that is drawn by another law."""
    return steps_of(shape, target.of) if isinstance(target, Sequential) and shape not in target.by_lattice else Steps()
