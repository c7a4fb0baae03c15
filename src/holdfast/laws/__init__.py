"""What noise is drawn, as values: targets with their weights, tails and variances. No lattice is held here, and nothing is drawn."""

from holdfast.laws.conditional import ConditionalGaussian, ConditionalLaplace
from holdfast.laws.gaussian import Gaussian
from holdfast.laws.laplace import L1Laplace, L2Laplace
from holdfast.laws.level_gaussian import LevelGaussian
from holdfast.laws.rounded import Rounded
from holdfast.laws.suppressed import Suppressed
from holdfast.laws.target import Reads, Target, Variance

__all__ = [
    "ConditionalGaussian",
    "ConditionalLaplace",
    "Gaussian",
    "L1Laplace",
    "L2Laplace",
    "LevelGaussian",
    "Reads",
    "Rounded",
    "Suppressed",
    "Target",
    "Variance",
]
