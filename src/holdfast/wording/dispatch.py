"""One function for whatever can be said in sentences.

It learns of further kinds of things from elsewhere (`describe_as`): research is described without being imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.cellkey.loss import Losses
from holdfast.cellkey.table import PerturbationTable
from holdfast.chains.assessment import Assessment
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.exposure.cells import Exposure
from holdfast.exposure.facts import JointFacts, ReleaseExposure
from holdfast.exposure.joint import JointExposure
from holdfast.privacy.guarantee import Guarantee
from holdfast.wording.cellkey_losses import losses_sentences, table_sentences
from holdfast.wording.exposure import exposed_sentences
from holdfast.wording.guarantee import guarantee_paragraph
from holdfast.wording.joint import joint_sentences, release_sentences
from holdfast.wording.samplers import assessment_sentences

KINDS: dict[type, Described] = {}


@dataclass(frozen=True)
class Described:
    """How a kind of thing is put into sentences."""

    sentences: Callable[..., str]
    """Takes the thing, and the delta where `takes_delta` says so."""
    takes_delta: bool = False


def describe_as(kind: type, sentences: Callable[..., str], *, takes_delta: bool = False) -> None:
    """Let `describe` know a kind of thing, or anything whose `guarantee` is of that kind."""
    KINDS[kind] = Described(sentences, takes_delta)


def find_kind(thing: Any) -> Described | None:
    """How the thing is described, or None if its kind is unknown."""
    return next((found for kind, found in KINDS.items() if isinstance(thing, kind)), None)


_KNOWN: dict[type, Callable[[Any], str]] = {
    Losses: lambda losses: " ".join(losses_sentences(losses)),
    PerturbationTable: lambda table: " ".join(table_sentences(table)),
    Assessment: assessment_sentences,
    Exposure: lambda exposure: exposed_sentences(exposure.facts()),
    JointExposure: lambda joint: " ".join(joint_sentences(joint.facts)),
    JointFacts: lambda facts: " ".join(joint_sentences(facts)),
    ReleaseExposure: lambda exposed: " ".join(release_sentences(exposed)),
}


def describe(thing: Any, *, delta: Exact | None = None) -> str:
    """A guarantee, an exposure, the assessment of a chain, a perturbation table or its losses in words; with `holdfast.research` also a
    guarantee about a subspace, a composition of promises, or a corrected table.

    Given:  anything that has a guarantee, such as a plan, a release or a law, is described by it. delta: at which a zCDP promise is also
            stated as (epsilon, delta), by default 1e-10; for promises only.
    """
    guarantee = thing if isinstance(thing, Guarantee) else getattr(thing, "guarantee", None)
    if isinstance(guarantee, Guarantee):
        return guarantee_paragraph(guarantee, delta)
    for kind, said in _KNOWN.items():
        if isinstance(thing, kind):
            _refuse_delta(thing, delta)
            return said(thing)
    for subject in (thing, guarantee):
        if (learned := find_kind(subject)) is not None:
            if learned.takes_delta:
                return learned.sentences(subject, delta)
            _refuse_delta(thing, delta)
            return learned.sentences(subject)
    names = ", ".join(kind.__name__ for kind in (Guarantee, *_KNOWN, *KINDS))
    raise InvalidParameter(f"describe() knows {names}, and what has a guarantee. Got {type(thing).__name__}.")


def _refuse_delta(thing: Any, delta: Exact | None) -> None:
    if delta is not None:
        raise InvalidParameter(f"delta belongs to a guarantee or a composition. {type(thing).__name__} has none. Leave it out.")
