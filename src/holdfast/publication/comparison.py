"""What every mechanism that works would give at one budget, before any count is looked at: promise, error and bias by the size of the true
count, also of counts for print, and how long a draw takes.

Errors of noise that sees no data come from its law. What depends on the true counts is simulated on a stated table: its sizes are those of
`stated_table`, the same for everyone, and no confidential count is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.channels import Facts
from holdfast.channels.layout import BoundsLayout
from holdfast.engines.local import run_task
from holdfast.errors import HoldfastError, InvalidParameter, NoExactSampler
from holdfast.exact.compiled import expecting
from holdfast.invariants.constraints import Constraint
from holdfast.laws import Reads
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.registry import MECHANISMS
from holdfast.privacy.exchange import Exchange
from holdfast.privacy.parameters import Asked
from holdfast.publication.plan import Plan, check_mechanism, prepare
from holdfast.publication.view import SOLVED_A_SECOND, ViewMaker
from holdfast.randomness import NoiseKey
from holdfast.samplers.choice import CELL_SECONDS, duration
from holdfast.tables import Declarations, Table, Universe
from holdfast.wording.comparison import (
    NO_BUDGET,
    OUTSIDE,
    TOO_LONG,
    Comparison,
    MechanismRow,
    SizeError,
    exchange_sentence,
    promise_text,
    stated_sentence,
)
from holdfast.wording.view import SIZES, size_name

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST_COUNT = 4_999
"""The largest count of the stated table."""
_GOLDEN = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: its multiples, modulo 2^64, are spread evenly."""
MOST_WORK, MOST_DRAWS, LEAST_DRAWS = 1e8, 200, 4
"""Cell draws that the simulation of a row may take, about five seconds; simulated releases, at most and at least."""
CELL_WORK, SOLVED_WORK = 20, 1 / (SOLVED_A_SECOND * CELL_SECONDS)
"""Cell draws that take as long as a cell of a simulated release, and as one that the solver of views looks at."""


def compare(table: Table | Declarations | Universe, keep: Iterable[Constraint], mechanism: Mechanism) -> Comparison:
    """Compare what every mechanism would give at the budget of this one.

    Given:       as for hf.plan; a mechanism that has a budget, or noise of a known rho. It may be one that this table refuses.
    Guarantees:  no confidential count is read: errors come from public laws, and where they depend on the true counts from simulation on
                 `stated_table`. Every mechanism of the registry is asked by `Mechanism.at_budget`.
    """
    check_mechanism(mechanism, "A comparison")
    facts = Facts.of(Declarations.of(table), keep)
    facts.measure.check_counts("These are real-valued answers. A comparison is of tables of counts.")
    mechanism = mechanism.for_facts(facts)
    budget = Exchange(_asked_for_protected(mechanism, facts))
    others = (made.for_facts(facts) for cls in MECHANISMS.values() if not cls.takes_answers and (made := cls.at_budget(budget)) is not None)
    truth = stated_table(len(facts.universe))
    asked = promise_text(budget.asked)
    rows = [replace(row, asked=True) for row in _rows(facts, mechanism, asked, truth)]
    for other in others:
        if other.for_distance(facts.records) != mechanism.for_distance(facts.records):
            exchanged = other.asked is not None and other.asked.numbers.keys() != budget.asked.numbers.keys()
            rows += (
                replace(row, exchanged=exchanged)
                for row in _rows(facts, other, promise_text(other.asked), truth)
                if not (row.refused and (row.mechanism, row.problem) == (rows[0].mechanism, rows[0].problem))  # told of the one asked for
            )
    return Comparison(facts.protected, asked, exchange_sentence(budget), stated_sentence(LARGEST_COUNT), tuple(rows))


def stated_table(cells: int) -> Ints:
    """A public table: a fifth of the cells in each class of sizes, and in each class all sizes about equally often; larger ones up to
    LARGEST_COUNT.
    """
    spread = (np.arange(cells, dtype=np.uint64) * np.uint64(_GOLDEN) >> np.uint64(32)) * np.uint64(len(SIZES))
    size, inside = spread >> np.uint64(32), spread & np.uint64(2**32 - 1)
    low = np.array([first for first, _ in SIZES], dtype=np.uint64)[size]
    sizes = np.array([(LARGEST_COUNT if last is None else last) - first + 1 for first, last in SIZES], dtype=np.uint64)[size]
    counts: Ints = (low + (inside * sizes >> np.uint64(32))).astype(np.int64)
    return counts


def _asked_for_protected(mechanism: Mechanism, facts: Facts) -> Asked:
    """The budget for what the table protects, converted where it was for one unit of distance, or is the noise itself."""
    asked = mechanism.asked
    if asked is not None and asked.is_for_protected:
        return asked
    if asked is None:
        raise InvalidParameter(NO_BUDGET.format(name=mechanism.name))
    guarantee = mechanism.channel(facts).guarantee
    promise = guarantee.cost(guarantee.moving)
    if promise.kind == "pure":
        return Asked(per=facts.protected, epsilon=Fraction(promise.epsilon))
    return Asked(per=facts.protected, rho=promise.rho)


def _rows(facts: Facts, mechanism: Mechanism, promise: str, truth: Ints) -> Iterator[MechanismRow]:
    """The row of a mechanism, and that of its counts for print where they differ from what it publishes."""
    row = MechanismRow(mechanism.name, ", ".join(f"{name} = {value}" for name, value in mechanism.shown_parameters.items()), promise)
    try:
        plan = prepare(facts, mechanism)
    except HoldfastError as refusal:
        alone = refusal.alone if isinstance(refusal, NoExactSampler) else None
        yield replace(row, refused=True, problem=alone or str(refusal))
        return
    channel = plan.drawing.channel
    if not channel.target.publishes_cells:
        yield replace(row, left_out=len(truth) - len(facts.lattice.exposed_cells))
        return
    layout, work = channel.layout, plan.drawing.cell_draws + len(truth)
    row = replace(
        row,
        nonnegative=isinstance(layout, BoundsLayout) and bool((layout.inequalities.lower >= 0).all()),
        is_exact=plan.drawing.is_exact,
        time=None if any(group.expected_tries is None for group in plan.drawing.sampler_plan.groups) else duration(work),
    )
    if channel.target.reads is not Reads.NOTHING:
        yield _simulate(row, plan, truth, None)
        return
    yield _from_law(row, plan, truth)
    if not row.is_exact:
        return
    maker = ViewMaker(plan)
    view = replace(row, view=True, nonnegative=True, time=duration(work + SOLVED_WORK * maker.solved_cells))
    yield _simulate(view, plan, truth, maker)


def _classes(plan: Plan, truth: Ints) -> Iterator[tuple[str, Ints]]:
    """(name, cells) of all cells that have noise, and of each class of sizes."""
    noisy = np.ones(len(truth), dtype=np.bool_)
    noisy[plan.facts.lattice.exposed_cells] = False
    yield "all", np.flatnonzero(noisy)
    for low, high in SIZES:
        yield size_name((low, high)), np.flatnonzero(noisy & (truth >= low) & (True if high is None else truth <= high))


def _from_law(row: MechanismRow, plan: Plan, truth: Ints) -> MechanismRow:
    """The row with errors from the law of the noise, which sees no data."""
    assert plan.deviations is not None
    assert plan.covariance is not None
    squares = plan.deviations**2
    bias = 0.0 if plan.mechanism.is_unbiased else None
    sizes = [SizeError(name, len(cells), _root_mean(squares[cells]), bias) for name, cells in _classes(plan, truth)]
    return replace(row, sizes=tuple(sizes), found=plan.covariance.cell_basis)


def _root_mean(squares: Floats) -> float | None:
    """The root of their mean, to six digits; None where one of them is not known, or there is none."""
    return None if not len(squares) or np.isnan(squares).any() else float(f"{float(squares.mean()) ** 0.5:.6g}")


def _simulate(row: MechanismRow, plan: Plan, truth: Ints, maker: ViewMaker | None) -> MechanismRow:
    """The row with errors and biases simulated on the stated table: of what is published, or of the view that is made of it."""
    channel = plan.drawing.channel
    work = CELL_WORK * len(truth) + plan.drawing.cell_draws + (0 if maker is None else SOLVED_WORK * maker.solved_cells)
    draws = int(min(MOST_DRAWS, MOST_WORK / work))
    if draws < LEAST_DRAWS:
        return replace(row, problem=TOO_LONG)
    if channel.layout is not None and not channel.layout.holds(truth):
        return replace(row, problem=OUTSIDE)
    try:
        published = _draw_releases(plan, truth, draws)
        made = published if maker is None else np.array([maker.make_view(one, 1, nonnegative=True) for one in published])
    except HoldfastError as refusal:
        return replace(row, problem=str(refusal))
    errors = (made - truth).astype(np.float64)
    sizes = [
        SizeError(name, len(cells), _root_mean((errors[:, cells] ** 2).mean(axis=0)), _mean(errors[:, cells]))
        for name, cells in _classes(plan, truth)
    ]
    return replace(row, sizes=tuple(sizes), found="simulated", draws=draws)


def _draw_releases(plan: Plan, truth: Ints, draws: int) -> Ints:
    """What so many releases of the stated table publish, one a row, with a public key."""
    drawing, published = plan.drawing, np.tile(truth, (draws, 1))
    with NoiseKey.for_tests("comparison") as key, expecting(published.size):
        for task in drawing.channel.tasks():
            again = replace(task, cells=np.tile(task.cells, (draws, 1)))
            with key.stream("comparison", drawing.channel.identity, *task.label) as words:
                drawn = run_task(drawing, again, truth[again.cells], None, words)
            published[:, task.cells.ravel()] = drawn.reshape(draws, -1)
    return published


def _mean(errors: Floats) -> float | None:
    return float(f"{errors.mean():.6g}") if errors.size else None
