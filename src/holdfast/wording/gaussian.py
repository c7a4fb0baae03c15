"""Which law of Gaussian noise was taken, why, and what it costs."""

from __future__ import annotations

from fractions import Fraction

from holdfast.card.parts import LawInfo
from holdfast.display import count_of
from holdfast.exact.formatting import format_exact, format_number_up, format_three, format_up
from holdfast.privacy.guarantee import GaussianLaw, Guarantee

LITTLE_GAIN = 2
"""How many times as wide the sequential law makes the noise, from which on most of a larger budget goes into its price."""


def law_info(guarantee: Guarantee) -> LawInfo | None:
    """The law as a card has it; None for other noise, and for that of Markov chains."""
    law = guarantee.law
    if law is None:
        return None
    return LawInfo(
        asked=law.asked,
        name=law.name,
        rho=format_exact(law.rho),
        kappa=format_exact(law.kappa),
        factor=format_exact(law.factor),
        expected_tries=law.tries,
        blocks=law.blocks,
        size=law.size,
        least_variance=None if law.least is None else float(law.least),
        cells=law.cells,
        in_groups=law.in_groups,
        text=" ".join(law_sentences(law)),
    )


def law_sentences(law: GaussianLaw) -> list[str]:
    """Which law, why, what it costs, and what decides that."""
    asked = ", as asked for" if law.asked == law.name else ""
    if law.name == "sequential":
        why = asked or ": by the lattice law, blocks would be drawn too often before one is kept"
        return [f"Sequential law{why}.", _cost(law), _formula(law), _decider(law)]
    if law.tries is None:
        return [f"Lattice law{asked}."]
    if law.asked == "sequential":
        return ["The sequential law and the lattice law are one here: no cell depends on those before it."]
    tries = f"at most {count_of(format_number_up(law.tries), 'try', 'tries')}"
    return [f"Lattice law: {tries} expected until a block is kept.", *_wider(law)]


def _cost(law: GaussianLaw) -> str:
    """What the sequential law costs, in plain words: in noise, or, where the noise was given, in budget."""
    if law.factor == 1:
        return f"For this noise the sequential law counts {_up(1 + law.kappa)} times the rho that the lattice law would."
    little = ", so more budget gains little" if law.factor >= LITTLE_GAIN else ""
    return f"Its noise has about {_up(law.factor)} times the variance that the lattice law would have at this budget{little}."


def _formula(law: GaussianLaw) -> str:
    return f"The promise is (1 + kappa) rho per unit of distance, rho = {format_exact(law.rho)} and kappa = {_up(law.kappa)}."


def _decider(law: GaussianLaw) -> str:
    assert law.least is not None
    cells, number = count_of(f"{law.cells:,}", "cell"), format_three(float(law.least))
    least = f"The least variance of a cell given those before it decides kappa: {number}, in {cells} of a block of {law.size:,}."
    groups = " The last cells of each line of this block are kept or drawn again as a group; kappa is smaller for that."
    return least + (groups if law.in_groups else "")


def _wider(law: GaussianLaw) -> list[str]:
    """Where the budget would buy less noise, if that could be drawn at no price."""
    if law.factor == 1:
        return []
    return [
        f"The variance is {_up(law.factor)} times what the budget allows, and the release costs less.",
        "With less noise the sequential law would have to be taken, whose price leaves more noise.",
    ]


def _up(value: Fraction) -> str:
    return format_up(value, 4)


def price_sentences(guarantee: Guarantee) -> list[str]:
    """What pages say of the price of the sequential law; nothing of the lattice law, which has none."""
    law = guarantee.law
    if law is None or law.name == "lattice":
        return []
    final = "Each cell, or each group of cells," if law.in_groups else "Each cell"
    return [f"{final} is final when it is drawn (the sequential law). {_cost(law)}"]
