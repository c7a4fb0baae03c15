"""What a sampler draws step after step, as centres and variances: its walk is taken once for each coordinate."""

from __future__ import annotations

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


def law_of(sampler: SequenceGaussian | KleinGaussian | ClassGaussian) -> SteppedLaw:
    """The sequential law of this sampler."""
    if isinstance(sampler, SequenceGaussian):
        lines = [cells_of(sampler, unit) for unit in units(sampler.sequence.free_cells)]
        return SteppedLaw(tuple(v for _, v in lines[0]), triangle([[c for c, _ in line] for line in lines]))
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
    for v, row in zip(map(float, law.variances), law.coefficients, strict=True):
        longer: dict[tuple[int, ...], float] = {}
        for before, chance in found.items():
            centre = float(sum((a * u for a, u in zip(row, before, strict=True)), Fraction(0)))
            values = np.arange(np.floor(centre - 8 * v**0.5 - 1), np.ceil(centre + 8 * v**0.5 + 2))
            weights = np.exp(-((values - centre) ** 2) / (2 * v))
            own = chance * weights / weights.sum()
            longer |= {(*before, int(value)): float(p) for value, p in zip(values, own, strict=True) if p > rarest}
        found = longer
    return dict(sorted(found.items(), key=lambda item: -item[1]))


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
