"""What noise is drawn, as values: targets with their weights, tails and variances. No lattice is held here, and nothing is drawn."""

from holdfast.laws.families import (
    ConditionalGaussian,
    ConditionalLaplace,
    Gaussian,
    L1Laplace,
    L2Laplace,
    Reads,
    Rounded,
    Suppressed,
    Target,
    Variance,
)
from holdfast.laws.keyed import Keyed
from holdfast.laws.level_gaussian import LevelGaussian
from holdfast.laws.sequential import Sequential, group_bounds, group_length, kappa_bound

__all__ = [
    "ConditionalGaussian",
    "ConditionalLaplace",
    "Gaussian",
    "Keyed",
    "L1Laplace",
    "L2Laplace",
    "LevelGaussian",
    "Reads",
    "Rounded",
    "Sequential",
    "Suppressed",
    "Target",
    "Variance",
    "group_bounds",
    "group_length",
    "kappa_bound",
]
