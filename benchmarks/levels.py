"""Group `levels`: margins at several levels of several axes, prepared draws beside NumPy in the same run, and how they grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import count

import numpy as np

from benchmarks import levels_weighted
from benchmarks.report import Bar, Report, Row, Table, number
from benchmarks.timing import Steps, best_of, load, machine
from holdfast.lattices.shapes import Levels
from holdfast.lattices.trees import Tree
from holdfast.laws import Gaussian, Rounded, Sequential, Target
from holdfast.randomness import NoiseKey
from holdfast.samplers.table import choose

MOST_GAUSSIAN, MOST_SEQUENTIAL, MOST_ROUNDED, MOST_GROWTH, MOST_LATTICE = 5, 3.5, 8, 1.5, 1.05
HEADERS = ("kept", "cells", "law", "draw ms", "ns/cell", "NumPy ns", "× NumPy")
GROWTH = ("kept", "law", "from ns/cell", "to ns/cell", "× per cell")
BOTH = ("kept", "cells", "Gaussian ns/cell", "sequential ns/cell", "×")


def cube(cells: int) -> Levels:
    """One-way margins of a cube."""
    side = round(cells ** (1 / 3))
    return Levels((Tree.plain(side),) * 3, ((0, 0, 1), (0, 1, 0), (1, 0, 0)))


def counties(cells: int) -> Levels:
    """County totals and sex by state, over 50 states with uneven numbers of counties, 2 sexes, and ages."""
    sizes = np.arange(50) * 2 + 12
    places = int(sizes.sum())
    ages = max(2, round(cells / (2 * places)))
    return Levels((Tree(((50,), tuple(sizes.tolist()))), Tree.plain(2), Tree.plain(ages)), ((1, 1, 0), (2, 0, 0)))


SHAPES: dict[str, Callable[[int], Levels]] = {"one-way margins of a cube": cube, "county totals, sex by state": counties}
LAWS: dict[str, tuple[Target, float]] = {
    "Gaussian, sigma_squared 100": (Gaussian(Fraction(100)), MOST_GAUSSIAN),
    "sequential, sigma_squared 100": (Sequential(Gaussian(Fraction(100))), MOST_SEQUENTIAL),
    "rounded projection, epsilon 1/4": (Rounded(Fraction(1, 4)), MOST_ROUNDED),
}


def run(*, sizes: Sequence[int] = (10**6, 10**7), rounds: int = 5, redistricting: bool = True) -> Report:
    """Measure every shape and law at every size; the first size has the bars, growth is from the first to the last. Then, unless left
    out, a table with shares for five levels.
    """
    load_before = load()
    draws, growth, beside = [], [], []
    with NoiseKey.for_tests("benchmark levels") as key, Steps("levels", len(SHAPES) * len(LAWS) * len(sizes)) as steps:
        for kept, make in SHAPES.items():
            by_law: list[list[float]] = []
            for law, (target, most) in LAWS.items():
                found = []
                for cells in sizes:
                    ours, numpy, size = measured(make(cells), target, key, rounds)
                    steps.done(f"levels: {kept}")
                    ratio = ours / numpy
                    bars = (Bar("× NumPy", ratio, most),) if cells == sizes[0] or most == MOST_SEQUENTIAL else ()
                    figures = (f"{size:,}", law, number(ours * 1e3), number(ours / size * 1e9), number(numpy / size * 1e9), number(ratio))
                    draws.append(Row(kept, figures, bars))
                    found.append(ours / size * 1e9)
                by_law.append(found)
                grown = found[-1] / found[0]
                growth.append(Row(kept, (law, number(found[0]), number(found[-1]), number(grown)), (Bar("per cell", grown, MOST_GROWTH),)))
            for cells, gaussian, sequential in zip(sizes, *by_law[:2], strict=True):
                bar = Bar("× lattice law", sequential / gaussian, MOST_LATTICE)
                beside.append(Row(kept, (f"{cells:,}", number(gaussian), number(sequential), number(sequential / gaussian)), (bar,)))
    tables = (
        Table("A prepared draw", HEADERS, draws),
        Table("The sequential law beside the lattice law", BOTH, beside),
        Table(f"Growth from {sizes[0]:,} to {sizes[-1]:,} cells", GROWTH, growth),
        *((levels_weighted.tract_table(), *levels_weighted.tables(), levels_weighted.six_columns()) if redistricting else ()),
    )
    notes = ("NumPy is `np.rint(rng.normal(0, 10, cells)).astype(np.int64)` of the same length, in turns with ours.",)
    return Report("Benchmark group levels", f"{machine()}; load {load_before} before, {load()} after", tables, notes)


def measured(shape: Levels, target: Target, key: NoiseKey, rounds: int) -> tuple[float, float, int]:
    """(seconds of a prepared draw, of NumPy, cells)."""
    sampler, rng, numbers = choose(shape, target).noise, np.random.default_rng(0), count()
    name = f"{shape.axes} {target.fields}"

    def draw() -> object:
        with key.stream(name, next(numbers)) as words:
            return sampler.draw(1, words)

    draw()
    best = best_of(rounds, {"ours": draw, "numpy": lambda: np.rint(rng.normal(0, 10, shape.size)).astype(np.int64)})
    return best["ours"], best["numpy"], shape.size
