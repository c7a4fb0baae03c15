"""The grid of real-valued answers: values are whole numbers of steps of 2^-places, so that no bit of a float is published."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter

Ints: TypeAlias = NDArray[np.int64]
Neighbours: TypeAlias = Literal["declared", "replace-one", "add-remove"]

MAX_PLACES = 24
"""Steps of 2^-24 and numbers of steps below 2^62 are decimals of at most 38 digits, which every reader of Parquet knows."""
_DIGITS = 38
_DECIMAL = re.compile(r"-?[0-9]{1,38}(\.[0-9]{1,38})?")
"""Shorter than what would take long to read: an exponent of some digits stands for any number of them."""


def check_on_grid(on_grid: object) -> None:
    """Only True and False: "no" would count as yes."""
    if not isinstance(on_grid, bool):
        raise InvalidParameter(f"on_grid must be True or False. Got {type(on_grid).__name__}.", field="on_grid")


@dataclass(frozen=True)
class AnswerGrid:
    """Which values there are, and how far one person can move them: public.

    l1, l2_squared:  the sensitivity of the answers, in values: the l1 distance, or the SQUARE of the l2 distance, of the answers of two
                     neighbours at most. One of the two: that which decides the noise.
    neighbours:      which data sets differ in one person; "declared" where whoever gave the sensitivity knows.
    on_grid:         True says that the answers of every data set are multiples of the step: nothing is rounded, and nothing is charged
                     for it.
    moved:           how many invariants have a value that no multiples of the step have, so that it was rounded too: a function of the
                     true invariants, which are published. 0 before they are known.
    """

    places: int
    l1: Fraction | None = None
    l2_squared: Fraction | None = None
    neighbours: Neighbours = "declared"
    on_grid: bool = False
    moved: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.places, bool) or not isinstance(self.places, int) or not 0 <= self.places <= MAX_PLACES:
            raise InvalidParameter(
                f"places must be a whole number from 0 to {MAX_PLACES}: values are then multiples of 2^-places. Got {self.places!r}.",
                field="places",
            )
        if self.l1 is not None and self.l2_squared is not None:
            raise InvalidParameter("A grid has one sensitivity, that of the noise: l1 or l2_squared. Give one of the two.")
        for name in ("l1", "l2_squared"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, numbers.Rational) or value <= 0:
                raise InvalidParameter(
                    f"{name} must be an exact number above zero, an int or a Fraction, because privacy depends on it. "
                    f"Got {type(value).__name__}, or a number that is not above zero.",
                    field=name,
                )
            object.__setattr__(self, name, Fraction(value))
        if self.neighbours not in get_args(Neighbours):
            raise InvalidParameter(f"neighbours must be one of {', '.join(map(repr, get_args(Neighbours)))}. Got {self.neighbours!r}.")
        check_on_grid(self.on_grid)
        if self.on_grid and self.moved:
            raise InvalidParameter("Where all answers are on the grid no invariant is rounded.")

    @property
    def step(self) -> Fraction:
        return Fraction(1, 2**self.places)

    @property
    def step_text(self) -> str:
        """As people write it: "1", "2^-10"."""
        return "1" if self.places == 0 else f"2^-{self.places}"

    def value(self, steps: int) -> Fraction:
        """The value of so many steps."""
        return Fraction(int(steps), 2**self.places)

    def text(self, steps: int) -> str:
        """The value as a decimal, exact: one of so many places as the grid has."""
        scaled = str(abs(int(steps)) * 5**self.places).rjust(self.places + 1, "0")
        sign = "-" if steps < 0 else ""
        return f"{sign}{scaled}" if not self.places else f"{sign}{scaled[: -self.places]}.{scaled[-self.places :]}"

    def steps(self, text: str) -> int:
        """What `text` wrote; ValueError where it did not."""
        if _DECIMAL.fullmatch(text):
            value = Fraction(text) * 2**self.places
            if value.denominator == 1 and self.text(value.numerator) == text:
                return int(value.numerator)
        raise ValueError("not a value of this grid")

    def floats(self, steps: Ints) -> NDArray[np.float64]:
        """The values as doubles: exact up to 2^53 steps, and beyond to the nearest."""
        return np.ldexp(np.asarray(steps, dtype=np.float64), -self.places)

    def column(self, steps: Iterable[int], known: NDArray[np.bool_] | None = None) -> Any:
        """An Arrow column of decimals, exact; nothing where `known` says so."""
        import decimal

        import pyarrow as pa

        exact = decimal.Context(prec=_DIGITS)
        numbers = [decimal.Decimal(int(step) * 5**self.places).scaleb(-self.places, exact) for step in steps]
        values = numbers if known is None else [number if shown else None for number, shown in zip(numbers, known, strict=True)]
        return pa.array(values, pa.decimal128(_DIGITS, self.places))

    def read_column(self, column: Any) -> Any:
        """Numbers of steps from such a column, or from its texts, as an Arrow column of int64; ValueError where a value is not on the
        grid.
        """
        import pyarrow as pa

        given = column.cast(pa.decimal128(_DIGITS, self.places)).to_pylist()
        return pa.chunked_array([pa.array([None if value is None else self.steps(f"{value:f}") for value in given], pa.int64())])
