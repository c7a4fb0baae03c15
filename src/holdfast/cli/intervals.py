"""What `holdfast interval` asks for: sums of cells that meet conditions, differences and ratios of them, or a margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.accuracy.interval_sets import Intervals
from holdfast.accuracy.queries import coefficients, query_label
from holdfast.errors import InvalidParameter
from holdfast.publication.publication import Publication
from holdfast.wording.intervals import asked_name


def asked_intervals(
    source: Publication,
    where: Sequence[str],
    by: Sequence[str],
    others: Mapping[str, str | None],
    level: float,
    simultaneous: bool,
    **how: Any,
) -> tuple[Intervals, bool | None]:
    """What the command line asks for: sums of cells that meet conditions, with or without another condition, or a margin, of all cells or
    of those that meet one condition; and whether it was used that counts are not below 0, None where it cannot be.
    """
    given = {name: other for name, other in others.items() if other is not None}
    if not where and not by:
        raise InvalidParameter("Ask for sums of cells with --where \"sex = 'F'\", or for all sums of a margin with --by county:sex.")
    if by and (given or len(where) > 1):
        raise InvalidParameter(
            "Sums of a margin (--by) take one condition (--where) and no --minus, --over or --percent-of. Ask for them by --where alone."
        )
    cut = bool(how.get("nonnegative")) if source.table.measure.nonnegative and "minus" not in given else None
    return _compute_intervals(source, where, by, given, level, simultaneous, **how), cut


def _compute_intervals(
    source: Publication,
    where: Sequence[str],
    by: Sequence[str],
    given: Mapping[str, Any],
    level: float,
    simultaneous: bool,
    **how: Any,
) -> Intervals:
    if by:
        return source.intervals(where[0] if where else None, by=by, level=level, simultaneous=simultaneous, **how)
    if not given:
        return source.intervals(where, level, simultaneous=simultaneous and len(where) > 1, **how)
    if simultaneous and len(where) > 1:
        raise InvalidParameter("Several differences, ratios or percentages do not hold at once, but each for itself. Say so with --each.")
    made = tuple(source.interval(query, level, **given, **how) for query in where)
    universe = source.table.universe
    ((word, other),) = given.items()
    names = tuple(asked_name(query, word, other) for query in where)
    labels = [[query_label(coefficients(query, universe), universe) for query in (one, other)] for one in where]
    called = tuple(None if label is None or beside is None else asked_name(label, word, beside) for label, beside in labels)
    return Intervals(made, float(level), None, names=names, labels=called)
