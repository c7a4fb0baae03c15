"""Exact laws on the integers: every draw follows the stated law over uniform bits, with no floating-point error."""

from holdfast.exact.balls import Enclosure
from holdfast.exact.law import IntegerLaw
from holdfast.exact.laws import Bernoulli, BernoulliExp, Computable, DiscreteGaussian, DiscreteLaplace, Geometric, Weighted
from holdfast.exact.uniform import UniformComposition, UniformInteger

__all__ = [
    "Bernoulli",
    "BernoulliExp",
    "Computable",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Enclosure",
    "Geometric",
    "IntegerLaw",
    "UniformComposition",
    "UniformInteger",
    "Weighted",
]
