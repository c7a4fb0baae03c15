"""Variances of single blocks, for error statements: floats, no privacy rests on them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.sampler import ChainSampler
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.protocol import BlockSampler

PILOT_DRAWS, PILOT_CELLS = 10_000, 5_000_000
"""At most so many draws, and about so many cell draws, for a variance that has no closed form."""
CHAIN_DRAWS, BATCHES = 2_000, 40
"""Tables followed along one chain, two sweeps apart, and the batches from which their standard error is taken."""
MOMENT_POINTS = 1 << 12
"""Terms summed one by one. Beyond, larger steps are taken: still more than a hundred to a standard deviation of a smooth bell, whose sums
with different steps differ by less than rounding does (three cells and more: measured against exact sums)."""


def free_laplace_variance(epsilon: Fraction) -> float:
    """2 a / (1 - a)^2 with a = exp(-epsilon)."""
    rate = float(epsilon)
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


def one_sum_laplace_variance(cells: int, epsilon: Fraction) -> tuple[float, float]:
    """(variance of one cell of the l1 Laplace law on `cells` cells with sum zero, bound of its relative error).

    Given the common total S of the two compositions (math.md R4) a cell is the difference of two independent parts of a uniform
    composition, each of variance S (S + n) (n - 1) / (n^2 (n + 1)); S has weight (C(S + n - 1, S) a^S)^2.
    """
    n, rate = cells, float(epsilon)
    if n == 1:
        return 0.0, 0.0
    if n == 2:  # z and -z: one Laplace variable. The sum below has an edge at 0 that steps above one would feel (2e-7 off).
        return free_laplace_variance(2 * epsilon), 1e-14
    a = math.exp(-rate)
    middle = n * a / (1 - a)
    spread = math.sqrt(n * a) / (1 - a) + 1 / rate + 1
    low, high = max(0, math.floor(middle - 14 * spread)), math.ceil(middle + 14 * spread + 40 / rate)
    step = max(1, (high - low) // MOMENT_POINTS)
    points = range(low, high + 1, step)
    logs = np.array([2 * (math.lgamma(s + n) - math.lgamma(s + 1) - rate * s) for s in points])
    totals, weights = np.array(points, dtype=np.float64), np.exp(logs - logs.max())
    mean = float((weights * totals * (totals + n)).sum() / weights.sum())
    # A log-gamma of size g is off by less than g 2^-50; the weights' relative errors carry over to the mean.
    error = 8 * math.lgamma(high + n) * 2.0**-50 + 1e-12
    return 2 * mean * (n - 1) / (n**2 * (n + 1)), error


def public_draws(sampler: BlockSampler, n: int, words: Words) -> NDArray[np.int64]:
    """n draws for figures about the public law; a chain is followed instead of started anew n times, so that its draws are dependent."""
    return sampler.along(n, words) if isinstance(sampler, ChainSampler) else sampler.draw(n, words)


def estimated_variance(sampler: BlockSampler, name: str) -> tuple[float, float]:
    """(mean of z^2 over draws and cells, its relative standard error), from draws of the public law with a public key.

    Where all draws were zero nothing is known about the mean: its error is infinity.
    """
    squares = (_pilot_draws(sampler, name) ** 2).mean(axis=1)
    mean = float(squares.mean())
    return mean, float(_standard_error(squares, sampler)) / mean if mean > 0 else math.inf


def estimated_covariance(sampler: BlockSampler, name: str) -> tuple[NDArray[np.float64], float]:
    """(mean of z z^T, largest relative standard error of a cell's variance), from draws of the public law with a public key."""
    draws = _pilot_draws(sampler, name)
    squares = draws**2
    means = squares.mean(axis=0)
    errors = _standard_error(squares, sampler) / np.where(means > 0, means, 1.0)
    return draws.T @ draws / len(draws), float(np.where(means > 0, errors, math.inf).max())


def _standard_error(values: NDArray[np.float64], sampler: BlockSampler) -> NDArray[np.float64]:
    """Of the mean over the first axis; means of long batches where the draws of a chain depend on one another."""
    if isinstance(sampler, ChainSampler):
        values = values.reshape(BATCHES, -1, *values.shape[1:]).mean(axis=1)
    return np.asarray(values.std(axis=0, ddof=1) / math.sqrt(len(values)))


def _pilot_draws(sampler: BlockSampler, name: str) -> NDArray[np.float64]:
    cost = sampler.cells * max(sampler.expected_tries, 1.0)
    count = int(min(PILOT_DRAWS, max(PILOT_CELLS / cost, 100)))
    if isinstance(sampler, ChainSampler):
        count = CHAIN_DRAWS
    with NoiseKey.for_tests("expected error") as key, key.stream(name) as words:
        return public_draws(sampler, count, words).astype(np.float64)
