"""A budget as it was asked for, and approved: before it is converted to one unit of distance, or to noise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from holdfast.display import Json, read_as
from holdfast.exact.formatting import format_exact

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
