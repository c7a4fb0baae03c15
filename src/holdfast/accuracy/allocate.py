"""How to divide a budget among levels and margins, and how large it must be for a wanted accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import numpy as np

from holdfast.accuracy.level_design import Floats, Margin, MarginVariances
from holdfast.accuracy.share_design import Objective, best_shares, closed_form
from holdfast.channels import Channel, Facts
from holdfast.channels.gaussian import settle
from holdfast.channels.layout import MOST_MARGINS, LevelLayout
from holdfast.display import shorten, split_names
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import format_exact, round_figure, round_up
from holdfast.exact.parameters import BUDGET_RANGE, Exact, is_extreme
from holdfast.invariants.constraints import Constraint
from holdfast.lattices.geography import DETAILED, TOTAL, Geography, LevelName, finer_columns
from holdfast.lattices.norms import L2
from holdfast.lattices.shapes import Units
from holdfast.laws.sequential import MOST_RAISED
from holdfast.mechanisms.gaussian import GeneralizedGaussian
from holdfast.mechanisms.levels import Shares, arrange_levels, level_channel, margin_of, read_workload
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.requests import check_choice
from holdfast.privacy.guarantee import GaussianLaw
from holdfast.privacy.parameters import DISTANCE, budget, ordinary
from holdfast.tables import Declarations, Table, Universe
from holdfast.wording.budget import AllocationFacts, ReachedLine, ShareLine, allocation_lines, budget_line, share_lines

Goal = Literal["targets", "sum", "largest", "relative"]
GOALS = ("targets", "sum", "largest", "relative")

DIGITS = 4
"""Significant digits of a budget found for targets; it is rounded up."""
DOUBT = Fraction(1, 10**12)
"""Taken off before rounding up, so that a short number stays that number: doubles tell no more apart."""


@dataclass(frozen=True)
class Reached:
    """One wanted margin: its target (None where there is none), and the largest standard deviation of one of its numbers."""

    level: str
    margin: str
    target: Fraction | None
    deviation: float

    @property
    def facts(self) -> ReachedLine:
        """In plain values: the target exact, the deviation rounded up."""
        target = None if self.target is None else format_exact(self.target)
        return ReachedLine(self.level, self.margin, target, round_figure(self.deviation, 6, is_bound=True))


@dataclass(frozen=True)
class Allocation:
    """Shares for a workload, and the mechanism that has them.

    mechanism:  ready for hf.plan and hf.release.
    reached:    one row for each wanted margin, from the law that the plan shows.
    others:     one row for each level and margin that was not wanted and is not exact: they get what the shares leave.
    within:     the goal is at most this factor above what any shares could reach with these margins measured: a proof, not a hope.
                For targets it is a factor of rho, else one of the sum or the largest variance.
    equal:      the same factor for equal shares of the same margins, over the one reached: what choosing was worth.
    is_approximate:  whether the standard deviations are those of continuous noise, which no proof bounds: narrow noise, drawn by the
                     sequential law.
    """

    goal: Goal
    mechanism: GeneralizedGaussian
    reached: tuple[Reached, ...]
    others: tuple[Reached, ...]
    within: float
    equal: float
    is_approximate: bool

    @property
    def rho(self) -> Fraction:
        """The budget, as the mechanism takes it: for one unit of distance or for one person."""
        assert self.mechanism.rho is not None
        return self.mechanism.rho

    @property
    def shares(self) -> Shares:
        """Exact, adding up to one."""
        assert self.mechanism.levels is not None
        return self.mechanism.levels

    @property
    def run_file(self) -> str:
        """The lines of a run file's [release] that ask for this."""
        return f"{budget_line(format_exact(self.rho))}\n{self._shares_text}"

    @property
    def _shares_text(self) -> str:
        return "\n".join(share_lines([(s.level, s.margin, format_exact(s.share)) for s in self.shares]))

    @property
    def facts(self) -> AllocationFacts:
        """In plain values, for screens and JSON."""
        return AllocationFacts(
            goal=self.goal,
            rho=format_exact(self.rho),
            per=self.mechanism.per,
            levels=[ShareLine(share.level, share.margin, format_exact(share.share)) for share in self.shares],
            reached=[row.facts for row in self.reached],
            others=[row.facts for row in self.others],
            within=max(round_figure(self.within, 6, is_bound=True), 1.0),
            equal_shares=round_figure(self.equal, 6, is_bound=False),
            run_file=self.run_file,
            approximate=self.is_approximate,
        )

    def to_fields(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self.facts)

    @property
    def to_paste(self) -> str:
        """The same lines, with sentences that say where they go."""
        return (
            f"In [release] of the run file, in place of the budget:\n\n{budget_line(format_exact(self.rho))}\n\n"
            f"At the end of the file, in place of the shares if it has any:\n\n{self._shares_text}"
        )

    def __str__(self) -> str:
        return "\n".join(allocation_lines(self.facts))

    def __repr__(self) -> str:
        return f"Allocation({self.goal}, {shorten(repr(self.mechanism), 200)})"


def allocate(
    table: Table | Declarations | Universe,
    keep: Iterable[Constraint],
    workload: Mapping[Any, Any],
    *,
    goal: Goal = "targets",
    rho: Exact | None = None,
    per: str | None = None,
) -> Allocation:
    """Shares of the budget for levels and margins, the best for a goal; for targets also the least budget that reaches them.

    Given:       a table, of which only the declarations are read, or a universe; the kept constraints; a workload: {level: number} or
                 {level: {margin: number}}, names as in `levels` of GeneralizedGaussian. A number alone is for the totals of the units.
                 goal "targets": the numbers are standard deviations that every unit shall have at most, and rho is found. With the other
                 goals the numbers say how much a variance counts, and rho is given: "sum" is for the least sum over all numbers of the
                 workload, "largest" for the least largest one, "relative" for the least largest one relative to the mean of its margin
                 (which nobody needs to know: the numbers of a margin add up to the same total in all).
                 `per`: what rho is for, as for mechanisms.
    Guarantees:  exact shares that add up to one; with "targets" no standard deviation that the plan shows for them is above its target (to
                 twelve digits). `within` bounds how much better other shares of these margins could be. No count is read.
    Reference:   [theory T155], [theory T156].
    """
    check_choice(goal, GOALS, "goal")
    if (rho is None) is not (goal == "targets"):
        said = "finds rho: leave it out" if goal == "targets" else "divides a budget: give rho, such as rho='1/10'"
        raise InvalidParameter(f"goal={goal!r} {said}.")
    facts = Facts.of(Declarations.of(table), keep)
    facts.measure.check_counts("Budgets are divided for tables of counts. Real-valued answers have no levels.")
    wanted = read_workload(workload, "standard deviation" if goal == "targets" else "weight")
    found, kept = arrange_levels(facts, _with_finer(facts.universe, [share.level for share in wanted]))
    places = _find_wanted_margins(facts, wanted, found, kept, goal)
    names = _names(found)
    measured = _find_measurable_margins(found, kept, places, names)
    shape = Units(found.tree, found.lengths, tuple(tuple(sorted(family)) for family in kept))
    variances = MarginVariances(shape, measured, places)
    numbers = [float(share.share) for share in wanted]
    objective = Objective(variances, list(_factors(variances, numbers, goal)), goal != "sum")
    finest = measured.index((found.depth, found.full))
    start = closed_form(variances, numbers, finest, measured[finest] in places) if goal == "sum" else None
    design = best_shares(objective, finest, measured[finest] in places, start)
    named = [(found.names[level], names[mask]) for level, mask in measured]
    levels: dict[LevelName, dict[Any, Fraction]] = {}
    for margin, (level, name), part in zip(measured, named, design.shares, strict=True):
        if part or margin in places:  # a wanted margin is named without a share too, so that plans show its error
            levels.setdefault(level, {})[name] = part
    asked = _least(design.value, per, facts.records) if rho is None else ordinary(budget(rho, "rho"), "rho")
    mechanism = GeneralizedGaussian(rho=asked, levels=levels, per=per).for_facts(facts)
    rho_per_distance = mechanism.for_distance(facts.records).rho
    assert rho_per_distance is not None
    law = _law(mechanism, facts)
    if goal == "targets" and law.rho < rho_per_distance:  # the lattice law of this budget is not drawn
        asked *= _price(facts, rho_per_distance, mechanism.levels)
        mechanism = GeneralizedGaussian(rho=asked, levels=levels, per=per).for_facts(facts)
        law = _law(mechanism, facts)
    rows = []
    for share, values in zip(wanted, variances.at(2 * float(law.rho) * np.array(design.shares, dtype=np.float64)), strict=True):
        target = share.share if goal == "targets" else None
        most = float(values.max()) * (MOST_RAISED if law.kappa else 1.0)
        rows.append(Reached(_text(share.level), _text(share.margin), target, math.sqrt(most)))
    equal = objective.value(np.full(len(measured), 1 / len(measured)))
    value = float(rho_per_distance) if goal == "targets" else design.value
    channel = mechanism.channel(facts)
    is_approximate = any(
        found is not None and found.basis == "approximate" for found in map(channel.target.block_variance, channel.shapes())
    )
    others = tuple(_find_others(channel, places))
    return Allocation(goal, mechanism, tuple(rows), others, value / design.bound, equal / value, is_approximate)


def _find_others(channel: Channel, places: Sequence[Margin]) -> Iterable[Reached]:
    """What levels and margins get that nobody asked for, as far as they are not exact."""
    layout = channel.layout
    assert isinstance(layout, LevelLayout)
    wanted = {(layout.names[level], layout.margins.get(mask)) for level, mask in places}
    for error in layout.errors(channel.target):
        if error.largest and (error.level, error.margin) not in wanted:
            yield Reached(error.level, error.margin, None, error.largest)


def _law(mechanism: GeneralizedGaussian, facts: Facts) -> GaussianLaw:
    found = mechanism.channel(facts).guarantee.law
    assert found is not None
    return found


def _price(facts: Facts, rho: Fraction, levels: Shares | None) -> Fraction:
    """How many times a budget must be larger so that what is drawn, and shown, has no more noise than its lattice law."""
    assert levels is not None
    wider = Fraction(MOST_RAISED) * rho
    priced = settle(level_channel(facts, wider, levels), "auto", is_budget=False).guarantee.rho
    assert priced is not None
    return round_up(priced / rho * (1 + Fraction(1, 10**4)), DIGITS)


def _with_finer(universe: Universe, names: Sequence[LevelName]) -> list[LevelName]:
    """The named levels, and columns below the finest of them: their cells are published, so that they need a share."""
    return [*names, *finer_columns(universe, names)]


def _find_wanted_margins(facts: Facts, wanted: Shares, found: Geography, kept: tuple[frozenset[int], ...], goal: Goal) -> list[Margin]:
    """(level, mask) of each; refuses what is kept, and what no budget reaches."""
    out = []
    for share in wanted:
        level, mask = margin_of(facts, share, found)
        said = f"workload: {_text(share.level)}, {_text(share.margin)}"
        if mask in kept[level]:
            raise InvalidParameter(f"{said} is kept exactly: its error is 0, and it needs no budget. Leave it out.")
        if share.share and is_extreme(share.share**2):
            raise InvalidParameter(f"{said}: the square of a number {BUDGET_RANGE}, as a budget must. Write a number of ordinary size.")
        if share.share == 0:
            why = "a standard deviation of 0 needs an infinite budget. Keep these totals exactly, or write a number above 0"
            raise InvalidParameter(f"{said}: {why if goal == 'targets' else 'a weight of 0 asks for nothing. Leave it out'}.")
        out.append((level, mask))
    if len(set(out)) < len(out):
        raise InvalidParameter("workload: a margin is named twice, by two of its names. Name it once.")
    return out


def _names(found: Geography) -> dict[int, tuple[str, ...] | str]:
    """The margins that have a name, by mask, as shares name them."""
    out: dict[int, tuple[str, ...] | str] = {}
    for chosen in product(*((("", 0), *column) for column in found.columns)):
        out[sum(mask for _, mask in chosen)] = tuple(name for name, mask in chosen if mask)
    return {**out, found.full: DETAILED, 0: TOTAL}


def _find_measurable_margins(
    found: Geography, kept: tuple[frozenset[int], ...], wanted: Sequence[Margin], names: Mapping[int, tuple[str, ...] | str]
) -> list[Margin]:
    """What may have a share: the wanted margins, those that are sums of them at the same level, and the finest table."""
    smaller = [(level, mask) for mask in names for level, wide in set(wanted) if mask & wide == mask and mask not in kept[level]]
    chosen = {*(smaller if len(smaller) <= MOST_MARGINS else wanted), (found.depth, found.full)}
    return sorted(chosen)


def _factors(variances: MarginVariances, numbers: Sequence[float], goal: Goal) -> Iterable[Floats]:
    """What each variance counts, for each class of units."""
    for place, number in enumerate(numbers):
        many = variances.numbers(place).astype(np.float64)
        if goal == "sum":
            yield number * many
        elif goal == "targets":
            yield np.full(len(many), number**-2)
        else:
            yield np.full(len(many), number * (many.sum() ** 2 if goal == "relative" else 1.0))


def _least(value: float, per: str | None, records: int) -> Fraction:
    """The budget that reaches all targets, where `value` is what rho = 1 for one unit of distance leaves of the worst."""
    return round_up(Fraction(value) * (1 - DOUBT) * (1 if per == DISTANCE else L2.person_moving(records)), DIGITS)


def _text(name: LevelName) -> str:
    return ":".join(name) if isinstance(name, tuple) else name


def check_divides(mechanism: Mechanism) -> None:
    """Refuses a mechanism whose budget has no shares for levels."""
    if not isinstance(mechanism, GeneralizedGaussian):
        raise InvalidParameter(
            f'Targets are reached by dividing rho among levels, which {mechanism.name} does not do. Use mechanism = "generalized-gaussian" '
            'with rho = "1/10".'
        )


def read_targets(texts: Sequence[str]) -> dict[Any, dict[Any, str]]:
    """From "county=5", "county:sex=7.5", "state:county/sex:age=9": a workload with targets. Without "/" the first name is the level."""
    out: dict[Any, dict[Any, str]] = {}
    for text in texts:
        names, equals, number = text.rpartition("=")
        level, mark, margin = names.partition("/" if "/" in names else ":")
        parts = [tuple(split_names(name)) for name in (level, margin if mark else TOTAL)]
        if not equals or not all(map(all, parts)) or " x " in names:
            raise InvalidParameter(
                f"--target {shorten(text)!r} is no target. Write county=5: a level and its largest standard deviation; or county:sex=7.5 "
                "for the counts by sex of each county; or state:county/sex=9 for units of two columns."
            )
        level_name, margin_name = (part[0] if len(part) == 1 else part for part in parts)
        row = out.setdefault(level_name, {})
        if margin_name in row:
            raise InvalidParameter(f"--target: {names.strip()} is named twice. Name it once.")
        row[margin_name] = number.strip()
    return out
