"""What a chain aims at: a law on the lattice whose weights are a decreasing function of an integer energy.

Legend: the energy of a table z is the integer

    E(z) = sum_i |z_i|      kind "absolute"
    E(z) = sum_i z_i^2      kinds "squares" and "norm"

and its weight exp(-rate E(z)), or exp(-rate sqrt(E(z))) for "norm". So every comparison of two weights starts from two exact integers, and
the exponent's only real number is, at most, a square root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball, precision
from holdfast.exact.parameters import Exact, positive_fraction

Ints: TypeAlias = NDArray[np.int64]
EnergyKind: TypeAlias = Literal["absolute", "squares", "norm"]

LARGEST_ENTRY = 1 << 31
"""Entries of moves and states stay below this, so that one product fits 64 bits."""


@dataclass(frozen=True)
class Decay:
    """How weights fall with the energy: exp(-rate E), or exp(-rate sqrt(E)) for kind "norm".

    `base` replaces exp(-rate) by a rational number, so that tests can compute a whole chain in fractions; not for kind "norm".
    """

    kind: EnergyKind
    rate: Fraction
    base: Fraction | None = None

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise InvalidParameter(f"Weights fall with the energy: the rate must be greater than zero. Got {self.rate}.")
        if self.base is not None and (self.kind == "norm" or not 0 < self.base < 1):
            raise InvalidParameter(f"A rational base lies between 0 and 1 and needs energies that are not under a root. Got {self.base}.")

    @property
    def rate_double(self) -> float:
        """The rate correct to 2^-52 of itself, also where it is the logarithm of a rational base; 0 or inf where no double is near it."""
        if self.base is None:
            try:
                return float(self.rate)
            except OverflowError:
                return math.inf
        with precision(128 + self.base.denominator.bit_length()):  # 1 - base is at least one part of the denominator
            return float(-ball(self.base).log().mid())

    def ratio(self, energy: int, reference: int) -> arb:
        """weight(energy) / weight(reference) as a ball at flint's current precision."""
        if self.base is not None:
            return ball(self.base) ** (energy - reference)
        if self.kind == "norm":
            return (ball(self.rate) * (ball(Fraction(reference)).sqrt() - ball(Fraction(energy)).sqrt())).exp()
        return (ball(self.rate * (reference - energy))).exp()

    def exact_ratio(self, energy: int, reference: int) -> Fraction:
        """The same as a fraction, where the base is rational."""
        if self.base is None:
            raise InvalidParameter("Weights are fractions only where the target has a rational base.")
        return self.base ** (energy - reference)


@dataclass(frozen=True, eq=False)
class ChainTarget:
    """Law:   P[z] proportional to the weight of E(z), for z in a lattice (which the moves of a kernel span) with lower <= z <= upper.

    Given:  bounds hold zero, where chains start. Only public facts.
    """

    decay: Decay
    cells: int
    lower: Ints | None = None
    upper: Ints | None = None

    def __post_init__(self) -> None:
        for name, sign in (("lower", 1), ("upper", -1)):
            if getattr(self, name) is None:
                continue
            bound = _read_bound(getattr(self, name), name)
            object.__setattr__(self, name, bound)
            if len(bound) != self.cells or (sign * bound > 0).any():
                raise InvalidParameter(f"{name} needs one bound for each of the {self.cells} cells, and zero must lie within the bounds.")

    @classmethod
    def laplace(cls, cells: int, epsilon: Exact, norm: Literal["l1", "l2"] = "l1") -> ChainTarget:
        """exp(-epsilon |z|), the generalized Laplace law."""
        return cls(Decay("absolute" if norm == "l1" else "norm", positive_fraction(epsilon, "epsilon")), cells)

    @classmethod
    def gaussian(cls, cells: int, sigma_squared: Exact) -> ChainTarget:
        """exp(-|z|_2^2 / (2 sigma_squared)), the generalized Gaussian law."""
        return cls(Decay("squares", 1 / (2 * positive_fraction(sigma_squared, "sigma_squared"))), cells)

    def within(self, lower: ArrayLike | None = None, upper: ArrayLike | None = None) -> ChainTarget:
        """The same law given lower <= z <= upper."""
        return replace(self, lower=None if lower is None else np.asarray(lower), upper=None if upper is None else np.asarray(upper))

    def energy(self, z: Ints) -> int:
        """E(z), for a state of a kernel: those are small enough for 64 bits."""
        return int((abs(z) if self.decay.kind == "absolute" else z * z).sum())

    def allows(self, z: Ints) -> bool:
        """Whether z lies within the bounds."""
        return (self.lower is None or bool((z >= self.lower).all())) and (self.upper is None or bool((z <= self.upper).all()))


def _read_bound(values: ArrayLike, name: str) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidParameter(f"{name} must be whole numbers in 1 dimension. Got {array.dtype}.")
    if array.size and max(-int(array.min()), int(array.max())) >= LARGEST_ENTRY:
        raise InvalidParameter(f"{name} must stay below 2^31 in absolute value.")
    out = np.array(array, dtype=np.int64, order="C")  # a copy: the caller's array stays free to change, and this one does not
    out.flags.writeable = False
    return out
