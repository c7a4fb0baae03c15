"""Continuous Laplace noise given the kept totals and bounds, in floating point: for research, never for a release."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from holdfast.errors import InvalidParameter, NoExactSampler
from holdfast.exact.parameters import Exact, sample_size
from holdfast.privacy.parameters import budget
from holdfast.research.baselines.post_processing import Floats, dense_rows, numbers, tolerance

MAX_TRIES = 1 << 24
"""Cells drawn in all before a draw is given up."""


@dataclass(frozen=True, init=False)
class ContinuousConditional:
    """Law:         y with density proportional to exp(-epsilon |y - x|_1) over real tables with the kept totals of x and within bounds,
                 with respect to length, area, ... on that set: the Laplace mechanism conditioned on its totals.
    Guarantees:  none: floating point. Low-order bits of such draws are known to give counts away, so it is no mechanism, has no promise
                 to book, and `hf.release` refuses it. Its use is to compare laws.
    Reference:   [GM20] Definition 1.1 and Theorem 2.1, which says how the limit for an event of probability 0 is meant.
    """

    epsilon: Fraction
    status: ClassVar[Literal["floating point"]] = "floating point"

    def __init__(self, epsilon: Exact) -> None:
        object.__setattr__(self, "epsilon", budget(epsilon, "epsilon"))

    def log_weight(self, published: Any, counts: Any) -> float:
        """ln of the density at `published` without its normaliser, whether or not it keeps totals and bounds."""
        x = np.asarray(counts, dtype=np.float64)
        return -float(self.epsilon) * float(np.abs(numbers(published, x.size, "published") - x).sum())

    def sample(self, counts: Any, rows: Any, n: int, *, seed: int, lower: float | None = None, upper: float | None = None) -> Floats:
        """n draws, one a row. rows: a Lattice, or a matrix; bounds hold for every cell.

        Algorithm:   all cells but as many as there are independent rows are drawn from Laplace laws cut at the bounds; the others follow,
                     and the draw is kept if they are within bounds, with probability exp(-epsilon |what they changed|_1).
        """
        matrix, rate = dense_rows(rows), float(self.epsilon)
        x = numbers(counts, matrix.shape[1], "counts")
        low = np.full(x.shape, -np.inf if lower is None else lower) - x
        high = np.full(x.shape, np.inf if upper is None else upper) - x
        if (low > 0).any() or (high < 0).any():
            raise InvalidParameter("The table itself is outside the bounds. Correct the bounds or the table.")
        free, pivots, follow = _followers(matrix)
        random = np.random.default_rng(seed)
        wanted, found, tried = sample_size(n), [np.zeros((0, x.size))], 0
        edges = np.array([_cut_cdf(rate * low[free]), _cut_cdf(rate * high[free])])
        while (have := sum(map(len, found))) < wanted:
            batch = min(max(256, 2 * (wanted - have)), 1 << 14)
            tried += batch * x.size
            if tried > MAX_TRIES:
                raise NoExactSampler("Too few draws were kept: these totals and bounds are too narrow for this sampler. Use fewer cells.")
            z = np.zeros((batch, x.size))
            z[:, free] = _quantile(random.uniform(size=(batch, len(free))) * (edges[1] - edges[0]) + edges[0]) / rate
            z[:, pivots] = z[:, free] @ follow.T
            within = ((z[:, pivots] >= low[pivots]) & (z[:, pivots] <= high[pivots])).all(axis=1)
            kept = within & (random.uniform(size=batch) < np.exp(-rate * np.abs(z[:, pivots]).sum(axis=1)))
            found.append(x + z[kept])
        return np.asarray(np.concatenate(found)[:wanted])


def _followers(matrix: Floats) -> tuple[Any, Any, Floats]:
    """(cells drawn, cells that follow, F): a move has z[follow] = F z[drawn]."""
    from scipy.linalg import qr

    _, triangle, order = qr(matrix, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > tolerance(matrix)).sum())
    follow = -np.linalg.solve(triangle[:rank, :rank], triangle[:rank, rank:])
    return order[rank:], order[:rank], follow


def _cut_cdf(t: Floats) -> Floats:
    """P[u <= t], u of density exp(-|u|) / 2."""
    return np.asarray(np.where(t < 0, np.exp(np.minimum(t, 0.0)) / 2, 1 - np.exp(-np.maximum(t, 0.0)) / 2))


def _quantile(p: Floats) -> Floats:
    return np.asarray(np.where(p < 0.5, np.log(2 * np.maximum(p, 1e-300)), -np.log(2 * np.maximum(1 - p, 1e-17))))
