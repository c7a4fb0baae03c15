"""Which sampler draws a block with bounds; by public facts alone."""

from __future__ import annotations

from contextlib import suppress

from holdfast.errors import NoExactSampler
from holdfast.lattices.shapes import Bounded, Free, OneSum
from holdfast.laws import ConditionalLaplace, L1Laplace
from holdfast.samplers.added import Added
from holdfast.samplers.table import Choice, Reason, affordable, choose

MOST_CELLS = 1000
"""Of a block that is drawn by classes or by rejection: beyond, not even its kept sums are worked out."""

FEW_TOTALS = 1 << 13
"""Class totals that are weighed faster than a batch of tries is made."""


MOST_CONVOLVED = 64
"""Cells of a block under one total up to which it is drawn by convolution; beyond, tilting is quicker."""


def bounded_laplace(shape: Bounded, target: ConditionalLaplace) -> Choice:
    """The sampler of a block with bounds under the conditional Laplace law."""
    if not shape.has_bounds:  # the law of the noise does not depend on the counts
        plain = choose(shape.shape, L1Laplace(target.rate))
        return Choice(Added(plain.noise), plain.reason)
    if isinstance(shape.shape, Free) and shape.size == 1 and not shape.rows:
        from holdfast.samplers.bounded_free import BoundedFree

        return Choice(BoundedFree(shape, target.rate), Reason.NO_TOTAL)
    if isinstance(shape.shape, OneSum) and not shape.rows:
        return _one_sum(shape, target)
    return _by_classes_or_pivots(shape, target)


def _one_sum(shape: Bounded, target: ConditionalLaplace) -> Choice:
    """Convolution where it is small enough: its time does not depend on the counts. Else tilted cells, whose time does."""
    from holdfast.samplers.bounded_block import BoundedBlock
    from holdfast.samplers.bounded_classes import BoundedClasses
    from holdfast.samplers.bounded_one_sum import BoundedOneSum

    if 2 < shape.size <= MOST_CONVOLVED:
        with suppress(NoExactSampler):
            return Choice(BoundedClasses(BoundedBlock.of(shape), target.rate), Reason.ONE_TOTAL)
    return Choice(BoundedOneSum(shape, target.rate), Reason.ONE_TOTAL)


def _by_classes_or_pivots(shape: Bounded, target: ConditionalLaplace) -> Choice:
    """Class totals where they have few dimensions and are few; else rejection where its tries are few for every table."""
    from holdfast.samplers.bounded_block import BoundedBlock
    from holdfast.samplers.bounded_classes import BoundedClasses
    from holdfast.samplers.bounded_small import BoundedSmall

    if shape.size > MOST_CELLS:
        raise NoExactSampler(f"A block of {shape.size} cells with bounds has no exact sampler: up to {MOST_CELLS} cells are drawn.")
    block = BoundedBlock.of(shape)
    try:
        classes = BoundedClasses(block, target.rate)
    except NoExactSampler:
        return affordable(lambda: BoundedSmall(block, target.rate), Reason.FEW_FREE, shape, target)
    if classes.listed > FEW_TOTALS:
        small = BoundedSmall(block, target.rate)
        if small.expected_tries * small.cells < classes.listed:  # all class totals are weighed for every table; tries are at most so many
            return Choice(small, Reason.FEW_FREE)
    return Choice(classes, Reason.CLASSES)
