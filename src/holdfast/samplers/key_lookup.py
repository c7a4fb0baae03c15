"""What is published by the cell key method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.cellkey.perturb import add_noise
from holdfast.laws import Keyed
from holdfast.randomness import Words
from holdfast.samplers.protocol import Ints


@dataclass(frozen=True)
class KeyLookup:
    """Looks the noise of each cell up. No random word is read: the key decides."""

    target: Keyed

    name, cells, expected_tries = "lookup by cell key", 1, 1.0

    def publish(self, counts: Ints, cell_keys: Ints | None, words: Words) -> Ints:
        assert cell_keys is not None
        rule = self.target.rule
        folded = rule.fold((cell_keys.ravel() % rule.modulus).astype(np.uint64))
        return add_noise(counts.ravel(), folded, self.target.table).reshape(counts.shape)
