"""`interval(release, query, level)`: where a true number lies, whatever it is, for readers of a folder too."""

from __future__ import annotations

from holdfast.analysis.published import Source, published
from holdfast.publication.interval import Interval, interval_of
from holdfast.publication.queries import Query


def interval(release: Source, query: Query, level: float) -> Interval:
    """As `Release.interval`, from a release, or from its folder, which is verified first."""
    source = published(release)
    return interval_of(source.plan, source.counts, query, level)
