"""What researchers need and no release does: nothing outside this room imports it (tools/check_imports.py).

    from holdfast import research
    answer = research.floating_answer([65, 15], keep=[[1, 1]], sensitivity=2, mechanism=research.KNorm("1"))

subspace     answers in floating point under linear invariants, as [GGY22] has them, and noise shaped after a query
accounting   what several promises come to together
baselines    what others do instead of keeping totals
analysis     what published tables say of true counts, under a prior
chains       chains within bounds, and how fast those of a release come to their law
laws         laws on the integers that no release draws
synth        made-up populations
oracles      the papers' own samplers, slow and plain
figures      figures of [SC22] as data
attacks      what attackers gain against cell keys, and several answers together

Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.research import accounting, analysis, attacks, baselines, chains, figures, laws, oracles, subspace, synth
    from holdfast.research.analysis import posterior, priors, simulate
    from holdfast.research.subspace import CorrelatedGaussian, Extended, KNorm, Projected, floating_answer, floating_form, shaped_query

__all__ = [
    "CorrelatedGaussian",
    "Extended",
    "KNorm",
    "Projected",
    "accounting",
    "analysis",
    "attacks",
    "baselines",
    "chains",
    "figures",
    "floating_answer",
    "floating_form",
    "laws",
    "oracles",
    "posterior",
    "priors",
    "shaped_query",
    "simulate",
    "subspace",
    "synth",
]

_HOME = {
    "CorrelatedGaussian": "subspace",
    "Extended": "subspace",
    "KNorm": "subspace",
    "Projected": "subspace",
    "floating_answer": "subspace",
    "floating_form": "subspace",
    "posterior": "analysis",
    "priors": "analysis",
    "shaped_query": "subspace",
    "simulate": "analysis",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'holdfast.research' has no attribute {name!r}")
    home = _HOME.get(name)
    value = import_module(f"{__name__}.{name}") if home is None else getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
