"""Moves that keep the totals: integer lattices, split into blocks that can be sampled."""

from holdfast.lattices.blocks import Block, Blocks
from holdfast.lattices.lattice import Lattice, lattice
from holdfast.lattices.shapes import Free, General, Grid, Levels, OneSum, Pinned, Shape

__all__ = ["Block", "Blocks", "Free", "General", "Grid", "Lattice", "Levels", "OneSum", "Pinned", "Shape", "lattice"]
