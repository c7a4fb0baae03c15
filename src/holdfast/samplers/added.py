"""Noise that sees no data, in the place of a sampler that reads counts."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.randomness import Words
from holdfast.samplers.protocol import BlockSampler, Ints


@dataclass(frozen=True)
class Added:
    """Publishes counts + noise: for blocks without bounds beside others that have some."""

    noise: BlockSampler

    @property
    def name(self) -> str:
        return self.noise.name

    @property
    def cells(self) -> int:
        return self.noise.cells

    @property
    def expected_tries(self) -> float:
        return self.noise.expected_tries

    def publish(self, counts: Ints, cell_keys: Ints | None, words: Words) -> Ints:
        return counts + self.noise.draw(len(counts), words)
