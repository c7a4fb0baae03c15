"""The posterior of one block: which method, decided by public facts.

    law                        one cell, or one sum          few tables          else
    Laplace l1, Gaussian       convolution                   all tables listed   draws by totals of classes of cells, where these are few
    other laws with weights                                  all tables listed   draws of the public law, weighted by the prior
    rounded projection         single cell: Laplace; two cells: the first's law  the same
    conditioned on bounds      (conditioned.py)              all tables listed   weighted draws, where their normaliser can be computed

Draws of the public law are tables y - z that could be the true ones: their weight is the prior's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from holdfast.accuracy.cell_laws import cell_probabilities
from holdfast.chains.sampler import ChainSampler
from holdfast.channels.covariance import public_draws
from holdfast.channels.drawing import Drawing
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices.shapes import Bounded, Shape
from holdfast.laws import ConditionalGaussian, ConditionalLaplace, Gaussian, L1Laplace, L2Laplace, Rounded, Target
from holdfast.research.analysis.one_sum import Classes, ClassTables, OneSumPosterior, given_sum, tightened
from holdfast.research.analysis.priors import Prior
from holdfast.research.analysis.tables import BlockPosterior, Floats, Ints, Tables, list_tables
from holdfast.samplers.bounded_block import BoundedBlock

MAX_TABLES = 50_000
"""Tables listed where the noise sees no data."""
MAX_CELLS = 1_000
"""Most cells of a block whose kept sums are looked at as a matrix."""
MAX_WIDTH = 2_000
"""Counts that one cell may have."""
LEAST_SHARE = 1e-3
"""Least share of a law known to 1e-12, weighted by the prior: then probabilities are right to 1e-9."""
LEAST_EFFECTIVE = 100
"""Effective draws below which an answer is refused."""
FAR = 1 << 60
LEFT_OUT = 45.0
"""Tables further away than a weight of exp of minus this are not listed."""

NO_TABLE = (
    "No table that this prior allows has the published kept totals, or only such tables that the noise could hardly have led here. Use a "
    "wider prior."
)


@dataclass(frozen=True, eq=False)
class Read:
    """What is read of one block: published counts y, the cells they stand in, and the prior."""

    drawing: Drawing
    shape: Shape
    cells: Ints
    y: Ints
    prior: Prior
    draws: int
    random: np.random.Generator
    label: tuple[str, ...]

    @property
    def low(self) -> Ints:
        """The least count of each cell that prior and bounds allow."""
        return np.full(len(self.y), -FAR if self.prior.lower is None else self.prior.lower, dtype=np.int64)

    @property
    def high(self) -> Ints:
        return np.full(len(self.y), FAR if self.prior.upper is None else self.prior.upper, dtype=np.int64)

    def log_prior(self, tables: Ints) -> Floats:
        """Logarithm of the prior of whole tables, one a row."""
        return np.asarray(self.prior.log_weights(tables, self.cells).sum(axis=1))


def block_posterior(read: Read) -> BlockPosterior:
    """By the best method there is for noise that sees no data; InvalidParameter or RequestTooLarge where there is none."""
    target = read.drawing.channel.target
    if isinstance(target, Rounded) and read.shape.is_free:  # nothing is projected or rounded
        target = L1Laplace(target.epsilon)
    noise = cell_weight(target)
    found = None if noise is None else by_convolution(read, read.shape, noise)
    if found is None:
        found = _rounded_pair(read, target) if isinstance(target, Rounded) else _list_tables(read, target)
    if found is None and noise is not None:
        found = by_classes(read, noise)
    return check_posterior(_from_draws(read) if found is None else found)


def cell_weight(target: Target) -> Callable[[Ints], Floats] | None:
    """ln of the weight of a single cell's noise, where the weight of a table is a product of these."""
    if isinstance(target, L1Laplace):
        rate = float(target.epsilon)
    elif isinstance(target, ConditionalLaplace):
        rate = float(target.rate)
    elif isinstance(target, Gaussian | ConditionalGaussian):
        half = 1 / (2 * float(target.sigma_squared))
        return lambda z: -half * z.astype(np.float64) ** 2
    else:
        return None
    return lambda z: -rate * np.abs(z.astype(np.float64))


def by_convolution(read: Read, shape: Shape, noise: Callable[[Ints], Floats]) -> BlockPosterior | None:
    """One cell alone, or one sum; None for other shapes, and where windows would be too wide."""
    if not (shape.is_one_sum or (shape.is_free and shape.size == 1)):
        return None
    signs = shape.kept_rows()[0] if shape.is_one_sum else np.ones(1, dtype=np.int64)

    def log_weight(values: Ints) -> Floats:
        x = values * signs[:, None]
        return read.prior.log_weights(x, read.cells[:, None]) + noise(read.y[:, None] - x)

    ends = np.sort(np.stack([read.low * signs, read.high * signs]), axis=0)
    if shape.is_free:
        return one_cell(read, ends[0], ends[1], log_weight)
    cells = given_sum(read.y * signs, ends[0], ends[1], log_weight, int((read.y * signs).sum()), _order_begins(read))
    return None if cells is None else OneSumPosterior(cells, signs, read.draws, read.random)


def _order_begins(read: Read) -> int:
    """Beyond this distance from y weights only fall: 0 unless the prior is a list."""
    target = read.drawing.channel.target
    plain = L1Laplace(target.epsilon) if isinstance(target, Rounded) else target
    return reach_of(plain, read.prior) if read.prior.log_range else 0


def one_cell(read: Read, low: Ints, high: Ints, log_weight: Callable[[Ints], Floats]) -> Tables | None:
    """A cell under no kept total: a window of its counts wide enough that what is left out is negligible."""
    reach = max(64, _order_begins(read))
    while reach <= 1 << 20:
        first, last = max(int(low[0]), int(read.y[0]) - reach), min(int(high[0]), int(read.y[0]) + reach)
        if first <= last:
            values = np.arange(first, last + 1, dtype=np.int64)
            logs = log_weight(values[None, :])[0]
            top = float(logs.max())
            ends = (logs[0] < top - LEFT_OUT or first == low[0]) and (logs[-1] < top - LEFT_OUT or last == high[0])
            if np.isfinite(top) and ends:
                return Tables.from_log_weights(values[:, None], logs, "enumeration")
        reach *= 2
    return None


def _rounded_pair(read: Read, target: Rounded) -> Tables | None:
    """Two cells under one sum are told by the first, whose law is known to 1e-12 in all: None where the prior leaves so little of it that
    this would matter."""
    if len(read.y) != 2 or not read.shape.is_plain_sum:
        return None
    law = cell_probabilities(target, read.shape)
    if law is None:
        return None
    first = np.arange(-(len(law) // 2), len(law) // 2 + 1, dtype=np.int64)
    tables = read.y - np.stack([first, -first], axis=1)
    prior = read.log_prior(tables)
    top = float(prior.max())
    if not np.isfinite(top) or float(law @ np.exp(prior - top)) < LEAST_SHARE:
        return None
    with np.errstate(divide="ignore"):
        return Tables.from_log_weights(tables, np.log(law) + prior, "enumeration")


def _list_tables(read: Read, target: Target) -> Tables | None:
    """All tables that matter; None where they are too many or the law has no weights."""
    weigh = _table_weight(target)
    if weigh is None:
        return None
    reach = reach_of(target, read.prior)
    low, high = np.maximum(read.low, read.y - reach), np.minimum(read.high, read.y + reach)
    sharp = read.shape.bounds_given(read.y[None, :], read.prior.lower) if read.prior.lower is not None else None
    if sharp is not None:
        low, high = np.maximum(low, sharp[0][0]), np.minimum(high, sharp[1][0])
    if (low > high).any():
        return None
    tables = list_tables(read.shape.basis(), read.y, low, high, MAX_TABLES)
    if tables is None or not len(tables):
        return None
    made = Tables.from_log_weights(tables, weigh(read.y - tables) + read.log_prior(tables), "enumeration")
    edge = ((made.tables == read.y - reach) | (made.tables == read.y + reach)).any(axis=1)
    return made if float(made.probabilities[edge].sum()) < 1e-12 else None


def _table_weight(target: Target) -> Callable[[Ints], Floats] | None:
    noise = cell_weight(target)
    if noise is not None:
        return lambda z: np.asarray(noise(z).sum(axis=1))
    if isinstance(target, L2Laplace):
        rate = float(target.epsilon)
        return lambda z: -rate * np.sqrt((z.astype(np.float64) ** 2).sum(axis=1))
    return None


def reach_of(target: Target, prior: Prior) -> int:
    """How far a single cell can be off and matter, where the prior's weights are alike or listed."""
    least = LEFT_OUT + prior.log_range
    if isinstance(target, Gaussian | ConditionalGaussian):
        return int(np.sqrt(2 * least * float(target.sigma_squared))) + 2
    assert isinstance(target, L1Laplace | L2Laplace | ConditionalLaplace)
    rate = target.rate if isinstance(target, ConditionalLaplace) else target.epsilon
    return int(least / float(rate)) + 2


def by_classes(read: Read, noise: Callable[[Ints], Floats]) -> Tables | None:
    """Independent draws of the posterior, class totals first; None where class totals are too many or windows too wide."""
    if read.shape.size > MAX_CELLS:
        return None
    block = BoundedBlock.of(Bounded(read.shape, None, None))
    far = reach_of(read.drawing.channel.target, read.prior)
    low, high = tightened(np.maximum(read.low, read.y - far), np.minimum(read.high, read.y + far), block.kept_matrix, read.y)
    width = int((high - low).max()) + 1
    if not 0 < width <= MAX_WIDTH or (low > high).any():
        return None
    values = low[:, None] + np.arange(width)
    logs = read.prior.log_weights(values, read.cells[:, None]) + noise(read.y[:, None] - values)
    logs = np.where(values <= high[:, None], logs, -np.inf)
    top = logs.max(axis=1)
    at_edge = np.stack(
        [np.where(low > read.low, logs[:, 0], -np.inf), np.where(high == read.y + far, logs[np.arange(len(low)), high - low], -np.inf)]
    )
    if not np.isfinite(top).all() or (at_edge > top - LEFT_OUT / 2).any():
        return None
    classes = Classes.of(read.y, low, high, block.kept_matrix, block.cuts, np.zeros(0, dtype=np.int64))
    if classes is None:
        return None
    law = ClassTables(classes, low, logs)
    if not law.is_possible:
        return None
    return Tables.from_log_weights(law.draw(read.draws, read.random), np.zeros(read.draws))


def _from_draws(read: Read) -> Tables:
    """x = y - z with z from the public law, weighted by the prior; independent draws only."""
    sampler = read.drawing.choice(read.shape).noise
    if isinstance(sampler, ChainSampler):
        raise InvalidParameter(
            f"A block of {read.shape.size} cells was drawn by a Markov chain and has too many tables to list. Its draws depend on one "
            "another, so that a posterior from them would have an unknown error. Ask about another block."
        )
    z = public_draws(sampler, ("analysis", *read.label), read.draws)
    tables = read.y - z
    return Tables.from_log_weights(tables, read.log_prior(tables))


def check_posterior(found: BlockPosterior) -> BlockPosterior:
    """Refused where no table is left, or too few draws."""
    if isinstance(found, Tables):
        if found.effective is not None and found.effective < LEAST_EFFECTIVE:
            raise RequestTooLarge(
                f"Of the tables drawn, hardly any agree with the prior: they are worth {found.effective:.0f} draws. Ask for more draws, or "
                "use a wider prior."
            )
        if not len(found.tables):
            raise InvalidParameter(NO_TABLE)
    return found
