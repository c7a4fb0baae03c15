"""The posterior where the law reads the counts: P[y | x] = exp(-d(y, x)) / Z(x), and Z(x), a sum over all tables in bounds, depends on x.

    one cell      its counts listed, Z being two running sums of its weights
    few tables    all of them listed, each with its Z
    else          draws from the posterior with the normalisers of independent cells in place of Z, weighted by what is missing

Z(x) is the product of the cells' own normalisers times the probability that independent cells around x have the kept totals: the second
factor hardly varies, so that the draws are worth nearly their number ([theory T63]).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.lattices.shapes import Bounded, Free
from holdfast.laws import ConditionalGaussian, ConditionalLaplace
from holdfast.research.analysis.blocks import MAX_WIDTH, Read, by_convolution, cell_weight, one_cell, reach_of
from holdfast.research.analysis.classes import Classes, ClassTables, tightened
from holdfast.research.analysis.kept_totals import KeptTotals
from holdfast.research.analysis.tables import BlockPosterior, Floats, Ints, Tables, list_tables
from holdfast.samplers.bounded_block import BoundedBlock

Bools = NDArray[np.bool_]

VERY_FAR = 1 << 40
MAX_REACH = 1 << 22
MAX_TABLES = 2_000
"""Tables listed: each has a normaliser, which is a sum over all."""


def conditioned_posterior(read: Read, target: ConditionalLaplace | ConditionalGaussian) -> BlockPosterior:
    """By the first way above that works; InvalidParameter where none does."""
    shape, noise = read.shape, cell_weight(target)
    assert isinstance(shape, Bounded)
    assert noise is not None
    if not shape.has_bounds:  # one normaliser for all tables
        plain = by_convolution(read, shape.shape, noise)
        if plain is not None:
            return plain
    reach = reach_of(target, read.prior)
    if isinstance(shape.shape, Free) and shape.size == 1 and not shape.rows:
        alone = _one_cell(read, shape, noise, reach)
        if alone is not None:
            return alone
    for far in (reach, 4 * reach, 16 * reach):
        low, high, cut = _box(read, shape, 2 * far)
        found = _within(read, shape, noise, low, high)
        if found is None:
            break
        if not _reaches(found, (np.abs(found.tables - read.y) > far)[:, cut], cut):
            return found
    raise InvalidParameter(
        f"A block of {shape.size} cells has too many tables for its posterior to be computed under this prior. Ask about another block, "
        "use fewer kept totals that overlap, or a prior nearer to what was published."
    )


def _one_cell(read: Read, shape: Bounded, noise: Callable[[Ints], Floats], reach: int) -> Tables | None:
    """A cell under no kept total: Z(x) is the sum of weights of the room below, that above, less the weight of x, which both have. Weights
    beyond `reach` are negligible."""
    lower, upper = shape.lower_cells(), shape.upper_cells()
    if reach > MAX_REACH:
        return None
    sums = np.cumsum(np.exp(noise(np.arange(reach + 1))))

    def log_weight(values: Ints) -> Floats:
        below, above = np.clip(values - lower, 0, reach), np.clip(upper - values, 0, reach)
        log_z = np.log(sums[below] + sums[above] - sums[0])
        return np.asarray(read.prior.log_weights(values, read.cells[:, None]) + noise(read.y[:, None] - values) - log_z)

    return one_cell(read, np.maximum(lower, read.low), np.minimum(upper, read.high), log_weight)


def _box(read: Read, shape: Bounded, far: int) -> tuple[Ints, Ints, Bools]:
    """What single published counts can be: bounds, what kept sums leave, and not further than `far` from y; and which cells the last cut.
    Where cells have one bound they get one box."""
    kept = BoundedBlock.of(shape).kept
    lower, upper = shape.lower_cells(), shape.upper_cells()
    low, high = tightened(np.maximum(lower, read.y - far), np.minimum(upper, read.y + far), kept, read.y)
    low, high = np.maximum(lower, low.min()), np.minimum(upper, high.max())
    real = tightened(np.maximum(lower, -VERY_FAR), np.minimum(upper, VERY_FAR), kept, read.y)
    return low, high, (low > real[0]) | (high < real[1])


def _reaches(found: Tables, beyond: Bools, cut: Bools) -> bool:
    """Whether what was cut off may matter: tables near the cut have weight, or none has any."""
    if not len(found.tables):
        return bool(cut.any())
    return float(found.probabilities[beyond.any(axis=1)].sum()) > 1e-12


def _within(read: Read, shape: Bounded, noise: Callable[[Ints], Floats], low: Ints, high: Ints) -> Tables | None:
    """All tables of the box listed, or draws by classes; None where both are too many, or a normaliser is not known."""
    listed = _listed(read, shape, noise, low, high)
    if listed is not None or int((high - low).max()) >= MAX_WIDTH:
        return listed
    block = BoundedBlock.of(shape)
    classes = Classes.of(read.y, low, high, block.kept, block.cuts, np.array(block.floors, dtype=np.int64))
    return None if classes is None else _by_classes(read, noise, KeptTotals(classes, low, high, noise))


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


def _by_classes(read: Read, noise: Callable[[Ints], Floats], sums: KeptTotals) -> Tables | None:
    """None where a normaliser cannot be told from zero."""
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
    missing = sums.log_probability(tables)
    return None if missing is None else Tables.weighted(tables, -missing)
