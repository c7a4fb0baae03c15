"""Norms as values: how far apart two tables are.

A distance is held as an exact integer or fraction, its `measure`: the l1 length itself, the SQUARE of the l2 length (the length need not be
rational). Code that treats the two alike asks the norm; nothing else compares names of norms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from holdfast.errors import InvalidParameter

NormName: TypeAlias = Literal["l1", "l2", "levels"]


@dataclass(frozen=True)
class Norm:
    """l1 or l2: the measure of z is the sum of |z_i|^power, the length its power-th root.

    LEVELS is the l2 length of measured margins: its measure is the sum over levels and margins of share times the square of the margin's l2
    length, shares adding up to one. One count more or less has measure 1, as in l2.
    """

    name: NormName
    power: Literal[1, 2]

    @property
    def is_squared(self) -> bool:
        """Whether a measure is the square of the length."""
        return self.power == 2

    @property
    def parts_add_up(self) -> bool:
        """Whether the lengths of a vector's parts, on disjoint sets of cells, add up to its length."""
        return self.power == 1

    def measure(self, z: Iterable[int]) -> int:
        """The norm of an integer vector, raised to its power."""
        return sum(abs(int(entry)) ** self.power for entry in z)

    def squared_length(self, measure: Fraction) -> Fraction:
        """The square of the length, from its measure."""
        return measure if self.is_squared else measure * measure

    def length(self, measure: Fraction) -> Fraction | None:
        """The length from its measure, where it is rational; else None."""
        if not self.is_squared:
            return measure
        top, bottom = math.isqrt(measure.numerator), math.isqrt(measure.denominator)
        return Fraction(top, bottom) if top * top == measure.numerator and bottom * bottom == measure.denominator else None

    def person_adding(self, records: int) -> int:
        """The measure of one person coming or going with all records in one cell: no such change is larger."""
        return int(records**self.power)

    def person_moving(self, records: int) -> int:
        """The measure of one person moving all records from one cell to another: no such change is larger."""
        return 2 * self.person_adding(records)

    @property
    def distance(self) -> str:
        """For sentences: "l2 distance"."""
        return "distance over the measured levels" if self.name == "levels" else f"{self.name} distance"

    def __str__(self) -> str:
        return self.name


L1 = Norm("l1", 1)
L2 = Norm("l2", 2)
NORMS: dict[str, Norm] = {norm.name: norm for norm in (L1, L2)}
LEVELS = Norm("levels", 2)
DISTANCES: dict[str, Norm] = {**NORMS, LEVELS.name: LEVELS}
"""What a promise may be per unit of; the norms that a lattice or a Laplace law has are NORMS."""


def norm_of(name: str | Norm, what: str = "norm", known: Mapping[str, Norm] = NORMS) -> Norm:
    """The norm of this name; InvalidParameter for any other."""
    if isinstance(name, Norm):
        return name
    if not isinstance(name, str) or name not in known:
        raise InvalidParameter(f"{what} must be one of {', '.join(map(repr, known))}. Got {name!r}.")
    return known[name]
