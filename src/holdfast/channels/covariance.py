"""The covariance of noise, block by block: never as one large matrix.

On one sum and on grids the laws here are symmetric under permutations along each axis; the tables with zero sums along every axis are an
irreducible representation of that group, so by Schur's lemma the covariance is a multiple of the projection on them: one number a block.
Rounded projection is not symmetric on grids: the rounding goes through the cells in an order, and adds a covariance of its own.

Whether a sum has no noise at all is decided by integers: it has none where it is the same for all moves of each block.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.sampler import ChainSampler
from holdfast.channels.channel import Ints
from holdfast.channels.rounding_error import RoundingError, rounding_error
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices.shapes import Grid, Shape
from holdfast.lattices.symmetries import alike
from holdfast.laws import Rounded
from holdfast.laws.families import Basis, Form, Target, Variance, fraction_variance, free_laplace_variance
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.protocol import BlockSampler, Weighed, cell_draws
from holdfast.samplers.rounded_projection import RoundedSampler

if TYPE_CHECKING:  # a drawing names alternatives when it is refused, with their variance
    from holdfast.channels.drawing import Drawing

Floats = NDArray[np.float64]

MAX_DENSE_CELLS = 5_000
LARGEST_COEFFICIENT = 2**31
"""Largest coefficient of a query whose sums over moves are computed in 64-bit integers."""
PILOT_DRAWS, PILOT_CELLS = 10_000, 5_000_000
"""At most so many draws, and about so many cell draws, for a variance that has no closed form."""
ROOM_CELLS = 30_000_000
"""Cell draws, one or two seconds, that blocks whose cells are not all alike share equally, where that is more than PILOT_CELLS each."""
ROUGH, ROUGH_DIGITS = 0.01, 3
"""Relative standard error of an estimated standard deviation above which it has so many digits: two would add an error of up to 5 %, as
large as the standard error, which would then be stated too small.
"""
LEAST_DRAWS, COSTLY_CELLS = 100, 50_000_000
"""Fewer draws say too little, unless many cells share one number. Shapes of which so many cost more than PILOT_CELLS share this many cell
draws, some seconds, in the order of the tasks; what is then left is not estimated. All are counts: the clock decides nothing.
"""
FEWEST_DRAWS, LEAST_VALUES = 10, 1_000
"""Where 100 draws are too many: at least so many, which have so many free values of cells that are alike."""
FEW_TRIES = 2
"""Tries of a draw from which on all of them are looked at, weighted, instead of those kept."""
CHAIN_DRAWS, BATCHES = 2_000, 40
"""Tables followed along one chain, two sweeps apart, and the batches from which their standard error is taken."""


@dataclass(frozen=True, eq=False)
class ShapeCovariance:
    """Blocks of one shape: `cells` has one row per block, `variance` is that of one block."""

    cells: Ints
    shape: Shape
    variance: Variance
    rounding: RoundingError | None = None
    """What rounding adds to `variance`."""

    def variance_of(self, query: NDArray[Any]) -> float:
        """Variance of the query's sum over these blocks."""
        values = query[self.cells]
        if not values.any():
            return 0.0
        values = values.astype(np.float64, copy=False)
        if self.variance.form is not None:
            return float(self.variance.form.of(values).sum())
        values = values[~self._is_kept(values)]
        if not len(values):
            return 0.0
        added = 0.0 if self.rounding is None else self.rounding.of(values)
        if self.variance.rounding:
            added += self.variance.rounding * float((self.shape.gram_schmidt_products(values) ** 2).sum())
        if self.variance.matrix is not None:
            return float(np.einsum("bi,ij,bj->", values, self.variance.matrix, values)) + added
        return self.variance.scale * float((self.shape.project(values) ** 2).sum()) + added

    def _is_kept(self, values: Floats) -> NDArray[np.bool_]:
        """Find the blocks whose moves all leave the sum unchanged: in integers for whole coefficients, False for any others."""
        whole = values.astype(np.int64)
        given: NDArray[np.bool_] = (whole == values).all(axis=1) & (np.abs(values).max(axis=1, initial=0.0) < LARGEST_COEFFICIENT)
        return np.asarray(given & self.shape.are_fixed(whole)) if given.any() else given

    def diagonal(self) -> Floats:
        """Variance of each cell of one block."""
        if self.variance.form is not None:
            return self.variance.form.diagonal()
        added = 0.0 if self.rounding is None else self.rounding.diagonal()
        return self.scale_diagonal + added

    @property
    def scale_diagonal(self) -> Floats:
        """The same without what rounding adds."""
        if self.variance.matrix is not None:
            return np.asarray(np.diag(self.variance.matrix))
        rounding = self.variance.rounding * self.shape.rounding_diagonal() if self.variance.rounding else 0.0
        return np.asarray(self.variance.scale * self.shape.projection_diagonal() + rounding)

    def dense(self) -> Floats:
        """Covariance of one block."""
        if self.variance.form is not None:
            return _polarise(self.variance.form, self.shape.size)
        added = 0.0 if self.rounding is None else self.rounding.dense()
        if self.variance.matrix is not None:
            return np.asarray(self.variance.matrix + added)
        if self.variance.rounding:
            products = self.shape.gram_schmidt_products(np.eye(self.shape.size))
            added = added + self.variance.rounding * products @ products.T
        return np.asarray(self.variance.scale * self.shape.project(np.eye(self.shape.size)) + added)

    def bases(self, of_cells: bool) -> Iterable[Basis]:
        """What the parts of the figures are."""
        yield self.variance.basis
        if self.rounding is not None:
            yield self.rounding.basis if of_cells else self.rounding.query_basis

    @property
    def is_rough(self) -> bool:
        """Whether the standard deviations of cells were estimated with a standard error of more than ROUGH of them."""
        return "estimated" in self.bases(of_cells=True) and self.relative_error(of_cells=True) / 2 > ROUGH

    def relative_error(self, of_cells: bool) -> float:
        if self.rounding is None:
            return self.variance.relative_error
        return self.variance.relative_error + self.rounding.error(self.scale_diagonal, of_cells)


class Covariance:
    """Covariance of the noise of all cells.

    `basis` says what the figures are: exact (up to `relative_error`, from rounding), an upper bound (proved, never smaller than the
    truth), approximate (near the truth, and not proved to be above it), or estimated from draws of the public law (`relative_error` is
    then one standard error). Data enter nowhere. `cell_basis` and `cell_error` say the same of the diagonal alone, which may be known
    better than sums. `of_target`: Markov chains draw some blocks, and the figures are those of the law that they aim at, not of the law
    they have after so many steps.
    Where draws would take too long, figures are no numbers; the others' basis is given, "not estimated" where there are none.
    """

    def __init__(self, cells: int, shapes: Iterable[ShapeCovariance], of_target: bool = False) -> None:
        self.cells = cells
        self.shapes: Sequence[ShapeCovariance] = tuple(shapes)
        self.of_target = of_target

    @property
    def basis(self) -> Basis:
        return self._basis(of_cells=False)

    @property
    def cell_basis(self) -> Basis:
        return self._basis(of_cells=True)

    def _basis(self, of_cells: bool) -> Basis:
        ranks: tuple[Basis, ...] = ("not estimated", "exact", "upper bound", "approximate", "estimated")
        return max((basis for found in self.shapes for basis in found.bases(of_cells)), key=ranks.index, default="exact")

    @property
    def cells_not_estimated(self) -> int:
        """Cells of shapes whose draws would take too long."""
        return sum(found.cells.size for found in self.shapes if found.variance.basis == "not estimated")

    @property
    def relative_error(self) -> float:
        """Largest relative error of the variances (for estimates: one standard error)."""
        return max((found.relative_error(of_cells=False) for found in self._known_shapes), default=0.0)

    @property
    def cell_error(self) -> float:
        """Largest relative error of the variances of single cells."""
        return max((found.relative_error(of_cells=True) for found in self._known_shapes), default=0.0)

    @property
    def _known_shapes(self) -> list[ShapeCovariance]:
        return [found for found in self.shapes if found.variance.basis != "not estimated"]

    def diagonal(self) -> Floats:
        """Variance of every cell's noise; 0 where the kept totals fix a cell."""
        out = np.zeros(self.cells)
        for found in self.shapes:
            out[found.cells] = found.diagonal()
        return out

    def unseen(self) -> NDArray[np.bool_]:
        """Cells whose variance was estimated, and was 0 in every draw: it is small, and not 0."""
        out = np.zeros(self.cells, dtype=np.bool_)
        for found in self.shapes:
            if found.variance.basis == "estimated":
                out[found.cells] = found.diagonal() == 0
        return out

    def rough(self) -> NDArray[np.bool_]:
        """Cells of shapes that are rough."""
        out = np.zeros(self.cells, dtype=np.bool_)
        for found in self.shapes:
            out[found.cells] = found.is_rough
        return out

    @property
    def sums_are_rough(self) -> bool:
        """The same of sums of cells, of which the worst block counts."""
        return self.basis == "estimated" and self.relative_error / 2 > ROUGH

    def of(self, query: Any) -> float:
        """Variance of the noise of sum of query_i y_i; 0 for kept totals."""
        vector = np.asarray(query)
        vector = vector if vector.dtype == np.bool_ else vector.astype(np.float64, copy=False)
        if vector.shape != (self.cells,):
            raise InvalidParameter(f"A query has one coefficient for each of the {self.cells} cells. Got shape {vector.shape}.")
        return float(sum(found.variance_of(vector) for found in self.shapes))

    def dense(self) -> Floats:
        """The whole matrix; refused above 5,000 cells."""
        if self.cells > MAX_DENSE_CELLS:
            raise RequestTooLarge(
                f"A covariance matrix of {self.cells} cells is refused above {MAX_DENSE_CELLS}. Use .diagonal() or .of(query)."
            )
        out = np.zeros((self.cells, self.cells))
        for found in self.shapes:
            block = found.dense()
            for cells in found.cells:
                out[np.ix_(cells, cells)] = block
        return out

    def __repr__(self) -> str:
        aimed = ", of the law that a chain aims at" if self.of_target else ""
        return f"Covariance({self.cells} cells, {self.basis}{aimed}, relative error {self.relative_error:.1e})"


def covariance_of(drawing: Drawing) -> Covariance:
    """Covariance of the noise that a drawing adds: closed forms where they exist, else estimates from draws of the public law with a
    public key, as far as these are affordable (COSTLY_CELLS).

    Where a chain draws, a closed form is that of the law aimed at.
    """
    channel, left = drawing.channel, float(COSTLY_CELLS)
    gathered: dict[Shape, list[Ints]] = {}
    for task in channel.tasks():
        gathered.setdefault(task.shape, []).append(task.cells)
    parts = []
    unlike = sum(_alike(shape) == 1 and channel.target.block_variance(shape) is None for shape in gathered)
    for shape, cells in gathered.items():
        sampler = drawing.choice(shape).noise
        count = _count(channel.target, sampler, shape, left)
        parts.append(of_shape(channel.target, sampler, shape, cells[0] if len(cells) == 1 else np.concatenate(cells), count, unlike))
        left -= 0.0 if count is None else count * _unit_cost(sampler)
    return Covariance(channel.facts.lattice.cells, parts, of_target=not drawing.is_exact)


def of_shape(
    target: Target, sampler: BlockSampler, shape: Shape, cells: Ints, count: int | None = None, unlike: int = 1
) -> ShapeCovariance:
    """The blocks of one shape, drawn by this sampler. `count`: of draws, or of tries, where they are needed; None is as many as usual, and
    `unlike` the number of shapes that share ROOM_CELLS.
    """
    known = target.block_variance(shape)
    if known is None and isinstance(target, Rounded) and isinstance(sampler, RoundedSampler):
        spread = free_laplace_variance(target.epsilon)
        if _is_one_number(shape):
            base, first = Variance(spread, relative_error=1e-14), fraction_variance(shape.axes, target.epsilon)
        else:
            frame, _ = np.linalg.qr(shape.basis().astype(np.float64))
            base, first = Variance(0.0, spread * frame @ frame.T, relative_error=1e-12), None
        return ShapeCovariance(cells, shape, base, rounding_error(sampler, ("rounding error", *_names(target, shape)), first, count))
    return ShapeCovariance(cells, shape, _estimate(target, sampler, shape, count, unlike) if known is None else known)


def _is_one_number(shape: Shape) -> bool:
    """Whether the covariance is one number times the projection for every law without a closed form. Of cells that are free or under one
    sum it has a closed form, except for a target of somebody else, which need not be symmetric.
    """
    return isinstance(shape, Grid)


def _unknown(shape: Shape) -> Variance:
    """Not estimated: figures that are no numbers, except of kept sums, which have no error."""
    matrix = None if _is_one_number(shape) else np.full((shape.size, shape.size), math.nan)
    return Variance(math.nan, matrix, "not estimated", math.inf)


def _count(target: Target, sampler: BlockSampler, shape: Shape, left: float) -> int | None:
    """Draws, or tries, for an estimate that costs more than usual, within what is left; None where it costs no more."""
    if isinstance(sampler, ChainSampler | RoundedSampler) or target.block_variance(shape) is not None:
        return None
    if LEAST_DRAWS * cell_draws(sampler) <= PILOT_CELLS:
        return None
    return int(min(left, LEAST_DRAWS * cell_draws(sampler)) / _unit_cost(sampler))


def _by_tries(sampler: BlockSampler) -> TypeGuard[Weighed]:
    return isinstance(sampler, Weighed) and sampler.expected_tries >= FEW_TRIES


def _unit_cost(sampler: BlockSampler) -> float:
    """Cost of one draw of a costly estimate."""
    return sampler.try_cost if _by_tries(sampler) else cell_draws(sampler)


def _draws_needed(shape: Shape) -> float:
    """Independent draws, or what is worth as many, that say enough."""
    return min(LEAST_DRAWS, max(FEWEST_DRAWS, LEAST_VALUES / _alike(shape)))


def _alike(shape: Shape) -> int:
    """Free dimensions, at least, whose cells share one variance in `_estimate`."""
    parts = shape.direct_sum()
    if _is_one_number(shape) or (parts != (shape,) and all(part.is_irreducible for part in parts)):
        return min(copies * part.dimension for part, copies in Counter(parts).items())
    return 1


def _polarise(form: Form, size: int) -> Floats:
    """The matrix of a form: C_ij = (C(e_i + e_j) - C(e_i) - C(e_j)) / 2."""
    unit, own = np.eye(size), form.diagonal()
    rows = [form.of(unit + unit[i]) for i in range(size)]
    return (np.array(rows) - own[:, None] - own[None, :]) / 2


def _estimate(target: Target, sampler: BlockSampler, shape: Shape, count: int | None, unlike: int) -> Variance:
    """From draws of the public law, which is that of a norm: it does not see which of two cells is which, where the kept rows do not
    (lattices/symmetries.py). Where all draws were zero nothing is known about the mean: its error is infinity.
    """
    label = ("expected error", *_names(target, shape))
    if count is not None and count < _draws_needed(shape):
        return _unknown(shape)
    if count is not None and _by_tries(sampler):
        return _from_tries(sampler, shape, label, count)
    if count is None and _alike(shape) == 1 and not isinstance(sampler, ChainSampler):
        cost = cell_draws(sampler)
        room = min(ROOM_CELLS / unlike / cost, PILOT_CELLS / shape.size)  # in time, and in memory
        count = int(min(PILOT_DRAWS, max(room, PILOT_CELLS / cost, LEAST_DRAWS)))
    draws = public_draws(sampler, label, count).astype(np.float64)
    if not target.splits:
        return _of_whole(shape, draws, sampler)
    values = _values(shape, draws)
    means = values.mean(axis=0)
    return _of_means(shape, draws, np.ones(len(draws)), means, standard_error(values, sampler))


def _from_tries(sampler: Weighed, shape: Shape, label: tuple[str, ...], count: int) -> Variance:
    """From so many tries, kept or not, weighted by their chances: a ratio of means, with the error of its linear part."""
    with NoiseKey.for_tests("public draws") as key, key.stream(*label, "tries") as words:
        tries, logs = sampler.draw_weighed(count, words)
    weights = np.exp(logs - logs.max())
    if weights.sum() ** 2 < _draws_needed(shape) * (weights**2).sum():  # what they are worth, in draws
        return _unknown(shape)
    draws = tries.astype(np.float64)
    values = _values(shape, draws)
    means = weights @ values / weights.sum()
    return _of_means(shape, draws, weights, means, np.sqrt(weights**2 @ (values - means) ** 2) / weights.sum())


def _values(shape: Shape, draws: Floats) -> Floats:
    """Whose means are wanted: squares of all cells, those that are alike as one number."""
    if _is_one_number(shape):
        return np.asarray((draws**2).mean(axis=1, keepdims=True))
    found = alike(shape)
    return draws**2 if found is None else found.squares(draws)


def _second_moments(shape: Shape, draws: Floats, weights: Floats) -> Floats:
    """Covariances of all pairs of cells, averaged over those that are alike."""
    found = alike(shape)
    return np.asarray((draws.T * weights) @ draws / weights.sum()) if found is None else found.matrix(draws, weights)


def _of_means(shape: Shape, draws: Floats, weights: Floats, means: Floats, errors: Floats) -> Variance:
    error = float(np.where(means > 0, errors / np.where(means > 0, means, 1.0), math.inf).max())
    if _is_one_number(shape):
        return Variance(float(means[0]) / float(shape.projection_diagonal()[0]), None, "estimated", error)
    return Variance(0.0, _second_moments(shape, draws, weights), "estimated", error)


def _of_whole(whole: Shape, draws: Floats, sampler: BlockSampler) -> Variance:
    """A norm does not see the sign of a part, nor which of two equal parts is which: parts have no covariance, and equal ones the same;
    and under one sum and on a grid cells are alike. So what differs between them by chance alone is averaged.
    """
    starts: dict[Shape, list[int]] = {}
    at = 0
    for part in whole.direct_sum():
        starts.setdefault(part, []).append(at)
        at += part.size
    matrix, errors = np.zeros((at, at)), [0.0]
    for part, places in starts.items():
        own = np.stack([draws[:, place : place + part.size] for place in places], axis=1)
        if part.is_irreducible:
            cells = (own**2).mean(axis=(1, 2))[:, None]
            block = float(cells.mean()) / float(part.projection_diagonal()[0]) * part.project(np.eye(part.size))
        else:
            every = own.reshape(-1, part.size)
            values = _values(part, every)
            cells = values.reshape(len(draws), len(places), -1).mean(axis=1)
            block = _second_moments(part, every, np.ones(len(every)))
        means = cells.mean(axis=0)
        errors += np.where(means > 0, standard_error(cells, sampler) / np.where(means > 0, means, 1.0), math.inf).tolist()
        for place in places:
            matrix[place : place + part.size, place : place + part.size] = block
    return Variance(0.0, matrix, "estimated", max(errors))


def _names(target: Target, shape: Shape) -> tuple[str, ...]:
    return json.dumps(target.fields), json.dumps(shape.fields)


def public_draws(sampler: BlockSampler, label: tuple[str, ...], count: int | None) -> Ints:
    """Draws for figures about the public law, from a public key; a chain is followed instead of started anew each time, so that its draws
    are dependent. `count=None`: as many as the cost of a draw allows.
    """
    if count is None:
        usual = min(PILOT_DRAWS, max(PILOT_CELLS / cell_draws(sampler), LEAST_DRAWS))
        count = CHAIN_DRAWS if isinstance(sampler, ChainSampler) else int(usual)
    with NoiseKey.for_tests("public draws") as key, key.stream(*label) as words:
        return _along(sampler, count, words)


def _along(sampler: BlockSampler, count: int, words: Words) -> Ints:
    return sampler.along(count, words) if isinstance(sampler, ChainSampler) else sampler.draw(count, words)


def standard_error(values: Floats, sampler: BlockSampler) -> Floats:
    """Standard error of the mean over the first axis, from means of long batches where the draws of a chain depend on one another."""
    if isinstance(sampler, ChainSampler):
        values = values.reshape(BATCHES, -1, *values.shape[1:]).mean(axis=1)
    return np.asarray(values.std(axis=0, ddof=1) / math.sqrt(len(values)))
