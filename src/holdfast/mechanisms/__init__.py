"""Mechanisms: frozen values with exact parameters that turn public facts into a law."""

from holdfast.mechanisms.base import BaseMechanism
from holdfast.mechanisms.gaussian import GeneralizedGaussian
from holdfast.mechanisms.laplace import GeneralizedLaplace
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.registry import MECHANISMS, mechanism_class, register
from holdfast.mechanisms.rounded import RoundedProjection
from holdfast.mechanisms.suppression import Suppression

__all__ = [
    "MECHANISMS",
    "BaseMechanism",
    "GeneralizedGaussian",
    "GeneralizedLaplace",
    "Mechanism",
    "RoundedProjection",
    "Suppression",
    "mechanism_class",
    "register",
]
