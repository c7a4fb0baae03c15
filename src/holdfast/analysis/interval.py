"""`interval(release, query, level)`: where a true number lies, whatever it is, for readers of a folder too."""

from __future__ import annotations

from typing import Any

from holdfast.analysis.published import Source, readable
from holdfast.publication.interval import Interval
from holdfast.publication.interval_sets import interval_of
from holdfast.publication.queries import LEVEL, Query


def interval(release: Source, query: Query, level: float = LEVEL, **asked: Any) -> Interval:
    """As `Release.interval`, from a release, a loaded one, or its folder, which is verified first."""
    source = readable(release)
    return interval_of(source.plan, source.table.counts, query, level, **asked)
