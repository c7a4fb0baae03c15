"""`interval(release, query, level)`: where a true number lies, whatever it is, for readers of a folder too."""

from __future__ import annotations

import os
from typing import Any

from holdfast.analysis.published import Source, readable
from holdfast.publication.interval import Interval, interval_of
from holdfast.publication.queries import LEVEL, Query


def interval(
    release: Source, query: Query, level: float = LEVEL, *, signer: str | os.PathLike[str] | None = None, **asked: Any
) -> Interval:
    """As `Release.interval`, from a release, a loaded one, or its folder, which is verified first. `signer`: the public key (PEM) that must
    have signed the folder's card.
    """
    source = readable(release, signer)
    return interval_of(source.plan, source.table.counts, query, level, **asked)
