"""Rounded projection on a product of hierarchies: nearest plane through the sequence of level_sequence.py, linear time.

Nearest plane needs of a target e only its inner products with the Gram-Schmidt vectors, which are those of its projection: e need not be
projected. With w = z - e the sums of w at kept level vectors are minus those of e, integers; given these and what was rounded before, a
cell of m_s(w) has the centre that the sequence finds, and is rounded up with its fractional part ([theory R20]). So w is a random function
of the kept sums of e alone, and z = e + w: nothing but integers over the product of weights D is held.

Sizes. w = (Pi e - e) + rounding errors, the first shorter than e, the second at most (sum |b*_i|^2)^(1/2) <= (2^axes dimension)^(1/2) long.
N / D and S / D are values of linear forms a w with |a|^2 at most twice the cells under a sum along an axis.
"""

from __future__ import annotations

import importlib
from functools import cached_property
from math import isqrt

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.exact.compiled import loops_for
from holdfast.exact.parameters import Exact
from holdfast.lattices.shapes.levels import Levels
from holdfast.randomness.words import Words
from holdfast.samplers.level_sequence import LevelSequence, OpenCell, sequence_of
from holdfast.samplers.rounded_projection import COLD_CELLS, LARGEST_DENOMINATOR, Coin, Ints, RoundedSampler, settle_coin

_COMPILED = "holdfast.samplers._levels_compiled"


class RoundedLevels(RoundedSampler):
    """Discrete Laplace noise on every cell of a product of hierarchies, projected and rounded without bias.

    Law:         e has independent discrete Laplace cells of scale 1/epsilon; u is its projection on tables whose sums at kept level
                 vectors are zero; rounded by nearest plane from coarse level vectors to fine ones.
    Given:       the shape has a move, epsilon > 0.
    Guarantees:  kept sums are zero; E[z | e] = u; z - e depends on the kept sums of e alone: pure epsilon per unit of l1 distance. Exact
                 over uniform words, one for each free dimension.
    Reference:   [theory R10], [theory R20].
    """

    def __init__(self, shape: Levels, epsilon: Exact) -> None:
        if shape.dimension == 0:
            raise InvalidParameter("The kept totals fix every cell of this block: nothing is left to draw.")
        self.shape = shape
        super().__init__(shape.size, epsilon)

    @property
    def _sequence(self) -> LevelSequence:
        return sequence_of(self.shape)

    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        table = np.array(noise, dtype=object)
        kept = {s: -self.shape.sums(table, s) for s in self._sequence.kept_vectors()}

        def choose(cell: OpenCell) -> int:
            down = cell.centre.numerator // cell.centre.denominator
            part = cell.centre - down
            return down + coin(part.numerator, part.denominator)

        return [e + w for e, w in zip(noise, self._sequence.walk(kept, choose), strict=True)]

    def worth_compiling(self, cells: int) -> bool:
        return loops_for(_COMPILED, cells, COLD_CELLS) is not None

    def fits(self, largest: int) -> bool:
        length = isqrt(2 * self._sequence.line_cells) + 1
        reach = length * (isqrt(2 ** len(self.shape.trees) * self.shape.dimension) + 1 + largest * (isqrt(self.cells) + 1))
        return 8 * self._sequence.largest_scale * reach < 2**62 and self._sequence.largest_scale < LARGEST_DENOMINATOR

    @cached_property
    def _kept_at(self) -> list[tuple[tuple[int, ...], int, int]]:
        """Where the sums of kept level vectors stand among the tables."""
        return [(s, *self._sequence.arrays.table_at[s]) for s in self._sequence.kept_vectors()]

    def round_fast(self, noise: Ints, words: Words) -> Ints:
        loops = importlib.import_module(_COMPILED)
        walk = self._sequence.arrays.walk()
        out = np.empty_like(noise)
        for row, own in zip(out, noise, strict=True):
            for s, begin, length in self._kept_at:
                walk.tables[begin : begin + length] = -self.shape.sums(own, s).ravel()
            first = words.position
            taken = words.take(self.shape.dimension)
            state = np.zeros(loops.STATE_SIZE, dtype=np.int64)
            state[loops.CELL] = -1
            while loops.round_table(row, walk, taken, state) != loops.DONE:
                word = int(state[loops.WORD])
                verdict = settle_coin(int(state[loops.NUMERATOR]), int(state[loops.FULL]), words, first + word)
                state[loops.KNOWN], state[loops.KNOWN_PLACE], state[loops.KNOWN_VERDICT] = loops.KNOWN_COIN, word, int(verdict)
            row += own
        return out
