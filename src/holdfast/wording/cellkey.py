"""Sentences about perturbation tables and about tables that were published with cell keys; from fields alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from holdfast.card.parts import KeyedInfo
from holdfast.cellkey.check import Check, DesignCheck, Missed, OtherNoise, RowFigures, SizeFigures
from holdfast.cellkey.loss import Losses
from holdfast.cellkey.perturb import has_same_law
from holdfast.cellkey.table import PerturbationTable
from holdfast.display import count_of
from holdfast.exact.formatting import FLOAT_DIGITS, format_exact, format_short, format_up
from holdfast.privacy.guarantee import KeyedNoise
from holdfast.wording.cellkey_losses import (
    NO_GUARANTEE,
    ONE_ANSWER,
    counts_text,
    table_sentences,
    value_sentences,
    zero_shown_sentence,
)

SAME_NOISE = (
    "With the same secret, rule for keys and perturbation table the same records have the same noise in every table and on every day: "
    "asking again tells nothing new."
)
NOT_PRIVATE = "NOT PRIVATE: the record keys are made from a test secret. Anyone can make them again and take the noise off. Do not publish."
_PARTS = {
    "secret": "secret of the record keys",
    "column": "column of keys or identifiers",
    "rule": "rule for cell keys",
    "table": "perturbation table",
}
WEIGHTED = (
    "Counts are weighted. The (epsilon, delta) of the perturbation table is for counts of records and does not hold for these: one record "
    "changes a weighted count by its weight, and the noise is multiplied by the mean weight, which that record changes too."
)
OTHER_NOISE_ALLOWED = (
    "Earlier tables may have other noise, which the publisher allowed (other_noise): then the same records have two draws of noise, and "
    "averaging them tells more than one."
)
KEYS_TAKE_OFF = "Whoever has the record keys, or the secret that they are made from, can take the noise off."
NOT_ADDITIVE = "Tables need not add up: every cell has the noise of its own records, totals included."


def keyed_info(noise: KeyedNoise | None) -> KeyedInfo | None:
    """The figures of noise that is looked up by cell keys, as a card has them; None for other noise."""
    if noise is None:
        return None
    bounds = ("variance", "epsilon", "delta", "zero_delta")
    values: dict[str, Any] = {
        name: format_up(Fraction(value), FLOAT_DIGITS) if name in bounds and value is not None else value
        for name, value in vars(noise).items()
    }
    return KeyedInfo(**values | {"distance": format_exact(noise.distance)})


def keyed_sentences(noise: KeyedNoise) -> list[str]:
    """What is said of noise that is looked up by cell keys in place of a promise."""
    counts = f"of at least {noise.first}" if noise.last is None else f"from {noise.first} to {noise.last}"
    told = (
        f"For one cell and one answer, over the draw of the record keys, two counts {counts} that differ by one are indistinguishable up "
        f"to epsilon = {format_short(noise.epsilon)} with delta = {format_short(noise.delta)}; no larger epsilon has a smaller delta."
    )
    return [
        NO_GUARANTEE,
        noise_sentence(noise),
        *value_sentences(noise.least_result, noise.lowest_result),
        *([WEIGHTED] if noise.weighted else []),
        told,
        *([] if noise.zero_delta is None else [zero_shown_sentence(noise.zero_delta)]),
        *([uneven_sentence(noise.distance)] if noise.distance else []),
        ONE_ANSWER,
        SAME_NOISE,
        NOT_ADDITIVE,
        *([OTHER_NOISE_ALLOWED] if noise.other_noise else []),
        KEYS_TAKE_OFF,
    ]


def noise_sentence(noise: KeyedNoise) -> str:
    """The range and variance of the noise."""
    counts = f"{noise.first} and above" if noise.last is None else f"from {noise.first} to {noise.last}"
    return (
        f"The noise of counts {counts} is from {noise.lowest} to {noise.highest}, with a variance of at most "
        f"{format_short(noise.variance)}{', before weights' if noise.weighted else ''}; empty cells stay empty."
    )


def _bound(value: Fraction | float) -> str:
    """A proved bound, to six digits and rounded up."""
    return format_up(Fraction(value), 6)


def check_sentences(check: Check) -> list[str]:
    """What a check says: first that the table of a design misses its target."""
    missed = [] if check.missed is None else [missed_sentence(check.missed)]
    return [*missed, *table_sentences(check.table)]


def check_screen(check: Check) -> str:
    """The main figures of a check for a terminal."""
    made = check.figures
    lines = [
        f"Table      counts {made.first} to {made.last}{' and above' if made.repeat else ''}, {made.key_size} keys; "
        f"published values from {made.lowest_result}",
        f"Worst pair {_worst_text(check.losses)}: no epsilon gets below it",
    ]
    if check.above_zero is not None and check.losses.worst.at_least == 0:
        lines.append(f"From 1 on  {_worst_text(check.above_zero)}")
    lines += [f"  {_row_line(row)}" for row in check.rows[:12]]
    if len(check.rows) > 12:
        lines.append(f"  and {count_of(len(check.rows) - 12, 'more row')}")
    lines += [f"Keys       {size.key_size:>5}: {key_size_text(size)}" for size in check.key_sizes]
    return "\n".join([*lines, *(f"- {sentence}" for sentence in check_sentences(check))])


def _worst_text(losses: Losses) -> str:
    worst = losses.worst.at_least
    return (
        f"counts {worst} and {worst + 1}: delta = {_bound(losses.plateau_bounds.upper)} from epsilon = {_bound(losses.plateau_epsilon)} on"
    )


def _row_line(row: RowFigures) -> str:
    return f"count {row.count:>4}: bias {row.bias:+.3g}, variance {row.variance:.6g}, unchanged {100 * row.stays:.3g} %"


def key_size_text(size: SizeFigures) -> str:
    """What rounding to so many keys does."""
    if size.lost:
        return f"too few, {count_of(size.lost, 'noise value')} would be lost"
    losses = size.losses
    plateau = f"delta = {_bound(losses.plateau_bounds.upper)} from epsilon = {_bound(losses.plateau_epsilon)} on"
    return f"{counts_text(losses)}, {plateau}"


def gap_sentence(fine: str, coarse: str, cells: int, unequal: int, largest: int, mean: Fraction) -> str:
    """How far one published table is from adding up to another."""
    if not unequal:
        return f"{fine!r} adds up to {coarse!r} in {count_of(cells, 'cell')}."
    return (
        f"{fine!r} does not add up to {coarse!r} in {unequal:,} of {count_of(cells, 'cell')}: off by {float(mean):.3g} on average, by "
        f"{largest:,} at most."
    )


def published_screen(cells: Mapping[str, int], sentences: Sequence[str], entry: str | None, *, is_private: bool) -> str:
    """What was published, for a terminal. `cells`: of each table."""
    tables = [f"Wrote {name}: {count_of(number, 'cell')}." for name, number in cells.items()]
    where = "Recorded in no ledger." if entry is None else f"Recorded in the ledger as a cell key release, entry {entry}."
    return "\n".join([*([] if is_private else [NOT_PRIVATE]), *tables, *sentences, where])


def other_noise_refusal(dataset: str, parts: Sequence[str]) -> str:
    """Why tables with other noise than earlier ones are not published; `parts`: what differs."""
    return (
        f"Earlier cell key releases of {dataset!r} have another {_join_all(parts)}: the same records would get a second draw of noise, and "
        "whoever averages both has less of it. Use the same again. If that is not possible, publish with --other-noise (in a run file: "
        "other_noise = true), which says so."
    )


def other_records_refusal(dataset: str, other: str, parts: Sequence[str]) -> str:
    """Why tables are not published with other noise than those of another data set in the ledger; `parts`: what differs."""
    return (
        f"Cell key releases of {other!r} in this ledger have another {_join_all(parts)}. If {dataset!r} has the same records under another "
        "name, they would get a second draw of noise, and whoever averages both has less of it. Use the same again. If these are other "
        'records, say why with --other-records "..." (in a run file: other_records = "..."); the ledger records it. If they are the '
        "same, publish with --other-noise."
    )


def _join_all(parts: Sequence[str]) -> str:
    names = [_PARTS[part] for part in parts]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def rescaled_sentences(before: PerturbationTable, after: PerturbationTable) -> list[str]:
    """A perturbation table that was fitted to another number of keys, if its law is another one now."""
    if has_same_law(before, after):
        return []
    delta, earlier = (format_short(table.epsilon_delta().delta(1)) for table in (after, before))
    return [
        f"The perturbation table was fitted from {before.key_size} to {after.key_size} keys, so its noise follows another law: at "
        f"epsilon = 1 its delta is {delta}, and was {earlier}."
    ]


def uneven_sentence(distance: Fraction) -> str:
    """What it means that cell keys are so far from uniform."""
    return (
        f"Cell keys are {format_short(distance)} from uniform at most, in total variation. Any (epsilon, delta) of the "
        f"perturbation table holds with delta + (1 + e^epsilon) × {format_short(distance)}."
    )


def missed_sentence(missed: Missed) -> str:
    """A table of a design that rounding to keys took above the asked delta."""
    return (
        f"THE TABLE MISSES THE TARGET: rounded to {missed.key_size} keys it has delta = {format_short(missed.delta_of_table)} at "
        f"epsilon = {missed.epsilon}, above the asked {missed.delta}. Take more keys, or ask for a smaller delta."
    )


def design_screen(made: DesignCheck) -> str:
    """A design: the request and the result."""
    first = made.check.figures.first
    small = "rows of largest entropy, with no such promise" if first < made.D else "no rows: cells with such counts are refused"
    lines = [
        f"Asked      epsilon = {made.epsilon}, delta = {made.delta}",
        f"Noise      from -{made.D} to {made.D}, variance {made.variance:.9g}, for counts of at least {made.D}",
        f"Reached    delta = {_bound(made.delta_reached)} at epsilon = {made.epsilon}, before rounding to keys",
        f"With keys  delta = {_bound(made.delta_of_table)} at epsilon = {made.epsilon}, in the table with {made.key_size} keys"
        + ("" if made.check.missed is None else ": ABOVE WHAT WAS ASKED"),
        f"Best gamma {_other_text(made.best)}",
        f"Smallest D {_other_text(made.smallest)}",
        f"Laplace    {_other_text(made.laplace)}",
        *([f"Small      counts 1 to {made.D - 1} have {small}"] if made.D > 1 else []),
    ]
    return "\n".join(lines)


def _other_text(other: OtherNoise) -> str:
    how = "" if other.gamma is None else f", gamma = {other.gamma}, by numbers"
    return f"from -{other.D} to {other.D}{how}: variance {other.variance:.6g}, delta = {_bound(other.delta)}"
