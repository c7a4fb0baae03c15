"""Which sampler draws what: one table by shape and target. It is read before anything is drawn, and no run changes the choice.

    shape      Laplace, l1                      Gaussian                                   rounded projection
    free       independent                      independent                                independent
    one sum    corrected geometrics             halving; one cell after the other (small)  projection, random subset
    grid       rejection slice by slice, or     one cell after the other; mirrored         projection, controlled rounding or nearest plane
               coupling from the past
    levels     as general                       level by level, one cell after the other   projection, nearest plane level by level
    general    rejection on pivot cells, or     Klein's sampler with the accept step       projection, nearest plane
               coupling from the past
               (many cells with equal columns:  class totals so, then cells                class totals so, then random subsets)
    units      (weighted levels: level by level, one cell after the other)
    all these  (the sequential law: the Gaussian law's samplers cell by cell, without their accept step)
    whole      Laplace, l2: rejection from l1 draws of all blocks; else one random variance, then Klein's sampler
    bounded    (noise conditioned on inequalities, choice.py: tilted cells under one sum, class totals by convolution, or rejection)

What would take longer than MAX_CELL_TRIES cell draws on average is refused.

Samplers are imported when they are chosen, here and in choice.py: loading all of them takes 0.1 s more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any, TypeAlias

import numpy as np

from holdfast.errors import NoExactSampler
from holdfast.exact import DiscreteGaussian, DiscreteLaplace
from holdfast.lattices.shapes import Bounded, Free, General, Grid, Levels, OneSum, Shape, Units, Whole
from holdfast.lattices.shapes.general import announce
from holdfast.lattices.shapes.merging import merge_axes
from holdfast.laws import (
    ConditionalGaussian,
    ConditionalLaplace,
    Gaussian,
    Keyed,
    L1Laplace,
    L2Laplace,
    LevelGaussian,
    Rounded,
    Sequential,
    Target,
)
from holdfast.randomness import Words
from holdfast.samplers.choice import (
    HOPELESS_TRIES,
    RULE_EPSILON,
    Choice,
    Compared,
    Reason,
    affordable,
    bounded_gaussian,
    bounded_laplace,
    choose_coupling,
    general_laplace,
    grid_laplace,
    levels_laplace,
    too_many_tries,
)
from holdfast.samplers.protocol import (
    Added,
    BlockSampler,
    IndependentCells,
    Ints,
    KeyLookup,
    Mirrored,
    Reordered,
    Signed,
    cell_draws,
    steps_beneath,
)
from holdfast.samplers.steps import Steps

KLEIN_PRICE = 100
"""A cell of Klein's sampler costs about as much as so many of the others: some ten microseconds."""
CELL_BY_CELL = 150
"""Free dimensions up to which general blocks are drawn without looking at classes of equal columns."""
NO_DOUBT = 10
"""A sampler that costs so many times more by a rule of thumb is not tried out."""
MOST_WHOLE_DIMENSIONS = 600
"""Free dimensions of a lattice taken whole up to which Klein's sampler is prepared: ten seconds, or twenty."""
HALVING_CELLS = 4096
HALVING_SIGMA_SQUARED = Fraction(5, 2), Fraction(10**6)
"""Where halving beats drawing one cell after the other, and loses nothing to its accept step; above, its tables would be too large."""

Prepare: TypeAlias = Callable[[Any, Any], Choice]
"""(shape, target) -> choice, or NoExactSampler."""

AUTO, COUPLING = "auto", "coupling_from_past"
EXACT = (AUTO, COUPLING)
"""How users ask for exact samplers: the best one, or this one wherever blocks have more than one total."""


@lru_cache(maxsize=256)
def choose(shape: Shape, target: Target, asked: str = AUTO) -> Choice:
    """The exact sampler for blocks of this shape under this target; NoExactSampler where there is none that ends in reasonable time.

    Given:  `asked`, one of EXACT.
    """
    if isinstance(target, Sequential) and shape in target.by_lattice:
        target = target.of
    kinds = type(shape), type(target)
    prepare = COUPLED.get(kinds, SAMPLERS.get(kinds)) if asked == COUPLING else SAMPLERS.get(kinds)
    if prepare is None:
        raise NoExactSampler(f"No sampler draws blocks of the kind {shape.name!r} under this mechanism.")
    return prepare(shape, target)


def _free_laplace(shape: Free, target: L1Laplace | Rounded) -> Choice:
    return Choice(IndependentCells(DiscreteLaplace.of_rate(target.epsilon), shape.size), Reason.NO_TOTAL)


def _free_gaussian(shape: Free, target: Gaussian) -> Choice:
    return Choice(IndependentCells(DiscreteGaussian(target.sigma_squared), shape.size), Reason.NO_TOTAL)


def _key_lookup(shape: Free, target: Keyed) -> Choice:
    return Choice(KeyLookup(target), Reason.OTHER)


def _one_sum_laplace(shape: OneSum, target: L1Laplace) -> Choice:
    from holdfast.samplers.one_sum_laplace import OneSumLaplace

    return Choice(_sign(OneSumLaplace(shape.size, target.epsilon), shape), Reason.ONE_TOTAL)


def _one_sum_gaussian(shape: OneSum, target: Gaussian) -> Choice:
    if shape.size >= HALVING_CELLS and HALVING_SIGMA_SQUARED[0] <= target.sigma_squared <= HALVING_SIGMA_SQUARED[1]:
        from holdfast.samplers.dyadic_gaussian import DyadicGaussian

        return Choice(_sign(DyadicGaussian(shape.size, target.sigma_squared), shape), Reason.ONE_TOTAL_MANY_CELLS)
    return _one_sum_by_cells(shape, target)


def _one_sum_by_cells(shape: OneSum, target: Gaussian, **form: bool) -> Choice:
    choice = _product_gaussian(shape, target, Reason.ONE_TOTAL, **form)
    return Choice(_sign(choice.noise, shape), choice.reason)


def _one_sum_rounded(shape: OneSum, target: Rounded) -> Choice:
    from holdfast.samplers.rounded_projection import RoundedOneSum

    return Choice(_sign(RoundedOneSum(shape.size, target.epsilon), shape), Reason.ONE_TOTAL)


def _check_hope_for_grid(shape: Grid, target: L1Laplace) -> None:
    from holdfast.samplers.laplace_rejection import rule_of_thumb_tries

    tries = rule_of_thumb_tries(shape.axes)
    if target.epsilon <= RULE_EPSILON and tries > HOPELESS_TRIES:  # no pilot would say otherwise
        raise NoExactSampler(too_many_tries(shape, tries, target))


def _grid_gaussian(shape: Grid, target: Gaussian, **form: bool) -> Choice:
    return _product_gaussian(shape, target, Reason.PRODUCT, **form)


def _grid_rounded(shape: Grid, target: Rounded) -> Choice:
    if len(shape.axes) == 2:
        from holdfast.samplers.rounded_projection import RoundedGrid2

        return Choice(RoundedGrid2(shape.axes, target.epsilon), Reason.TWO_WAY)
    from holdfast.samplers.rounded_projection import RoundedGrid

    return Choice(RoundedGrid(shape.axes, target.epsilon), Reason.PRODUCT)


def _levels_gaussian(shape: Levels, target: Gaussian, **form: bool) -> Choice:
    from holdfast.samplers.levels_gaussian import LevelsGaussian

    return affordable(lambda: LevelsGaussian(shape, target.sigma_squared, **form), Reason.LEVELS, shape, target)


def _levels_rounded(shape: Levels, target: Rounded) -> Choice:
    from holdfast.samplers.rounded_projection import RoundedLevels

    return Choice(RoundedLevels(shape, target.epsilon), Reason.LEVELS)


def _units_gaussian(shape: Units, target: LevelGaussian, **form: bool) -> Choice:
    from holdfast.samplers.tree_gaussian import TreeGaussian

    merged = merge_axes(shape, target.measured)
    own, weights = merged.shape, replace(target, measured=merged.measured).weights(merged.shape)
    make = lambda: TreeGaussian(own.tree, own.lengths, own.families, weights, merged.chains, **form)  # noqa: E731
    choice = affordable(make, Reason.WEIGHTED_LEVELS, shape, target)
    return choice if merged.place_of is None else replace(choice, sampler=Reordered(choice.noise, merged.place_of))


def _choose_coupling(shape: Grid | Levels | General, target: L1Laplace) -> Choice:
    return choose_coupling(shape.as_general() if isinstance(shape, Levels) else shape, target)


def _general_gaussian(shape: General, target: Gaussian, *, whole: bool = True) -> Choice:
    from holdfast.samplers.klein import KleinGaussian

    if _by_classes(shape):
        from holdfast.samplers.classes import ClassGaussian

        return affordable(lambda: ClassGaussian(shape, target.sigma_squared, whole=whole), Reason.CLASSES, shape, target)
    basis = shape.reduced_basis()
    return affordable(lambda: KleinGaussian(basis, target.sigma_squared, whole=whole), Reason.GENERAL, shape, target, KLEIN_PRICE)


def _general_rounded(shape: General, target: Rounded) -> Choice:
    from holdfast.samplers.nearest_plane import nearest_plane

    if _by_classes(shape):
        from holdfast.samplers.classes import RoundedClasses

        return Choice(RoundedClasses(shape, target.epsilon), Reason.CLASSES)
    return Choice(nearest_plane(shape.reduced_basis(), target.epsilon), Reason.GENERAL)


def _by_classes(shape: General) -> bool:
    """Large blocks with cells of equal columns; small ones are drawn cell by cell, which is part of the stream's format."""
    return shape.rows is not None and shape.dimension > CELL_BY_CELL and max(shape.class_sizes) > 1


def _whole_l2_laplace(shape: Whole, target: L2Laplace) -> Choice:
    """Rejection, or Klein's sampler at a random variance: whichever takes fewer cell draws. Where a rule of thumb leaves
    no doubt, rejection is not tried out: that would take longer than all the rest.
    """
    from holdfast.samplers.l2_laplace import TRY_COST, proposal_epsilon_for, rule_of_thumb_tries

    weaker = L1Laplace(proposal_epsilon_for(target.epsilon, shape.size))
    by_thumb = shape.size * rule_of_thumb_tries(shape.dimension) if weaker.epsilon <= RULE_EPSILON else 0.0
    if shape.dimension <= MOST_WHOLE_DIMENSIONS and by_thumb > NO_DOUBT * TRY_COST * shape.dimension:
        with suppress(NoExactSampler):
            mixed = _whole_l2_mixed(shape, target)
            if by_thumb > NO_DOUBT * cell_draws(mixed.noise):
                return Choice(mixed.sampler, mixed.reason, Compared(cell_draws(mixed.noise), by_thumb))
    rejection: Choice | None = None
    try:
        rejection = _whole_l2_by_rejection(shape, target, weaker)
    except NoExactSampler as refusal:
        if shape.dimension > MOST_WHOLE_DIMENSIONS:
            limits = (
                f"Drawing a random variance first takes up to {MOST_WHOLE_DIMENSIONS} free dimensions; this lattice has {shape.dimension}."
            )
            raise NoExactSampler(f"{refusal} {limits}") from None
    by_rejection = inf if rejection is None else cell_draws(rejection.noise)
    if rejection is not None and (by_rejection <= TRY_COST * shape.dimension or shape.dimension > MOST_WHOLE_DIMENSIONS):
        return rejection
    mixed = _whole_l2_mixed(shape, target)
    if rejection is None:
        return mixed
    by_mixture = cell_draws(mixed.noise)
    if by_mixture <= by_rejection:
        return Choice(mixed.sampler, mixed.reason, Compared(by_mixture, by_rejection))
    return Choice(rejection.sampler, rejection.reason, Compared(by_rejection, by_mixture))


def _whole_l2_mixed(shape: Whole, target: L2Laplace) -> Choice:
    from holdfast.samplers.l2_laplace import MixedL2Laplace

    announce(shape.dimension)
    return affordable(lambda: MixedL2Laplace(shape.reduced_basis(), target.epsilon), Reason.WHOLE_MIXED, shape, target, KLEIN_PRICE)


def _whole_l2_by_rejection(shape: Whole, target: L2Laplace, weaker: L1Laplace) -> Choice:
    """From l1 draws of the law `weaker`."""
    from holdfast.samplers.l2_laplace import L2Rejection as Rejection
    from holdfast.samplers.l2_laplace import rule_of_thumb_tries

    tries = rule_of_thumb_tries(shape.dimension)
    try:
        for part in shape.parts:
            if isinstance(part, Grid):
                _check_hope_for_grid(part, weaker)
        if weaker.epsilon > RULE_EPSILON or tries <= HOPELESS_TRIES:  # else no sampler of a part and no pilot would say otherwise
            parts = SideBySide(tuple(choose(part, weaker).noise for part in shape.parts))
        else:
            parts = None
    except NoExactSampler as refusal:
        raise NoExactSampler(f"Laplace noise in l2 is drawn from Laplace draws in l1 of all blocks. {refusal}") from None
    if parts is None:
        raise NoExactSampler(too_many_tries(shape, tries, target))
    make = lambda: Rejection(shape.size, parts.draw, weaker.epsilon, target.epsilon, proposal_tries=parts.price)  # noqa: E731
    return affordable(make, Reason.WHOLE, shape, target)


def _bounded_laplace(shape: Bounded, target: ConditionalLaplace) -> Choice:
    if not shape.has_bounds:
        return _add_to_counts(shape, L1Laplace(target.rate))
    return bounded_laplace(shape, target)


def _bounded_gaussian(shape: Bounded, target: ConditionalGaussian) -> Choice:
    if not shape.has_bounds:
        return _add_to_counts(shape, Gaussian(target.sigma_squared))
    return bounded_gaussian(shape, target)


def _add_to_counts(shape: Bounded, target: Target) -> Choice:
    """Without bounds the law of the noise does not depend on the counts."""
    plain = choose(shape.shape, target)
    return Choice(Added(plain.noise), plain.reason)


def _sequential(shape: Shape, target: Sequential) -> Choice:
    """The samplers of the Gaussian law, without their accept step or with one for groups; halving has none to leave out."""
    form = {"in_groups": True} if shape in target.in_groups else {}
    return CELL_BY_CELL_GAUSSIAN[type(shape)](shape, target.of, whole=False, **form)


def steps_of(shape: Shape, target: Gaussian | LevelGaussian, *, in_groups: bool = False) -> Steps:
    """The steps of the sequential law in place of this one, on a block of this shape; whether or not this one can be drawn."""
    return steps_beneath(choose(shape, Sequential(target, in_groups=frozenset({shape} if in_groups else ()))).noise)


CELL_BY_CELL_GAUSSIAN: dict[type[Shape], Callable[..., Choice]] = {
    Free: lambda shape, of, whole: _free_gaussian(shape, of),
    OneSum: _one_sum_by_cells,
    Grid: _grid_gaussian,
    Levels: _levels_gaussian,
    General: _general_gaussian,
    Units: _units_gaussian,
}

SAMPLERS: dict[tuple[type[Shape], type[Target]], Prepare] = {
    (Free, L1Laplace): _free_laplace,
    (Free, Gaussian): _free_gaussian,
    (Free, Rounded): _free_laplace,
    (Free, Keyed): _key_lookup,
    (OneSum, L1Laplace): _one_sum_laplace,
    (OneSum, Gaussian): _one_sum_gaussian,
    (OneSum, Rounded): _one_sum_rounded,
    (Grid, L1Laplace): grid_laplace,
    (Grid, Gaussian): _grid_gaussian,
    (Grid, Rounded): _grid_rounded,
    (Levels, L1Laplace): levels_laplace,
    (Levels, Gaussian): _levels_gaussian,
    (Levels, Rounded): _levels_rounded,
    (General, L1Laplace): general_laplace,
    (General, Gaussian): _general_gaussian,
    (General, Rounded): _general_rounded,
    (Units, LevelGaussian): _units_gaussian,
    (Whole, L2Laplace): _whole_l2_laplace,
    (Bounded, ConditionalLaplace): _bounded_laplace,
    (Bounded, ConditionalGaussian): _bounded_gaussian,
    **{(shape, Sequential): _sequential for shape in CELL_BY_CELL_GAUSSIAN},
}

COUPLED: dict[tuple[type[Shape], type[Target]], Prepare] = {(shape, L1Laplace): _choose_coupling for shape in (Grid, Levels, General)}
"""Where coupling from the past takes the place of these, if it was asked for."""


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Several blocks drawn one after the other from the same words."""

    samplers: tuple[BlockSampler, ...]

    def draw(self, n: int, words: Words) -> Ints:
        return np.concatenate([sampler.draw(n, words) for sampler in self.samplers], axis=1)

    @property
    def price(self) -> float:
        """Cell draws of one draw, for each cell: at least the tries of every part."""
        tries = max((sampler.expected_tries for sampler in self.samplers), default=1.0)
        cells = sum(sampler.cells for sampler in self.samplers)
        return max(tries, sum(map(cell_draws, self.samplers)) / max(cells, 1))


def _product_gaussian(shape: OneSum | Grid, target: Gaussian, reason: Reason, **form: bool) -> Choice:
    from holdfast.samplers.levels_gaussian import SequentialGaussian

    if 2 in shape.axes:
        return Choice(_mirror(shape.axes, target.sigma_squared, **form), reason)
    return affordable(lambda: SequentialGaussian(shape.axes, target.sigma_squared, **form), reason, shape, target)


def _mirror(axes: tuple[int, ...], sigma_squared: Fraction, *, whole: bool = True, in_groups: bool = False) -> BlockSampler:
    """Axes of length two halve the variance of what is left."""
    others = tuple(length for length in axes if length != 2)
    beneath = Gaussian(sigma_squared / 2 ** (len(axes) - len(others)))
    if not others:
        return Mirrored(IndependentCells(DiscreteGaussian(beneath.sigma_squared), 1), axes)
    left = OneSum(others[0]) if len(others) == 1 else Grid(others)
    law = beneath if whole else Sequential(beneath, in_groups=frozenset({left} if in_groups else ()))
    return Mirrored(choose(left, law).noise, axes)


def _sign(sampler: BlockSampler, shape: OneSum) -> BlockSampler:
    return sampler if shape.signs is None else Signed(sampler, np.array(shape.signs, dtype=np.int64))
