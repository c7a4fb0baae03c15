"""Weights on the changes of a query that make the most of a criterion: the smallest ellipsoid, and the best Gaussian covariance.

Legend: w weights of sum 1; M = M(w) = sum of w v v^T over all changes v (research/subspace/changes.py); m their dimension.

    criterion   maximised         gradient at v (its mean under w)    at the optimum
    "volume"    log det M         v^T M^-1 v      (m)                 no change has more than the mean
    "trace"     tr M^(1/2)        v^T M^(-1/2) v  (tr M^(1/2))        no change has more than the mean

Both are concave in w, so the largest gradient over its mean bounds what is still to be gained: excess = max / mean - 1 is a certificate
that needs no trust in how w was found ([theory T100]).

Algorithm:   w <- w * gradient^power, scaled to sum 1, with power 1 ("volume") and 2 ("trace"); where a step would lose, the power is
             halved. Weights stay above 0, and nothing has to be proved about the way: the excess says how good they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.research.subspace.changes import Changes
from holdfast.subspace.spaces import Floats

Criterion = Literal["volume", "trace"]

MAX_STEPS = 100_000
"""Steps after which the search ends with the excess it has reached."""
POWERS: dict[Criterion, float] = {"volume": 1.0, "trace": 2.0}


@dataclass(frozen=True, eq=False)
class Design:
    """Weights, their moment matrix M and the form X that gives the gradient: M^-1 or M^(-1/2)."""

    weights: Floats
    moment: Floats
    form: Floats
    mean: float
    """Mean of v^T X v under the weights: m, or tr M^(1/2)."""
    largest: float
    """Largest v^T X v over all changes."""
    steps: int

    @property
    def excess(self) -> float:
        """max / mean - 1 >= 0; 0 at the optimum."""
        return max(0.0, self.largest / self.mean - 1)


def best_weights(changes: Changes, criterion: Criterion, excess: float, most: int = MAX_STEPS) -> Design:
    """Weights whose excess is at most this, or as small as it was after `most` steps.

    Guarantees:  `largest` and `mean` are those of the weights returned, up to rounding of doubles.
    """
    if not 0 < excess < 1:
        raise InvalidParameter(f"An excess is between 0 and 1, such as 0.001. Got {excess}.")
    evaluate = _FORMS[criterion]
    weights, power, steps = changes.uniform, POWERS[criterion], 0
    moment = changes.moment(weights)
    form, value, mean = evaluate(moment)
    while True:
        gradient = changes.squares(form)
        largest = float(gradient.max())
        if largest <= (1 + excess) * mean or steps >= most or power < 1e-3:
            return Design(weights, moment, form, mean, largest, steps)
        steps += 1
        tried = weights * (gradient / largest) ** power
        tried /= tried.sum()
        tried_moment = changes.moment(tried)
        tried_form, tried_value, tried_mean = evaluate(tried_moment)
        if tried_value < value - 1e-12 * abs(value):
            power /= 2
            continue
        weights, moment, form, value, mean = tried, tried_moment, tried_form, tried_value, tried_mean


def _volume(moment: Floats) -> tuple[Floats, float, float]:
    return np.asarray(np.linalg.inv(moment), dtype=np.float64), float(np.linalg.slogdet(moment)[1]), float(len(moment))


def _trace(moment: Floats) -> tuple[Floats, float, float]:
    sizes, vectors = np.linalg.eigh(moment)
    roots = np.sqrt(np.maximum(sizes, sizes[-1] * 1e-30))
    return np.asarray((vectors / roots) @ vectors.T), float(roots.sum()), float(roots.sum())


_FORMS: dict[Criterion, Callable[[Floats], tuple[Floats, float, float]]] = {"volume": _volume, "trace": _trace}
