"""The smallest ellipsoid around all changes, centred at 0, with a certificate of how small it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from holdfast.research.subspace.changes import Changes
from holdfast.research.subspace.design import MAX_STEPS, best_weights
from holdfast.subspace.spaces import Floats

EXCESS = 1e-3
"""How far the largest change may be above the mean: by this much the squared radii are within 1 + EXCESS of the smallest ellipsoid's."""


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """{y : y^T matrix^-1 y <= 1}, which holds every change.

    Guarantees:  log_volume_gap: the log volume is at most this much above that of the smallest such ellipsoid ([theory T100]); all in
                 floating point.
    """

    matrix: Floats
    weights: Floats
    log_volume_gap: float

    @property
    def dimension(self) -> int:
        return len(self.matrix)


def enclosing_ellipsoid(changes: Changes, *, excess: float = EXCESS, most: int = MAX_STEPS) -> Ellipsoid:
    """The ellipsoid of M = M(w) for the best weights w, scaled until it holds every change: matrix = largest M."""
    design = best_weights(changes, "volume", excess, most)
    gap = changes.dimension / 2 * math.log1p(design.excess)
    return Ellipsoid(design.largest * design.moment, design.weights, gap)
