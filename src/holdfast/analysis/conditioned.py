"""The posterior where the law reads the counts: P[y | x] = exp(-d(y, x)) / Z(x), and Z(x), a sum over all tables in bounds, depends on x.

    few tables    all of them listed, each with its Z
    else          draws from the posterior with the normalisers of independent cells in place of Z, weighted by what is missing

Z(x) is the product of the cells' own normalisers times the probability that independent cells around x have the kept totals: the second
factor hardly varies, so that the draws are worth nearly their number ([theory T63]).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from holdfast.analysis.blocks import MAX_WIDTH, Read, by_convolution, cell_weight, reach_of
from holdfast.analysis.classes import Classes, ClassTables, KeptTotals, tightened
from holdfast.analysis.tables import BlockPosterior, Floats, Ints, Tables, list_tables
from holdfast.errors import InvalidParameter
from holdfast.lattices.shapes import Bounded
from holdfast.laws import ConditionalGaussian, ConditionalLaplace
from holdfast.samplers.bounded_block import BoundedBlock

MAX_TABLES = 2_000
"""Tables listed: each has a normaliser, which is a sum over all."""


def conditioned_posterior(read: Read, target: ConditionalLaplace | ConditionalGaussian) -> BlockPosterior:
    """By the first way above that works; InvalidParameter where none does."""
    shape, noise = read.shape, cell_weight(target)
    assert isinstance(shape, Bounded)
    assert noise is not None
    block = BoundedBlock.of(shape)
    low, high = _box(read, shape, block)
    listed = _listed(read, shape, noise, low, high)
    if listed is not None:
        return listed
    if not shape.has_bounds:  # one normaliser for all tables
        plain = by_convolution(read, shape.shape, noise)
        if plain is not None:
            return plain
    classes = None
    if int((high - low).max()) < MAX_WIDTH:
        classes = Classes.of(read.y, low, high, block.kept, block.cuts, np.array(block.floors, dtype=np.int64))
    if classes is None:
        raise InvalidParameter(
            f"A block of {shape.size} cells has too many tables for its posterior to be computed. Ask about another block, or use fewer "
            "kept totals that overlap."
        )
    return _by_classes(read, noise, KeptTotals(classes, low, high, noise))


def _box(read: Read, shape: Bounded, block: BoundedBlock) -> tuple[Ints, Ints]:
    """What single published counts can be, as far as it matters: bounds, what kept sums leave, and not too far from y. Where cells have
    one bound they get one box."""
    far = 2 * reach_of(read.drawing.channel.target)
    lower, upper = shape.lower_cells(), shape.upper_cells()
    low, high = tightened(np.maximum(lower, read.y - far), np.minimum(upper, read.y + far), block.kept, read.y)
    return np.maximum(lower, low.min()), np.minimum(upper, high.max())


def _listed(read: Read, shape: Bounded, noise: Callable[[Ints], Floats], low: Ints, high: Ints) -> Tables | None:
    tables = list_tables(shape.basis(), read.y, low, high, MAX_TABLES)
    if tables is None:
        return None
    tables = tables[shape.holds(tables)]
    log_z = np.array([_log_sum(noise(tables - x).sum(axis=1)) for x in tables])
    return Tables.weighted(tables, noise(read.y - tables).sum(axis=1) - log_z + read.log_prior(tables), "enumeration")


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + float(np.log(np.exp(logs - top).sum()))


def _by_classes(read: Read, noise: Callable[[Ints], Floats], sums: KeptTotals) -> Tables:
    values = sums.low[:, None] + np.arange(int((sums.high - sums.low).max()) + 1)
    logs = read.prior.log_weights(values, read.cells[:, None]) + noise(read.y[:, None] - values) - sums.own_normalisers(values.T).T
    logs = np.where(values <= sums.high[:, None], logs, -np.inf)
    empty = Tables(np.zeros((0, len(read.y)), dtype=np.int64), np.zeros(0), "enumeration")
    if not np.isfinite(logs.max(axis=1)).all():
        return empty
    proposal = ClassTables(sums.classes, sums.low, logs)
    if not proposal.is_possible:
        return empty
    tables = proposal.draw(read.draws, read.random)
    return Tables.weighted(tables, -sums.log_probability(tables))
