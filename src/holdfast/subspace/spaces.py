"""Linear invariants, exact: everything is decided on rational rows.

Legend: C is n_c x n with independent rational rows; N = {v : C v = 0}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat, fmpz_mat

from holdfast.errors import InvalidParameter, NothingLeft, RequestTooLarge
from holdfast.exact.parameters import exact_fraction
from holdfast.lattices import algebra

MAX_ENTRIES = 1_000_000
"""Entries of a dense exact matrix; more is refused."""


def read_matrix(rows: Any, name: str, columns: int | None = None) -> fmpq_mat:
    """A rational matrix: lists of int, Fraction or text ("1/2"), or a NumPy array of integers. Floats are refused."""
    if isinstance(rows, fmpq_mat | fmpz_mat) and columns in (None, rows.ncols()):
        return fmpq_mat(rows)
    listed = rows.tolist() if isinstance(rows, np.ndarray) else rows
    if isinstance(listed, Sequence) and not isinstance(listed, str | bytes):
        listed = [row.tolist() if isinstance(row, np.ndarray) else row for row in listed]
    if not isinstance(listed, list) or not all(isinstance(row, Sequence) and not isinstance(row, str | bytes) for row in listed):
        raise InvalidParameter(f"{name} is a matrix of exact numbers: a list of rows, or an array. Got {type(rows).__name__}.")
    width = columns if columns is not None else len(listed[0]) if listed else 0
    wrong = next((number for number, row in enumerate(listed, 1) if len(row) != width or not width), None)
    if wrong is not None or not width:
        found = "There are none" if wrong is None else f"Row {wrong} has {len(listed[wrong - 1])}"
        wanted = f"{width} numbers each, one for each column" if width else "one number for each column"
        raise InvalidParameter(f"{name} needs rows of one length: {wanted}. {found}.")
    if len(listed) * width > MAX_ENTRIES:
        raise RequestTooLarge(
            f"{name} has {len(listed):,} rows of {width:,} numbers, more than {MAX_ENTRIES:,} in all: too many for exact algebra on a "
            "dense matrix. State kept margins as hf.margin(...), and answers with their sensitivity: neither needs a matrix."
        )
    if all(type(entry) is int for row in listed for entry in row):
        return fmpq_mat(fmpz_mat(len(listed), width, [entry for row in listed for entry in row]))
    entries = [exact_fraction(entry, f"an entry of {name[:1].lower()}{name[1:]}") for row in listed for entry in row]
    return fmpq_mat(len(listed), width, [fmpq(entry.numerator, entry.denominator) for entry in entries])


class Invariants:
    """C f(x) is published as it is: exact rational rows over n answers.

    Given:       rows of exact numbers; floats are refused. Rows that follow from earlier ones are dropped. `cells`: n, needed where there
                 are no rows.
    Guarantees:  something is left to protect: rows that fix every answer are refused.
    """

    def __init__(self, rows: Any, cells: int | None = None) -> None:
        given = read_matrix(rows, "invariants", cells)
        self.cells: int = int(given.ncols())
        scaled = [_whole(row) for row in given.tolist()]
        every = fmpz_mat(len(scaled), self.cells, [entry for row in scaled for entry in row])
        self.rows: fmpz_mat = algebra.take_rows(every, algebra.independent_rows(every)) if scaled else every
        """The independent rows, scaled to whole numbers without a common factor."""
        if not self.free:
            raise NothingLeft(
                f"The invariants fix all {self.cells} answers: C has {self.rank} independent rows, and no null space is left for noise. "
                "Keep fewer rows."
            )

    @property
    def rank(self) -> int:
        """n_c."""
        return int(self.rows.nrows())

    @property
    def free(self) -> int:
        """n - n_c, the dimension of N."""
        return self.cells - self.rank

    def __repr__(self) -> str:
        return f"Invariants({self.rank} independent rows over {self.cells} answers; {self.free} free dimensions)"


def _whole(row: Sequence[fmpq]) -> list[int]:
    """The row scaled to whole numbers without a common factor."""
    bottom = math.lcm(*(int(entry.q) for entry in row))
    entries = [int(entry.p) * (bottom // int(entry.q)) for entry in row]
    common = math.gcd(*entries) or 1
    return [entry // common for entry in entries]
