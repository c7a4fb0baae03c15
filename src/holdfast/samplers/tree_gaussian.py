"""Gaussian noise on a tree of units times a product of axes, with a weight for every level and margin: exact, linear time.

Law: P[z] proportional to exp(-Q(z) / 2), Q = sum over g, S of lambda_{g,S} sum over units u of level g of |P_S m_{u,S}|^2, on integer
tables with m_{u,S} = 0 wherever S is in D_g, the margins kept at level g. Legend, order of the cells, centres and variances: [theory R16].
s_{u,S} is 1 / lambda at a leaf, 1 / s_u = lambda_{g,S} + 1 / (sum of s over the children) above, and 0 where S is kept.

The means F(m) and F(R) of a cell are integers over prod r_k, r_k the places left on axis k: N_0 = 0, N_k = r_k N_{k-1} + E_k, where E_k
starts with every slice of the axes before k as (prod_{l<k} r_l) (line sum along k) - (sum of N_{k-1} along k), and
E_k -= (prod_{l<k} r_l) z - N_{k-1} after each cell. F = N_K / prod r_k.

One cell, law N_Z(c, v'): with c0 the integer nearest to the double c and d = c - c0, propose c0 + p, p from the centred law of the rung V
> v', accept with exp(-t), t = (gap p - d)^2 / (2 V h gap), h = v' / V, gap = 1 - h: the ratio of the weights over its supremum. That
holds for every integer c0 and every V > v', so that choosing them by doubles costs no exactness; the same doubles choose them everywhere.

The block is kept with the product of theta ratios of ALL its cells, else the WHOLE block is drawn anew.

Words. Pairs (proposal, accept word) are drawn in chunks, one queue for each rung, when a queue runs dry; how many is a function of how many
cells of that rung there are and of those drawn. At the end of a try comes one word that keeps the block or throws it away.

Error of the doubles. All integers are exact. With e = `error` a bound of the relative errors of s and of its sums (all terms positive), the
centre is off by at most 4 e size, size = |A / D| + |ratio B / D| + 1, and h by 4 e. gap >= 1/65. So t is off by at most
t (520 e) + sqrt(2 t) ((260 e + 2^-50) sqrt(2 t) + (130 e + 4 e size + 2^-50) sqrt(65 / v')), and with exp(-t) t <= .37, exp(-t) sqrt(2 t)
<= .61 the chance is off by at most 390 e + 2^-50 + 5 (130 e + 4 e size + 2^-50) / sqrt(v'). `band` is twice that at size = MOST_SIZE;
larger ones are settled exactly. Log theta ratios move by at most 2 (4 e size + 4 e) (1 + 1 / v') on top of theta.log_theta_error, and the
sum carries that along. What the doubles leave open is settled with exact rationals and balls.

Proposals for discrete Gaussians of many variances: a ladder of centred laws, each with a queue of draws and accept words.

A cell of variance v proposes from the rung V of the ladder next above v (1 + max(.3 / sqrt v, 1/64)): about one in seven is refused.
Rungs are 9/16, 10/16, ..., 16/16 times powers of two, so that they are exact and few.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product as cartesian
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact import DiscreteGaussian
from holdfast.exact.balls import ball
from holdfast.exact.law import Sampler, check_memory
from holdfast.exact.parameters import sample_size
from holdfast.exact.predicates import is_below
from holdfast.lattices.trees import Tree
from holdfast.randomness.words import Words
from holdfast.samplers.theta import log_theta3, theta_ratio_ball
from holdfast.samplers.tree_block import TreeBlock, bits, by_size

FIRST_RUNG = 800
"""The number of the rung whose variance is 9/16; see _tree_compiled.rung."""
RUNGS = 1600


def rung(variance: float) -> int:
    """The number of the proposal for this variance: the twin of _tree_compiled.rung."""
    mantissa, exponent = math.frexp(variance * (1.0 + max(0.3 / math.sqrt(variance), 0.015625)))
    return exponent * 8 + int(mantissa * 16.0) - 8 + FIRST_RUNG


@lru_cache(maxsize=512)
def rung_variance(number: int) -> Fraction:
    """The variance of a rung's proposal: 9/16, 10/16, ..., 16/16 times a power of two."""
    exponent, step = divmod(number - FIRST_RUNG, 8)
    return Fraction(step + 9, 16) * Fraction(2) ** exponent


@lru_cache(maxsize=512)
def _proposal(number: int) -> Sampler:
    return DiscreteGaussian(rung_variance(number)).sampler()


class ProposalQueues(NamedTuple):
    """All queues, a row each: proposals, accept words, what exact arithmetic said of them; how many there are, how many are used."""

    classes: Any
    variances: Any
    band: float
    proposals: Any
    accepts: Any
    verdicts: Any
    places: Any
    filled: Any
    used: Any
    used_before: Any


class Queues:
    """Proposals with their accept words, one queue for each rung."""

    def __init__(self, needs: Mapping[int, int], most: int, words: Words) -> None:
        self._needs, self._most, self._words = needs, most, words
        self._samplers: list[Sampler] = []
        self._exact: list[Fraction] = []
        self._sizes: list[int] = []
        self.classes = np.full(RUNGS, -1, dtype=np.int64)
        self._make({})
        self.add(*needs)

    def add(self, *numbers: int) -> None:
        """Queues for these rungs, empty."""
        for number in numbers:
            self.classes[number] = len(self._samplers)
            self._exact.append(rung_variance(number))
            self._samplers.append(_proposal(number))
            need = self._needs.get(number, 0)
            self._sizes.append(min(self._most, need + need // 4 + 16))
        self._make(self._arrays)

    def _make(self, old: dict[str, NDArray[Any]], width: int = 0) -> None:
        """Arrays with a row for each queue, holding what the old ones held."""
        rows = len(self._samplers)
        width = max(width, *self._sizes, *(before.shape[1] for before in old.values() if before.ndim == 2), 0)
        kinds = {"proposals": np.int64, "accepts": np.uint32, "verdicts": np.int8, "places": np.int64}
        shapes = dict.fromkeys(kinds, (rows, width)) | dict.fromkeys(("filled", "used", "used_before"), (rows,))
        self._arrays: dict[str, NDArray[Any]] = {name: np.zeros(shape, dtype=kinds.get(name, np.int64)) for name, shape in shapes.items()}
        for name, before in old.items():
            self._arrays[name][tuple(map(slice, before.shape))] = before
        self.proposals, self.accepts, self.verdicts, self.places, self.filled, self.used, self.used_before = self._arrays.values()
        self._variances = np.array([float(v) for v in self._exact])

    def refill(self, kind: int) -> None:
        """More pairs behind those of this queue that the table which is begun anew will want again."""
        begin, end = int(self.used_before[kind]), int(self.filled[kind])
        kept, size = end - begin, self._sizes[kind]
        if kept + size > self.proposals.shape[1]:
            self._make(self._arrays, 2 * (kept + size))
        if kept and begin:
            for array in (self.proposals, self.accepts, self.verdicts, self.places):
                array[kind, :kept] = array[kind, begin:end].copy()
        self.proposals[kind, kept : kept + size] = self._samplers[kind].draw(size, self._words)
        first = self._words.position
        self.accepts[kind, kept : kept + size] = self._words.take(size)
        self.places[kind, kept : kept + size] = np.arange(first, first + size)
        self.verdicts[kind, kept : kept + size] = 0
        self.filled[kind] = kept + size
        self.used[kind] = self.used_before[kind] = 0

    def decide(self, kind: int, pair: int, d: Fraction, variance: Fraction) -> None:
        """Settle one pair by exact arithmetic: whether a cell with centre d from the loop's c0 takes it."""
        proposed, given = int(self.proposals[kind, pair]), self._exact[kind]
        h = variance / given
        t = ((1 - h) * proposed - d) ** 2 / (2 * given * h * (1 - h))
        word, index = int(self.accepts[kind, pair]), int(self.places[kind, pair])
        self.verdicts[kind, pair] = 1 if is_below(word, 32, lambda: (-ball(t)).exp(), self._words, index) else -1

    def pairs(self, band: float) -> ProposalQueues:
        """What the loops read and write."""
        return ProposalQueues(self.classes, self._variances, band, *self._arrays.values())


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_SIZE = 2.0**16
"""Sizes of a centre up to which the band is proved."""
LEAST_VARIANCE = Fraction(1, 1 << 8)
"""Least variance of a cell: below, its noise is zero except with probability e^-100."""
CHUNK_PAIRS = 1 << 15

_COMPILED = "holdfast.samplers._tree_compiled"


class TreeGaussian:
    """Gaussian noise on units times axes, with weights for levels and margins.

    Law:         see the module's text.
    Given:       `tree`: the units, None for a single one. `axes`: the lengths of the plain axes, each 2 or more. `kept`: for every level
                 from 0 to G the masks of the margins kept there (bit k for axis k), closed under subsets and under going up. `weights`:
                 lambda by (level, mask), not negative; positive at the leaves for every margin that is free there.
    Guarantees:  exact; time linear in the cells, times `expected_tries`. Cells in C order: leaf, then axes.
    Reference:   [theory R9], [theory R15], [theory R16]; the module's text. `centres` is the obvious form; with a wide `band`
                 every proposal is settled exactly, and nothing changes.
    """

    name = "level by level, one cell after the other"

    def __init__(
        self,
        tree: Tree | None,
        axes: tuple[int, ...],
        kept: tuple[frozenset[int], ...],
        weights: Mapping[tuple[int, int], Fraction],
        *,
        band: float | None = None,
        chunk_pairs: int = CHUNK_PAIRS,
    ) -> None:
        self.tree, self.axes, self.kept = tree, tuple(axes), tuple(kept)
        self.levels = 0 if tree is None else tree.depth
        self.leaves = 1 if tree is None else tree.places
        self.masks = by_size(len(self.axes))
        self.unit_cells = math.prod(self.axes)
        self.cells = self.leaves * self.unit_cells
        self.weights = {key: Fraction(value) for key, value in weights.items() if value}
        self._check()
        self._check_reach()
        self._chunk_pairs = chunk_pairs
        self._given_band = band

    def _check(self) -> None:
        if min(self.axes, default=2) < 2:
            raise InvalidParameter(f"Every axis must have at least two places. Got {self.axes}.")
        if len(self.kept) != self.levels + 1:
            raise InvalidParameter(f"Kept margins are listed for {self.levels + 1} levels. Got {len(self.kept)}.")
        for level, family in enumerate(self.kept):
            closed = all(sub in family for mask in family for sub in _submasks(mask))
            if not closed or (level and not family <= self.kept[level - 1]):
                raise InvalidParameter("Kept margins are closed under subsets, and what is kept at a level is kept above it.")
        for mask in self.masks:
            if mask not in self.kept[-1] and self.weights.get((self.levels, mask), 0) <= 0:
                raise InvalidParameter("Every margin that is free at the leaves needs a positive weight there.")
        if len(self.kept[-1]) == len(self.masks):
            raise InvalidParameter("Everything is kept: nothing is left to draw.")
        if any(value < 0 for value in self.weights.values()):
            raise InvalidParameter("Weights are not negative.")

    def _check_reach(self) -> None:
        """Refuse what could leave 64-bit integers, and noise so narrow that the band is not proved.

        A cell of a margin S of any unit is a linear form of the noise, sub-Gaussian with its variance in the continuous law as proxy
        ([theory R7]), which is at most the sum over margins T in S of (leaves / lambda_{G,T}). The integers held are at most that times 4
        cells of a unit.
        """
        proxy = sum(self.leaves / self.weights[self.levels, mask] for mask in self.masks if mask not in self.kept[-1])
        nats = 139 + (16 * self.cells << len(self.axes)).bit_length()
        reach = math.isqrt(int(2 * proxy * nats)) + 2
        if reach >= 1 << 50 or 8 * self.unit_cells * reach << len(self.axes) >= 1 << 62:
            raise RequestTooLarge(
                f"Gaussian noise on {self.cells} cells with these weights could leave 64-bit integers. Use less noise (a larger budget)."
            )
        if self._least_variance < LEAST_VARIANCE:
            raise InvalidParameter(
                "These weights leave a cell noise of a variance below 1/256, nearly all of it zero. Use a smaller budget, or "
                "spread it over more levels."
            )

    def __repr__(self) -> str:
        return f"TreeGaussian({self.leaves} leaves on {self.levels + 1} levels, axes {self.axes})"

    # s, exactly and in doubles

    @cached_property
    def _classes(self) -> list[tuple[Ints, list[tuple[int, ...]]]]:
        """For every level the class of each unit, and for each class those of its children, sorted: s depends on these alone."""
        found: list[tuple[Ints, list[tuple[int, ...]]]] = [(np.zeros(self.leaves, dtype=np.int64), [()])]
        for level in range(self.levels - 1, -1, -1):
            assert self.tree is not None
            below = found[-1][0]
            counts = np.array(self.tree.children[level], dtype=np.int64)
            if level == self.levels - 1:
                distinct, of = np.unique(counts, return_inverse=True)
                found.append((of.astype(np.int64), [(0,) * int(n) for n in distinct]))
                continue
            starts = self.tree.starts(level)
            numbers: dict[tuple[int, ...], int] = {}
            of = np.empty(len(counts), dtype=np.int64)
            for unit in range(len(counts)):
                key = tuple(np.sort(below[starts[unit] : starts[unit + 1]]).tolist())
                of[unit] = numbers.setdefault(key, len(numbers))
            found.append((of, list(numbers)))
        return found[::-1]

    @cached_property
    def _exact(self) -> list[dict[int, list[fmpq]]]:
        """s by level, mask and class, as exact rationals; 0 where the margin is kept."""
        found: list[dict[int, list[fmpq]]] = []
        for level in range(self.levels, -1, -1):
            here: dict[int, list[fmpq]] = {}
            for mask in self.masks:
                weight = _rational(self.weights.get((level, mask), Fraction(0)))
                if mask in self.kept[level]:
                    here[mask] = [fmpq(0)] * len(self._classes[level][1])
                elif level == self.levels:
                    here[mask] = [1 / weight]
                else:
                    below = found[-1][mask]
                    sums = [sum((below[c] * n for c, n in _count_classes(children)), fmpq(0)) for children in self._classes[level][1]]
                    here[mask] = [1 / (weight + 1 / total) for total in sums]
            found.append(here)
        return found[::-1]

    @cached_property
    def _s(self) -> list[dict[int, Floats]]:
        """s by level, mask and class in doubles, correctly rounded or nearly: exact rationals are taken once."""
        return [{mask: np.array([float(_fraction(v)) for v in values]) for mask, values in here.items()} for here in self._exact]

    def _s_of_units(self) -> list[dict[int, Floats]]:
        """s of every unit by level and mask; of all leaves once."""
        inner = [{m: v[self._classes[level][0]] for m, v in here.items()} for level, here in enumerate(self._s[:-1])]
        return [*inner, self._s[-1]]

    @cached_property
    def error(self) -> float:
        """A bound of the relative error of s, of sums of s over siblings, and of their quotients."""
        most = max((max(counts) for counts in self.tree.children[:-1]), default=1) if self.tree is not None else 1
        return (most + 8) * 2.0**-53

    @cached_property
    def _least_variance(self) -> float:
        """A lower bound of the variances of all cells: two siblings left, two places left on every axis."""
        bounds = []
        for level in range(self.levels + 1):
            for mask in self.masks:
                if mask in self.kept[level] or (level > 0 and not self._has_siblings(level)):
                    continue
                values = self._s[level][mask]
                s = float(values.min())
                if level > 0:
                    s = s * s / (s + float(values.max())) if len(values) > 1 else s / 2
                bounds.append(s / 2 ** mask.bit_count())
        return min(bounds) * 0.99 if bounds else math.inf

    def _has_siblings(self, level: int) -> bool:
        assert self.tree is not None
        return self.tree.branches(level)

    @cached_property
    def band(self) -> float:
        """See the module's text."""
        if self._given_band is not None:
            return self._given_band
        e = self.error
        off = 390 * e + 2.0**-50 + 5 * (130 * e + 4 * e * MOST_SIZE + 2.0**-50) / math.sqrt(self._least_variance)
        return max(2.0**-40, 2 * off)

    @cached_property
    def expected_tries(self) -> float:
        """The proven bound prod theta3 over all cells (theta.tries_bound), in doubles."""
        total = 0.0
        for variance, mask, count in self._variances():
            if variance / 2 ** mask.bit_count() >= 6:
                total += count * math.prod(self.axes[k] - 1 for k in bits(mask)) * 1e-50
                continue
            shares = np.ones(1)
            for k in bits(mask):
                shares = np.multiply.outer(shares, 1 - 1 / np.arange(self.axes[k], 1, -1)).ravel()
            total += count * float(log_theta3(variance * shares).sum())
        return math.exp(total) if total < 700 else math.inf

    def _variances(self) -> Iterator[tuple[float, int, int]]:
        """(v, mask, how many units have it) over all tables that are drawn."""
        for mask in self.masks:
            if mask not in self.kept[0]:
                yield float(self._s[0][mask][0]), mask, 1
            for level in range(1, self.levels + 1):
                if mask in self.kept[level]:
                    continue
                assert self.tree is not None
                counts = np.array(self.tree.children[level - 1], dtype=np.int64)
                if level == self.levels:
                    s = float(self._s[level][mask][0])
                    # So many parents have more than r children: a child with r left, r >= 2, occurs once in each with r or more.
                    for r, times in zip(*_siblings_left(counts), strict=True):
                        yield s * (1 - 1 / r), mask, int(times)
                    continue
                own = self._s[level][mask][self._classes[level][0]]
                for begin, end in zip(self.tree.starts(level - 1)[:-1], self.tree.starts(level - 1)[1:], strict=True):
                    rest = np.cumsum(own[begin:end][::-1])[::-1]
                    for v in (own[begin : end - 1] * (rest[1:] / rest[:-1])).tolist():
                        yield v, mask, 1

    # Drawing

    def draw(self, n: int, words: Words) -> Ints:
        """n independent draws, shape (n, cells)."""
        n = sample_size(n)
        check_memory(n * self.cells)
        importlib.import_module("holdfast.exact._compiled")  # so that proposals, too, are drawn by compiled loops
        loops = importlib.import_module(_COMPILED)
        queues = Queues(self._needs, max(self._chunk_pairs, 2 * self.unit_cells), words)
        block = TreeBlock(self.tree, self.axes, self.kept, self._s_of_units(), 4 * self.error, MOST_SIZE)
        out = np.empty((n, self.cells), dtype=np.int64)
        for row in out:
            while not self._try(row, block, queues, words, loops):
                pass
        return out

    def _try(self, row: Ints, block: TreeBlock, queues: Queues, words: Words, loops: ModuleType) -> bool:
        """Draw the whole block once; whether it is kept."""
        block.begin()
        queues.used_before[:] = queues.used
        while True:
            status = loops.draw_block(row, block.units, block.margins, block.work, queues.pairs(self.band), block.progress)
            if status == loops.FINISHED_TRY:
                break
            kind = int(block.progress.state[loops.CLASS])
            if status == loops.NEED_CLASS:
                queues.add(kind)
            elif status == loops.NEED_PAIRS:
                queues.refill(kind)
            else:
                pair = int(block.progress.state[loops.PAIR])
                centre, variance = self._from_state([int(v) for v in block.progress.state], loops)
                queues.decide(kind, pair, centre - int(block.progress.state[loops.NEAREST]), variance)
        return self._is_kept(row, block, words)

    def _is_kept(self, row: Ints, block: TreeBlock, words: Words) -> bool:
        """The step that keeps a block or throws it away."""
        index = words.position
        word = int(words.take(1)[0])
        chance, off = math.exp(min(float(block.progress.sums[0]), 0.0)), 2 * float(block.progress.sums[1]) + 2.0**-40
        if (word + 1) * 2.0**-32 <= chance - off:
            return True
        if word * 2.0**-32 >= chance + off:
            return False
        return is_below(word, 32, lambda: self._keep_probability(row), words, index)

    def _from_state(self, state: list[int], loops: ModuleType) -> tuple[Fraction, Fraction]:
        """(centre, variance) of the cell at which a loop stopped, exactly."""
        mask, denominator = self.masks[state[loops.TABLE]], state[loops.DENOMINATOR]
        ratio, variance = self._share(state[loops.LEVEL], state[loops.UNIT], mask)
        centre = (state[loops.NUMERATOR] + ratio * state[loops.INNOVATION]) / denominator
        return centre, variance * Fraction(state[loops.SMALLER], denominator)

    def _share(self, level: int, unit: int, mask: int) -> tuple[Fraction, Fraction]:
        """(s_c / sum_rest, v) of a unit, exactly; the root has ratio 0."""
        own = self._exact[level][mask][int(self._classes[level][0][unit])]
        if level == 0:
            return Fraction(0), _fraction(own)
        assert self.tree is not None
        starts = self.tree.starts(level - 1)
        end = int(starts[int(np.searchsorted(starts, unit, side="right"))])
        rest = sum((self._exact[level][mask][c] * n for c, n in _count_classes(self._classes[level][0][unit:end])), fmpq(0))
        return _fraction(own / rest), _fraction(own * (rest - own) / rest)

    def centres(self, z: Ints) -> Iterator[tuple[int, Fraction, Fraction]]:
        """(value, centre, variance) of every cell that is drawn, in the order of drawing, given what is drawn before it.

        By the sums of R15 and R16 over the finished table, in exact rationals: the obvious form of what the loops do.
        """
        margins = [self._margins(z, level) for level in range(self.levels + 1)]

        def below(level: int, unit: int) -> Iterator[tuple[int, Fraction, Fraction]]:
            assert self.tree is not None
            begin, end = (int(v) for v in self.tree.starts(level)[unit : unit + 2])
            for child in range(begin, end):
                if child < end - 1:
                    for mask in self.masks:
                        if mask not in self.kept[level + 1]:
                            left = margins[level + 1][mask][child:end].sum(axis=0)
                            ratio, variance = self._share(level + 1, child, mask)
                            yield from _cells(margins[level + 1][mask][child], left, ratio, variance)
                if level + 1 < self.levels:
                    yield from below(level + 1, child)

        for mask in self.masks:
            if mask not in self.kept[0]:
                table = margins[0][mask][0]
                yield from _cells(table, table, Fraction(0), self._share(0, 0, mask)[1])
        if self.levels:
            yield from below(0, 0)

    def _margins(self, z: Ints, level: int) -> dict[int, Ints]:
        """All margins of the units of a level: arrays over units and the axes of the mask."""
        table = z.reshape(self.leaves, *self.axes)
        if self.tree is not None and level < self.levels:
            sizes = self.tree.sizes(level)
            table = np.add.reduceat(table, np.concatenate([[0], np.cumsum(sizes)[:-1]]), axis=0)
        every = set(range(len(self.axes)))
        return {mask: table.sum(axis=tuple(k + 1 for k in every - set(bits(mask)))) for mask in self.masks}

    def _keep_probability(self, z: Ints) -> arb:
        return math.prod((theta_ratio_ball(variance, c) for _, c, variance in self.centres(z)), start=arb(1))

    @cached_property
    def _needs(self) -> dict[int, int]:
        """About how many cells of a block each rung proposes for: it decides how many pairs are drawn at a time, and nothing else."""
        found: Counter[int] = Counter()
        for mask in self.masks:
            shares = np.ones(1)
            for k in bits(mask):
                shares = np.multiply.outer(shares, 1 - 1 / np.arange(self.axes[k], 1, -1)).ravel()
            steps, counts = np.unique(np.round(8 * np.log2(shares)).astype(np.int64), return_counts=True)
            units: Counter[int] = Counter()
            for variance, own, count in self._variances():
                if own == mask:
                    units[rung(variance)] += count
            for number, count in units.items():
                for step, times in zip(steps.tolist(), counts.tolist(), strict=True):
                    found[number + step] += count * times
        return found


def _cells(table: Ints, left: Ints, ratio: Fraction, variance: Fraction) -> Iterator[tuple[int, Fraction, Fraction]]:
    """(value, centre, variance) of the cells of one margin that are not forced, in C order."""
    shape = table.shape

    def mean(values: Ints, place: tuple[int, ...]) -> Fraction:
        """F: a cell's mean given the line sums and the cells before it, by inclusion and exclusion."""
        total = Fraction(0)
        for chosen in range(1, 1 << len(shape)):
            index = tuple(slice(i, None) if chosen >> k & 1 else i for k, i in enumerate(place))
            remaining = math.prod(n - i for k, (n, i) in enumerate(zip(shape, place, strict=True)) if chosen >> k & 1)
            total += Fraction((-1) ** (chosen.bit_count() + 1) * int(values[index].sum()), remaining)
        return total

    for place in cartesian(*(range(n - 1) for n in shape)):
        smaller = math.prod((Fraction(n - i - 1, n - i) for n, i in zip(shape, place, strict=True)), start=Fraction(1))
        centre = mean(table, place) + ratio * (int(left[place]) - mean(left, place))
        yield int(table[place]), centre, variance * smaller


def _submasks(mask: int) -> Iterator[int]:
    sub = mask
    while True:
        yield sub
        if sub == 0:
            return
        sub = (sub - 1) & mask


def _rational(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _count_classes(children: tuple[int, ...] | Ints) -> list[tuple[int, int]]:
    """(class, how often)."""
    values, counts = np.unique(np.array(children, dtype=np.int64), return_counts=True)
    return list(zip(values.tolist(), counts.tolist(), strict=True))


def _siblings_left(counts: Ints) -> tuple[Ints, Ints]:
    """(r, how many children are drawn with r siblings left, themselves included), r from 2 up."""
    most = int(counts.max())
    at_least = np.bincount(counts, minlength=most + 1)[::-1].cumsum()[::-1]
    return np.arange(2, most + 1), at_least[2 : most + 1]
