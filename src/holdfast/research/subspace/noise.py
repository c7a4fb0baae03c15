"""Noise in floating point, independent coordinates of one law. For research: low-order bits of such draws can give answers away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from holdfast.errors import RequestTooLarge
from holdfast.research.subspace.spaces import Floats

LawStatus: TypeAlias = Literal["law", "estimated"]

LARGEST_SCALE = 1e13
"""Whole noise of a larger scale leaves the integers that a float holds exactly."""


class Noise(Protocol):
    """k numbers drawn together, without looking at any data.

    status: "law" where draws follow the law up to rounding, "estimated" where a Markov chain makes them.
    """

    @property
    def name(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def status(self) -> LawStatus: ...
    @property
    def covariance(self) -> float | Floats | None:
        """The variance of each of k uncorrelated coordinates, or the k x k matrix; None where it is not known."""

    def draw(self, count: int, random: np.random.Generator) -> Floats:
        """So many draws, one a row."""


@dataclass(frozen=True)
class LaplaceNoise:
    """Law:  density exp(-|t| / scale) / (2 scale) in each coordinate."""

    scale: Fraction
    dimension: int
    name: ClassVar[str] = "laplace"
    status: ClassVar[LawStatus] = "law"

    @property
    def covariance(self) -> float:
        return 2 * float(self.scale) ** 2

    def draw(self, count: int, random: np.random.Generator) -> Floats:
        return np.asarray(random.laplace(scale=float(self.scale), size=(count, self.dimension)))


@dataclass(frozen=True)
class GaussianNoise:
    """Law:  N(0, sigma_squared) in each coordinate."""

    sigma_squared: Fraction
    dimension: int
    name: ClassVar[str] = "gaussian"
    status: ClassVar[LawStatus] = "law"

    @property
    def covariance(self) -> float:
        return float(self.sigma_squared)

    def draw(self, count: int, random: np.random.Generator) -> Floats:
        return np.asarray(random.normal(scale=math.sqrt(self.sigma_squared), size=(count, self.dimension)))


@dataclass(frozen=True)
class DoubleGeometricNoise:
    """Law:  P[k] proportional to exp(-|k| / scale) on the whole numbers in each coordinate: the difference of two geometric variables."""

    scale: Fraction
    dimension: int
    name: ClassVar[str] = "double geometric"
    status: ClassVar[LawStatus] = "law"

    def __post_init__(self) -> None:
        if self.scale > LARGEST_SCALE:
            raise RequestTooLarge("The noise would leave the whole numbers that a float can hold. Use a larger epsilon, or Laplace noise.")

    @property
    def covariance(self) -> float:
        rate = 1 / float(self.scale)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    def draw(self, count: int, random: np.random.Generator) -> Floats:
        success = -math.expm1(-1 / float(self.scale))
        first, second = (random.geometric(success, size=(count, self.dimension)) for _ in range(2))
        return np.asarray(first - second, dtype=np.float64)


@dataclass(frozen=True)
class StudentNoise:
    """Law:  scale s times a t variable of k degrees of freedom in each coordinate: weight (1 + t^2 / (k s^2))^(-(k + 1) / 2)."""

    scale: Fraction
    degrees: int
    dimension: int
    name: ClassVar[str] = "student"
    status: ClassVar[LawStatus] = "law"

    @property
    def covariance(self) -> float | None:
        """None for two degrees or fewer, where there is no variance."""
        return float(self.scale) ** 2 * self.degrees / (self.degrees - 2) if self.degrees > 2 else None

    def draw(self, count: int, random: np.random.Generator) -> Floats:
        return np.asarray(float(self.scale) * random.standard_t(self.degrees, size=(count, self.dimension)))
