"""Which sampler draws a block with bounds; by public facts alone."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING

from holdfast.errors import NoExactSampler
from holdfast.lattices.shapes import Bounded, Free, Grid, OneSum
from holdfast.laws import ConditionalGaussian, ConditionalLaplace
from holdfast.samplers.choice import Choice, Reason, affordable
from holdfast.samplers.protocol import InputSampler

if TYPE_CHECKING:
    from holdfast.samplers.bounded_block import BoundedBlock
    from holdfast.samplers.bounded_classes import BoundedClasses
    from holdfast.samplers.bounded_small import BoundedSmall

MOST_CELLS = 1000
"""Of a block that is drawn by classes or by rejection: beyond, not even its kept sums are worked out."""
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
    if isinstance(shape.shape, Free) and shape.size == 1 and not shape.rows:
        from holdfast.samplers.bounded_free import BoundedFree

        return Choice(BoundedFree(shape, target.rate), Reason.NO_TOTAL)
    if isinstance(shape.shape, OneSum) and not shape.rows:
        return _one_sum(shape, target)
    return _other(shape, target)


def bounded_gaussian(shape: Bounded, target: ConditionalGaussian) -> Choice:
    """The sampler of a block with bounds under the conditional Gaussian law: few cells, and a Laplace sampler for the same bounds."""
    from holdfast.samplers.bounded_gaussian import BoundedGaussian, laplace_rate

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
    from holdfast.samplers.bounded_mirrored import fold_block
    from holdfast.samplers.bounded_small import BoundedSmall

    if shape.size > MOST_CELLS:
        raise NoExactSampler(
            f"A block of {shape.size} cells with bounds has no exact sampler where kept totals or inequalities overlap: up to {MOST_CELLS} "
            "cells are drawn. Keep totals that do not overlap, such as one margin, which are drawn for any number of cells; or leave the "
            "bounds out (lower=None, upper=None, no rows)."
        )
    if isinstance(shape.shape, Grid) and 2 in shape.axes and not shape.rows:
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
