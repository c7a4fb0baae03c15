"""Pictures of the noise for the report: how often a cell is off by how much. From the law where a cell's law can be computed, else from
draws of the public law with a public key, and then with their standard error.
"""

from __future__ import annotations

import json

import numpy as np

from holdfast.accuracy.cell_laws import cell_law
from holdfast.chains.sampler import ChainSampler
from holdfast.channels import Drawing
from holdfast.channels.covariance import BATCHES, COSTLY_CELLS, public_draws, standard_error
from holdfast.lattices.shapes import Shape
from holdfast.laws import Reads
from holdfast.report.figures.facts import NoiseLawFacts
from holdfast.samplers.choice import cell_draws
from holdfast.samplers.protocol import BlockSampler, InputSampler

CELLS = 4_000
"""About so many cell draws a picture: few enough that a small release never loads the compiled loops."""
MOST = 3
LOOKED_AT, SEEN = 12, 0.01
"""Shapes of blocks looked at, and the part of the highest bar by which two pictures must differ."""
NOT_SEEN = 1e-6
"""Errors of computed probabilities that are not told: so small a part of the highest bar."""
SHOWN = 0.9975
"""Share of the draws that the picture shows, at least."""


def noise_charts(drawing: Drawing, most: int = MOST) -> list[NoiseLawFacts]:
    """Up to three kinds of blocks, those that most cells are in first; a function of public facts, the same on every machine. None where
    the noise depends on the data, nor of blocks whose draws would take too long, nor of answers on a grid.
    """
    channel, left = drawing.channel, float(COSTLY_CELLS)
    if channel.target.reads is not Reads.NOTHING or not channel.facts.measure.whole:  # steps of a grid are too fine for bars
        return []
    charts: dict[tuple[str, int], NoiseLawFacts] = {}
    cells: dict[Shape, int] = {}
    for task in channel.tasks():
        cells[task.shape] = cells.get(task.shape, 0) + task.cells.size
    for shape in sorted(cells, key=lambda found: -cells[found])[:LOOKED_AT]:
        sampler = drawing.choice(shape).sampler
        assert not isinstance(sampler, InputSampler)
        kind = (sampler.name, sampler.cells)
        if kind in charts or len(charts) == most:
            continue
        found = _exact(drawing, shape, sampler)
        cost = 0.0 if found is not None or isinstance(sampler, ChainSampler) else _count(sampler) * cell_draws(sampler)
        if found is not None and any(_alike(found, other) for other in charts.values()):
            continue
        if cost <= left:
            left -= cost
            charts[kind] = found or _simulate_law(drawing, shape, sampler)
    return list(charts.values())


def _alike(one: NoiseLawFacts, other: NoiseLawFacts) -> bool:
    """Whether two computed laws make the same picture: no bar differs by more than a hundredth of the highest."""
    if one.draws is not None or other.draws is not None:
        return False
    first, second = dict(one.law), dict(other.law)
    return all(abs(first.get(k, 0.0) - second.get(k, 0.0)) <= SEEN * first[0] for k in first.keys() | second.keys())


def _count(sampler: BlockSampler) -> int:
    return max(2, CELLS // sampler.cells)


def _exact(drawing: Drawing, shape: Shape, sampler: BlockSampler) -> NoiseLawFacts | None:
    """From the law; of a chain, whose law is not the one it aims at, from its draws."""
    found = None if isinstance(sampler, ChainSampler) else cell_law(drawing.channel.target, shape)
    if found is None:
        return None
    law, half = found.probabilities, len(found.probabilities) // 2
    inside = law[half] + np.concatenate(([0.0], np.cumsum(law[half + 1 :] + law[:half][::-1])))
    reach = int(np.searchsorted(inside, SHOWN))
    shown = [(k, float(f"{law[half + k]:.9g}")) for k in range(-reach, reach + 1)]
    return NoiseLawFacts(sampler.cells, shown, most_off=found.error if found.share > NOT_SEEN else 0.0)


def _simulate_law(drawing: Drawing, shape: Shape, sampler: BlockSampler) -> NoiseLawFacts:
    names = ("noise chart", json.dumps(drawing.channel.target.fields), json.dumps(shape.fields))
    count = _count(sampler)
    draws = public_draws(sampler, names, -(-count // BATCHES) * BATCHES if isinstance(sampler, ChainSampler) else count)
    values, times = np.unique(draws, return_counts=True)
    reach = int(np.sort(np.abs(draws), axis=None)[int(np.ceil(SHOWN * draws.size)) - 1])
    law = [(k, n / draws.size) for k, n in zip(values.tolist(), times.tolist(), strict=True) if abs(k) <= reach]
    errors = [float(f"{float(standard_error((draws == k).mean(axis=1), sampler)):.3g}") for k, _ in law]
    return NoiseLawFacts(sampler.cells, law, draws.size, errors)
