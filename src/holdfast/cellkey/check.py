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
    keeps_zeros: bool


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
    """The table with another number of keys; `lost`: noise values that it would lose."""

    key_size: str
    lost: int
    plateau: Fraction
    plateau_epsilon: float
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

    losses:      of counts from 1 on. with_zeros: with empty cells kept empty, as releases keep them; None where count 1 has no row, or
                 count 0 has noise.
    worst:       the smaller count of the pair that is easiest to distinguish.
    before, own: curves of the design before it was rounded to keys, where there is one, and of the table.
    """

    name: str
    table: TableFigures
    losses: Losses
    with_zeros: Losses | None
    worst: int
    rows: tuple[RowFigures, ...]
    more_rows: int
    before: Curve | None
    own: Curve
    key_sizes: tuple[SizeFigures, ...]
    missed: Missed | None = None

    @property
    def zero_delta(self) -> Fraction | None:
        """The delta between counts 0 and 1 where empty cells stay empty, whatever epsilon."""
        shown = None if self.with_zeros is None else self.with_zeros.zero_shown
        return None if shown is None else shown.upper


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


def check_table(table: PerturbationTable, *, name: str, law: Design | None = None) -> Check:
    """Check a perturbation table.

    Given:       law: the design that was rounded to keys, where that is known: its curve is shown too, and the table for every key size.
                 Else the table's own, and sizes that only refine it are left out.
    """
    filled, served = zeros_apart(table)
    losses, with_zeros = filled.epsilon_delta(), None if served is None else served.epsilon_delta()
    reach = Fraction(losses.plateau_epsilon).limit_denominator(1000) * Fraction(3, 2) or Fraction(1)
    epsilons = [reach * place / POINTS for place in range(POINTS + 1)]
    sizes = [size for size in KEY_SIZES if law is not None or size < table.key_size]
    rows = tuple(RowFigures.of(table.rows[count]) for count in table.counts[:SHOWN_ROWS])
    return Check(
        name=name,
        table=_table_figures(table, keeps_zeros=with_zeros is not None and with_zeros.zero_shown is not None),
        losses=losses,
        with_zeros=with_zeros,
        worst=losses.worst_count(epsilons[POINTS // 3]),
        rows=rows,
        more_rows=len(table.counts) - len(rows),
        before=None if law is None else law.epsilon_delta().curve(epsilons),
        own=losses.curve(epsilons),
        key_sizes=tuple(_size_figures(filled, law, size, epsilons) for size in sizes),
    )


def check_design(made: Design, key_size: int) -> DesignCheck:
    """A design and the check of its table with this many keys. Rounding to keys may miss the target: the check says so."""
    table = made.quantised(key_size)
    reached = table.epsilon_delta().delta_bounds(made.epsilon)
    check = check_table(table, name=f"Design for epsilon = {made.epsilon}, delta = {float(made.delta):.6g}", law=made)
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


def zeros_apart(table: PerturbationTable) -> tuple[PerturbationTable, PerturbationTable | None]:
    """The rows of counts from 1 on, and the table with empty cells kept empty; None where count 1 has no row, or count 0 has noise."""
    zero = table.rows.get(0)
    if 1 not in table.rows or (zero is not None and set(zero.noise) != {0}):
        return table, None
    filled = [row for row in table.rows.values() if row.count]
    empty = PerturbationRow(0, (0,), (table.key_size,))
    return PerturbationTable(filled, repeat=table.repeat), PerturbationTable([empty, *filled], repeat=table.repeat)


def _table_figures(table: PerturbationTable, *, keeps_zeros: bool) -> TableFigures:
    size = str(KeySpace(table.key_size)) if table.key_size > 1 else "1"
    return TableFigures(table.counts[0], table.counts[-1], table.repeat, size, table.lowest_result, keeps_zeros)


def _size_figures(table: PerturbationTable, law: Design | None, size: int, epsilons: Sequence[Fraction]) -> SizeFigures:
    scaled = table.rescaled(size) if law is None else law.quantised(size, allow_lost=True)
    lost = sum(len(set(row.noise) - set(scaled.rows[count].noise)) for count, row in table.rows.items())
    losses = scaled.epsilon_delta()
    return SizeFigures(str(KeySpace(size)), lost, losses.plateau_bounds.upper, losses.plateau_epsilon, losses.curve(epsilons))
