"""What a channel aims at, as a value: a norm, a quadratic form, bounds, or a rule; never a lattice, a sampler or a count.

A target with a shape finds its sampler in one table (samplers/table.py); its `fields` label random streams.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeySums
from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Shape

Basis: TypeAlias = Literal["exact", "upper bound", "estimated", "not estimated"]
Field: TypeAlias = str | int

ON_THE_LATTICE = "over all integer tables z that change no kept total"


class Reads(enum.Enum):
    """What a task is given beside random words."""

    NOTHING = "nothing"
    """The noise sees no data: y = x + z."""
    COUNTS = "counts"
    CELL_KEYS = "counts and cell keys"


class Form(Protocol):
    """A covariance that is known by what it does, where a matrix would be too large."""

    def of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The variance of sum_i values_i z_i, for each row of values."""

    def diagonal(self) -> NDArray[np.float64]:
        """The variance of every cell."""


@dataclass(frozen=True)
class Variance:
    """Covariance of the noise of one block: `scale` times the projection on the moves of its shape, or a `matrix` or `form` of its own.

    `rounding`: so many times the sum of b* b*^T over the Gram-Schmidt vectors of the shape is added, where the shape has them (Levels).
    `relative_error`: from rounding where the figure is exact; one standard error where it was estimated from draws of the public law.
    "not estimated": draws would take too long; the scale is no number.
    """

    scale: float
    matrix: NDArray[np.float64] | None = None
    basis: Basis = "exact"
    relative_error: float = 0.0
    rounding: float = 0.0
    form: Form | None = None


class Target(ABC):
    """What is drawn. Subclasses are frozen values: equal targets draw equal noise."""

    reads: ClassVar[Reads] = Reads.NOTHING
    splits: ClassVar[bool] = True
    """Whether blocks are drawn independently of each other; if not, the lattice is drawn whole."""
    publishes_cells: ClassVar[bool] = True
    """False where cells are left out instead of noised. The mechanism's `publishes_cells` says the same; a plan checks it."""

    @property
    @abstractmethod
    def fields(self) -> tuple[Field, ...]:
        """Canonical: a name that is never changed, and exact numbers. Part of the stream's format: no class name, no prose."""

    @property
    @abstractmethod
    def formula(self) -> str:
        """The law as a formula, complete enough to compute it, for cards and plans. No code reads it."""

    @abstractmethod
    def log_tail(self, lattice: Lattice, t: float) -> float:
        """Natural logarithm of a bound of P[|z| >= t] (docs: laws/tails.py); 0 where nothing is known.

        z is what publication adds. A target that reads counts has no noise of one law: there z = y - x, what is published less the
        true counts, and the bound holds for every table x of the lattice's cells.
        """

    def log_weight(self, z: NDArray[Any]) -> float | None:
        """Logarithm of the weight of a move, without the normaliser; None where no closed form exists."""
        return None

    def check_input(self, counts: NDArray[np.int64], cell_keys: CellKeySums | None) -> None:
        """Raise if the law is not made for these counts or keys. CONFIDENTIAL input: the message holds no value of it."""
        return

    def block_variance(self, shape: Shape) -> Variance | None:
        """For blocks of this shape; None where it must be estimated from draws."""
        return None


def number_field(value: Fraction) -> str:
    """An exact number as a field: "p/q" in lowest terms, or "p"."""
    return str(value)
