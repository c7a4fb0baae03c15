"""Moves that keep the totals: integer lattices, split into blocks that can be sampled.

`holdfast.lattice(universe, keep)` is a public name and this folder's name at once, so the module itself can be called.
"""

import sys
from collections.abc import Iterable
from types import ModuleType

from holdfast.invariants.statements import Statement
from holdfast.lattice.blocks import Block, Blocks, Template
from holdfast.lattice.exposure import Exposure, exposure
from holdfast.lattice.lattice import Lattice, lattice
from holdfast.tables.universe import Universe

__all__ = ["Block", "Blocks", "Exposure", "Lattice", "Template", "exposure", "lattice"]


class _CallableModule(ModuleType):
    def __call__(self, universe: Universe, keep: Iterable[Statement]) -> Lattice:
        return lattice(universe, keep)


sys.modules[__name__].__class__ = _CallableModule
