"""The sequential law as far as it differs from the lattice law of the same form ([theory R22])."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.short_moves import form_variance
from holdfast.lattices.shapes import Shape
from holdfast.laws import Gaussian, LevelGaussian, Sequential, Target
from holdfast.samplers.protocol import BlockSampler, Ints, Reordered
from holdfast.samplers.steps import Steps
from holdfast.samplers.table import choose, steps_of

Floats = NDArray[np.float64]
MOST_CELLS = 1 << 22
"""In a larger block no form is followed through all steps: that would take seconds and gigabytes."""
ROUNDED = 1e-9
"""The relative error of projections in doubles is far smaller."""


def lattice_law(target: Target) -> Target:
    """The lattice law of the same form; any other law itself."""
    return target.of if isinstance(target, Sequential) else target


def sequential_steps(target: Target, shape: Shape) -> Steps:
    """The steps of a block that the sequential law draws; none of one that is drawn by another law."""
    if not isinstance(target, Sequential) or shape in target.by_lattice:
        return Steps()
    return steps_of(shape, target.of, in_groups=shape in target.in_groups)


def sequence_of(target: Target, shape: Shape, values: Ints) -> tuple[BlockSampler, Floats]:
    """(the sampler of a block, the covariances of a form with every cell in the order of that sampler)."""
    of, sampler, form = lattice_law(target), choose(shape, target).noise, values.astype(float)
    assert isinstance(of, Gaussian | LevelGaussian)
    covariances = of.form(shape).covariances(form)[0] if isinstance(of, LevelGaussian) else float(of.sigma_squared) * shape.project(form)[0]
    if isinstance(sampler, Reordered):
        return sampler.beneath, sampler.restore(covariances)
    return sampler, covariances


def tail_of(target: Target, shape: Shape, values: Ints) -> tuple[float, float]:
    """(E, s) of the sum of a block's errors times these values: |sum| > t + E has probability 2 exp(-t^2 / (2 s)) at most."""
    from holdfast.samplers.sequence_gaussian import SequenceGaussian

    of, steps = lattice_law(target), sequential_steps(target, shape)
    assert isinstance(of, Gaussian | LevelGaussian)
    variance = form_variance(of, shape, values)
    shift, proxy = steps.shift(variance), variance * (1 + float(steps.kappa)) * (1 + 1e-12)
    if steps.least is None or shape.size > MOST_CELLS:
        return shift, proxy
    sampler, covariances = sequence_of(target, shape, values[None])
    if not isinstance(sampler, SequenceGaussian):
        return shift, proxy
    found, excess = sampler.tail_of(covariances)
    return min(shift, found + ROUNDED * shift), min(proxy, variance + excess + ROUNDED * proxy)
