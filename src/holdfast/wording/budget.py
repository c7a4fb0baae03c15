"""A budget said once: as it was asked for, then for one person, one unit of distance and the smallest secret, and why they differ.

Also what a budget means for a guess about one person, how it is divided and what that reaches, whether a ledger counts it, the phrases that
every promise has, and the warnings that a page, a plan and a screen show first: a weak budget, records left out, no limit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb

from holdfast.card.parts import AskedInfo, WarningInfo
from holdfast.channels import Facts
from holdfast.display import step_text
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.formatting import format_exact, format_given, format_number, format_short, format_up
from holdfast.privacy.guarantee import Guarantee
from holdfast.privacy.parameters import DISTANCE, Asked
from holdfast.wording.catalogue import Sentences
from holdfast.wording.errors import asked_name

LITTLE_NOISE = Fraction(1, 10)
"""The variance of a typical cell, in steps of the noise, below which noise is nearly nil: 9 of 10 counts, or more, carry none."""


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


def budget_line(rho: str) -> str:
    """What [release] of a run file says of the budget."""
    return f'rho = "{rho}"'


def share_lines(shares: Sequence[tuple[Any, Any, str]]) -> Iterator[str]:
    """The rows of [[release.levels]] in a run file: below all other keys of [release], which would be part of a row."""
    for level, margin, share in shares:
        yield "[[release.levels]]"
        yield f"level = {_toml(level)}"
        yield f"margin = {_toml(margin)}"
        yield f'share = "{share}"'


def _toml(name: str | Sequence[str]) -> str:
    return json.dumps(name if isinstance(name, str) or len(name) > 1 else name[0], ensure_ascii=False)


@dataclass(frozen=True)
class ShareLine:
    """A share of the budget, exact."""

    level: str | Sequence[str]
    margin: str | Sequence[str]
    share: str


@dataclass(frozen=True)
class ReachedLine:
    """One wanted margin: its target, exact, if there is one, and the standard deviation that it reaches, rounded up."""

    level: str
    margin: str
    target: str | None
    reached: float


@dataclass(frozen=True)
class AllocationFacts:
    """An allocation in plain values: shares and budget exact, other numbers to six digits, those that are bounds rounded up."""

    goal: str
    rho: str
    per: str | None
    levels: list[ShareLine]
    reached: list[ReachedLine]
    others: list[ReachedLine]
    within: float
    equal_shares: float
    run_file: str
    approximate: bool = False
    """Whether what is reached is no proved bound."""


def allocation_lines(found: AllocationFacts) -> Iterator[str]:
    """The budget, what it reaches, the shares, how good they are."""
    is_found, most = found.goal == "targets", "about" if found.approximate else "at most"
    yield f"{'Budget':<10} rho = {found.rho} for {_whom(found.per)}, {'found for these targets' if is_found else 'as given'}"
    yield from _table("Reached", _reached_rows(found.reached, most, "target" if is_found else ""))
    if found.others:
        yield from _table("The rest", _reached_rows(found.others, most))
    shares = [(_name(row.level), _name(row.margin), row.share) for row in found.levels]
    yield from _table("Shares", [("level", "margin", "share"), *shares])
    yield f"{'Quality':<10} {_quality(found)}"


def _reached_rows(reached: Sequence[ReachedLine], most: str, last: str = "") -> list[tuple[str, ...]]:
    """A table with its header. `most`: "about" or "at most". `last`: the title of its last column."""
    lines = (
        (asked_name(row.level), asked_name(row.margin), f"{most} {format_up(Fraction(repr(row.reached)), 4)}", row.target or "")
        for row in reached
    )
    return [("level", "margin", "standard deviation", last), *lines]


def _whom(per: str | None) -> str:
    return "one unit of distance" if per == DISTANCE else f"one {per}"


def _quality(found: AllocationFacts) -> str:
    what = {"targets": "rho", "sum": "sum of variances"}.get(found.goal, "largest variance")
    over, equal = 100 * (Fraction(repr(found.within)) - 1), found.equal_shares
    beside = "equal shares do as well." if f"{equal:.3g}" == "1" else f"equal shares have one {equal:.3g} times as large."
    return f"no other shares of these margins have a {what} more than {format_up(max(over, Fraction(1, 10)), 2)} % lower; {beside}"


def _name(name: str | Sequence[str]) -> str:
    return name if isinstance(name, str) else ":".join(name)


def _table(head: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        line = "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True))
        yield f"{'' if number else head:<10} {line}".rstrip()


WEAK_EPSILON = 10
"""Above this an epsilon for one person deserves a warning: e^10 is more than 22,000."""
FAIR_BITS = (
    "The promise assumes fair random bits; these come from AES-256 under a secret key, so it holds against anyone who does not have "
    "the key and cannot break AES-256."
)
SHARED_KEY = (
    "Several agents share this key: each of them can compute all noise and take it off what the others publish. So the promise is against "
    "outsiders only, who see what is published and do not have the key."
)


def factor(epsilon: Fraction | float) -> str:
    """e^epsilon to four digits, rounded up; left as a power where the number would say nothing."""
    if epsilon > WEAK_EPSILON:
        return f"e to the power {format_short(epsilon)}"
    with precision(128):
        return format_up(enclosure(ball(Fraction(epsilon)).exp()).upper, 4)


def counted_sentence(facts: Facts) -> str:
    """What the numbers of a table were declared to count: nothing can check it."""
    records = facts.max_records
    each = "each record counted once" if records is None else f"each counted at most {'once' if records == 1 else f'{records} times'}"
    what = plural("record" if records is None else facts.protect)
    return f"The numbers are declared to be a count of {what}, {each}, and no sum of amounts such as income."


def plural(noun: str) -> str:
    """ "persons", "families", "businesses"."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def join_names(names: Sequence[str]) -> str:
    """ "a, b and c"; one name or more."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def quote_names(names: Sequence[str]) -> list[str]:
    """Names of releases, as sentences show them."""
    return [repr(name) for name in names]


CERTAIN_EPSILON = 50
"""From here on the bound is 1 to any number of digits that a page shows."""
LITTLE = Fraction(99, 100)
"""The share of right guesses above which a budget protects little: odds of 99 to 1, which an epsilon of 4.6 allows."""


@dataclass(frozen=True)
class Guess:
    """A guess which of two tables, both equally likely before, is the true one, made from what is published [theory T190].

    Law:  right with probability at most (1 + d) / 2, d the largest total variation distance that the promise allows: by epsilon and delta
          at most 1 - 2 (1 - delta) / (1 + e^epsilon), by rho at most sqrt(rho / 2) and sqrt(1 - e^-rho). The least of these counts.
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = None

    @classmethod
    def of(cls, guarantee: Guarantee) -> Guess:
        """About one of what is protected; where none can change alone, about the two nearest tables."""
        promise = guarantee.per_person() or guarantee.per_smallest_secret()
        return cls(Fraction(promise.epsilon), Fraction(promise.delta), promise.rho if promise.kind == "zcdp" else None)

    @property
    def right(self) -> Fraction:
        """The largest share of right guesses; rounded up to a thousandth."""
        if not (self.epsilon or self.delta):
            return Fraction(1, 2)
        with precision(128):
            wrong = self._wrong()
            share = Fraction(1) if wrong is None else enclosure(1 - wrong).upper
        return min(Fraction(1), Fraction(math.ceil(share * 1000), 1000))

    @property
    def odds(self) -> str:
        """The odds of that share, to four digits, rounded up; where delta is 0 the factor that the promise names."""
        if not (self.epsilon or self.delta):
            return "1"
        with precision(128):
            wrong = self._wrong()
            return "infinity" if wrong is None else format_up(enclosure((1 - wrong) / wrong).upper, 4)

    @property
    def every_outcome(self) -> bool:
        """Whether these odds bound what any single publication may tell; else they hold on average over all that may be published."""
        return not self.delta and self.rho is None

    def _wrong(self) -> arb | None:
        """The least share of wrong guesses; None where it is nothing that a page could show."""
        found = []
        if self.delta < 1 and self.epsilon < CERTAIN_EPSILON:
            found.append(ball(1 - self.delta) / (1 + ball(self.epsilon).exp()))
        if self.rho is not None and self.rho < CERTAIN_EPSILON:
            apart = [ball(self.rho / 2).sqrt()] if self.rho < 2 else []
            found += [(1 - distance) / 2 for distance in (*apart, (1 - (-ball(self.rho)).exp()).sqrt())]
        return max(found, key=lambda share: enclosure(share).lower) if found else None


def hundredths(share: Fraction) -> str:
    """59.5, of a share of .595: a share in thousandths, so that nothing is rounded."""
    return format_number(float(100 * share))


def weak_sentence(guarantee: Guarantee) -> str | None:
    """Say that a budget protects little; None where it protects more, or is no differential privacy."""
    guess = Guess.of(guarantee)
    if guarantee.keyed is not None or (guess.right <= LITTLE and guess.epsilon <= WEAK_EPSILON):
        return None
    about = f"about one {guarantee.protect}" if guarantee.person is not None else "which of the two nearest tables is the true one"
    told = "more than 1,000,000,000,000" if guess.odds == "infinity" else guess.odds
    odds = format_number(int(told)) if told.isdecimal() else told
    return (
        f"LITTLE IS PROTECTED by so large a budget. A best guess {about}, right 50 of 100 times without the table, can be right "
        f"{hundredths(guess.right)} of 100 times with it. That is odds of {odds} to 1."
    )


def recorded_sentence(entry: str | None) -> str:
    """For card and pages: whether a release was recorded."""
    if entry is None:
        return (
            "This release was recorded in no ledger: its cost is not added to that of other releases of the same data, and a second draw "
            "under the same id would not have been refused."
        )
    return "This release was recorded in a ledger before it was drawn; release.ledger of card.json is its entry there."


def budget_warnings(guarantee: Guarantee) -> tuple[WarningInfo, ...]:
    """Return the warning about a budget that protects little, if it does, or about noise by cell keys, which has no budget."""
    if (noise := guarantee.keyed) is not None:
        text = Sentences()("warnings.keyed", lowest=noise.lowest, highest=noise.highest)
        return (WarningInfo(kind="no-guarantee", text=text),)
    said = weak_sentence(guarantee)
    return () if said is None else (WarningInfo(kind="weak-budget", text=said),)


def noise_warnings(deviation: float | None, noun: str, basis: str, *, is_rough: bool = False) -> tuple[WarningInfo, ...]:
    """Return the warning about noise that is nil or nearly so: half of the cells that carry any have at most this deviation, in steps.

    Noise is a whole number of steps with mean 0, so it differs from 0 with a probability of at most its variance. Rough estimates of the
    variance, 0 if no draw had any noise, name no other share than that of LITTLE_NOISE.
    """
    if deviation is None or (variance := Fraction(deviation) ** 2 * Fraction(10_001, 10_000)) > LITTLE_NOISE:  # of six digits
        return ()
    share = int(100 * (1 - (LITTLE_NOISE if is_rough else variance)))
    return (WarningInfo(kind="little-noise", text=Sentences()("warnings.noise", noun=noun, share=share, basis=basis)),)


def sample_warnings(facts: Facts) -> tuple[WarningInfo, ...]:
    """Return the warning that records beyond a limit were left out, if they were. It never says how many."""
    if facts.over == "refuse":
        return ()
    return (WarningInfo(kind="truncated", text=Sentences()("warnings.truncated", protected=facts.protect, count=facts.max_records or 1)),)


def key_warnings(test_key: bool) -> tuple[WarningInfo, ...]:
    """Return the warning about a test key, if the key is one."""
    say = Sentences()
    text = f"{say('page.not_private')}. {say('page.not_private_why')}"
    return (WarningInfo(kind="test-key", text=text),) if test_key else ()


def limit_warnings(guarantee: Guarantee, recorded: bool, limited: bool) -> tuple[WarningInfo, ...]:
    """Return the warning that nothing limits what releases of the data cost together, if this one costs anything."""
    if limited or guarantee.costs_nothing or guarantee.keyed is not None:
        return ()
    return (WarningInfo(kind="no-limit", text=Sentences()("warnings.no_limit" if recorded else "warnings.no_ledger")),)
