"""Gaussian noise on a block, one cell after the other: the engine beneath sums, grids, products of hierarchies, weighted levels and totals
of pieces, which are orders and centres over it.

Cells are drawn through a sequence (level_sequence.py), each from N_Z(c, s^2) with the centre c and the variance s^2 found there. For the
lattice law the whole block is kept with probability prod theta_(s_j)(c_j) / theta_(s_j)(0), else the WHOLE block is drawn anew ([theory
R7]); for the sequential law every cell is final when drawn ([theory R22]), or, in groups, the last cells of a line are kept with the
probability that is their own product, else they alone are drawn anew ([theory R22] (g)).

One cell. With c0 = ceil(c - 1/2), d = c - c0: propose z = c0 + p, p from a fixed centred law of parameter V > s^2, and accept with
probability exp(-t), h = s^2 / V,

    t = ((1 - h) p - d)^2 / (2 V h (1 - h)),

the ratio of the two weights divided by its supremum over real p; where V <= 1/2, so that integers are far apart, by its value at an integer
q nearest to d / (1 - h), with ((1 - h) p - d)^2 - ((1 - h) q - d)^2 in place of the square. V is g w sigma_squared, and at least w
sigma_squared + 1/4, where w, one of four values to a doubling, is an upper bound of s^2 / sigma_squared, and g > 1: cells of nearly equal
variance, whichever their stage, share one proposal law, a class. However small s^2 is, one proposal in ten is q, and is taken.

Words. Each class draws its proposals in chunks by the exact engine, and then takes as many accept words; pairs (proposal, accept word) are
used in order, across units, stages, tries and the n draws of a call. The words that keep or throw away a block, or a group, come in chunks
of their own.
The size of a chunk is a function of what is left to draw, so that output is a function of the words alone.

Error of the doubles. d comes from an exact integer remainder, relative error below 2^-50. h is a product of at most MOST_AXES + 3 doubles,
each the nearest to its value or off by two units in the last place: relative error below 2^-47. As h <= 1 / g <= 64/65, 1 - h has relative
error below 2^-41. With x = (1 - h) p - d, (1 - h) |p| <= |x| + |d|, so x is off by at most 2^-40 (|x| + |d|), and t = M x^2, M = 1 / (2 V
h (1 - h)), by at most 2^-38 (t + sqrt(t) sqrt(M) |d|). sqrt(M) |d| <= 1 / (2 sqrt(2 s^2 (1 - h))) < 13 where V > 1/2: for V < 4 by g = 5/4,
and everywhere by s^2 = V h, h >= 2^(-(MOST_AXES + 2) / 4) / g. By exp(-t) t < .4 and exp(-t) sqrt(t) < .43 the probability is off by less
than 2^-35. For V <= 1/2, h <= 1/2 and M <= 1 / s^2. With y = (1 - h) q - d, |y| <= 1/2, t = M (x^2 - y^2) is off by at most 2^-38.5 t +
2^-39 / s^2; where doubles take the other one of two nearly nearest integers for q, it moves by as much once more. So the chance is off by
less than 2^-38 (.4 + 1 / s^2). `step_band` covers all this. What it leaves open is settled with exact rationals and balls.

Where weights are no small integers the centre is (A + ratio B) / D with a double ratio. With e = `error` / 4 a bound of the relative errors
of weights, of their sums and quotients, it is off by at most 4 e size, size = |A / D| + |ratio B / D| + 1, and h by 4 e; c0 is settled
exactly where d comes that near to 1/2. gap >= 1/65. So t = M x^2 is off by at most t (520 e) + sqrt(2 t) ((260 e + 2^-50) sqrt(2 t) + (130
e + 4 e size + 2^-50) sqrt(65 / s^2)), and the chance by at most 390 e + 2^-50 + 5 (130 e + 4 e size + 2^-50) / s; where V <= 1/2, by at
most 208 e + f / s^2, f = 650 e + 12 e size + 2^-48. The band is then twice that at size = MOST_SIZE, if that is more; larger ones are
settled exactly. Log theta ratios move by at most 2 (4 e size + 4 e) (1 + 1 / s^2).
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact import DiscreteGaussian
from holdfast.exact.balls import ball
from holdfast.exact.compiled import loops_for
from holdfast.exact.law import Sampler, check_memory
from holdfast.exact.parameters import sample_size
from holdfast.exact.predicates import is_below
from holdfast.lattices.shapes.levels import LevelVector
from holdfast.randomness.words import Words
from holdfast.samplers.level_sequence import LevelSequence, OpenCell, Redraw, Weights, floors, step_bound
from holdfast.samplers.steps import MARGIN, Line, Steps, narrowest, step_bounds, steps_with
from holdfast.samplers.theta import log_theta_error, theta_ratio_ball, tries_bound

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

STEP_BAND = 2.0**-34
MOST_SIZE = 2.0**16
"""Sizes of a centre up to which the band is proved where weights are doubles."""
CHUNK_PAIRS = 1 << 15
"""Most pairs of a class drawn at a time: 400 KB, which stays in the second-level cache."""
MOST_AXES = 16
LEAST_CELL_VARIANCE = 2.0**-30
"""Below this the band would leave one decision in a thousand to exact arithmetic."""
_COMPILED = "holdfast.samplers._levels_compiled"


def stretch_for(sigma_squared: Fraction) -> tuple[Fraction, int]:
    """(g, s): the proposal's variance is g times sigma_squared; about one pair in s is rejected.

    The best g is near 1 + .29 / sigma (maximise g^(-1/2) E exp(-d^2 / (2 sigma_squared (g - 1))), d uniform); a few values of few bits
    make few laws.
    """
    for below, denominator, share in ((4, 4, 3), (64, 8, 6), (1024, 32, 20)):
        if sigma_squared < below:
            return 1 + Fraction(1, denominator), share
    return 1 + Fraction(1, 64), 40


def proposal_variance(bound: Fraction) -> Fraction:
    """V for cells of at most this variance; an integer nearest to d / (1 - h) stays near 0 where the variance is small."""
    return max(stretch_for(bound)[0] * bound, bound + Fraction(1, 4))


def step_band(least: float, error: float = 0.0) -> float:
    """How near doubles decide about a cell of variance `least` or more; see the module's text."""
    slope, e = max(1 / least, 5 / math.sqrt(least)), error / 4
    band = max(STEP_BAND, 2.0**-37 / least)
    return max(band, 2 * (390 * e + 2.0**-50 + slope * (650 * e + 12 * e * MOST_SIZE + 2.0**-48))) if error else band


def check_reach(cells: int, axes: int, scale: int, proxy: Fraction) -> int:
    """Refuse what could leave 64-bit integers; a bound of what the values held are.

    The law is sub-Gaussian ([theory R7]). z, c and every N / D are values of linear forms of the noise with at most this proxy of their
    variance: none exceeds the bound with probability above 2^-200. Integers held are at most four times that, times the largest D W,
    `scale`: what is added to N_(k-1) / D is a difference of two such values.
    """
    reach = math.isqrt(int(2 * proxy * (139 + (16 * cells << axes).bit_length()))) + 2
    if reach >= 1 << 50 or 8 * scale * reach >= 1 << 62:
        raise RequestTooLarge(
            f"Gaussian noise this wide on {cells} cells could leave 64-bit integers. "
            "Use fewer cells in a block or less noise (a larger budget)."
        )
    return reach


@lru_cache(maxsize=256)
def _proposal(V: Fraction) -> Sampler:
    """Return the sampler of a class; blocks of different shapes have many classes in common."""
    return DiscreteGaussian(V).sampler()


@dataclass(frozen=True, eq=False)
class VarianceClass:
    """Cells of nearly equal variance: their proposal's parameter, its sampler, about one pair in `share` is rejected, cells a table."""

    V: Fraction
    sampler: Sampler
    share: int
    cells: int

    @property
    def is_narrow(self) -> bool:
        """As the compiled loop sees it."""
        return float(1 / self.V) >= 2


class SequenceGaussian:
    """Gaussian noise through a sequence, cell after cell.

    Law:         P[z] proportional to the product of exp(-(z_i - c_i)^2 / (2 v_i)) over the cells in order, c_i their centres and v_i their
                 variances, on the tables that the sequence allows. Where not `whole`, each factor is divided by its sum over z_i: the
                 sequential law; or, `in_groups`, the product over a group by its sum over the group's values.
    Given:       variances of cells are 2^-30 at least (checked).
    Guarantees:  exact; time linear in the cells, times `expected_tries`.
    Reference:   [theory R7], [theory R22], [theory T12] (b); the module's text. `draw_slowly` is the same with every decision exact.

    `scale`: what the sequence's variances are multiplied by. `error`: see the module's text; 0 where all weights are integers.
    `whole`: whether a block is kept or thrown away as a whole.
    `band` and `chunk_pairs` exist for tests: a wide band changes nothing, another chunk changes which word serves what.
    """

    name = "sequential Gaussian, level by level"
    small_draw = 1 << 11
    """Cells up to which fractions in Python are faster than loading Numba."""

    def __init__(
        self, sequence: LevelSequence, scale: Fraction, *, whole: bool = True, in_groups: bool = False, error: float = 0.0,
        band: float | None = None, chunk_pairs: int = CHUNK_PAIRS,
    ) -> None:  # fmt: skip
        self.sequence, self.scale, self.whole, self.error, self.chunk_pairs = sequence, scale, whole, error, chunk_pairs
        self.in_groups = in_groups and not whole
        self.cells = math.prod(sequence.table_shape(sequence.last))
        least = float(scale) * float(sequence.variance_floors[0].min(initial=1.0))
        if least < LEAST_CELL_VARIANCE:
            raise InvalidParameter(
                'A cell\'s noise would have a variance below 2^-30: nearly always zero. Use more noise, or law = "auto".'
            )
        self.band = step_band(least, error) if band is None else band

    @cached_property
    def expected_tries(self) -> float:
        """The proven bound prod theta3(exp(-2 pi^2 s_i^2)) ([theory R7]), each s_i^2 taken from below; for the sequential law 1, or the
        bound of a group.
        """
        least, counts = self.sequence.variance_floors
        if self.whole:
            return tries_bound(float(self.scale) * least, counts)
        return max((line.tries(length) for line, length in zip(self.lines, self.groups, strict=True) if line and length), default=1.0)

    @cached_property
    def lines(self) -> tuple[Line | None, ...]:
        """The narrowest line of every stage; None where nothing is drawn."""
        exact = 1 - Fraction(self.error)
        return tuple(found and Line(self.scale * found[0] * (1 if found[1] else exact), found[1]) for found in self.sequence.lines)

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """How many of the last cells of a line are a group, for every stage; 0: none are."""
        return tuple(line.group_length() if self.in_groups and line else 0 for line in self.lines)

    @cached_property
    def keeps(self) -> int:
        """How many times something is kept for one table: the table, or its groups."""
        grouped = [stage.weights for stage, length in zip(self.sequence.stages, self.groups, strict=True) if length]
        return int(self.whole) + sum(math.prod(w.free for w in outer) * int((np.diff(last.starts) > 2).sum()) for *outer, last in grouped)

    @cached_property
    def steps(self) -> Steps:
        """The variances of its cells; the first one's centre is fixed, as kept sums are zero."""
        return self.steps_given if self.sequence.free_cells > 1 else Steps()

    @cached_property
    def steps_given(self) -> Steps:
        """The same where kept sums are given, and move every centre (`draw_given`)."""
        low, counts = self.sequence.variance_floors
        share, times, level = self.sequence.least
        steps = steps_with(float(self.scale) * low, counts, self.scale * share * (1 - Fraction(self.error)), times, level)
        steps = replace(steps, lines=narrowest(self.lines))
        if not any(self.groups):
            return steps
        distance, drift = self._distance_and_drift()
        return replace(steps, in_groups=True, log_distance=distance, drift=drift)

    def _distance_and_drift(self) -> tuple[float, float]:
        """log_distance and drift of Steps, of groups and of the cells that are in none."""
        distance = drift = 0.0
        for stage, line, length in zip(self.sequence.stages, self.lines, self.groups, strict=True):
            axes = [w.shares for w in stage.weights]
            if line and length:
                last, (shares, cells) = stage.weights[-1], axes.pop()
                low, lines = floors(stage.base, axes)
                sizes, families = np.unique(np.minimum(np.diff(last.starts), length), return_counts=True)
                for n, times in zip(sizes.tolist(), families.tolist(), strict=True):
                    if n > 1:
                        found = line.group_steps(float(self.scale) * low, n)
                        distance += times * float((found[0] * lines).sum())
                        drift += times * float((found[1] * lines).sum())
                first = max(last.longest - length, 0)
                axes.append((shares[:first], cells[:first]))
            low, times_each = floors(stage.base, axes)
            single = steps_with(float(self.scale) * low, times_each, stage.base, 1)
            distance, drift = distance + single.log_distance, drift + single.drift
        return distance * MARGIN, drift * MARGIN

    @cached_property
    def classes(self) -> tuple[int, tuple[VarianceClass | None, ...]]:
        """(the lowest class, the classes from there on; None where no cell is)."""
        counts = self.sequence.variance_counts()
        lowest = min(counts, default=0)
        return lowest, tuple(self._class(c, counts[c]) if c in counts else None for c in range(lowest, max(counts, default=lowest) + 1))

    def _class(self, c: int, cells: int) -> VarianceClass:
        bound = self.scale * step_bound(c)
        V = proposal_variance(bound)
        return VarianceClass(V, _proposal(V), stretch_for(bound)[1], cells)

    def tail_of(self, covariances: NDArray[np.float64]) -> tuple[float, float]:
        """(sum |a*_i| e(v_i), sum a*_i^2 v_i kappa(v_i)) of a linear form a'z: its tail in [theory R22] (d). Given C a, the covariances of
        the form with every cell in the continuous law: a*_i is its innovation over v_i.
        """
        shift = excess = 0.0
        parts = zip(self.sequence.stages, self.lines, self.groups, self.sequence.innovations(covariances), strict=True)
        for stage, line, length, (moved, share) in parts:
            alone = share > 0
            if line and length:
                left = stage.weights[-1].children_left
                alone = alone & (left > length)
                found = self._tail_of_groups(stage.weights[-1], line, length, moved, share)
                shift, excess = shift + found[0], excess + found[1]
            v, own = float(self.scale) * share[alone], moved[alone]
            means, kappas = step_bounds(v)
            shift += float((np.abs(own) / v * means).sum())
            excess += float((own**2 / v * kappas).sum())
        return shift * MARGIN, excess * MARGIN

    def _tail_of_groups(self, w: Weights, line: Line, length: int, moved: Floats, share: Floats) -> tuple[float, float]:
        """What the groups of a stage add: the form's variance in each, times kappa, and its root times a bound of the group's mean."""
        left, begin, shift, excess = w.children_left, w.starts[:-1], 0.0, 0.0
        forms = np.divide(moved**2, float(self.scale) * share, out=np.zeros(share.shape), where=(share > 0) & (left <= length))
        forms = np.add.reduceat(forms, begin, axis=-1)
        variances = float(self.scale) * np.maximum.reduceat(share * (left / np.maximum(left - 1, 1)), begin, axis=-1) * (1 - 1e-9)
        sizes = np.minimum(np.diff(w.starts), length)
        for n in set(sizes.tolist()) - {1}:
            own = forms[..., sizes == n]
            _, drift, kappa = line.group_steps(variances[..., sizes == n], n)
            shift += float(np.sqrt(own * drift).sum())
            excess += float((own * kappa).sum())
        return shift, excess

    def draw(self, n: int, words: Words) -> Ints:
        """n independent draws, shape (n, cells), cells in C order."""
        n = sample_size(n)
        check_memory(n * self.cells)
        return self.draw_slowly(n, words) if loops_for(_COMPILED, n * self.cells, self.small_draw) is None else self.draw_compiled(n, words)

    def draw_compiled(self, n: int, words: Words) -> Ints:
        """As `draw`, by compiled loops."""
        run = CompiledRun(self, n, words)
        out = np.empty((n, self.cells), dtype=np.int64)
        run.fill(out)
        return out

    def draw_given(self, sums: Ints, words: Words, *, slowly: bool = False) -> tuple[Ints, NDArray[np.bool_]]:
        """One try for each row of sums, the totals of the units of level 1 of the only axis: (cells, whether the try is kept).

        Law:         given that it is kept, a try has weights exp(-|z|_2^2 / (2 sigma_squared)) among tables with these totals; it is kept
                     with a probability proportional to the sum of these weights over exp(-sum of totals^2 / (2 n sigma_squared)).
        """
        (level,) = self.sequence.kept_vectors()
        out, kept = np.empty((len(sums), self.cells), dtype=np.int64), np.zeros(len(sums), dtype=np.bool_)
        if slowly or loops_for(_COMPILED, out.size, self.small_draw) is None:
            pairs = self._pairs(len(sums), words)
            for row, own in enumerate(sums):
                given = {level: np.array(own.tolist(), dtype=object)}
                out[row], kept[row] = self._one_try(given, pairs, len(sums) - row)
            return out, kept
        run = CompiledRun(self, len(sums), words)
        for row, own in enumerate(sums):
            run.set_sums(level, own)
            kept[row] = run.fill(out[row : row + 1], left=len(sums) - row, one_try=True)
        return out, kept

    @property
    def keep_error(self) -> float:
        """Error of exp(sum of logs) in doubles: four times what relative errors of 2^-50 give, as s^2 has up to 2^-48, and the sums'."""
        smallest = float(self.scale) * float(self.sequence.variance_floors[0].min(initial=1.0))
        return 2 * self.sequence.free_cells * (4 * float(log_theta_error(smallest)) + 2.0**-52 + 2.0**-60)

    def share_at(self, number: int, unit: int, line: int, cell: int) -> tuple[Fraction, Fraction]:
        """(w / W along the line, the variance in units of `scale`) of one cell, exactly."""
        stage = self.sequence.stages[number]
        ratio, share = Fraction(0), stage.base
        if stage.axes:
            families = np.unravel_index(unit, [len(w.starts) - 1 for w in stage.weights])
            spans = [w.starts[family : family + 2].tolist() for w, family in zip(stage.weights, families, strict=True)]
            outer = np.unravel_index(line, [end - begin for begin, end in spans[:-1]]) if len(spans) > 1 else ()
            for w, (begin, end), place in zip(stage.weights, spans, (*map(int, outer), cell), strict=True):
                own, *later = w.between(begin + place, end)
                ratio = own / (own + sum(later))
                share *= sum(later) * ratio
        return ratio, share

    def draw_slowly(self, n: int, words: Words) -> Ints:
        """The same draws from the same words without floating point: the oracle of `draw`."""
        pairs = self._pairs(n, words)
        out = np.empty((n, self.cells), dtype=np.int64)
        for row in range(n):
            kept = False
            while not kept:
                out[row], kept = self._one_try(self.kept_sums, pairs, n - row)
        return out

    def _pairs(self, n: int, words: Words) -> ClassPairs:
        return ClassPairs(self.classes[1], n, self.chunk_pairs, words, keeps=self.keeps)

    def _one_try(self, kept: dict[LevelVector, Any], pairs: ClassPairs, left: int) -> tuple[list[int], bool]:
        """A table with these sums, and whether the accept step keeps it; `left`: tables still to draw, which sizes chunks."""
        seen: list[OpenCell] = []
        z = self.sequence.walk(kept, lambda cell: self._choose(cell, self.classes[0], left, pairs, seen))
        pairs.drawn[:] = 0
        if not self.whole:
            return z, True
        return z, self._is_kept(seen, left, pairs)

    def _is_kept(self, cells: list[OpenCell], left: int, pairs: ClassPairs) -> bool:
        return pairs.keeps_exactly(pairs.next_keep(left), [(cell.centre, self.scale * cell.share) for cell in cells])

    def _choose(self, cell: OpenCell, lowest: int, left: int, pairs: ClassPairs, seen: list[OpenCell]) -> int | Redraw:
        seen.append(cell)
        c = cell.step - lowest
        while True:
            place = pairs.next_pair(c, left)
            if pairs.accepts_exactly(c, place, cell.centre, self.scale * cell.share):
                pairs.drawn[c] += 1
                break
        length = min(self.groups[self.sequence.stages.index(cell.stage)], cell.length)
        if length and cell.number == cell.length - 2:
            group = seen[1 - length :]
            if not self._is_kept(group, left, pairs):
                for own in group:
                    pairs.drawn[own.step - lowest] -= 1
                return Redraw(length - 1)
        return math.ceil(cell.centre - Fraction(1, 2)) + int(pairs.proposals[place])

    @property
    def kept_sums(self) -> dict[LevelVector, Any]:
        """The sums of kept level vectors: zero."""
        return {s: np.zeros(self.sequence.table_shape(s), dtype=object) for s in self.sequence.kept_vectors()}

    def centres(self, z: list[int]) -> list[tuple[int, Fraction, Fraction]]:
        """(value, centre, variance) of every cell that is not forced, given those before it, in the order of the draw: exact rationals."""
        whole = np.array(z, dtype=object)
        sums = {stage.vector: self.sequence.sums(whole, stage.vector) for stage in self.sequence.stages}
        kept = {s: self.sequence.sums(whole, s) for s in self.sequence.kept_vectors()}
        found: list[tuple[int, Fraction, Fraction]] = []

        def choose(cell: OpenCell) -> int:
            place = dict(zip(cell.stage.axes, cell.place, strict=True))
            value = int(sums[cell.stage.vector][tuple(place.get(k, 0) for k in range(len(self.sequence.trees)))])
            found.append((value, cell.centre, self.scale * cell.share))
            return value

        again = self.sequence.walk(kept, choose)
        assert again == list(z), "not a table of the block"
        return found


class SequenceVariances(NamedTuple):
    """Variances for the compiled loop: of each stage, of each node (its share, its w / W, its class), 1 / V and 1 / (2 V) of each class;
    how near doubles decide about a cell (band, error, MOST_SIZE) and about a table.
    """

    variances: NDArray[np.float64]
    share: NDArray[np.float64]
    ratio: NDArray[np.float64]
    step: NDArray[np.int16]
    inverse: NDArray[np.float64]
    half: NDArray[np.float64]
    near: tuple[float, float, float]
    keep_band: float


class Pairs(NamedTuple):
    """The arrays of ClassPairs."""

    proposals: Ints
    accepts: NDArray[np.uint32]
    filled: Ints
    used: Ints
    drawn: Ints
    keeps: NDArray[np.uint32]


class CompiledRun:
    """The arrays of one call, and the loop that hands over to exact arithmetic where doubles leave a decision open."""

    def __init__(self, sampler: SequenceGaussian, n: int, words: Words) -> None:
        importlib.import_module("holdfast.exact._compiled")  # so that proposals, too, are drawn by compiled loops
        self._loops = loops = importlib.import_module(_COMPILED)
        self._sampler, self._left = sampler, n
        arrays, (lowest, classes) = sampler.sequence.arrays, sampler.classes
        walk = arrays.walk()
        self._walk, self._table_at = walk._replace(stages=walk.stages.copy()), arrays.table_at
        self._walk.stages[:, loops.BASE] -= lowest
        variances = np.array([float(sampler.scale * stage.base) for stage in sampler.sequence.stages])
        inverse = np.array([0.0 if found is None else float(1 / found.V) for found in classes])
        self._walk.stages[:, loops.GROUP] = sampler.groups
        self._pairs = ClassPairs(classes, n, sampler.chunk_pairs, words, keeps=sampler.keeps)
        self._state, self._sums = np.zeros(loops.STATE_SIZE, dtype=np.int64), np.zeros(2)
        self._state[loops.WHOLE] = int(sampler.whole)
        near = (sampler.band, sampler.error, MOST_SIZE)
        keep_band = sampler.band + sampler.keep_error
        self._spread = SequenceVariances(variances, arrays.share, arrays.ratio, arrays.step, inverse, inverse / 2, near, keep_band)

    def set_sums(self, s: LevelVector, sums: Ints) -> None:
        """The sums of a kept level vector; zero unless they are set."""
        begin, length = self._table_at[s]
        self._walk.tables[begin : begin + length] = sums

    def fill(self, out: Ints, left: int | None = None, *, one_try: bool = False) -> bool:
        """Draw every row of `out`; with `one_try` its only row, once: whether the accept step keeps it."""
        loops, state, pairs, sampler = self._loops, self._state, self._pairs, self._sampler
        left = len(out) if left is None else left
        for place in (loops.ROW, loops.STAGE, loops.UNIT, loops.LINE):
            state[place] = 0
        state[loops.CELL], state[loops.ONE_TRY], self._sums[0] = -1, int(one_try), 0.0
        while True:
            status = loops.draw_blocks(out, self._walk, self._spread, pairs.arrays(), state, self._sums)
            if status in (loops.DONE, loops.REJECTED):
                pairs.keep = int(state[loops.KEEP])
                return bool(status == loops.DONE)
            row, keep, c = int(state[loops.ROW]), int(state[loops.KEEP]), int(state[loops.CLASS])
            if status == loops.NEED_PAIRS:
                pairs.refill(c, left - row)
                state[loops.KNOWN] = 0
            elif status == loops.NEED_KEEP:
                pairs.refill_keeps(left - row)
                state[loops.KEEP], state[loops.KNOWN] = 0, 0
            elif status in (loops.OPEN_PAIR, loops.OPEN_CENTRE):
                ratio, share = sampler.share_at(*(int(state[i]) for i in (loops.STAGE, loops.UNIT, loops.LINE, loops.CELL)))
                centre = (int(state[loops.AHEAD]) + ratio * int(state[loops.TOTAL])) / int(state[loops.SCALE])
                if status == loops.OPEN_CENTRE:
                    state[loops.NEAREST_KNOWN], state[loops.NEAREST] = 1, math.ceil(centre - Fraction(1, 2))
                    continue
                place = int(pairs.used[c])
                below = pairs.accepts_exactly(c, place, centre, sampler.scale * share)
                state[loops.KNOWN], state[loops.KNOWN_PLACE], state[loops.KNOWN_VERDICT] = loops.KNOWN_PAIR, place, 1 if below else -1
            else:
                cells = [cell[1:] for cell in sampler.centres(out[row].tolist())] if sampler.whole else self._group(out[row])
                below = pairs.keeps_exactly(keep, cells)
                state[loops.KNOWN], state[loops.KNOWN_PLACE], state[loops.KNOWN_VERDICT] = loops.KNOWN_KEEP, keep, 1 if below else -1

    def _group(self, final: Ints) -> list[tuple[Fraction, Fraction]]:
        """(centre, variance) of every cell of the group at hand."""
        loops, state, walk, sampler = self._loops, self._state, self._walk, self._sampler
        number, unit, line = (int(state[place]) for place in (loops.STAGE, loops.UNIT, loops.LINE))
        axes, table, _, _, most = walk.stages[number].tolist()
        z, length = (final if table < 0 else walk.tables[table:]), int(walk.box[axes - 1, loops.CHILDREN])
        buffers = walk.box, walk.heavy, walk.rest, walk.tables, walk.N, walk.S, walk.offsets, walk.place
        D, _, where, _ = loops.open_line(axes, walk.along[number], line, False, *buffers)
        ahead = walk.N[walk.offsets[axes - 2] :] if axes > 1 else walk.zeros
        total, found = int(state[loops.GROUP_TOTAL]), []
        for cell in range(max(length - most, 0), length - 1):
            ratio, share = sampler.share_at(number, unit, line, cell)
            found.append(((int(ahead[cell]) + ratio * total) / D, sampler.scale * share))
            total -= D * int(z[where + cell]) - int(ahead[cell])
        return found


class ClassPairs:
    """Proposals with their accept words, in chunks for each class, and the words that keep or throw away blocks or groups, `keeps` a table.

    The chunks lie one behind the other in two arrays; `used` and `filled` are places in these.
    """

    def __init__(self, classes: tuple[VarianceClass | None, ...], n: int, most: int, words: Words, *, keeps: int = 1) -> None:
        self.classes, self._most, self._words, self._keeps = classes, most, words, keeps
        room = [0 if found is None else self._count(found, n * found.cells) for found in classes]
        self._begin = np.concatenate([[0], np.cumsum(room)])[:-1].astype(np.int64)
        self._first_word, self._first_keep = [0] * len(classes), 0
        self.proposals = np.zeros(sum(room), dtype=np.int64)
        self.accepts = np.zeros(sum(room), dtype=np.uint32)
        self.filled, self.used, self.drawn = self._begin.copy(), self._begin.copy(), np.zeros(len(classes), dtype=np.int64)
        self.keeps, self.keep = np.zeros(0, dtype=np.uint32), 0
        if n:  # at once: every pause for words costs as much as a thousand cells
            for c in (c for c, found in enumerate(classes) if found is not None):
                self.refill(c, n)
            if keeps:
                self.refill_keeps(n)

    def arrays(self) -> Pairs:
        """As the compiled loop takes them."""
        return Pairs(self.proposals, self.accepts, self.filled, self.used, self.drawn, self.keeps)

    def _count(self, found: VarianceClass, left: int) -> int:
        return min(self._most, left + left // found.share + 32)

    def refill(self, c: int, rows: int) -> None:
        """New pairs of a class, enough for about what is left of so many tables if a chunk can hold them."""
        found = self.classes[c]
        assert found is not None
        count = self._count(found, max(rows * found.cells - int(self.drawn[c]), 1))
        begin = int(self._begin[c])
        self.proposals[begin : begin + count] = found.sampler.draw(count, self._words)
        self._first_word[c] = self._words.position
        self.accepts[begin : begin + count] = self._words.take(count)
        self.used[c], self.filled[c] = begin, begin + count

    def refill_keeps(self, rows: int) -> None:
        self._first_keep = self._words.position
        self.keeps = self._words.take(min(self._most, rows * self._keeps))

    def next_keep(self, rows: int) -> int:
        if self.keep == len(self.keeps):
            self.refill_keeps(rows)
            self.keep = 0
        self.keep += 1
        return self.keep - 1

    def next_pair(self, c: int, rows: int) -> int:
        if self.used[c] == self.filled[c]:
            self.refill(c, rows)
        self.used[c] += 1
        return int(self.used[c]) - 1

    def accepts_exactly(self, c: int, place: int, centre: Fraction, variance: Fraction) -> bool:
        """Whether a proposal is taken, by the exponent t of the module's text."""
        found = self.classes[c]
        assert found is not None
        d, h = centre - math.ceil(centre - Fraction(1, 2)), variance / found.V
        p, near = int(self.proposals[place]), d / (1 - h)
        t = (1 - h) * (p - near) ** 2 / (2 * found.V * h)
        if found.is_narrow:
            t -= (1 - h) * (round(near) - near) ** 2 / (2 * found.V * h)
        word = self._first_word[c] + place - int(self._begin[c])
        return is_below(int(self.accepts[place]), 32, lambda: (-ball(t)).exp(), self._words, word)

    def keeps_exactly(self, keep: int, centres: list[tuple[Fraction, Fraction]]) -> bool:
        """Whether a block or a group is kept, by its centres and variances."""
        chance = lambda: math.prod((theta_ratio_ball(variance, c) for c, variance in centres), start=arb(1))  # noqa: E731
        return is_below(int(self.keeps[keep]), 32, chance, self._words, self._first_keep + keep)
