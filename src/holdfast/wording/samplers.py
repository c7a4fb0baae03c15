"""How the chains of a promise that is not exact were assessed."""

from __future__ import annotations

from holdfast.chains.assessment import Assessment
from holdfast.privacy.estimated import added_delta
from holdfast.privacy.guarantee import ChainFacts, Guarantee
from holdfast.privacy.parameters import shown
from holdfast.wording.numbers import count_of

SHAPES_TOLD = 3
"""Shapes of blocks whose assessment is told in a guarantee; all are in its fields."""


def assessment_sentences(found: Assessment | ChainFacts) -> str:
    """What was seen of coupled pairs, what follows from it, and what is supposed."""
    together = "" if found.shapes == 1 else f" for all {found.shapes} shapes of blocks together"
    return (
        f"{found.pairs} coupled pairs of {found.kernel} all met within {count_of(found.largest_sweeps, 'sweep')}, so that a pair takes "
        f"longer with probability at most {found.eta}, with 95 % confidence{together}. {count_of(found.sweeps, 'sweep')} "
        f"{'is' if found.sweeps == 1 else 'are'} made. That their total variation error is then below {found.eta} supposes that meeting "
        "times have a tail that falls like a geometric one."
    )


def error_sentences(guarantee: Guarantee) -> str:
    """The stated error of a promise that is not exact, and what it rests on; empty for an exact one."""
    if guarantee.eta is None:
        return ""
    if guarantee.status == "proven":
        return f"The total variation error is at most eta = {shown(guarantee.eta)}."
    assert guarantee.epsilon is not None
    chains = (
        f"{count_of(chain.blocks, 'block')} of {chain.cells} cells: {assessment_sentences(chain)}"
        for chain in guarantee.chains[:SHAPES_TOLD]
    )
    return (
        f"The total variation error is estimated to be at most eta = {shown(guarantee.eta)}, which adds (1 + e^epsilon) eta = "
        f"{shown(added_delta(guarantee.epsilon, guarantee.eta))} to delta: {' '.join(chains)}"
    )
