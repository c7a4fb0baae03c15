"""`interval(release, query, level)`: where a true number lies, whatever it is, for readers of a folder too."""

from __future__ import annotations

from typing import Any

from holdfast.research.analysis.published import Source, readable
from holdfast.publication.interval import Interval, interval_of
from holdfast.publication.queries import LEVEL, Query


def interval(release: Source, query: Query, level: float = LEVEL, **asked: Any) -> Interval:
    """As `Release.interval`, from a release, a loaded one, or its folder, which is verified first."""
    source = readable(release)
    return interval_of(source.plan, source.table.counts, query, level, **asked)
