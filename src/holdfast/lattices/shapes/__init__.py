"""Shapes of blocks as values: what a block of this shape is, its algebra, and why that is right.

free       cells under no kept sum
exposed    cells whose value the kept rows fix
one sum    cells under a single row with coefficients equal up to sign
grid       a product of axes with the sums along each axis kept (two axes: rows and columns of a table)
levels     a product of axes with levels, of which any combinations are kept
general    anything else
units      units of nested levels times axes, where a law weighs levels against each other
whole      all of them side by side, for laws that are no product over blocks
bounded    any of them with bounds of its cells and inequalities
"""

from holdfast.lattices.shapes.bounded import Bounded
from holdfast.lattices.shapes.general import General, Whole
from holdfast.lattices.shapes.levels import Levels
from holdfast.lattices.shapes.plain import Free, Grid, OneSum, Pinned
from holdfast.lattices.shapes.shape import Shape
from holdfast.lattices.shapes.units import Units

__all__ = ["Bounded", "Free", "General", "Grid", "Levels", "OneSum", "Pinned", "Shape", "Units", "Whole"]
