"""A chain in the place of a sampler: which steps it makes, and at what it aims."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.chains.sampler import BETWEEN_SWEEPS, ChainSampler
from holdfast.lattices import Lattice
from holdfast.randomness import NoiseKey, Stream

from .toy import Refresh

GRID = Lattice(np.vstack([np.kron(np.eye(2, dtype=int), np.ones(3, dtype=int)), np.kron(np.ones(2, dtype=int), np.eye(3, dtype=int))]))


def words() -> Stream:
    return NoiseKey.for_tests("sampler").stream("a")


@pytest.fixture
def sampler() -> ChainSampler:
    assessment: Any = SimpleNamespace(steps=7, sweeps=3)
    return ChainSampler(Refresh(sixteenths=4, values=1 << 16, steps_per_sweep=3), assessment)


def test_draws_are_separate_runs_of_the_assessed_number_of_steps(sampler: ChainSampler) -> None:
    with words() as stream:
        drawn, end = sampler.draw(5, stream), stream.position
    with words() as stream:
        for row in drawn:
            assert np.array_equal(row, sampler.kernel.run(sampler.kernel.start(stream), 7, stream)[0])
        assert stream.position == end


def test_tables_along_one_chain_come_after_the_same_steps(sampler: ChainSampler) -> None:
    with words() as stream:
        along = sampler.along(4, stream)
    with words() as stream:
        state, _ = sampler.kernel.run(sampler.kernel.start(stream), 7, stream)
        for row in along:
            assert np.array_equal(row, state)
            state, _ = sampler.kernel.run(state, 3 * BETWEEN_SWEEPS, stream)


@pytest.mark.parametrize(
    "mechanism",
    [
        hf.GeneralizedLaplace(epsilon="1/2", sampler="line_gibbs", eta="3/100", per="distance"),
        hf.GeneralizedLaplace(epsilon="1/2", norm="l2", sampler="line_gibbs", eta="3/100", per="distance"),
        hf.GeneralizedGaussian(epsilon=1, delta="1e-6", sampler="line_gibbs", eta="3/100", per="distance"),
    ],
    ids=str,
)
def test_a_chain_aims_at_the_law_promised(mechanism: Any) -> None:
    law = mechanism.law(GRID)
    (task,) = law.channel.tasks()
    (cells,) = task.cells
    sampler = law.drawing.choice(task.shape).sampler
    assert isinstance(sampler, ChainSampler)
    target = sampler.kernel.target
    for z in (np.array([1, -1, 0, -1, 1, 0]), np.array([3, -1, -2, -3, 1, 2])):
        energy = target.energy(z[cells])
        exponent = float(target.decay.rate) * (energy**0.5 if target.decay.kind == "norm" else energy)
        assert law.log_weight(z) == pytest.approx(-exponent, rel=1e-12)
