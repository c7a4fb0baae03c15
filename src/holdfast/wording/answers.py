"""Real-valued answers: what one person can change, between which data sets the promise holds, what is not protected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from holdfast.card.parts import AnswersInfo
from holdfast.display import step_text
from holdfast.exact.formatting import format_exact, format_short
from holdfast.exact.parameters import Exact
from holdfast.privacy.guarantee import Guarantee, Promise
from holdfast.tables.measure import Neighbours
from holdfast.wording.budget import FAIR_BITS, SHARED_KEY, asked_sentence, factor, reach_sentences, steps_phrase, weak_sentence
from holdfast.wording.catalogue import Sentences
from holdfast.wording.exposure import named_sentences

WEAKER = "Definition 2.5 of [GGY22] also covers neighbours whose invariants differ; this promise, like any on a grid, does not."
_NEIGHBOURS = {
    "replace-one": "the data of one {protected} replaced by any other",
    "add-remove": "one {protected} more or less",
    "declared": "as the publisher defines it",
}
_OF_ANSWERS = ("ProjectedLaplace", "ProjectedGaussian", "ExtendedLaplace", "ExtendedGaussian")
_OF_COUNTS = ("GeneralizedLaplace", "RoundedProjection", "GeneralizedGaussian")
LARGE_COEFFICIENTS = (
    "The matrix of invariants has numbers beyond 2^31, or that many digits: each row is kept as whole numbers, multiplied by its common "
    "denominator. Use numbers of few digits, such as 3 or '1/3'; an irrational number has no exact one, and cannot be kept."
)


def answers_info(guarantee: Guarantee) -> AnswersInfo:
    """What one person can change, with the words beside it."""
    answers = guarantee.answers
    assert answers is not None
    return AnswersInfo(
        step=step_text(answers.step),
        norm=answers.norm,
        sensitivity=format_exact(answers.sensitivity),
        reach=answers.reach,
        on_grid=answers.on_grid,
        neighbours=cast(Neighbours, answers.neighbours),
        relation="same invariants",
        text=reach_sentences(guarantee),
    )


def answers_relation(guarantee: Guarantee) -> str:
    """The data sets between which the promise holds."""
    agree = [
        *(["the same invariants"] if guarantee.relation.same_totals else []),
        *(["the same cells"] if guarantee.relation.same_cells else []),
    ]
    same = f"data sets with {' and '.join(agree)}" if agree else "data sets"
    return f"{same} that satisfy the identities" if guarantee.relation.identities else same


def answers_sentences(guarantee: Guarantee, delta: Exact | None, *, whole: bool) -> list[str]:
    """The promise, for whom, what is not protected, and what it rests on; `whole` as for counts."""
    answers = guarantee.answers
    assert answers is not None
    lead = guarantee.per_person(delta=delta) or guarantee.per_smallest_secret(delta=delta)
    neighbours = _NEIGHBOURS[answers.neighbours].format(protected=guarantee.protect)
    pairs = f"Take any two {answers_relation(guarantee)} that differ in one {guarantee.protect} ({neighbours})."
    sentences = [
        "" if guarantee.person is not None else f"WARNING: {nobody_sentences(guarantee)}",
        asked_sentence(guarantee) if whole else "",
        pairs if guarantee.person is not None else f"Take two {answers_relation(guarantee)} at that distance.",
        _promise(guarantee, lead),
        reach_sentences(guarantee),
        *_not_protected(guarantee, whole),
        "The noise follows its stated law exactly, and no published number has more digits than the step.",
        FAIR_BITS,
        SHARED_KEY if guarantee.key_is_shared else "",
        WEAKER if guarantee.relation.same_totals else "",
        weak_sentence(guarantee) or "",
    ]
    return list(filter(None, sentences))


def nobody_sentences(guarantee: Guarantee) -> str:
    """Where no person can change alone: said first, since the budget asked for is then a promise for nobody.

    Answers that are rounded never come here: rounding alone may move them by the smallest secret, and the reach counts it ([theory T113]).
    """
    answers, protected, is_squared = guarantee.answers, guarantee.protect, guarantee.distance.is_squared
    assert answers is not None
    nearest, reach = (steps_phrase(steps, is_squared) for steps in (guarantee.smallest_secret, answers.reach))
    return (
        f"No {protected} can change alone. Any two {answers_relation(guarantee)} are {nearest} apart or more, and one {protected} "
        f"moves the answers by {reach} at most: every such move shows in an invariant. What was requested for one "
        f"{protected} is a promise for nobody."
    )


def nobody_warning(guarantee: Guarantee) -> str:
    """The same for who publishes: what holds instead, and what to do."""
    return (
        f"{nobody_sentences(guarantee)} For two data sets at that distance it is {guarantee.per_smallest_secret()}. Keep fewer invariants, "
        f"or such as one {guarantee.protect} can leave as they are."
    )


def _promise(guarantee: Guarantee, lead: Promise) -> str:
    start = f"Between the two, the chance of any outcome of the publication differs by a factor of at most {factor(lead.epsilon)}"
    who = f"for one {guarantee.protect}" if guarantee.person is not None else "for such a pair"
    if guarantee.kind == "pure":
        return f"{start} (pure differential privacy, epsilon = {format_short(lead.epsilon)} {who})."
    assert lead.rho is not None
    zcdp = f"zero-concentrated differential privacy, rho = {format_short(lead.rho)} {who}"
    delta = format_short(lead.delta)
    return f"{start}, and a further probability of at most {delta} (epsilon = {format_short(lead.epsilon)}, delta = {delta} {who}; {zcdp})."


def _not_protected(guarantee: Guarantee, whole: bool) -> list[str]:
    exposed, protected = guarantee.exposed, guarantee.protect
    last = [f"What can be learned about a {protected} from other people's data is not limited."]
    if guarantee.relation.same_cells:
        last.insert(0, "The list of cells came with the data and was not declared public: that a cell is on it is not protected.")
    if not guarantee.relation.same_totals:
        return ["No invariant is kept.", *last]
    cells = []
    if exposed.cells:
        fixed = "1 answer, which is" if exposed.cells == 1 else f"{exposed.cells:,} answers, which are"
        cells = [f"They fix {fixed} published without noise.", *(named_sentences(exposed.names, exposed.cells) if whole else [])]
    return [
        "The invariants are published without noise, and neither they nor what follows from them is protected.",
        *cells,
        f"If a {protected}'s data change an invariant, everyone sees that it changed.",
        *last,
    ]


def in_steps(step: str) -> str:
    """What the integers of a law are, where answers are published."""
    return f"in steps of {step}, and an answer is its number of steps times {step}"


def mechanism_advice(name: str) -> str:
    """Which mechanism is for whom: said in every plan, with what was chosen."""
    chosen = f"{name} was chosen. "
    return (
        f"{chosen}Take projected noise where a mechanism for the answers without invariants exists and the noise must be zero on average; "
        "extended noise for a smaller l2 error, where the sensitivity of the projected answers is given (of a query matrix both take the "
        "least there is); Laplace noise where the promise must be pure, Gaussian noise where a delta is allowed and there are many answers."
    )


def _or(names: Sequence[str], like: str) -> str:
    """In the form in which `like` is written: classes in Python, projected-laplace in a run file."""
    shown = names if like[:1].isupper() else [re.sub("(?<!^)(?=[A-Z])", "-", name).lower() for name in names]
    return f"{', '.join(shown[:-1])} or {shown[-1]}"


def for_answers_only(name: str) -> str:
    """Why a mechanism is refused on a table of counts."""
    return (
        f"{name} is for real-valued answers, whose sensitivity is known: use hf.answer, or [answer] in a run file. For tables of counts "
        f"take {_or(_OF_COUNTS, name)}."
    )


def for_counts_only(name: str) -> str:
    """Why a mechanism is refused on answers."""
    return f"{name} is for tables of counts. For real-valued answers take {_or(_OF_ANSWERS, name)}."


def no_mechanism(given: object) -> str:
    """Explain why the argument is not a mechanism."""
    got = f"the class {given.__name__}: write its budget, too" if isinstance(given, type) else type(given).__name__
    return f"mechanism is what draws the noise, such as hf.ProjectedLaplace(epsilon='1'). Got {got}."


def floating_only(name: str) -> str:
    """Why a mechanism is refused on the grid."""
    shaped = " holdfast.research.shaped_query gives them noise of nearly this shape." if name == "CorrelatedGaussian" else ""
    return (
        f"{name} has a form in floating point only, which is for research: use holdfast.research.floating_answer. To publish answers take "
        f"ProjectedLaplace, ProjectedGaussian, ExtendedLaplace or ExtendedGaussian.{shaped}"
    )


def never_on_grid(denominator: int, step: str) -> str:
    """Why on_grid is refused where the query matrix says otherwise."""
    return (
        f"on_grid=True says that all answers are multiples of {step}; those of this query matrix, whose common denominator is "
        f"{denominator}, are not. Leave on_grid out: for a query matrix it is found, and what rounding can move is counted."
    )


def declared_neighbours(norm: str) -> str:
    """Why neighbours are refused beside a declared sensitivity."""
    known = "l1" if norm == "l1" else "l2_squared"
    return (
        "neighbours says how to compute the sensitivity of a query matrix. A declared sensitivity is for the neighbours that whoever gave "
        f"it had in mind: leave neighbours out, or give sensitivity=holdfast.subspace.Sensitivities({known}=..., neighbours='add-remove')."
    )


def rounded_totals_sentence(step: str) -> str:
    """What kept totals are where they are declared to be rounded: the one sentence of plan, screen and pages."""
    return Sentences()("page.totals_rounded", step=step)


def exact_totals_sentence(step: str) -> str:
    """What a plan says of kept totals before they are known."""
    return f"Each kept total must be a multiple of {step}; a release with any other is refused."


def totals_off_grid(step: str) -> str:
    """Why answers are refused: some kept totals are no totals of multiples of the step."""
    return (
        f"The kept totals are no totals of multiples of {step}, so that they cannot be kept exactly. Use a smaller step, or "
        "declare round_totals: then totals are rounded, and every page says so."
    )


def broken_identity(constraint: str) -> str:
    """Why answers are refused that do not have what is declared of every data set."""
    return f"The answers do not have the value 0 that is declared of {constraint}. Correct the answers, or the constraint."


def identity_off_grid(constraint: str, step: str) -> str:
    """Why a grid is refused on which kept totals were rounded so that an identity no longer holds."""
    return f"With kept totals rounded to multiples of {step}, {constraint} is no longer 0, as declared. Use a smaller step."
