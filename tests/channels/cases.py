"""Tables and mechanisms that between them use every row of the table of samplers, and chains."""

from __future__ import annotations

from typing import Any

import numpy as np

import holdfast as hf
from tests.exposing import exposing

GRID = hf.Universe.product({"a": ["x", "y", "z"], "b": ["p", "q", "r"]})
COUNTS = np.array([14, 3, 0, 7, 120, 5, 1, 9, 33])
KEEPS: dict[str, list[Any]] = {
    "free": [],
    "one sum": [hf.margin("a")],
    "grid": [hf.margin("a"), hf.margin("b")],
    "general": [hf.linear([[2, -3, 1, 0, 0, 0, 0, 0, 0], [0, 1, 2, -3, 0, 0, 0, 0, 0]])],
}
MECHANISMS: dict[str, Any] = {
    "laplace": hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
    "l2 laplace": hf.GeneralizedLaplace(epsilon="1/2", norm="l2", per="distance"),
    "gaussian": hf.GeneralizedGaussian(sigma_squared=9),
    "sequential": hf.GeneralizedGaussian(sigma_squared=9, law="sequential"),
    "rounded": hf.RoundedProjection(epsilon="1/2", per="distance"),
    "sequential levels": hf.GeneralizedGaussian(
        rho="1/18", levels={"total": {"b": "1/3"}, "a": {"total": 0, "detailed": "2/3"}}, per="distance", law="sequential"
    ),
    "levels": hf.GeneralizedGaussian(rho="1/18", levels={"total": {"b": "1/3"}, "a": {"total": 0, "detailed": "2/3"}}, per="distance"),
    "conditional": hf.Conditional(epsilon="1/2", per="distance"),
    "conditional gaussian": hf.Conditional(rho="1/10", noise="gaussian", per="distance"),
    "line_gibbs": hf.GeneralizedLaplace(epsilon="1/2", sampler="line_gibbs", eta="3/100", per="distance"),
    "metropolis": hf.GeneralizedLaplace(epsilon="2", sampler="metropolis", eta="3/100", per="distance"),
}
CASES = [(keep, how) for keep in KEEPS for how in MECHANISMS if keep in ("grid", "general") or how not in ("line_gibbs", "metropolis")]
CASES = [
    (keep, how)
    for keep, how in CASES
    if how not in ("levels", "sequential levels", "conditional", "conditional gaussian") or keep in ("free", "one sum")
]


def table() -> hf.Table:
    return hf.Table(GRID, COUNTS)


def released(keep: list[Any], mechanism: Any, universe: hf.Universe = GRID) -> list[int]:
    with hf.NoiseKey.for_tests("channels") as key:
        return list(exposing(hf.release, hf.Table(universe, COUNTS), keep, mechanism, key=key, release_id="channels").table.counts.tolist())


def sampled(keep: list[Any], mechanism: Any, universe: hf.Universe = GRID) -> list[list[int]]:
    if isinstance(mechanism, hf.Conditional):  # there is no law of the noise alone
        return []
    with hf.NoiseKey.for_tests("channels") as key:
        return list(mechanism.law(hf.lattice(universe, keep)).sample(3, key).tolist())
