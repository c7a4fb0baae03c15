"""Weights on the changes of a query that make the most of a criterion, and what follows from them: the smallest ellipsoid, the best
Gaussian covariance, and an error that no private mechanism goes below.

Legend: w weights of sum 1; M = M(w) = sum of w v v^T over all changes v (research/subspace/query.py); m their dimension.

    criterion   maximised         gradient at v (its mean under w)    at the optimum
    "volume"    log det M         v^T M^-1 v      (m)                 no change has more than the mean
    "trace"     tr M^(1/2)        v^T M^(-1/2) v  (tr M^(1/2))        no change has more than the mean

Both are concave in w, so the largest gradient over its mean bounds what is still to be gained: excess = max / mean - 1 is a certificate
that needs no trust in how w was found ([theory T100]).

Algorithm:   w <- w * gradient^power, scaled to sum 1, with power 1 ("volume") and 2 ("trace"); where a step would lose, the power is
             halved. Weights stay above 0, and nothing has to be proved about the way: the excess says how good they are.

Smallest ellipsoid: around all changes, centred at 0; the excess says how small it is.

Best covariance: of a Gaussian mechanism, in total squared error.

    minimise tr S   such that   v^T S^-1 v <= 1 for every change v.

Noise of covariance c^2 S keeps the promise of a Gaussian of sensitivity 1 and standard deviation c, and its error is c^2 tr S. The dual
problem is (max over weights of tr M(w)^(1/2))^2; from weights w follow S = s M(w)^(1/2) with s = the largest v^T M^(-1/2) v, and the bounds
(tr M^(1/2))^2 <= optimum <= s tr M^(1/2) ([theory T101]).

Lower bound: for every mechanism that is (epsilon, delta)-private for each pair of neighbours, its squared error at the worst database of
any size is at least (tr M(w)^(1/2))^2 / kappa for any weights w, with

    kappa(epsilon, delta) = 4 sinh^2(epsilon / 2) + 4 delta / (1 - delta) cosh^2(epsilon / 2)

([theory T102]). The best weights are those of the best Gaussian covariance, so a Gaussian of that covariance is within c^2 kappa of every
mechanism, whatever the query and its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.research.subspace.query import Changes
from holdfast.research.subspace.spaces import Floats

Criterion = Literal["volume", "trace"]

MAX_STEPS = 100_000
"""Steps after which the search ends with the excess it has reached."""
POWERS: dict[Criterion, float] = {"volume": 1.0, "trace": 2.0}

EXCESS = 1e-3
"""How far the largest change may be above the mean: by this much the squared radii are within 1 + EXCESS of the smallest ellipsoid's."""


@dataclass(frozen=True, eq=False)
class WeightDesign:
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


def best_weights(changes: Changes, criterion: Criterion, excess: float, most: int = MAX_STEPS) -> WeightDesign:
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
            return WeightDesign(weights, moment, form, mean, largest, steps)
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


@dataclass(frozen=True, eq=False)
class OptimalCovariance:
    """Covariance of noise for sensitivity 1, in the coordinates of the changes: factor @ factor.T. `least` is a lower bound for any."""

    factor: Floats
    trace: float
    least: float


def optimal_covariance(changes: Changes, *, excess: float = EXCESS, most: int = MAX_STEPS) -> OptimalCovariance:
    """Guarantees:  every change has v^T S^-1 v <= 1, and tr S is at most (1 + excess) times `least`, up to rounding of doubles; with fewer
    steps than it takes, the two figures say how near it came."""
    design = best_weights(changes, "trace", excess, most)
    sizes, vectors = np.linalg.eigh(design.moment)
    roots = np.sqrt(np.maximum(sizes, 0.0))
    factor = vectors * np.sqrt(design.largest * roots)
    return OptimalCovariance(factor, design.largest * float(roots.sum()), design.mean**2)


def information(epsilon: Fraction | float, delta: Fraction | float = 0) -> float:
    """kappa: the most that a neighbour's change can weigh against the covariance of the answers."""
    if not (epsilon > 0 and 0 <= delta < 1):
        raise InvalidParameter(f"epsilon is above 0, and delta at least 0 and below 1. Got {epsilon} and {delta}.")
    half, delta = float(epsilon) / 2, float(delta)
    return 4 * math.sinh(half) ** 2 + 4 * delta / (1 - delta) * math.cosh(half) ** 2


def least_squared_error(least_trace: float, epsilon: Fraction | float, delta: Fraction | float = 0) -> float:
    """The bound, from (tr M(w)^(1/2))^2: `least` of `optimal_covariance`."""
    return least_trace / information(epsilon, delta)
