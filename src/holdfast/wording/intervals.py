"""Sentences about intervals: where a true number lies, how sure that is, and from what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from holdfast.display import printable, shorten
from holdfast.exact.formatting import format_digits

METHODS = {
    "kept": "Kept totals are published as they are: there is no error.",
    "lattice sum": "The ends are computed from the public law of the noise, with proved bounds.",
    "near lattice law": "The ends are computed from the lattice law, at a level that is higher by how far the sequential law is from it.",
    "sub-Gaussian": "The ends come from a bound that holds for every Gaussian noise, and are wider than need be.",
    "convolution": "The ends are computed from the public law of the noise.",
    "simulated": "The ends come from draws of the public law of the noise: with probability {doubt:.6f} these mislead, and the true number "
    "lies inside less often than said.",
}
"""By the method of an interval."""
ALL_CELLS = "all cells"
CUT = "Counts are not below 0: --nonnegative uses that, and costs no probability."

NO_LAW = (
    "What this release publishes depends on the true counts: no interval holds whatever they are, but for sums that its kept totals give. "
    "Ask for one of these; holdfast.research.posterior says what follows from a prior."
)
ONLY_KEPT = (
    "This release publishes kept totals only, and they do not give this sum. Ask for a kept total, or for sums and differences of them."
)
NOT_PROVED = "No bound is proved for this sum or ratio of this noise. Leave method out, or ask for method 'simulated'."
BY_CHAIN = (
    "The noise was drawn by a Markov chain, whose draws depend on one another: no interval is proved for it, but for sums that the kept "
    "totals give. Ask for one of these."
)


@dataclass(frozen=True)
class PlainInterval:
    """An interval in plain numbers: whole numbers as they are, others as doubles, ends rounded outwards; None for what is not finite."""

    published: float | None
    low: float | None
    high: float | None
    method: str
    covered: float | None
    doubt: float

    @property
    def says_nothing(self) -> bool:
        return self.low is None and self.high is None


@dataclass(frozen=True)
class NamedIntervals:
    """What the command was asked for: names, and for each an interval; `joint` as in `Intervals`.

    nonnegative:  whether it was used that counts are not below 0; None where it cannot be.
    """

    names: tuple[str, ...]
    intervals: tuple[PlainInterval, ...]
    level: float
    joint: str | None
    nonnegative: bool | None


def interval_lines(asked: NamedIntervals) -> list[str]:
    """What the command prints: a line for each interval, and where they come from."""
    found = asked.intervals
    bounded = [one for one in found if not one.says_nothing]
    methods = dict.fromkeys(one.method for one in bounded)
    doubt = max(one.doubt for one in found)
    sure = [_sure(asked)] if any(one.method != "kept" for one in bounded) else []  # of kept totals there is nothing to be sure of
    below = [CUT] if asked.nonnegative is False and any(one.low is not None and one.low < 0 for one in found) else []
    return [*map(_line, asked.names, found), *sure, *(METHODS[method].format(doubt=doubt) for method in methods), *below]


def _line(name: str, one: PlainInterval) -> str:
    name = shorten(printable(name), 200)
    if one.method == "kept" and one.low is not None and one.low == one.high:
        number = format_digits(one.low)
        exact = Decimal(number.replace(",", "")) == Decimal(one.low)
        return f"{name}: {number}, {'exactly' if exact else 'without error but for the digits left out'}."
    published = _end(one.published, "not known", ROUND_HALF_EVEN)
    if one.says_nothing:
        return f"{name}: published {published}; nothing is known of the true number, because what it is divided by may be 0."
    low, high = _end(one.low, "no lower bound", ROUND_FLOOR), _end(one.high, "no upper bound", ROUND_CEILING)
    return f"{name}: published {published}; the true number lies from {low} to {high}."


def _sure(asked: NamedIntervals) -> str:
    level, several = asked.level, len(asked.intervals) > 1
    if several and asked.joint is not None:
        how = "by the union bound" if asked.joint == "union bound" else "by draws of all errors together"
        return f"All of these hold at once with probability {level:g} or more, {how}, whatever the true numbers are."
    return f"{'Each of these' if several else 'This'} holds with probability {level:g} or more, whatever the true numbers are."


def _end(value: float | None, none: str, rounding: str) -> str:
    return none if value is None else format_digits(value, rounding)


def ends_text(low: float | None, high: float | None) -> str:
    """ "12.3456 to 20": of one number the nearest digits, of two those outwards."""
    down, up = (ROUND_HALF_EVEN, ROUND_HALF_EVEN) if low == high else (ROUND_FLOOR, ROUND_CEILING)
    return f"{_end(low, '-inf', down)} to {_end(high, 'inf', up)}".replace(",", "")


def name_of(codes: Iterable[tuple[str, str]]) -> str:
    """For example "county 17031, sex F"."""
    return ", ".join(f"{column} {code}" for column, code in codes)


def either(names: Sequence[str]) -> str:
    """ "F or M"."""
    return " or ".join(names)


def unnamed_query(number: int) -> str:
    """A query that is only coefficients."""
    return f"query {number}"


def asked_name(query: str, word: str, other: str) -> str:
    """A condition, and what it is compared with: `word` is minus, over or percent_of."""
    return {"minus": "{} minus {}", "over": "{} over {}", "percent_of": "{} in percent of {}"}[word].format(query, other)
