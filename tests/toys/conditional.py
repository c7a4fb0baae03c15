"""A mechanism whose noise reads the counts: the double geometric law conditioned on the kept total and on counts of zero or more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from holdfast.channels import Channel, Facts
from holdfast.exact.balls import ball
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import Exact
from holdfast.lattices import Lattice
from holdfast.lattices.shapes import OneSum
from holdfast.laws import Reads, Target
from holdfast.mechanisms import Mechanism, keys, register
from holdfast.mechanisms.keys import InvalidKey
from holdfast.mechanisms.mechanism import promise
from holdfast.privacy.parameters import budget
from holdfast.randomness import Words
from holdfast.research.laws import BallSource, TableLaw
from holdfast.samplers.choice import Choice, Reason
from holdfast.samplers.protocol import Ints
from holdfast.tables.columns import CellKeySums


@dataclass(frozen=True)
class Conditioned(Target):
    """P[y] proportional to exp(-epsilon |y - x|_1 / 2) over tables y >= 0 with the kept totals of x.

    The normaliser depends on x and changes by at most the same factor again: pure, epsilon per unit of l1 distance.
    """

    epsilon: Fraction
    reads = Reads.COUNTS

    @property
    def fields(self) -> tuple[str | int, ...]:
        return ("toy conditional", str(self.epsilon))

    @property
    def formula(self) -> str:
        return f"P[y] proportional to exp(-{self.epsilon / 2} |y - x|_1) over tables y of counts with the kept totals"

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return float("-inf") if t > 2**40 else 0.0  # no published count passes its total


@dataclass(frozen=True)
class ByEnumeration:
    """Lists every table with the total of a block: for blocks of a few people."""

    cells: int
    epsilon: Fraction
    name = "every table listed"
    expected_tries = 1.0

    def publish(self, counts: Ints, cell_keys: CellKeySums | None, words: Words) -> Ints:
        return np.array([self._one(row, words) for row in counts.tolist()], dtype=np.int64)

    def _one(self, row: list[int], words: Words) -> tuple[int, ...]:
        tables = list(compositions(sum(row), self.cells))
        distances = [sum(abs(a - b) for a, b in zip(table, row, strict=True)) for table in tables]
        weights = BallSource(0, len(tables) - 1, lambda k: (ball(-self.epsilon * distances[k] / 2)).exp())
        law = TableLaw(weights, row=tuple(row), epsilon=self.epsilon)
        return tables[int(law.draw(1, words)[0])]


def compositions(total: int, cells: int) -> Iterator[tuple[int, ...]]:
    """Every table of counts with this total."""
    if cells == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in compositions(total - first, cells - 1))


@dataclass(frozen=True, init=False, repr=False)
class ToyConditional(Mechanism):
    """Counts of zero or more, kept totals exact; small blocks under one total only."""

    epsilon: Fraction

    name = "toy-conditional"
    run_file_keys = (keys.Key("epsilon", keys.budget, '"0.25"', required=True),)

    def __init__(self, *, epsilon: Exact) -> None:
        self._set(epsilon=budget(epsilon, "epsilon"))

    @classmethod
    def from_run_file(cls, values: Mapping[str, Any], per: str | None) -> Self:
        if per != "distance":
            raise InvalidKey("per", 'this mechanism takes epsilon for one unit of distance. Write per = "distance".')
        return cls(epsilon=values["epsilon"])

    @property
    def parameters(self) -> dict[str, str]:
        return {"epsilon": format_exact(self.epsilon), **self._per_field}

    def make_channel(self, facts: Facts) -> Channel:
        return Channel(facts, Conditioned(self.epsilon), promise(facts, "pure", "l1", epsilon=self.epsilon))


def _prepare(shape: OneSum, target: Conditioned) -> Choice:
    return Choice(ByEnumeration(shape.size, target.epsilon), Reason.OTHER)


register(ToyConditional, {(OneSum, Conditioned): _prepare})
