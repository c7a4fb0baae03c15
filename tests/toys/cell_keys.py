"""A mechanism that reads cell keys: says of each cell whether anybody is in it, and turns the answer round for one key in four."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from holdfast.channels import Channel, Facts
from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Free
from holdfast.laws import Reads, Target
from holdfast.mechanisms import Mechanism, register
from holdfast.mechanisms.promise import promise
from holdfast.randomness import Words
from holdfast.samplers.choice import Choice, Reason
from holdfast.samplers.protocol import Ints

EPSILON = Fraction(11, 10)
"""ln 3 = 1.0986 for one answer, if keys are uniform and independent."""


@dataclass(frozen=True)
class Turned(Target):
    """y = 1 if x > 0 else 0, and 1 - y where the cell's key is a multiple of four."""

    reads = Reads.CELL_KEYS

    @property
    def fields(self) -> tuple[str | int, ...]:
        return ("toy cell keys", 4)

    @property
    def formula(self) -> str:
        return "y = [x > 0], turned round where the cell's key is a multiple of 4"

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return float("-inf") if t > 2**40 else 0.0


class Lookup:
    """No random word is read: the key decides."""

    name, cells, expected_tries = "key lookup", 1, 1.0

    def publish(self, counts: Ints, cell_keys: Ints | None, words: Words) -> Ints:
        assert cell_keys is not None
        return np.asarray((counts > 0) ^ (cell_keys % 4 == 0), dtype=np.int64)


@dataclass(frozen=True, repr=False)
class ToyCellKeys(Mechanism):
    """Randomised answers by cell key; for tables without kept totals. The keys decide: there is no budget to give."""

    name = "toy-cell-keys"
    has_budget = False

    @classmethod
    def from_run_file(cls, values: Mapping[str, Any], per: str | None) -> Self:
        return cls()

    @property
    def parameters(self) -> dict[str, str]:
        return {}

    def make_channel(self, facts: Facts) -> Channel:
        return Channel(facts, Turned(), promise(facts, "pure", "l1", epsilon=EPSILON))


register(ToyCellKeys, {(Free, Turned): lambda shape, target: Choice(Lookup(), Reason.OTHER)})
