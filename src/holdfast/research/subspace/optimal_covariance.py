"""The best covariance a Gaussian mechanism can have for a linear query, in total squared error.

    minimise tr S   such that   v^T S^-1 v <= 1 for every change v.

Noise of covariance c^2 S keeps the promise of a Gaussian of sensitivity 1 and standard deviation c, and its error is c^2 tr S. The dual
problem is (max over weights of tr M(w)^(1/2))^2; from weights w follow S = s M(w)^(1/2) with s = the largest v^T M^(-1/2) v, and the bounds
(tr M^(1/2))^2 <= optimum <= s tr M^(1/2) ([theory T101]).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.research.subspace.changes import Changes
from holdfast.research.subspace.design import MAX_STEPS, best_weights
from holdfast.subspace.spaces import Floats

EXCESS = 1e-3


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of noise for sensitivity 1, in the coordinates of the changes: factor @ factor.T. `least` is a lower bound for any."""

    factor: Floats
    trace: float
    least: float


def optimal_covariance(changes: Changes, *, excess: float = EXCESS, most: int = MAX_STEPS) -> Covariance:
    """Guarantees:  every change has v^T S^-1 v <= 1, and tr S is at most (1 + excess) times `least`, up to rounding of doubles; with fewer
    steps than it takes, the two figures say how near it came."""
    design = best_weights(changes, "trace", excess, most)
    sizes, vectors = np.linalg.eigh(design.moment)
    roots = np.sqrt(np.maximum(sizes, 0.0))
    factor = vectors * np.sqrt(design.largest * roots)
    return Covariance(factor, design.largest * float(roots.sum()), design.mean**2)
