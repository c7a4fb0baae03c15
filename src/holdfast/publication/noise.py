"""Pictures of the noise for the report: how often a cell is off by how much, from draws of the public law with a public key."""

from __future__ import annotations

import numpy as np

from holdfast.laws.law import LatticeLaw
from holdfast.laws.moments import public_draws
from holdfast.randomness import NoiseKey

CELLS = 4_000
"""About so many cell draws a picture: few enough that a small release never loads the compiled loops."""
BARS = 61


def noise_charts(law: LatticeLaw) -> list[tuple[str, list[tuple[int, float]]]]:
    """(label, [(error, share of draws)]) for up to three kinds of blocks; a function of public facts, the same on every machine."""
    charts = []
    seen = set()
    for task in law.tasks():
        kind = (task.sampler.name, task.sampler.cells)
        if kind in seen:
            continue
        seen.add(kind)
        count = max(1, CELLS // task.sampler.cells)
        with NoiseKey.for_tests("noise chart") as key, key.stream(repr(law), *task.label) as words:
            draws = public_draws(task.sampler, count, words).ravel()
        charts.append((f"A cell in a block of {task.sampler.cells} cells ({task.sampler.name})", _shares(draws)))
        if len(charts) == 3:
            break
    return charts


def _shares(draws: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[tuple[int, float]]:
    """Shares of the middle values; wider laws are shown in bins of equal width, each named by its middle."""
    reach = int(np.quantile(np.abs(draws), 0.995)) if len(draws) else 0
    width = max(1, -(-(2 * reach + 1) // BARS))
    bins = np.rint(draws / width).astype(np.int64)
    edge = -(-reach // width)
    values, times = np.unique(bins[np.abs(bins) <= edge], return_counts=True)
    share = dict(zip(values.tolist(), times.tolist(), strict=True))
    return [(b * width, round(share.get(b, 0) / len(draws), 6)) for b in range(-edge, edge + 1)]
