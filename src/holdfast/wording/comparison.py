"""The table that compares mechanisms at one budget, and what its foot says of how the figures were found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.exact.formatting import format_amount, format_deviation, format_exact, format_given, round_figure
from holdfast.privacy.exchange import Exchange
from holdfast.privacy.parameters import Asked
from holdfast.wording.errors import basis_phrase

NO_BUDGET = (
    "A comparison is at one budget, and {name} has none. Compare from a mechanism that has one, such as generalized-laplace with "
    'epsilon = "1".'
)
OUTSIDE = "The stated table is not within its bounds."
TOO_LONG = "Simulating it would take too long."
NONE = "-"
MARKS = {"upper bound": "<=", "approximate": "~", "estimated": "~"}
"""Before an error that is not exact, by how it was found."""


@dataclass(frozen=True)
class SizeError:
    """Cells whose true count is of one size: the root mean square of published less true, and its mean; None where they are not known."""

    size: str
    cells: int
    error: float | None
    bias: float | None


@dataclass(frozen=True)
class MechanismRow:
    """What one mechanism gives, or its counts for print."""

    mechanism: str
    parameters: str
    promise: str
    """For what the table protects, in its own kind."""
    asked: bool = False
    """Whether it was asked for; else it is shown beside."""
    exchanged: bool = False
    """Whether that is another kind than the budget's."""
    view: bool = False
    """Whether it is of the counts for print made from what the mechanism publishes."""
    sizes: tuple[SizeError, ...] = ()
    """First of all cells that have noise, then by the size of the true count."""
    found: str = "unknown"
    """How the errors were found: exact, upper bound, estimated, simulated, or not at all."""
    draws: int = 0
    """Simulated releases behind them."""
    nonnegative: bool = False
    left_out: int = 0
    """Cells that are not published."""
    is_exact: bool = True
    """Whether the law is drawn exactly; False for a Markov chain."""
    time: str | None = None
    """About how long a draw takes; None where that depends on the counts, or on a chain."""
    refused: bool = False
    problem: str | None = None
    """Why it is refused, or not simulated."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """What mechanisms give at one budget, in plain values. The one that was asked for is the first."""

    protect: str
    budget: str
    """For what the table protects."""
    exchange: str
    """What mechanisms of another kind of budget get for it."""
    stated_table: str
    """What errors that depend on the true counts are simulated on."""
    rows: tuple[MechanismRow, ...]

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        return f"Comparison({self.budget} for one {self.protect}; {len(self.rows)} rows)"


def promise_text(asked: Asked | None) -> str:
    """The numbers of a budget; of a mechanism that has none and publishes kept totals alone, an epsilon of 0."""
    return "epsilon = 0" if asked is None else ", ".join(f"{name} = {format_given(value)}" for name, value in asked.numbers.items())


def _lines(found: Comparison) -> Iterator[str]:
    """The table, why rows are refused, and what the figures are."""
    sizes = next((row.sizes for row in found.rows if row.sizes), ())
    names = [one.size.replace(" or more", "+").replace(" to ", "-") for one in sizes]
    biased = [place for place in (1, len(sizes) - 1) if place > 0]
    header = ("mechanism", "promise", *(f"error {names[0]}" if not n else name for n, name in enumerate(names)))
    header = (*header, *(f"bias {names[place]}" for place in biased), "negative", "noise takes")
    rows = [header, *(_cells(row, len(sizes), biased) for row in found.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 2
    for cells in rows:
        pairs = enumerate(zip(cells, widths, strict=True))
        padded = (text.ljust(width) if n < 2 or n >= last else text.rjust(width) for n, (text, width) in pairs)
        yield "  ".join(padded).rstrip()
    yield ""
    for row in found.rows:
        if row.problem is not None:
            what = "refused" if row.refused else "not simulated"
            yield f"{_name(row).strip()}: {what}. {row.problem}"
    yield from _foot(found)


def _name(row: MechanismRow) -> str:
    """The mechanism; beneath it, what is made of its release."""
    return f"  {row.mechanism}, for print" if row.view else row.mechanism + (" (asked)" if row.asked else "")


def _cells(row: MechanismRow, sizes: int, biased: list[int]) -> tuple[str, ...]:
    """The texts of a row."""
    promise = row.promise + ("+" if row.exchanged else "")
    rest = sizes + len(biased)
    if row.left_out or not row.sizes:
        said = f"{row.left_out:,} cells are left out" if row.left_out else "refused" if row.refused else "not simulated"
        return (_name(row), promise, *([NONE] * rest), NONE if row.left_out else "", said)
    errors = [_error(one.error, row.found) for one in row.sizes]
    bias = [_bias(row.sizes[place].bias) for place in biased]
    return (_name(row), promise, *errors, *bias, "never" if row.nonnegative else "may be", row.time or NONE)


def _error(value: float | None, found: str) -> str:
    if value is None:
        return NONE
    text = format_deviation(round_figure(value, 3, is_bound=found == "upper bound"))
    return f"{MARKS.get(found, '')}{text}{'*' if found == 'simulated' else ''}"


def _bias(value: float | None) -> str:
    return NONE if value is None else "0" if value == 0 else f"{value:+.2f}*"


def _foot(found: Comparison) -> Iterator[str]:
    """How the figures were found, as far as a row has such."""
    rows = found.rows
    yield (
        f"Budget: {found.budget} for one {found.protect}. Every row publishes whole numbers, with every kept total exact. "
        '"For print" are counts of zero or more made from the release; they cost no budget.'
    )
    yield (
        "Error: the root mean square of published less true, for all cells that have noise and by the size of the true count. "
        "Bias: the mean of published less true."
    )
    if any(row.exchanged for row in rows):
        yield f"+ Another kind of budget: {found.exchange}"
    if simulated := [row.draws for row in rows if row.draws]:
        draws = f"{min(simulated):,}" if min(simulated) == max(simulated) else f"{min(simulated):,} to {max(simulated):,}"
        yield f"* Simulated, {draws} releases. {found.stated_table}"
    for found_by, mark in MARKS.items():
        if any(row.found == found_by for row in rows):
            yield f"{mark} {basis_phrase(found_by, 0.0, True).capitalize()}."
    if not all(row.is_exact for row in rows):
        yield "A Markov chain draws the first row: its promise is an estimate and has a delta. Its errors are those of the law it aims at."


def exchange_sentence(budget: Exchange) -> str:
    """What a mechanism of another kind gets, and what that promises more or less."""
    epsilon, rho, asked = format_exact(budget.epsilon), format_amount(budget.rho, up=False), promise_text(budget.asked)
    if budget.in_rho:
        return (
            f"the largest epsilon of nine digits that implies {asked} is {epsilon} (epsilon^2 / 2 is at most rho). It promises more than "
            "the rho: no rho implies an epsilon."
        )
    if budget.asked.delta is None:
        return f"{asked} implies rho = epsilon^2 / 2 = {rho}. It promises less: no rho implies an epsilon."
    return f"epsilon = {epsilon} with delta = 0 promises more than {asked}. A mechanism in rho gets rho = {rho}, which implies {asked}."


def stated_sentence(largest: int) -> str:
    """What the stated table is, and that it is not the user's."""
    return (
        "The true table is not read; a stated one takes its place: a fifth of its cells each have a count of 0, 1 to 9, 10 to 99, 100 to "
        f"499, and 500 to {largest:,}. On yours, errors depend on which sizes lie under one kept total."
    )
