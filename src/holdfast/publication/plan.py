"""What a release would do, before any confidential count is looked at."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.card.card import (
    CellSpread,
    ChainInfo,
    DisjointInfo,
    ErrorFound,
    ExpectedError,
    ExposedInfo,
    KeptInfo,
    LevelSpread,
    MarginSpread,
    MechanismInfo,
    PlanInfo,
    SamplerGroup,
    SamplerInfo,
    TogetherInfo,
    UndecidedInfo,
    ZerosInfo,
    ZerosStatus,
)
from holdfast.card.parts import WarningInfo
from holdfast.chains.assessment import Assessed, Said
from holdfast.channels import Channel, Drawing, Facts, Law, choose_samplers
from holdfast.channels.covariance import ROUGH_DIGITS, Covariance, covariance_of
from holdfast.channels.drawing import BlockGroup, drawing_without_zeros, leaves_zeros_out
from holdfast.channels.layout import BoundsLayout, LevelError, LevelLayout
from holdfast.display import Watcher, count_of, html_table, shorten, step, watching
from holdfast.errors import ContradictingTotals, HoldfastWarning, InvalidParameter
from holdfast.exact.formatting import round_figure
from holdfast.exposure import Exposure, exposure
from holdfast.exposure.cells import RULE, zero_cells
from holdfast.exposure.pins import RULE as PIN_RULE
from holdfast.invariants.constraints import Constraint
from holdfast.laws import Reads
from holdfast.ledger.disjoint import Disjoint
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.privacy import Guarantee
from holdfast.publication.history import Earlier, with_earlier
from holdfast.publication.order import Order
from holdfast.publication.rows import planned_html
from holdfast.tables import Declarations, Table, Universe
from holdfast.wording.answers import (
    exact_totals_sentence,
    for_answers_only,
    for_counts_only,
    in_steps,
    mechanism_advice,
    nobody_warning,
    rounded_totals_sentence,
)
from holdfast.wording.budget import budget_rows, budget_warnings, counted_sentence, noise_warnings, sample_warnings
from holdfast.wording.cellkey import noise_sentence
from holdfast.wording.errors import basis_phrase, error_sentences, level_lines
from holdfast.wording.exposure import (
    KEYED,
    columns_sentence,
    exposed_sentences,
    kept_texts,
    law_without_zeros,
    zeros_sentence,
    zeros_source,
)
from holdfast.wording.guarantee import guarantee_info, promise_lines
from holdfast.wording.joint import GIVE_VALUES
from holdfast.wording.ledger import disjoint_sentences
from holdfast.wording.samplers import reason_phrase, tries_phrase

if TYPE_CHECKING:
    from holdfast.publication.publication import Publication

logger = logging.getLogger(__name__)

NAMES_SHOWN = 5
"""Exposed cells named as examples; exposed.csv lists all."""

MARGIN_WORK = 10**7
"""Cells times sums looked at for the expected error of margins."""
MAX_MARGIN_CODES = 20


@dataclass(frozen=True)
class ExpectedDeviations:
    """Standard deviations of the noise, from the law alone; None where they depend on the data.

    basis:    what the figures are; `of_target`: they are those of the law that a chain aims at.
    error:    of figures estimated from draws, their relative standard error; infinite where the draws say nothing; else 0.
    margins:  (column, or None for the whole table; the largest standard deviation among the first few of its sums).
    """

    smallest: float | None
    median: float | None
    largest: float | None
    basis: ErrorFound
    error: float
    of_target: bool
    margins: tuple[tuple[str | None, float | None], ...]
    cells_not_estimated: int = 0
    """Cells of which nothing is said, because draws of their noise take too long."""
    levels: tuple[LevelError, ...] = ()
    """Where shares of the budget are given to levels: every level and margin."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Public facts about a release: what is kept and exposed, which sampler and why, the promise, the expected error.

    Guarantees:  made from the universe, the kept totals and the mechanism alone; no count was read. A pickle holds the samplers as they
                 were chosen and assessed: nothing is done again.
    """

    mechanism: Mechanism
    drawing: Drawing
    exposure: Exposure
    disjoint: Disjoint | None = None
    """Releases of the data set with which it would be declared to share no person; the ledger decides whether it takes that."""
    earlier: Earlier = field(default_factory=Earlier)
    """The releases of the data set before it, as far as they are known."""

    @property
    def facts(self) -> Facts:
        return self.drawing.channel.facts

    @property
    def guarantee(self) -> Guarantee:
        return self.drawing.guarantee

    @property
    def law(self) -> Law:
        """The law of the noise; refused where what is published depends on the counts."""
        return Law.of_drawing(self.drawing)

    @cached_property
    def deviations(self) -> NDArray[np.float64] | None:
        """Standard deviation of every cell's noise, to six digits, so that it is the same on every machine, and three where it is a rough
        estimate; None where it depends on the data, no number where it was not estimated, or where noise is so rare that no draw had any.
        """
        if self.covariance is None:
            return None if self.drawing.channel.target.publishes_cells else np.zeros(len(self.facts.universe))
        is_bound, exposed = self.covariance.cell_basis == "upper bound", self.facts.lattice.exposed_cells
        deviations = np.zeros(self.covariance.cells)
        for found in self.covariance.shapes:
            variances, which = _distinct(found.diagonal())
            digits = ROUGH_DIGITS if found.is_rough else 6
            values = np.array([round_figure(v**0.5 * self.step, digits, is_bound=is_bound) for v in variances])[which]
            if found.variance.basis == "estimated" and not variances.all():
                values = np.where((found.diagonal() == 0) & ~np.isin(found.cells, exposed), math.nan, values)
            deviations[found.cells] = values
        return deviations

    @property
    def sum_digits(self) -> int:
        """Digits shown of the standard deviation of a sum of cells."""
        return ROUGH_DIGITS if self.covariance is not None and self.covariance.sums_are_rough else 6

    @property
    def step(self) -> float:
        """What one step of the noise is: 1 for counts, the step of the grid for answers. Errors are given in values."""
        return float(self.facts.measure.step)

    @cached_property
    def covariance(self) -> Covariance | None:
        """Formula of the noise's law; None if there is no noise, or it depends on the data."""
        target = self.drawing.channel.target
        return covariance_of(self.drawing) if target.publishes_cells and target.reads is Reads.NOTHING else None

    @cached_property
    def expected_error(self) -> ExpectedDeviations:
        """Standard deviations of cells and of one-column margins."""
        found = self.covariance
        if found is None or self.deviations is None:
            unknown = self.drawing.channel.target.publishes_cells
            return ExpectedDeviations(None, None, None, "unknown" if unknown else "exact", 0.0, False, ())
        cells = self.deviations[~np.isnan(self.deviations)]
        cells.partition(sorted({0, len(cells) // 2, len(cells) - 1}) if len(cells) else 0)
        smallest, median, largest = (float(cells[i]) if len(cells) else None for i in (0, len(cells) // 2, -1))
        margins = tuple(self._margins())
        of_cells = not any(deviation for _, deviation in margins)  # kept sums have no error, however little is known of others
        basis, error = (found.cell_basis, found.cell_error) if of_cells else (found.basis, found.relative_error)
        share = error / 2 if basis == "estimated" else 0.0
        return ExpectedDeviations(
            smallest, median, largest, basis, share, found.of_target, margins, found.cells_not_estimated, self._levels()
        )

    def _levels(self) -> tuple[LevelError, ...]:
        channel = self.drawing.channel
        return tuple(channel.layout.errors(channel.target)) if isinstance(channel.layout, LevelLayout) else ()

    def _margins(self) -> Iterable[tuple[str | None, float | None]]:
        """For all cells together, and for each column alone; None where it was not estimated."""
        assert self.covariance is not None
        universe = self.facts.universe
        if isinstance(self.drawing.channel.layout, LevelLayout):
            return  # `levels` has every level and margin
        for column in (None, *universe.columns):
            codes = np.zeros(1, dtype=np.int64) if column is None else universe.used_codes(column)
            if len(codes) == len(universe) and len(universe) > 1:
                continue
            own = np.zeros(len(universe), dtype=np.int8) if column is None else universe.code_indices(column)
            looked_at = codes[: self._sums_looked_at(len(codes))].tolist()
            largest = float(np.max([self.covariance.of(own == code) for code in looked_at]))
            deviation = max(largest, 0.0) ** 0.5 * self.step
            is_rough = self.sum_digits == ROUGH_DIGITS
            yield column, None if math.isnan(largest) else round_figure(deviation, ROUGH_DIGITS, is_bound=False) if is_rough else deviation

    def _sums_looked_at(self, sums: int) -> int:
        return max(1, min(sums, MAX_MARGIN_CODES, MARGIN_WORK // len(self.facts.universe)))

    def _margin_name(self, column: str) -> str:
        """ "by sex"; where not all sums were looked at, that too."""
        sums = len(self.facts.universe.used_codes(column))
        looked_at = self._sums_looked_at(sums)
        return f"by {column}" if looked_at == sums else f"by {column} (largest of the first {looked_at} of {sums:,})"

    @property
    def info(self) -> PlanInfo:
        """The plan as the parts of a card."""
        facts, plan = self.facts, self.drawing.sampler_plan
        return PlanInfo(
            warnings=self.warnings,
            cells=len(facts.universe),
            counted=counted_sentence(facts) if facts.measure.whole else None,
            kept=KeptInfo(
                constraints=tuple(str(s) for s in facts.constraints if s.kind == "kept"),
                identities=tuple(str(s) for s in facts.constraints if s.kind == "identity"),
                definitions=tuple(facts.definitions),
                revision=None,
                totals=self._totals,
                independent=self.guarantee.exposed.kept_sums,
                free_dimensions=facts.moves.dimension,
                zeros=self._zeros_info,
            ),
            exposed=exposed_info(self.exposure, self.guarantee),
            mechanism=MechanismInfo(
                name=self.mechanism.name,
                parameters={**self.mechanism.parameters},
                law=self._law_text,
                identity=self.drawing.channel.identity,
            ),
            sampler=SamplerInfo(status=plan.status, groups=tuple(map(_group_info, plan.groups))),
            guarantee=guarantee_info(self.guarantee),
            expected_error=self._error_info,
            disjoint=None if self.disjoint is None else DisjointInfo.of(self.disjoint),
        )

    @property
    def warnings(self) -> tuple[WarningInfo, ...]:
        """What the pages would say first, of the budget, the noise and the records."""
        return (*budget_warnings(self.guarantee), *self._noise_warnings(), *sample_warnings(self.facts))

    def _noise_warnings(self) -> tuple[WarningInfo, ...]:
        """The warning about cells that carry noise, as far as its standard deviation is known."""
        if self.deviations is None or not self.drawing.channel.target.publishes_cells:
            return ()
        least = np.nan_to_num(np.delete(self.deviations, self.facts.moves.exposed_cells), copy=False)  # no number where no draw had any
        middle = (len(least) - 1) // 2
        typical = float(np.partition(least, middle)[middle]) / self.step if len(least) else None
        rough = self.covariance is not None and bool((self.covariance.rough() | self.covariance.unseen()).any())
        return noise_warnings(typical, self.facts.measure.noun, self._error_info.basis, is_rough=rough)

    def to_fields(self) -> dict[str, Any]:
        """The same as plain values, for `--json`."""
        return self.info.to_dict()

    @property
    def _law_text(self) -> str:
        facts, formula = self.facts, self.drawing.channel.target.formula
        if not facts.measure.whole:
            return f"{formula}; {in_steps(facts.measure.step_text)}"
        return formula if facts.zeros is None else formula + law_without_zeros(self._new_cells(facts.zeros.cells))

    @property
    def _zeros_info(self) -> ZerosInfo:
        """Cells that take no noise because a kept total is 0."""
        zeros = self.facts.zeros
        totals, leaves_out = self.facts.published_totals, leaves_zeros_out(self.drawing.channel)
        cells = 0 if zeros is None else self._new_cells(zeros.cells)
        under = self._new_cells(np.flatnonzero(zero_cells(self.facts.kept, totals))) if leaves_out and totals is not None else 0
        is_open = totals is None and leaves_out
        status: ZerosStatus = "open" if is_open else "none" if zeros is None else "applied"
        digest = None if zeros is None else f"sha256:{zeros.digest}"
        kinds = {rows.kind for rows in self.facts.kept.rows}
        text = zeros_sentence(status, cells, under, zeros_source("kept" in kinds, "identity" in kinds))
        return ZerosInfo(status=status, rule=RULE, cells=cells, under=under, digest=digest, text=text)

    def _new_cells(self, cells: NDArray[np.int64]) -> int:
        """How many of them the kept rows do not fix whatever their values are."""
        return len(np.setdiff1d(cells, self.facts.lattice.exposed_cells))

    @property
    def _totals(self) -> int:
        return sum(rows.count for rows in self.facts.kept.rows if rows.kind == "kept")

    @cached_property
    def _error_info(self) -> ExpectedError:
        error, measure = self.expected_error, self.facts.measure
        rough = self.covariance is not None and bool(self.covariance.rough().any())
        spread = (error.smallest, error.median, error.largest, error.basis, error.cells_not_estimated)
        text, keyed = error_sentences(*spread, measure.noun, not measure.on_grid, self._totals > 0, rough), self.guarantee.keyed
        margins = [("total of the table" if column is None else self._margin_name(column), sd) for column, sd in error.margins]
        return ExpectedError(
            cell_standard_deviation=CellSpread(smallest=error.smallest, median=error.median, largest=error.largest),
            found=error.basis,
            basis=basis_phrase(error.basis, error.error, not error.of_target),
            relative_error=error.error if math.isfinite(error.error) else None,
            text=text if keyed is None else noise_sentence(keyed),
            cells_not_estimated=error.cells_not_estimated,
            margins=tuple(MarginSpread(name=name, standard_deviation=sd) for name, sd in margins),
            levels=tuple(LevelSpread(**asdict(found)) for found in error.levels),
        )

    def __str__(self) -> str:
        return "\n".join(f"{head:<10} {text}" for head, text in self._lines())

    @property
    def kept_text(self) -> str:
        """What is kept, and how many totals that is."""
        kept, said = self.info.kept, kept_texts(self.facts.constraints, self.facts.universe.labels)
        totals, free = count_of(f"{kept.totals:,}", "total"), count_of(f"{kept.free_dimensions:,}", "free dimension")
        return f"{'; '.join(said) or 'nothing'}: {totals}, {kept.independent:,} independent; {free}"

    def _lines(self) -> Iterable[tuple[str, str]]:
        info, facts = self.info, self.facts
        kept, universe, said = info.kept, facts.universe, info.mechanism
        if self.guarantee.answers is not None and self.guarantee.person is None:
            yield "WARNING", nobody_warning(self.guarantee)
        for warning in info.warnings:
            yield "WARNING", warning.text
        what = "cells" if facts.measure.whole else f"answers in steps of {facts.measure.step_text}"
        yield "Table", f"{info.cells:,} {what} by {', '.join(map(universe.labels.column, universe.columns))} ({universe.support})"
        if info.counted is not None:
            yield "Counted", info.counted
        yield "Kept", self.kept_text
        if kept.identities:
            identities = "; ".join(kept_texts(facts.constraints, universe.labels, "identity"))
            yield "Always", f"{identities}: true of every data set, exposes nothing"
        if kept.totals and not facts.measure.on_grid:
            rounded = facts.measure.round_totals
            yield (
                "WARNING" if rounded else "Exact",
                (rounded_totals_sentence if rounded else exact_totals_sentence)(facts.measure.step_text),
            )
        yield "Exposed", info.exposed.text
        together = self.exposure.together
        if together is not None and not set(together.facts.releases) <= {given.totals.name for given in self.earlier.beside}:
            yield "Advice", GIVE_VALUES
        if kept.zeros.status != "none":
            yield "Zeros", kept.zeros.text
        yield "Mechanism", ", ".join([said.name, *(f"{name} = {value}" for name, value in self.mechanism.shown_parameters.items())])
        for number, (what, numbers) in enumerate(budget_rows(self.guarantee) if self.mechanism.asked is not None else ()):
            yield "" if number else "Budget", f"{what}: {numbers}"
        yield "Law", said.law
        if info.guarantee.law is not None:
            yield "", info.guarantee.law.text
        costs = self.drawing.sampler_plan.groups
        for number, (group, cost) in enumerate(zip(info.sampler.groups, costs, strict=True)):
            blocks = f"{group.blocks:,} x {group.kind}" if group.blocks > 1 else group.kind
            tail = tries_phrase(cost.expected_tries, cost.cell_draws, cost.blocks == 1 and cost.compared is not None)
            tail = tail if group.chain is None else "an estimate"
            cells = count_of(f"{group.cells:,}", "cell")
            yield "" if number else "Sampler", f"{blocks} ({cells}): {group.sampler}; {group.why}; {tail}"
        basis = f" ({info.expected_error.basis})" if self.guarantee.keyed is None else ""
        yield "Error", f"{info.expected_error.text}{basis}"
        for number, line in enumerate(level_lines(self.expected_error.levels, self.expected_error.basis)):
            yield "" if number else "Levels", line
        for number, line in enumerate(promise_lines(self.guarantee)):
            yield "" if number else "Promise", line
        if self.disjoint is not None:
            yield "Disjoint", disjoint_sentences(self.disjoint, facts.protected)
        if self.mechanism.takes_answers:
            yield "Advice", mechanism_advice(self.mechanism.name)

    def __repr__(self) -> str:
        exposed = len(self.exposure.cells)
        return f"Plan({len(self.facts.universe)} cells, {shorten(repr(self.mechanism), 150)}, {exposed} cells exposed)"

    def _repr_html_(self) -> str:
        return html_table("Plan", self._lines(), paragraphs=("Promise", "Exposed")) + planned_html(self)


def exposed_info(exposure: Exposure, guarantee: Guarantee) -> ExposedInfo:
    """How many cells are published exactly and why, with a few names."""
    fixed, pinned, columns, jointly = exposure.fixed, exposure.cells_exposed_by_totals, guarantee.exposed.columns, exposure.together
    more = [] if jointly is None else [jointly.fixed, jointly.pinned]
    text = exposed_sentences(exposure.facts(), jointly is not None) if guarantee.keyed is None else KEYED
    return ExposedInfo(
        cells=len(exposure.cells),
        by_structure=len(fixed),
        by_values=len(pinned),
        names=tuple(exposure.universe.cell_name(int(cell)) for cell in np.concatenate([fixed, pinned, *more])[:NAMES_SHOWN]),
        columns=tuple(columns),
        rule=PIN_RULE,
        undecided=len(exposure.undecided),
        open=tuple(UndecidedInfo(**asdict(found)) for found in exposure.facts().open),
        together=None if jointly is None else TogetherInfo(**asdict(jointly.facts)),
        text=" ".join(filter(None, (text + columns_sentence(columns), "" if jointly is None else jointly.facts.text))),
    )


def _group_info(group: BlockGroup) -> SamplerGroup:
    return SamplerGroup(
        kind=group.kind,
        blocks=group.blocks,
        cells=group.cells,
        sampler=group.sampler,
        expected_tries=group.expected_tries,
        why=reason_phrase(group.reason, group.compared, group.note),
        chain=None if group.assessment is None else _chain_info(group.assessment),
    )


def _chain_info(found: Assessed) -> ChainInfo:
    return ChainInfo(
        kernel=found.kernel,
        steps=found.steps,
        sweeps=found.sweeps,
        pairs=found.pairs,
        lag=found.lag,
        median_meeting=found.median,
        largest_meeting=found.largest,
        eta=str(found.eta),
    )


def plan(
    table: Table | Declarations | Universe,
    keep: Iterable[Constraint],
    mechanism: Mechanism,
    *,
    published_totals: Any = None,
    disjoint: Mapping[str, Any] | None = None,
    beside: Iterable[Publication] = (),
    progress: Watcher | None = None,
) -> Plan:
    """Everything about a release that can be known without its counts.

    Given:       a table, of which only the declarations are read, or a universe; the kept constraints; a mechanism. `published_totals`, one
                 number for each kept total and identity in the order of `keep`, adds the cells that these values pin (counts are not
                 negative). `disjoint` is the declaration that hf.release takes; the plan shows it. `beside` are earlier releases of
                 the data set, read from their folders by hf.load: what they and this one expose together is in the plan. `progress` is
                 called with (name of a step, done, in all): where Markov chains are assessed, that may take minutes.
    Guarantees:  no confidential count is read. Impossible requests are refused here.
    """
    check_mechanism(mechanism)
    facts = Facts.of(Declarations.of(table), keep)
    declared = None if disjoint is None else Disjoint.read(disjoint)
    with watching(progress):
        made = prepare(facts if published_totals is None else facts.with_totals(published_totals), mechanism, disjoint=declared)
    return with_earlier(made, (), Order(beside=tuple(given.as_earlier for given in beside)))


def _distinct(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The different values, and for each entry which of them it has. Equal neighbours are one, so that few have to be sorted."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    distinct, which = np.unique(values[starts], return_inverse=True)
    return distinct, np.repeat(which, np.diff(starts, append=len(values)))


def check_mechanism(mechanism: Mechanism, what: str = "A plan") -> None:
    """Raise if the argument is not a mechanism. `what`: what needs one."""
    if not isinstance(mechanism, Mechanism):
        own = mechanism.__name__ if isinstance(mechanism, type) and issubclass(mechanism, Mechanism) else None
        got = type(mechanism).__name__ if own is None else f"the class: write {own}(...), with its parameters"
        raise InvalidParameter(f"{what} needs a mechanism, such as GeneralizedLaplace(epsilon='1/4'). Got {got}.")


def prepare(
    facts: Facts,
    mechanism: Mechanism,
    said: Sequence[Said] | None = None,
    check: Callable[[Channel], None] | None = None,
    disjoint: Disjoint | None = None,
) -> Plan:
    """The first step of every release, from public facts: this function cannot reach a count.

    `said`, of chains: see choose_samplers. `check` may refuse the channel before samplers are chosen for it, which may take long.
    """
    if mechanism.takes_answers == facts.measure.whole:
        refusal = for_answers_only if mechanism.takes_answers else for_counts_only
        raise InvalidParameter(refusal(type(mechanism).__name__))
    with step("Calibrating the noise"):
        mechanism = mechanism.for_facts(facts)
        channel = mechanism.channel(facts)
    totals = facts.published_totals
    told = (mechanism.name, len(facts.universe), ", ".join(map(str, facts.constraints)) or "nothing kept")
    logger.debug("Planning %s on %d cells: %s", *told)
    if channel.target.publishes_cells != mechanism.publishes_cells:  # `verify` asks the class, which has no channel
        raise InvalidParameter(f"publishes_cells of {type(mechanism).__name__} and of its target differ. Set both to the same.")
    if check is not None:
        check(channel)
    found = _find_exposure(channel, totals)  # refuses totals that contradict one another
    drawing = None if totals is None else drawing_without_zeros(mechanism.channel, channel, totals)
    if drawing is None:
        drawing = choose_samplers(channel, said)
    for group in drawing.sampler_plan.groups:
        logger.debug("Sampler: %s", group)
    return Plan(mechanism, drawing, found, disjoint)


@step("Finding cells that are 0")
def decide_exposure(plan: Plan, totals: Sequence[NDArray[np.int64]]) -> Plan:
    """The plan for a table with these totals, one array for each entry of the kept rows: cells that they make 0 are left out of the draw.

    Guarantees:  a function of the plan and the totals. Parameters of the law, price and what the structure exposes stay as they were.
    """
    facts = plan.facts
    known = facts.published_totals
    if known is not None:
        if all(map(np.array_equal, known, totals)):
            return plan
        raise ContradictingTotals("The plan was made for other totals than those of the table. Make a plan for this table.")
    channel = replace(plan.drawing.channel, facts=replace(facts, published_totals=tuple(totals)))
    drawing = drawing_without_zeros(plan.mechanism.channel, channel, totals)
    if drawing is not None:
        return replace(plan, drawing=drawing)
    made = replace(plan, drawing=replace(plan.drawing, channel=channel))
    for name in ("covariance", "deviations", "expected_error"):  # of the law, which is the same
        if name in plan.__dict__:
            made.__dict__[name] = plan.__dict__[name]
    return made


def exposure_after(channel: Channel, totals: list[NDArray[np.int64]], table: NDArray[np.int64]) -> Exposure:
    """What is exposed once these totals are published; `table`, any table of these totals such as the released one, shows more of what
    they say together.
    """
    facts, found = channel.facts, _find_exposure(channel, totals, table)
    if facts.zeros is None:
        return found
    alone = facts.zeros.moves.exposed_cells  # where no noise goes, the table says what the totals say
    return found.with_pinned(alone, table[alone])


def _find_exposure(channel: Channel, totals: Sequence[NDArray[np.int64]] | None, table: NDArray[np.int64] | None = None) -> Exposure:
    """What the kept totals expose. Answers may have any value: what the totals are pins none of them."""
    facts, layout = channel.facts, channel.layout
    if not facts.measure.nonnegative:
        return replace(exposure(facts.lattice, facts.kept), values_open=False)
    bounds = layout.inequalities if isinstance(layout, BoundsLayout) else None
    with step("Finding exposed cells"), warnings.catch_warnings():
        warnings.simplefilter("ignore", HoldfastWarning)
        return exposure(facts.lattice, facts.kept, totals, table=table, bounds=bounds)
