"""Mechanisms: frozen values with exact parameters that turn public facts into a channel."""

from holdfast.mechanisms.cellkey import CellKey
from holdfast.mechanisms.conditional import Conditional
from holdfast.mechanisms.gaussian import GeneralizedGaussian
from holdfast.mechanisms.laplace import GeneralizedLaplace, RoundedProjection
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.registry import MECHANISMS, mechanism_class, register
from holdfast.mechanisms.subspace import ExtendedGaussian, ExtendedLaplace, ProjectedGaussian, ProjectedLaplace
from holdfast.mechanisms.suppression import Suppression

__all__ = [
    "MECHANISMS",
    "CellKey",
    "Conditional",
    "ExtendedGaussian",
    "ExtendedLaplace",
    "GeneralizedGaussian",
    "GeneralizedLaplace",
    "Mechanism",
    "ProjectedGaussian",
    "ProjectedLaplace",
    "RoundedProjection",
    "Suppression",
    "mechanism_class",
    "register",
]
