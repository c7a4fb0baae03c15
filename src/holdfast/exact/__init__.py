"""Exact laws on the integers: every draw follows the stated law over uniform bits, with no floating-point error."""

from holdfast.exact.balls import Enclosure
from holdfast.exact.law import IntegerLaw
from holdfast.exact.laws import DiscreteGaussian, DiscreteLaplace, Geometric
from holdfast.exact.uniform import UniformComposition

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Enclosure",
    "Geometric",
    "IntegerLaw",
    "UniformComposition",
]
