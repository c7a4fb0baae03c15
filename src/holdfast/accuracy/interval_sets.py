"""Intervals for one number or for many sums: for a list of queries, or for every unit of a margin; each alone, or all at once.

All at once, they hold together with probability `level` or more:

    union bound   each of k sums that are not kept gets 1 - (1 - level) / k
    simulated     each gets the same multiple of its standard deviation, from draws of all errors together [theory T144]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.error_laws import DOUBT, DRAWS, Ask, ErrorLaw, ErrorLaws, KeptSum, Reach, SimulatedSum, rank
from holdfast.accuracy.interval import Interval, Sum, around, check_level, check_nonnegative
from holdfast.accuracy.interval_ratio import ratio_interval
from holdfast.accuracy.queries import Query, coefficients, margin_cells, margin_labels, query_label, query_name
from holdfast.channels.drawing import Drawing
from holdfast.display import step
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.tables import Universe
from holdfast.tables.columns import free_name
from holdfast.tables.frames import Frames
from holdfast.wording.intervals import NamedIntervals, name_of, unnamed_query

Ints = NDArray[np.int64]
Joint = Literal["union bound", "simulated"]

MOST_JOINT = 2 * 10**7
"""Errors held while many sums are simulated together."""
MANY = 50
"""Single cells from which on their laws are found all at once."""
SCALE_DRAWS = 2_000
"""Draws for the standard deviations, of their own."""


def interval_of(
    drawing: Drawing,
    counts: Ints,
    query: Query,
    level: float,
    *,
    minus: Query | None = None,
    over: Query | None = None,
    percent_of: Query | None = None,
    nonnegative: bool = False,
    method: Ask = "auto",
) -> Interval:
    """The interval for a number made of true numbers, from their published ones and the drawing.

    Given:       queries as `accuracy/queries.py` takes them; noise that sees no data, drawn exactly, or sums that the kept totals give,
                 which are known under every mechanism. 0 < level < 1. One at most of minus (the difference), over (the ratio) and
                 percent_of (100 times the ratio).
    Reference:   [theory T140], [theory T112]; [theory T143] for ratios.
    """
    check_level(level)
    if sum(other is not None for other in (minus, over, percent_of)) > 1:
        raise InvalidParameter("Ask for one thing: a difference (minus), a ratio (over) or a percentage (percent_of).")
    laws = ErrorLaws(drawing, method)
    universe = drawing.channel.facts.universe
    wanted = coefficients(query, universe)
    if minus is not None:
        wanted = wanted - coefficients(minus, universe)
    below = over if over is not None else percent_of
    if below is not None:
        scale = 1 if percent_of is None else 100
        return ratio_interval(drawing, laws, counts, wanted, coefficients(below, universe), float(level), scale, nonnegative)
    if nonnegative:
        check_nonnegative(drawing.channel.facts, wanted)
    cells = np.flatnonzero(wanted)
    published = cells, wanted[cells], laws.published_sum(counts, cells, wanted[cells])
    return around(drawing.channel.facts, published, laws.of(cells, wanted[cells]).reach(1 - level), float(level), nonnegative)


@dataclass(frozen=True, eq=False, repr=False)
class Intervals(Frames, Sequence[Interval]):
    """One interval for each sum. `joint` says how they hold together with probability `level`; None where each does for itself."""

    intervals: tuple[Interval, ...]
    level: float
    joint: Joint | None
    codes: Mapping[str, tuple[str, ...]] | None = None
    """The codes of each sum of a margin, by column or level."""
    names: tuple[str, ...] = ()
    """What each query of a list asks for."""
    labels: tuple[str | None, ...] | None = None
    """Where the table has labels: those of each sum, None where it has none."""

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
        """A pyarrow.Table: codes of a margin, or the query; its label where the table has labels; published number, low, high, method;
        answers and ratios as doubles, ends rounded outwards.
        """
        import pyarrow as pa

        whole = all(isinstance(end, int) for found in self for end in (found.published, found.low, found.high))
        columns: dict[str, tuple[str, ...]] = dict(self.codes or ({"query": self.names} if self.names else {}))
        own: dict[str, list[Any]] = {} if self.labels is None else {"label": list(self.labels)}
        for name in ("published", "low", "high"):
            own[name] = [getattr(found, name) if whole else found.doubles[name] for found in self]
        own["method"] = [found.method for found in self]
        return pa.table({**columns, **{free_name(name, columns, "interval"): pa.array(values) for name, values in own.items()}})

    def to_fields(self) -> dict[str, Any]:
        """As plain values."""
        listed = []
        for name, codes, label, found in zip(self.sum_names, self.rows or [{}] * len(self), self._labels, self, strict=True):
            known = {"codes": codes} if codes else {}
            listed.append({"name": name, **known, **({} if label is None else {"label": label}), **found.to_fields()})
        return {"level": self.level, "joint": self.joint, "intervals": listed}

    @property
    def sum_names(self) -> list[str]:
        """What each sum is called by its query or its codes."""
        return list(self.names) or [name_of(codes.items()) for codes in self.rows or [{}] * len(self)]

    @property
    def _labels(self) -> Sequence[str | None]:
        return self.labels or [None] * len(self)

    def for_screen(self, nonnegative: bool | None) -> NamedIntervals:
        """What a screen shows: labels where there are some. `nonnegative`: whether that was used; None where it cannot be."""
        names = tuple(label or name for label, name in zip(self._labels, self.sum_names, strict=True))
        return NamedIntervals(names, tuple(found.plain for found in self), self.level, self.joint, nonnegative)

    @property
    def rows(self) -> list[dict[str, str]]:
        """The codes of each sum of a margin."""
        codes = self.codes or {}
        return [dict(zip(codes, row, strict=True)) for row in zip(*codes.values(), strict=True)]

    def __repr__(self) -> str:
        together = "each for itself" if self.joint is None else f"together, {self.joint}"
        return f"Intervals({len(self)} sums, level {self.level:g}, {together})"


def intervals_of(
    drawing: Drawing,
    counts: Ints,
    queries: Query | Sequence[Query] | None,
    level: float,
    *,
    by: str | Sequence[str] | None = None,
    simultaneous: bool = True,
    nonnegative: bool = False,
    method: Ask = "auto",
) -> Intervals:
    """Intervals for queries, or with `by` for all sums of a margin: names of columns, or of levels of hierarchies. With both, the sums of
    the margin are over the cells that the one query asks for.

    Reference:   [theory T140], [theory T144].
    """
    check_level(level)
    if queries is None and by is None:
        raise InvalidParameter("Give queries, or the columns of a margin with by=..., or a condition and a margin.")
    laws, facts, alpha = ErrorLaws(drawing, method), drawing.channel.facts, 1 - float(level)
    codes: dict[str, tuple[str, ...]] | None = None
    names: tuple[str, ...] = ()
    several = None
    if by is not None:
        numbers, codes = margin_cells(list(by) if isinstance(by, Iterable) and not isinstance(by, str) else [by], facts.universe)
        if queries is None:
            sums, several = _margin(numbers, counts, laws, np.arange(len(counts))), laws.of_margin(numbers)
            labels = margin_labels(codes, facts.universe)
        else:
            inside = _cells_asked(queries, facts.universe)
            sums, labels = _margin(numbers, counts, laws, inside), None
            codes = {name: tuple(own[k] for k in np.unique(numbers[inside]).tolist()) for name, own in codes.items()}
            names = tuple(f"{name_of(zip(codes, row, strict=True))}, {queries}" for row in zip(*codes.values(), strict=True))
    else:
        sums, names, labels = _list_sums(queries, facts.universe, counts, laws)
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
    made = (around(facts, one, reach, float(level), nonnegative) for one, reach in zip(sums, reaches, strict=True))
    return Intervals(tuple(made), float(level), joint, codes, names, labels)


def _list_sums(
    queries: Query | Sequence[Query] | None, universe: Universe, counts: Ints, laws: ErrorLaws
) -> tuple[list[Sum], tuple[str, ...], tuple[str | None, ...] | None]:
    """The sums, their names, and their labels where the table has some."""
    one = isinstance(queries, str | Mapping | int | np.integer)
    asked = [queries] if one else list(queries) if isinstance(queries, Iterable) else []
    if not asked:
        raise InvalidParameter("Give a query, or a list of one query or more.")
    sums, names, labels = [], [], []
    for number, query in enumerate(asked, start=1):
        wanted = coefficients(query, universe)
        cells = np.flatnonzero(wanted)
        sums.append((cells, wanted[cells], laws.published_sum(counts, cells, wanted[cells])))
        names.append(query_name(query, universe) or unnamed_query(number))
        labels.append(query_label(wanted, universe))
    return sums, tuple(names), tuple(labels) if universe.labels.columns else None


def _cells_asked(query: Any, universe: Universe) -> Ints:
    """The cells that meet the one condition of a margin."""
    if not isinstance(query, str):
        raise InvalidParameter("The sums of a margin take one condition, as a text such as \"sex = 'F'\".", field="query")
    return np.flatnonzero(coefficients(query, universe))


def _margin(numbers: Ints, counts: Ints, laws: ErrorLaws, inside: Ints) -> list[Sum]:
    """The sum over these cells for each number."""
    order = inside[np.argsort(numbers[inside], kind="stable")]
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    groups = [(cells, np.ones(len(cells), dtype=np.int64)) for cells in np.split(order, starts[1:])]
    if not laws.target.publishes_cells:
        return [(cells, row, laws.published_sum(counts, cells, row)) for cells, row in groups]
    return [(*group, int(total)) for group, total in zip(groups, np.add.reduceat(counts[order], starts), strict=True)]


def _together(laws: ErrorLaws, sums: Sequence[Sum], each: Sequence[ErrorLaw], alpha: float) -> tuple[list[Reach], Joint]:
    moving = max(sum(not isinstance(law, KeptSum) for law in each), 1)
    if any(isinstance(law, SimulatedSum) and law.without_draws(alpha, moving) is None for law in each):
        return _simulate_reaches(laws, sums, each, alpha), "simulated"
    try:
        return [_reach_of(law, alpha, moving) for law in each], "union bound"
    except InvalidParameter:
        if moving == 1:
            raise
    raise InvalidParameter(
        f"For {moving:,} sums together at this level each needs one of {1 - alpha / moving:.12g}, too near 1 for sums of this noise. "
        "Ask for a lower level, for fewer sums, or for each by itself with simultaneous=False.",
        field="level",
    )


def _reach_of(law: ErrorLaw, alpha: float, moving: int) -> Reach:
    """For one of so many sums together, by the union bound."""
    known = law.without_draws(alpha, moving) if isinstance(law, SimulatedSum) else None
    return known or law.reach(alpha / moving)


def _laws(laws: ErrorLaws, sums: Sequence[Sum], simultaneous: bool) -> list[ErrorLaw]:
    """The law of each sum; refused at the first one, where they are too many to be simulated together."""
    out = []
    with step("Computing intervals", len(sums)) as tell:
        for cells, row, _ in sums:
            out.append(laws.of(cells, row))
            tell(len(out), len(sums))
            if simultaneous and isinstance(out[-1], SimulatedSum) and out[-1].count and len(sums) * DRAWS > MOST_JOINT:
                raise RequestTooLarge(
                    f"{len(sums):,} sums are too many to be simulated together: {MOST_JOINT // DRAWS:,} at most. Ask for fewer, or for "
                    "each by itself with simultaneous=False."
                )
    return out


def _simulate_reaches(laws: ErrorLaws, sums: Sequence[Sum], each: Sequence[ErrorLaw], alpha: float) -> list[Reach]:
    """The r-th smallest of the largest |error| / scale over the sums: any scales do that do not depend on these draws."""
    cells = np.unique(np.concatenate([own for own, _, _ in sums]))
    rows = np.zeros((len(sums), len(cells)), dtype=np.int64)
    for number, (own, row, _) in enumerate(sums):
        rows[number, np.searchsorted(cells, own)] = row
    parts = laws.parts(cells, rows)
    scales = laws.spreads(parts)
    if scales is None:
        count = min(SCALE_DRAWS, laws.draw_count(parts))
        scales = np.sqrt((laws.draws(parts, "scale of intervals", count).astype(np.float64) ** 2).mean(axis=1))
    errors = np.abs(laws.draws(parts))
    moving = np.array([not isinstance(law, KeptSum) for law in each])
    largest = (errors[moving] / np.maximum(scales[moving], 0.5)[:, None]).max(axis=0, initial=0.0)
    r = rank(1 - alpha, errors.shape[1])
    factor = float(np.partition(largest, r - 1)[r - 1]) * (1 + 1e-12)
    reaches = np.where(moving, np.floor(factor * np.maximum(scales, 0.5)), 0).astype(np.int64)
    return [
        Reach(int(reach), "simulated", None, DOUBT) if moves else Reach(0, "kept", 1.0, 0.0)
        for reach, moves in zip(reaches, moving, strict=True)
    ]
