"""What a user may write for a privacy parameter, and what was asked for: before it is converted to one unit of distance, or to noise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from holdfast.display import Json, read_as
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import BUDGET_RANGE, Exact, exact_fraction, exact_integer, is_extreme, outside


def budget(value: Exact, name: str) -> Fraction:
    """An exact number above zero; zero is refused with what to do instead."""
    fraction = exact_fraction(value, name)
    missed = outside(fraction)
    if missed == "zero":
        raise InvalidParameter(
            f"{name} must be greater than zero: a budget of zero publishes nothing about the cells. The mechanism suppression "
            "publishes the kept totals alone.",
            field=name,
        )
    if missed:
        raise InvalidParameter(f"{name} must be greater than zero. Got {format_exact(fraction)}.", field=name)
    return fraction


def ordinary(value: Fraction, name: str) -> Fraction:
    """The number, refused where it is too large or too small for a mechanism, whose bounds and figures are doubles."""
    if is_extreme(value):
        raise InvalidParameter(f"{name} {BUDGET_RANGE}. Write a number of ordinary size.")
    return value


def not_negative(value: Exact, name: str) -> Fraction:
    """An exact number, zero or more."""
    fraction = exact_fraction(value, name)
    if fraction < 0:
        raise InvalidParameter(f"{name} must be zero or more. Got {format_exact(fraction)}.")
    return fraction


def at_least_one(value: int, name: str) -> int:
    """A whole number, 1 or more."""
    number = exact_integer(value, name)
    if number < 1:
        raise InvalidParameter(f"{name} must be a whole number, 1 or more. Got {number}.")
    return number


def probability(value: Exact, name: str) -> Fraction:
    """An exact number strictly between 0 and 1."""
    fraction = exact_fraction(value, name)
    if outside(fraction, 1):
        raise InvalidParameter(
            f"{name} must lie strictly between 0 and 1. Got {format_exact(fraction)}. Write a small number such as '1e-10'."
        )
    return fraction


DISTANCE = "distance"
"""What a budget of the papers is for: one unit of distance between two tables. No table protects anything of this name."""

_NUMBER = re.compile(r"[0-9]{1,1000}(\.[0-9]{1,1000})?(e-?[0-9]{1,3})?|[0-9]{1,1000}/0*[1-9][0-9]{0,999}")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The numbers that were given, exact.

    per:  what they are for: the name of what the table protects, or "distance"; None where they are the noise itself (sigma_squared).
    """

    per: str | None
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction | None = None
    sigma_squared: Fraction | None = None

    @property
    def numbers(self) -> dict[str, Fraction]:
        """Those that were given, by name."""
        named = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta, "sigma_squared": self.sigma_squared}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def is_for_protected(self) -> bool:
        """Whether it is a budget for what the table protects."""
        return self.per is not None and self.per != DISTANCE

    @property
    def is_pair_for_person(self) -> bool:
        """Whether it is an (epsilon, delta) for one person, or what else the table protects."""
        return self.is_for_protected and self.epsilon is not None and self.delta is not None

    def to_fields(self) -> dict[str, Json]:
        """JSON-ready, exact."""
        return {"per": self.per, "parameters": {name: format_exact(value) for name, value in self.numbers.items()}}

    @classmethod
    def from_fields(cls, fields: Json) -> Asked:
        """What `to_fields` wrote; KeyError, TypeError or ValueError where it did not."""
        said = read_as(dict, fields)
        numbers = {name: _read_number(read_as(str, text)) for name, text in read_as(dict, said["parameters"]).items()}
        return cls(per=None if said["per"] is None else read_as(str, said["per"]), **numbers)

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} = {format_exact(value)}" for name, value in self.numbers.items())
        return numbers if self.per is None else f"{numbers} per {self.per}"


def _read_number(text: str) -> Fraction:
    """An exact number of bounded size: a long exponent would fill the memory."""
    if _NUMBER.fullmatch(text) is None:
        raise ValueError("not a number as it is written here")
    return Fraction(text)
