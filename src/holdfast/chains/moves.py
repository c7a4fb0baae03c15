"""Along which directions a line Gibbs kernel moves, and whether they reach the whole lattice.

    swaps    on a grid: two places on every axis, chosen anywhere (not neighbours: far pairs keep large-scale modes fast), and +1 or -1 on
             the cells where they cross. One axis: e_i - e_j.
    listed   any list of integer vectors: a basis of the lattice, or more.

Without bounds, moves that generate the lattice L over the integers make the chain irreducible: any z in L is a sum of multiples of moves,
and one step reaches every multiple. Within bounds that is not enough, since the way may leave them. Known there: swaps connect all tables
of a two-way grid with cells >= 0 (and of one sum, within any box); they do not connect three-way grids, and a basis connects in general
nothing more than a part. A Markov basis, listed, does: it is the caller's to give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from holdfast.chains.target import LARGEST_ENTRY, Ints
from holdfast.chains.words_in_steps import pick
from holdfast.errors import InvalidParameter, NoExactSampler, NothingLeft, RequestTooLarge
from holdfast.lattices import algebra
from holdfast.lattices.shapes import Free, General, Grid, Levels, OneSum, Shape, Whole
from holdfast.randomness import Words

ONE_WORD_CHOICES = 1 << 14
"""Ordered pairs of an axis up to which one word picks both places. A word is left open with probability choices / 2^32, and an open one
costs a slow step: above, each place has its own word."""
FREE_CELLS = 4096


class Move(NamedTuple):
    """A direction by its non-zero entries."""

    cells: Ints
    coefficients: Ints


@dataclass(frozen=True, eq=False)
class Swaps:
    """Products of differences on a grid, row-major; `signs` (+1 or -1 for each cell) turn the sums kept into sums with signs.

    Guarantees:  generates all integer tables whose sums along each axis are zero: neighbouring swaps alone are a basis.
    """

    shape: tuple[int, ...]
    signs: Ints | None = None

    def __post_init__(self) -> None:
        if not self.shape or min(self.shape) < 2:
            raise InvalidParameter(f"Swaps need at least two places on every axis. Got a grid of shape {self.shape}.")
        if max(self.shape) >= 1 << 32:
            raise RequestTooLarge(f"An axis of {max(self.shape)} places is too long to pick from with one word.")
        if self.signs is None:
            return
        signs = np.array(self.signs, dtype=np.int64, order="C")  # a copy: the caller's may change
        if signs.shape != (self.cells,) or not (abs(signs) == 1).all():
            raise InvalidParameter(f"Signs are +1 or -1, one for each of the {self.cells} cells.")
        object.__setattr__(self, "signs", signs)

    @property
    def cells(self) -> int:
        return prod(self.shape)

    @property
    def dimension(self) -> int:
        return prod(n - 1 for n in self.shape)

    @property
    def words_per_pick(self) -> int:
        return sum(1 if n * (n - 1) <= ONE_WORD_CHOICES else 2 for n in self.shape)

    def pick(self, words: Words) -> Move:
        """A uniform choice; a move and its opposite are the same direction."""
        cells, coefficients = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
        for n in self.shape:
            i, j = _two_places(n, words)
            cells = np.concatenate([cells * n + i, cells * n + j])
            coefficients = np.concatenate([coefficients, -coefficients])
        return Move(cells, coefficients if self.signs is None else coefficients * self.signs[cells])


@dataclass(frozen=True, eq=False)
class ListedMoves:
    """The rows of an integer matrix, each a direction over the cells."""

    vectors: Ints

    def __post_init__(self) -> None:
        vectors = np.asarray(self.vectors)
        if vectors.ndim != 2 or not vectors.shape[0] or vectors.dtype.kind not in "iuO":
            raise InvalidParameter(f"Moves are a list of integer vectors, at least one. Got shape {vectors.shape}, {vectors.dtype}.")
        if max(-int(vectors.min()), int(vectors.max())) >= LARGEST_ENTRY:
            raise RequestTooLarge("The entries of a move must stay below 2^31 in absolute value. Use a reduced basis.")
        vectors = np.array(vectors, dtype=np.int64, order="C")  # a copy: the caller's may change
        if not vectors.any(axis=1).all():
            raise InvalidParameter("A move of zeros goes nowhere. Leave it out.")
        object.__setattr__(self, "vectors", vectors)

    @property
    def cells(self) -> int:
        return int(self.vectors.shape[1])

    @cached_property
    def dimension(self) -> int:
        """Dimension of the lattice that the moves generate."""
        return algebra.rank(self.vectors)

    @property
    def words_per_pick(self) -> int:
        return 1

    def pick(self, words: Words) -> Move:
        vector = self.vectors[pick(len(self.vectors), words)]
        places = np.flatnonzero(vector)
        return Move(places, vector[places])


Moves: TypeAlias = Swaps | ListedMoves
"""A finite set of directions, one of them picked uniformly from a fixed number of words."""


def moves_for(shape: Shape) -> Moves:
    """Moves that generate all of a block's lattice: swaps where the block is a grid or has one sum, else a reduced basis."""
    if shape.is_free and shape.size > FREE_CELLS:
        raise RequestTooLarge(f"{shape.size} cells under no kept total are not for a chain. Draw them independently.")
    make = MOVES.get(type(shape))
    if make is None:
        raise NothingLeft("The kept totals fix every cell of this block, so no move is left. Leave it out.")
    return make(shape)


def _reduced_moves(shape: General) -> Moves:
    try:
        return ListedMoves(shape.reduced_basis().T)
    except NoExactSampler as error:
        raise RequestTooLarge(
            f"The kept totals link {shape.size} cells ({shape.dimension} free dimensions): too many for a basis of moves. "
            "Keep fewer totals, nested ones, or all sums along the axes of a product."
        ) from error


MOVES: dict[type[Shape], Callable[[Any], Moves]] = {
    OneSum: lambda shape: Swaps(shape.axes, None if shape.signs is None else np.array(shape.signs)),
    Grid: lambda shape: Swaps(shape.axes),
    Levels: lambda shape: _reduced_moves(shape.as_general()),
    General: _reduced_moves,
    **dict.fromkeys((Free, Whole), lambda shape: ListedMoves(shape.basis().T)),
}


def _two_places(n: int, words: Words) -> tuple[int, int]:
    """Two different places of an axis, in order of choice, uniformly."""
    if n * (n - 1) <= ONE_WORD_CHOICES:
        i, j = divmod(pick(n * (n - 1), words), n - 1)
    else:
        i, j = pick(n, words), pick(n - 1, words)
    return i, j + (j >= i)
