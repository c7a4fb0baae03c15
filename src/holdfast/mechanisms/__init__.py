"""Mechanisms: frozen values with exact parameters that turn public facts into a law."""

from holdfast.mechanisms.gaussian import GeneralizedGaussian
from holdfast.mechanisms.laplace import GeneralizedLaplace
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.rounded import RoundedProjection
from holdfast.mechanisms.suppression import Suppression

__all__ = ["GeneralizedGaussian", "GeneralizedLaplace", "Mechanism", "RoundedProjection", "Suppression"]
