"""What a sampler draws step after step, as centres and variances: its walk is taken once for each coordinate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from holdfast.samplers.classes import ClassGaussian
from holdfast.samplers.klein import ExactCoordinate, KleinGaussian
from holdfast.samplers.sequence_gaussian import SequenceGaussian
from holdfast.testing import SteppedLaw


def units(count: int) -> list[list[int]]:
    return np.eye(count, dtype=int).tolist()


def triangle(columns: Sequence[Sequence[Fraction]]) -> tuple[tuple[Fraction, ...], ...]:
    """The coefficients of every centre, from the centres that each unit vector gives."""
    return tuple(tuple(column[i] for column in columns[:i]) for i in range(len(columns)))


def cells_of(sampler: SequenceGaussian, values: Sequence[int], kept: Any = None) -> list[tuple[Fraction, Fraction]]:
    """(centre, variance) of every cell where these values are put."""
    found: list[tuple[Fraction, Fraction]] = []

    def choose(cell: Any) -> int:
        found.append((cell.centre, sampler.scale * cell.share))
        return values[len(found) - 1]

    sampler.sequence.walk(sampler.kept_sums if kept is None else kept, choose)
    return found


def groups_of(sampler: SequenceGaussian) -> tuple[int, ...]:
    """How many steps in a row are drawn together; () where each is drawn alone."""
    found: list[int] = []

    def choose(cell: Any) -> int:
        most = sampler.groups[sampler.sequence.stages.index(cell.stage)]
        begins = not most or cell.number <= cell.length - most or cell.number == 0
        found.append(1) if begins else found.__setitem__(-1, found[-1] + 1)
        return 0

    sampler.sequence.walk(sampler.kept_sums, choose)
    return tuple(found) if any(sampler.groups) else ()


def law_of(sampler: SequenceGaussian | KleinGaussian | ClassGaussian) -> SteppedLaw:
    """The sequential law of this sampler."""
    if isinstance(sampler, SequenceGaussian):
        lines = [cells_of(sampler, unit) for unit in units(sampler.sequence.free_cells)]
        coefficients = triangle([[c for c, _ in line] for line in lines])
        return SteppedLaw(tuple(v for _, v in lines[0]), coefficients, groups=groups_of(sampler))
    if isinstance(sampler, KleinGaussian):
        coordinates = [c for c in reversed(sampler.coordinates) if isinstance(c, ExactCoordinate)]
        columns = [[c.centre(unit[::-1]) for c in coordinates] for unit in units(sampler.dimension)]
        return SteppedLaw(tuple(c.s_squared for c in coordinates), triangle(columns))
    totals, inside = law_of(sampler.totals), sampler.inside
    (level,) = inside.sequence.kept_vectors()
    nothing = [0] * inside.sequence.free_cells
    columns = []
    for number, unit in enumerate(units(sampler.totals.dimension)):
        sums = np.asarray(sampler.totals.orthogonal.basis).astype(object) @ np.array(unit[::-1], dtype=object)
        own = [row[number] if number < len(row) else Fraction(0) for row in totals.coefficients]
        columns.append([*own, *(c for c, _ in cells_of(inside, nothing, {level: sums}))])
    columns += [[Fraction(0)] * sampler.totals.dimension + [c for c, _ in cells_of(inside, unit)] for unit in units(len(nothing))]
    return SteppedLaw((*totals.variances, *(v for _, v in cells_of(inside, nothing))), triangle(columns))


def short_secrets(law: SteppedLaw) -> list[tuple[int, ...]]:
    """The secrets of least cost, one of every two opposite ones: all up to four times the least cost; the first ones of many steps."""
    reach, most = (2, 40) if len(law.variances) < 5 else (1, 12)
    found = [w for w in product(range(-reach, reach + 1), repeat=len(law.variances)) if next((a for a in w if a), 0) > 0]
    found.sort(key=law.rho)
    return [w for w in found if law.rho(w) <= 4 * law.rho(found[0])][:most]


def outcomes(law: SteppedLaw, rarest: float = 1e-8) -> dict[tuple[int, ...], float]:
    """Values of all steps, the most probable first, with their probabilities, down to the rarest that are listed."""
    found: dict[tuple[int, ...], float] = {(): 1.0}
    begin = 0
    for size in law.groups or (1,) * len(law.variances):
        longer: dict[tuple[int, ...], float] = {}
        for before, chance in found.items():
            own = {before: 1.0}
            for v, row in zip(map(float, law.variances[begin : begin + size]), law.coefficients[begin:], strict=False):
                own = {(*u, k): have * p for u, have in own.items() for k, p in _weights(v, row, u) if have * p > rarest * 1e-2}
            total = math.fsum(own.values())
            longer |= {u: chance * p / total for u, p in own.items() if chance * p / total > rarest}
        found, begin = longer, begin + size
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _weights(v: float, row: Sequence[Fraction], before: Sequence[int]) -> list[tuple[int, float]]:
    centre = float(sum((a * u for a, u in zip(row, before, strict=True)), Fraction(0)))
    values = np.arange(np.floor(centre - 8 * v**0.5 - 1), np.ceil(centre + 8 * v**0.5 + 2))
    return list(zip(values.astype(int).tolist(), np.exp(-((values - centre) ** 2) / (2 * v)).tolist(), strict=True))


def table_of(sampler: SequenceGaussian | KleinGaussian | ClassGaussian, values: Sequence[int]) -> tuple[int, ...]:
    """The table that these values of the steps make."""
    if isinstance(sampler, SequenceGaussian):
        own = iter(values)
        return tuple(sampler.sequence.walk(sampler.kept_sums, lambda _: next(own)))
    if isinstance(sampler, KleinGaussian):
        return tuple(int(value) for value in np.asarray(sampler.orthogonal.basis) @ np.array(values[::-1]))
    totals = table_of(sampler.totals, values[: sampler.totals.dimension])
    inside, own = sampler.inside, iter(values[sampler.totals.dimension :])
    (level,) = inside.sequence.kept_vectors()
    return tuple(inside.sequence.walk({level: np.array(totals, dtype=object)}, lambda _: next(own)))
