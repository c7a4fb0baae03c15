"""Rows of small counts: noise that never gives a negative result, of largest entropy, as offices use it.

For count i the results are max(0, i - D), ..., i + D without 1, ..., js; a zero stays zero. A row has mean 0 and variance at most V (or
exactly V), and optionally at least a given probability of no noise, and probabilities that do not fall on the way up to no noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal

from holdfast.cellkey.entropy import MomentConstraint, Optimum, largest_entropy
from holdfast.cellkey.loss import Law, Losses, Pair
from holdfast.cellkey.max_entropy import check_support
from holdfast.cellkey.noise import NoiseLaw
from holdfast.cellkey.table import PerturbationTable
from holdfast.errors import HoldfastError, InvalidParameter, PrecisionExhausted
from holdfast.exact.balls import Enclosure
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import Exact, exact_fraction, exact_integer, positive_fraction
from holdfast.privacy.parameters import ordinary

Variance = Literal["at_most", "exact"]

LARGEST_ROWS_D = 200
"""Rows are solved one by one, each with a few hundred multipliers at most."""
_SHORT = Fraction(1, 10**12)


@dataclass(frozen=True)
class SmallCountRow:
    """The noise of one small count.

    Fields:      `target`: the variance asked for. `is_short`: the law of largest entropy has less: the bound on the variance is not
                 tight. `optimum`: multipliers and what proves them.
    """

    count: int
    target: Fraction
    optimum: Optimum

    @property
    def law(self) -> NoiseLaw:
        return self.optimum.law

    @property
    def is_short(self) -> bool:
        return self.variance_bounds.upper < self.target - _SHORT

    @cached_property
    def variance_bounds(self) -> Enclosure:
        return self.law.variance_bounds()


@dataclass(frozen=True)
class TableDesign:
    """Rows for counts 1, 2, ...; the last is symmetric and serves all larger counts. A zero stays zero."""

    D: int
    js: int
    rows: Mapping[int, SmallCountRow]

    @property
    def short_rows(self) -> tuple[int, ...]:
        """Counts whose variance is below the target."""
        return tuple(count for count, row in self.rows.items() if row.is_short)

    def epsilon_delta(self, *, at_least: int = 0) -> Losses:
        """Losses of neighbouring counts before anything is rounded for keys; `at_least`: leave smaller counts out."""
        laws: dict[int, Law] = {0: {0: Fraction(1)}}
        laws |= {n: {n + v: chance for v, chance in row.law.probabilities.items()} for n, row in self.rows.items()}
        last = max(self.rows)
        laws[last + 1] = {last + 1 + v: chance for v, chance in self.rows[last].law.probabilities.items()}
        first = exact_integer(at_least, "at_least")
        pairs = tuple(Pair(n, laws[n], laws[n + 1]) for n in range(min(max(first, 0), last), last + 1))
        return Losses(pairs)

    def quantised(self, key_size: int, *, allow_lost: bool = False) -> PerturbationTable:
        """The table for keys 0 to key_size - 1. Refused where it would lose a noise value, unless allow_lost."""
        bounds = {0: [(0, key_size)], **{count: row.law.upper_bounds(key_size) for count, row in self.rows.items()}}
        return PerturbationTable.from_upper_bounds(bounds, key_size, allow_lost=allow_lost)


def design_rows(
    D: int,
    V: Exact | Mapping[int, Exact],
    *,
    js: int = 0,
    stay: Exact | Mapping[int, Exact] | None = None,
    monotone: bool = False,
    variance: Variance = "at_most",
    allow_short: bool = False,
) -> TableDesign:
    """Rows of largest entropy for counts 1 to D (to D + js + 1 where js > 0); the last one serves all larger counts.

    Given:       D: largest noise. V: variance, one or by count. js: results 1, ..., js never occur. stay: least probability of no noise,
                 one or by count. monotone: probabilities do not fall from the smallest noise up to none. variance: "at_most" V, or "exact".
    Guarantees:  mean, variance and all other constraints to 1e-12, and optimality, proved by balls (`row.optimum`). A row that cannot be
                 made is refused by name; so is one whose variance stays below V, unless allow_short.
    Reference:   [theory T85].
    """
    support, forbidden = _check_support(D), exact_integer(js, "js")
    if not 0 <= forbidden <= support:
        raise InvalidParameter(f"js must be from 0 to D = {support}. Got {forbidden}.", field="js")
    if variance not in ("at_most", "exact"):
        raise InvalidParameter(f"variance is 'at_most' or 'exact'. Got {variance!r}.", field="variance")
    last = support + forbidden + 1 if forbidden else support
    made = {}
    for count in range(1, last + 1):
        target = ordinary(positive_fraction(_of(V, count, "V"), "V"), "V")
        least = None if stay is None else _stay(_of(stay, count, "stay"))
        made[count] = _row(count, support, forbidden, target, least, monotone, variance)
    found = TableDesign(support, forbidden, made)
    if found.short_rows and not allow_short:
        short = found.rows[found.short_rows[0]]
        raise InvalidParameter(
            f"Count {short.count} does not reach the variance {format_exact(short.target)}: its row of largest entropy has "
            f"{short.variance_bounds.nearest():.6g}. Counts that fall short: {', '.join(map(str, found.short_rows))}. Take a smaller V for "
            "these counts (V may be given by count), or allow_short=True (--allow-short).",
            field="V",
            details={"short_rows": list(found.short_rows)},
        )
    return found


def row_noise(count: int, D: int, js: int) -> list[int]:
    """Noise values of a count: no result below zero, none of 1, ..., js."""
    return [result - count for result in range(max(0, count - D), count + D + 1) if not 1 <= result <= js]


def row_constraints(
    noise: Sequence[int], V: Fraction, stay: Fraction | None = None, monotone: bool = False, variance: Variance = "at_most"
) -> list[MomentConstraint]:
    """What a row must satisfy."""
    made = [
        MomentConstraint("mean", tuple(Fraction(v) for v in noise), is_equality=True),
        MomentConstraint("variance", tuple(V - v * v for v in noise), is_equality=variance == "exact"),
    ]
    if stay is not None and 0 in noise:
        made.append(MomentConstraint("stay", tuple((v == 0) - stay for v in noise)))
    if monotone:
        for lower, upper in pairwise(noise):
            if upper <= 0:
                made.append(MomentConstraint(f"order {lower}", tuple(Fraction((v == upper) - (v == lower)) for v in noise)))
    return made


def _row(count: int, D: int, js: int, V: Fraction, stay: Fraction | None, monotone: bool, variance: Variance) -> SmallCountRow:
    noise = row_noise(count, D, js)
    if not noise[0] < 0 < noise[-1]:
        raise InvalidParameter(
            f"Count {count} has no unbiased noise: with D = {D} and js = {js} its only results are {noise[0] + count} to "
            f"{noise[-1] + count}. Take a larger D or a smaller js.",
            field="js",
        )
    below, above = max(v for v in noise if v < 0), min(v for v in noise if v > 0)
    least = stay if 0 in noise and stay else Fraction(0)
    if 0 not in noise and -below * above == V:
        optimum = _extreme([below, above], V, count)
    elif variance == "exact" and _variance_range(noise, least)[1] == V:
        ends = [noise[0], 0, noise[-1]] if least else [noise[0], noise[-1]]
        optimum = _extreme(ends, V, count) if not monotone or _rises(noise, ends, least) else None
    else:
        optimum = largest_entropy(noise, row_constraints(noise, V, stay, monotone, variance), count)
    if optimum is None:
        raise _no_row(count, noise, V, stay if 0 in noise else None, monotone, variance)
    return SmallCountRow(count, V, optimum)


def _extreme(values: Sequence[int], V: Fraction, count: int) -> Optimum | None:
    """The smallest or largest variance there is: only one law has it, with mean 0 on the values nearest to 0, or on both ends and 0."""
    return largest_entropy(values, row_constraints(values, V, variance="exact")[: len(values) - 1], count)


def _rises(noise: Sequence[int], ends: Sequence[int], stay: Fraction) -> bool:
    """Whether the law of the largest variance has no probability that falls on the way up to no noise."""
    chances = {0: stay, ends[0]: (1 - stay) * Fraction(ends[-1], ends[-1] - ends[0])}
    way = [chances.get(v, Fraction(0)) for v in noise if v <= 0]
    return way == sorted(way)


def _no_row(count: int, noise: Sequence[int], V: Fraction, stay: Fraction | None, monotone: bool, variance: Variance) -> HoldfastError:
    """Explain why there is no row: none can exist, none was found, or the search missed one that exists [theory T85]."""
    low, high = _variance_range(noise, stay)
    is_inside = low < V and (variance == "at_most" or high > V)
    if is_inside and (variance == "at_most" or (stay is None and not monotone)):
        return PrecisionExhausted(
            f"The row of count {count} exists but could not be computed. Use a variance of more ordinary size, or change D a little."
        )
    begin = f"For count {count} no noise was found" if is_inside else f"Count {count} has no noise"
    return InvalidParameter(
        f"{begin} that satisfies all constraints at variance {format_exact(V)}. With mean 0"
        f"{'' if stay is None else ' and this probability of staying'} its variance "
        f"{'is always' if low == high else f'lies between {format_exact(low)} and'} {format_exact(high)}"
        f"{'; order constraints narrow this further' if monotone else ''}. Change V, stay or D for this count.",
        field="V",
    )


def _variance_range(noise: Sequence[int], stay: Fraction | None) -> tuple[Fraction, Fraction]:
    """Bounds of the variance of laws on these values with mean 0: the nearest values around 0, and the farthest."""
    below, above = max(v for v in noise if v < 0), min(v for v in noise if v > 0)
    most = Fraction(-noise[0] * noise[-1])
    if 0 in noise:
        return Fraction(0), most * (1 - (stay or 0))
    return Fraction(-below * above), most


def _of(given: Exact | Mapping[int, Exact], count: int, name: str) -> Exact:
    if not isinstance(given, Mapping):
        return given
    if count not in given:
        raise InvalidParameter(f"{name} is given by count and has no value for count {count}. Add it.", field=name)
    return given[count]


def _stay(value: Exact) -> Fraction:
    least = exact_fraction(value, "stay")
    if not 0 <= least < 1:
        raise InvalidParameter(f"stay is a probability, from 0 to below 1. Got {format_exact(least)}.", field="stay")
    return least


def _check_support(D: int) -> int:
    support = check_support(D)
    if support > LARGEST_ROWS_D:
        raise InvalidParameter(f"D must be at most {LARGEST_ROWS_D} for rows of small counts. Got {support}.", field="D")
    return support
