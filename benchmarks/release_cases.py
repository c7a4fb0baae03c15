"""Draws of group `release`: blocks under kept totals against as many independent draws and NumPy's, their growth, small Laplace tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Literal

import numpy as np

from benchmarks.report import NOT_RUN, Bar, Row, number
from benchmarks.timing import Call, best_of, repeated
from holdfast.errors import NoExactSampler
from holdfast.exact import DiscreteGaussian, DiscreteLaplace, IntegerLaw
from holdfast.invariants import margin
from holdfast.lattices import lattice
from holdfast.lattices.shapes import Grid, OneSum, Shape
from holdfast.laws import Gaussian, L1Laplace, Target
from holdfast.mechanisms import GeneralizedLaplace
from holdfast.randomness import NoiseKey, Stream
from holdfast.samplers.protocol import BlockSampler
from holdfast.samplers.table import choose
from holdfast.tables import Universe

JUDGED_CELLS = 10**5
"""Bars hold from here up; smaller blocks are shown."""
CALL_CELLS = 10**5
"""Blocks smaller than this are drawn several times in a timed call."""
MANY_CELLS = 2 * 10**6
"""Blocks larger than this get a third of the rounds."""
MOST_PER_CELL = 1.5
"""Our own bar on what a cell may cost in the larger block, over a cell in the smaller."""
SMALL_DRAWS = 10_000
SINGLE_CALLS = 20
REFUSED = "refused"

HEADERS = ("noise", "cells", "ours ns", "independent ns", "NumPy ns", "× independent", "× NumPy", "first ms", "sampler")
GROWTH = ("noise", "cells", "ns", "cells", "ns", "× per cell", "independent × per cell")
SMALL = ("table", "draw(1) µs", "µs/draw", "draws/s", "tries", "mean l1 length", "s.e.", "exact", "cell variance", "s.e.", "exact")


@dataclass(frozen=True)
class Setting:
    """A law on one block of this shape (one axis: one sum), and the bars on it.

    `size` is epsilon of the Laplace, sigma_squared of the Gaussian.
    """

    law: Literal["Laplace", "Gaussian"]
    size: Fraction
    shape: tuple[int, ...]
    most_independent: float
    most_numpy: float | None = None

    @property
    def block_shape(self) -> Shape:
        return OneSum(*self.shape) if len(self.shape) == 1 else Grid(self.shape)

    @property
    def name(self) -> str:
        exponent = len(str(self.size)) - 1
        size = f"10^{exponent}" if self.size > 1000 and self.size == 10**exponent else str(self.size)
        return f"{self.law}, {'epsilon' if self.law == 'Laplace' else 'sigma_squared'} {size}"

    @property
    def block(self) -> str:
        return " × ".join(f"{n:,}" for n in self.shape)

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def spread(self) -> float:
        """Scale of the Laplace, sigma of the Gaussian."""
        return 1 / float(self.size) if self.law == "Laplace" else math.sqrt(self.size)

    def sampler(self) -> BlockSampler:
        """What a release would use, made anew."""
        target: Target = L1Laplace(self.size) if self.law == "Laplace" else Gaussian(self.size)
        try:
            return choose(self.block_shape, target).noise
        finally:
            choose.cache_clear()

    def independent(self) -> IntegerLaw:
        return DiscreteLaplace(1 / self.size) if self.law == "Laplace" else DiscreteGaussian(self.size)

    def bars(self, independent: float | None, numpy: float | None) -> tuple[Bar, ...]:
        if self.cells < JUDGED_CELLS:
            return ()
        first = Bar("× independent", independent, self.most_independent)
        return (first,) if self.most_numpy is None else (first, Bar("× NumPy", numpy, self.most_numpy))


def one_sum_settings(sizes: Sequence[int]) -> list[Setting]:
    """Both laws under one kept total."""
    laplace = [Setting("Laplace", Fraction(epsilon), (n,), 5, 1) for epsilon in ("1/4", "1") for n in sizes]
    below = [Setting("Gaussian", Fraction(1), (n,), 20) for n in sizes]
    above = [Setting("Gaussian", Fraction(sigma_squared), (n,), 6, 1) for sigma_squared in ("5/2", "100", "10000") for n in sizes]
    return laplace + below + above


def grid_settings(shapes: Sequence[tuple[int, ...]]) -> list[Setting]:
    """Gaussian noise with the sums along every axis kept."""
    return [Setting("Gaussian", Fraction(size), shape, 40 if size < 5 else 20) for shape in shapes for size in (1, 2, 5, 100, 10**4)]


class Contenders:
    """The calls to be timed for one setting; each draws on from an open stream of its own, and lets go of what it drew."""

    def __init__(self, setting: Setting, key: NoiseKey) -> None:
        self._cells = setting.cells
        self._generator = np.random.default_rng(1)
        self._spread = setting.spread
        self._words, self._independent_words = (_stream(setting, key, name) for name in ("ours", "independent"))
        self._independent = setting.independent()
        made: list[BlockSampler] = []

        def first() -> None:
            made.append(setting.sampler())
            made[0].draw(1, self._words)

        self.first_seconds = best_of(1, {"first": first})["first"]
        self.sampler = made[0]
        self._independent.draw(self._cells, self._independent_words)

    def ours(self) -> None:
        self.sampler.draw(1, self._words)

    def independent(self) -> None:
        self._independent.draw(self._cells, self._independent_words)

    def numpy(self) -> None:
        np.rint(self._generator.normal(0, self._spread, self._cells)).astype(np.int64)

    def close(self) -> None:
        self._words.close()
        self._independent_words.close()


def measure(setting: Setting, rounds: int, key: NoiseKey, done: Call) -> Row:
    """One setting against its rivals, in turns; a law that is refused leaves its bars open."""
    try:
        contenders = Contenders(setting, key)
    except NoExactSampler:
        done()
        refused = (setting.block, REFUSED, *[NOT_RUN] * (len(HEADERS) - 3))
        return Row(setting.name, refused, setting.bars(None, None))
    times = max(1, CALL_CELLS // setting.cells)
    calls: dict[str, Call] = {"ours": contenders.ours, "independent": contenders.independent, "numpy": contenders.numpy}
    best = best_of(fewer(rounds, setting.cells), {name: repeated(times, call) for name, call in calls.items()})
    contenders.close()
    done()
    each = [1e9 * best[name] / (times * setting.cells) for name in calls]
    independent, numpy = best["ours"] / best["independent"], best["ours"] / best["numpy"]
    figures = (*map(number, (*each, independent, numpy, 1e3 * contenders.first_seconds)), contenders.sampler.name)
    return Row(setting.name, (setting.block, *figures), setting.bars(independent, numpy))


def growth(small: Setting, large: Setting, rounds: int, key: NoiseKey, done: Call) -> Row:
    """What a cell costs in the larger of two blocks of one law, over the smaller: both draw about as many cells, in turns."""
    both = Contenders(small, key), Contenders(large, key)
    times = max(1, large.cells // small.cells)
    calls = {
        "small": repeated(times, both[0].ours),
        "large": both[1].ours,
        "independent small": repeated(times, both[0].independent),
        "independent large": both[1].independent,
    }
    best = best_of(fewer(rounds, large.cells), calls)
    for contenders in both:
        contenders.close()
    done()
    ns = {name: 1e9 * best[name] / (large.cells if "large" in name else times * small.cells) for name in calls}
    ours, independent = ns["large"] / ns["small"], ns["independent large"] / ns["independent small"]
    figures = (small.block, number(ns["small"]), large.block, number(ns["large"]), number(ours), number(independent))
    return Row(small.name, figures, (Bar("× per cell", ours, MOST_PER_CELL),))


WARM = (
    Setting("Laplace", Fraction(1, 4), (CALL_CELLS,), 5),
    Setting("Laplace", Fraction(1, 16), (CALL_CELLS,), 5),
    Setting("Gaussian", Fraction(1), (CALL_CELLS,), 20),
    Setting("Gaussian", Fraction(100), (CALL_CELLS,), 6),
    Setting("Gaussian", Fraction(100), (300, 300), 20),
    Setting("Gaussian", Fraction(100), (30, 30, 30), 20),
)


def warm(key: NoiseKey) -> None:
    """Load compiled code, which samplers of small blocks would leave alone."""
    for setting in WARM:
        Contenders(setting, key).close()


def fewer(rounds: int, cells: int) -> int:
    """Large draws vary little from round to round."""
    return rounds if cells <= MANY_CELLS else -(-rounds // 3)


@dataclass(frozen=True)
class SmallTable:
    """A square table with both margins kept, l1 Laplace noise of epsilon 1/4, and its moments to six digits ([theory T52])."""

    side: int
    mean_l1: float
    cell_variance: float

    @property
    def name(self) -> str:
        return f"{self.side} × {self.side}, margins kept"


SMALL_TABLES = (SmallTable(2, 3.40367, 1.84135), SmallTable(3, 15.29888, 5.46088), SmallTable(4, 35.01676, 8.81598))


def small_laplace(table: SmallTable, rounds: int, draws: int, key: NoiseKey, done: Call) -> Row:
    """Time of an exact draw, one at a time and `draws` at once; moments of all that was drawn, beside the exact ones."""
    codes = [str(i) for i in range(table.side)]
    universe = Universe.product({"row": codes, "column": codes})
    law = GeneralizedLaplace(epsilon="1/4", per="distance").law(lattice(universe, [margin("row"), margin("column")]))
    (task,) = law.channel.tasks()
    sampler = law.drawing.choice(task.shape).noise
    labels = count()
    lengths: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    squares: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []

    def sample() -> None:
        drawn = law.sample(draws, key, label=str(next(labels)))
        lengths.append(np.abs(drawn).sum(axis=1))
        squares.append((drawn**2).mean(axis=1))

    sample()
    with key.stream("single", table.name) as words:
        single: Callable[[], object] = partial(sampler.draw, 1, words)
        best = best_of(rounds, {"sample": sample, "single": repeated(SINGLE_CALLS, single)})
    done()
    seconds = best["sample"] / draws
    times = (number(1e6 * best["single"] / SINGLE_CALLS), number(1e6 * seconds), f"{1 / seconds:,.0f}", number(sampler.expected_tries))
    moments = (*_mean(np.concatenate(lengths)), f"{table.mean_l1}", *_mean(np.concatenate(squares)), f"{table.cell_variance}")
    return Row(table.name, (*times, *moments))


def _mean(values: np.ndarray[tuple[int], np.dtype[np.int64]] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[str, str]:
    return f"{values.mean():.4f}", f"{values.std(ddof=1) / math.sqrt(len(values)):.4f}"


def _stream(setting: Setting, key: NoiseKey, name: str) -> Stream:
    return key.stream(setting.name, setting.block, name)
