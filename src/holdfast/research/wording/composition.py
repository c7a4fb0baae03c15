"""What several promises come to together, in one paragraph."""

from __future__ import annotations

from fractions import Fraction

from holdfast.exact.formatting import format_short
from holdfast.exact.parameters import Exact
from holdfast.research.accounting.composition import Composition
from holdfast.wording.numbers import WEAK_EPSILON


def composition_paragraph(composition: Composition, delta: Exact | None = None, *, pld: bool = True) -> str:
    """What the releases promise together, by which bound, with a warning where that is next to nothing."""
    chosen = composition.delta_or_default(delta)
    best = composition.at(chosen, pld=pld).best
    count = "1 release" if len(composition.parts) == 1 else f"{len(composition.parts)} releases together"
    used = Fraction(0) if best.method == "sum" and composition.epsilon is not None else chosen
    extra = f", and a further probability of at most {format_short(used)}" if used else ""
    sentences = [
        f"{count}: between two tables that agree in every total that any of them keeps, the chance of any outcome differs by a factor of "
        f"at most e to the power {format_short(best.epsilon)}{extra} (by: {best.method}).",
    ]
    if not best.certified:
        sentences.append("This bound is pessimistic but was computed in floating point.")
    if best.epsilon > WEAK_EPSILON:
        sentences.append(f"WARNING: an epsilon above {WEAK_EPSILON} promises next to nothing.")
    return " ".join(sentences)
