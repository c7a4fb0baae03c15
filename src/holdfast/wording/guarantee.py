"""A guarantee in plain words: sentences for readers who know no mathematics, with the exact parameters in brackets.

So is what conditioning on bounds costs and tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from holdfast.card.parts import ChainBlocks, ConditioningInfo, CostAt, CostInfo, GuaranteeInfo, RelationInfo, SmallestSecret
from holdfast.exact.formatting import format_exact, format_short, format_up
from holdfast.exact.parameters import Exact
from holdfast.privacy.guarantee import ChainFacts, Conditioning, Guarantee, Promise, Relation
from holdfast.wording.answers import answers_info, answers_relation, answers_sentences
from holdfast.wording.budget import (
    FAIR_BITS,
    SHARED_KEY,
    Guess,
    asked_info,
    asked_sentence,
    budget_rows,
    budget_why,
    factor,
    hundredths,
    requested_sentence,
    weak_sentence,
)
from holdfast.wording.cellkey import keyed_info, keyed_sentences
from holdfast.wording.exposure import columns_sentence, named_sentences, zeros_source
from holdfast.wording.gaussian import law_info, price_sentences
from holdfast.wording.samplers import chain_error_sentences

_BASES = {
    "equalities": "there are no inequalities",
    "default": "it is never more than 1",
    "moves": "proved for all tables and all totals within such bounds",
    "gaussian": "proved for all tables and all totals under kept sums of this form",
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


def guarantee_info(guarantee: Guarantee) -> GuaranteeInfo:
    """The promise as a card has it: its numbers as texts, with the sentences beside them."""
    person, secret = guarantee.per_person(), guarantee.per_smallest_secret()
    return GuaranteeInfo(
        asked=asked_info(guarantee),
        kind=guarantee.kind,
        parameters=guarantee.parameters,
        distance=guarantee.distance.name,
        squared=guarantee.distance.is_squared,
        protect=guarantee.protect,
        max_records=guarantee.max_records,
        relation=relation_phrase(guarantee.relation) if guarantee.answers is None else answers_relation(guarantee),
        relation_fields=RelationInfo(**guarantee.relation.to_fields()),
        status=guarantee.status,
        status_note="" if guarantee.eta is None else chain_error_sentences(guarantee),
        chains=tuple(map(_chain_info, guarantee.chains)),
        conditioning=conditioning_info(guarantee),
        law=law_info(guarantee),
        answers=None if guarantee.answers is None else answers_info(guarantee),
        keyed=None if guarantee.keyed is None else keyed_info(guarantee.keyed),
        per_distance=CostInfo.of(guarantee.per_distance()),
        per_person=None if person is None or guarantee.person is None else CostAt.of(person, distance=_exact(guarantee.person)),
        smallest_secret=SmallestSecret.of(secret, distance=_exact(guarantee.smallest_secret), found=guarantee.smallest_secret_status),
        why=budget_why(guarantee),
        sentences=tuple(guarantee_sentences(guarantee)),
        text=guarantee_paragraph(guarantee),
    )


def _exact(distance: int | Fraction) -> int | str:
    """A whole number, or the text of a fraction."""
    return int(distance) if distance == int(distance) else format_exact(distance)


def _chain_info(chain: ChainFacts) -> ChainBlocks:
    return ChainBlocks(
        blocks=chain.blocks,
        cells=chain.cells,
        kernel=chain.kernel,
        pairs=chain.pairs,
        largest_sweeps=chain.largest_sweeps,
        sweeps=chain.sweeps,
        eta=str(chain.eta),
        shapes=chain.shapes,
    )


def relation_phrase(relation: Relation) -> str:
    """The tables between which a promise holds."""
    same = [
        *(["the same kept totals"] if relation.same_totals else []),
        *(["the same cells"] if relation.same_cells else []),
        *(["no negative count"] if relation.non_negative else []),
    ]
    if len(same) > 2:
        same = [", ".join(same[:-1]), same[-1]]
    tables = "tables within the bounds" if relation.within_bounds else "tables"
    tables = f"{tables} with {' and '.join(same)}" if same else tables
    return f"{tables} that satisfy the identities" if relation.identities else tables


def guarantee_paragraph(guarantee: Guarantee, delta: Exact | None = None) -> str:
    """All sentences in one paragraph."""
    return " ".join(guarantee_sentences(guarantee, delta, whole=True))


def promise_lines(guarantee: Guarantee) -> list[str]:
    """Return three short lines for screens: what a guess can gain, at which budget, and what is not protected. Pages have all of it."""
    if guarantee.keyed is not None:
        return keyed_sentences(guarantee.keyed)[:1]
    if guarantee.costs_nothing:
        return guarantee_sentences(guarantee)[:1]
    guess, protected = Guess.of(guarantee), guarantee.protect
    about = f"about one {protected}" if guarantee.person is not None else "between the two nearest tables"
    alone = "" if guarantee.person is not None else f"No {protected} can change alone. "
    unsure = "" if guarantee.status == "exact" else " (an estimate and not a proof)"
    left = "kept totals and what follows from them, " if _has_totals(guarantee) else ""
    rows = budget_rows(guarantee)
    spent = "; ".join(f"{what}: {numbers}" for what, numbers in (rows[:2] if guarantee.person is not None else [*rows[:1], rows[-1]]))
    return [
        f"{alone}A best guess {about} is right at most {hundredths(guess.right)} of 100 times{unsure}; without the table 50.",
        f"{spent[:1].upper()}{spent[1:]}.",
        f"Not protected: {left}what other data tell, facts about groups.",
    ]


def is_paragraph_of(guarantee: Guarantee, text: str, asked: str | None, sentences: Sequence[str]) -> bool:
    """True if a paragraph says exactly these sentences, the request in these words and the names of exposed
    cells, as every version must, however it puts them.
    """
    names = named_sentences(guarantee.exposed.names, guarantee.exposed.cells)
    for more in [*([] if asked is None else [requested_sentence(asked)]), *names]:
        text = text.replace(f"{more} ", "", 1)
    return text == " ".join(sentences)


def guarantee_sentences(guarantee: Guarantee, delta: Exact | None = None, *, whole: bool = False) -> list[str]:
    """What is promised, for whom, what is not protected, how sure it is, and what it rests on.

    Given:  whole: with the budget as it was asked for and the names of exposed cells, which pages and cards have in places of their own.
    """
    if guarantee.answers is not None:
        return answers_sentences(guarantee, delta, whole=whole)
    if guarantee.keyed is not None:
        return [*keyed_sentences(guarantee.keyed), *_list_of_cells(guarantee)]
    if guarantee.costs_nothing:
        depends = "depends on the kept totals alone" if _has_totals(guarantee) else "does not depend on the counts"
        first = (
            f"What is published {depends}: any two {relation_phrase(guarantee.relation)} give the same publication (pure differential "
            "privacy, epsilon = 0)."
        )
        return [first, *_not_protected(guarantee, whole)]
    lead = guarantee.per_person(delta=delta) or guarantee.per_smallest_secret(delta=delta)
    sentences = [
        asked_sentence(guarantee) if whole else "",
        *_pairs(guarantee),
        _promise(guarantee, lead),
        budget_why(guarantee),
        *conditioning_sentences(guarantee, lead),
        *price_sentences(guarantee),
        *_not_protected(guarantee, whole),
        *_status(guarantee),
        FAIR_BITS,
        SHARED_KEY if guarantee.key_is_shared else "",
        weak_sentence(guarantee) or "",
    ]
    return list(filter(None, sentences))


def _pairs(guarantee: Guarantee) -> list[str]:
    """Between which tables the promise is."""
    protected, kept = guarantee.protect, _has_totals(guarantee)
    if guarantee.person is None:
        return [
            f"No {protected} can change alone: every change of a single {protected} would "
            f"{'show in a kept total' if kept else 'break an identity'}.",
            f"Any two {relation_phrase(guarantee.relation)} differ by at least {_distance(guarantee, guarantee.smallest_secret)}"
            f"{_unsure(guarantee)}. Take two at that distance.",
        ]
    records = "" if guarantee.max_records == 1 else f", with up to {guarantee.max_records} records"
    what = f"in whether one {protected} is counted" if guarantee.only_added else f"in where one {protected} is counted"
    that = "and" if guarantee.relation.identities else "that"
    return [f"Take any two {relation_phrase(guarantee.relation)} {that} differ only {what}{records}."]


def _unsure(guarantee: Guarantee) -> str:
    return " (proved; the true smallest distance may be larger)" if guarantee.smallest_secret_status == "lower bound" else ""


def _promise(guarantee: Guarantee, lead: Promise) -> str:
    who = f"for one {guarantee.protect}" if guarantee.person is not None else "for such a pair"
    each = f"for each unit of {guarantee.distance.distance}{_nearest(guarantee)}"
    start = f"Between the two, the chance of any outcome of the publication differs by a factor of at most {factor(lead.epsilon)}"
    epsilon, delta = format_short(lead.epsilon), format_short(lead.delta)
    if guarantee.kind == "pure":
        return f"{start} (pure differential privacy, epsilon = {epsilon} {who}, {_parameter(guarantee, 'epsilon')} {each})."
    extra = f"{start}, and a further probability of at most {delta} (epsilon = {epsilon}, delta = {delta} {who};"
    if guarantee.kind == "zcdp":
        assert lead.rho is not None
        each = f"for each unit of squared {guarantee.distance.distance}{_nearest(guarantee)}"
        return (
            f"{extra} zero-concentrated differential privacy, rho = {format_short(lead.rho)} {who}, {_parameter(guarantee, 'rho')} {each})."
        )
    parameters = f"epsilon = {_parameter(guarantee, 'epsilon')}, delta = {_parameter(guarantee, 'delta')}"
    return f"{extra} approximate differential privacy, {parameters} {each})."


def _nearest(guarantee: Guarantee) -> str:
    """The smallest secret, where it is nearer than one person."""
    if guarantee.person is None or not guarantee.secret_differs:
        return ""
    secret = guarantee.per_smallest_secret()
    value = secret.rho if guarantee.kind == "zcdp" else secret.epsilon
    assert value is not None
    return f", {format_short(value)} for the smallest secret"


def _not_protected(guarantee: Guarantee, whole: bool) -> list[str]:
    return [
        *(_totals(guarantee, whole) if _has_totals(guarantee) else _no_totals(guarantee)),
        *_list_of_cells(guarantee),
        *(["The promise is for one record: whoever has several is protected less."] if guarantee.protect == "record" else []),
        f"What can be learned about a {guarantee.protect} from other people's data is not limited.",
    ]


def _has_totals(guarantee: Guarantee) -> bool:
    return guarantee.exposed.kept_sums > 0 or guarantee.relation.same_totals


def _no_totals(guarantee: Guarantee) -> list[str]:
    protected, nothing = guarantee.protect, "No totals are kept exactly: nothing is published without noise"
    if guarantee.costs_nothing:
        nothing = "No totals are kept, and no count is published"
    if guarantee.relation.identities:
        return [f"{nothing}, except what the identities say of every data set.", *_identities(guarantee)]
    if guarantee.relation.same_cells:
        return [f"{nothing}, except the list of cells."]
    if guarantee.person_can_be_added:
        return [f"{nothing}, and whether a {protected} is counted at all is protected."]
    return [f"{nothing}.", "The promise holds for pairs of tables that both obey what is known of every data set."]


def _identities(guarantee: Guarantee) -> list[str]:
    """Where identities are all that noise leaves alone."""
    protected = guarantee.protect
    counted = f"whether a {protected} is counted at all is protected in cells under no identity" if guarantee.person_can_be_added else ""
    holds = "The promise holds for pairs of tables that both satisfy them"
    return [f"{holds}{f': {counted}' if counted else ''}.", *_zeros(guarantee)]


def _zeros(guarantee: Guarantee) -> list[str]:
    if not guarantee.relation.non_negative:
        return []
    source = zeros_source(_has_totals(guarantee), guarantee.relation.identities)
    return [f"Cells under {source} of 0 can only be 0; those left out of the draw (kept.zeros on the card) take no noise."]


def _totals(guarantee: Guarantee, whole: bool) -> list[str]:
    exposed, protected = guarantee.exposed, guarantee.protect
    fixed = ["They fix no single cell by themselves; particular values, such as a total of zero, may."]
    if exposed.cells:
        cells = "1 cell, which is" if exposed.cells == 1 else f"{exposed.cells:,} cells, which are"
        fixed = [f"They fix {cells} published without noise.", *(named_sentences(exposed.names, exposed.cells) if whole else [])]
    no_sum = "no kept total and no identity" if guarantee.relation.identities else "no kept total"
    counted = (
        f"Whether a {protected} is counted at all is protected only in cells under {no_sum}."
        if guarantee.person_can_be_added
        else f"Whether a {protected} is counted at all is not protected where it would change a kept total."
    )
    holds = (
        f"The promise holds for pairs of {relation_phrase(guarantee.relation)}: the kept totals are published exactly, and neither they "
        "nor what follows from them is protected."
    )
    return [holds, *fixed, *_zeros(guarantee), counted]


def _list_of_cells(guarantee: Guarantee) -> list[str]:
    if not guarantee.relation.same_cells:
        return []
    protected = guarantee.protect
    return [
        "The list of cells came with the data and was not declared public: that a cell is on it is not protected.",
        f"Where only one {protected} is in a cell, the list gives this {protected} away.",
    ]


def _status(guarantee: Guarantee) -> list[str]:
    if guarantee.status == "exact":
        return ["The noise follows its stated law exactly, with no rounding error."]
    return ["This promise is an estimate and not a proof.", chain_error_sentences(guarantee)]


def _distance(guarantee: Guarantee, value: int | Fraction) -> str:
    return f"{value} in {'squared ' if guarantee.distance.is_squared else ''}{guarantee.distance.distance}"


def _parameter(guarantee: Guarantee, name: str) -> str:
    return format_short(getattr(guarantee, name))
