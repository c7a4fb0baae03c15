"""What conditioning on bounds costs and tells, in plain words."""

from __future__ import annotations

from fractions import Fraction

from holdfast.card.promise import ConditioningInfo
from holdfast.exact.formatting import format_exact, format_short, format_up
from holdfast.privacy.guarantee import Conditioning, Guarantee, Promise
from holdfast.wording.exposure import columns_sentence

_BASES = {
    "equalities": "there are no inequalities",
    "default": "it is never more than 1",
    "moves": "proved for all tables and all totals within such bounds",
    "gaussian": "proved for all tables and all totals under kept sums of this form",
    "listed": "found by listing all tables with the declared totals",
}


def conditioning_info(guarantee: Guarantee) -> ConditioningInfo | None:
    """What conditioning costs, with the sentence about posteriors beside it; None where the law is not conditioned."""
    found = guarantee.conditioning
    if found is None:
        return None
    lead = guarantee.per_person() or guarantee.per_smallest_secret()
    return ConditioningInfo(
        rate=format_exact(found.rate),
        gamma=format_exact(found.gamma),
        basis=found.basis,
        blocks=found.blocks,
        disrupted=found.disrupted,
        destroyed=found.destroyed,
        why=_BASES[found.basis],
        posterior=" ".join(posterior_sentences(guarantee, lead)),
    )


def conditioning_sentences(guarantee: Guarantee, lead: Promise) -> list[str]:
    """What the law is, what its bounds cost, what is known beforehand, and what the running time tells; empty without inequalities."""
    found = guarantee.conditioning
    if found is None or not guarantee.relation.within_bounds:
        return []
    distance = f"{'squared ' if guarantee.distance.is_squared else ''}{guarantee.distance.distance}"
    name = "rate" if guarantee.kind == "pure" else "rho"
    return [
        f"The published table is drawn around the true one, inside the bounds; without bounds the law would have a {name} of "
        f"{_short(found.rate)} for each unit of {distance}.",
        "Bounds make the law depend on the true table, so the promise counts 1 + gamma times as much, gamma = "
        f"{_short(found.gamma)} ({_BASES[found.basis]}).",
        *posterior_sentences(guarantee, lead),
        *_neighbourhood(found),
        f"The bounds are public, and that the true table lies within them is not protected.{columns_sentence(guarantee.exposed.columns)}",
        "How long the draw takes depends on the true counts: whoever can measure it learns more than what is published.",
    ]


def _neighbourhood(found: Conditioning) -> list[str]:
    """What kept totals and bounds leave of one person's neighbourhood ([GM20] section 5.1); nothing where it is whole."""
    parts = [
        *(
            [f"in {found.disrupted} of {found.blocks} any two such tables are farther apart than one person could move"]
            if found.disrupted
            else []
        ),
        *([f"in {found.destroyed} of {found.blocks} there is one table only, and nothing is promised"] if found.destroyed else []),
    ]
    return [f"Of the parts of the table that are drawn on their own, {' and '.join(parts)}."] if parts else []


def _short(value: Fraction) -> str:
    """Exact where that is short, else to four digits, rounded up."""
    exact = format_exact(value)
    return exact if len(exact) <= 8 else f"about {format_up(value, 4)}"


def posterior_sentences(guarantee: Guarantee, lead: Promise) -> tuple[str, str]:
    """The posterior interval, and its condition."""
    power = format_short(lead.epsilon)
    one = f"one {guarantee.protect}"
    if lead.delta == 0:
        pair = f"that differ in {one}" if guarantee.person is not None else "at the smallest distance"
        told = f"changes the odds between two such tables {pair} by a factor between e^-{power} and e^{power}"
    else:  # (epsilon, delta) says this much about odds, and not that they stay within e^epsilon but for delta [theory T78]
        pair = f"that differs in {one}" if guarantee.person is not None else "at the smallest distance"
        chance = format_short(2 * lead.delta if 2 * lead.delta < 1 else 1)
        told = (
            f"raises the odds of the true table against another such table {pair} by a factor of more than 2 e^{power} with a probability "
            f"of at most {chance}"
        )
    return (
        f"For whoever knows the kept totals and the bounds, what is published {told}.",
        f"For what is believed of {one} alone this holds where the answer is independent of all others, given the totals and the bounds; "
        "kept totals and close bounds can tie answers together.",
    )
