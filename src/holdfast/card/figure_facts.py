"""What figures are drawn from: plain values, computed in publication/report_facts.py from public files alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.card.parts import ViewInfo

Law = Sequence[tuple[int, float]]
LIMITS = (0.05, 0.10, 0.25, 0.50)
"""Relative standard deviations that readers ask about."""


@dataclass(frozen=True)
class SpreadFacts:
    """Standard deviations of the sums over the units of one level or margin; None where they are not known.

    units:     how many sums there are; `looked_at`: of how many the standard deviation was computed.
    margin:    of a level of the budget: by which columns, or None for the level itself.
    """

    name: str
    units: int
    smallest: float | None
    median: float | None
    largest: float | None
    looked_at: int
    margin: str | None = None


@dataclass(frozen=True)
class SharesFacts:
    """How many published numbers of a level have a relative standard deviation in each class.

    exact:    numbers without noise; `classes`: up to 5 %, up to 10 %, up to 25 %, up to 50 %, more (zero and negative numbers too).
    """

    name: str
    exact: int
    classes: tuple[int, ...]

    @property
    def numbers(self) -> int:
        return self.exact + sum(self.classes)

    def above(self, limit: int) -> int:
        """How many are above the limit of this place in LIMITS."""
        return sum(self.classes[limit + 1 :])


@dataclass(frozen=True)
class SizeClass:
    """Published numbers of about one size: from `low` to `high`, their standard deviations."""

    low: float
    high: float
    numbers: int
    smallest: float
    median: float
    largest: float


@dataclass(frozen=True)
class Bubble:
    """Numbers of about one size with about one standard deviation."""

    size: float
    deviation: float
    numbers: int


@dataclass(frozen=True)
class Sizes:
    """Standard deviation against size: classes of size for the table, bubbles for the drawing. Numbers without noise are left out."""

    level: str
    classes: tuple[SizeClass, ...]
    bubbles: tuple[Bubble, ...]
    exact: int
    not_positive: int
    """Numbers that are zero or less: they have no place on a logarithmic axis."""


@dataclass(frozen=True)
class Bar:
    """A published number with the ends of its interval; None where there is none. `parts`: its name, column by column."""

    name: str
    value: float
    low: float | None
    high: float | None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ranked:
    """The largest numbers of a level, in order. `intervals`: how the ends were found, a key of wording/figures.py."""

    level: str
    bars: tuple[Bar, ...]
    units: int
    intervals: str
    confidence: float

    @property
    def shared_parts(self) -> tuple[str, ...]:
        """The parts of the names that all bars have in common; none where there are not two bars."""
        return tuple(parts[0] for parts in self._columns() if len(set(parts)) == 1)

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names without these parts."""
        if not self.shared_parts:
            return tuple(bar.name for bar in self.bars)
        return tuple(map(", ".join, zip(*(parts for parts in self._columns() if len(set(parts)) > 1), strict=True)))

    def _columns(self) -> list[tuple[str, ...]]:
        """The parts, column by column; none where names are not made of parts, or are all alike."""
        if len({len(bar.parts) for bar in self.bars}) > 1 or len({bar.parts for bar in self.bars}) < 2:
            return []
        return list(zip(*(bar.parts for bar in self.bars), strict=True))


@dataclass(frozen=True)
class GridFacts:
    """A two-way table: values and standard deviations (None where not known), row by row."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_title: str
    column_title: str
    values: Sequence[Sequence[float | None]]
    deviations: Sequence[Sequence[float | None]]


@dataclass(frozen=True)
class Area:
    """An area of a map: its rings in degrees or any plane coordinates, its number and standard deviation (None where it has none)."""

    name: str
    rings: tuple[tuple[tuple[float, float], ...], ...]
    value: float | None
    deviation: float | None


@dataclass(frozen=True)
class Example:
    """Two published numbers with noise, their sum and their difference, each with its standard deviation; `low` to `high` is the interval
    of the first, from the law of its noise or, not `by_law`, from the normal one.
    """

    name: str
    value: float
    deviation: float
    low: float
    high: float
    by_law: bool
    other: str
    other_value: float
    other_deviation: float
    sum_deviation: float
    difference_deviation: float


@dataclass(frozen=True)
class AreasFacts:
    level: str
    areas: tuple[Area, ...]
    without_area: int
    """Units of the level that the map file does not have."""
    degrees: bool
    """Whether coordinates are longitudes and latitudes."""


@dataclass(frozen=True)
class NoiseLawFacts:
    """The law of a cell's noise: values with their probabilities, at least 99 in 100 together, or their shares in simulated draws.

    place:   of the cell: how many its block has, or in words.
    draws:   cells drawn where the shares were simulated; None where they were computed.
    errors:  standard errors of the shares, where they were simulated, one for each value.
    most_off: bound of the error of each computed probability; 0 where it is too small to matter.
    """

    place: str | int
    law: Law
    draws: int | None = None
    errors: Sequence[float] = ()
    most_off: float = 0.0

    @property
    def zero_error(self) -> float:
        """Standard error of the share of 0."""
        return next((error for (k, _), error in zip(self.law, self.errors, strict=False) if k == 0), 0.0)


@dataclass(frozen=True)
class Row:
    """A row of the published table: labels or codes; its number as an exact decimal, None where there is none; the standard deviation,
    None where it is not known; whether the kept totals reveal the true number.
    """

    codes: tuple[str, ...]
    value: str | None
    deviation: float | None
    exposed: bool


@dataclass(frozen=True)
class RowGroup:
    """The first rows of a group, and how many it has. The whole table is a group without a name."""

    name: str
    rows: tuple[Row, ...]
    size: int


@dataclass(frozen=True)
class RowsFacts:
    """The first rows of a table of `cells` rows, and more of them in groups, which are the units of `level`."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    cells: int
    groups: tuple[RowGroup, ...] = ()
    level: str = ""


@dataclass(frozen=True)
class ReportFacts:
    """Everything that the figures of a report are drawn from; what a release does not have is left out."""

    rows: RowsFacts | None = None
    levels: tuple[SpreadFacts, ...] = ()
    margins: tuple[SpreadFacts, ...] = ()
    relative: tuple[SharesFacts, ...] = ()
    sizes: Sizes | None = None
    ranked: Ranked | None = None
    heat: GridFacts | None = None
    areas: AreasFacts | None = None
    example: Example | None = None
    noise: tuple[NoiseLawFacts, ...] = ()
    view: ViewInfo | None = None
    """What view.json says, where the folder has a publication view."""
