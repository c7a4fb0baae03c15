"""Intervals for many sums: for a list of queries, or for every unit of a margin; each for itself, or all of them at once.

All at once, they hold together with probability `level` or more:

    union bound   each of k sums that are not kept gets 1 - (1 - level) / k
    simulated     each gets the same multiple of its standard deviation, from draws of all errors together [theory T144]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from holdfast.channels import Facts
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.publication.error_laws import DOUBT, DRAWS, Ask, ErrorLaw, ErrorLaws, Reach, SimulatedSum, rank
from holdfast.publication.interval import Interval, around, check_level, check_nonnegative, published_sum
from holdfast.publication.plan import Plan
from holdfast.publication.queries import Query, coefficients, margin_cells
from holdfast.publication.reading import Readable
from holdfast.tables import Universe
from holdfast.wording.intervals import asked_name, name_of

Ints = NDArray[np.int64]
Joint = Literal["union bound", "simulated"]

MOST_JOINT = 2 * 10**7
"""Errors held while many sums are simulated together."""
MANY = 50
"""Single cells from which on their laws are found all at once."""
SCALE_DRAWS = 2_000
"""Draws for the standard deviations, of their own."""


@dataclass(frozen=True, eq=False, repr=False)
class Intervals(Sequence[Interval]):
    """One interval for each sum. `joint` says how they hold together with probability `level`; None where each does for itself."""

    intervals: tuple[Interval, ...]
    level: float
    joint: Joint | None
    codes: Mapping[str, tuple[str, ...]] | None = None
    """Of a margin: the codes of each sum, by column or level."""

    @overload
    def __getitem__(self, index: int) -> Interval: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Interval, ...]: ...
    def __getitem__(self, index: int | slice) -> Interval | tuple[Interval, ...]:
        return self.intervals[index]

    def __len__(self) -> int:
        return len(self.intervals)

    def __iter__(self) -> Iterator[Interval]:
        return iter(self.intervals)

    @property
    def frame(self) -> Any:
        """A pyarrow.Table: codes of a margin, published number, low, high, method; answers and ratios as doubles, ends rounded outwards."""
        import pyarrow as pa

        whole = all(isinstance(end, int) for found in self for end in (found.published, found.low, found.high))
        numbers = {
            name: pa.array([getattr(found, name) if whole else found.doubles[name] for found in self])
            for name in ("published", "low", "high")
        }
        return pa.table({**(self.codes or {}), **numbers, "method": pa.array([found.method for found in self])})

    def to_fields(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """As plain values; `names`: what each sum is called, for a list of queries."""
        rows = zip(*self.codes.values(), strict=True) if self.codes else ()
        shown = [name_of(zip(self.codes or (), row, strict=True)) for row in rows] or names
        shown = shown or [f"query {number}" for number in range(1, len(self) + 1)]
        listed = [{"name": name, **found.to_fields()} for name, found in zip(shown, self, strict=True)]
        return {"level": self.level, "joint": self.joint, "intervals": listed}

    def __repr__(self) -> str:
        together = "each for itself" if self.joint is None else f"together, {self.joint}"
        return f"Intervals({len(self)} sums, level {self.level:g}, {together})"


def intervals_of(
    plan: Plan,
    counts: Ints,
    queries: Sequence[Query] | None,
    level: float,
    *,
    by: str | Sequence[str] | None = None,
    simultaneous: bool = True,
    nonnegative: bool = False,
    method: Ask = "auto",
) -> Intervals:
    """Intervals for queries, or with `by` for all sums of a margin: names of columns, or of levels of hierarchies.

    Reference:   [theory T140], [theory T144].
    """
    check_level(level)
    if (queries is None) == (by is None):
        raise InvalidParameter("Give a list of queries, or the columns of a margin with by=..., and not both.")
    laws, facts, alpha = ErrorLaws(plan.drawing, method), plan.facts, 1 - float(level)
    codes, several = None, None
    if by is not None:
        numbers, codes = margin_cells([by] if isinstance(by, str) else list(by), facts.universe)
        sums, several = _margin(numbers, counts), laws.of_margin(numbers)
    else:
        sums = _listed(queries, facts.universe, counts)
        if len(sums) >= MANY and all(len(cells) == 1 and row[0] == 1 for cells, row, _ in sums):
            of_cells = laws.of_margin(np.arange(len(counts)))
            several = None if of_cells is None else [of_cells[int(cells[0])] for cells, _, _ in sums]
    if nonnegative:
        check_nonnegative(facts, *(row for _, row, _ in sums))
    each = several or _laws(laws, sums, simultaneous)
    joint: Joint | None = None
    reaches = [law.reach(alpha) for law in each] if not simultaneous else []
    if simultaneous:
        reaches, joint = _together(laws, sums, each, alpha)
    made = (around(facts, _dense(facts, one), one[2], reach, float(level), nonnegative) for one, reach in zip(sums, reaches, strict=True))
    return Intervals(tuple(made), float(level), joint, codes)


def asked_intervals(
    source: Readable,
    where: Sequence[str],
    by: Sequence[str],
    others: Mapping[str, str | None],
    level: float,
    simultaneous: bool,
    **how: Any,
) -> dict[str, Any]:
    """Fields of what the command line asks for: sums of cells that meet conditions, with or without another condition, or a margin."""
    given: dict[str, Any] = {name: other for name, other in others.items() if other is not None}
    if bool(where) == bool(by) or (by and given):
        raise InvalidParameter(
            "Ask for sums of cells with --where, or for all sums of a margin with --by; differences, ratios and percentages are of --where."
        )
    if by:
        return source.intervals(by=by, level=level, simultaneous=simultaneous, **how).to_fields()
    if not given:
        return source.intervals(where, level, simultaneous=simultaneous and len(where) > 1, **how).to_fields(where)
    if simultaneous:
        raise InvalidParameter("--together is for sums: differences, ratios and percentages hold each for itself.")
    made = tuple(source.interval(query, level, **given, **how) for query in where)
    return Intervals(made, float(level), None).to_fields([asked_name(query, given) for query in where])


Sum = tuple[Ints, Ints, int]
"""Cells, their coefficients, the published sum."""


def _listed(queries: Sequence[Query] | None, universe: Universe, counts: Ints) -> list[Sum]:
    if not queries or isinstance(queries, str | Mapping):
        raise InvalidParameter("Give a list of one query or more.")
    out = []
    for query in queries:
        wanted = coefficients(query, universe)
        cells = np.flatnonzero(wanted)
        out.append((cells, wanted[cells], published_sum(counts, wanted)))
    return out


def _dense(facts: Facts, given: Sum) -> Ints:
    """One coefficient for each cell, where answers were rounded: the room for that is computed from them."""
    out = np.zeros(facts.lattice.cells if facts.grid is not None else 0, dtype=np.int64)
    if facts.grid is not None:
        out[given[0]] = given[1]
    return out


def _margin(numbers: Ints, counts: Ints) -> list[Sum]:
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    sums = np.add.reduceat(counts[order], starts)
    groups = np.split(order, starts[1:])
    return [(cells, np.ones(len(cells), dtype=np.int64), int(total)) for cells, total in zip(groups, sums, strict=True)]


def _together(laws: ErrorLaws, sums: Sequence[Sum], each: Sequence[ErrorLaw], alpha: float) -> tuple[list[Reach], Joint]:
    if any(isinstance(law, SimulatedSum) for law in each):
        return _simulated(laws, sums, each, alpha), "simulated"
    moving = max(sum(law.reach(0.5).method != "kept" for law in each), 1)
    try:
        return [law.reach(alpha / moving) for law in each], "union bound"
    except InvalidParameter:
        if moving == 1:
            raise
    raise InvalidParameter(
        f"For {moving:,} sums together at this level each needs one of {1 - alpha / moving:.12g}, too near 1 for sums of this noise. "
        "Ask for a lower level, for fewer sums, or for each by itself with simultaneous=False.",
        field="level",
    )


def _laws(laws: ErrorLaws, sums: Sequence[Sum], simultaneous: bool) -> list[ErrorLaw]:
    """The law of each sum; refused at the first one, where they are too many to be simulated together."""
    out = []
    for cells, row, _ in sums:
        out.append(laws.of(cells, row))
        if simultaneous and isinstance(out[-1], SimulatedSum) and len(sums) * DRAWS > MOST_JOINT:
            raise RequestTooLarge(
                f"{len(sums):,} sums are too many to be simulated together: {MOST_JOINT // DRAWS:,} at most. Ask for fewer, or for each by "
                "itself with simultaneous=False."
            )
    return out


def _simulated(laws: ErrorLaws, sums: Sequence[Sum], each: Sequence[ErrorLaw], alpha: float) -> list[Reach]:
    """The r-th smallest of the largest |error| / scale over the sums: any scales do that do not depend on these draws."""
    cells = np.unique(np.concatenate([own for own, _, _ in sums]))
    rows = np.zeros((len(sums), len(cells)), dtype=np.int64)
    for number, (own, row, _) in enumerate(sums):
        rows[number, np.searchsorted(cells, own)] = row
    parts = laws.parts(cells, rows)
    count = min(SCALE_DRAWS, laws.draw_count(parts))
    scales = np.sqrt((laws.draws(parts, "scale of intervals", count).astype(np.float64) ** 2).mean(axis=1))
    errors = np.abs(laws.draws(parts))
    moving = np.array([law.reach(0.5).method != "kept" for law in each])
    largest = (errors[moving] / np.maximum(scales[moving], 0.5)[:, None]).max(axis=0, initial=0.0)
    r = rank(1 - alpha, errors.shape[1])
    factor = float(np.partition(largest, r - 1)[r - 1]) * (1 + 1e-12)
    reaches = np.where(moving, np.floor(factor * np.maximum(scales, 0.5)), 0).astype(np.int64)
    return [
        Reach(int(reach), "simulated", None, DOUBT) if moves else Reach(0, "kept", 1.0, 0.0)
        for reach, moves in zip(reaches, moving, strict=True)
    ]
