"""What a draw costs, and which sampler is chosen by it where several would do. Public facts decide and no clock is read: every machine
plans, chooses and refuses alike.

Costs are counted in cell draws, one cell of one try by rejection. Samplers whose tries do other work say so in the same unit (`Costly`).

Laplace noise of the l1 norm is drawn by rejection or by coupling from the past, whichever takes fewer expected cell draws: tries by a pilot
that sees no data, times what a try costs by the block's shape. Where rejection is cheap anyway it is taken unseen: the other sampler takes
longer to prepare than to draw.

Samplers are imported when they are chosen, here and in table.py: loading all of them takes 0.1 s more.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from holdfast.errors import NoExactSampler
from holdfast.lattices.shapes import Bounded, General, Grid, Levels, Shape
from holdfast.laws import ConditionalGaussian, ConditionalLaplace, Gaussian, L1Laplace, L2Laplace, Target
from holdfast.samplers.protocol import BlockSampler, InputSampler, cell_draws

if TYPE_CHECKING:
    from holdfast.samplers.bounded_block import BoundedBlock
    from holdfast.samplers.bounded_classes import BoundedClasses
    from holdfast.samplers.bounded_small import BoundedSmall
    from holdfast.samplers.coupling.sampler import CouplingLaplace

MAX_CELL_TRIES = 10**9
"""Cells times expected tries beyond which a block is refused: some ten seconds to a minute on one core."""
HOPELESS_TRIES = 1e12
"""By rule of thumb, at small epsilon: refused without a pilot."""
RULE_EPSILON = Fraction(1, 2)
"""Up to here rules of thumb hold: the pilots of two-way tables, sums and free cells found .7 to 4.4 times their tries."""
UNSAYABLE_TRIES = 1e20
"""Beyond, the number says nothing more."""
CELL_SECONDS = 5e-8
"""Processor time of a cell draw: 30 to 80 ns on a machine of 2024, for grids of 3 x 3 to 7 x 7. For plans alone."""

_UNITS = ((1.0, 1e3, "millisecond"), (100.0, 1.0, "second"), (6e3, 1 / 60, "minute"), (2e5, 1 / 3600, "hour"), (6e7, 1 / 86400, "day"))
"""(Seconds up to which a unit is used; how many of it a second has; its name)."""
_DRAWS: dict[type[Target], str] = {L1Laplace: "Laplace draw", L2Laplace: "Laplace draw in l2", Gaussian: "Gaussian draw"}
"""For other targets just a draw."""


def duration(cell_draws: float) -> str:
    """About how long they take on one core, in the unit that people would use."""
    seconds = cell_draws * CELL_SECONDS
    for most, per_second, unit in _UNITS:
        if seconds < most:
            number = max(1, round(seconds * per_second))
            return f"about {number} {unit}{'' if number == 1 else 's'}"
    return "years"


class Reason(enum.Enum):
    """Why a sampler was chosen; wording/samplers.py has the sentences."""

    NO_TOTAL = "no total"
    FIXED = "fixed"
    ONE_TOTAL = "one total"
    ONE_TOTAL_MANY_CELLS = "one total, many cells"
    PRODUCT = "product of axes"
    TWO_WAY = "two-way table"
    SMALL_GRID = "small grid"
    COUPLED = "faster than rejection"
    LEVELS = "levels"
    FEW_TOTALS = "few totals"
    CLASSES = "classes"
    FEW_FREE = "few free cells"
    GENERAL = "general"
    WEIGHTED_LEVELS = "weighted levels"
    WHOLE = "whole lattice"
    WHOLE_MIXED = "whole lattice, random variance"
    ASKED = "asked for"
    NO_EXACT = "no exact sampler"
    OTHER = "other"


@dataclass(frozen=True)
class Compared:
    """Expected cell draws of one draw (`cell_draws`), by the sampler that was taken and by the other one that was looked at."""

    taken: float
    other: float


@dataclass(frozen=True, eq=False)
class Choice:
    """The sampler of a shape, and why it was chosen."""

    sampler: BlockSampler | InputSampler
    reason: Reason
    compared: Compared | None = None
    """Where another sampler was looked at."""
    note: str = ""
    """Where another one was to be looked at: why it could not be. A sentence."""

    @property
    def noise(self) -> BlockSampler:
        """The sampler, where its target's noise sees no data."""
        assert not isinstance(self.sampler, InputSampler), "this sampler publishes from counts"
        return self.sampler


def affordable(make: Callable[[], BlockSampler | InputSampler], reason: Reason, shape: Shape, target: Target, price: int = 1) -> Choice:
    """The sampler, if its expected work is bounded; the number of tries comes from a bound or from a pilot that sees no data."""
    sampler = make()
    tries = sampler.expected_tries
    if tries is not None and not tries * sampler.cells * price <= MAX_CELL_TRIES:
        raise NoExactSampler(too_many_tries(shape, tries, target))
    return Choice(sampler, reason)


def too_many_tries(shape: Shape, tries: float, target: Target) -> str:
    """Explain why it is refused; channels/alternatives.py, which knows the whole table, finds what could be drawn instead."""
    named = " x ".join(map(str, shape.axes)) if len(shape.axes) > 1 else f"{shape.size:,} cells"
    block = f"The table of {named}, taken whole," if not target.splits else f"A block of {named}"
    number = f"about {tries:.1e}" if tries < UNSAYABLE_TRIES else f"more than {UNSAYABLE_TRIES:.0e}"
    return f"{block} would need {number} tries for one exact {_DRAWS.get(type(target), 'draw')}, which is refused."


CHEAP = 1_000_000
"""Cell draws, some 50 ms, up to which rejection is taken unseen."""
ASKED = 36
"""A sampler that was asked for may cost this many times more: half an hour."""
MAX_DIMENSION = 250
"""Free dimensions of blocks other than two-way tables, up to which a basis is prepared: 7 x 7 x 7 takes two seconds, and one more for a
draw."""


def grid_laplace(shape: Grid, target: L1Laplace) -> Choice:
    """The better one for a grid."""
    from holdfast.samplers.laplace_rejection import GridLaplace, rule_of_thumb_tries

    tries = rule_of_thumb_tries(shape.axes)
    if target.epsilon <= RULE_EPSILON and tries > HOPELESS_TRIES:  # no pilot would say otherwise
        return _better(None, tries, Reason.SMALL_GRID, shape, target)
    rejection = GridLaplace(shape.axes, target.epsilon)
    return _better(rejection, rejection.expected_tries, Reason.SMALL_GRID, shape, target)


def general_laplace(shape: General, target: L1Laplace) -> Choice:
    """The better one for a block of any kept totals."""
    from holdfast.samplers.laplace_rejection import PivotLaplace

    rejection = PivotLaplace(shape.listed_matrix(), target.epsilon)
    return _better(rejection, rejection.expected_tries, Reason.FEW_TOTALS, shape, target)


def levels_laplace(shape: Levels, target: L1Laplace) -> Choice:
    """As for a general block. Where no pilot would say otherwise, no pivots are looked for: that took a minute for 37,716 cells."""
    if target.epsilon <= RULE_EPSILON and least_tries(shape) > UNSAYABLE_TRIES:
        return _better(None, least_tries(shape), Reason.FEW_TOTALS, shape.as_general(), target)
    return general_laplace(shape.as_general(), target)


def least_tries(shape: Levels) -> float:
    """About the least tries of rejection where epsilon is small: the volume of a fundamental cell of the lattice, as no section of the l1
    ball is larger than that of as many coordinates [MP88].
    """
    from holdfast.samplers.rejection import safe_exp

    return safe_exp(shape.log_gram_determinant() / 2)


def choose_coupling(shape: Grid | General, target: L1Laplace) -> Choice:
    """Coupling from the past, because it was asked for."""
    try:
        return Choice(_coupling(shape, target, ASKED * MAX_CELL_TRIES), Reason.ASKED)
    except NoExactSampler as refusal:
        raise NoExactSampler(f'{refusal} With sampler = "auto" rejection is looked at too: it draws the same law.') from None


def _better(rejection: BlockSampler | None, tries: float, reason: Reason, shape: Grid | General, target: L1Laplace) -> Choice:
    """By expected cell draws; NoExactSampler where neither ends in reasonable time."""
    by_rejection = shape.size * tries
    if rejection is not None and by_rejection <= min(CHEAP, MAX_CELL_TRIES):
        return Choice(rejection, reason)
    is_affordable = rejection is not None and by_rejection <= MAX_CELL_TRIES
    try:
        coupling = _coupling(shape, target, MAX_CELL_TRIES)
    except NoExactSampler as refusal:
        if rejection is None or not is_affordable:
            raise NoExactSampler(f"{too_many_tries(shape, tries, target)} {refusal}") from None
        return Choice(rejection, reason, note=str(refusal))
    by_coupling = cell_draws(coupling)
    if rejection is None or by_coupling <= by_rejection:
        return Choice(coupling, Reason.COUPLED, Compared(by_coupling, by_rejection))
    return Choice(rejection, reason, Compared(by_rejection, by_coupling))


def _coupling(shape: Grid | General, target: L1Laplace, most: float) -> CouplingLaplace:
    """The sampler; NoExactSampler where it costs more than `most` cell draws, or where there is none for this epsilon.

    The cost of one try is known by the shape: where a pilot's would be too much already, nothing is prepared.
    """
    from holdfast.samplers.coupling.sampler import LEAST_TRIES, try_cost

    if not shape.is_two_way and shape.dimension > MAX_DIMENSION:
        raise NoExactSampler(
            f"Coupling from the past takes up to {MAX_DIMENSION} free dimensions of such a block, and this one has {shape.dimension}."
        )
    one_try = try_cost(shape.axes, shape.size - shape.dimension)
    _check_cost(one_try, most)
    pilot = LEAST_TRIES * one_try
    if pilot > most:
        raise NoExactSampler(f"Trying out coupling from the past would take {duration(pilot)}, which is refused.{_on_request(pilot, most)}")
    from holdfast.samplers.coupling.sampler import CouplingLaplace

    if isinstance(shape, Grid):
        sampler = CouplingLaplace.of_grid(shape.axes, target.epsilon)
    else:
        sampler = CouplingLaplace.of_rows(shape.listed_matrix(), target.epsilon)
    _check_cost(cell_draws(sampler), most)
    return sampler


def _check_cost(cost: float, most: float) -> None:
    if cost > most:
        took = duration(cost)
        raise NoExactSampler(f"Coupling from the past would take {took} for one draw, which is refused.{_on_request(cost, most)}")


def _on_request(cost: float, most: float) -> str:
    """What whoever asks for the sampler by name gets, where it has not been asked for."""
    is_allowed = most == MAX_CELL_TRIES and cost <= ASKED * MAX_CELL_TRIES
    return ' sampler = "coupling_from_past" allows half an hour for a draw.' if is_allowed else ""


MOST_CELLS = 1000
"""Most cells of a block drawn by classes or by rejection: beyond, not even its kept sums are worked out."""
FEW_TOTALS = 1 << 13
"""Class totals that are weighed faster than a batch of tries is made."""
MOST_GAUSSIAN = 20
"""Cells of a block with bounds under Gaussian noise: a few hundred tries."""
MOST_CONVOLVED = 64
"""Cells of a block under one total up to which it is drawn by convolution; beyond, tilting is quicker."""
MOST_PLACES = 1 << 13
"""Places of the window up to which such a block is drawn by convolution: they grow as epsilon falls, while tilting stays as quick."""


def bounded_laplace(shape: Bounded, target: ConditionalLaplace) -> Choice:
    """The sampler of a block with bounds under the conditional Laplace law."""
    if shape.shape.is_free and shape.size == 1 and not shape.rows:
        from holdfast.samplers.bounded_one_sum import BoundedFree

        return Choice(BoundedFree(shape, target.rate), Reason.NO_TOTAL)
    if shape.shape.is_one_sum and not shape.rows:
        return _one_sum(shape, target)
    return _other(shape, target)


def bounded_gaussian(shape: Bounded, target: ConditionalGaussian) -> Choice:
    """The sampler of a block with bounds under the conditional Gaussian law: few cells, and a Laplace sampler for the same bounds."""
    from holdfast.samplers.bounded_small import BoundedGaussian, laplace_rate

    if shape.size > MOST_GAUSSIAN:
        raise NoExactSampler(
            f"A block of {shape.size} cells with bounds is too large for Gaussian noise: up to {MOST_GAUSSIAN} cells are drawn. Use "
            "Laplace noise, or leave the bounds out."
        )
    beneath = bounded_laplace(shape, ConditionalLaplace(laplace_rate(target.sigma_squared)))
    assert isinstance(beneath.sampler, InputSampler)
    return Choice(BoundedGaussian(beneath.sampler, target.sigma_squared), beneath.reason)


def _one_sum(shape: Bounded, target: ConditionalLaplace) -> Choice:
    """Convolution where it is small enough: its time does not depend on the counts. Else tilted cells, whose time does."""
    from holdfast.samplers.bounded_block import BoundedBlock
    from holdfast.samplers.bounded_classes import BoundedClasses
    from holdfast.samplers.bounded_one_sum import BoundedOneSum

    if 2 < shape.size <= MOST_CONVOLVED:
        with suppress(NoExactSampler):
            classes = BoundedClasses(BoundedBlock.of(shape), target.rate)
            if 2 * classes.reach + 1 <= MOST_PLACES:
                return Choice(classes, Reason.ONE_TOTAL)
    return Choice(BoundedOneSum(shape, target.rate), Reason.ONE_TOTAL)


def _other(shape: Bounded, target: ConditionalLaplace) -> Choice:
    """By class totals or by rejection; grids with axes of length two are folded first."""
    from holdfast.samplers.bounded_block import BoundedBlock
    from holdfast.samplers.bounded_small import BoundedSmall, fold_block

    if shape.size > MOST_CELLS:
        raise NoExactSampler(
            f"A block of {shape.size} cells with bounds has no exact sampler where kept totals or inequalities overlap: up to {MOST_CELLS} "
            "cells are drawn. Keep totals that do not overlap, such as one margin, which are drawn for any number of cells; or leave the "
            "bounds out (lower=None, upper=None, no rows)."
        )
    if shape.shape.keeps_axis_sums and 2 in shape.axes and not shape.rows:
        folded = fold_block(shape, lambda block, times: _by_classes_or_pivots(block, times * target.rate))
        return affordable(lambda: folded, Reason.PRODUCT, shape, target)
    found = _by_classes_or_pivots(BoundedBlock.of(shape), target.rate)
    return affordable(lambda: found, Reason.FEW_FREE if isinstance(found, BoundedSmall) else Reason.CLASSES, shape, target)


def _by_classes_or_pivots(block: BoundedBlock, rate: Fraction) -> BoundedClasses | BoundedSmall:
    """Class totals where they have few dimensions and are few; else rejection, which may need too many tries."""
    from holdfast.samplers.bounded_classes import BoundedClasses
    from holdfast.samplers.bounded_small import BoundedSmall

    try:
        classes = BoundedClasses(block, rate)
    except NoExactSampler:
        return BoundedSmall(block, rate)
    if classes.listed > FEW_TOTALS:
        small = BoundedSmall(block, rate)
        if small.expected_tries * small.cells < classes.listed:  # all class totals are weighed for every table; tries are at most so many
            return small
    return classes
