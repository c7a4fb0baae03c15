"""Two chains of block Gibbs made to meet: differences move and cancel, and do not multiply.

Both chains x and y pick the same two lines. Legend: S_j and S_j + D_j are their column sums; N are the columns with D_j = 0, G the others.

    no G     The laws are the same, so are the words, and both chains' lines become identical.
    else     (1) Both chains share their total between G and N: by the quantile pairing while the chains are far apart, and by the maximal
             one once |x - y|_1 is at most a threshold, a function of the states alone.
             (2) N column after column, by quantile pairing.
             (3) G in pairs: the column with the largest D > 0 with the one with the smallest D < 0, and so on; columns left over are alone.
             Pair after pair its sum, then its first column, by quantile pairing.

Each chain alone shares the total of its line between groups that depend on the states at the start of the step, so its law is that of
block Gibbs whatever the groups are (pair_of_rows.py).

Why chains meet. A column with sum S has weight w_S(x) = g(x) h(S - x), g and h log-concave: those of its two cells, bounds included. So
w_{S+D}(x) / w_S(x) = h(S - x + D) / h(S - x) never falls with x where D > 0, and w_{S+D}(x + D) / w_S(x) = g(x + D) / g(x) never rises: in
likelihood ratio the law for S + D lies above the one for S, and below that one shifted by D. Let two columns a and b have D_a = D, D_b = -D
and one total c in both chains. Then x_a and y_a have laws w_a(x) w_b(c - x), both factors of which are ordered in the same way, so the laws
are, and quantile pairing keeps 0 <= y_a - x_a <= D, and in column b likewise. The difference D of the column sums stays in one row, goes
over to the other, or is divided between them; it does not grow. Differences of opposite sign in one column cancel when their rows are
picked, since then D_j is smaller. What N gets is untouched as long as G gets the same total in both chains. The two laws of that total
have nearly the same mean, since the D_j add up to zero; and near the end, when few differences are left, the maximal pairing makes a
difference of that total, which would spread over N, as rare as it can be. For squares it is rare anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.block_gibbs import BlockGibbs, replaced
from holdfast.chains.pair_of_rows import Group, Share, draw_together, list_together, one_by_one
from holdfast.chains.protocol import CoupledInfo, Pair, State
from holdfast.chains.words_in_steps import run_steps
from holdfast.errors import InvalidParameter
from holdfast.randomness import Words

NEAR_PER_LINE = 4
"""|x - y|_1 at most this many times the longer axis: chains are near, and G and N are shared by the maximal pairing.

Median of the sweeps to meeting at 20 x 20, l1, epsilon 1/4, 12 pairs each: 460 up to a distance of 40 (two pairs did not meet in 3000),
584 up to 60, 628 up to 90, 756 up to 140; and 531 for 100 pairs up to 80, which is 4 times 20 (the slowest 2967).
"""


@dataclass(frozen=True, eq=False)
class CoupledBlockGibbs:
    """Two chains of `BlockGibbs` with the same row and column sums.

    Law:         each chain alone moves by the kernel's law.
    Guarantees:  exact; chains that are identical stay so, with the words of one chain. `near` is the largest |x - y|_1 at which the maximal
                 pairing is used; None takes NEAR_PER_LINE times the longer axis.
    """

    kernel: BlockGibbs
    near: int | None = None

    @property
    def largest_near(self) -> int:
        """The distance up to which chains are near."""
        return NEAR_PER_LINE * max(self.kernel.shape) if self.near is None else self.near

    def step(self, pair: Pair, words: Words) -> tuple[Pair, CoupledInfo]:
        pair = self._checked(pair)
        if np.array_equal(pair.first, pair.second):
            state, _ = self.kernel.step(pair.first, words)
            return Pair(state, state), CoupledInfo(1, True)
        first, second = self.kernel.lines(*self.kernel.picked(words))
        shares = self._shares(pair, first, second)
        rows = [self.kernel.rows_between(state, first, second) for state in pair]
        totals = int(pair.first[first].sum()), int(pair.second[first].sum())
        values = draw_together(rows[0], rows[1], shares, totals, words)
        return _as_pair(*(self.kernel.moved(state, first, second, v) for state, v in zip(pair, values, strict=True)))

    def run(self, pair: Pair, most: int, words: Words) -> tuple[Pair, CoupledInfo]:
        from holdfast.chains import _block_compiled as compiled

        kernel = self.kernel
        x, y = (state.copy() for state in self._checked(pair))
        tables, space = compiled.tables(kernel), compiled.space(kernel)

        def loop(chunk: NDArray[np.uint32], wanted: int) -> tuple[int, int, int]:
            made, used, code = compiled.run_together(
                x, y, kernel.shape[0], kernel.shape[1], tables, space, chunk, wanted, self.largest_near, kernel.band
            )
            return int(made), int(used), int(code)

        def exact_step() -> bool:
            after, info = self.step(Pair(x, y), words)
            x[:], y[:] = after
            return info.identical

        made = run_steps(loop, exact_step, most, words)
        after, info = _as_pair(x, y)
        return after, CoupledInfo(made, info.identical)

    def transitions(self, pair: tuple[Sequence[int], Sequence[int]] | Pair) -> dict[tuple[tuple[int, ...], tuple[int, ...]], Fraction]:
        """The law of one step as fractions, for a target with a rational base and finite bounds."""
        self.kernel.check_listed()
        x, y = self._checked(pair)
        out: dict[tuple[tuple[int, ...], tuple[int, ...]], Fraction] = {}
        for line, partner, chance in self.kernel.picks():
            first, second = self.kernel.lines(line, partner)
            rows = [self.kernel.rows_between(state, first, second) for state in (x, y)]
            totals = int(x[first].sum()), int(y[first].sum())
            joint = list_together(rows[0], rows[1], self._shares(Pair(x, y), first, second), totals)
            for (a, b), mass in joint.items():
                key = tuple(replaced(x, first, second, a).tolist()), tuple(replaced(y, first, second, b).tolist())
                out[key] = out.get(key, Fraction(0)) + chance * mass
        return out

    def _shares(self, pair: Pair, first: NDArray[np.int64], second: NDArray[np.int64]) -> list[Share]:
        differences = (pair.second[first] + pair.second[second] - pair.first[first] - pair.first[second]).tolist()
        is_near = int(np.abs(pair.first - pair.second).sum()) <= self.largest_near
        return shares_of(differences, is_near)

    def _checked(self, pair: tuple[Sequence[int], Sequence[int]] | Pair) -> Pair:
        """Both states, if they are states of chains that can meet."""
        x, y = (self.kernel.checked_state(state) for state in pair)
        apart = (x - y).reshape(self.kernel.shape)
        if apart.sum(axis=0).any() or apart.sum(axis=1).any():
            raise InvalidParameter("Chains can meet only if their tables have the same row and column sums. Start both from `start`.")
        return Pair(x, y)


def shares_of(differences: Sequence[int], is_near: bool) -> list[Share]:
    """How both chains share the total of their line, D_j given for every column."""
    same = [(j,) for j, d in enumerate(differences) if d == 0]
    if len(same) == len(differences):
        return one_by_one(same)
    above = sorted((j for j, d in enumerate(differences) if d > 0), key=lambda j: (-differences[j], j))
    below = sorted((j for j, d in enumerate(differences) if d < 0), key=lambda j: (differences[j], j))
    both = min(len(above), len(below))
    items: list[Group] = [*zip(above[:both], below[:both], strict=True)]
    items += [(j,) for j in above[both:] + below[both:]]
    shares = []
    if same:
        apart = tuple(j for item in items for j in item)
        rest = tuple(j for (j,) in same)
        shares.append(Share(apart + rest, apart, rest, is_near))
    return shares + one_by_one(same) + one_by_one(items)


def _as_pair(first: State, second: State) -> tuple[Pair, CoupledInfo]:
    if np.array_equal(first, second):
        return Pair(first, first), CoupledInfo(1, True)
    return Pair(first, second), CoupledInfo(1, False)
