"""Real-valued answers from a file or a query: one row for each cell, the value as an exact number."""

from __future__ import annotations

import decimal
import numbers
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidCount
from holdfast.tables.columns import CountColumn
from holdfast.tables.counting import read_declared, read_listed
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.readers import open_source
from holdfast.tables.text_files import Reading
from holdfast.tables.universe import Universe

_NUMBER = re.compile(r"[+-]?(?:\d{1,400}/\d{1,400}|(?:\d{1,400}\.?\d{0,400}|\.\d{1,400})(?:[eE][+-]?\d{1,3})?)", re.ASCII)
_OVER_ZERO = re.compile(r"/0+\Z", re.ASCII)
_RULE = 'An answer is a finite number: a decimal such as -0.25 or 1e-3, or a fraction such as 1/3. Write 0.25, not "0,25" or "25 %".'


class _ValueColumn(CountColumn):
    """Collects values as they are, and gives their row numbers from 1 on: 0 stands for a cell that has no row."""

    binary = False

    def __init__(self, name: str, source: str) -> None:
        super().__init__(name, source)
        self.values: list[Fraction] = []

    def add(self, array: Any) -> None:
        """Integers, decimals, finite floats, or texts."""
        from pyarrow import types

        narrow = types.is_float16(array.type) or types.is_float32(array.type)
        for entry in array.to_numpy(zero_copy_only=False) if narrow else array.to_pylist():
            value = exact_value(entry, binary=self.binary)
            if value is None:
                place = f"column {self._name!r}, row {len(self.values) + 1} of {self._source}"
                raise InvalidCount(f"This is not an answer: {place}. {_RULE}")
            self.values.append(value)

    def finish(self) -> NDArray[np.int64]:
        return np.arange(1, len(self.values) + 1)


def exact_value(entry: Any, *, binary: bool = False) -> Fraction | None:
    """A whole number, fraction, finite float, decimal, or text of one, as an exact number of ordinary size; None for anything else.

    A float is the shortest decimal that is read as it: 0.1 is 1/10, not a number 2^-56 away. Sums that people see to be equal, .1 + .4 and
    .15 + .35, are equal then, and round to the same grid. With `binary` it is the fraction that its bits are: a multiple of the step of a
    grid may have more digits than the shortest decimal.
    """
    if isinstance(entry, str | decimal.Decimal):
        text = str(entry)
        return Fraction(text) if _NUMBER.fullmatch(text) and not _OVER_ZERO.search(text) else None
    if isinstance(entry, bool) or not isinstance(entry, numbers.Real):
        return None
    if isinstance(entry, numbers.Rational):
        return Fraction(int(entry.numerator), int(entry.denominator))
    number = entry if isinstance(entry, np.floating) else float(entry)  # one of 32 bits has shorter decimals
    if not isfinite(number):
        return None
    return Fraction(*number.as_integer_ratio()) if binary else Fraction(str(number))


def read_answers(
    data: Any,
    columns: Sequence[str],
    value: str,
    *,
    universe: Universe | None,
    public: bool,
    hierarchies: Mapping[str, Hierarchy] | None,
    allow_similar_codes: bool,
    query: str | None,
    reading: Reading,
    on_grid: bool,
) -> tuple[Universe, list[Fraction]]:
    """The cells, and the value of each, in their order. CONFIDENTIAL values; errors name column and row, and show none.

    Given:  the arguments of Table.from_counts. Every cell of a declared universe has a row: nobody knows what the answer of another is.
            `on_grid`: whether values are multiples of a step, so that floats are what their bits are (`exact_value`).
    """
    made: list[_ValueColumn] = []

    class Own(_ValueColumn):
        binary = on_grid

        def __init__(self, name: str, source: str) -> None:
            super().__init__(name, source)
            made.append(self)

    with open_source(data, query, reading=reading) as source:
        numbers = [(value, Own)]
        if universe is not None:
            cells, (rows,) = universe, read_declared(source, universe, numbers)
        else:
            cells, (rows,) = read_listed(
                source, tuple(columns), numbers, hierarchies, public=public, allow_similar_codes=allow_similar_codes
            )
        if (rows == 0).any():
            raise InvalidCount(f"Cells of the universe have no answer in {source.label}. Give every cell one row.")
    return cells, [made[0].values[row - 1] for row in rows.tolist()]
