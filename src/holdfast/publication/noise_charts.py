"""Pictures of the noise for the report: how often a cell is off by how much, from draws of the public law with a public key."""

from __future__ import annotations

import json

import numpy as np

from holdfast.channels import Drawing
from holdfast.channels.covariance import public_draws
from holdfast.laws import Reads
from holdfast.samplers.protocol import InputSampler, Ints

CELLS = 4_000
"""About so many cell draws a picture: few enough that a small release never loads the compiled loops."""
BARS = 61
MOST = 3


def noise_charts(drawing: Drawing) -> list[tuple[str, list[tuple[int, float]]]]:
    """(label, [(error, share of draws)]) for up to three kinds of blocks; a function of public facts, the same on every machine. None where
    the noise depends on the data.
    """
    channel = drawing.channel
    if channel.target.reads is not Reads.NOTHING:
        return []
    charts: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for shape in channel.shapes():
        sampler = drawing.choice(shape).sampler
        assert not isinstance(sampler, InputSampler)
        kind = (sampler.name, sampler.cells)
        if kind not in charts and len(charts) < MOST:
            label = ("noise chart", json.dumps(channel.target.fields), json.dumps(shape.fields))
            charts[kind] = _shares(public_draws(sampler, label, max(1, CELLS // sampler.cells)).ravel())
    return [(f"{_place(cells)} ({name})", shares) for (name, cells), shares in charts.items()]


def _place(cells: int) -> str:
    return "A cell under no kept total" if cells == 1 else f"A cell in a block of {cells} cells"


def _shares(draws: Ints) -> list[tuple[int, float]]:
    """Shares of the middle values; wider laws are shown in bins of equal width, each named by its middle."""
    reach = int(np.quantile(np.abs(draws), 0.995)) if len(draws) else 0
    width = max(1, -(-(2 * reach + 1) // BARS))
    bins = np.rint(draws / width).astype(np.int64)
    edge = -(-reach // width)
    values, times = np.unique(bins[np.abs(bins) <= edge], return_counts=True)
    share = dict(zip(values.tolist(), times.tolist(), strict=True))
    return [(b * width, round(share.get(b, 0) / len(draws), 6)) for b in range(-edge, edge + 1)]
