"""Moves that keep the totals: integer lattices, split into blocks that can be sampled."""

from holdfast.lattices.blocks import Block, Blocks, Template
from holdfast.lattices.exposure import Exposure, exposure
from holdfast.lattices.lattice import Lattice, lattice

__all__ = ["Block", "Blocks", "Exposure", "Lattice", "Template", "exposure", "lattice"]
