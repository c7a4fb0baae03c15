"""The posterior where the law reads the counts: P[y | x] = exp(-d(y, x)) / Z(x), and Z(x), a sum over all tables in bounds, depends on x.

    one cell      its counts listed, Z being two running sums of its weights
    few tables    all of them listed, each with its Z
    else          draws from the posterior with the normalisers of independent cells in place of Z, weighted by what is missing

Z(x) is the product of the cells' own normalisers times the probability that independent cells around x have the kept totals: the second
factor hardly varies, so that the draws are worth nearly their number ([theory T63]).

That probability is often far below what a Fourier transform can tell from zero: of 100 cells around 50 people few sums are as small as 50,
since no cell goes below zero. So all cells are tilted first, such that the kept totals are about the most likely ones ([theory T63]).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.lattices.shapes import Bounded
from holdfast.laws import ConditionalGaussian, ConditionalLaplace
from holdfast.research.analysis.blocks import MAX_WIDTH, Read, by_convolution, cell_weight, one_cell, reach_of
from holdfast.research.analysis.one_sum import Classes, ClassTables, tightened
from holdfast.research.analysis.tables import BlockPosterior, Floats, Ints, Tables, list_tables
from holdfast.samplers.bounded_block import BoundedBlock

AT_ONCE = 256
"""Tables whose laws of class totals are held at once."""
LARGEST_ERROR = 1e-6
"""Of a probability, beside it: far below what draws tell."""
MAX_STEPS = 100

Bools = NDArray[np.bool_]

VERY_FAR = 1 << 40
MAX_REACH = 1 << 22
MAX_TABLES = 2_000
"""Tables listed: each has a normaliser, which is a sum over all."""


class KeptTotals:
    """Independent cells k_i with weights exp(noise(k_i - x_i)) between low_i and high_i, and the probability of their kept totals."""

    def __init__(self, classes: Classes, low: Ints, high: Ints, noise: Callable[[Ints], Floats]) -> None:
        self.classes, self.low, self.high = classes, low, high
        bounds, kind = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
        self._kind = kind.ravel()
        grids = [np.arange(a, b + 1) for a, b in bounds.tolist()]
        self._logs = [noise(grid[None, :] - grid[:, None]) for grid in grids]  # row x, column k
        self._own = [_log_sums(logs) for logs in self._logs]
        self._least = np.bincount(classes.of_cell, weights=low, minlength=len(classes)).astype(np.int64)
        pairs = np.stack([classes.of_cell, self._kind], axis=1)
        self._groups = [
            (number, kind, np.flatnonzero((pairs == [number, kind]).all(axis=1))) for number, kind in np.unique(pairs, axis=0).tolist()
        ]
        """(class, kind of bounds, its cells)."""

    def own_normalisers(self, tables: Ints) -> Floats:
        """ln of the sum of weights of each cell alone; counts outside the box get those of its edge."""
        out = np.empty(tables.shape)
        for kind, own in enumerate(self._own):
            mine = self._kind == kind
            out[:, mine] = own[np.clip(tables[:, mine] - self.low[mine], 0, len(own) - 1)]
        return out

    def log_probability(self, tables: Ints) -> Floats | None:
        """ln P[the cells around each of these tables have the kept totals]; None where one cannot be told from zero.

        Algorithm:   a tilt that suits one table suits most others, as they have the same kept totals; those that it does not suit are
                     taken again, with that of the first among them.
        """
        out = np.empty(len(tables))
        left = np.arange(len(tables))
        while len(left):
            tilts = self._tilts(tables[left[0]])
            parts = [self._tilted_law(tables[left[start : start + AT_ONCE]], tilts) for start in range(0, len(left), AT_ONCE)]
            logs, errors = (np.concatenate(part) for part in zip(*parts, strict=True))
            good = errors <= LARGEST_ERROR
            if not good[0]:
                return None
            out[left[good]] = logs[good]
            left = left[~good]
        return out

    def _tilted_law(self, tables: Ints, tilts: Floats) -> tuple[Floats, Floats]:
        """(ln of the probability, an estimate of its relative error) for each table, through cells with weights times exp(tilt k).

        The tilt of a class is a combination of its column of kept rows, so that all class totals with the kept totals gain one factor.
        """
        laws = [np.zeros((len(tables), points // 2 + 1), dtype=np.complex128) for points in self._points()]
        cells = np.zeros(len(self.classes))
        factor = np.full(len(tables), -float(tilts @ (self.classes.start - self._least)))
        for number, kind, mine in self._groups:
            times = np.zeros((len(tables), len(self._own[kind])))
            np.add.at(times, (np.arange(len(tables))[:, None], tables[:, mine] - self.low[mine]), 1)
            used = np.flatnonzero(times.any(axis=0))
            logs = self._logs[kind][used] + tilts[number] * np.arange(times.shape[1])
            whole = _log_sums(logs)
            with np.errstate(divide="ignore"):
                transforms = np.log(np.fft.rfft(np.exp(logs - whole[:, None]), self._points()[number], axis=1))
            laws[number] += times[:, used] @ np.where(np.isfinite(transforms), transforms, -700.0)
            factor += times[:, used] @ (whole - self._own[kind][used])
            cells[number] += len(mine)
        joint, upper = (np.ones((len(tables), len(self.classes.totals))) for _ in range(2))
        for number, points in enumerate(self._points()):
            law = np.maximum(np.fft.irfft(np.exp(laws[number]), points, axis=1), 0.0)
            here = law[:, self.classes.totals[:, number] - self._least[number]]
            joint *= here
            upper *= here + (cells[number] + 1) * (np.log2(points) + 4) * 2.0**-52  # rounding of each transform, and of their product
        found = joint.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(found) + factor, np.where(found > 0, upper.sum(axis=1) / found - 1, np.inf)

    def _points(self) -> list[int]:
        spans = np.bincount(self.classes.of_cell, weights=self.high - self.low, minlength=len(self.classes)).astype(np.int64)
        return [1 << max(int(span), 1).bit_length() for span in spans]

    def _tilts(self, table: Ints) -> Floats:
        """One for each class, at which cells around this table have means with the kept totals, or nearly: any is right, a good one keeps
        the error small.

        Algorithm:   Newton's method for the least ln E[exp(tilt (k - kept totals))], which is convex, with steps halved while they fail.
        """
        rows = self.classes.rows.astype(np.float64)
        if not len(rows):
            return np.zeros(len(self.classes))
        wanted = rows @ (self.classes.start - self._least)
        t = np.zeros(len(rows))
        height, means, variances = self._moments(table, rows.T @ t)
        for _ in range(MAX_STEPS):
            slope = rows @ means - wanted
            step = -np.linalg.lstsq((rows * variances) @ rows.T, slope, rcond=None)[0]
            if -float(slope @ step) <= 1e-4:  # a hundredth of a standard deviation
                break
            size = 1.0
            while size > 1e-6:
                tried = self._moments(table, rows.T @ (t + size * step))
                if tried[0] - wanted @ (t + size * step) < height - wanted @ t:
                    break
                size /= 2
            else:
                break
            t = t + size * step
            height, means, variances = tried
        return np.asarray(rows.T @ t)

    def _moments(self, table: Ints, tilts: Floats) -> tuple[float, Floats, Floats]:
        """(ln of the product of all tilted weights, means and variances of class totals above the least)."""
        height, means, variances = 0.0, np.zeros(len(tilts)), np.zeros(len(tilts))
        for number, kind, mine in self._groups:
            places, times = np.unique(table[mine] - self.low[mine], return_counts=True)
            steps = np.arange(len(self._own[kind]))
            logs = self._logs[kind][places] + tilts[number] * steps
            whole = _log_sums(logs)
            p = np.exp(logs - whole[:, None])
            mean = p @ steps
            height += float(times @ whole)
            means[number] += times @ mean
            variances[number] += times @ (p @ steps**2 - mean**2)
        return height, means, np.maximum(variances, 0.0)


def _log_sums(logs: Floats) -> Floats:
    """ln of the sum of exp, line by line."""
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))


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
    if shape.shape.is_free and shape.size == 1 and not shape.rows:
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
    kept = BoundedBlock.of(shape).kept_matrix
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
    listed = _list_conditioned_tables(read, shape, noise, low, high)
    if listed is not None or int((high - low).max()) >= MAX_WIDTH:
        return listed
    block = BoundedBlock.of(shape)
    classes = Classes.of(read.y, low, high, block.kept_matrix, block.cuts, np.array(block.floors, dtype=np.int64))
    return None if classes is None else _by_classes(read, noise, KeptTotals(classes, low, high, noise))


def _list_conditioned_tables(read: Read, shape: Bounded, noise: Callable[[Ints], Floats], low: Ints, high: Ints) -> Tables | None:
    tables = list_tables(shape.basis(), read.y, low, high, MAX_TABLES)
    if tables is None:
        return None
    tables = tables[shape.holds(tables)]
    log_z = np.array([_log_sum(noise(tables - x).sum(axis=1)) for x in tables])
    return Tables.from_log_weights(tables, noise(read.y - tables).sum(axis=1) - log_z + read.log_prior(tables), "enumeration")


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
    return None if missing is None else Tables.from_log_weights(tables, -missing)
