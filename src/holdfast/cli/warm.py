"""Compile the hot loops once and leave them in Numba's cache: `holdfast warm`, for an image or a service, so that no user waits for it."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np

from holdfast.chains.kernels import KERNELS, kernel_for
from holdfast.chains.protocol import Kernel, StatePair
from holdfast.exact import DiscreteGaussian
from holdfast.exact.compiled import COLD_THRESHOLD
from holdfast.lattices.shapes import Grid, Levels, OneSum, Whole
from holdfast.lattices.trees import Tree
from holdfast.laws import Gaussian, L1Laplace, L2Laplace
from holdfast.randomness import NoiseKey
from holdfast.samplers.bounded_block import BoundedBlock
from holdfast.samplers.bounded_classes import COLD_CELLS, BoundedClasses
from holdfast.samplers.coupling.sampler import CouplingLaplace
from holdfast.samplers.dyadic_gaussian import DyadicGaussian
from holdfast.samplers.levels_gaussian import LevelsGaussian, SequentialGaussian
from holdfast.samplers.nearest_plane import NearestPlane
from holdfast.samplers.one_sum_laplace import OneSumLaplace
from holdfast.samplers.protocol import BlockSampler
from holdfast.samplers.rounded_projection import RoundedGrid, RoundedGrid2, RoundedLevels, RoundedOneSum
from holdfast.samplers.tree_gaussian import TreeGaussian
from holdfast.views.network import Network


def warm() -> float:
    """Run every compiled loop on the argument types it will meet; returns the seconds it took."""
    began = time.perf_counter()
    with NoiseKey.for_tests("warm") as key:
        for sigma_squared in (100, 10**12, 10**30):  # one table, two words a try, three words a try
            DiscreteGaussian(sigma_squared).sample(COLD_THRESHOLD, key)
        _warm_samplers(key)
        _warm_chains(key)
        _warm_bounds(key)
    Network(np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3])).nearest_table(np.array([-2, 4, 5, 1]), 1, nonnegative=True)
    return time.perf_counter() - began


def _warm_samplers(key: NoiseKey) -> None:
    quarter, hundred = Fraction(1, 4), Fraction(100)
    levels = Levels((Tree(((3,), (4, 5, 6))), Tree.plain(40)), ((0, 1), (1, 0)))
    samplers: list[BlockSampler] = [
        OneSumLaplace(5000, Fraction(1)),  # values of one byte
        OneSumLaplace(5000, Fraction(1, 20)),  # values of four
        SequentialGaussian((5000,), hundred),
        SequentialGaussian((100, 100), hundred),
        SequentialGaussian((20, 20, 20), hundred),
        DyadicGaussian(10_000, hundred),
        RoundedOneSum(5000, quarter),
        RoundedGrid2((60, 60), quarter),
        RoundedGrid((20, 20, 20), quarter),
        LevelsGaussian(levels, hundred),
        RoundedLevels(levels, quarter),
        TreeGaussian(Tree(((3,),)), (2,), (frozenset({0}), frozenset()), {(level, mask): quarter for level in (0, 1) for mask in (0, 1)}),
        NearestPlane(np.array([[1, 0], [-1, 1], [0, -1]]), quarter),
        CouplingLaplace.of_grid((3, 3), quarter),
        CouplingLaplace.of_rows([[1, 2, 3, 1, 0], [0, 1, 1, 2, 1]], quarter),
    ]
    for number, sampler in enumerate(samplers):
        with key.stream("sampler", number) as words:
            sampler.draw(2 if sampler.cells > 100 or isinstance(sampler, CouplingLaplace) else 4000, words)


def _warm_chains(key: NoiseKey) -> None:
    quarter = Fraction(1, 4)
    kernels: list[Kernel] = [
        kernel_for(name, Grid((3, 3)), law) for name in KERNELS for law in (L1Laplace(quarter), Gaussian(Fraction(10)))
    ]
    kernels.append(kernel_for("line_gibbs", OneSum(4), L1Laplace(quarter)))
    kernels += [kernel_for(name, Whole((OneSum(3),)), L2Laplace(quarter)) for name in ("metropolis", "line_gibbs")]
    for number, kernel in enumerate(kernels):
        with key.stream("kernel", number) as words:
            state, _ = kernel.run(kernel.start(words), 100, words)
            kernel.couple().run(StatePair(state, kernel.start(words)), 100, words)


def _warm_bounds(key: NoiseKey) -> None:
    """What draws within bounds."""
    half, table = Fraction(1, 2), np.full(9, 2)
    block = BoundedBlock.plain(np.ones((1, 9), dtype=np.int64))
    with key.stream("bounds") as words:
        BoundedClasses(block, half).publish(np.tile(table, (COLD_CELLS // 9 + 1, 1)), None, words)


if __name__ == "__main__":
    print(f"compiled loops ready ({warm():.1f} s)")
