"""What a check of a perturbation table shows, and a design beside other noise for the same target: figures as values, without sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from holdfast.cellkey.design import Design, truncated_laplace
from holdfast.cellkey.keys import KeySpace
from holdfast.cellkey.loss import Losses
from holdfast.cellkey.noise import NoiseLaw
from holdfast.cellkey.rows import TableDesign
from holdfast.cellkey.table import PerturbationRow, PerturbationTable

Curve: TypeAlias = list[tuple[float, float]]
"""Points (epsilon, delta)."""

KEY_SIZES = (2**8, 2**16, 2**32, 2**64)
POINTS = 24
"""Points of a curve."""
SHOWN_ROWS = 60


@dataclass(frozen=True)
class TableFigures:
    """Which counts a perturbation table serves, and with how many keys."""

    first: int
    last: int
    repeat: int
    key_size: str
    lowest_result: int


@dataclass(frozen=True)
class RowFigures:
    """The noise of one count; `stays`: the chance that it is 0."""

    count: int
    bias: float
    variance: float
    stays: float
    law: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, row: PerturbationRow) -> RowFigures:
        chances = row.probabilities
        law = tuple((noise, float(chance)) for noise, chance in chances.items())
        return cls(row.count, float(row.bias), float(row.variance), float(chances.get(0, Fraction(0))), law)


@dataclass(frozen=True)
class SizeFigures:
    """The table with another number of keys; `lost`: noise values that it would lose; `losses`: of counts from 1 on, or of a design."""

    key_size: str
    lost: int
    losses: Losses
    curve: Curve


@dataclass(frozen=True)
class Missed:
    """The table of a design that rounding to keys took above the delta asked for."""

    epsilon: str
    delta: str
    key_size: str
    delta_of_table: float


@dataclass(frozen=True)
class Check:
    """Everything that a check shows. Figures of losses are rounded up.

    losses:      of all counts that have rows, with empty cells kept empty, as releases keep them.
    above_zero:  of counts from 1 on; None where counts 0 and 1 are not compared, or no others are.
    before:      of the design for counts from D on, before it was rounded to keys, where there is one.
    curves:      of `chart_losses`.
    """

    name: str
    table: PerturbationTable
    figures: TableFigures
    losses: Losses
    above_zero: Losses | None
    before: Losses | None
    curves: tuple[Curve, ...]
    rows: tuple[RowFigures, ...]
    more_rows: int
    key_sizes: tuple[SizeFigures, ...]
    missed: Missed | None = None

    @property
    def chart_losses(self) -> tuple[Losses, ...]:
        """All counts, and beside them those of the design, else those from 1 on."""
        return tuple(losses for losses in (self.losses, self.before or self.above_zero) if losses is not None)


@dataclass(frozen=True)
class OtherNoise:
    """Other noise for the same target, from -D to D."""

    D: int
    gamma: str | None
    variance: float
    delta: float

    @classmethod
    def of(cls, law: NoiseLaw, epsilon: Fraction, gamma: str | None) -> OtherNoise:
        return cls(law.noise[-1], gamma, law.variance(), law.epsilon_delta().delta(epsilon))


@dataclass(frozen=True)
class DesignCheck:
    """A design, other noise for its target, and the check of its table."""

    epsilon: str
    delta: str
    D: int
    gamma: str
    variance: float
    delta_reached: float
    """Before rounding to keys."""
    key_size: str
    delta_of_table: float
    best: OtherNoise
    smallest: OtherNoise
    laplace: OtherNoise
    check: Check


def check_table(table: PerturbationTable, *, name: str, law: Design | TableDesign | None = None) -> Check:
    """Check a perturbation table.

    Given:       law: the design that was rounded to keys, where that is known: its curve is shown too where it is for large counts, and the
                 table for every key size. Else sizes that only refine the table are left out.
    """
    losses = table.losses_in_use
    before = law.epsilon_delta() if isinstance(law, Design) else None
    shown = [found for found in (losses, before or losses.above_zero) if found is not None]
    farthest = max(found.plateau_epsilon for found in shown)
    reach = Fraction(farthest).limit_denominator(1000) * Fraction(3, 2) or Fraction(1)
    epsilons = [reach * place / POINTS for place in range(POINTS + 1)]
    sizes = [size for size in KEY_SIZES if law is not None or size < table.key_size]
    rows = tuple(RowFigures.of(table.rows[count]) for count in table.counts[:SHOWN_ROWS])
    return Check(
        name=name,
        table=table,
        figures=_table_figures(table),
        losses=losses,
        above_zero=losses.above_zero,
        before=before,
        curves=tuple(found.curve(epsilons) for found in shown),
        rows=rows,
        more_rows=len(table.counts) - len(rows),
        key_sizes=tuple(_size_figures(table, law, size, epsilons) for size in sizes),
    )


def check_design(made: Design, key_size: int) -> DesignCheck:
    """A design and the check of its table with this many keys. Rounding to keys may miss the target: the check says so."""
    reached = made.quantised(key_size).epsilon_delta().delta_bounds(made.epsilon)
    check = check_table(made.table(key_size), name=f"Design for epsilon = {made.epsilon}, delta = {float(made.delta):.6g}", law=made)
    asked = (str(made.epsilon), str(made.delta))
    size = str(KeySpace(key_size))
    if reached.upper > made.delta:
        check = replace(check, missed=Missed(*asked, size, reached.up()))
    return DesignCheck(
        *asked,
        D=made.D,
        gamma=str(made.gamma),
        variance=made.variance,
        delta_reached=made.delta_bounds().up(),
        key_size=size,
        delta_of_table=reached.up(),
        best=OtherNoise.of(made.best, made.epsilon, str(made.best.gamma)),
        smallest=OtherNoise.of(made.smallest, made.epsilon, str(made.smallest.gamma)),
        laplace=OtherNoise.of(truncated_laplace(made.epsilon, delta=made.delta), made.epsilon, None),
        check=check,
    )


def _table_figures(table: PerturbationTable) -> TableFigures:
    size = str(KeySpace(table.key_size)) if table.key_size > 1 else "1"
    return TableFigures(table.counts[0], table.counts[-1], table.repeat, size, table.lowest_result)


def _size_figures(table: PerturbationTable, law: Design | TableDesign | None, size: int, epsilons: Sequence[Fraction]) -> SizeFigures:
    """Return the figures of counts from 1 on; of a design for large counts, those of large counts alone."""
    scaled = table.rescaled(size) if law is None else law.quantised(size, allow_lost=True)
    lost = sum(len(set(table.rows[count].noise) - set(row.noise)) for count, row in scaled.rows.items())
    losses = scaled.losses_in_use
    losses = losses.above_zero or losses
    return SizeFigures(str(KeySpace(size)), lost, losses, losses.curve(epsilons))
