"""What a reader believes before reading: independent cells, which the kept totals then tie together.

A prior gives weights to counts of single cells. The belief about whole tables is their product over all tables with the published kept
totals, so weights need not sum to 1: independent Poisson cells, for instance, become a multinomial table.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Prior(ABC):
    """Weights of the counts of single cells; subclasses are frozen values."""

    @property
    def lower(self) -> int | None:
        """The smallest count of positive weight; None where there is none."""
        return 0

    @property
    def upper(self) -> int | None:
        """The largest; None where there is none."""
        return None

    @property
    def log_range(self) -> float:
        """By how much the logarithms of weights can differ where they have no order: 0 for weights that rise to one peak and fall."""
        return 0.0

    @abstractmethod
    def log_weights(self, counts: Ints, cells: Ints) -> Floats:
        """The logarithm of the weight of each count in the cell of that number; the two arrays are broadcast. -infinity outside."""


@dataclass(frozen=True)
class Flat(Prior):
    """Every count from `least` to `most` is equally likely: so is every table with the kept totals within these bounds. None: no bound."""

    least: int | None = 0
    most: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("least", self.least), ("most", self.most)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
                raise InvalidParameter(f"{name} is a whole number, or None for no bound. Got {type(value).__name__}.")
        if self.least is not None and self.most is not None and self.least > self.most:
            raise InvalidParameter(f"least = {self.least} is above most = {self.most}: no count is left. Exchange them.")

    @property
    def lower(self) -> int | None:
        return self.least

    @property
    def upper(self) -> int | None:
        return self.most

    def log_weights(self, counts: Ints, cells: Ints) -> Floats:
        inside = np.ones(np.broadcast_shapes(counts.shape, cells.shape), dtype=np.bool_)
        if self.least is not None:
            inside &= counts >= self.least
        if self.most is not None:
            inside &= counts <= self.most
        return np.where(inside, 0.0, -np.inf)


@dataclass(frozen=True)
class Poisson(Prior):
    """Poisson counts; `mean` is one number, or one for each cell in the order of the table."""

    mean: float | tuple[float, ...]

    def __init__(self, mean: float | Sequence[float]) -> None:
        object.__setattr__(self, "mean", _positive(mean, "mean"))

    def log_weights(self, counts: Ints, cells: Ints) -> Floats:
        k = np.maximum(counts, 0).astype(np.float64)
        mean = _of_cells(self.mean, cells)
        return np.where(counts >= 0, k * np.log(mean) - mean - _log_factorial(k), -np.inf)


@dataclass(frozen=True)
class NegativeBinomial(Prior):
    """Weights of k proportional to Gamma(size + k) / k! (mean / (mean + size))^k: counts of this mean, of variance mean + mean^2 / size.

    `mean` is one number, or one for each cell. NumPy's negative_binomial(n, p) has size n and mean n (1 - p) / p.
    """

    size: float
    mean: float | tuple[float, ...]

    def __init__(self, size: float, mean: float | Sequence[float]) -> None:
        object.__setattr__(self, "size", _positive(size, "size"))
        object.__setattr__(self, "mean", _positive(mean, "mean"))
        if isinstance(self.size, tuple):
            raise InvalidParameter("size is one number above 0.")

    def log_weights(self, counts: Ints, cells: Ints) -> Floats:
        k = np.maximum(counts, 0).astype(np.float64)
        mean = _of_cells(self.mean, cells)
        rising = _log_gamma(self.size + k) - math.lgamma(self.size) - _log_factorial(k)
        return np.where(
            counts >= 0, rising + k * np.log(mean / (mean + self.size)) + self.size * np.log(self.size / (mean + self.size)), -np.inf
        )


@dataclass(frozen=True)
class Listed(Prior):
    """Weights of the counts 0, 1, 2, ... of every cell; beyond the list they are 0."""

    weights: tuple[float, ...]

    def __init__(self, weights: Sequence[float]) -> None:
        found = tuple(float(weight) for weight in weights)
        if not found or not all(math.isfinite(weight) and weight >= 0 for weight in found) or not any(found):
            raise InvalidParameter("weights are numbers of zero or more, not all 0, for the counts 0, 1, 2 and so on.")
        object.__setattr__(self, "weights", found)

    @property
    def upper(self) -> int | None:
        return len(self.weights) - 1

    @property
    def log_range(self) -> float:
        positive = [weight for weight in self.weights if weight > 0]
        return math.log(max(positive)) - math.log(min(positive))

    def log_weights(self, counts: Ints, cells: Ints) -> Floats:
        with np.errstate(divide="ignore"):
            logs = np.log(np.array(self.weights))
        k = np.broadcast_to(counts, np.broadcast_shapes(counts.shape, cells.shape))
        inside = (k >= 0) & (k < len(logs))
        return np.where(inside, logs[np.where(inside, k, 0)], -np.inf)


def check_prior(prior: Any, cells: int) -> Prior:
    """A prior that fits a table of so many cells."""
    if not isinstance(prior, Prior):
        raise InvalidParameter(f"A prior is one of holdfast.research.priors, such as Flat(). Got {type(prior).__name__}.")
    mean = getattr(prior, "mean", 0.0)
    if isinstance(mean, tuple) and len(mean) != cells:
        raise InvalidParameter(f"The prior has {len(mean)} means, the table {cells} cells. Give one mean, or one for each cell.")
    return prior


def _positive(value: float | Sequence[float], name: str) -> float | tuple[float, ...]:
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.full(1, np.nan)
    if found.ndim > 1 or not found.size or not (np.isfinite(found).all() and (found > 0).all()):
        raise InvalidParameter(f"{name} is a number above 0, or a list with one for each cell.")
    return float(found) if found.ndim == 0 else tuple(found.tolist())


def _of_cells(values: float | tuple[float, ...], cells: Ints) -> Floats:
    return np.asarray(values if isinstance(values, float) else np.array(values)[cells], dtype=np.float64)


def _log_gamma(x: Floats) -> Floats:
    from scipy.special import gammaln

    return np.asarray(gammaln(x))


def _log_factorial(k: Floats) -> Floats:
    return _log_gamma(k + 1)
