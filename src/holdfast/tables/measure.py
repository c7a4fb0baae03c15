"""What the whole numbers of a table stand for: counts of people, or steps of the grid of real-valued answers.

Whoever needs to know something about the values asks their measure, and never which of the two it is.
"""

from __future__ import annotations

import numbers
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from holdfast.display import shorten, step_text
from holdfast.errors import InvalidCount, InvalidParameter, RequestTooLarge
from holdfast.tables.answers import exact_value
from holdfast.tables.columns import COUNT_LIMIT, arrow_numbers, exact_total

Ints: TypeAlias = NDArray[np.int64]
Number: TypeAlias = int | Fraction
"""A count, or a value of answers."""
Neighbours: TypeAlias = Literal["declared", "replace-one", "add-remove"]

MOST_DECIMALS, _MOST_UNITS, _DIGITS = 24, 10**19, 38
"""A step has at most so many decimals, and its digits are below 10^19: fewer than 2^62 steps are decimals of at most 38 digits, which every
reader of Parquet knows.
"""
_DECIMAL = re.compile(r"-?[0-9]{1,38}(\.[0-9]{1,38})?")
"""Shorter than what would take long to read: an exponent of some digits stands for any number of them."""


class Measure(ABC):
    """What the whole numbers of a table are worth: each question about its values is asked here. Public.

    noun, published_noun:  what sentences call a value, and what pages call a published one.
    number_phrase:         what someone else's file must have as a total.
    whole:                 whether values are whole numbers: ends of intervals are then, too, and a law has a bar for each of them.
    nonnegative:           whether no value is below 0: a total of 0 then makes its cells 0, and totals can pin cells.
    step:                  values are whole numbers of steps: what one step is worth.
    on_grid:               whether the true values of every data set are such multiples: nothing is rounded, or charged for it.
    round_totals:          whether kept totals may be rounded to such multiples, as declared. They are exact otherwise.
    """

    noun: ClassVar[str]
    published_noun: ClassVar[str]
    number_phrase: ClassVar[str]
    whole: ClassVar[bool]
    nonnegative: ClassVar[bool]
    step: Fraction
    on_grid: bool
    round_totals: bool

    @property
    def digest_fields(self) -> tuple[dict[str, str], ...]:
        """What labels of streams say about it: part of the stream's format."""
        return ()

    @property
    def step_text(self) -> str:
        """As people write it: "1", "0.01", "1/16777216"."""
        return step_text(self.step)

    @cached_property
    def decimals(self) -> int:
        """How many decimals values have."""
        return decimals_of(self.step)

    @cached_property
    def units(self) -> int:
        """One step in units of the last decimal."""
        return int(self.step * 10**self.decimals)

    def value(self, steps: Number) -> Number:
        """What so many steps are worth, exactly: a whole number of counts, a fraction of answers."""
        return steps * self.step

    def text(self, steps: int) -> str:
        """The value as a decimal, exact, with as many decimals as the step has."""
        scaled = str(abs(int(steps)) * self.units).rjust(self.decimals + 1, "0")
        sign = "-" if steps < 0 else ""
        return f"{sign}{scaled}" if not self.decimals else f"{sign}{scaled[: -self.decimals]}.{scaled[-self.decimals :]}"

    def floats(self, steps: Ints) -> NDArray[np.float64]:
        """The nearest doubles to the values: they print as the decimals that were published."""
        numerator, denominator = self.step.numerator, self.step.denominator
        if float(denominator) == denominator and numerator * int(np.abs(steps).max(initial=0)) <= 2**53:
            return np.asarray(steps, dtype=np.float64) * numerator / denominator  # one operation rounds, the last
        return np.array([float(int(entry) * self.step) for entry in np.ravel(steps)]).reshape(np.shape(steps))

    def steps(self, text: str) -> int:
        """Read what `text` wrote; raise ValueError for anything else."""
        found = int(text.replace(".", "", 1)) // self.units if _DECIMAL.fullmatch(text) else 0
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


@dataclass(frozen=True)
class Counts(Measure):
    """Whole numbers of people, or of whatever is counted."""

    noun = published_noun = "count"
    number_phrase = "whole number"
    whole = nonnegative = on_grid = True
    round_totals = False
    step = Fraction(1)

    def value(self, steps: Number) -> Number:
        return steps

    def floats(self, steps: Ints) -> NDArray[np.float64]:
        return np.asarray(steps, dtype=np.float64)

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


def check_flag(value: object, name: str) -> None:
    """Only True and False: "no" would count as yes."""
    if not isinstance(value, bool):
        raise InvalidParameter(f"{name} must be True or False. Got {type(value).__name__}.", field=name)


def read_step(given: object, subject: str = "step ") -> Fraction:
    """The step of a grid as an exact number; raise InvalidParameter, which begins with the subject, if there is no such grid."""
    step = exact_value(given) if not isinstance(given, float) else None
    if step is None or step <= 0 or (decimals := decimals_of(step)) > MOST_DECIMALS or step * 10**decimals >= _MOST_UNITS:
        raise InvalidParameter(
            f'{subject}must be a decimal above zero as text, such as "0.01", or a fraction that is one, such as "1/1024", of at most '
            f"{MOST_DECIMALS} decimals. Got {shorten(repr(given))}.",
            field="step",
        )
    return step


def reads_bits(step: Fraction | None, on_grid: bool) -> bool:
    """Whether a double is the fraction that its bits are: a multiple of 2^-20 may have more digits than its shortest decimal."""
    return on_grid and (step is None or step.denominator & (step.denominator - 1) == 0)


def decimals_of(value: Fraction) -> int:
    """How many decimals the number has; more than any step where they do not end."""
    return next((places for places in range(MOST_DECIMALS + 1) if 10**places % value.denominator == 0), MOST_DECIMALS + 1)


@dataclass(frozen=True)
class AnswerGrid(Measure):
    """Real-valued answers: values are whole numbers of steps, written as decimals, so that no bit of a float is published.

    l1, l2_squared:  the sensitivity of the answers, in values: the l1 distance, or the SQUARE of the l2 distance, of the answers of two
                     neighbours at most. One of the two: that which decides the noise.
    neighbours:      which data sets differ in one person; "declared" where whoever gave the sensitivity knows.
    """

    noun, published_noun = "answer", "value"
    number_phrase = "number, such as 0.25 or 1/3,"
    whole = nonnegative = False

    step: Fraction
    l1: Fraction | None = None
    l2_squared: Fraction | None = None
    neighbours: Neighbours = "declared"
    on_grid: bool = False
    round_totals: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", read_step(self.step))
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
        check_flag(self.on_grid, "on_grid")
        check_flag(self.round_totals, "round_totals")
        if self.on_grid and self.round_totals:
            raise InvalidParameter(
                "on_grid says that nothing is rounded, round_totals that kept totals are. Give one of the two.", field="round_totals"
            )

    @property
    def digest_fields(self) -> tuple[dict[str, str], ...]:
        return ({"grid": str(self.step)},)

    def check(self, steps: Ints) -> None:
        if np.any(steps <= -COUNT_LIMIT) or np.any(steps >= COUNT_LIMIT):
            raise RequestTooLarge(f"An answer is 2^62 steps of {self.step_text} or more away from 0. Use a larger step.")
        if exact_total(np.abs(steps)) >= COUNT_LIMIT:
            raise RequestTooLarge(
                f"All answers together are 2^62 steps of {self.step_text} or more, so that sums could overflow. Use a larger step."
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
        numbers = [decimal.Decimal(step * self.units).scaleb(-self.decimals, exact) for step in steps.tolist()]
        values = numbers if known is None else [number if shown else None for number, shown in zip(numbers, known, strict=True)]
        return pa.array(values, pa.decimal128(_DIGITS, self.decimals))

    def read_column(self, column: Any) -> Any:
        import pyarrow as pa

        given = column.cast(pa.decimal128(_DIGITS, self.decimals)).to_pylist()
        return pa.chunked_array([pa.array([None if value is None else self.steps(f"{value:f}") for value in given], pa.int64())])
