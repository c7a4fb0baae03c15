"""A promise about a subspace, in one paragraph."""

from __future__ import annotations

from holdfast.display import count_of
from holdfast.exact.formatting import format_short
from holdfast.research.subspace.guarantee import SubspaceGuarantee
from holdfast.wording.numbers import WEAK_EPSILON

_NEIGHBOURS = {
    "replace-one": "one person's record, replaced by another's",
    "add-remove": "one person's record, which only one of them has",
}


def subspace_paragraph(guarantee: SubspaceGuarantee) -> str:
    """What is protected, what is not, and that floats are for research."""
    space, rows = guarantee.space, guarantee.kept_rows
    extra = f", apart from a probability of at most {format_short(guarantee.delta)}" if guarantee.delta else ""
    sentences = [
        f"Of {count_of(space.cells, 'answer')}, the promise is about the part in {count_of(space.dimension, 'dimension')}"
        f"{' that the kept rows leave free' if rows and guarantee.is_induced else ''}. Between two data sets that differ in "
        f"{_NEIGHBOURS[guarantee.neighbours]}, the chance of any outcome for that part differs by a factor of at most e to the power "
        f"{format_short(guarantee.epsilon)}{extra}."
    ]
    if rows:
        fixed = guarantee.fixed_cells
        shown = f", and with them {count_of(len(fixed), 'answer')} as a whole" if fixed else ""
        sentences.append(
            f"The values of {count_of(rows, 'kept row')} are published as they are{shown}: nothing protects them, and the two "
            "may differ in them."
        )
    if guarantee.basis == "declared":
        sentences.append("This rests on the sensitivity, or on the promise of a mechanism, as it was declared. That was not checked.")
    if guarantee.epsilon > WEAK_EPSILON:
        sentences.append(f"WARNING: an epsilon above {WEAK_EPSILON} promises next to nothing.")
    if guarantee.status == "estimated":
        sentences.append("A Markov chain draws the noise. How near it comes to the law that has this promise is not known.")
    if guarantee.status != "real numbers":
        sentences.append(
            "Floating point, research only: this holds for real numbers. Rounded numbers can give the true answers away by their last "
            "digits."
        )
    return " ".join(sentences)
