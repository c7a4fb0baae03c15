"""Every sampler of one law, exact ones and chains, must give the same spread.

One figure is compared, the mean energy: |z|_1 for the Laplace law, |z|_2^2 for the Gaussian and for the l2 norm. Each sampler's
mean comes with a standard error from batches, and is compared with the mean of all others, weighted by their precision. It disagrees where
the difference has a p-value below ALPHA divided by the number of samplers, by Student's law with the degrees of freedom of one sampler's
batches (the difference has more).

A sampler whose variance is off by 1 % has |z|_2^2 off by 1 % and |z|_1 by 0.5 %. The last test shows that this is caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import holdfast as hf
from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.metropolis import Metropolis
from holdfast.chains.moves import Swaps
from holdfast.chains.target import ChainTarget
from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Grid
from holdfast.randomness import NoiseKey
from holdfast.research.chains.diagnostics import TracedKernel
from holdfast.research.chains.lattices import line_gibbs_on, metropolis_on
from holdfast.samplers.klein import KleinGaussian
from holdfast.samplers.laplace_rejection import GridLaplace, PivotLaplace
from holdfast.samplers.levels_gaussian import SequentialGaussian
from holdfast.samplers.one_sum_laplace import OneSumLaplace
from holdfast.samplers.protocol import BlockSampler
from holdfast.testing import ALPHA

BATCHES = 400
QUARTER = Fraction(1, 4)


class Mean(NamedTuple):
    """A mean with its standard error, over BATCHES batches."""

    value: float
    standard_error: float

    def times(self, factor: float) -> Mean:
        return Mean(factor * self.value, factor * self.standard_error)


def mean_of(energies: NDArray[np.float64]) -> Mean:
    batches = energies[: len(energies) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1)
    return Mean(float(batches.mean()), float(batches.std(ddof=1)) / math.sqrt(BATCHES))


def exact(sampler: BlockSampler, draws: int, power: int, name: str) -> Mean:
    with NoiseKey.for_tests("agreement").stream(name) as words:
        z = sampler.draw(draws, words)
    return mean_of((np.abs(z).astype(np.float64) ** power).sum(axis=1))


def chain(kernel: TracedKernel, records: int, every: int, name: str) -> Mean:
    """One long chain; batches are hundreds of autocorrelation times long."""
    with NoiseKey.for_tests("agreement").stream(name) as words:
        state, _ = kernel.run(kernel.start(words), 200 * every, words)
        _, rows = kernel.trace(state, records, every, words)
    return mean_of(rows[:, 0].astype(np.float64))


def disagreements(means: dict[str, Mean]) -> list[str]:
    """Samplers that differ from the others, weighted by their precision, by more than chance allows."""
    from scipy import stats

    found = []
    for name, mean in means.items():
        others = [other for key, other in means.items() if key != name]
        weights = [other.standard_error**-2 for other in others]
        middle = sum(w * other.value for w, other in zip(weights, others, strict=True)) / sum(weights)
        t = abs(mean.value - middle) / math.hypot(mean.standard_error, sum(weights) ** -0.5)
        if 2 * stats.t.sf(t, BATCHES - 1) < ALPHA / len(means):
            found.append(f"{name}: {mean.value:.4f} and {middle:.4f}, {t:.1f} standard errors")
    return found


def table_laplace() -> dict[str, Mean]:
    """4 x 4, both margins kept."""
    target, shape = ChainTarget.laplace(16, QUARTER), Grid((4, 4))
    return {
        "rejection by rows": exact(GridLaplace((4, 4), QUARTER), 400_000, 1, "grid"),
        "line_gibbs, swaps": chain(LineGibbs(target, Swaps((4, 4))), 3_000_000, 9, "swaps"),
        "metropolis": chain(Metropolis.of_shape(target, shape, Fraction(1)), 2_000_000, 50, "metropolis"),
    }


def table_gaussian() -> dict[str, Mean]:
    """4 x 4, both margins kept, sigma_squared 12."""
    target, shape = ChainTarget.gaussian(16, 12), Grid((4, 4))
    lattice = Lattice(_margins())
    basis = np.array(lattice.basis)
    return {
        "one cell after the other": exact(SequentialGaussian((4, 4), Fraction(12)), 600_000, 2, "sequential"),
        "Klein": exact(KleinGaussian(basis, Fraction(12)), 400_000, 2, "klein"),
        "line_gibbs, swaps": chain(LineGibbs(target, Swaps((4, 4))), 600_000, 9, "swaps, squares"),
        "line_gibbs, basis": chain(line_gibbs_on(target, lattice), 1_000_000, 9, "basis, squares"),
        "metropolis": chain(Metropolis.of_shape(target, shape, Fraction(1)), 1_000_000, 50, "metropolis, squares"),
    }


def one_sum_laplace() -> dict[str, Mean]:
    """5 cells with one total."""
    target, rows = ChainTarget.laplace(5, QUARTER), np.ones((1, 5), dtype=np.int64)
    lattice = Lattice(rows)
    return {
        "corrected geometrics": exact(OneSumLaplace(5, QUARTER), 1_600_000, 1, "one sum"),
        "rejection on pivots": exact(PivotLaplace(rows, QUARTER), 1_600_000, 1, "pivots"),
        "line_gibbs, pairs": chain(LineGibbs(target, Swaps((5,))), 4_000_000, 4, "pairs"),
        "metropolis": chain(metropolis_on(target, lattice, Fraction(1)), 4_000_000, 20, "metropolis, one sum"),
    }


def three_sets_laplace() -> dict[str, Mean]:
    """14 cells, three overlapping sets kept: a block of no simpler shape."""
    rows = np.repeat(np.array([[1, 0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 0, 1, 1], [0, 0, 1, 0, 1, 1, 1]]), 2, axis=1)
    target, lattice = ChainTarget.laplace(14, QUARTER), Lattice(rows)
    return {
        "rejection on pivots": exact(PivotLaplace(rows, QUARTER), 400_000, 1, "pivots, sets"),
        "line_gibbs, basis": chain(line_gibbs_on(target, lattice), 1_000_000, 22, "basis, sets"),
        "metropolis": chain(metropolis_on(target, lattice, Fraction(1)), 1_000_000, 100, "metropolis, sets"),
    }


def one_sum_norm() -> dict[str, Mean]:
    """9 cells with one total, the l2 norm, epsilon 1."""
    target, lattice = ChainTarget.laplace(9, 1, "l2"), Lattice(np.ones((1, 9), dtype=np.int64))
    law = hf.GeneralizedLaplace(epsilon=1, norm="l2", per="distance").law(lattice)
    (task,) = law.channel.tasks()
    return {
        "rejection from l1": exact(law.drawing.choice(task.shape).noise, 800_000, 2, "l2"),
        "line_gibbs, pairs": chain(LineGibbs(target, Swaps((9,))), 700_000, 16, "pairs, l2"),
        "metropolis": chain(metropolis_on(target, lattice, Fraction(1)), 1_500_000, 60, "metropolis, l2"),
    }


def _margins() -> NDArray[np.int64]:
    eye, ones = np.eye(4, dtype=np.int64), np.ones(4, dtype=np.int64)
    return np.vstack([np.kron(eye, ones), np.kron(ones, eye)])


LAWS: dict[str, tuple[Callable[[], dict[str, Mean]], float]] = {
    "4 x 4, Laplace": (table_laplace, 1.005),
    "4 x 4, Gaussian": (table_gaussian, 1.01),
    "one sum, Laplace": (one_sum_laplace, 1.005),
    "three sets, Laplace": (three_sets_laplace, 1.005),
    "one sum, l2 norm": (one_sum_norm, 1.01),
}
"""The samplers of each law, and the factor on the mean energy of a law whose variance is 1 % too large."""


@pytest.mark.long
@pytest.mark.parametrize("law", LAWS)
def test_all_agree_and_one_percent_would_show(law: str) -> None:
    draw, factor = LAWS[law]
    means = draw()
    assert not disagreements(means)
    for name, mean in means.items():  # the same figures, one of them biased either way
        for bias in (factor, 1 / factor):
            assert disagreements(means | {name: mean.times(bias)}), f"1 % more variance in {name} would not be seen"
