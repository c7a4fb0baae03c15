"""A budget said once: as it was asked for, then for one person, one unit of distance and the smallest secret, and why they differ."""

from __future__ import annotations

from fractions import Fraction

from holdfast.card.promise import AskedInfo
from holdfast.display import step_text
from holdfast.exact.formatting import format_exact, format_given, format_short
from holdfast.privacy.asked import Asked
from holdfast.privacy.guarantee import Guarantee


def asked_info(guarantee: Guarantee) -> AskedInfo | None:
    """What was asked for, with the words beside it; None where there is nothing to ask for."""
    if (asked := guarantee.asked) is None:
        return None
    numbers = {name: format_exact(value) for name, value in asked.numbers.items()}
    return AskedInfo(per=asked.per, parameters=numbers, text=asked_phrase(asked, guarantee))


def asked_phrase(asked: Asked, guarantee: Guarantee) -> str:
    """ "epsilon = 1, delta = 1e-9 for one person who changes cell"."""
    numbers = ", ".join(f"{name} = {format_given(value)}" for name, value in asked.numbers.items())
    if asked.per is None:
        return f"noise of {numbers}"
    if asked.is_for_protected:
        return f"{numbers} for {_one(guarantee)}"
    squared = "squared " if asked.rho is not None else ""
    return f"{numbers} for each unit of {squared}{guarantee.distance.distance} between two tables"


def asked_sentence(guarantee: Guarantee) -> str:
    """Empty where there was nothing to ask for."""
    return "" if guarantee.asked is None else requested_sentence(asked_phrase(guarantee.asked, guarantee))


def requested_sentence(asked: str) -> str:
    return f"Requested: {asked}."


def budget_rows(guarantee: Guarantee) -> list[tuple[str, str]]:
    """The budget on a screen: as requested, then what it comes to. The smallest secret only where it is not one person."""
    asked, person = guarantee.asked, guarantee.per_person()
    rows = [] if asked is None else [("requested", asked_phrase(asked, guarantee))]
    if person is None:
        rows.append((f"one {guarantee.protect}", f"no {guarantee.protect} can change alone"))
    elif asked is None or asked_phrase(asked, guarantee) != f"{person} for {_one(guarantee)}":  # else it would be said twice
        rows.append((f"one {guarantee.protect}", str(person)))
    unit = "unit" if guarantee.answers is None else f"step of {step_text(guarantee.answers.step)}, a unit"
    rows.append((f"one {unit} of {guarantee.distance.distance}", str(guarantee.per_distance())))
    if guarantee.secret_differs:
        rows.append((f"smallest secret, {_measure(guarantee, guarantee.smallest_secret)}", str(guarantee.per_smallest_secret())))
    return rows


def budget_why(guarantee: Guarantee) -> str:
    """One sentence: why a unit of distance, a person and the smallest secret do not cost the same."""
    if guarantee.keyed is not None:
        return "No differential privacy is promised, whatever the distance."
    if guarantee.costs_nothing:
        return "No pair of tables costs anything, at any distance."
    if guarantee.answers is not None:
        nearest = (
            f" The smallest secret is {steps_phrase(guarantee.smallest_secret, guarantee.distance.is_squared)}: no {guarantee.protect} can "
        )
        return reach_sentences(guarantee) + (f"{nearest}change alone." if guarantee.person is None else "")
    moving, secret = guarantee.moving, guarantee.smallest_secret
    if guarantee.person is None:
        return f"{_one(guarantee, start=True)} would be {_measure(guarantee, moving)}; the smallest secret is {secret}."
    if not guarantee.only_added and guarantee.person < moving:
        told = _measure(guarantee, guarantee.person)
        why = f"{_one(guarantee, start=True)} changes only the measured totals that tell the cells apart: {told}"
    elif guarantee.person == moving:
        why = f"{_one(guarantee, start=True)} lowers one count and raises another: {_measure(guarantee, moving)}"
    else:
        why = f"One {guarantee.protect} can only come or go, in a cell under no kept total: {_measure(guarantee, guarantee.person)}"
    return f"{why}{f'; the smallest secret is {secret}' if guarantee.secret_differs else ''}."


def steps_phrase(steps: int | Fraction, is_squared: bool) -> str:
    """A distance on the grid: "1 step", "1,200 squared steps"."""
    return f"{steps:,} {'squared ' if is_squared else ''}step{'' if steps == 1 else 's'}"


def reach_sentences(guarantee: Guarantee) -> str:
    """How far one person can move the answers: in values, and in steps of the grid. It was declared, or computed from a query that a
    reader does not see.
    """
    answers = guarantee.answers
    assert answers is not None
    is_squared = guarantee.distance.is_squared
    squared = "squared " if is_squared else ""
    far = f"{format_short(answers.sensitivity)} in {squared}{guarantee.distance.distance}"
    first = f"The publisher states that one {guarantee.protect} moves the answers by at most {far}"
    rounded = "" if answers.on_grid else ", rounding included"
    steps = f"on the grid this is at most {steps_phrase(answers.reach, is_squared)} of {step_text(answers.step)}{rounded}"
    if answers.replacing == answers.reach:
        return f"{first}; {steps}."
    return f"{first}; {steps}. One {guarantee.protect} replaced by another is {answers.replacing:,} {squared}steps: a ledger charges that."


def _one(guarantee: Guarantee, start: bool = False) -> str:
    if guarantee.answers is not None:
        return f"{'One' if start else 'one'} {guarantee.protect} whose data change"
    records = "" if guarantee.max_records == 1 else f" with {guarantee.max_records} records"
    return f"{'One' if start else 'one'} {guarantee.protect} {who(guarantee.protect)} changes cell{records}"


def who(protected: str) -> str:
    """A person who, a flight that."""
    return "who" if protected == "person" else "that"


def _measure(guarantee: Guarantee, measure: int | Fraction) -> str:
    """Express distances of answers in steps of their grid: "2 in l1 distance" would be taken for values."""
    if guarantee.answers is not None:
        return steps_phrase(measure, guarantee.distance.is_squared)
    return f"{measure} in {'squared ' if guarantee.distance.is_squared else ''}{guarantee.distance.distance}"
