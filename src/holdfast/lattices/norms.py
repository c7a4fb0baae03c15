"""Norms as values: how far apart two tables are.

A distance is held as an exact integer or fraction, its `measure`: the l1 length itself, the SQUARE of the l2 length (the length need not be
rational). Code that treats the two alike asks the norm; nothing else compares names of norms.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias

from holdfast.errors import InvalidParameter

NormName: TypeAlias = Literal["l1", "l2"]


@dataclass(frozen=True)
class Norm(ABC):
    """l1 or l2. Equal norms are equal values."""

    name: ClassVar[NormName]
    is_squared: ClassVar[bool]
    """Whether a measure is the square of the length."""
    parts_add_up: ClassVar[bool]
    """Whether the lengths of a vector's parts, on disjoint sets of cells, add up to its length."""

    @abstractmethod
    def measure(self, z: Iterable[int]) -> int:
        """Of an integer vector."""

    @abstractmethod
    def squared_length(self, measure: Fraction) -> Fraction:
        """The square of the length, from its measure."""

    @abstractmethod
    def length(self, measure: Fraction) -> Fraction | None:
        """The length from its measure, where it is rational; else None."""

    @abstractmethod
    def person_adding(self, records: int) -> int:
        """The measure of one person coming or going with all records in one cell: no such change is larger."""

    @abstractmethod
    def person_moving(self, records: int) -> int:
        """The measure of one person moving all records from one cell to another: no such change is larger."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class _L1(Norm):
    name = "l1"
    is_squared = False
    parts_add_up = True

    def measure(self, z: Iterable[int]) -> int:
        return sum(abs(int(entry)) for entry in z)

    def squared_length(self, measure: Fraction) -> Fraction:
        return measure * measure

    def length(self, measure: Fraction) -> Fraction | None:
        return measure

    def person_adding(self, records: int) -> int:
        return records

    def person_moving(self, records: int) -> int:
        return 2 * records


@dataclass(frozen=True)
class _L2(Norm):
    name = "l2"
    is_squared = True
    parts_add_up = False

    def measure(self, z: Iterable[int]) -> int:
        return sum(int(entry) ** 2 for entry in z)

    def squared_length(self, measure: Fraction) -> Fraction:
        return measure

    def length(self, measure: Fraction) -> Fraction | None:
        top, bottom = math.isqrt(measure.numerator), math.isqrt(measure.denominator)
        return Fraction(top, bottom) if top * top == measure.numerator and bottom * bottom == measure.denominator else None

    def person_adding(self, records: int) -> int:
        return records**2

    def person_moving(self, records: int) -> int:
        return 2 * records**2


L1: Norm = _L1()
L2: Norm = _L2()
NORMS: dict[str, Norm] = {norm.name: norm for norm in (L1, L2)}


def norm_of(name: str | Norm, what: str = "norm") -> Norm:
    """The norm of this name; InvalidParameter for any other."""
    if isinstance(name, Norm):
        return name
    if not isinstance(name, str) or name not in NORMS:
        raise InvalidParameter(f"{what} must be one of {', '.join(map(repr, NORMS))}. Got {name!r}.")
    return NORMS[name]
