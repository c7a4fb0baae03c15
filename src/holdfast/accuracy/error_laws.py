"""The law of the error of a sum of published numbers, from the public law of the noise: by the best way there is for it.

    kept          no move changes the sum: there is no error; under every mechanism
    lattice sum   Gaussian noise: a discrete Gaussian up to known factors, or the sub-Gaussian bound where that is smaller [theory T140]
    near lattice law  the sequential law: the same at a level that is higher by the distance of the two
    sub-Gaussian  the sequential law far from it: its own tail bound [theory R22], where draws would hardly give a narrower interval
    convolution   Laplace noise on free cells and cells under one kept total, narrow Gaussian noise there [theory T142]; single cells
                  under rounded projection
    simulated     all else: draws of the public law, and a probability that they mislead [theory T112]

Blocks with equal coefficients have equal laws, so that a whole margin asks for few.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.cell_laws import cell_probabilities
from holdfast.accuracy.convolved import UNBOUNDED, Convolved, cell_of, convolve
from holdfast.accuracy.error_draws import Part, draw_errors
from holdfast.accuracy.kept_sums import KeptSums
from holdfast.accuracy.lattice_sums import LatticeSum, flatness, flatness_of, log_theta
from holdfast.accuracy.queries import LARGEST_COEFFICIENT
from holdfast.accuracy.sequential import lattice_law, sequential_steps, tail_of
from holdfast.accuracy.short_moves import covers, form_variance, short_moves, units_s_squared
from holdfast.channels.drawing import Drawing
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices.shapes import Free, Grid, Levels, Shape
from holdfast.laws import Gaussian, LevelGaussian, Reads, Rounded
from holdfast.laws.level_gaussian import LevelVariances
from holdfast.samplers.choice import duration
from holdfast.samplers.protocol import cell_draws
from holdfast.samplers.steps import Steps, together
from holdfast.wording.intervals import BY_CHAIN, NO_LAW, NOT_PROVED, ONLY_KEPT

Ints = NDArray[np.int64]
Method = Literal["kept", "lattice sum", "near lattice law", "sub-Gaussian", "convolution", "simulated"]
Ask = Literal["auto", "proved", "simulated"]

DRAWS, LEAST_DRAWS = 20_000, 1_000
"""Draws for an interval; fewer, and wider intervals, where they would take more than USUAL_CELLS."""
DOUBT = 1e-6
"""Probability, over the draws, that a simulated interval covers the truth less often than its level says ([theory T112])."""
USUAL_CELLS, MOST_CELLS = 4 * 10**8, 10**9
"""Cell draws for one interval, and those at most: about 20 seconds, and a minute."""
WIDER = 1.1
"""A proved interval is taken without draws where it is at most so many times as wide as one from draws is expected to be."""
QUICK_WORK, BLOCK_WORK = 2**24, 2_000
"""Cells of blocks and points of transforms that the sums of a page may take, about a second; and what a block takes beside its cells."""
PLAIN = Gaussian(Fraction(1))
"""For questions to a lattice that no law decides."""
NEAR = 1e-3
"""Total variation distance from the lattice law up to which intervals of the sequential law are its, at a level higher by so much."""
FLAT_ENOUGH = 0.98
"""A lattice sum less flat than this is left for a convolution, where there is one."""


class Reach(NamedTuple):
    """|error| <= reach with probability `covered` or more; covered is None where only draws tell."""

    reach: int
    method: Method
    covered: float | None
    doubt: float


class ErrorLaw(Protocol):
    def reach(self, alpha: float) -> Reach:
        """The least reach known to be exceeded with probability alpha at most."""


class KeptSum:
    """No error."""

    def reach(self, alpha: float) -> Reach:
        return Reach(0, "kept", 1.0, 0.0)


@dataclass(frozen=True)
class GaussianSum:
    law: LatticeSum

    def reach(self, alpha: float) -> Reach:
        found, bound = self.law.reach(alpha)
        method: Method = "lattice sum" if bound == "lattice sum" else "sub-Gaussian"
        return Reach(found, method, max(1 - self.law.tail(found), 1 - alpha), 0.0)


@dataclass(frozen=True)
class NearSum:
    """Noise that the sequential law draws in some block.

    law:       that of the lattice law; None where it is too far. distance: of the two in total variation.
    variance, shift:  a bound of the spread, and how far means of steps can move the sum: |error| > t + shift has probability
                      2 exp(-t^2 / (2 variance)) at most.
    """

    law: ErrorLaw | None
    distance: float
    variance: float
    shift: float

    def reach(self, alpha: float) -> Reach:
        if self.law is None or 2 * self.distance > alpha:
            far = (self.shift + math.sqrt(2 * self.variance * math.log(2 / alpha))) * (1 + 1e-9)
            return Reach(math.floor(far), "sub-Gaussian", 1 - alpha, 0.0)
        found = self.law.reach(alpha - self.distance)
        covered = None if found.covered is None else max(found.covered - self.distance, 1 - alpha)
        return found._replace(method="near lattice law", covered=covered)


@dataclass(frozen=True)
class ConvolvedSum:
    law: Convolved

    def reach(self, alpha: float) -> Reach:
        found = self.law.reach(alpha)
        if found is None:
            raise InvalidParameter("This level is too near 1 for sums of this noise. Ask for 0.9999999 or less.", field="level")
        return Reach(found, "convolution", 1 - self.law.tail(found), 0.0)


@dataclass(frozen=True, eq=False)
class SimulatedSum:
    """Nothing is drawn before a reach needs it.

    count:   how many draws; 0 where they would take too long. draw: makes them. bound: proved for the same sum; None where nothing is.
    spread:  the standard deviation of the continuous law.
    """

    count: int
    draw: Callable[[], Ints]
    bound: NearSum | None = None
    spread: float = 0.0

    @cached_property
    def errors(self) -> Ints:
        """Sizes of independent draws of the error, sorted."""
        return np.sort(np.abs(self.draw()))

    def reach(self, alpha: float) -> Reach:
        return self.without_draws(alpha) or Reach(int(self.errors[rank(1 - alpha, self.count) - 1]), "simulated", None, DOUBT)

    def without_draws(self, alpha: float, sums: int = 1) -> Reach | None:
        """The proved reach for one of so many sums that hold together, unless draws are expected to give a much smaller one. What is
        decided depends on no draw.
        """
        from scipy.special import ndtri

        if self.bound is None:
            return None
        found = self.bound.reach(alpha / sums)
        try:
            share = rank(1 - alpha, self.count) / self.count if self.count else 1.0
        except InvalidParameter:
            return found  # a level too near 1 for draws
        if share == 1:
            return found
        expected = math.ceil(-float(ndtri((1 - share) / (2 * sums))) * self.spread - 0.5)
        return found if found.reach <= WIDER * expected else None


def rank(level: float, draws: int) -> int:
    """The least r with P[Binomial(draws, level) >= r] <= DOUBT."""
    from scipy.special import bdtrc

    ranks = np.arange(1, draws + 1)
    enough = ranks[bdtrc(ranks - 1, draws, level) <= DOUBT]
    if not len(enough):
        most = math.floor(1000 * DOUBT ** (1 / draws)) / 1000
        raise InvalidParameter(f"A level of {level} is too near 1 for {draws:,} draws of the law. Ask for {most} or less.", field="level")
    return int(enough[0])


class BlockIndex:
    """Shape and cells of each block by its number; a table of a million small blocks holds a few arrays."""

    def __init__(self, kinds: Sequence[tuple[Shape, Ints]]) -> None:
        """`kinds`: shapes with the cells of their blocks, one row a block."""
        self.kinds = kinds
        self.first = [0, *itertools.accumulate(len(cells) for _, cells in kinds)][: len(kinds)]

    def __getitem__(self, number: int) -> tuple[Shape, Ints]:
        kind = bisect.bisect_right(self.first, number) - 1
        shape, cells = self.kinds[kind]
        return shape, cells[number - self.first[kind]]

    def __iter__(self) -> Iterator[tuple[Shape, Ints]]:
        return ((shape, row) for shape, cells in self.kinds for row in cells)


class ErrorLaws:
    """Laws of errors of queries, for one drawing: those already found are kept.

    Given:  noise of one law, which sees no data, drawn exactly; under every other mechanism sums that the kept totals give. All else is
            InvalidParameter.
    """

    def __init__(self, drawing: Drawing, ask: Ask = "auto") -> None:
        if ask not in get_args(Ask):
            raise InvalidParameter(
                "method is 'auto', 'proved' for ends without draws, or 'simulated' for draws of the public law.", field="method"
            )
        self.drawing, self.ask = drawing, ask
        self.target = lattice_law(drawing.channel.target)
        self._known: dict[object, ErrorLaw] = {}
        self._left = QUICK_WORK

    @cached_property
    def has_law(self) -> bool:
        """Whether the noise has one law that sees no data, drawn exactly. Else only sums that the kept totals give are known."""
        return self.target.publishes_cells and self.target.reads is Reads.NOTHING and self.drawing.is_exact

    @cached_property
    def _kept_sums(self) -> KeptSums:
        return KeptSums(self.drawing.channel.facts)

    def published_sum(self, counts: Ints, cells: Ints, coefficients: Ints) -> int:
        """What the published numbers give for a sum, in steps where answers are on a grid."""
        if not self.target.publishes_cells:
            return self._kept_value(cells, coefficients)
        return sum(int(a) * int(b) for a, b in zip(coefficients.tolist(), counts[cells].tolist(), strict=True))

    def _kept_value(self, cells: Ints, coefficients: Ints) -> int:
        found = self._kept_sums.value(cells, coefficients)
        if found is not None:
            return found
        raise InvalidParameter(ONLY_KEPT if not self.target.publishes_cells else NO_LAW if self.drawing.is_exact else BY_CHAIN)

    @cached_property
    def _homes(self) -> tuple[NDArray[np.signedinteger], NDArray[np.signedinteger], BlockIndex]:
        """(the number of each cell's block, -1 where it has no noise; its place there; the blocks). Free cells count as one block."""
        tasks = self.drawing.channel.tasks()
        size = self.drawing.channel.facts.lattice.cells
        kind: type[np.signedinteger] = np.int32 if size < 2**31 else np.int64
        home, place = np.full(size, -1, dtype=kind), np.zeros(size, dtype=kind)
        free = [task.cells.ravel() for task in tasks if task.shape.is_free]
        kinds: list[tuple[Shape, Ints]] = [(Free(1), np.concatenate(free)[None])] if free else []
        kinds += [(task.shape, task.cells) for task in tasks if not task.shape.is_free]
        blocks = BlockIndex(kinds)
        for first, (_, cells) in zip(blocks.first, kinds, strict=True):
            home[cells], place[cells] = first + np.arange(len(cells))[:, None], np.arange(cells.shape[1])
        return home, place, blocks

    @cached_property
    def _scratch(self) -> Ints:
        return np.zeros(self.drawing.channel.facts.lattice.cells, dtype=np.int64)

    def parts(self, cells: Ints, coefficients: Ints) -> list[Part]:
        """(shape, cells, coefficients by query) of the blocks in which some query has a coefficient: those of free cells that have one,
        and all cells of other blocks. `coefficients` has one row a query.
        """
        if np.abs(coefficients).max(initial=0) > LARGEST_COEFFICIENT:
            raise RequestTooLarge(f"Coefficients of a query are {LARGEST_COEFFICIENT:,} at most in size.")
        home, _, blocks = self._homes
        out: list[Part] = []
        for number in np.unique(home[cells]).tolist():
            if number < 0:
                continue
            shape, own = blocks[number]
            if shape.is_free:
                used = home[cells] == number
                out.append((shape, cells[used], coefficients[:, used]))
                continue
            values = np.empty((len(coefficients), len(own)), dtype=np.int64)
            for place, row in enumerate(coefficients):
                self._scratch[cells] = row
                values[place] = self._scratch[own]
            self._scratch[cells] = 0
            out.append((shape, own, values))
        return out

    def of(self, cells: Ints, coefficients: Ints) -> ErrorLaw:
        """The law of sum_i coefficients[i] * (published - true number of cells[i]); each cell is named once."""
        used = coefficients != 0
        cells, coefficients = cells[used], coefficients[used]
        if not self.has_law:
            self._kept_value(cells, coefficients)
            return KeptSum()
        key = self._key(cells, coefficients)
        if key not in self._known:
            parts = self._moving(cells, coefficients)
            self._known[key] = self._compute_law(parts) or self._simulate(parts)
        return self._known[key]

    def _simulate(self, parts: Sequence[Part]) -> ErrorLaw:
        """From draws, or from the tail bound of the sequential law where that draws these blocks, and is nearly as good or all there is."""
        is_bounded = self.distance(parts) > 0 and all(covers(self.target, shape) for shape, _, _ in parts)
        bound = self.near_sum(parts, None) if is_bounded and self.ask != "simulated" else None
        if self.ask == "proved":
            if bound is None:
                raise InvalidParameter(NOT_PROVED, field="method")
            return bound
        try:
            count = self.draw_count(parts)
        except RequestTooLarge:
            if bound is None:
                raise
            count = 0
        spread = math.sqrt(self._form_variance(parts)) if bound else 0.0
        return SimulatedSum(count, lambda: self.draws(parts)[0], bound, spread)

    def without_draws(self, cells: Ints) -> ErrorLaw | None:
        """The same law of the plain sum over these cells; None where only draws tell, or where it would take more work than is left of
        QUICK_WORK for all sums that this is asked for: for pages, which a moment must do.
        """
        ones = np.ones(len(cells), dtype=np.int64)
        if not self.has_law:
            return None if self._kept_sums.value(cells, ones) is None else KeptSum()
        key = self._key(cells, ones)
        if key not in self._known:
            home, _, blocks = self._homes
            numbers = np.unique(home[cells])
            self._left -= BLOCK_WORK * len(numbers)
            if self._left >= 0:
                self._left -= sum(blocks[number][1].size for number in numbers.tolist() if number >= 0)
            found = self._compute_law(self._moving(cells, ones), self._left) if self._left >= 0 else None
            if found is None:
                return None
            self._left -= found.law.work if isinstance(found, ConvolvedSum) else 0
            self._known[key] = found
        return self._known[key]

    def _key(self, cells: Ints, coefficients: Ints) -> object:
        """Equal where the laws are: the order of cells does not matter for free cells and under one total, nor which cell of a table."""
        home, place, blocks = self._homes
        keys: Counter[object] = Counter()
        homes = home[cells]
        for number in np.unique(homes).tolist():
            if number < 0:
                continue
            inside = homes == number if number != homes[0] or number != homes[-1] else slice(None)
            own, shape = coefficients[inside], blocks[number][0]
            if shape.is_free or (len(own) == 1 and self._cells_alike(shape)):
                keys[id(shape), np.sort(np.abs(own)).tobytes()] += 1
            elif shape.is_plain_sum:
                keys[id(shape), np.sort(own).tobytes()] += 1
            else:
                alike = None if isinstance(self.target, Rounded) else _class_of_sum(shape, place[cells[inside]], own)
                keys[id(shape), *(alike or (place[cells[inside]].tobytes(), own.tobytes()))] += 1
        return frozenset(keys.items())

    def _cells_alike(self, shape: Shape) -> bool:
        """Rounded projection goes through the cells of a table in an order, but each cell of a two-way table goes to the whole number below
        or above, with a chance that its own projection decides.
        """
        return shape.is_network if isinstance(self.target, Rounded) else shape.cells_alike

    def _is_kept(self, part: Part) -> bool:
        """Whether no move of a block changes a query: decided in whole numbers. Of the lattice taken whole nobody knows."""
        shape, _, values = part
        target = self.target if isinstance(self.target, LevelGaussian) else PLAIN
        return covers(target, shape) and not len(short_moves(target, shape, values).values)

    def _moving(self, cells: Ints, coefficients: Ints) -> list[Part]:
        """Blocks in which some move changes the query."""
        return [part for part in self.parts(cells, coefficients[None]) if not self._is_kept(part)]

    def distance(self, parts: Sequence[Part]) -> float:
        """A bound of the total variation distance from the lattice law, of these blocks together."""
        return self._steps(parts).total_variation

    def _steps(self, parts: Sequence[Part]) -> Steps:
        """Return the steps of those blocks that the sequential law draws."""
        target = self.drawing.channel.target
        return together((sequential_steps(target, shape), 1) for shape, _, _ in parts)

    def near_sum(self, parts: Sequence[Part], law: ErrorLaw | None) -> NearSum:
        shifts, variances = zip(*(tail_of(self.drawing.channel.target, shape, values[0]) for shape, _, values in parts), strict=True)
        return NearSum(law, self.distance(parts), math.fsum(variances), math.fsum(shifts))

    def _near_of(self, law: ErrorLaw | None, variance: float, steps: Steps) -> NearSum:
        return NearSum(law, steps.total_variation, variance * (1 + float(steps.kappa)) * (1 + 1e-12), steps.shift(variance))

    def _compute_law(self, parts: Sequence[Part], most: int = UNBOUNDED) -> ErrorLaw | None:
        """Without draws; None where only draws tell, or draws were asked for. `most`: points of convolutions."""
        if not parts:
            return KeptSum()
        if self.ask == "simulated":
            return None
        distance = self.distance(parts)
        if distance > NEAR:
            return None
        law = self._lattice_law(parts, most)
        return law if law is None or distance == 0 else self.near_sum(parts, law)

    def _lattice_law(self, parts: Sequence[Part], most: int) -> ErrorLaw | None:
        """As if the lattice law drew all of them."""
        law: GaussianSum | None = None
        if all(covers(self.target, shape) for shape, _, _ in parts):
            law = self._gaussian(parts)
            if law.law.flatness >= FLAT_ENOUGH:
                return law
        cell, sums = cell_of(self.target), not isinstance(self.target, Rounded)  # without totals, rounded projection is plain Laplace noise
        if cell is not None and all(shape.is_free or (sums and shape.is_one_sum) for shape, _, _ in parts):
            free = [values[0] for shape, _, values in parts if shape.is_free]
            rows = [shape.apply_signs(values[0]) for shape, _, values in parts if shape.is_one_sum]
            found = convolve(cell, np.concatenate([np.zeros(0, dtype=np.int64), *free]), rows, most)
            if found is not None:
                return ConvolvedSum(found)
        return law or self._rounded_cell(parts)

    def _rounded_cell(self, parts: Sequence[Part]) -> ErrorLaw | None:
        """One cell under rounded projection, where its law is known."""
        shape, _, values = parts[0]
        if len(parts) > 1 or np.count_nonzero(values) > 1 or not isinstance(self.target, Rounded):
            return None
        law = cell_probabilities(self.target, shape)
        if law is None:
            return None
        half = len(law) // 2
        within = np.cumsum(np.concatenate([law[half : half + 1], law[half + 1 :] + law[:half][::-1]]))
        return ConvolvedSum(Convolved(int(np.abs(values).max()), within, len(law)))

    def _gaussian(self, parts: Sequence[Part]) -> GaussianSum:
        assert isinstance(self.target, Gaussian | LevelGaussian)
        rows, flat = flatness([short_moves(self.target, shape, values) for shape, _, values in parts])
        return GaussianSum(LatticeSum(math.gcd(*rows.ravel().tolist()), self._form_variance(parts) * (1 + 1e-12), flat))

    def _form_variance(self, parts: Sequence[Part], row: int = 0) -> float:
        """The variance of a query in the continuous law."""
        assert isinstance(self.target, Gaussian | LevelGaussian)
        return math.fsum(form_variance(self.target, shape, values[row]) for shape, _, values in parts)

    def draws(self, parts: Sequence[Part], label: str = "interval", count: int = 0) -> Ints:
        """Draws of the errors of queries, one row a query. Long work is announced."""
        return draw_errors(self.drawing, parts, label, count or self.draw_count(parts))

    def spreads(self, parts: Sequence[Part]) -> NDArray[np.float64] | None:
        """The standard deviations of queries in the continuous law; None where there is none."""
        if not isinstance(self.target, Gaussian | LevelGaussian) or not all(covers(self.target, shape) for shape, _, _ in parts):
            return None
        return np.sqrt([self._form_variance(parts, row) for row in range(len(parts[0][2]) if parts else 0)])

    def of_margin(self, numbers: Ints) -> list[ErrorLaw] | None:
        """The laws of the sums over the cells of each number, 0, 1, ...: all at once, where levels are weighed and every sum is one of
        units and places (level by axes). None where it is not so, or where one bound for all says nothing.

        Guarantees:  the flatness is that of every such sum, or less: any move may be one that is subtracted, so that its length is at most
                     twice that of the longer ([theory T140]). Variances are rounded up to ten bits.
        """
        if not isinstance(self.target, LevelGaussian) or self.ask == "simulated" or not self.has_law:
            return None
        steps = self._steps([(shape, cells, cells[None]) for shape, cells in self._homes[2]])
        if steps.total_variation > NEAR:
            return None
        variances, log_loss = np.zeros(int(numbers.max()) + 1), 0.0
        for shape, cells in self._homes[2]:
            form = self.target.form(shape)
            found = margin_variances(form, numbers[cells])
            if found is None:
                return None
            variances += np.bincount(found[0], weights=found[1], minlength=len(variances))
            log_loss += log_theta(units_s_squared(self.target, form.shape) / 4)
        flat = flatness_of(log_loss)
        if flat < FLAT_ENOUGH:
            return None
        sizes, powers = np.frexp(variances * (1 + 1e-9))
        rounded = np.ldexp(np.ceil(sizes * 1024) / 1024, powers)
        laws: dict[float, ErrorLaw] = {0.0: KeptSum()}
        for value in np.unique(rounded[rounded > 0]).tolist():
            law = GaussianSum(LatticeSum(1, value, flat))
            laws[value] = law if steps.least is None else self._near_of(law, value, steps)
        return [laws[value] for value in rounded.tolist()]

    def draw_count(self, parts: Sequence[Part]) -> int:
        """How many draws an interval is made of: from what one costs, never from a clock."""
        cost = sum(map(self._cost, parts))
        count = int(min(DRAWS, max(LEAST_DRAWS, USUAL_CELLS / max(cost, 1))))
        if count * cost > MOST_CELLS:
            raise RequestTooLarge(
                f"An interval from {count:,} draws of this noise would take {duration(count * cost)}. Ask about fewer cells, or about kept "
                "totals; a law that is drawn faster, such as Gaussian noise, has intervals without draws."
            )
        return count

    def _cost(self, part: Part) -> float:
        """Cell draws of one draw of a block, or of all its free cells."""
        shape, own, _ = part
        return max(own.size, cell_draws(self.drawing.choice(shape).noise) * (own.size if shape.is_free else 1))


def _class_of_sum(shape: Shape, places: Ints, coefficients: Ints) -> tuple[Any, ...] | None:
    """Return the class of a sum over some places of each axis, one coefficient for all; None for other sums and shapes.

    Equal where exchanging units that are divided alike, which changes no lattice and no length, makes one sum of the other.
    """
    if not isinstance(shape, Grid | Levels) or (coefficients != coefficients[0]).any():
        return None
    levels = shape.as_levels
    used = [np.unique(axis) for axis in np.unravel_index(places, levels.axes)]
    if math.prod(map(len, used)) != len(places):
        return None
    return abs(int(coefficients[0])), *(tree.class_of(own) for tree, own in zip(levels.trees, used, strict=True))


def margin_variances(form: LevelVariances, numbers: Ints) -> tuple[Ints, NDArray[np.float64]] | None:
    """(numbers, the variance of the sum over the cells with each) where the cells of each number are one unit of a level by one
    combination of places of some axes; else None.
    """
    shape = form.shape
    table = numbers.reshape(shape.axes)
    mask, first = 0, table
    for axis in range(len(shape.lengths), 0, -1):
        taken = np.take(table, [0], axis=axis)
        if (table != taken).any():
            mask |= 1 << (axis - 1)
        else:
            first = np.take(first, [0], axis=axis)
    flat = first.reshape(shape.leaves, -1)
    for level in range(shape.levels + 1):
        unit = np.zeros(1, dtype=np.int64) if shape.tree is None else shape.tree.unit_of(level)
        starts = np.flatnonzero(np.diff(unit, prepend=-1))
        if (flat == flat[starts][unit]).all():
            found = flat[starts]
            return (found.ravel(), np.repeat(form.units(level, mask), found.shape[1])) if len(np.unique(found)) == found.size else None
    return None
