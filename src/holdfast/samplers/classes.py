"""General blocks by classes of cells with equal columns: dense algebra on the class totals alone.

Legend: a block has C classes of n_c cells; rows A_C over the classes. Its moves are the tables whose class totals t solve A_C t = 0.

Gaussian. The class totals are drawn from exp(-sum t_c^2 / (2 n_c sigma_squared)) on {t : A_C t = 0} by Klein's sampler with its accept
step, then the cells of each class given t_c, one after the other, with an accept step of their own; where that throws a draw away, class
totals are drawn anew too. Two coins that must both fall well are one coin of the product: this is the accept step over all theta ratios
([theory R19]).

Rounding. Class totals of the noise are rounded by nearest plane in the norm sum t_c^2 / n_c; then a class whose total has to change by
q n_c + r, 0 <= r < n_c, changes by q in every cell and by one more in r cells at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np

from holdfast.exact.parameters import Exact, sample_size
from holdfast.lattices.shapes import General, Levels
from holdfast.lattices.trees import Tree
from holdfast.randomness.words import Words
from holdfast.samplers.klein import KleinGaussian
from holdfast.samplers.levels_gaussian import LevelsGaussian
from holdfast.samplers.nearest_plane import nearest_plane
from holdfast.samplers.protocol import Ints
from holdfast.samplers.rounded_projection import Coin, RoundedOneSum, RoundedSampler
from holdfast.samplers.steps import Steps, together


def class_weights(sizes: Sequence[int]) -> tuple[int, list[int]]:
    """(N, N / n_c): whole weights in place of 1 / n_c."""
    common = lcm(*sizes)
    return common, [common // size for size in sizes]


class ClassGaussian:
    """The discrete Gaussian on a general block with classes of equal columns.

    Law:         P[z] proportional to exp(-|z|_2^2 / (2 sigma_squared)) on the block's moves; where not `whole`, the sequential law.
    Given:       at least one class of two cells or more.
    Guarantees:  exact over uniform words; dense algebra has the size of the number of classes.
    Reference:   [theory R19], [theory R7], [theory R6], [theory R22].
    """

    name = "class totals by Klein's sampler, then cells"

    def __init__(self, shape: General, sigma_squared: Fraction, *, whole: bool = True) -> None:
        self.shape, self.sigma_squared, self.cells = shape, sigma_squared, shape.size
        common, weights = class_weights(shape.class_sizes)
        self.totals = KleinGaussian(shape.class_basis(), sigma_squared * common, weights=weights, whole=whole)
        inside = Levels((Tree(((len(shape.class_sizes),), tuple(shape.class_sizes))),), ((1,),))
        self.inside = LevelsGaussian(inside, sigma_squared, whole=whole)

    @cached_property
    def expected_tries(self) -> float:
        return self.totals.expected_tries * self.inside.expected_tries

    @property
    def steps(self) -> Steps:
        """The variances of both stages: class totals move the centre of every cell, even of a single one."""
        return together([(self.totals.steps, 1), (self.inside.steps_given, 1)])

    def draw(self, n: int, words: Words) -> Ints:
        """n independent draws, shape (n, cells), the cells class after class."""
        return self._draw(n, words, slowly=False)

    def draw_slowly(self, n: int, words: Words) -> Ints:
        """The same draws from the same words, the cells without floating point: the oracle of `draw`."""
        return self._draw(n, words, slowly=True)

    def _draw(self, n: int, words: Words, *, slowly: bool) -> Ints:
        out = np.empty((sample_size(n), self.cells), dtype=np.int64)
        pending = np.arange(n)
        while len(pending):
            totals = self.totals.draw(len(pending), words)
            cells, kept = self.inside.draw_given(totals, words, slowly=slowly)
            out[pending[kept]] = cells[kept]
            pending = pending[~kept]
        return out


class RoundedClasses(RoundedSampler):
    """Discrete Laplace noise on every cell of a general block with classes of equal columns, projected and rounded without bias.

    Law:         e has independent discrete Laplace cells of scale 1/epsilon; class totals are rounded by nearest plane, cells by random
                 subsets.
    Guarantees:  E[z | e] is the projection of e; z - e depends on the class totals of e alone, and commutes with shifts by moves: pure
                 epsilon per unit of l1 distance. Exact over uniform words.
    Reference:   [theory R10], [theory R19].
    """

    def __init__(self, shape: General, epsilon: Exact) -> None:
        super().__init__(shape.size, epsilon)
        self.shape = shape
        _, weights = class_weights(shape.class_sizes)
        self.totals = nearest_plane(shape.class_basis(), epsilon, weights)
        self._starts = np.concatenate([[0], np.cumsum(shape.class_sizes)]).astype(np.int64)

    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        spans = list(zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True))
        totals = self.totals.round_one([sum(noise[begin:end]) for begin, end in spans], coin)
        out: list[int] = []
        for (begin, end), total in zip(spans, totals, strict=True):
            out += _with_total(noise[begin:end], total, coin, self.epsilon)
        return out

    def round(self, noise: Ints, words: Words) -> Ints:
        sums = np.add.reduceat(noise, self._starts[:-1], axis=1)
        totals = self.totals.round(sums, words)
        out = np.empty_like(noise)
        for c, (begin, end) in enumerate(zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True)):
            own = noise[:, begin:end].copy()
            if end - begin == 1:
                out[:, begin] = totals[:, c]
                continue
            own[:, 0] -= totals[:, c]  # a whole number in one cell goes through the rounding as it is
            own = _one_sum(end - begin, self.epsilon).round(own, words)
            own[:, 0] += totals[:, c]
            out[:, begin:end] = own
        return out

    def fits(self, largest: int) -> bool:
        return True  # the parts decide for themselves

    def round_fast(self, noise: Ints, words: Words) -> Ints:
        return self.round(noise, words)


def _one_sum(cells: int, epsilon: Any) -> RoundedOneSum:
    return RoundedOneSum(cells, epsilon)


def _with_total(noise: list[int], total: int, coin: Coin, epsilon: Any) -> list[int]:
    """The cells of one class, changed as evenly as whole numbers can be so that they have this total."""
    if len(noise) == 1:
        return [total]
    rounded = _one_sum(len(noise), epsilon).round_one([noise[0] - total, *noise[1:]], coin)
    return [rounded[0] + total, *rounded[1:]]
