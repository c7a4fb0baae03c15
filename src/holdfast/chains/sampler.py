"""A chain in the place of a sampler: a fixed number of steps, found beforehand from coupled chains that saw no data."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.assessment import Assessed, Said, as_said, assess_all, sweeps_phrase
from holdfast.chains.kernels import chain_seed, kernel_for
from holdfast.chains.meeting import Progress
from holdfast.chains.protocol import Kernel
from holdfast.lattices.shapes import Shape
from holdfast.laws import Target
from holdfast.randomness import Words

BETWEEN_SWEEPS = 2
"""Sweeps between two tables of one chain, where many are wanted and need not be independent."""


class ChainSampler:
    """A kernel run for the assessed number of steps from its starting law (implements `samplers.protocol.BlockSampler`).

    Law:         that of the chain after so many steps; its total variation distance from the target was estimated, not proved, to be at
                 most `assessment.eta`.
    """

    def __init__(self, kernel: Kernel, assessment: Assessed) -> None:
        self.kernel, self.assessment = kernel, assessment

    @property
    def name(self) -> str:
        return f"{self.kernel.name}, {sweeps_phrase(self.assessment.sweeps)}"

    @property
    def cells(self) -> int:
        return self.kernel.target.cells

    @property
    def expected_tries(self) -> float:
        """Nothing is thrown away."""
        return 1.0

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent runs."""
        out = np.empty((n, self.cells), dtype=np.int64)
        for row in out:
            state, _ = self.kernel.run(self.kernel.start(words), self.assessment.steps, words)
            row[:] = self.kernel.cells_of(state)
        return out

    def along(self, n: int, words: Words) -> NDArray[np.int64]:
        """n tables of ONE chain, two sweeps apart: for figures about the law, never for a release."""
        out = np.empty((n, self.cells), dtype=np.int64)
        state, _ = self.kernel.run(self.kernel.start(words), self.assessment.steps, words)
        for row in out:
            row[:] = self.kernel.cells_of(state)
            state, _ = self.kernel.run(state, BETWEEN_SWEEPS * self.kernel.steps_per_sweep, words)
        return out


known_samplers: dict[tuple[tuple[tuple[str, Shape], ...], Target, Fraction], tuple[ChainSampler, ...]] = {}
"""Chains assessed in this process: a plan and the release after it assess once."""


def chain_samplers(
    asked: tuple[tuple[str, Shape], ...], target: Target, eta: Fraction, progress: Progress | None = None
) -> tuple[ChainSampler, ...]:
    """The chain of each name for blocks of its shape, all assessed to eta; this may take minutes.

    Given:  `progress` is called with (pairs done, pairs in all); whatever it raises stops the assessment.
    """
    wanted = (asked, target, eta)
    if wanted not in known_samplers:
        kernels = [(kernel_for(name, shape, target), chain_seed(name, shape, target)) for name, shape in asked]
        found = assess_all(kernels, eta=eta, progress=progress)
        known_samplers[wanted] = tuple(ChainSampler(kernel, assessment) for (kernel, _), assessment in zip(kernels, found, strict=True))
    return known_samplers[wanted]


def chains_as_said(asked: tuple[tuple[str, Shape], ...], target: Target, eta: Fraction, said: Sequence[Said]) -> tuple[ChainSampler, ...]:
    """The same chains, their pairs as a card says that they met: nothing is assessed, for readers who check what follows from it."""
    kernels = [kernel_for(name, shape, target) for name, shape in asked]
    return tuple(
        ChainSampler(kernel, as_said(kernel, eta=eta, shapes=len(asked), said=one)) for kernel, one in zip(kernels, said, strict=True)
    )
