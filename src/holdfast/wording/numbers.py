"""Numbers and lists as sentences show them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from holdfast.channels import Facts
from holdfast.display import count_of
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.formatting import format_short, format_up

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


def counted_sentences(facts: Facts) -> str:
    """What the numbers of a table were declared to count: nothing can check it. Not how many records were left out."""
    protected, records = facts.protect, facts.max_records
    each = "each record counted once" if records is None else f"each counted at most {'once' if records == 1 else f'{records} times'}"
    what = plural("record" if records is None else protected)
    said = f"Column {facts.count_name!r} is declared to be a count of {what}, {each}, and no sum of amounts such as income."
    if facts.over == "refuse":
        return said
    return (
        f"{said} Of a {protected} with more than {count_of(records or 1, 'record')}, a secret key chose which are counted, and the others "
        "were left out. Kept totals are those of the records that are counted."
    )


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
