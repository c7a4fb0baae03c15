"""What the whole numbers of a table stand for: counts of people, or steps of the grid of real-valued answers.

Whoever needs to know something about the values asks their measure, and never which of the two it is.
"""

from __future__ import annotations

import numbers
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidCount, InvalidParameter, RequestTooLarge
from holdfast.tables.answers import exact_value
from holdfast.tables.columns import COUNT_LIMIT, arrow_numbers, exact_total

Ints: TypeAlias = NDArray[np.int64]
Number: TypeAlias = int | Fraction
"""A count, or a value of answers."""
Neighbours: TypeAlias = Literal["declared", "replace-one", "add-remove"]

MAX_PLACES = 24
"""Steps of 2^-24 and numbers of steps below 2^62 are decimals of at most 38 digits, which every reader of Parquet knows."""
_DIGITS = 38
_DECIMAL = re.compile(r"-?[0-9]{1,38}(\.[0-9]{1,38})?")
"""Shorter than what would take long to read: an exponent of some digits stands for any number of them."""


class Measure(ABC):
    """What the whole numbers of a table are worth: each question about its values is asked here. Public.

    noun, published_noun:  what sentences call a value, and what pages call a published one.
    number_phrase:         what someone else's file must have as a total.
    whole:                 whether values are whole numbers: ends of intervals are then, too, and a law has a bar for each of them.
    nonnegative:           whether no value is below 0: a total of 0 then makes its cells 0, and totals can pin cells.
    places:                values are multiples of a step of 2^-places.
    on_grid:               whether the true values of every data set are such multiples: nothing is rounded, or charged for it.
    moved:                 how many kept totals are no such multiples, and were rounded: a function of the true totals, which are
                           published. 0 before they are known.
    """

    noun: ClassVar[str]
    published_noun: ClassVar[str]
    number_phrase: ClassVar[str]
    whole: ClassVar[bool]
    nonnegative: ClassVar[bool]
    places: int
    on_grid: bool
    moved: int

    @property
    def digest_fields(self) -> tuple[dict[str, int], ...]:
        """What labels of streams say about it: part of the stream's format."""
        return ()

    @property
    def step(self) -> Number:
        """What one step is worth."""
        return Fraction(1, 2**self.places)

    @property
    def step_text(self) -> str:
        """As people write it: "1", "2^-10"."""
        return "1" if self.places == 0 else f"2^-{self.places}"

    def value(self, steps: Number) -> Number:
        """What so many steps are worth, exactly: a whole number of counts, a fraction of answers."""
        return steps * self.step

    def text(self, steps: int) -> str:
        """The value as a decimal, exact: one of so many places as the grid has."""
        scaled = str(abs(int(steps)) * 5**self.places).rjust(self.places + 1, "0")
        sign = "-" if steps < 0 else ""
        return f"{sign}{scaled}" if not self.places else f"{sign}{scaled[: -self.places]}.{scaled[-self.places :]}"

    def floats(self, steps: Ints) -> NDArray[np.float64]:
        """The values as doubles: exact up to 2^53 steps, and beyond to the nearest."""
        return np.ldexp(np.asarray(steps, dtype=np.float64), -self.places)

    def steps(self, text: str) -> int:
        """Read what `text` wrote; raise ValueError for anything else."""
        found = int(text.replace(".", "", 1)) // 5**self.places if _DECIMAL.fullmatch(text) else 0
        if self.text(found) != text:
            raise ValueError("not a value of this grid")
        return found

    def number(self, text: str) -> Fraction:
        """Read a value that others wrote, in their way; raise ValueError if it is not a number, or not a whole one where all are."""
        value = exact_value(text)
        if value is None or (self.whole and value.denominator > 1):
            raise ValueError("not a number")
        return value

    @abstractmethod
    def column(self, steps: Ints, known: NDArray[np.bool_] | None = None) -> Any:
        """An Arrow column of the values, exact; nothing where `known` says so."""

    @abstractmethod
    def read_column(self, column: Any) -> Any:
        """Numbers of steps from such a column, or from its texts, as an Arrow column of int64; raise ValueError for other values."""

    @abstractmethod
    def check(self, steps: Ints) -> None:
        """Refuse what the values of a table cannot be, and values whose sums could overflow."""

    def check_counts(self, why: str) -> None:
        """Raise InvalidParameter, for this reason, unless values are counts."""
        if not self.whole:
            raise InvalidParameter(why)

    def as_grid(self, why: str) -> AnswerGrid:
        """The grid of real-valued answers; raise InvalidParameter, for this reason, if there is none."""
        raise InvalidParameter(why)

    def with_moved(self, moved: int) -> Self:
        """The same once it is known how many kept totals were rounded."""
        return self


@dataclass(frozen=True)
class Counts(Measure):
    """Whole numbers of people, or of whatever is counted."""

    noun = published_noun = "count"
    number_phrase = "whole number"
    whole = nonnegative = on_grid = True
    places = moved = 0
    step = 1

    def steps(self, text: str) -> int:
        return int(text)  # however it is written: `verify` compares the bytes of the file, and says so

    def column(self, steps: Ints, known: NDArray[np.bool_] | None = None) -> Any:
        return arrow_numbers(steps, known)

    def read_column(self, column: Any) -> Any:
        return column.cast("int64")

    def check(self, steps: Ints) -> None:
        if np.any(steps < 0) or np.any(steps >= COUNT_LIMIT):
            raise InvalidCount("Counts must lie from 0 to 2^62 - 1; some do not. Check how they were made.")
        if exact_total(steps) >= COUNT_LIMIT:
            raise RequestTooLarge("The total of all counts is 2^62 or more, so that sums could overflow. Check the column of counts.")


COUNTS = Counts()


def check_on_grid(on_grid: object) -> None:
    """Only True and False: "no" would count as yes."""
    if not isinstance(on_grid, bool):
        raise InvalidParameter(f"on_grid must be True or False. Got {type(on_grid).__name__}.", field="on_grid")


@dataclass(frozen=True)
class AnswerGrid(Measure):
    """Real-valued answers: values are whole numbers of steps of 2^-places, so that no bit of a float is published.

    l1, l2_squared:  the sensitivity of the answers, in values: the l1 distance, or the SQUARE of the l2 distance, of the answers of two
                     neighbours at most. One of the two: that which decides the noise.
    neighbours:      which data sets differ in one person; "declared" where whoever gave the sensitivity knows.
    """

    noun, published_noun = "answer", "value"
    number_phrase = "number, such as 0.25 or 1/3,"
    whole = nonnegative = False

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
    def digest_fields(self) -> tuple[dict[str, int], ...]:
        return ({"grid": self.places},)

    def with_moved(self, moved: int) -> Self:
        return replace(self, moved=moved)

    def check(self, steps: Ints) -> None:
        if np.any(steps <= -COUNT_LIMIT) or np.any(steps >= COUNT_LIMIT):
            raise RequestTooLarge(f"An answer is 2^62 steps of {self.step_text} or more away from 0. Use fewer places.")
        if exact_total(np.abs(steps)) >= COUNT_LIMIT:
            raise RequestTooLarge(
                f"All answers together are 2^62 steps of {self.step_text} or more, so that sums could overflow. Use fewer places."
            )

    def as_grid(self, why: str) -> AnswerGrid:
        return self

    def sensitivity(self, norm: str) -> Fraction:
        """How far one person can move the values in this norm, squared for l2; refused where it was not given. An l1 sensitivity bounds
        that in l2; the other way round it does not.
        """
        if norm == "l2" and self.l2_squared is not None:
            return self.l2_squared
        if self.l1 is None:
            needed = "Laplace noise needs the l1" if norm == "l1" else "Gaussian noise needs the l2"
            advice = "Give it, or take Gaussian noise." if norm == "l1" else "Give it."
            raise InvalidParameter(f"{needed} sensitivity of the answers. {advice}", field="sensitivity")
        return self.l1 if norm == "l1" else self.l1**2

    def column(self, steps: Ints, known: NDArray[np.bool_] | None = None) -> Any:
        import decimal

        import pyarrow as pa

        exact = decimal.Context(prec=_DIGITS)
        numbers = [decimal.Decimal(step * 5**self.places).scaleb(-self.places, exact) for step in steps.tolist()]
        values = numbers if known is None else [number if shown else None for number, shown in zip(numbers, known, strict=True)]
        return pa.array(values, pa.decimal128(_DIGITS, self.places))

    def read_column(self, column: Any) -> Any:
        import pyarrow as pa

        given = column.cast(pa.decimal128(_DIGITS, self.places)).to_pylist()
        return pa.chunked_array([pa.array([None if value is None else self.steps(f"{value:f}") for value in given], pa.int64())])
